"""Checks of base wrenches against the weight of the robot: axes, sign, reference point, zero of the sensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.dynamics.centroidal import center_of_mass, total_mass
from dynid.dynamics.frames import base_placement
from dynid.errors import DataError
from dynid.identification.loads import check_run, measured, state
from dynid.recording.run import Run
from dynid.recording.wrench import Axes
from dynid.robot.mechanism import WRENCH_CHANNELS
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["WRENCH"]

Array = NDArray[np.float64]

WRENCH_UNUSABLE = FindingCode("wrench_unusable", "the wrenches cannot be used", "error", signal="wrench")
WRENCH_SIGN = FindingCode("wrench_sign", "the wrench is that of the robot on the sensor", "error", signal="wrench")
WRENCH_AXES = FindingCode(
    "wrench_axes", "the force does not point against gravity", ("error", "warning"), signal="wrench"
)
WRENCH_WEIGHT = FindingCode(
    "wrench_weight", "the force differs from the weight of the a-priori model", "warning", signal="wrench"
)
WRENCH_POINT = FindingCode("wrench_point", "the force passes beside the centre of mass", "warning", signal="wrench")
WRENCH_NOT_ZEROED = FindingCode("wrench_not_zeroed", "the wrench sensor was not zeroed", "warning", signal="wrench")

# Below this velocity (rad/s and m/s) the robot stands still and the wrench is its weight.
_STILL = 0.05
# Duration (s) of standstill from which it is used instead of the whole motion.
_LONG_ENOUGH = 0.5
# Duration (s) of motion over which accelerations average out.
_WHOLE = 2.0
# Angle (degrees) between the mean force and the vertical: sensors are level to one or two degrees.
_LEANING, _WRONG = 4.0, 20.0
# Shares of the weight: error of a scale, load below which a sensor is unloaded, and offset that is reported.
_OFF, _UNLOADED, _OFFSET = 0.05, 0.1, 0.005
# Shortest time (s) without load from which the zero of a sensor is determined.
_LIFTED = 0.2
# Distance (m) between the line of the force and the centre of mass at standstill.
_BESIDE = 0.1

# Fixed, not found from the data: a fault must not change the filter that is used to detect it.
_SETTINGS = Signals(cutoff=None, min_velocity=0.0, decimate=(), trim=0.0)
_CUTOFF = 5.0


@dataclass(frozen=True, eq=False)
class _Stand:
    """Mean force (3,) in the world frame, and lever arm (3,) to the a-priori centre of mass."""

    force: Array
    lever: Array
    how: str


def check_wrench(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Check whether the wrenches on a floating or instrumented base match the weight of the robot."""
    if robot.base == "fixed" or (run.wrench is None and not run.wrenches):
        return
    gravity = float(np.linalg.norm(robot.gravity))
    motion = context.once("wrench motion", run, lambda r: _motion(robot, r))
    if isinstance(motion, str):
        fix = "Give the motion of the base, and the frame in which each wrench is measured."
        yield context.found(WRENCH_UNUSABLE, run, None, "The wrenches cannot be used.", motion, fix)
        return
    if not gravity:
        return
    stand = _stand(robot, motion)
    if stand is not None:
        yield from _direction(robot, run, context, motion, stand)
    mass = total_mass(robot)
    if mass > 0:
        yield from _unloaded(run, context, motion, mass * gravity)


def _motion(robot: Robot, run: Run) -> Motion | str:
    """The cleaned run, or the reason why it cannot be cleaned."""
    try:
        check_run(robot, run, WRENCH_CHANNELS)
        rate = 1.0 / run.step
        return prepare(run, replace(_SETTINGS, cutoff=min(_CUTOFF, 0.2 * rate), torque_cutoff="same"))
    except DataError as error:
        return str(error)


def _stand(robot: Robot, motion: Motion) -> _Stand | None:
    """Mean load at standstill, or over a long motion; None if the run has neither."""
    q, v, _ = state(robot, motion)
    still = np.abs(v).max(axis=1, initial=0.0) < _STILL
    if np.count_nonzero(still) / motion.rate >= _LONG_ENOUGH:
        rows, how = still, f"standing still for {np.count_nonzero(still) / motion.rate:.2g} s"
    elif len(q) / motion.rate >= _WHOLE:
        rows, how = np.ones(len(q), bool), f"over {len(q) / motion.rate:.3g} s of motion"
    else:
        return None
    load = measured(robot, motion, q)[:, :6]
    world = base_placement(robot, q)
    turn, origin = world[:, :3, :3], world[:, :3, 3]
    force, moment = (np.einsum("nij,nj->ni", turn, x) for x in (load[:, :3], load[:, 3:]))
    mean = force[rows].mean(axis=0)
    lever = np.zeros(3)
    if total_mass(robot) > 0:
        about_centre = moment - np.cross(center_of_mass(robot, q) - origin, force)
        lever = np.cross(mean, about_centre[rows].mean(axis=0)) / max(float(mean @ mean), 1e-12)
    return _Stand(mean, lever, how)


