"""Observations of data sets: partitions are read, cleaned, folded and dropped, here or on a cluster.

Every partition becomes one triangular factor per channel. These are joined in a tree of fixed shape: chunks within a
part of a partition, partitions within a block of time, then the blocks. Neither the number of threads nor that of the
workers, nor a task that was run twice, changes a bit of the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError, TooFew
from dynid.identification.loads import check_run, default_channels
from dynid.identification.observation import Observation, Reduction, dropout_count, no_rows, too_few_rows
from dynid.identification.row_stream import BLOCKS, Block, Folding, joined_factors, motion_blocks
from dynid.identification.stops import Rest, Stop, moving_joints, standstill_of, without_stops
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import left_out_note, map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import STRETCH, Fingerprint, MotionSampler, sampling_rate, stretches
from dynid.signals.settings import Motion, Signals, prepare
from dynid.signals.spikes import dropout_note
from dynid.threads import one_blas_thread

__all__ = ["SHORTEST_S", "Passes", "cleaned_chunk", "joined_stops", "needed_signals", "observe_dataset", "parts_of"]

# Parts that the blocks of time are made of: whole partitions, or parts of few partitions, so that blocks differ in
# length by no more than a fifth.
_PARTS = 5 * BLOCKS
# Pieces of a run at the edge of a chunk that are shorter than this, beyond what is trimmed, are left out.
SHORTEST_S, _SHORTEST_SAMPLES = 1.0, 64


def needed_signals(settings: Signals, dataset: DataSet) -> tuple[str, ...]:
    """Signals that an identification reads."""
    out = ["q", "torque", "wrench", "base", "base_v", "base_a"]
    out += ["v"] * settings.measured_velocity + ["a"] * settings.measured_acceleration
    return (*out, *(["current"] * (dataset.log_format.gain is not None)))


def parts_of(count: int) -> int:
    """Parts of the time that each of `count` partitions is folded in."""
    return -(-_PARTS // count)


def cleaned_chunk(
    base: BaseParameters, recording: Recording, settings: Signals
) -> tuple[list[tuple[Run, Motion]], tuple[Stop, ...], int]:
    """Filtered runs of a chunk, its stops, and the number of samples in pieces that are too short."""
    shortest = 2 * settings.trim + SHORTEST_S
    long = [r for r in recording.runs if len(r) >= _SHORTEST_SAMPLES and len(r) * r.step >= shortest]
    for run in long:
        check_run(base.robot, run, base.channels)
    motions, stops = without_stops(base, [prepare(run, settings) for run in long], settings)
    return list(zip(long, motions, strict=True)), stops, recording.samples - sum(len(r) for r in long)


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Passes:
    """Reduces the rows of a data set as often as needed.

    Attributes
    ----------
    dataset : DataSet
        The data set, without the partitions that were left out.
    base : BaseParameters
        The unknowns.
    settings : Signals
        How runs are filtered.
    client : distributed.Client or None
        Dask cluster that does the work.
    progress : callable or None
        Receives a `Progress` after every partition.
    """

    dataset: DataSet
    base: BaseParameters
    settings: Signals
    client: Any = None
    progress: ProgressCallback | None = None

    def __call__(self, reduction: Reduction[T]) -> list[T]:
        """Results of consecutive blocks of time, joined in a fixed order."""
        count = len(self.dataset)
        parts = parts_of(count)
        blocks: dict[int, T] = {}
        work = map_partitions(
            reduce_partition,
            self.dataset,
            (self.base, self.settings, parts, reduction),
            client=self.client,
            progress=self.progress,
            what="weighting rows",
        )
        for k, one in work:
            assert not isinstance(one, LeftOut)
            for part, result in one:
                place = (k * parts + part) * BLOCKS // (count * parts)
                blocks[place] = result if place not in blocks else reduction.join(blocks[place], result)
        return [blocks[place] for place in sorted(blocks)]


def reduce_partition(
    dataset: DataSet,
    partition: Partition,
    base: BaseParameters,
    settings: Signals,
    parts: int,
    reduction: Reduction[T],
    threads: int | None,
) -> list[tuple[int, T]]:
    """Results of the chunks of one partition, those of one part of the time joined."""
    total = dataset.rows(partition)
    out: dict[int, T] = {}
    for first, chunk in dataset.chunks(partition):
        found, _, _ = cleaned_chunk(base, chunk, settings)
        part, result = first * parts // total, reduction.over(_blocks(base, found, settings, first, threads))
        out[part] = result if part not in out else reduction.join(out[part], result)
    return sorted(out.items())


def _blocks(
    base: BaseParameters, found: Sequence[tuple[Run, Motion]], settings: Signals, first: int, threads: int | None
) -> Iterator[Block]:
    """The rows of the filtered runs of a chunk that begins with row `first`."""
    for run, motion in found:
        yield from motion_blocks(base, motion, settings, first, threads)
        first += len(run)


Array = NDArray[np.float64]

# Chunks whose joints at rest are looked at, evenly spaced.
_RESTS = 50
# Samples of a fingerprint: five hours at its slowest rate. Of a longer data set it keeps a part.
_MOST_POSITIONS = 100_000


@dataclass(frozen=True, eq=False)
class PartitionFold:
    """One partition, folded.

    Attributes
    ----------
    factors : tuple of tuple of ndarray
        Factor of [W y] (k, b + 1) per part of the time and channel.
    rows : ndarray of int, shape (channel,)
        Number of rows.
    samples, short : int
        Samples that were used, and samples in pieces that are too short to be filtered.
    cutoffs : tuple of float or None
        Cut-off frequency of every run in Hz.
    rests : tuple of Rest
        Which joints moved in every run, and where.
    stops : tuple of Stop
        Mechanical stops, each with the share of the samples of the partition.
    dropouts : dict of str to int
        Number of torque samples of each joint that were replaced.
    positions : tuple of ndarray (samples, coordinate)
        Low-passed positions at the rate of the fingerprint, or stretches of them.
    moved, between : int
        Samples that all positions would have, and samples between two stretches.
    domain : Domain
        Domain of its motion.
    """

    factors: tuple[tuple[Array, ...], ...]
    rows: NDArray[np.int64]
    samples: int
    short: int
    cutoffs: tuple[float | None, ...]
    rests: tuple[Rest, ...]
    stops: tuple[Stop, ...]
    dropouts: dict[str, int]
    positions: tuple[Array, ...]
    moved: int
    between: int
    domain: Domain


@dataclass(frozen=True)
class Sampling:
    """How positions are sampled for the fingerprint of a data set.

    Attributes
    ----------
    rate : float
        Samples per second.
    most : int
        Most samples of a partition.
    every : int
        One of this many partitions is kept.
    """

    rate: float
    most: int
    every: int

    @staticmethod
    def of(dataset: DataSet) -> Sampling:
        """The sampling that keeps the fingerprint of a data set small."""
        count = len(dataset.partitions)
        most = max(_MOST_POSITIONS // count, STRETCH)
        return Sampling(sampling_rate(_about_seconds(dataset)), most, -(-count * STRETCH // _MOST_POSITIONS))


def _about_seconds(dataset: DataSet) -> float:
    """About how long a data set lasts, if its partitions are as long as the first that can be read."""
    for partition in dataset.partitions:
        try:
            return dataset.rows(partition) * dataset.step * len(dataset.partitions)
        except DynidError:
            continue
    return 0.0


class _Positions:
    """The fingerprint of a data set, to which partitions are added in their order."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._runs: list[Array] = []
        self._moved = self._missing = self._gap = self._partitions = 0

    def add(self, one: PartitionFold) -> None:
        """Add the positions of a partition, or count what is not kept."""
        kept = self._partitions % self._sampling.every == 0
        self._partitions += 1
        self._moved += one.moved
        self._missing = one.between if kept else self._missing + one.moved
        self._gap = max(self._gap, self._missing)
        if kept:
            self._runs += one.positions

    def fingerprint(self) -> Fingerprint | None:
        """The fingerprint; None where no run is long enough."""
        kept = sum(len(run) for run in self._runs)
        if not kept:
            return None
        rate = self._sampling.rate
        return Fingerprint.of_positions(rate, self._runs, min(kept / self._moved, 1.0), self._gap / rate)


