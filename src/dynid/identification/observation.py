"""The data of the estimators: one triangular factor of [W y] per channel, folded from chunks of samples.

The whole regressor W is never stored. A segment of samples becomes regressor rows, the rows of each channel are folded
into the factor of that channel by Householder QR, and the rows are dropped. The size of the factor depends on the
number of base parameters, not of samples. Normal equations would lose half of the digits; the factor does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError, Mismatch, NotApplicable, TooFew
from dynid.identification.loads import check_run, default_channels, state
from dynid.identification.row_stream import (
    Block,
    Folding,
    check_device,
    fold,
    folded_together,
    joined_factors,
    motion_blocks,
)
from dynid.identification.stops import Standstill, Stop, standstill, without_stops
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partitions import LeftOut
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import Fingerprint
from dynid.signals.settings import Motion, Signals, prepare
from dynid.signals.spikes import dropout_note

if TYPE_CHECKING:
    from dynid.recording.log_format import LogFormat

__all__ = ["Block", "Observation", "Reduction", "WeightedRows", "fold", "in_parts", "no_rows", "observe", "time_parts"]

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


def observe(
    robot: Robot,
    recording: Recording | DataSet,
    *,
    signals: Signals | None = None,
    base: BaseParameters | None = None,
    channels: str | Sequence[str] | None = None,
    known: ArrayLike | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
    device: str | None = None,
    fewest: int | None = None,
) -> Observation:
    """Fold a recording into an observation of the base parameters.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    recording : Recording or DataSet
        Measured motion and torques. Wrenches of named sensors, such as force plates and contacts, are included in the
        measured base wrench and joint torques. The partitions of a data set are read one after another; its rows are
        not kept, but the factors of up to twenty blocks of time are.
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
    client : distributed.Client, optional
        Dask cluster whose workers read and fold the partitions of a data set. The result is the same to the last bit.
    skip_bad : bool, default False
        Leave out partitions of a data set that cannot be used; `Observation.left_out` names them.
    progress : callable, optional
        Receives a `Progress` after every partition of a data set.
    device : str, optional
        Device of PyTorch that makes and folds the rows, such as "cuda" for a graphics card (`pip install dynid[gpu]`).
        The result is the same to rounding. Rows that are needed again later are made by the processor.
    fewest : int, optional
        Least number of rows; by default one more than base parameters. Methods with a prior need fewer.

    Returns
    -------
    Observation

    Raises
    ------
    DataError
        If a run does not have the channels, if too few rows are left for the number of base parameters, or if the
        device does not support the robot.
    DynidError
        If PyTorch or the device is missing.

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
    check_device(robot, device, client)
    if isinstance(recording, DataSet):
        from dynid.identification.data_sets import observe_dataset

        if known is not None:
            raise NotApplicable("known parameters are for a recording, not for a data set", "known")
        return observe_dataset(
            robot,
            recording,
            signals=settings,
            base=base,
            channels=channels,
            client=client,
            skip_bad=skip_bad,
            progress=progress,
            device=device,
            fewest=fewest,
        )
    check_no_client(client)
    if base is None:
        base = base_parameters(robot, channels=channels if channels is not None else default_channels(robot, recording))
    for run in recording.runs:
        check_run(robot, run, base.channels)
    motions, stops = without_stops(base, [prepare(run, settings) for run in recording.runs], settings)
    if known is not None:
        motions = [_less(robot, motion, known) for motion in motions]
    return replace(
        observe_motions(base, motions, settings, device, fewest), log_format=recording.log_format, stops=stops
    )


def observe_motions(
    base: BaseParameters,
    motions: Sequence[Motion],
    settings: Signals,
    device: str | None = None,
    fewest: int | None = None,
) -> Observation:
    """Fold filtered runs, measured or simulated, into an observation."""
    folding = Folding.of_recording(base, settings, motions, device)
    if sum(folding.rows) < (base.count + 1 if fewest is None else fewest):
        raise too_few_rows(sum(folding.rows), base)

    def blocks() -> Iterator[Block]:
        start = 0
        for motion in motions:
            yield from motion_blocks(base, motion, settings, start)
            start += len(motion.t)

    parts = folding.factors()
    return Observation(
        base,
        parts[0] if len(parts) == 1 else joined_factors(parts),
        tuple(folding.rows),
        blocks if folding.kept is None else folding.kept_blocks,
        settings,
        tuple(m.cutoff for m in motions),
        motions=tuple(motions),
        standstill=standstill(base, motions, settings),
        time_blocks=() if len(parts) == 1 else tuple(parts),
        notes=dropout_note(dropout_count(base.robot, motions)),
        domain=Domain.of_motions(base.robot, motions),
        device=device,
    )


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


def _less(robot: Robot, motion: Motion, known: ArrayLike) -> Motion:
    """The motion with the torques and the base wrench of the known parameters subtracted."""
    load = inverse_dynamics(robot, *state(robot, motion), known)
    first = len(robot.channels) - robot.n
    torque = None if motion.torque is None else motion.torque - load[:, first:]
    if not first or (motion.wrench is None and not motion.wrenches):
        return replace(motion, torque=torque)
    wrench = np.zeros((len(motion.t), first)) if motion.wrench is None else motion.wrench
    return replace(motion, torque=torque, wrench=wrench - load[:, :first])
