"""The data of the estimators: one triangular factor of [W y] per channel, folded from chunks of samples.

The whole regressor W is never stored. A chunk of samples becomes regressor rows, the rows of each channel are folded
into the factor of that channel by Householder QR, and the rows are dropped. The size of the factor depends on the
number of base parameters, not of samples. Normal equations would lose half of the digits; the factor does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.errors import DataError
from dynid.identification.loads import check_run, default_channels, measured, state
from dynid.identification.standstill import Standstill, moving_joints, standstill
from dynid.identification.stops import Stop, without_stops
from dynid.parameters.base import BaseParameters, base_parameters, random_states
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, Signals, prepare

if TYPE_CHECKING:
    from dynid.recording.log_format import LogFormat

__all__ = ["Block", "Observation", "WeightedRows", "fold", "observe", "time_parts"]

Array = NDArray[np.float64]
# A stream of weighted rows: channel, instruments Z (m, b), which are the regressor itself for least squares, [W y]
# (m, b + 1), and sample numbers (m,).
WeightedRows = Callable[[], Iterator[tuple[int, Array, Array, NDArray[np.int64]]]]

_CHUNK = 1024
# Columns that the decomposition treats at once.
_PANEL = 32
# Rows of small recordings are kept for estimators that need them again; those of large ones are computed again.
_KEEP_BYTES = 128 * 2**20
# Parallel decimation filters whole columns, this many output samples at a time, with margins.
_DECIMATED_BLOCK = 4096
_DECIMATION_MARGIN = 60


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one channel from consecutive samples: W (m, b), y (m,), and the index (m,) of their samples."""

    channel: int
    W: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Observation:
    """A recording folded into one factor per channel: all that a least-squares method needs.

    Attributes
    ----------
    base : BaseParameters
        The base parameters that are the unknowns.
    factors : tuple of ndarray, shape (k, b + 1)
        Triangular factor of [W y] per channel.
    rows : tuple of int
        Number of rows per channel.
    blocks : callable
        Streams the rows again, for methods that weight samples one by one.
    signals : Signals
        How the runs were filtered; an estimate is validated with the same settings.
    cutoffs : tuple of float or None
        Cut-off frequency per run in Hz.
    log_format : LogFormat or None
        How the recording was read, if known.
    motions : tuple of Motion
        The filtered runs, so that tests and assessments need not filter them again; () where they are not kept.
    standstill : Standstill or None
        What is unknown because some joints move in no run; None if all of them move.
    stops : tuple of Stop
        Mechanical stops whose samples are left out.
    """

    base: BaseParameters
    factors: tuple[Array, ...]
    rows: tuple[int, ...]
    blocks: Callable[[], Iterator[Block]] = field(repr=False)
    signals: Signals = field(default_factory=Signals)
    cutoffs: tuple[float | None, ...] = ()
    log_format: LogFormat | None = None
    motions: tuple[Motion, ...] = field(default=(), repr=False)
    standstill: Standstill | None = None
    stops: tuple[Stop, ...] = ()

    @property
    def robot(self) -> Robot:
        """The robot that is identified."""
        return self.base.robot

    @property
    def total_rows(self) -> int:
        """Number of rows of all channels."""
        return sum(self.rows)

    def residual_norms(self, beta: Array) -> Array:
        """Norm of y - W beta per channel (channel,), in N m or N."""
        return np.array([np.linalg.norm(f[:, -1] - f[:, :-1] @ beta) for f in self.factors])

    def torque_norms(self) -> Array:
        """Norm of y per channel (channel,), in N m or N."""
        return np.array([np.linalg.norm(f[:, -1]) for f in self.factors])

    def stacked(self, weights: Sequence[float] | Array | None = None) -> Array:
        """One factor of all channels (<= b + 1, b + 1), the rows of each channel multiplied by its weight."""
        w = np.ones(len(self.factors)) if weights is None else np.asarray(weights, dtype=float)
        return fold(np.vstack([*(x * f for x, f in zip(w, self.factors, strict=True)), self.known_rows(w)]))

    def known_rows(self, weights: Sequence[float] | Array) -> Array:
        """Equations (k, b + 1) for what joints at rest leave unknown, with the weights of the channels."""
        if self.standstill is None:
            return np.zeros((0, self.base.count + 1))
        used = np.asarray(self.rows) > 0
        return self.standstill.rows * np.sqrt(np.mean(np.asarray(weights)[used] ** 2 * np.asarray(self.rows)[used]))

    def weighted_rows(self, weights: Sequence[float] | Array | None = None) -> WeightedRows:
        """The rows of every channel multiplied by its weight, as a stream."""
        w = np.ones(len(self.factors)) if weights is None else np.asarray(weights, dtype=float)

        def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
            for block in self.blocks():
                rows = np.column_stack([block.W, block.y]) * w[block.channel]
                yield block.channel, rows[:, :-1], rows, block.index

        return stream

    def joined(self, other: Observation) -> Observation:
        """Both observations as one; they must have the same base parameters. The settings are those of the first."""
        if other.base.kept != self.base.kept or other.base.channels != self.base.channels:
            raise DataError("observations of different base parameters or channels cannot be joined")
        factors = tuple(fold(np.vstack([a, b])) for a, b in zip(self.factors, other.factors, strict=True))
        rows = tuple(a + b for a, b in zip(self.rows, other.rows, strict=True))

        def blocks() -> Iterator[Block]:
            yield from self.blocks()
            yield from other.blocks()

        return Observation(
            self.base,
            factors,
            rows,
            blocks,
            self.signals,
            self.cutoffs + other.cutoffs,
            self.log_format,
            standstill=None if other.standstill is None else self.standstill,
            stops=self.stops + other.stops,
        )


