"""Autocorrelation of decimated white noise: the decimation filter narrows its band, so rows are correlated.

    r_k = sum of c_i c_i+k / sum of c_i^2 for the weights c of the noise in decimated samples,
    N cov(r_i, r_j) = sum over m >= 1 of (r_m+i + r_m-i - 2 r_i r_m) (r_m+j + r_m-j - 2 r_j r_m).

Source: Bartlett, On the Theoretical Specification and Sampling Properties of Autocorrelated Time-Series (1946), for the
covariance of estimated autocorrelations.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynid.signals.filters import decimate

__all__ = ["correlation_covariance", "decimated_noise", "independent_share"]

Array = NDArray[np.float64]

# Lags after which the autocorrelation has vanished, and the decimation factor for which it is computed: the shape of
# the filter hardly depends on the factor.
_LAGS = 200
_FACTOR = 10


@lru_cache(maxsize=1)
def decimated_noise() -> Array:
    """Autocorrelation of decimated white noise at lags 0, 1, ..., (201,)."""
    samples = 4 * _LAGS * _FACTOR
    # White noise is a sum of impulses; one impulse per phase between two kept samples is filtered.
    impulses = np.zeros((samples, _FACTOR))
    impulses[samples // 2 + np.arange(_FACTOR), np.arange(_FACTOR)] = 1.0
    kept = decimate(impulses, (_FACTOR,))
    power = np.array([np.sum(kept[: len(kept) - k] * kept[k:]) for k in range(_LAGS + 1)])
    return np.asarray(power / power[0])


def independent_share() -> float:
    """Independent rows per decimated row of white noise, for a regressor column that changes slowly."""
    return float(1.0 / (1.0 + 2.0 * decimated_noise()[1:].sum()))


def correlation_covariance(correlation: Array, lags: int) -> Array:
    """Covariance of estimated autocorrelations times the number of pairs, by Bartlett's formula.

    Parameters
    ----------
    correlation : ndarray (m,)
        True autocorrelations from lag 0 to the lag at which they have vanished.
    lags : int
        Number of lags, from lag 1.

    Returns
    -------
    ndarray (lags, lags)
    """
    rho = np.concatenate([correlation, np.zeros(2 * lags)])
    m = np.arange(1, len(correlation) + lags)
    terms = np.array([rho[m + i] + rho[np.abs(m - i)] - 2.0 * rho[i] * rho[m] for i in range(1, lags + 1)])
    return np.asarray(terms @ terms.T)
