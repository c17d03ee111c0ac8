"""Regressor rows of filtered runs, channel by channel: made segment by segment, in threads, and never held.

The row of a joint has entries only in the columns of the links that it carries. Only these columns are computed on,
decimated and folded. How many threads there are changes no bit of the rows or of their factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import regressor
from dynid.identification.loads import measured, state
from dynid.identification.standstill import moving_joints
from dynid.identification.triangular import fold, side_by_side
from dynid.parameters.base import BaseParameters, random_states
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, Signals

__all__ = [
    "Block",
    "Segment",
    "SegmentRows",
    "channel_rows",
    "motion_blocks",
    "segments",
    "touched_columns",
    "velocity_limits",
]

Array = NDArray[np.float64]

# Samples of a segment without decimation.
_CHUNK = 4096
# Parallel decimation filters whole columns, this many output samples at a time, with margins.
_DECIMATED_BLOCK = 4096
_DECIMATION_MARGIN = 60
# Samples whose regressor is computed at once: it stays in the cache of the processor.
_BATCH = 512


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one channel from consecutive samples: W (m, b), y (m,), and the index (m,) of their samples."""

    channel: int
    W: Array
    y: Array
    index: NDArray[np.int64]


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
        return rows if self.step == 1 else self.inside(decimate(rows, self.factors))

    def inside(self, decimated: Array) -> Array:
        """Rows of `start` to `stop`, from decimated rows over `whole`."""
        count = -(-(self.stop - self.start) // self.step)
        return decimated[(self.start - self.lo) // self.step :][:count]


def segments(motion: Motion, chunk: int | None = None) -> Iterator[Segment]:
    """A filtered run in segments that fit in memory at full rate; without decimation they have `chunk` samples."""
    factors = tuple(motion.decimate or ())
    step, samples = math.prod(factors), len(motion.t)
    span = chunk or _CHUNK if step == 1 else _DECIMATED_BLOCK * step
    margin = 0 if step == 1 else _DECIMATION_MARGIN * step
    for start in range(motion.lead, samples - motion.lead, span):
        stop = min(start + span, samples - motion.lead)
        yield Segment(start, stop, max(0, start - margin), min(samples, stop + margin), factors)


@lru_cache(maxsize=8)
def touched_columns(base: BaseParameters) -> list[NDArray[np.intp]]:
    """Columns that can be non-zero in each channel: a joint carries only the links beyond it."""
    W = base.regressor(*random_states(base.robot, 8, seed=0))
    return [np.flatnonzero(np.abs(W[:, k]).max(axis=0)) for k in range(len(base.channels))]


class SegmentRows:
    """Makes the rows of all channels of a segment, each with its touched columns only.

    Parameters
    ----------
    base : BaseParameters
        The unknowns.
    threads : int, optional
        Number of threads; by default that of the kernels.
    """

    def __init__(self, base: BaseParameters, threads: int | None = None) -> None:
        self.base, self.threads, self.chunk = base, threads, _CHUNK
        self.touched = touched_columns(base)
        robot, kept = base.robot, np.array(base.kept)
        joint = {name: j for j, name in enumerate(robot.coordinates)}
        self.row = [robot.channels.index(c) for c in base.channels]
        self._joint = [joint.get(c) for c in base.channels]
        # In the table of all channels, each has its columns of W, then y, then the velocity of its joint.
        widths = [len(columns) + 2 for columns in self.touched]
        starts = np.concatenate([[0], np.cumsum(widths)])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(starts)]
        self.width = int(starts[-1])
        self._places = np.concatenate([np.arange(s.start, s.stop - 2) for s in self.spans])
        self._rows = np.concatenate([np.full(len(c), r) for c, r in zip(self.touched, self.row, strict=True)])
        self._columns = np.concatenate([kept[c] for c in self.touched])

    def table(self, motion: Motion, part: Segment) -> Array:
        """Rows of all channels at full rate, side by side, over the whole segment."""
        robot = self.base.robot
        # In the order in which they are read: columns by LAPACK, rows by the decimation filter.
        out = np.empty((part.hi - part.lo, self.width), order="F" if part.step == 1 else "C")

        def fill(first: int) -> None:
            rows = slice(first, min(first + _BATCH, part.hi))
            q, v, a = state(robot, motion, rows)
            Y, y = regressor(robot, q, v, a), measured(robot, motion, q, rows)
            here = out[rows.start - part.lo : rows.stop - part.lo]
            here[:, self._places] = Y[:, self._rows, self._columns]
            for span, row, j in zip(self.spans, self.row, self._joint, strict=True):
                here[:, span.stop - 2] = y[:, row]
                here[:, span.stop - 1] = 0.0 if j is None else motion.v[rows, j]

        starts = range(part.lo, part.hi, _BATCH)
        fill(starts[0])  # alone, because the first use of a kernel may compile it
        side_by_side(fill, starts[1:], self.threads)
        return out

    def channel(self, table: Array, part: Segment, k: int) -> tuple[Array, Array]:
        """Decimated rows [W y] (m, touched + 1) of a channel and the velocities (m,) of its joint."""
        rows = part.thinned(table[:, self.spans[k]])
        return rows[:, :-1], rows[:, -1]

    def folded(self, factor: Array, rows: Array) -> Array:
        """Triangular factor of a factor and further rows."""
        # Fortran order, so that LAPACK works on this array without a copy.
        stack = np.empty((len(factor) + len(rows), rows.shape[1]), order="F")
        stack[: len(factor)] = factor
        stack[len(factor) :] = rows
        return fold(stack)

    def wide(self, k: int, rows: Array, index: NDArray[np.int64]) -> Block:
        """Rows [W y] of a channel with all columns."""
        W = np.zeros((len(rows), self.base.count))
        W[:, self.touched[k]] = rows[:, :-1]
        return Block(k, W, np.ascontiguousarray(rows[:, -1]), index)

    def used(
        self, motion: Motion, part: Segment, k: int, velocity: Array, limit: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which rows (m,) of a channel count, because its joint moves and is not at a stop; and their samples (m,)."""
        index = part.start + part.step * np.arange(len(velocity))
        moving = np.abs(velocity) >= limit
        j = self._joint[k]
        if motion.stopped is not None and j is not None:
            moving &= ~motion.stopped[index, j]
        return moving, index


def motion_blocks(
    base: BaseParameters, motion: Motion, settings: Signals, first: int = 0, threads: int | None = None
) -> Iterator[Block]:
    """Rows of every channel of a filtered run, decimated, without the samples at which the joint stands still.

    Samples at which it presses against a stop are left out too.
    """
    limits = velocity_limits(base, motion, settings)
    maker = SegmentRows(base, threads)
    for part in segments(motion):
        table = maker.table(motion, part)
        for k in range(len(base.channels)):
            rows, velocity = maker.channel(table, part, k)
            moving, index = maker.used(motion, part, k, velocity, limits[k])
            if moving.any():
                yield maker.wide(k, rows[moving], first + index[moving])


def channel_rows(base: BaseParameters, motion: Motion, first: int = 0) -> Iterator[tuple[Block, Array]]:
    """All rows of every channel of a filtered run, decimated, each block with the velocities of the joint.

    Channels of the base wrench belong to no joint, and their velocities are zero.
    """
    maker = SegmentRows(base)
    for part in segments(motion):
        table = maker.table(motion, part)
        for k in range(len(base.channels)):
            rows, velocity = maker.channel(table, part, k)
            yield maker.wide(k, rows, first + part.start + part.step * np.arange(len(rows))), velocity


def velocity_limits(base: BaseParameters, motion: Motion, settings: Signals) -> Array:
    """Smallest |velocity| of the joint of each channel whose rows are used (channel,); zero for wrench channels.

    It is infinite for a joint that stands still.
    """
    joints = settings.velocity_limits(motion.v) if motion.v.shape[1] else np.zeros(0)
    joints = np.where(moving_joints(base.robot, motion, settings), joints, np.inf)
    limits = dict(zip(base.robot.coordinates, joints, strict=True))
    return np.array([limits.get(c, 0.0) for c in base.channels])
