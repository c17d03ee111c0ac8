"""Advice of causes followed: the error of unseen motion falls where the cause is right, and rises where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment.causes.cause import Cause
from dynid.cli.demo import synthetic_recording
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from studies.reproduce.verdict_advice import error_by_advice, unseen_error

Spoil = Callable[[Run], Run]


def torque(run: Run) -> np.ndarray:
    assert run.torque is not None
    return run.torque


def exchanged(run: Run) -> Run:
    return replace(run, torque=torque(run)[:, ::-1])


def late(run: Run) -> Run:
    return replace(run, torque=np.column_stack([np.interp(run.t - 0.02, run.t, x) for x in torque(run).T]))


def second_late(run: Run) -> Run:
    return replace(run, torque=np.column_stack([torque(run)[:, 0], late(run).torque[:, 1]]))  # type: ignore[index]


def slow_clock(run: Run) -> Run:
    return replace(run, t=1.1 * run.t, v=None, a=None)


def second_large(run: Run) -> Run:
    return replace(run, torque=torque(run) * [1.0, 1.2])


def mirrored(run: Run) -> Run:
    return replace(run, q=run.q * [1.0, -1.0], v=None, a=None, torque=torque(run) * [1.0, -1.0])


def far(run: Run) -> Run:
    return replace(run, q=run.q * [1.0, 1.2], v=None, a=None)


def cause(code: str, size: float, *joints: str, option: str = "", words: str = "") -> Cause:
    return Cause(code, joints, words, size, 0.1, "", 0.5, 0.1, 0.1, 1e-6, option=option)


@pytest.fixture(scope="module")
def good() -> tuple[Robot, Recording, Recording]:
    robot = dynid.load_robot("twolink").with_gravity((0.0, -9.81, 0.0))
    training, unseen = (synthetic_recording(robot, seed=seed) for seed in (0, 1))
    return robot, training, unseen


@pytest.mark.parametrize(
    ("spoil", "right"),
    [
        (exchanged, cause("torques_swapped", 0.0, "joint1", "joint2")),
        (late, cause("delay", 20.0)),
        (second_late, cause("joint_delay", 20.0, "joint2")),
        (slow_clock, cause("clock_rate", 10.0)),
        (second_large, cause("torque_gain", 20.0, "joint2")),
        (far, cause("position_gain", 20.0, "joint2")),
        (mirrored, cause("torque_gain", -150.0, "joint2")),
    ],
    ids=lambda x: x.__name__ if callable(x) else str(x.code),
)
def test_right_advice_lowers_the_error(good: tuple[Robot, Recording, Recording], spoil: Spoil, right: Cause) -> None:
    robot, *recordings = good
    training, unseen = (replace(r, runs=tuple(map(spoil, r.runs))) for r in recordings)
    before = unseen_error(dynid.identify(robot, training).validate(unseen).relative)
    assert error_by_advice(right, robot, training, unseen, before) < 0.9
    wrong = replace(right, size=-right.size) if right.size else cause("delay", 20.0)
    assert error_by_advice(wrong, robot, training, unseen, before) > 1.0


def test_advice_that_no_log_can_follow_is_left_out(good: tuple[Robot, Recording, Recording]) -> None:
    assert np.isnan(error_by_advice(cause("drift", 1.0), *good, before=0.1))
    assert np.isnan(error_by_advice(cause("placement", 9.0, "joint2", words="in shape"), *good, before=0.1))


def test_what_cannot_be_identified_after_the_advice_is_no_gain(good: tuple[Robot, Recording, Recording]) -> None:
    """The centre of mass of the last link imitates an offset of its joint."""
    assert error_by_advice(cause("encoder_offset", 5.7, "joint2"), *good, before=0.1) == np.inf
