"""Threads of the linear algebra: small matrices gain nothing from several, and the last bits depend on their number."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


@cache
def _controller() -> Any:
    """Control of the libraries that are loaded; to look for them takes longer than to solve a small system."""
    import scipy.linalg  # noqa: F401  (NumPy and SciPy have a library each)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and LAPACK to one thread while the context lasts."""
    found: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return found
