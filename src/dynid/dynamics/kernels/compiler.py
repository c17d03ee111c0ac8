"""Compiler settings of the kernels: cached on disk, without the interpreter lock."""

from typing import Any

from numba import njit

_KERNEL: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    # Sums may be reordered and products fused; infinities and NaN are preserved.
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
# A step inside kernels. Inlined by the back end: a robot is a dozen arrays, which are expensive to pass at every call.
# A step allocates no arrays and counts no references: counting is atomic, and slow where threads share a robot.
STEP: Any = _KERNEL | {"forceinline": True, "_nrt": False}

kernel = njit(**_KERNEL)
step = njit(**STEP)