def fold_partition(
    dataset: DataSet,
    partition: Partition,
    base: BaseParameters,
    settings: Signals,
    parts: int,
    sampling: Sampling,
    device: str | None,
    threads: int | None,
) -> PartitionFold:
    """Read, clean and fold one partition."""
    total = dataset.rows(partition)
    folding = Folding(base, settings, parts=parts, threads=threads, device=device)
    cutoffs: list[float | None] = []
    rests: list[Rest] = []
    stops: list[tuple[Stop, int]] = []
    dropouts: Counter[str] = Counter()
    domains: list[Domain] = []
    used = short = 0
    sampler = MotionSampler(sampling.rate)
    for first, chunk in dataset.chunks(partition):
        found, at_stops, too_short = cleaned_chunk(base, chunk, settings)
        row = first
        for run, motion in found:
            folding.add(motion, row / total, len(run) / total)
            row += len(run)
            sampler.add(motion)
            cutoffs.append(motion.cutoff)
            domains.append(Domain.of_motions(base.robot, [motion]))
            rests.append(Rest(moving_joints(base.robot, motion, settings), motion.q.mean(axis=0)))
        used += sum(len(run) for run, _ in found)
        short += too_short
        stops += [(stop, chunk.samples) for stop in at_stops]
        dropouts.update(dropout_count(base.robot, [motion for _, motion in found]))
    if not used:
        raise TooFew(f"has no run of {2 * settings.trim + SHORTEST_S:g} s, which filters need")
    runs = sampler.runs
    kept, between = stretches(runs, sampling.most)
    marked = tuple(replace(stop, share=stop.share * samples / used) for stop, samples in stops)
    return PartitionFold(
        tuple(folding.factors()),
        np.array(folding.rows),
        used,
        short,
        tuple(cutoffs),
        tuple(rests),
        joined_stops(marked),
        dict(dropouts),
        tuple(kept),
        sum(len(run) for run in runs),
        between,
        reduce(Domain.joined, domains),
    )


