"""Essential parameters by a global search: branch and bound over the subsets of the base parameters.

Removing column i from a fit with values x and covariance C (up to the noise) raises the sum of squares by x_i^2 / C_ii
and changes x and C by one elimination step, so a subset costs no new fit. Sums of squares only rise when columns are
removed: what a set leaves is a bound for all its subsets. The work is counted in subsets, not in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["SUBSETS", "Choice", "best_by_f_test", "best_within_ratio"]

Array = NDArray[np.float64]

# Subsets that are looked at unless told otherwise.
SUBSETS = 20_000


@dataclass(frozen=True)
class Choice:
    """Columns that are kept, in order; `proven` if every other choice was ruled out."""

    kept: tuple[int, ...]
    proven: bool


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit with some columns: their indices, values, covariance (up to the noise) and sum of squares."""

    columns: tuple[int, ...]
    values: Array
    covariance: Array
    squares: float

    @property
    def rises(self) -> Array:
        """How much the sum of squares rises when each column alone is removed."""
        return np.asarray(self.values**2 / np.diag(self.covariance))

    def without(self, place: int) -> _Fit:
        """The fit without the column at a place, by one elimination step."""
        row, pivot = self.covariance[place], self.covariance[place, place]
        values = self.values - row * (self.values[place] / pivot)
        covariance = self.covariance - np.outer(row, row) / pivot
        left = np.delete(np.arange(len(self.columns)), place)
        return _Fit(
            tuple(self.columns[k] for k in left),
            values[left],
            covariance[np.ix_(left, left)],
            self.squares + float(self.values[place] ** 2 / pivot),
        )


def _full(factor: Array) -> _Fit:
    """The fit with all columns of a triangular factor [R z]."""
    count = factor.shape[1] - 1
    r = scipy.linalg.qr(factor, mode="r")[0][: count + 1]
    inverse = scipy.linalg.solve_triangular(r[:count, :count], np.eye(count))
    squares = float(r[count, count] ** 2) if len(r) > count else 0.0
    return _Fit(tuple(range(count)), inverse @ r[:count, count], inverse @ inverse.T, squares)


def _searched(
    full: _Fit,
    cost: Callable[[_Fit], float],
    bound: Callable[[_Fit, frozenset[int]], float],
    first: tuple[int, ...],
    subsets: int,
) -> Choice:
    """The subset of least cost. `bound` is below the cost of every subset that contains the columns that stay."""
    start = full
    for column in sorted(set(full.columns) - set(first)):
        start = start.without(start.columns.index(column))
    best, kept = cost(start), start.columns
    waiting: list[tuple[_Fit, frozenset[int]]] = [(full, frozenset())]
    left = subsets
    while waiting:
        if left == 0:
            return Choice(kept, False)
        left -= 1
        fit, staying = waiting.pop()
        value = cost(fit)
        if value < best:
            best, kept = value, fit.columns
        free = [k for k, column in enumerate(fit.columns) if column not in staying]
        if not free or len(fit.columns) == 1 or bound(fit, staying) >= best:
            continue
        # The column that is missed least: removed first, and kept in the other branch.
        place = min(free, key=lambda k: fit.rises[k])
        waiting.append((fit, staying | {fit.columns[place]}))
        waiting.append((fit.without(place), staying))
    return Choice(kept, True)


def best_by_f_test(factor: Array, freedom: int, price: float, first: tuple[int, ...], subsets: int) -> Choice:
    """The subset with the least sum of squares over the noise variance plus a price for each parameter.

    With the limit of the F-test as price, whatever is left out explains less than the test asks of so many parameters,
    and everything that is kept explains more. The noise is that of the fit with all columns.
    """
    full = _full(factor)
    noise = max(full.squares / freedom, 1e-300)

    def cost(fit: _Fit) -> float:
        return fit.squares / noise + price * len(fit.columns)

    def bound(fit: _Fit, staying: frozenset[int]) -> float:
        free = [k for k, column in enumerate(fit.columns) if column not in staying]
        size = np.sqrt(np.diag(fit.covariance)[free])
        # Removing a set R raises the squares by t' K^-1 t >= |t|^2 / (largest eigenvalue), K the correlations of R.
        top = float(np.linalg.eigvalsh(fit.covariance[np.ix_(free, free)] / np.outer(size, size))[-1])
        gains = np.minimum(price, fit.rises[free] / (noise * top))
        return fit.squares / noise + price * len(staying) + float(gains.sum())

    return _searched(full, cost, bound, first, subsets)


def best_within_ratio(factor: Array, ratio: float, first: tuple[int, ...], subsets: int) -> Choice:
    """The subset with the least sum of squares among those whose relative standard deviations lie within a ratio."""
    full = _full(factor)

    def within(fit: _Fit) -> bool:
        relative = np.sqrt(np.diag(fit.covariance)) / np.maximum(np.abs(fit.values), 1e-300)
        return bool(relative.max() <= ratio * relative.min())

    def cost(fit: _Fit) -> float:
        return fit.squares if within(fit) else np.inf

    def bound(fit: _Fit, staying: frozenset[int]) -> float:
        # A subset of one that satisfies the ratio leaves more; otherwise at least one more column goes.
        free = [k for k, column in enumerate(fit.columns) if column not in staying]
        return fit.squares if within(fit) else fit.squares + float(fit.rises[free].min())

    return _searched(full, cost, bound, first, subsets)
