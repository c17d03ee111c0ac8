"""The advice of a cause, followed as a user would: correct the log or the model, identify again, look at unseen motion.

Causes whose advice is to look at the robot or to record again cannot be followed from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause import Cause
from dynid.assessment.causes.cause_code import CauseCode
from dynid.assessment.causes.kinds.drives import CLOCK_RATE, GRAVITY_MISSING, GRAVITY_REVERSED, TORQUE_GAIN
from dynid.assessment.causes.kinds.geometry import ENCODER_OFFSET, PLACEMENT, POSITION_GAIN, TILT
from dynid.assessment.causes.kinds.lags import DELAY, JOINT_DELAY
from dynid.assessment.causes.kinds.swapped import JOINTS_SWAPPED, POSITIONS_SWAPPED, TORQUES_SWAPPED
from dynid.calibration import calibrate_sensors
from dynid.errors import DynidError
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.signals.settings import Signals

__all__ = ["error_by_advice", "unseen_error"]

Array = NDArray[np.float64]
# What is identified again: the robot, its recordings, and how their signals are treated.
Setup = tuple[Robot, tuple[Recording, ...], Signals]
# A link that is wrong by so much in some direction is not corrected; one that is too long or too short is.
_SIGNED = "in the model"
Correction = Callable[[Cause, Robot, tuple[Recording, ...]], Setup]


def error_by_advice(
    cause: Cause, robot: Robot, training: Recording, unseen: Recording, before: float, method: str = "auto"
) -> float:
    """Error of unseen motion after the advice over that `before`; NaN where the advice is not one for the log."""
    correct = _with_effect if cause.option else _CORRECTIONS.get(cause.code)
    if correct is None or (cause.code == PLACEMENT and _SIGNED not in cause.words):
        return np.nan
    try:
        better, (fitted, seen), signals = correct(cause, robot, (training, unseen))
        estimate = identify(better, fitted, method, signals=signals)
        return unseen_error(estimate.validate(seen).relative) / before
    except DynidError:
        return np.inf


def unseen_error(relative: Array) -> float:
    """One number for the relative errors of all joints."""
    return float(np.sqrt(np.mean(np.square(relative))))


def _changed(recordings: Sequence[Recording], change: Callable[[Run], Run]) -> tuple[Recording, ...]:
    return tuple(replace(r, runs=tuple(change(run) for run in r.runs)) for r in recordings)


def _torque(run: Run) -> Array:
    assert run.torque is not None, "recordings of the study have torques"
    return run.torque


def _indices(cause: Cause, robot: Robot) -> list[int]:
    return [robot.coordinates.index(name) for name in cause.joints]


def _with_effect(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    return robot.with_effects(cause.option), recordings, Signals()


def _delay(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    return robot, recordings, Signals(delay=1e-3 * cause.size)


def _joint_delay(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    late = np.zeros(robot.n)
    late[_indices(cause, robot)] = 1e-3 * cause.size

    def change(run: Run) -> Run:
        moved = [np.interp(run.t + late[j], run.t, x) for j, x in enumerate(_torque(run).T)]
        return replace(run, torque=np.column_stack(moved))

    return robot, _changed(recordings, change), Signals()


def _torque_gain(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    factor = 1.0 + 0.01 * cause.size
    gain = np.ones(robot.n)
    gain[_indices(cause, robot)] = factor if factor > 0 else -1.0

    def change(run: Run) -> Run:
        scaled = replace(run, torque=_torque(run) / gain)
        return scaled if factor > 0 else replace(scaled, q=run.q * gain, v=None, a=None)  # the whole joint is reversed

    return robot, _changed(recordings, change), Signals()


def _clock(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    def change(run: Run) -> Run:
        return replace(run, t=run.t[0] + (run.t - run.t[0]) / (1.0 + 0.01 * cause.size), v=None, a=None)

    return robot, _changed(recordings, change), Signals()


def _position_gain(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    gain = np.ones(robot.n)
    gain[_indices(cause, robot)] = 1.0 + 0.01 * cause.size
    return robot, _changed(recordings, lambda run: replace(run, q=run.q / gain, v=None, a=None)), Signals()


def _length(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    def longer(joint: Joint) -> Joint:
        placement = joint.placement.copy()
        placement[:3, 3] *= 1.0 + 1e-3 * cause.size / np.linalg.norm(placement[:3, 3])
        return replace(joint, placement=placement)

    joints = tuple(longer(joint) if joint.name in cause.joints else joint for joint in robot.joints)
    return replace(robot, joints=joints), recordings, Signals()


def _reversed(_: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    return robot.with_gravity(-robot.gravity), recordings, Signals()


def _gravity(_: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
    return robot.with_gravity((0.0, 0.0, -9.81)), recordings, Signals()


def _exchanged(*signals: str) -> Correction:
    def correct(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
        order = np.arange(robot.n)
        first, second = _indices(cause, robot)
        order[[first, second]] = second, first

        def change(run: Run) -> Run:
            known = {s: getattr(run, s) for s in signals}
            return replace(run, **{s: x[:, order] for s, x in known.items() if x is not None})

        return robot, _changed(recordings, change), Signals()

    return correct


def _calibrated(unknown: str) -> Correction:
    """The unknown is estimated from the recording of the fit, and both recordings or the robot are corrected by it."""

    def correct(cause: Cause, robot: Robot, recordings: tuple[Recording, ...]) -> Setup:
        wanted = {unknown: list(cause.joints)} if cause.joints else [unknown]
        found = calibrate_sensors(robot, recordings[0], wanted)
        return robot.with_gravity(found.gravity), tuple(found.corrected(r) for r in recordings), Signals()

    return correct


_CORRECTIONS: dict[CauseCode, Correction] = {
    DELAY: _delay,
    JOINT_DELAY: _joint_delay,
    TORQUE_GAIN: _torque_gain,
    CLOCK_RATE: _clock,
    POSITION_GAIN: _position_gain,
    PLACEMENT: _length,
    GRAVITY_REVERSED: _reversed,
    GRAVITY_MISSING: _gravity,
    POSITIONS_SWAPPED: _exchanged("q", "v", "a"),
    TORQUES_SWAPPED: _exchanged("torque"),
    JOINTS_SWAPPED: _exchanged("q", "v", "a", "torque"),
    TILT: _calibrated("tilt"),
    ENCODER_OFFSET: _calibrated("encoder_offset"),
}
