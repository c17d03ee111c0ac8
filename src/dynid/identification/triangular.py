"""Triangular factors by Householder QR, in threads: LAPACK is called without Python's global lock.

SciPy's own wrappers of LAPACK hold the lock during the call, so that two threads take turns; here the same routine of
the same library is called through its address.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

from dynid.dynamics.batch import thread_count

__all__ = ["fold", "folded_together", "joined_factors", "side_by_side"]

Array = NDArray[np.float64]
T = TypeVar("T")

# Columns that the decomposition treats at once: the fastest for stacks of ten to seventy columns.
_PANEL = 8
_INTEGER, _NUMBERS = ctypes.POINTER(ctypes.c_int), ctypes.c_void_p


@lru_cache(maxsize=1)
def _dgeqrt() -> Callable[..., None]:
    """LAPACK's dgeqrt (m, n, nb, a, lda, t, ldt, work, info)."""
    capsule = cython_lapack.__pyx_capi__["dgeqrt"]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kinds: list[Any] = [_INTEGER, _INTEGER, _INTEGER, _NUMBERS, _INTEGER, _NUMBERS, _INTEGER, _NUMBERS, _INTEGER]
    return ctypes.CFUNCTYPE(None, *kinds)(pointer(capsule, name(capsule)))


def fold(rows: Array) -> Array:
    """Triangular factor of a stack of rows; the rows themselves if they are fewer than the columns.

    A stack in Fortran order is overwritten.
    """
    count, columns = rows.shape
    if count <= columns:
        return rows
    packed = np.require(rows, np.float64, ["F", "A", "W"])
    panel = min(_PANEL, columns)
    blocks, work = np.empty((columns, panel)), np.empty(columns * panel)
    info = ctypes.c_int(0)

    def number(value: int) -> Any:
        return ctypes.byref(ctypes.c_int(value))

    _dgeqrt()(
        *(number(count), number(columns), number(panel), packed.ctypes.data, number(count)),
        *(blocks.ctypes.data, number(panel), work.ctypes.data, ctypes.byref(info)),
    )
    assert info.value == 0
    return np.triu(packed[:columns])


def joined_factors(parts: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
    """Triangular factors per channel of the rows of all parts, each of which has one factor per channel."""
    return tuple(folded_together(factors) for factors in zip(*parts, strict=True))


def folded_together(rows: Sequence[Array]) -> Array:
    """Triangular factor of several stacks of rows; only columns that are not zero are worked on."""
    stack = np.vstack(rows)
    used = np.flatnonzero(np.any(stack != 0, axis=0))
    narrow = fold(np.asfortranarray(stack[:, used])) if len(used) else np.zeros((0, 0))
    out = np.zeros((len(narrow), stack.shape[1]))
    out[:, used] = narrow
    return out


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """The thread pool, created once; not that of the kernels, which the work in these threads may wait for."""
    return ThreadPoolExecutor(threads, thread_name_prefix="dynid-fold")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has the pool but not its threads


def side_by_side(work: Callable[[Any], T], items: Sequence[Any], threads: int | None = None) -> list[T]:
    """The results of work(item), computed in threads where there are several; in the order of the items."""
    count = thread_count() if threads is None else threads
    if count == 1 or len(items) < 2:
        return [work(item) for item in items]
    return list(_pool(count).map(work, items))
