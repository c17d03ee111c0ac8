"""The colour that decimation gives to white noise: its filter keeps part of the band, and rows hang together."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynid.signals.filters import decimate

__all__ = ["correlation_covariance", "decimated_noise", "independent_share"]

Array = NDArray[np.float64]

# Lags after which the noise has forgotten everything, and the decimation factor they are taken from: the shape of the
# filter hardly depends on the factor.
_MEMORY = 200
_FACTOR = 10


@lru_cache(maxsize=1)
def decimated_noise() -> Array:
    """Autocorrelation of decimated white noise at lags 0, 1, ..., (201,)."""
    samples = 4 * _MEMORY * _FACTOR
    # White noise is a sum of impulses; those that fall between two kept samples are filtered one by one.
    impulses = np.zeros((samples, _FACTOR))
    impulses[samples // 2 + np.arange(_FACTOR), np.arange(_FACTOR)] = 1.0
    kept = decimate(impulses, (_FACTOR,))
    power = np.array([np.sum(kept[: len(kept) - k] * kept[k:]) for k in range(_MEMORY + 1)])
    return np.asarray(power / power[0])


def independent_share() -> float:
    """How many independent rows one decimated row of white noise is worth to a slowly changing column."""
    return float(1.0 / (1.0 + 2.0 * decimated_noise()[1:].sum()))


def correlation_covariance(correlation: Array, lags: int) -> Array:
    """Covariance (lags, lags) of estimated autocorrelations times the number of pairs, by Bartlett's formula.

    `correlation` holds the true ones from lag 0 to where they have vanished.
    """
    rho = np.concatenate([correlation, np.zeros(2 * lags)])
    m = np.arange(1, len(correlation) + lags)
    terms = np.array([rho[m + i] + rho[np.abs(m - i)] - 2.0 * rho[i] * rho[m] for i in range(1, lags + 1)])
    return np.asarray(terms @ terms.T)