def fold(rows: Array) -> Array:
    """Triangular factor of a stack of rows; the rows themselves if they are fewer than the columns."""
    columns = rows.shape[1]
    if rows.shape[0] <= columns:
        return rows
    # Recursive panels: 1.6 times as fast as dgeqrf for tall, narrow stacks.
    packed, _, info = scipy.linalg.lapack.dgeqrt(min(_PANEL, columns), rows, overwrite_a=1)
    assert info == 0
    return np.triu(packed[:columns])


def observe(
    robot: Robot,
    recording: Recording,
    *,
    signals: Signals | None = None,
    base: BaseParameters | None = None,
    channels: str | Sequence[str] | None = None,
    known: ArrayLike | None = None,
) -> Observation:
    """Fold a recording into an observation of the base parameters.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    recording : Recording
        Measured motion and torques. Wrenches of named sensors, such as force plates and contacts, are included in the
        measured base wrench and joint torques.
    signals : Signals, optional
        How the runs are filtered and differentiated; by default `Signals()`.
    base : BaseParameters, optional
        Base parameters to use, by default those of the robot and the channels.
    channels : str or sequence of str, optional
        "torque", "wrench" (six rows of a floating or instrumented base), "all", or names of channels with wildcards;
        by default what all runs have.
    known : array_like, shape (p,), optional
        Standard parameters whose torques are subtracted first, such as those of a payload that was weighed. Runs with
        and without a payload then become observations of the same parameters, which can be joined.

    Returns
    -------
    Observation

    Raises
    ------
    DataError
        If a run does not have the channels, or if too few rows are left for the number of base parameters.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink")
    >>> seen = dynid.identification.observe(robot, synthetic_recording(robot, 0, duration=5.0))
    >>> seen.base.channels
    ('joint1', 'joint2')
    """
    settings = signals or Signals()
    if base is None:
        base = base_parameters(robot, channels=channels if channels is not None else default_channels(robot, recording))
    for run in recording.runs:
        check_run(robot, run, base.channels)
    motions, stops = without_stops(base, [prepare(run, settings) for run in recording.runs], settings)
    if known is not None:
        motions = [_less(robot, motion, known) for motion in motions]
    return replace(observe_motions(base, motions, settings), log_format=recording.log_format, stops=stops)


@cache
def _threads() -> ThreadpoolController:
    """Control of the BLAS threads; to look for the libraries takes longer than to fold a short run."""
    return ThreadpoolController()


def observe_motions(base: BaseParameters, motions: Sequence[Motion], settings: Signals) -> Observation:
    """Fold filtered runs, measured or simulated, into an observation."""

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
    # Tall, narrow factors gain nothing from several BLAS threads, which slow each other down.
    with _threads().limit(limits=1, user_api="blas"):
        for block in blocks():
            if kept is not None:
                kept.append(block)
                if (sum(rows) + len(block.y)) * size * 8 > _KEEP_BYTES:
                    kept = None
            factor, columns = factors[block.channel], touched[block.channel]
            # Fortran order, so that LAPACK works on this array without a copy.
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
    cutoffs = tuple(m.cutoff for m in motions)
    return Observation(
        base,
        tuple(whole),
        tuple(rows),
        again,
        settings,
        cutoffs,
        motions=tuple(motions),
        standstill=standstill(base, motions, settings),
    )


def motion_blocks(base: BaseParameters, motion: Motion, settings: Signals, first: int = 0) -> Iterator[Block]:
    """Rows of every channel of a filtered run, decimated, without the samples at which the joint stands still.

    Samples at which it presses against a stop are left out too.
    """
    limits = velocity_limits(base, motion, settings)
    joint = {name: j for j, name in enumerate(base.robot.coordinates)}
    for block, velocity in channel_rows(base, motion, first):
        moving = np.abs(velocity) >= limits[block.channel]
        j = joint.get(base.channels[block.channel])
        if motion.stopped is not None and j is not None:
            moving &= ~motion.stopped[block.index - first, j]
        if moving.any():
            yield Block(block.channel, block.W[moving], block.y[moving], block.index[moving])


