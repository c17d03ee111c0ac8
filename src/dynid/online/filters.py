"""Causal filters with the same delay on both sides of the equation torque = Y(q, v, a) pi.

Positions pass a low-pass with linear phase: a symmetric impulse response of finite length, and antisymmetric and
symmetric ones for the first and the second derivative. All three delay by exactly half of their length, whatever the
frequency. The torques are delayed by as many samples, so that regressor and torque belong to the same instant.

Then every regressor column and the torque pass the same recursive low-pass. The equation is linear in the parameters,
so F[torque] = F[Y] pi holds exactly: this filter causes no bias, neither by its phase nor by its initial state.

    q(t - m / rate) = sum of h_k q_k,    v = rate (h * first) q,    a = rate^2 (h * second) q,    F[torque] = F[Y] pi

with the antisymmetric and symmetric differences `first` and `second` of nine points.

Sources: Oppenheim and Schafer, Discrete-Time Signal Processing (2010), for linear phase and the Kaiser window;
Fornberg, Generation of Finite Difference Formulas on Arbitrarily Spaced Grids (1988), for the differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import InvalidValue, TooLarge
from dynid.signals.motion_band import HIGHEST_BAND, LOWEST_BAND

__all__ = ["CausalFilters", "causal_filters"]

Array = NDArray[np.float64]

# Attenuation in dB of the low-pass of the positions above 1.5 times its cut-off frequency. Below half of it, the gain
# differs from one by no more than a thousandth.
_ATTENUATION = 60.0
# Order of the recursive low-pass, and how many rows per second there are for each Hz of its band.
_ORDER = 4
_ROWS_PER_BAND = 2.5
# Central differences of nine points for the first and the second derivative. At a tenth of the rate they are accurate
# to 1e-4, where those of five points lose half a percent of a velocity and one percent of an acceleration.
_RISING = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
_CURVED = np.array([8 / 5, -1 / 5, 8 / 315, -1 / 560])
_FIRST = np.r_[-_RISING[::-1], 0.0, _RISING]
_SECOND = np.r_[_CURVED[::-1], -205 / 72, _CURVED]
# Longest impulse response, samples.
_LONGEST = 4096


@dataclass(frozen=True, eq=False)
class CausalFilters:
    """The filters of a stream of samples.

    Attributes
    ----------
    rate : float
        Samples per second, Hz.
    cutoff : float
        Frequency in Hz at which the low-pass of the positions has a gain of one half.
    taps : ndarray, shape (3, 2 m + 1)
        Impulse responses of the low-pass and of its first and second derivative, the newest sample last.
    sections : ndarray, shape (s, 6)
        Second-order sections of the low-pass that torques and regressor columns share.
    step : int
        Samples per row.
    """

    rate: float
    cutoff: float
    taps: Array
    sections: Array
    step: int

    @property
    def lag(self) -> int:
        """Samples by which positions and torques are delayed alike."""
        return self.taps.shape[1] // 2

    @property
    def delay(self) -> float:
        """Seconds between a motion and its row: the lag, and the delay of the shared low-pass at low frequency."""
        b, a = scipy.signal.sos2tf(self.sections)
        # The group delay at zero frequency is that of the numerator less that of the denominator.
        own = b @ np.arange(len(b)) / b.sum() - a @ np.arange(len(a)) / a.sum()
        return float((self.lag + own) / self.rate)

    @property
    def row_rate(self) -> float:
        """Rows per second of a joint that moves, Hz."""
        return self.rate / self.step


def causal_filters(rate: float, cutoff: float | None = None) -> CausalFilters:
    """Design the filters of a stream.

    Parameters
    ----------
    rate : float
        Samples per second, Hz.
    cutoff : float, optional
        Cut-off frequency in Hz of the positions; rows keep the band up to half of it. By default 16 Hz, the least of
        the automatic cut-off of `Signals`, or two fifths of a low rate.

    Returns
    -------
    CausalFilters

    Raises
    ------
    DataError
        If the rate is not positive, or the cut-off frequency is not between zero and two fifths of the rate.
    """
    if not rate > 0 or not np.isfinite(rate):
        raise InvalidValue(f"the rate must be a positive number of samples per second, got {rate}", "rate")
    highest = 2.0 * HIGHEST_BAND * rate
    corner = min(2.0 * LOWEST_BAND, highest) if cutoff is None else float(cutoff)
    if not 0 < corner <= highest * (1 + 1e-9):
        raise InvalidValue(
            f"the cut-off must lie between 0 and {highest:g} Hz (two fifths of the rate), got {corner:g}", "cutoff"
        )
    count, shape = scipy.signal.kaiserord(_ATTENUATION, 2.0 * corner / rate)
    half = max(int(np.ceil((count - 1) / 2)), 2)
    if 2 * half + 1 > _LONGEST:
        raise TooLarge(
            f"a cut-off of {corner:g} Hz at {rate:g} Hz needs more than {_LONGEST} samples: decimate first", "cutoff"
        )
    smooth = scipy.signal.firwin(2 * half + 1, corner, window=("kaiser", shape), fs=rate)
    reach = len(_FIRST) // 2
    padded = np.pad(smooth, reach)
    taps = np.vstack([padded, rate * np.convolve(smooth, _FIRST), rate**2 * np.convolve(smooth, _SECOND)])
    band = 0.5 * corner
    sections = scipy.signal.butter(_ORDER, band, fs=rate, output="sos")
    return CausalFilters(rate, corner, taps, sections, max(1, int(rate / (_ROWS_PER_BAND * band))))
