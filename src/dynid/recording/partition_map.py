"""Work on the partitions of a data set, one after another or on a Dask cluster, with results in a fixed order."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

from dynid.errors import DynidError, MissingData, keyword
from dynid.progress import Progress, ProgressCallback
from dynid.recording.cluster import map_on_cluster
from dynid.recording.dataset import DataSet
from dynid.recording.partitions import LeftOut, Partition
from dynid.threads import one_blas_thread

__all__ = ["left_out_note", "map_partitions"]

T = TypeVar("T")
# Work on one partition: the data set, the partition, and the arguments.
Work = Callable[..., T]


def map_partitions(
    work: Work[T],
    dataset: DataSet,
    arguments: tuple[Any, ...] = (),
    *,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
    what: str = "partitions",
) -> Iterator[tuple[int, T | LeftOut]]:
    """Results of work(dataset, partition, *arguments, threads=...), in the order of the partitions.

    Parameters
    ----------
    work : callable
        A function of a module. Its `threads` is None here, and 1 on a worker, which runs one task per thread.
    dataset : DataSet
        The data set.
    arguments : tuple
        Further arguments.
    client : distributed.Client, optional
        Dask cluster that does the work; only results travel back. Its workers must be able to read the partitions.
    skip_bad : bool, default False
        Go on where a partition cannot be used; its result is then a `LeftOut`.
    progress : callable, optional
        Receives a `Progress` after every partition.
    what : str
        What is done, for the progress.

    Yields
    ------
    int, result or LeftOut
        Number of the partition, and its result.

    Raises
    ------
    DataError
        If a partition cannot be used and `skip_bad` is False; the message names it.
    DynidError
        If the scheduler is gone, or the workers died several times on one partition.
    """
    numbers = range(len(dataset.partitions))
    source = _here(work, dataset, arguments, numbers) if client is None else _there(work, dataset, arguments, client)
    waiting: dict[int, T | LeftOut] = {}
    following, bad, started = 0, 0, time.perf_counter()
    with closing(source):
        for done, (k, result) in enumerate(source, start=1):
            if isinstance(result, LeftOut):
                bad += 1
                if not skip_bad:
                    raise MissingData(f"{result.reason}; {keyword('skip_bad', True)} leaves such partitions out")
            waiting[k] = result
            while following in waiting:
                yield following, waiting.pop(following)
                following += 1
            if progress is not None:
                spent, total = time.perf_counter() - started, len(numbers)
                message = f"{what}: {done} of {total} partitions{f', {bad} left out' if bad else ''}"
                progress(Progress(message, done / total, spent / done * (total - done)))


def _here(
    work: Work[T], dataset: DataSet, arguments: tuple[Any, ...], numbers: Sequence[int]
) -> Generator[tuple[int, T | LeftOut], None, None]:
    # With more BLAS threads the last bits would depend on their number.
    with one_blas_thread():
        for k in numbers:
            yield k, _one(work, dataset, dataset.partitions[k], arguments, None)


def _one(
    work: Work[T], dataset: DataSet, partition: Partition, arguments: tuple[Any, ...], threads: int | None
) -> T | LeftOut:
    """The result of one partition, or why it cannot be used."""
    try:
        return work(dataset, partition, *arguments, threads=threads)
    except DynidError as error:
        reason = str(error)
        if partition.name not in reason:
            reason = f"partition {partition.name}: {reason}"
        return LeftOut(partition.name, reason)
    except OSError as error:
        return LeftOut(partition.name, f"partition {partition.name} cannot be read: {error.strerror or error}")


def _there(
    work: Work[T], dataset: DataSet, arguments: tuple[Any, ...], client: Any
) -> Generator[tuple[int, T | LeftOut], None, None]:
    """Results from a cluster, as they come."""
    names = [partition.name for partition in dataset.partitions]
    yield from map_on_cluster(client, _on_worker, (work, dataset, arguments), range(len(names)), names, "partition")


def _on_worker(k: int, work: Work[T], dataset: DataSet, arguments: tuple[Any, ...]) -> T | LeftOut:
    """Work on partition k with one thread."""
    return _one(work, dataset, dataset.partitions[k], arguments, 1)


def left_out_note(left_out: Sequence[LeftOut], total: int) -> str:
    """How many partitions were left out, and which."""
    names = "; ".join(one.reason for one in left_out)
    return f"{len(left_out)} of {total} partitions are left out: {names}"
