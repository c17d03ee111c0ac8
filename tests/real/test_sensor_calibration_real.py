"""A base that leans, and friction that looks like a delay, in real recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from studies.reproduce.robot_cases import lwr4, ur10e

pytestmark = pytest.mark.real


@pytest.mark.slow
def test_the_lwr4_leans(data: Path) -> None:
    """A tilt of about 1.4 degrees, many deviations from none, that predicts an unseen recording better."""
    case = lwr4()
    found = dynid.calibration.calibrate_sensors(case.robot, case.train, "tilt", signals=dynid.Signals())
    assert found.converged and abs(found.tilt[0]) > 20 * found.std["tilt"][0]
    assert case.test is not None
    before = dynid.identify(case.robot, case.train, "wls").validate(case.test).relative
    after = found.estimate.validate(found.corrected(case.test)).relative
    # Joint 1 is vertical and carries the tilt alone: its error falls by two fifths.
    assert after[0] < 0.7 * before[0] and after[2] < 0.85 * before[2] and after[1] < before[1]


@pytest.mark.slow
def test_the_ur10e_has_no_delay_once_reversals_are_left_out(data: Path) -> None:
    """With rows near reversals, friction passes for a delay of many deviations."""
    case = ur10e()
    with_reversals = dynid.calibration.calibrate_sensors(
        case.robot, case.train, {"delay": "common"}, signals=dynid.Signals()
    )
    without = dynid.calibration.calibrate_sensors(case.robot, case.train, {"delay": "common"})
    assert with_reversals.delay[0] > 10 * with_reversals.std["delay"][0]
    assert abs(without.delay[0]) < 3 * without.std["delay"][0]