def velocity_limits(base: BaseParameters, motion: Motion, settings: Signals) -> Array:
    """Smallest |velocity| of the joint of each channel whose rows are used (channel,); zero for wrench channels.

    It is infinite for a joint that stands still.
    """
    joints = settings.velocity_limits(motion.v) if motion.v.shape[1] else np.zeros(0)
    joints = np.where(moving_joints(base.robot, motion, settings), joints, np.inf)
    limits = dict(zip(base.robot.coordinates, joints, strict=True))
    return np.array([limits.get(c, 0.0) for c in base.channels])


@dataclass(frozen=True)
class Segment:
    """Samples `lo` to `hi` of a run. Those from `start` to `stop` make rows, the rest is for the decimation filter."""

    start: int
    stop: int
    lo: int
    hi: int
    factors: tuple[int, ...]

    @property
    def whole(self) -> slice:
        """All samples of the segment."""
        return slice(self.lo, self.hi)

    @property
    def step(self) -> int:
        """Samples per row."""
        return math.prod(self.factors)

    def thinned(self, rows: Array) -> Array:
        """Decimated rows of `start` to `stop`, from rows over `whole`."""
        if self.step == 1:
            return rows
        count = -(-(self.stop - self.start) // self.step)
        return decimate(rows, self.factors)[(self.start - self.lo) // self.step :][:count]


def segments(motion: Motion) -> Iterator[Segment]:
    """A filtered run in segments that fit in memory at full rate."""
    factors = tuple(motion.decimate or ())
    step, samples = math.prod(factors), len(motion.t)
    span = _CHUNK if step == 1 else _DECIMATED_BLOCK * step
    margin = 0 if step == 1 else _DECIMATION_MARGIN * step
    for start in range(motion.lead, samples - motion.lead, span):
        stop = min(start + span, samples - motion.lead)
        yield Segment(start, stop, max(0, start - margin), min(samples, stop + margin), factors)


def channel_rows(base: BaseParameters, motion: Motion, first: int = 0) -> Iterator[tuple[Block, Array]]:
    """All rows of every channel of a filtered run, decimated, each block with the velocities of the joint.

    Channels of the base wrench belong to no joint, and their velocities are zero.
    """
    robot = base.robot
    joint = {name: j for j, name in enumerate(robot.coordinates)}
    row = [robot.channels.index(c) for c in base.channels]
    kept = np.array(base.kept)
    touched = touched_columns(base)
    for part in segments(motion):
        q, v, a = state(robot, motion, part.whole)
        Y = regressor(robot, q, v, a)
        y = measured(robot, motion, q, part.whole)
        for k, channel in enumerate(base.channels):
            columns = touched[k]
            velocity = motion.v[part.whole, joint[channel]] if channel in joint else np.zeros(len(y))
            rows = part.thinned(np.column_stack([Y[:, row[k], kept[columns]], y[:, row[k]], velocity]))
            wide = np.zeros((len(rows), base.count))
            wide[:, columns] = rows[:, :-2]
            index = first + part.start + part.step * np.arange(len(rows))
            yield Block(k, wide, rows[:, -2], index), rows[:, -1]


def time_parts(observation: Observation, count: int, weighted: WeightedRows | None = None) -> list[tuple[Array, ...]]:
    """Triangular factors of [W y] per channel of `count` consecutive parts of the time, each with as many samples.

    `weighted` streams the rows instead of the observation. Raises a DataError if the observation keeps no samples or
    has fewer than parts.
    """
    stream = weighted or observation.weighted_rows()
    indices = [index for _, _, _, index in stream()]
    every = np.unique(np.concatenate(indices)) if indices else np.zeros(0, dtype=np.int64)
    if len(every) < count:
        raise DataError(f"{len(every)} samples are kept, which cannot be cut into {count} parts of time")
    last = every[(np.arange(1, count) * len(every)) // count]
    width = observation.base.count + 1
    factors = [[np.zeros((0, width)) for _ in observation.factors] for _ in range(count)]
    for channel, _, rows, index in stream():
        part = np.searchsorted(last, index, side="right")
        for k in np.unique(part):
            stack = np.vstack([factors[k][channel], rows[part == k]])
            factors[k][channel] = fold(np.asfortranarray(stack))
    return [tuple(one) for one in factors]


def _less(robot: Robot, motion: Motion, known: ArrayLike) -> Motion:
    """The motion with the torques and the base wrench of the known parameters subtracted."""
    load = inverse_dynamics(robot, *state(robot, motion), known)
    first = len(robot.channels) - robot.n
    torque = None if motion.torque is None else motion.torque - load[:, first:]
    if not first or (motion.wrench is None and not motion.wrenches):
        return replace(motion, torque=torque)
    wrench = np.zeros((len(motion.t), first)) if motion.wrench is None else motion.wrench
    return replace(motion, torque=torque, wrench=wrench - load[:, :first])


@lru_cache(maxsize=8)
def touched_columns(base: BaseParameters) -> list[NDArray[np.intp]]:
    """Columns that can be non-zero in each channel: a joint carries only the links beyond it."""
    W = base.regressor(*random_states(base.robot, 8, seed=0))
    return [np.flatnonzero(np.abs(W[:, k]).max(axis=0)) for k in range(len(base.channels))]
