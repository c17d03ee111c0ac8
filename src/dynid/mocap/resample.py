"""Band-limited resampling: any rate and any shift of the clock, in one zero-phase step."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, NotFinite, TooFew

__all__ = ["resample"]

Array = NDArray[np.float64]

# Half-width of the kernel in its zero crossings, and the window's shape: 80 dB beyond half the lower of both rates.
_CROSSINGS, _BETA = 16, 8.0
# The cut-off as a share of the lower rate, so that the transition ends at half of it.
_CUTOFF = 0.43
_CHUNK = 512


def resample(x: ArrayLike, rate: float, times: ArrayLike, new_rate: float | None = None) -> Array:
    """The columns of x (N, ...) sampled at `rate` Hz from time 0, read at `times` (K,) in s: (K, ...).

    What the new clock (`new_rate`, or the median step of `times`) cannot show is filtered out first: a Kaiser-windowed
    sinc, flat up to 0.36 and 80 dB down at 0.5 of the lower of both rates. Times outside the samples give NaN; x must
    hold no NaN itself.
    """
    x, times = np.asarray(x, dtype=float), np.asarray(times, dtype=float)
    if x.ndim < 1 or len(x) < 2:
        raise TooFew(f"resampling needs at least two samples, got {len(x) if x.ndim else 0}", "x")
    if not np.all(np.isfinite(x)):
        raise NotFinite("resampling needs finite samples", "x")
    if new_rate is None:
        new_rate = 1.0 / float(np.median(np.diff(times))) if len(times) > 1 else rate
    if not (rate > 0 and new_rate > 0):
        raise InvalidValue(f"rates must be positive, got {rate:g} and {new_rate:g} Hz", "rate")
    where = times * rate
    nearest = np.round(where)
    inside = (where > -1e-6) & (where < len(x) - 1 + 1e-6)
    out = np.full((len(times), *x.shape[1:]), np.nan)
    if new_rate >= rate * (1 - 1e-9) and np.all(np.abs(where - nearest)[inside] < 1e-6):
        out[inside] = x[nearest[inside].astype(int)]
        return out
    cutoff = _CUTOFF * min(1.0, new_rate / rate)  # per sample of x
    reach = int(np.ceil(_CROSSINGS / (2 * cutoff)))
    flat = x.reshape(len(x), -1)
    padded = _padded(flat, reach + 1)
    rows = np.flatnonzero(inside)
    taps = np.arange(-reach, reach + 2)
    for lo in range(0, len(rows), _CHUNK):
        some = rows[lo : lo + _CHUNK]
        base = np.floor(where[some]).astype(int)
        distance = (where[some] - base)[:, None] - taps
        near = np.abs(distance) < reach + 1 - 1e-9
        window = near * np.i0(_BETA * np.sqrt(np.clip(1 - (distance / (reach + 1)) ** 2, 0, None)))
        weights = np.sinc(2 * cutoff * distance) * window
        # Constants and straight lines pass exactly, whatever the distance to the samples.
        weights /= weights.sum(axis=1, keepdims=True)
        lean = distance * window
        weights -= lean * (np.sum(weights * distance, axis=1) / np.sum(lean * distance, axis=1))[:, None]
        weights /= weights.sum(axis=1, keepdims=True)
        index = np.clip(base[:, None] + taps + reach + 1, 0, len(padded) - 1)
        out[some] = np.einsum("kt,ktc->kc", weights, padded[index], optimize=True).reshape(-1, *x.shape[1:])
    return out


def _padded(x: Array, reach: int) -> Array:
    """Odd reflection at both ends, as often as the reach asks; a straight line stays one."""
    out = x
    while reach > 0:
        step = min(reach, len(out) - 1)
        before = 2 * out[0] - out[step:0:-1]
        after = 2 * out[-1] - out[-2 : -step - 2 : -1]
        out = np.concatenate([before, out, after])
        reach -= step
    return out
