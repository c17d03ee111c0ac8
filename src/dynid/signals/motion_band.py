"""The band of a motion: which frequencies of recorded positions are motion, and which are noise.

Inertia is identified from accelerations, so motion and noise are compared by acceleration power. White noise of the
positions, quantisation, clock jitter and their colored forms have in common that their acceleration power increases
with frequency. Power that decreases again at higher frequencies is motion, whatever its amplitude.

    acceleration power = (2 pi f)^4 power of q,    band = argmin of it above the peak of the motion / sqrt(2)

Source: own rule; Welch, The Use of Fast Fourier Transform for the Estimation of Power Spectra (1967), for the spectrum.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = [
    "HIGHEST_BAND",
    "LOWEST_BAND",
    "SMALLEST_ANGLE",
    "SMALLEST_LENGTH",
    "motion_band",
    "moving_columns",
    "noise_range",
]

Array = NDArray[np.float64]

# A joint moves if its range is larger than this, in rad and m, and larger than its own noise.
SMALLEST_ANGLE, SMALLEST_LENGTH = 0.01, 0.001
# The range of white noise is below ten standard deviations for a million samples.
_ABOVE_NOISE = 12.0
# Differences of this order remove the motion and keep white noise, whose variance they multiply by (2k)! / k!^2.
_DIFFERENCES, _DIFFERENCES_GAIN = 6, np.sqrt(924.0)
_FEWEST = 32
# Band in Hz below which friction steps are not resolved.
LOWEST_BAND = 8.0
# Largest band as a share of the rate: the low-pass of the positions lies an octave above it, below the Nyquist
# frequency, and differences of five points are accurate to a percent there.
HIGHEST_BAND = 0.2
# Joints that move less than this share of the largest range do not decide where noise begins.
_LARGE_SHARE = 0.05
# Seconds of a segment of the spectrum.
_SEGMENT = 4.0
# Probability of a line that is noise, in the whole spectrum of one joint.
_LEVEL = 1e-3
# Share of the acceleration power that may be left above the band. Attenuated by any amount, it biases an inertia by a
# quarter of this share at most.
_LEFT_OUT = 0.01
# Admissible share of noise in the acceleration power of a band with fast motion, and where markers give the positions:
# noise in the regressor biases least squares by about this share.
_NOISE_SHARE, _MARKER_NOISE_SHARE = 3e-3, 1e-3
# The band ends above the highest line, by the resolution of the spectrum.
_MARGIN = 1.25
# Estimated spectra of white noise stay below this multiple of their mean.
_ABOVE_FLOOR = 3.0


def noise_range(q: Array) -> Array:
    """Range (k,) that the white noise of positions (N, k) would have, from their differences of high order."""
    if len(q) < _FEWEST or not q.shape[1]:
        return np.zeros(q.shape[1])
    size = np.abs(np.diff(q, _DIFFERENCES, axis=0))
    return np.asarray(_ABOVE_NOISE * np.percentile(size, 90.0, axis=0) / (1.645 * _DIFFERENCES_GAIN))


def moving_columns(q: Array, smallest: float | Array) -> NDArray[np.bool_]:
    """Which columns of positions (N, k) move: by more than `smallest`, and by more than their own noise."""
    span = np.ptp(q, axis=0)
    return np.asarray((span > smallest) & (span > noise_range(q)))


def motion_band(q: Array, rate: float, friction: bool = True) -> float:
    """Band of frequencies that holds the motion and as little noise of the accelerations as possible.

    In the spectrum of the acceleration, motion decreases towards high frequencies, and noise increases whatever its
    origin: quantisation, clock jitter and vibration alike. Between the two the spectrum has a minimum, and the band
    ends half an octave below it: the median over the joints that move. It is never below 8 Hz, which friction steps
    require, and it contains the motion of every joint: all lines and bands with significant acceleration power, up to
    the last percent of it, as far as the noise below them is less than 0.3 % of that power.

    Without friction in the measurements, as on a force plate, both lower limits are reduced (to the highest line of the
    motion at most) where white noise of the positions, as of markers, would be more than a thousandth of the variance
    of the acceleration.

    Parameters
    ----------
    q : ndarray (N, joint)
        Positions.
    rate : float
        Sampling rate in Hz.
    friction : bool
        Whether the measurements contain joint friction.

    Returns
    -------
    float
        End of the band in Hz, at most a fifth of the rate.
    """
    highest = HIGHEST_BAND * rate
    moving = moving_columns(q, SMALLEST_LENGTH) if len(q) >= _FEWEST else np.zeros(q.shape[1], dtype=bool)
    if not moving.any():
        return 0.125 * rate
    frequency, power, segments = _spectrum(q[:, moving], rate)
    fourth = frequency[:, None] ** 4
    grid = np.geomspace(max(frequency[1], min(0.3, frequency[-1] / 4)), frequency[-1], 120)
    acceleration = _half_octaves(power * fourth, frequency, grid)
    lines = _motion_lines(frequency, power, grid, acceleration, segments)
    # Power above the white noise floor is motion; the noise alone may have more velocity energy than a slow motion.
    floor = power[frequency > 0.5 * frequency[-1]].mean(axis=0)
    motion = np.where(power > _ABOVE_FLOOR * floor, power - floor, 0.0)
    peak = np.argmax(_half_octaves(motion * fourth, frequency, grid) / grid[:, None], axis=0)  # velocity energy
    valley = np.array([grid[k + int(np.argmin(x[k:]))] for k, x in zip(peak, acceleration.T, strict=True)])
    span = np.ptp(q[:, moving], axis=0)
    middle = float(np.median(valley[span >= _LARGE_SHARE * span.max()])) / np.sqrt(2)
    if friction:
        lowest = max(min(LOWEST_BAND, highest), _MARGIN * float(lines.max()))
        return float(min(max(middle, lowest), highest))
    motion[frequency[:, None] > valley] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # no noise floor, or no motion above it
        share = 5.0 * _MARKER_NOISE_SHARE * frequency[1] * np.sum(motion * fourth, axis=0) / floor
    quiet = np.nan_to_num(share, posinf=np.inf) ** 0.2
    wide = np.minimum(_MARGIN * lines, np.maximum(quiet, lines))
    lowest = max(min(LOWEST_BAND, highest, float(np.median(quiet))), float(wide.max()))
    return float(min(max(middle, lowest), highest))


def _spectrum(q: Array, rate: float) -> tuple[Array, Array, float]:
    """Frequencies (m,) and power (m, joint) of positions, and how many independent segments it is the mean of."""
    length = min(len(q), max(64, int(_SEGMENT * rate)))
    frequency, power = scipy.signal.welch(q.T, fs=rate, window="blackmanharris", nperseg=length, detrend=_without_line)
    # Segments overlap by half; the window is narrow, so that nearly all of them are independent.
    return frequency, power.T, max(1.0, 0.7 * (2 * len(q) // length - 1))


def _without_line(segments: Array) -> Array:
    """Rows without the straight line that fits them best; far faster than a general least squares fit."""
    place = np.arange(segments.shape[-1]) - 0.5 * (segments.shape[-1] - 1)
    centred = segments - segments.mean(axis=-1, keepdims=True)
    return np.asarray(centred - (centred @ place / (place @ place))[..., None] * place)


def _motion_lines(frequency: Array, power: Array, grid: Array, acceleration: Array, segments: float) -> Array:
    """Highest frequency (joint,) with relevant acceleration power that noise does not hide; zero without any."""
    # Noise has no more acceleration power than any higher frequency shows.
    least = np.minimum.accumulate(acceleration[::-1], axis=0)[::-1]
    fourth = np.maximum(frequency, frequency[1])[:, None] ** 4
    noise = np.array([np.interp(frequency, grid, x) for x in least.T]).T
    freedom = 2.0 * segments
    above = scipy.stats.chi2.ppf(1.0 - _LEVEL / len(frequency), freedom) / freedom
    motion = np.where(power * fourth > above * noise, power * fourth - noise, 0.0)
    out = np.zeros(power.shape[1])
    clear = np.cumsum(noise, axis=0) <= _NOISE_SHARE * np.cumsum(motion, axis=0)
    for j in np.flatnonzero(np.any(clear & (motion > 0), axis=0)):
        last = int(np.flatnonzero(clear[:, j] & (motion[:, j] > 0))[-1])
        tail = np.cumsum(motion[last::-1, j])[::-1]
        out[j] = frequency[np.flatnonzero(tail > _LEFT_OUT * tail[0])[-1]]
    return out


def _half_octaves(power: Array, frequency: Array, grid: Array) -> Array:
    """Means over half octaves, which smooth the lines of a periodic motion and the scatter of the spectrum."""
    first, last = np.searchsorted(frequency, [grid / 2**0.25, grid * 2**0.25])
    last = np.maximum(last, first + 1)
    total = np.vstack([np.zeros(power.shape[1]), np.cumsum(power, axis=0)])
    return np.asarray((total[last] - total[first]) / (last - first)[:, None])
