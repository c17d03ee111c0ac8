"""Signals shifted in time by any fraction of a sample.

    y_i = sum of x_k sinc(i + delay - k) w(i + delay - k),    periodic: Y(f) = X(f) exp(2 pi i f delay)

Source: Oppenheim and Schafer, Discrete-Time Signal Processing (2010), for band-limited interpolation and the Kaiser
window w.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, NotApplicable, TooFew

__all__ = ["REACH", "shifted"]

Array = NDArray[np.float64]

# Half width of the interpolation kernel in samples, and the shape of its window: the pass band, up to 80 % of half
# the sampling rate, is kept to about 1e-6.
REACH = 24
_KAISER = 12.0
# Largest error of an even clock, as a share of its step.
_EVEN = 0.01


def shifted(t: Array, x: Array, delay: ArrayLike, periodic: bool = False) -> Array:
    """Signals advanced by a delay, at the same times: y(t) = x(t + delay).

    Parameters
    ----------
    t : ndarray (N,)
        Time in s.
    x : ndarray (N, k)
        Signals.
    delay : float or array_like (k,)
        Delay in s, one for all columns or one per column.
    periodic : bool
        Whether the rows cover whole periods of a periodic signal. It is then shifted in phase, which is exact as far
        as it is band-limited. Other signals are interpolated by a windowed sinc on an even clock and by a cubic spline
        on an uneven one; on an even clock they are extended by reflection at both ends.

    Returns
    -------
    ndarray (N, k)

    Raises
    ------
    DataError
        If a delay is not finite or longer than half of the run, there are too few samples, or the clock of a periodic
        signal is uneven.
    """
    delays = np.broadcast_to(np.asarray(delay, dtype=float), (x.shape[1],))
    if not np.all(np.isfinite(delays)):
        raise InvalidValue("a delay must be a finite number of seconds", "delay")
    span = t[-1] - t[0]
    if np.abs(delays).max(initial=0.0) > 0.5 * span:
        raise InvalidValue(
            f"a delay of {np.abs(delays).max():.3g} s is more than half of a run of {span:.3g} s", "delay"
        )
    steps = np.diff(t)
    step = float(np.mean(steps))
    even = float(np.abs(steps - step).max()) <= _EVEN * step
    if periodic and not even:
        raise NotApplicable("a periodic signal can be shifted on an even clock only; resample it first")
    out = np.array(x, dtype=float)
    for k in np.flatnonzero(delays):
        if periodic:
            out[:, k] = _turned(x[:, k], delays[k] / step)
        elif even:
            out[:, k] = _interpolated(x[:, k], delays[k] / step)
        else:
            spline = scipy.interpolate.make_interp_spline(t, x[:, k], 3)
            out[:, k] = spline(np.clip(t + delays[k], t[0], t[-1]))
    return out


def _turned(x: Array, samples: float) -> Array:
    """A periodic signal shifted in phase."""
    spectrum = np.fft.rfft(x)
    phase = np.exp(2j * np.pi * np.fft.rfftfreq(len(x)) * samples)
    if len(x) % 2 == 0:
        phase[-1] = phase[-1].real
    return np.asarray(np.fft.irfft(phase * spectrum, n=len(x)))


def _interpolated(x: Array, samples: float) -> Array:
    """A signal on an even clock shifted by windowed-sinc interpolation."""
    whole = round(samples)
    rest = samples - whole
    place = np.arange(-REACH, REACH + 1) - rest
    window = np.i0(_KAISER * np.sqrt(np.maximum(1.0 - (place / (REACH + 1)) ** 2, 0.0)))
    taps = np.sinc(place) * window
    pad = REACH + abs(whole)
    if pad >= len(x):
        raise TooFew(f"{len(x)} samples are too few to be shifted by {samples:.3g}", "delay")
    padded = np.pad(x, pad, mode="reflect", reflect_type="odd")
    moved = np.convolve(padded, (taps / taps.sum())[::-1], mode="valid")
    first = abs(whole) + whole
    return np.asarray(moved[first : first + len(x)])
