"""How many independent rows an autocorrelated residual is worth.

    n_independent = N / (1 + 2 sum of r_k),    r_k = sum of e_i e_i+k / sum of e_i^2

Source: Geyer, Practical Markov Chain Monte Carlo (1992), for the end of the sum at the first pair that is not positive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.signals.spacing import checked_index, positions

__all__ = ["independent_rows"]

Array = NDArray[np.float64]

# A shorter residual does not show its autocorrelation.
_FEWEST = 8
# Lags whose products are computed one by one, an even number.
_FEW = 48


def independent_rows(residual: Array, index: ArrayLike | None = None) -> float:
    """Effective number of independent rows of a residual: N over the sum of its positive autocorrelations.

    The sum ends at the first pair of lags whose autocorrelations are not positive.

    Parameters
    ----------
    residual : array of shape (N,)
        Residual in order of time.
    index : array of shape (N,), optional
        Sample numbers of the rows, where rows were left out or several runs follow each other; by default the rows are
        consecutive.

    Returns
    -------
    float
        At most N.

    Examples
    --------
    >>> import numpy as np
    >>> held = np.repeat(np.random.default_rng(0).normal(size=400), 10)  # every value is held for ten rows
    >>> bool(300 < independent_rows(held) < 500)
    True
    """
    count = len(residual)
    power = float(residual @ residual)
    if power == 0.0 or count < _FEWEST:
        return float(count)
    lags = count // 4
    place = positions(checked_index(index, count), lags)
    dense = np.zeros(int(place[-1]) + 1)
    dense[place] = residual
    # The sum mostly ends after a few lags, long before a Fourier transform of all of them would pay.
    total = 0.0
    for lag in range(0, min(_FEW, lags - 1), 2):
        pair = sum(float(dense[: len(dense) - k] @ dense[k:]) for k in (lag, lag + 1)) / power
        if pair <= 0:
            return count / max(2.0 * total - 1.0, 1.0)
        total += pair
    if lags > _FEW:
        size = 1 << (len(dense) + lags).bit_length()
        rho = np.fft.irfft(np.abs(np.fft.rfft(dense, size)) ** 2, size)[:lags] / power
        pairs = rho[_FEW : 2 * (lags // 2)].reshape(-1, 2).sum(axis=1)
        total += float(pairs[: int(np.argmax(pairs <= 0))].sum() if np.any(pairs <= 0) else pairs.sum())
    return count / max(2.0 * total - 1.0, 1.0)
