"""A report of every real robot, and verdicts that a careful engineer would give."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from studies.reproduce.robot_cases import CASES

pytestmark = pytest.mark.real

# Noisy or poor recordings of arms: what is known of each is in docs/study-reports/robots.md. None may be trusted.
DOUBTFUL = (
    "lwr4",
    "med7",
    "xmate_sensor",
    "xmate_motor",
    "kr300",
    "pendulum_a0",
    "pendulum_c0",
    "pendulum_c1",
)
# TIAGo's wrist and Kinova's first joint are off by the size of their torques.
REFUSED = ("tiago", "kinova_sensor", "kinova_current")


# One of them in the default run.
QUICK = ("wam",)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_report_of_every_robot(name: str, data: Path, tmp_path: Path) -> None:
    """Each is identified as a possible robot, judged by motion it has not seen, and reported in a small file."""
    case = CASES[name]()
    estimate = dynid.identify(case.robot, case.train, "feasible")
    path = tmp_path / f"{name}.html"
    assessment = dynid.report.write(estimate, path, case.test, recording=case.train)
    assert path.stat().st_size < 3_000_000
    text = path.read_text(encoding="utf-8")
    assert f"{assessment.verdict[0].upper()}{assessment.verdict[1:]}" in text
    assert assessment.check("physically_consistent").result == "passed", assessment.summary()
    if name in REFUSED:
        assert assessment.verdict == "do not use" and len(assessment.reasons) >= 3, assessment.summary()
    elif name in DOUBTFUL:
        assert assessment.verdict != "trusted", assessment.summary()
    elif case.test is None:
        assert assessment.verdict == "use with care", assessment.summary()
    else:
        assert assessment.verdict in ("trusted", "use with care"), assessment.summary()
