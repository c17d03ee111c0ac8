"""Rows of the equations of motion without contact forces, whitened and folded per contact mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.dynamics.batch import run as run_kernel
from dynid.dynamics.functions import inverse_dynamics, mass_matrix, regressor
from dynid.errors import DataError
from dynid.identification.legs.imu_base import LegBase, base_from_legs, white_noise
from dynid.identification.legs.contacts import Contact, check_rank, contact_jacobian
from dynid.identification.legs.schedule import Schedule, contact_schedule
from dynid.identification.legs.structure import mode_name
from dynid.identification.loads import measured
from dynid.identification.observation import Block, Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.signals.filters import lowpass
from dynid.signals.settings import Motion, Signals, prepare, uniform

__all__ = ["LegNoise", "LegRun", "observe_legs", "prepare_legs", "sample_rows", "used_modes"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CHUNK = 512
# Contact modes with less than this share of the samples are folded together.
_RARE = 0.02
# The torque of a joint that stands still contains any friction: its noise is this many times larger.
_STANDSTILL = 100.0
# Time in s, times the cut-off, over which the low-pass spreads a force: half of its impulse response.
_SPREAD = 0.5


@dataclass(frozen=True, eq=False)
class LegNoise:
    """Standard deviations of torques (n,) in N m and of accelerations (nv,): base linear, base angular, joints."""

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
    return [
        _prepared(robot, run, feet, imu, signals, foot_std, every, foot_forces) for run in recording.runs
    ]


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
    spread = 0 if cutoff is None else int(np.ceil(_SPREAD / cutoff * rate))
    wide = schedule.widened(spread)
    touching = np.column_stack([wide[foot.frame][inside] for foot in feet])
    if foot_forces:
        touching = np.zeros_like(touching)
    q, v, a = (
        np.hstack([b, j])
        for b, j in zip(
            (motion.base.pose, motion.base.v, motion.base.a), (motion.q, motion.v, motion.a), strict=True
        )
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
        [regressor(robot, q[k : k + 1024], v[k : k + 1024], a[k : k + 1024])[:, 6 + rows, columns] for k in range(0, len(q), 1024)]
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


def channel_of_modes(
    runs: Sequence[LegRun], modes: Sequence[tuple[Contact, ...]], feet: Sequence[Contact]
) -> tuple[list[int], tuple[str, ...]]:
    """Channel of each mode and names of the channels: rare modes share one."""
    total = sum(len(run.used) for run in runs)
    counts = [sum(int(np.sum(_in_mode(run, mode, feet)[run.used])) for run in runs) for mode in modes]
    common = [k for k, count in enumerate(counts) if count >= _RARE * total]
    names = [mode_name(modes[k]) for k in common]
    channel = [common.index(k) if k in common else len(common) for k in range(len(modes))]
    if len(common) < len(modes):
        names.append("other modes")
    return channel, tuple(names)


def _in_mode(run: LegRun, mode: tuple[Contact, ...], feet: Sequence[Contact]) -> Mask:
    wanted = np.array([foot in mode for foot in feet])
    return np.asarray(np.all(run.touching == wanted, axis=1))


def sample_rows(
    robot: Robot, run: LegRun, samples: NDArray[np.intp], mode: Sequence[Contact], known: ArrayLike | None = None
) -> tuple[Array, Array, Array, Array]:
    """Contact Jacobian, regressor, measured torques and mass matrix at samples, before the projection."""
    q, v, a = run.q[samples], run.v[samples], run.a[samples]
    Y = regressor(robot, q, v, a)
    for k, (row, column) in enumerate(drive_indices(robot)):
        Y[:, 6 + row, column] = run.drives[samples, k]
    motion = run.motion
    assert motion.torque is not None
    if motion.wrenches:
        part = replace(
            motion,
            torque=motion.torque[samples],
            wrench=np.zeros((len(samples), 6)),
            wrenches={n: w[samples] for n, w in motion.wrenches.items()},
        )
        # Wrenches act on the robot: they add to what the drives do.
        y = measured(robot, part, q)
    else:
        y = np.hstack([np.zeros((len(samples), 6)), motion.torque[samples]])
    if known is not None:
        y = y - Y @ np.asarray(known, dtype=float)
    return contact_jacobian(robot, q, mode), Y, y, mass_matrix(robot, q)


def projected(
    run: LegRun, samples: NDArray[np.intp], parts: tuple[Array, Array, Array, Array], noise: LegNoise, kept: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Whitened rows W (m, nv - r, 3 + b) and z (m, nv - r) of samples of one mode.

    The first three columns are those of an error of the accelerometer.
    """
    from dynid.dynamics.kernels.projection import project

    J, Y, y, M = parts
    nv = Y.shape[1]
    torque = np.zeros((len(samples), nv))
    torque[:, 6:] = np.where(run.still[samples], _STANDSTILL, 1.0) * noise.torque
    acceleration = np.tile(noise.acceleration, (len(samples), 1))
    columns = np.concatenate([M[:, :, :3], Y[:, :, kept]], axis=2)
    W = np.empty((len(samples), nv - J.shape[1], columns.shape[2]))
    z = np.empty(W.shape[:2])
    before = (np.ascontiguousarray(J), columns, np.ascontiguousarray(y), np.ascontiguousarray(M), torque, acceleration)
    run_kernel(project, len(samples), before, (W, z), least=64)
    return W, z