def _direction(robot: Robot, run: Run, context: Context, motion: Motion, stand: _Stand) -> Iterator[Finding]:
    """Check direction, size and line of action of the mean force."""
    size = float(np.linalg.norm(stand.force))
    mass, gravity = total_mass(robot), float(np.linalg.norm(robot.gravity))
    angle = _angle(stand.force, -robot.gravity)
    if angle > 180.0 - _WRONG:
        yield context.found(
            WRENCH_SIGN,
            run,
            None,
            "The force on the robot points down: it is the force of the robot on the sensor.",
            f"{angle:.0f} degrees from the vertical, {stand.how}",
            'Reverse its sign when loading: sign={"wrench": -1}, or that of the named sensor.',
        )
        return
    if angle > _LEANING:
        better = _better_axes(robot, motion)
        hint = "Check the axes and placement of its sensor."
        if better:
            hint = f"In {better} it points up: set them in sensors=."
        yield context.found(
            WRENCH_AXES,
            run,
            None,
            "The force on the robot does not point against gravity: its axes are wrong, or it is not zeroed.",
            f"{angle:.0f} degrees from the vertical, {stand.how}",
            hint,
            severity="error" if angle > _WRONG else "warning",
        )
        return
    off = size / (mass * gravity) - 1.0 if mass > 0 else 0.0
    if abs(off) > _OFF:
        yield context.found(
            WRENCH_WEIGHT,
            run,
            None,
            "The force on the robot differs from the weight of its a-priori model.",
            f"{100 * off:+.0f} percent, {size / gravity:.4g} kilograms instead of {mass:.4g}, {stand.how}",
            "Zero the sensor, look for other contacts, or correct the total mass of the model.",
        )
    beside = float(np.linalg.norm(stand.lever))
    if beside > _BESIDE:
        yield context.found(
            WRENCH_POINT,
            run,
            None,
            "The force on the robot passes beside its centre of mass: the moments refer to another point.",
            f"{beside:.2g} metres, {stand.how}",
            "Check the placement of the wrench sensor, and the origin of the world frame.",
        )


def _better_axes(robot: Robot, motion: Motion) -> str:
    """Axes of a single sensor in which the force would point up, in words; "" if there are none."""
    if len(motion.sensors) != 1:
        return ""
    name, sensor = next(iter(motion.sensors.items()))
    for axes in get_args(Axes):
        if axes != sensor.axes:
            other = replace(motion, sensors={name: replace(sensor, axes=axes)})
            stand = _stand(robot, other)
            if stand is not None and _angle(stand.force, -robot.gravity) < _LEANING:
                return f"the axes of the {axes}"
    return ""


def _unloaded(run: Run, context: Context, motion: Motion, weight: float) -> Iterator[Finding]:
    """Find sensors that measure a force without load."""
    named = dict(motion.wrenches) | ({} if motion.wrench is None else {"base": motion.wrench})
    for name, values in named.items():
        force = values[:, :3]
        light = np.linalg.norm(force, axis=1) < _UNLOADED * weight
        edges = np.flatnonzero(np.diff(np.concatenate([[0], light.astype(int), [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            # The filter smooths a step on both sides.
            margin = int(motion.rate / (motion.cutoff or motion.rate))
            quiet = force[start + margin : stop - margin]
            if len(quiet) < _LIFTED * motion.rate or quiet.std(axis=0).max() > _OFFSET * weight:
                continue
            offset = float(np.linalg.norm(quiet.mean(axis=0)))
            if offset > _OFFSET * weight:
                yield context.found(
                    WRENCH_NOT_ZEROED,
                    run,
                    None,
                    f"Wrench sensor '{name}' measures a force without load: it was not zeroed.",
                    f"{offset:.3g} newtons for {len(quiet) / motion.rate:.2g} seconds",
                    "Zero it before recording, or subtract the offset when loading (offset=).",
                )
                break


def _angle(a: Array, b: Array) -> float:
    """Degrees between two vectors; 180 where one vanishes."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(a @ b / size, -1.0, 1.0)))) if size > 0 else 180.0


WRENCH = RecordingCheck(
    name="wrench",
    finds="of a floating or instrumented base: force that differs from the weight, is tilted or points down, or "
    "passes beside the centre of mass; sensors that were not zeroed",
    advice="give the axes; reverse the sign; correct the placement; zero the sensor",
    codes=(
        WRENCH_UNUSABLE,
        WRENCH_SIGN,
        WRENCH_AXES,
        WRENCH_WEIGHT,
        WRENCH_POINT,
        WRENCH_NOT_ZEROED,
    ),
    of_run=check_wrench,
    joints=False,
)
