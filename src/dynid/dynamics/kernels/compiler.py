"""How every kernel is compiled: cached on disk, without the interpreter lock."""

from numba import njit

# Sums may be reordered and products fused; infinities and NaN keep their meaning.
_FAST = {"contract", "reassoc", "nsz", "arcp"}

kernel = njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
# A step inside kernels. Inlined by the back end: a robot is a dozen arrays, dear to pass at every call.
step = njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy", forceinline=True)