def observe_legs(
    robot: Robot,
    base: BaseParameters,
    runs: Sequence[LegRun],
    feet: Sequence[Contact],
    noise: LegNoise,
    *,
    settings: Signals,
    known: ArrayLike | None = None,
    keep: bool = True,
) -> Observation:
    """Fold the runs into one factor of whitened rows per contact mode.

    What the smoother leaves unknown of the accelerometer's bias is common to all samples of a run, so it is not noise:
    it is one unknown per axis and run, with the smoother's standard deviation, and is eliminated from the rows.
    """
    modes = used_modes(runs, feet)
    channel, names = channel_of_modes(runs, modes, feet)
    base = replace(base, channels=names)
    kept = np.array(base.kept)
    for mode in modes:
        for run in runs:
            check_mode(robot, run, mode, feet)

    def stream(run: LegRun) -> Iterator[tuple[int, Array, NDArray[np.int64]]]:
        yield channel[0], _bias_rows(run, base.count), run.used[:1].repeat(3).astype(np.int64)
        for k, mode in enumerate(modes):
            mine = run.used[_in_mode(run, mode, feet)[run.used]]
            for start in range(0, len(mine), _CHUNK):
                samples = mine[start : start + _CHUNK]
                W, z = projected(run, samples, sample_rows(robot, run, samples, mode, known), noise, kept)
                rows = np.concatenate([W, z[:, :, None]], axis=2).reshape(-1, base.count + 4)
                yield channel[k], rows, np.repeat(samples, W.shape[1]).astype(np.int64)

    factors = [np.zeros((0, base.count + 1)) for _ in names]
    rows = [0] * len(names)
    kept_rows: list[Block] = []
    gains: list[Array] = []
    with threadpool_limits(1, "blas"):
        for number, run in enumerate(runs):
            own = [np.zeros((0, base.count + 4)) for _ in names]
            held = []
            for where, block, index in stream(run):
                stack = np.empty((len(own[where]) + len(block), block.shape[1]), order="F")
                stack[: len(own[where])], stack[len(own[where]) :] = own[where], block
                own[where] = fold(stack)
                rows[where] += len(block)
                if keep:
                    held.append((where, block, index))
            gains.append(_bias_gain(own))
            factors = [
                fold(np.asfortranarray(np.vstack([f, x[:, 3:] - x[:, :3] @ gains[-1]])))
                for f, x in zip(factors, own, strict=True)
            ]
            kept_rows += [_without_bias(x, gains[number], _first(runs, number)) for x in held]
    if sum(rows) <= base.count:
        raise DataError(f"{sum(rows)} rows are left for {base.count} base parameters; record longer")

    def again() -> Iterator[Block]:
        for number, run in enumerate(runs):
            for part in stream(run):
                yield _without_bias(part, gains[number], _first(runs, number))

    return Observation(
        base,
        tuple(factors),
        tuple(rows),
        (lambda: iter(kept_rows)) if keep else again,
        settings,
        tuple(run.motion.cutoff for run in runs),
        motions=tuple(run.motion for run in runs),
    )


def _first(runs: Sequence[LegRun], number: int) -> int:
    """Number of the first sample of a run among all."""
    return sum(len(run.motion.t) for run in runs[:number])


def _bias_rows(run: LegRun, count: int) -> Array:
    """Rows (3, 3 + b + 1) of what the smoother knows of the bias that is left."""
    out = np.zeros((3, count + 4))
    out[:, :3] = np.diag(1.0 / np.maximum(run.base.bias_std[:3], 1e-9))
    return out


def _bias_gain(factors: Sequence[Array]) -> Array:
    """The bias (3, b + 1) that is most likely for given parameters, from factors of [bias W y]."""
    own = sum(f[:, :3].T @ f[:, :3] for f in factors)
    return np.asarray(np.linalg.solve(own, sum(f[:, :3].T @ f[:, 3:] for f in factors)))


def _without_bias(part: tuple[int, Array, NDArray[np.int64]], gain: Array, first: int) -> Block:
    """Rows with the most likely bias inserted."""
    where, rows, index = part
    left = rows[:, 3:] - rows[:, :3] @ gain
    return Block(where, left[:, :-1], left[:, -1], first + index)


def check_mode(robot: Robot, run: LegRun, mode: Sequence[Contact], feet: Sequence[Contact]) -> None:
    """Raise a DataError if the contact Jacobian of a mode has no full rank at the samples of a run."""
    mine = run.used[_in_mode(run, tuple(mode), feet)[run.used]]
    if len(mine) and mode:
        check_rank(robot, run.q[mine], mode)
