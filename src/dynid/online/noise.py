"""Size and correlation over time of the innovations of a stream, per channel, and rows that are whitened by them.

    e_i = r e_i-1 + n_i,    row_i <- (row_i - r row_i-1) / (std sqrt(1 - r^2)),    freedom = N (1 - r) / (1 + r)

Source: Cochrane and Orcutt, Application of Least Squares Regression to Relationships Containing Auto-Correlated Error
Terms (1949).
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import MissingData

__all__ = ["StreamNoise", "stream_noise"]

Array = NDArray[np.float64]

# Largest correlation of neighbouring rows that is taken out: beyond it, little would be left of a constant payload.
_LARGEST = 0.95
# Least noise relative to the innovations: the model of a simulated robot may be exact.
_LEAST = 1e-9
_FEWEST = 8
# Probability that the limit of the standard deviation of some channel is too low.
_CONFIDENCE = 1e-3


class StreamNoise:
    """Noise of the innovations: a process of first order per channel.

    Attributes
    ----------
    std : ndarray, shape (channel,)
        Standard deviation of an innovation, N m or N.
    correlation : ndarray, shape (channel,)
        Correlation of neighbouring rows.
    freedom : ndarray, shape (channel,)
        Number of independent rows from which they were learned.
    safety : ndarray, shape (channel,)
        Upper confidence limit of the standard deviation over its estimate.
    """

    def __init__(self, std: Array, correlation: Array, freedom: Array) -> None:
        self.std, self.correlation, self.freedom = std, correlation, freedom
        count = np.maximum(freedom, 1.0)
        self.safety = np.sqrt(count / scipy.stats.chi2.ppf(_CONFIDENCE / len(std), count))
        self._before: tuple[Array, Array, NDArray[np.bool_]] | None = None

    def whitened(self, X: Array, W: Array, moving: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Rows X (channel, k) and W (channel, b) of one instant less their part from that before, over the noise.

        Those of channels that do not move are left out; after a standstill a row has none before it.
        """
        r = np.zeros(len(self.std))
        if self._before is not None:
            r = np.where(self._before[2], self.correlation, 0.0)
        known = r > 0
        scale = 1.0 / (self.std * np.sqrt(1.0 - r**2))
        x, w = X, W
        if known.any():
            assert self._before is not None
            x, w = X - r[:, None] * self._before[0], W - r[:, None] * self._before[1]
        self._before = X.copy(), W.copy(), moving.copy()
        return (x * scale[:, None])[moving], (w * scale[:, None])[moving]


def stream_noise(X: Array, y: Array, moving: NDArray[np.bool_]) -> StreamNoise:
    """The noise of y (N, channel) about its fit by X (N, channel, k), where channels move (N, channel)."""
    channels = y.shape[1]
    size = np.sqrt(_mean_square(y, moving))
    std = np.where(size > 0, size, 1.0)
    for _ in range(3):
        weight = moving / std
        rows = (X * weight[:, :, None]).reshape(-1, X.shape[2])
        x = np.linalg.lstsq(rows, (y * weight).ravel(), rcond=1e-8)[0]
        left = y - X @ x
        std = np.maximum(np.sqrt(_mean_square(left, moving)), _LEAST * size)
    correlation, freedom = np.zeros(channels), np.zeros(channels)
    for c in range(channels):
        both = moving[1:, c] & moving[:-1, c]
        if not np.isfinite(std[c]):
            continue
        if both.sum() >= _FEWEST:
            product = np.mean(left[1:, c][both] * left[:-1, c][both]) / max(std[c] ** 2, 1e-300)
            correlation[c] = float(np.clip(product, 0.0, _LARGEST))
        freedom[c] = moving[:, c].sum() * (1 - correlation[c]) / (1 + correlation[c])
    if not freedom.any():
        raise MissingData("no joint moved while the noise was learned")
    return StreamNoise(std, correlation, freedom)


def _mean_square(x: Array, moving: NDArray[np.bool_]) -> Array:
    """Mean square (channel,) of the rows that move; infinite without any."""
    count = moving.sum(axis=0)
    return np.where(count > 0, np.sum(np.where(moving, x, 0.0) ** 2, axis=0) / np.maximum(count, 1), np.inf)
