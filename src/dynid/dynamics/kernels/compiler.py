"""Compiler settings of the kernels: cached on disk, without the interpreter lock."""

from collections.abc import Callable
from typing import Any

from numba import njit

from dynid.dynamics.kernels.cache import kernel_cache

_KERNEL: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    # Sums may be reordered and products fused; infinities and NaN are preserved.
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
# A step inside kernels. Inlined by the back end: a robot is a dozen arrays, which are expensive to pass at every call.
# A step allocates no arrays and counts no references: counting is atomic, and slow where threads share a robot.
STEP: Any = _KERNEL | {"forceinline": True, "_nrt": False}


def _compiled(settings: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function at its first call, or reads it from the cache."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**settings)(function)
        dispatcher._cache = kernel_cache(function)
        return dispatcher

    return decorate


kernel = _compiled(_KERNEL)
step = _compiled(STEP)
