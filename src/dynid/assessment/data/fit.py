"""Small least-squares tools of the checks: what columns explain of a signal, and at which delay they do it best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Delay", "Gain", "basis", "effective_rows", "find_delay", "gain_of"]

Array = NDArray[np.float64]

# Directions weaker than this share of the strongest unit column are rounding, not information.
_WEAKEST = 1e-8
# A delay is taken nearer to zero if it leaves at most this much more of the signal unexplained: periodic motion repeats
# the best fit at every period, and with the sign turned at every half.
_NEARLY_AS_GOOD = 1.1


@dataclass(frozen=True)
class Gain:
    """Factor of one column in a fit among others: value, standard deviation, and what it explains.

    share: of the signal's variance that the other columns leave. weight: size (root mean square) of the column's own
    part, what the other columns cannot mimic. rest: size of what nothing explains. size: of the signal about its mean.
    """

    value: float
    std: float
    share: float
    weight: float
    rest: float
    size: float


@dataclass(frozen=True)
class Delay:
    """Delay (s) at which a signal is best explained, and the unexplained shares of it there and at zero."""

    seconds: float
    rest: float
    rest_at_zero: float


def basis(columns: Array) -> Array:
    """Orthonormal basis (N, k) of the span of columns, whatever their units and dependencies."""
    norms = np.linalg.norm(columns, axis=0)
    used = columns[:, norms > 0] / norms[norms > 0]
    u, s, _ = np.linalg.svd(used, full_matrices=False)
    return np.asarray(u[:, s > _WEAKEST * s[0]]) if s.size else np.zeros((len(columns), 0))


def effective_rows(rest: Array) -> float:
    """How many independent rows a residual that remembers its past is worth."""
    power = float(rest @ rest)
    memory = float(rest[1:] @ rest[:-1]) / power if power > 0 else 0.0
    memory = min(max(memory, 0.0), 0.99)
    return len(rest) * (1.0 - memory) / (1.0 + memory)


def gain_of(column: Array, others: Array, y: Array) -> Gain:
    """Factor of `column` (N,) in y (N,) beside the nuisance columns `others` (N, k)."""
    q = basis(others)
    own, left = column - q @ (q.T @ column), y - q @ (q.T @ y)
    rows = len(y)
    power = float(own @ own)
    # What rounding leaves of a column inside the span of the others is no information.
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
    columns: Array, y: Array, step: float, longest: float, rows: NDArray[np.bool_] | None = None, centred: bool = True
) -> Delay:
    """Delay of y (N,) against the columns (N, k), of at most `longest` seconds, to a fraction of a step.

    rows (N,): which rows of the columns count. centred: whether shares are of the variance or of the mean square of y.
    """
    reach = max(1, min(round(longest / step), len(y) // 4))
    used = np.arange(reach, len(y) - reach)
    if rows is not None and np.count_nonzero(rows[used]) > 2 * columns.shape[1]:
        used = used[rows[used]]
    q = basis(columns[used])
    rest = np.empty(2 * reach + 1)
    for k in range(2 * reach + 1):
        part = y[used + (k - reach)]
        power = float(part @ part) - (len(part) * float(part.mean()) ** 2 if centred else 0.0)
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
