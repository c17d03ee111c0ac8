"""The data of the estimators: one triangular factor of [W y] per channel, folded from chunks of samples.

The whole regressor W is never stored. A segment of samples becomes regressor rows, the rows of each channel are folded
into the factor of that channel by Householder QR, and the rows are dropped. The size of the factor depends on the
number of base parameters, not of samples. Normal equations would lose half of the digits; the factor does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, Mismatch, NotApplicable, TooFew
from dynid.identification.row_stream import (
    Block,
    fold,
    folded_together,
    joined_factors,
)
from dynid.identification.stops import Standstill, Stop
from dynid.parameters.base import BaseParameters
from dynid.recording.partitions import LeftOut
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import Fingerprint
from dynid.signals.settings import Motion, Signals

if TYPE_CHECKING:
    from dynid.recording.log_format import LogFormat

__all__ = ["Block", "Observation", "Reduction", "WeightedRows", "fold", "in_parts", "no_rows", "time_parts"]

Array = NDArray[np.float64]
# A stream of weighted rows: channel, instruments Z (m, b), which are the regressor itself for least squares, [W y]
# (m, b + 1), and sample numbers (m,).
WeightedRows = Callable[[], Iterator[tuple[int, Array, Array, NDArray[np.int64]]]]
T = TypeVar("T")


class Reduction(Protocol[T]):
    """What a pass over all rows computes: a result of some blocks, and how two results are joined."""

    def over(self, blocks: Iterable[Block]) -> T:
        """The result of consecutive blocks."""

    def join(self, first: T, second: T) -> T:
        """The result of both."""


def no_rows() -> Iterator[Block]:
    """The rows of an observation that keeps none."""
    return iter(())


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
        Streams the rows again, for methods that weight samples one by one; `no_rows` where they cannot be had.
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
    time_blocks : tuple of tuple of ndarray
        Factor of [W y] per consecutive block of the time and channel, where rows are not kept in memory; else ().
    left_out : tuple of LeftOut
        Partitions of a data set that could not be used.
    notes : tuple of str
        What to know about the data of an estimate.
    fingerprint : Fingerprint or None
        By which the motion of a data set is recognised, whose motions are not kept.
    domain : Domain or None
        For which motion and load an estimate from it holds; None where there is no recorded motion.
    passes : callable or None
        Reads a data set again and reduces its rows, in blocks of time; None where rows are kept or streamed.
    device : str or None
        Device of PyTorch on which it was folded.
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
    time_blocks: tuple[tuple[Array, ...], ...] = field(default=(), repr=False)
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = field(default=None, repr=False)
    domain: Domain | None = field(default=None, repr=False)
    passes: Callable[[Reduction[Any]], list[Any]] | None = field(default=None, repr=False)
    device: str | None = None

    @property
    def robot(self) -> Robot:
        """The robot that is identified."""
        return self.base.robot

    @property
    def streams(self) -> bool:
        """Whether its rows can be streamed again."""
        return self.blocks is not no_rows

    @property
    def readable(self) -> bool:
        """Whether its rows can be read again, one after another or in passes over a data set."""
        return self.streams or self.passes is not None

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

    def reduced(self, reduction: Reduction[T]) -> list[T]:
        """One pass over all rows: its result, or those of consecutive blocks of the time of a data set."""
        return [reduction.over(self.blocks())] if self.passes is None else self.passes(reduction)

    def joined(self, other: Observation) -> Observation:
        """Both observations as one; they must have the same base parameters. The settings are those of the first."""
        if other.base.kept != self.base.kept or other.base.channels != self.base.channels:
            raise Mismatch("observations of different base parameters or channels cannot be joined")
        rows = tuple(a + b for a, b in zip(self.rows, other.rows, strict=True))

        def blocks() -> Iterator[Block]:
            yield from self.blocks()
            yield from other.blocks()

        return Observation(
            self.base,
            joined_factors([self.factors, other.factors]),
            rows,
            blocks if self.streams and other.streams else no_rows,
            self.signals,
            self.cutoffs + other.cutoffs,
            self.log_format,
            standstill=None if other.standstill is None else self.standstill,
            stops=self.stops + other.stops,
            time_blocks=self._blocks_beside(other) + other._blocks_beside(self),
            left_out=self.left_out + other.left_out,
            notes=self.notes + other.notes,
            domain=self.domain.joined(other.domain) if self.domain and other.domain else None,
        )

    def _blocks_beside(self, other: Observation) -> tuple[tuple[Array, ...], ...]:
        """Its blocks of time; if it keeps rows instead, parts about as long as the blocks of another observation."""
        if self.time_blocks or not other.time_blocks:
            return self.time_blocks
        return tuple(time_parts(self, max(1, round(len(other.time_blocks) * self.total_rows / other.total_rows))))


def dropout_count(robot: Robot, motions: Iterable[Motion]) -> dict[str, int]:
    """Number of torque samples of each joint that were replaced."""
    found = [m.dropouts for m in motions if m.dropouts is not None]
    return {name: int(sum(x[j] for x in found)) for j, name in enumerate(robot.coordinates)}


def check_no_client(client: Any) -> None:
    """Raise a DataError if a cluster is given for what is in memory already."""
    if client is not None:
        raise NotApplicable("a cluster works on the partitions of a data set: open it with open_dataset", "client")


def too_few_rows(count: int, base: BaseParameters) -> DataError:
    """The error of fewer rows than base parameters."""
    why = "" if count else ": all joints stand still, or move more slowly than min_velocity"
    return TooFew(
        f"{count} rows are left for {base.count} base parameters{why}; record longer, or lower min_velocity or trim"
    )


def in_parts(starts: NDArray[np.int64], index: NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
    """Consecutive samples of the same part of the time, with its number. `starts` are where parts 1, 2, ... begin."""
    part = np.searchsorted(starts, index, side="right")
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1), len(part)]
    for a, b in pairwise(edges):
        yield int(part[a]), slice(a, b)


def time_parts(observation: Observation, count: int) -> list[tuple[Array, ...]]:
    """Triangular factors of [W y] per channel of `count` consecutive parts of the time, each with as many samples.

    Of a data set the parts consist of whole blocks of time.
    Raises a DataError if the observation keeps no samples or has fewer than parts.
    """
    blocks = observation.time_blocks
    if len(blocks) >= count:
        edges = (np.arange(count + 1) * len(blocks)) // count
        return [joined_factors(blocks[a:b]) for a, b in pairwise(edges)]
    stream = observation.weighted_rows()
    indices = [index for _, _, _, index in stream()]
    every = np.unique(np.concatenate(indices)) if indices else np.zeros(0, dtype=np.int64)
    if len(every) < count:
        raise TooFew(f"{len(every)} samples are kept, which cannot be cut into {count} parts of time")
    starts = every[(np.arange(1, count) * len(every)) // count]
    width = observation.base.count + 1
    factors = [[np.zeros((0, width)) for _ in observation.factors] for _ in range(count)]
    for channel, _, rows, index in stream():
        for k, here in in_parts(starts, index):
            factors[k][channel] = folded_together([factors[k][channel], rows[here]])
    return [tuple(one) for one in factors]
