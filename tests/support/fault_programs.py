"""Programs that tests kill or starve: a small Monte Carlo study, and a page of the studio that runs one command.

`python -m tests.support.fault_programs study FOLDER` and `... page FOLDER identify arm.urdf run1.csv ...`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import dynid
from dynid.montecarlo.scenario import MonteCarloStudy
from dynid.montecarlo.study import MonteCarlo, monte_carlo
from dynid.studio.jobs import Jobs
from tests.montecarlo.test_monte_carlo import small_study

__all__ = ["result_of", "study"]


def study() -> MonteCarloStudy:
    """Twelve recordings, each a file of the folder of the study."""
    return small_study(estimators=("wls", "didim"), runs=6)


def result_of(folder: Path) -> MonteCarlo:
    """The study, what the folder has of it being done already."""
    return monte_carlo(study(), workers=1, folder=folder)


def main() -> int:
    """Run one of them; errors of dynid are one line, as on the command line."""
    kind, folder, *command = sys.argv[1:]
    try:
        if kind == "study":
            result_of(Path(folder))
            return 0
        return asyncio.run(Jobs(Path(folder)).run(*command)).code
    except dynid.DynidError as error:
        print(f"dynid: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
