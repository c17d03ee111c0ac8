"""A small estimate of several methods, a designed motion and a study, as files without times: for comparing bytes.

`python -m tests.support.same_answers FOLDER`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.montecarlo.study import monte_carlo
from tests.montecarlo.test_monte_carlo import small_study, without_times

METHODS = ("auto", "wls", "feasible", "irls", "gls")


def without_seconds(data: Any) -> Any:
    """Saved data without how long things took."""
    if isinstance(data, dict):
        return {key: without_seconds(value) for key, value in data.items() if key != "seconds"}
    return [without_seconds(value) for value in data] if isinstance(data, list) else data


def main() -> None:
    """Write the files."""
    folder = Path(sys.argv[1])
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    recording = synthetic_recording(robot, 0, duration=10.0)
    recording.to_csv(folder / "run.csv")
    for method in METHODS:
        path = folder / f"{method}.json"
        dynid.identify(robot, recording, method).save(path)
        path.write_text(json.dumps(without_seconds(json.loads(path.read_text()))))
    # The budget must not end the search.
    dynid.design_excitation(robot, 4.0, size=2, budget=3000).to_csv(folder / "motion.csv")
    study = monte_carlo(small_study(runs=1), workers=1)
    (folder / "study.json").write_text(without_times(study.to_frame()).write_json())


if __name__ == "__main__":
    main()
