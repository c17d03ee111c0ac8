"""Signs and zeros of logged joints, on an arm that MuJoCo integrates."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.actuators import SignResult, check_signs
from dynid.errors import InvalidValue, NotApplicable, NotIdentifiable
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error
from tests.support.servo_arm import JOINTS, KP, servo_arm, servo_log, slow_motion

SAME, REVERSED, UNKNOWN = SignResult.SAME, SignResult.REVERSED, SignResult.UNKNOWN


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> dynid.Robot:
    return servo_arm(tmp_path_factory.mktemp("arm"))


@pytest.mark.parametrize(
    ("signs", "zeros"),
    [
        ((1, -1, 1, 1), (0.0, 0.1, -0.05, 0.08)),
        pytest.param((1, 1, 1, 1), (0.0, 0.0, 0.0, 0.0), marks=pytest.mark.slow),
        pytest.param((-1, 1, -1, -1), (0.0, -0.1, 0.12, 0.0), marks=pytest.mark.slow),
        pytest.param((1, -1, -1, -1), (0.0, 0.05, 0.05, -0.1), marks=pytest.mark.slow),
    ],
)
def test_flipped_signs_and_zeros_are_found(
    robot: dynid.Robot, signs: tuple[int, ...], zeros: tuple[float, ...]
) -> None:
    log = servo_log(slow_motion(), signs=np.array(signs), zeros=np.array(zeros))
    found = check_signs(robot, ActuatorLaw(JOINTS, kp=100.0), log)
    # The pan joint is about the vertical.
    assert found.results == (UNKNOWN, *(SAME if s > 0 else REVERSED for s in signs[1:])), found.table()
    assert np.isinf(found.zeros_std[0]) and found.evidence[0] == 0
    shown = np.isfinite(found.zeros_std)
    assert shown[1]
    off = np.abs(found.zeros - zeros)[shown]
    assert np.all(off < np.maximum(4 * found.zeros_std[shown], 0.01)), found.table()
    assert found.gain * 100.0 == pytest.approx(KP, rel=0.1)


def test_friction_that_hides_the_weight_leaves_the_signs_open(robot: dynid.Robot) -> None:
    still = np.tile(slow_motion()[:1], (500, 1))
    log = servo_log(still, signs=np.array([1, -1, 1, 1]), zeros=np.zeros(4), friction=2.0)
    assert set(check_signs(robot, ActuatorLaw(JOINTS, kp=KP), log).results) == {UNKNOWN}


def test_what_cannot_be_tested_is_said(robot: dynid.Robot) -> None:
    log = servo_log(slow_motion(2.0), signs=np.ones(4), zeros=np.zeros(4))
    with expect_error(NotApplicable):
        check_signs(robot, ActuatorLaw(JOINTS, kp=[1.0, 1.0, 1.0, 0.0]), log)
    with expect_error(NotIdentifiable):
        check_signs(robot.with_gravity((0.0, 0.0, 0.0)), ActuatorLaw(JOINTS, kp=KP), log)
    with expect_error(InvalidValue, "zero_std"):
        check_signs(robot, ActuatorLaw(JOINTS, kp=KP), log, zero_std=0.0)
