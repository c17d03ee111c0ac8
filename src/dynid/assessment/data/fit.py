"""Least-squares tools of the checks: gain of a column in a signal, and delay of a signal against columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Delay", "Gain", "basis", "effective_rows", "find_delay", "gain_of"]

Array = NDArray[np.float64]

# Directions weaker than this share of the strongest unit column are rounding errors.
_WEAKEST = 1e-8
# Among delays whose residuals differ by less than this factor, the one nearest to zero is taken: periodic motion
# repeats the best fit at every period, and with the opposite sign at every half period.
_NEARLY_AS_GOOD = 1.1


@dataclass(frozen=True)
class Gain:
    """Coefficient of one column in a fit with others: value, standard deviation, and what it explains.

    `share` is the explained part of the variance that the other columns leave, `weight` the root mean square of the
    column projected off the others, `rest` that of the residual, `size` the standard deviation of the signal.
    """

    value: float
    std: float
    share: float
    weight: float
    rest: float
    size: float


@dataclass(frozen=True)
class Delay:
    """Delay (s) at which a signal is best explained, and its unexplained shares there and at zero delay."""

    seconds: float
    rest: float
    rest_at_zero: float


def basis(columns: Array) -> Array:
    """Orthonormal basis (N, k) of the span of columns of any scale, dependent ones included."""
    norms = np.linalg.norm(columns, axis=0)
    used = columns[:, norms > 0] / norms[norms > 0]
    u, s, _ = np.linalg.svd(used, full_matrices=False)
    return np.asarray(u[:, s > _WEAKEST * s[0]]) if s.size else np.zeros((len(columns), 0))


def effective_rows(rest: Array) -> float:
    """Number of independent rows that an autocorrelated residual is worth."""
    power = float(rest @ rest)
    correlation = float(rest[1:] @ rest[:-1]) / power if power > 0 else 0.0
    correlation = min(max(correlation, 0.0), 0.99)
    return len(rest) * (1.0 - correlation) / (1.0 + correlation)


def gain_of(column: Array, others: Array, y: Array) -> Gain:
    """Coefficient of `column` (N,) in y (N,) beside the nuisance columns `others` (N, k)."""
    q = basis(others)
    own, left = column - q @ (q.T @ column), y - q @ (q.T @ y)
    rows = len(y)
    power = float(own @ own)
    # A column inside the span of the others leaves only rounding errors.
    tiny = power <= _WEAKEST**2 * float(column @ column) or power == 0.0
    value = 0.0 if tiny else float(own @ left) / power
    rest = left - value * own
    worth = max(effective_rows(rest), 2.0)
    sigma = np.inf if tiny else float(np.sqrt(rest @ rest / power / worth))
    total = float(left @ left)
    share = 1.0 - float(rest @ rest) / total if total > 0 else 0.0
    weight = 0.0 if tiny else float(np.sqrt(power / rows))
    return Gain(value, sigma, share, weight, float(np.sqrt(rest @ rest / rows)), float(np.std(y)))


def find_delay(
    columns: Array, y: Array, step: float, longest: float, rows: NDArray[np.bool_] | None = None, centered: bool = True
) -> Delay:
    """Delay of y (N,) against the columns (N, k), of at most `longest` seconds, to a fraction of a step.

    `rows` (N,) selects rows of the columns. Shares are of the variance of y if `centered`, else of its mean square.
    """
    reach = max(1, min(round(longest / step), len(y) // 4))
    used = np.arange(reach, len(y) - reach)
    if rows is not None and np.count_nonzero(rows[used]) > 2 * columns.shape[1]:
        used = used[rows[used]]
    q = basis(columns[used])
    rest = np.empty(2 * reach + 1)
    for k in range(2 * reach + 1):
        part = y[used + (k - reach)]
        power = float(part @ part) - (len(part) * float(part.mean()) ** 2 if centered else 0.0)
        left = part - q @ (q.T @ part)
        rest[k] = min(1.0, float(left @ left) / power) if power > 0 else 1.0
    lowest = float(rest.min())
    padded = np.concatenate([[np.inf], rest, [np.inf]])
    valley = (rest <= padded[:-2]) & (rest <= padded[2:]) & (rest <= _NEARLY_AS_GOOD * lowest + 1e-12)
    lags = np.flatnonzero(valley)
    k = int(lags[np.argmin(np.abs(lags - reach))])
    shift = 0.0
    if 0 < k < 2 * reach:
        bend = rest[k - 1] - 2 * rest[k] + rest[k + 1]
        shift = 0.5 * (rest[k - 1] - rest[k + 1]) / bend if bend > 0 else 0.0
    return Delay(float((k - reach + shift) * step), float(rest[k]), float(rest[reach]))
