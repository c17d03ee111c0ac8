"""Shared parts of the batch functions: checked inputs, threads, and a notice at the first compilation."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidType, InvalidValue, MissingArgument, NotFinite, named
from dynid.reading import whole_number
from dynid.robot.model import Robot

__all__ = ["as_batch", "as_parameters", "core_count", "first_use", "for_kernel", "run", "run_each", "thread_count"]

Array = NDArray[np.float64]
log = logging.getLogger("dynid")

_MIN_SAMPLES_PER_THREAD = 512
_NOTICE_AFTER_S = 3.0  # loading from the cache takes less
_compiled: set[int] = set()


def thread_count() -> int:
    """Number of threads per batch: DYNID_THREADS, or the cores available to this process."""
    given = os.environ.get("DYNID_THREADS")
    if given:
        count = whole_number(given)
        if not count:
            raise InvalidValue(f"DYNID_THREADS must be a positive integer, got '{given:.60}'")
        return count
    return core_count()


def core_count() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """The thread pool, created once."""
    return ThreadPoolExecutor(threads, thread_name_prefix="dynid")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has the pool but not its threads


@contextmanager
def first_use(kernel: Any) -> Iterator[None]:
    """Log a notice if the first call of a kernel takes long, because it is compiled into the cache."""
    if id(kernel) in _compiled:
        yield
        return
    notice = threading.Timer(
        _NOTICE_AFTER_S,
        lambda: log.warning("compiling %s (once; later runs use the cache)", kernel.__name__),
    )
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
        _compiled.add(id(kernel))


def run(
    kernel: Callable[..., Any],
    samples: int,
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    least: int = _MIN_SAMPLES_PER_THREAD,
) -> list[Any]:
    """Run kernel(*before, start, stop, *after) over all samples, split between threads; returns one result per part.

    A thread has at least `least` samples.
    """
    with first_use(kernel):
        threads = min(thread_count(), max(1, samples // least))
        if threads == 1 or id(kernel) not in _compiled:  # two threads would both compile it
            return [kernel(*before, 0, samples, *after)]
        edges = np.linspace(0, samples, threads + 1).astype(int)
        jobs = [_pool(thread_count()).submit(kernel, *before, int(lo), int(hi), *after) for lo, hi in pairwise(edges)]
        return [job.result() for job in jobs]


def run_each(kernel: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run kernel(*call) for every call, side by side on the threads; returns one result per call."""
    with first_use(kernel):
        if thread_count() == 1 or len(calls) == 1 or id(kernel) not in _compiled:  # two threads would both compile it
            return [kernel(*call) for call in calls]
        jobs = [_pool(thread_count()).submit(kernel, *call) for call in calls]
        return [job.result() for job in jobs]


def for_kernel(array: ArrayLike) -> Array:
    """A contiguous, writable array: other layouts are other types for the compiler and would be compiled again."""
    return np.require(array, dtype=np.float64, requirements=["C", "W"])


def as_batch(robot: Robot, **given: ArrayLike | None) -> tuple[list[Array], int, bool]:
    """Checked, contiguous (N, width) arrays of q, v, a, tau in the given order; N; and whether it was one sample.

    q is (N, nq), the others (N, nv); a single sample may be given without the first axis.
    """
    arrays, shapes = [], []
    for name, value in given.items():
        if value is None:
            raise MissingArgument(f"{name} is missing", name)
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise InvalidType(f"{name} is not an array of numbers", name) from None
        width = robot.nq if name == "q" else robot.nv
        if array.ndim not in (1, 2) or array.shape[-1] != width:
            raise InvalidShape(
                f"{name} has shape {array.shape}; robot '{robot.name}' needs (N, {width}) or ({width},)", name
            )
        if not np.all(np.isfinite(array)):
            where = np.argwhere(~np.isfinite(np.atleast_2d(array)))[0]
            raise NotFinite(
                f"{name} has a value that is not finite, first at sample {where[0]}, column {where[1]}", name
            )
        shapes.append(array.shape[:-1])
        arrays.append(for_kernel(np.atleast_2d(array)))
    if len(set(shapes)) > 1:
        lengths = ", ".join(f"{name} {a.shape}" for name, a in zip(given, arrays, strict=True))
        raise InvalidShape(f"the arrays differ in their number of samples: {lengths}")
    if robot.base == "floating" and "q" in given:
        norm = np.linalg.norm(arrays[list(given).index("q")][:, 3:7], axis=1)
        bad = np.flatnonzero(np.abs(norm - 1.0) > 1e-6)
        if bad.size:
            raise InvalidValue(
                f"the base quaternion q[3:7] must have unit length; sample {bad[0]} has {norm[bad[0]]:.4g}"
            )
    return arrays, arrays[0].shape[0], shapes[0] == ()


def as_parameters(robot: Robot, parameters: ArrayLike | None) -> Array:
    """Standard parameters: the given ones, checked, or those of the robot."""
    if parameters is None:
        return robot.parameters
    try:
        pi = np.ascontiguousarray(parameters, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType(f"{named('parameters')} of robot '{robot.name}' are not an array of numbers") from None
    if pi.shape != robot.parameters.shape:
        raise InvalidShape(
            f"robot '{robot.name}' has {robot.parameters.size} parameters, got shape {pi.shape}", "parameters"
        )
    if not np.all(np.isfinite(pi)):
        raise NotFinite(
            f"parameter '{robot.parameter_names[int(np.argmin(np.isfinite(pi)))]}' is not finite", "parameters"
        )
    return pi