def observe_dataset(
    robot: Robot,
    dataset: DataSet,
    *,
    signals: Signals | None = None,
    base: BaseParameters | None = None,
    channels: str | Sequence[str] | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
    device: str | None = None,
    fewest: int | None = None,
) -> Observation:
    """Fold a data set into an observation, as `observe`."""
    settings = signals or Signals()
    if base is None:
        found = channels if channels is not None else default_channels(robot, dataset.sample(1)[0])
        base = base_parameters(robot, channels=found)
    pruned = dataset.with_signals(needed_signals(settings, dataset))
    count = len(dataset.partitions)
    parts = parts_of(count)
    blocks: list[tuple[Array, ...] | None] = [None] * BLOCKS
    rows = np.zeros(len(base.channels), dtype=np.int64)
    samples = short = 0
    cutoffs: set[float | None] = set()
    rests: list[Rest] = []
    stops: list[tuple[Stop, int]] = []
    dropouts: Counter[str] = Counter()
    left_out: list[LeftOut] = []
    domains: list[Domain] = []
    sampling = Sampling.of(pruned)
    positions = _Positions(sampling)
    work = map_partitions(
        fold_partition,
        pruned,
        (base, settings, parts, sampling, device),
        client=client,
        skip_bad=skip_bad,
        progress=progress,
        what="folding",
    )
    # With more BLAS threads the last bits would depend on their number.
    with one_blas_thread():
        for k, one in work:
            if isinstance(one, LeftOut):
                left_out.append(one)
                continue
            for part, factors in enumerate(one.factors):
                place = (k * parts + part) * BLOCKS // (count * parts)
                before = blocks[place]
                blocks[place] = factors if before is None else joined_factors([before, factors])
            rows += one.rows
            samples += one.samples
            short += one.short
            cutoffs |= {None if c is None else float(f"{c:.2g}") for c in one.cutoffs}
            rests += one.rests
            positions.add(one)
            domains.append(one.domain)
            stops += [(stop, one.samples) for stop in one.stops]
            dropouts.update(one.dropouts)
        filled = [block for block in blocks if block is not None and any(len(f) for f in block)]
        whole = joined_factors(filled)
    if int(rows.sum()) < (base.count + 1 if fewest is None else fewest):
        reason = f"; {left_out_note(left_out, count)}" if left_out else ""
        raise TooFew(f"{too_few_rows(int(rows.sum()), base)}{reason}")
    notes = [f"{samples} samples of {count - len(left_out)} partitions"]
    if short:
        notes.append(f"{short} samples in pieces too short to be filtered are left out")
    if left_out:
        notes.append(left_out_note(left_out, count))
    return Observation(
        base,
        whole,
        tuple(int(n) for n in rows),
        no_rows,
        settings,
        tuple(sorted(cutoffs, key=lambda c: (c is not None, c))),
        dataset.log_format,
        standstill=standstill_of(base, _thinned(rests)),
        stops=joined_stops([replace(s, share=s.share * n / samples) for s, n in stops]),
        time_blocks=tuple(filled),
        left_out=tuple(left_out),
        notes=(*notes, *dropout_note(dropouts)),
        fingerprint=positions.fingerprint(),
        domain=reduce(Domain.joined, domains),
        passes=Passes(_without(pruned, left_out), base, settings, client, progress),
        device=device,
    )


def _without(dataset: DataSet, left_out: Sequence[LeftOut]) -> DataSet:
    """The data set without partitions that cannot be used."""
    names = {one.partition for one in left_out}
    return replace(dataset, partitions=tuple(p for p in dataset.partitions if p.name not in names))


def _thinned(rests: list[Rest]) -> list[Rest]:
    """Some of the runs, evenly spaced, and the first in which each joint moves."""
    if len(rests) <= _RESTS:
        return rests
    chosen = {round(k * (len(rests) - 1) / (_RESTS - 1)) for k in range(_RESTS)}
    for j in range(len(rests[0].moving)):
        chosen |= set(next(([k] for k, rest in enumerate(rests) if rest.moving[j]), []))
    return [rests[k] for k in sorted(chosen)]


def joined_stops(stops: Sequence[Stop]) -> tuple[Stop, ...]:
    """One stop per joint and side: its extreme position, its mean torque, and the sum of the shares."""
    out = []
    for key in dict.fromkeys((s.joint, s.side) for s in stops):
        mine = [s for s in stops if (s.joint, s.side) == key]
        share = sum(s.share for s in mine)
        weights = [s.share / share if share else 1 / len(mine) for s in mine]
        torque = sum(w * s.torque for w, s in zip(weights, mine, strict=True))
        position = (min if key[1] > 0 else max)(s.position for s in mine)
        out.append(Stop(key[0], key[1], position, torque, share))
    return tuple(out)
