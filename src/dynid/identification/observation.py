"""What estimators see: one triangular factor of [W y] a channel, folded from chunks of samples.

W is never held. A chunk of samples becomes regressor rows, the rows of each channel are folded into that
channel's factor by Householder QR, and the rows are forgotten. The factor has the size of the base parameters
whatever the number of samples, and keeps the accuracy that normal equations would square away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.errors import DataError
from dynid.identification.loads import check_run, default_channels, measured, state
from dynid.parameters.base import BaseParameters, base_parameters, random_states
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["Block", "Observation", "observe"]

Array = NDArray[np.float64]

_CHUNK = 1024
# Rows of small recordings are kept for estimators that need them again; those of large ones are made again.
_KEEP_BYTES = 128 * 2**20
# Parallel decimation filters whole columns; it works on this many output samples at a time, with margins.
_DECIMATED_BLOCK = 4096
_DECIMATION_MARGIN = 60


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one channel from one stretch of samples: W (m, b), y (m,), and the sample numbers they belong to."""

    channel: int
    W: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Observation:
    """Factors of [W y] (k, b + 1) a channel, how many rows went in, and a way to read the rows again.

    `blocks` streams the rows once more, for estimators that weigh samples one by one. `signals` are the settings the
    rows were cleaned with; an estimate is validated with the same.
    """

    base: BaseParameters
    factors: tuple[Array, ...]
    rows: tuple[int, ...]
    blocks: Callable[[], Iterator[Block]] = field(repr=False)
    signals: Signals = field(default_factory=Signals)
    cutoffs: tuple[float | None, ...] = ()

    @property
    def robot(self) -> Robot:
        return self.base.robot

    @property
    def total_rows(self) -> int:
        return sum(self.rows)

    def residual_norms(self, beta: Array) -> Array:
        """Norm of y - W beta, channel by channel (channel,)."""
        return np.array([np.linalg.norm(f[:, -1] - f[:, :-1] @ beta) for f in self.factors])

    def torque_norms(self) -> Array:
        """Norm of y, channel by channel (channel,)."""
        return np.array([np.linalg.norm(f[:, -1]) for f in self.factors])

    def stacked(self, weights: Sequence[float] | Array | None = None) -> Array:
        """One factor of all channels (<= b + 1, b + 1), each channel's rows times its weight."""
        w = np.ones(len(self.factors)) if weights is None else np.asarray(weights, dtype=float)
        return fold(np.vstack([x * f for x, f in zip(w, self.factors, strict=True)]))

    def joined(self, other: Observation) -> Observation:
        """Both observations as one; they must be of the same base parameters. The settings are those of the first."""
        if other.base.kept != self.base.kept or other.base.channels != self.base.channels:
            raise DataError("observations of different base parameters or channels cannot be joined")
        factors = tuple(fold(np.vstack([a, b])) for a, b in zip(self.factors, other.factors, strict=True))
        rows = tuple(a + b for a, b in zip(self.rows, other.rows, strict=True))

        def blocks() -> Iterator[Block]:
            yield from self.blocks()
            yield from other.blocks()

        return Observation(self.base, factors, rows, blocks, self.signals, self.cutoffs + other.cutoffs)


def fold(rows: Array) -> Array:
    """Triangular factor of a stack of rows; as it is where it has fewer rows than columns."""
    columns = rows.shape[1]
    if rows.shape[0] <= columns:
        return rows
    packed, _, _, info = scipy.linalg.lapack.dgeqrf(rows, overwrite_a=1)
    assert info == 0
    return np.triu(packed[:columns])


def observe(
    robot: Robot,
    recording: Recording,
    signals: Signals | None = None,
    base: BaseParameters | None = None,
    channels: str | Sequence[str] | None = None,
    known: ArrayLike | None = None,
) -> Observation:
    """Fold a recording into an observation of the base parameters.

    `channels` picks what is measured: "torque", "wrench" (the six base rows of a floating or instrumented base), "all",
    or names; by default what all runs have. `base` may be given to share one structure. Wrenches of named sensors, such
    as force plates and contacts, count on the measured side of base and joints.
    `known` is a standard vector (p,) whose torques are taken off first: a payload that was weighed, drives that are
    known. So runs with and without a payload become observations of the same parameters, and can be joined.
    """
    settings = signals or Signals()
    if base is None:
        base = base_parameters(robot, channels=channels if channels is not None else default_channels(robot, recording))
    for run in recording.runs:
        check_run(robot, run, base.channels)
    motions = [prepare(run, settings) for run in recording.runs]
    if known is not None:
        motions = [_less(robot, motion, known) for motion in motions]
    return observe_motions(base, motions, settings)


