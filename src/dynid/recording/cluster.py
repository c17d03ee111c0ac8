"""Work on a Dask cluster: one task per item, each done by one thread, with errors that name the item."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from dynid.errors import DynidError

__all__ = ["connect", "map_on_cluster"]

T = TypeVar("T")

_CONNECT_S = 10.0
# How often a task is tried again after an error that is not of its item.
_RETRIES = 2


def map_on_cluster(
    client: Any, work: Callable[..., T], shared: tuple[Any, ...], items: Sequence[Any], names: Sequence[str], what: str
) -> Generator[tuple[int, T], None, None]:
    """Number and result of work(item, *shared) of every item, as they come.

    Parameters
    ----------
    client : distributed.Client
        The cluster. A task whose worker is lost is done again by another one.
    work : callable
        A function of a module.
    shared : tuple
        Arguments that all tasks have; they travel once.
    items : sequence
        What the tasks work on.
    names : sequence of str
        Name of each item, for errors.
    what : str
        What an item is, in the singular.

    Yields
    ------
    int, result

    Raises
    ------
    DynidError
        If the scheduler is gone, or the workers died several times on one item.
    """
    try:
        from distributed import as_completed
        from distributed.comm.core import CommClosedError
        from distributed.protocol.pickle import dumps
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise DynidError("work on a cluster needs Dask: pip install 'dynid[cluster]'", code="missing_package") from None
    place = getattr(getattr(client, "scheduler", None), "address", "the cluster")
    gone = (CommClosedError, CancelledError, asyncio.CancelledError, OSError, TimeoutError)
    futures: dict[Any, int] = {}
    done, k = 0, 0
    try:
        # A task rather than scattered data: the scheduler makes it again when the worker that holds it dies.
        common = client.submit(_itself, dumps((work, shared)), pure=False)
        for number, item in enumerate(items):
            futures[client.submit(_one, common, dumps(item), pure=False, retries=_RETRIES)] = number
        for future in as_completed(list(futures), loop=client.loop):
            k = futures.pop(future)
            result = future.result()
            future.release()
            done += 1
            yield k, result
    except KilledWorker:
        raise DynidError(
            f"the workers died several times on {what} {names[k]}: is computer memory short?", code="interrupted"
        ) from None
    except gone:
        name = names[min(futures.values(), default=0)]
        raise DynidError(
            f"the scheduler {place} is gone after {done} of {len(items)} {what}s, at {name}", code="interrupted"
        ) from None
    except Exception as error:
        raise DynidError(
            f"{what} {names[k]} failed on a worker: {type(error).__name__}: {error!s:.120}", code="interrupted"
        ) from error
    finally:
        with suppress(RuntimeError, *gone):
            client.cancel(list(futures))


def _itself(packed: bytes) -> bytes:
    return packed


def _one(common: bytes, item: bytes) -> Any:
    """Work on one item on a worker; what it needs comes as bytes, because arrays that Dask moves are read-only."""
    _one_blas_thread()
    work, shared = _unpacked(common)
    return work(pickle.loads(item), *shared)


@lru_cache(maxsize=2)
def _unpacked(common: bytes) -> Any:
    """What all tasks have, unpacked once per worker: robots and base parameters compute much when first used."""
    return pickle.loads(common)


@lru_cache(maxsize=1)
def _one_blas_thread() -> None:
    threadpool_limits(1, "blas")


def connect(address: str) -> Any:
    """A Dask client of the scheduler at an address.

    Parameters
    ----------
    address : str
        Such as tcp://host:8786.

    Returns
    -------
    distributed.Client

    Raises
    ------
    DynidError
        If Dask is not installed or no scheduler can be reached.
    """
    try:
        from distributed import Client
    except ImportError:
        raise DynidError("work on a cluster needs Dask: pip install 'dynid[cluster]'", code="missing_package") from None
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DynidError(f"no Dask scheduler can be reached at {address}: {reason:.120}", code="file_missing") from None
