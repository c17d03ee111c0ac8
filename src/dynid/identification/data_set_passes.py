"""Further passes over a data set, for methods that weight its rows one by one: partitions are read again each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dynid.identification.data_set_chunks import cleaned_chunk, parts_of
from dynid.identification.folding import BLOCKS
from dynid.identification.observation import Reduction
from dynid.identification.row_stream import Block, motion_blocks
from dynid.parameters.base import BaseParameters
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.recording.recording import Run
from dynid.signals.settings import Motion, Signals

__all__ = ["Passes"]

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