def observe_motions(base: BaseParameters, motions: Sequence[Motion], settings: Signals) -> Observation:
    """Fold cleaned runs, measured or simulated, into an observation."""

    def blocks() -> Iterator[Block]:
        start = 0
        for motion in motions:
            yield from motion_blocks(base, motion, settings, start)
            start += len(motion.t)

    size = base.count + 1
    touched = touched_columns(base)
    factors = [np.zeros((0, len(c) + 1)) for c in touched]
    rows = [0] * len(base.channels)
    kept: list[Block] | None = []
    # Tall, narrow factors gain nothing from several BLAS threads, which get in each other's way.
    with threadpool_limits(1, "blas"):
        for block in blocks():
            if kept is not None:
                kept.append(block)
                if (sum(rows) + len(block.y)) * size * 8 > _KEEP_BYTES:
                    kept = None
            factor, columns = factors[block.channel], touched[block.channel]
            # Column order is LAPACK's: it works on this array itself.
            stack = np.empty((len(factor) + len(block.y), len(columns) + 1), order="F")
            stack[: len(factor)] = factor
            stack[len(factor) :, :-1] = block.W[:, columns]
            stack[len(factor) :, -1] = block.y
            factors[block.channel] = fold(stack)
            rows[block.channel] += len(block.y)
    if sum(rows) <= base.count:
        raise DataError(
            f"{sum(rows)} rows are left for {base.count} base parameters; record longer, or lower min_velocity or trim"
        )
    whole = []
    for factor, columns in zip(factors, touched, strict=True):
        wide = np.zeros((len(factor), size))
        wide[:, columns], wide[:, -1] = factor[:, :-1], factor[:, -1]
        whole.append(wide)
    again = blocks if kept is None else lambda: iter(kept)
    return Observation(base, tuple(whole), tuple(rows), again, settings, tuple(m.cutoff for m in motions))


def motion_blocks(base: BaseParameters, motion: Motion, settings: Signals, first: int = 0) -> Iterator[Block]:
    """Rows of every channel of a cleaned run, decimated and without stand-still samples."""
    limits = speed_limits(base, motion, settings)
    for block, speed in channel_rows(base, motion, first):
        moving = np.abs(speed) >= limits[block.channel]
        if moving.any():
            yield Block(block.channel, block.W[moving], block.y[moving], block.index[moving])


def speed_limits(base: BaseParameters, motion: Motion, settings: Signals) -> Array:
    """Slowest speed of each channel's joint whose rows count (channel,); all rows of wrenches, which no joint rubs."""
    joints = settings.speed_limits(motion.v) if motion.v.shape[1] else np.zeros(0)
    limits = dict(zip(base.robot.coordinates, joints, strict=True))
    return np.array([limits.get(c, 0.0) for c in base.channels])


@dataclass(frozen=True)
class Stretch:
    """Samples `lo` to `hi` of a run, of which `start` to `stop` make rows; the rest lets the decimation settle."""

    start: int
    stop: int
    lo: int
    hi: int
    factors: tuple[int, ...]

    @property
    def whole(self) -> slice:
        return slice(self.lo, self.hi)

    @property
    def step(self) -> int:
        """Samples a row stands for."""
        return math.prod(self.factors)

    def thinned(self, rows: Array) -> Array:
        """Rows over `whole` as the decimated ones of `start` to `stop`."""
        if self.step == 1:
            return rows
        count = -(-(self.stop - self.start) // self.step)
        return decimate(rows, self.factors)[(self.start - self.lo) // self.step :][:count]


def stretches(motion: Motion) -> Iterator[Stretch]:
    """A cleaned run in pieces of which each can be held at full rate."""
    factors = tuple(motion.decimate or ())
    step, samples = math.prod(factors), len(motion.t)
    span = _CHUNK if step == 1 else _DECIMATED_BLOCK * step
    margin = 0 if step == 1 else _DECIMATION_MARGIN * step
    for start in range(motion.lead, samples - motion.lead, span):
        stop = min(start + span, samples - motion.lead)
        yield Stretch(start, stop, max(0, start - margin), min(samples, stop + margin), factors)


def channel_rows(base: BaseParameters, motion: Motion, first: int = 0) -> Iterator[tuple[Block, Array]]:
    """All rows of every channel of a cleaned run, decimated, each block with the speeds of the channel's joint.

    Channels of the base wrench belong to no joint, and their speeds are zero.
    """
    robot = base.robot
    joint = {name: j for j, name in enumerate(robot.coordinates)}
    row = [robot.channels.index(c) for c in base.channels]
    kept = np.array(base.kept)
    touched = touched_columns(base)
    for part in stretches(motion):
        q, v, a = state(robot, motion, part.whole)
        Y = regressor(robot, q, v, a)
        y = measured(robot, motion, q, part.whole)
        for k, channel in enumerate(base.channels):
            columns = touched[k]
            speed = motion.v[part.whole, joint[channel]] if channel in joint else np.zeros(len(y))
            rows = part.thinned(np.column_stack([Y[:, row[k], kept[columns]], y[:, row[k]], speed]))
            wide = np.zeros((len(rows), base.count))
            wide[:, columns] = rows[:, :-2]
            index = first + part.start + part.step * np.arange(len(rows))
            yield Block(k, wide, rows[:, -2], index), rows[:, -1]


def _less(robot: Robot, motion: Motion, known: ArrayLike) -> Motion:
    """The motion without the torques, and the base wrench, of what is known."""
    load = inverse_dynamics(robot, *state(robot, motion), known)
    first = len(robot.channels) - robot.n
    torque = None if motion.torque is None else motion.torque - load[:, first:]
    if not first or (motion.wrench is None and not motion.wrenches):
        return replace(motion, torque=torque)
    wrench = np.zeros((len(motion.t), first)) if motion.wrench is None else motion.wrench
    return replace(motion, torque=torque, wrench=wrench - load[:, :first])


def touched_columns(base: BaseParameters) -> list[NDArray[np.intp]]:
    """Columns that can be non-zero in each channel: a joint sees only the links beyond it."""
    W = base.regressor(*random_states(base.robot, 8, seed=0))
    return [np.flatnonzero(np.abs(W[:, k]).max(axis=0)) for k in range(len(base.channels))]
