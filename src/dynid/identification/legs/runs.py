"""Runs of a robot on its legs, ready to be folded: contacts, base state, filtered signals, first noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import regressor
from dynid.errors import DataError
from dynid.identification.legs.contacts import Contact
from dynid.identification.legs.imu_base import LegBase, base_from_legs, white_noise
from dynid.identification.legs.schedule import Schedule, contact_schedule
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.signals.filters import lowpass
from dynid.signals.settings import Motion, Signals, prepare, uniform

__all__ = ["LegNoise", "LegRun", "drive_indices", "in_mode", "prepare_legs", "used_modes"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Time in s, times the cut-off, over which the low-pass extends a force: half of its impulse response.
_REACH = 0.5


@dataclass(frozen=True, eq=False)
class LegNoise:
    """Noise of torques and accelerations after the low-pass.

    Attributes
    ----------
    torque : ndarray (n,)
        Standard deviation of each joint's torque, N m or N.
    acceleration : ndarray (nv,)
        Standard deviations of accelerations: base linear (m/s2), base angular (rad/s2), joints.
    """

    torque: Array
    acceleration: Array


@dataclass(frozen=True, eq=False)
class LegRun:
    """A run that is ready to be folded.

    Attributes
    ----------
    motion : Motion
        Filtered run.
    q, v, a : ndarray (N, nq), (N, nv), (N, nv)
        State of base and joints.
    drives : ndarray (N, n, p)
        Drive columns of the regressor per joint, filtered as the torques are, for the parameters `drive_columns`.
    touching : ndarray of bool (N, foot)
        Which forces are unknown.
    still : ndarray of bool (N, n)
        Joints that stand still.
    used : ndarray of int (m,)
        Samples that give rows.
    base : LegBase or None
        Base state with its biases; None where the run has the motion of its base.
    schedule : Schedule
        Contacts at the samples of the run before trimming.
    """

    motion: Motion
    q: Array
    v: Array
    a: Array
    drives: Array
    touching: Mask
    still: Mask
    used: NDArray[np.intp]
    base: LegBase
    schedule: Schedule
    noise: LegNoise


def prepare_legs(
    robot: Robot,
    recording: Recording,
    feet: Sequence[Contact],
    *,
    imu: str | None,
    signals: Signals,
    foot_std: float,
    every: int | None,
    foot_forces: bool = False,
) -> list[LegRun]:
    """Contacts, base state and filtered signals of every run."""
    return [_prepared(robot, run, feet, imu, signals, foot_std, every, foot_forces) for run in recording.runs]


def _prepared(
    robot: Robot,
    run: Run,
    feet: Sequence[Contact],
    imu: str | None,
    signals: Signals,
    foot_std: float,
    every: int | None,
    foot_forces: bool,
) -> LegRun:
    if run.torque is None:
        raise DataError(f"run '{run.name}' has no torques")
    if run.q.shape[1] != robot.n:
        raise DataError(f"the recording has {run.q.shape[1]} joints, robot '{robot.name}' has {robot.n}")
    if foot_forces:
        missing = next((foot.frame for foot in feet if foot.frame not in run.wrenches), None)
        if missing is not None:
            raise DataError(f"run '{run.name}' has no wrench of foot '{missing}', which foot_forces needs")
    else:
        run = replace(run, wrenches={}, sensors={})
    even, rate = uniform(run, signals)
    schedule = contact_schedule(robot, even, feet, imu=imu)
    base = base_from_legs(robot, even, feet, schedule.standing, imu=imu, foot_std=foot_std)
    motion = prepare(base.motion.on(even), signals)
    assert motion.base is not None and motion.torque is not None
    first = int(np.searchsorted(even.t, motion.t[0] - 0.5 / rate))
    inside = slice(first, first + len(motion.t))
    cutoff = motion.cutoff
    reach = 0 if cutoff is None else int(np.ceil(_REACH / cutoff * rate))
    wide = schedule.widened(reach)
    touching = np.column_stack([wide[foot.frame][inside] for foot in feet])
    if foot_forces:
        touching = np.zeros_like(touching)
    q, v, a = (
        np.hstack([b, j])
        for b, j in zip((motion.base.pose, motion.base.v, motion.base.a), (motion.q, motion.v, motion.a), strict=True)
    )
    step = every or (1 if cutoff is None else max(1, int(0.4 * rate / cutoff)))
    return LegRun(
        motion=motion,
        q=q,
        v=v,
        a=a,
        drives=_drive_columns(robot, q, v, a, motion),
        touching=touching,
        still=np.abs(motion.v) < signals.velocity_limits(motion.v),
        used=np.arange(0, len(motion.t), step),
        base=base,
        schedule=schedule,
        noise=_first_noise(robot, even, motion, base, rate),
    )


def _first_noise(robot: Robot, run: Run, motion: Motion, base: LegBase, rate: float) -> LegNoise:
    """Noise after the low-pass, from that of one sample; torques get a share of their size beside it.

    White noise of density s^2 / (rate / 2) has after a low-pass at c the variance s^2 2 c / rate, and its first and
    second derivative (2 pi c)^2 / 3 and (2 pi c)^4 / 5 times that.
    """
    assert run.torque is not None and motion.torque is not None
    band = 1.0 if motion.cutoff is None else min(1.0, 2.0 * motion.cutoff / rate)
    edge = 2.0 * np.pi * band * rate / 2.0
    encoders = np.array([white_noise(x) for x in run.q.T])
    joints = encoders * np.sqrt(band) * edge**2 / np.sqrt(5.0)
    linear = np.hypot(base.noise[:3] * np.sqrt(band), base.bias_std[:3])
    angular = base.noise[3:] * np.sqrt(band) * edge / np.sqrt(3.0)
    torque = np.array([white_noise(x) for x in run.torque.T]) * np.sqrt(band)
    size = 0.005 * np.sqrt(np.mean(motion.torque**2, axis=0)) + 1e-9
    return LegNoise(np.hypot(torque, size), np.concatenate([linear, angular, joints]))


def drive_indices(robot: Robot) -> list[tuple[int, int]]:
    """Row of the joint and column of every drive parameter."""
    joint = {name: j for j, name in enumerate(robot.coordinates)}
    return [(joint[p.owner], c) for c, p in enumerate(robot.layout) if not p.inertial and p.owner in joint]


def _drive_columns(robot: Robot, q: Array, v: Array, a: Array, motion: Motion) -> Array:
    """Drive columns (N, k), each of the row of its joint, low-passed as the torques are."""
    indices = drive_indices(robot)
    if not indices:
        return np.zeros((len(q), 0))
    rows, columns = (np.array(x) for x in zip(*indices, strict=True))
    out = np.concatenate(
        [
            regressor(robot, q[k : k + 1024], v[k : k + 1024], a[k : k + 1024])[:, 6 + rows, columns]
            for k in range(0, len(q), 1024)
        ]
    )
    return out if motion.cutoff is None else lowpass(out, float(motion.cutoff), motion.rate)


def used_modes(runs: Sequence[LegRun], feet: Sequence[Contact]) -> tuple[tuple[Contact, ...], ...]:
    """Contact modes with at least one sample, the most frequent first."""
    found: dict[tuple[bool, ...], int] = {}
    for run in runs:
        kinds, counts = np.unique(run.touching[run.used], axis=0, return_counts=True)
        for kind, count in zip(kinds, counts, strict=True):
            key = tuple(bool(x) for x in kind)
            found[key] = found.get(key, 0) + int(count)
    order = sorted(found, key=lambda key: -found[key])
    return tuple(tuple(foot for foot, on in zip(feet, key, strict=True) if on) for key in order)


def in_mode(run: LegRun, mode: tuple[Contact, ...], feet: Sequence[Contact]) -> Mask:
    """Samples (N,) at which exactly the contacts of a mode touch."""
    wanted = np.array([foot in mode for foot in feet])
    return np.asarray(np.all(run.touching == wanted, axis=1))
