"""A parameter of one unit over time: steps and drift, tested against scatter, with temperature as a nuisance.

A series y has the covariance V of its values. Under the null hypothesis it is constant, apart from the effect of
temperature. Candidates are a step after each date and a drift that starts at each date. The statistic of a candidate
is the cumulative sum (CUSUM) of the whitened innovations along it, in standard deviations: the generalized likelihood
ratio. The p-value of the largest one is bounded by the number of candidates times that of one (Bonferroni), which
holds for any dates and any correlation between candidates.

    statistic = c' V^-1 P y / sqrt(c' V^-1 P c) of a candidate c, with mean and nuisance projected out by P

Sources: Willsky and Jones, A Generalized Likelihood Ratio Approach to the Detection and Estimation of Jumps in Linear
Systems (1976); Basseville and Nikiforov, Detection of Abrupt Changes (1993).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["Found", "Line", "Series", "fit_line", "robust_variance", "segments_of"]

Array = NDArray[np.float64]

# Squares are cut at this many standard deviations in the estimate of a variance, so that few changed units do not
# count; 2.5 keeps 95 % of the efficiency of the mean square for normal noise.
_CUT = 2.5
# Part of a candidate that temperature and mean leave, below which it cannot be told from them.
_SAME = 1e-3


@dataclass(frozen=True, eq=False)
class Series:
    """One parameter of one unit over time.

    Attributes
    ----------
    days : ndarray, shape (n,)
        Time in days.
    values : ndarray, shape (n,)
        Values.
    covariance : ndarray, shape (n, n)
        Their covariance, with scatter from date to date.
    nuisance : ndarray, shape (n, k)
        Columns beside the mean that the null hypothesis allows, such as temperature.
    """

    days: Array
    values: Array
    covariance: Array
    nuisance: Array

    def part(self, start: int, stop: int) -> Series:
        """The dates from `start` to `stop`."""
        here = slice(start, stop)
        return Series(self.days[here], self.values[here], self.covariance[here, here], self.nuisance[here])


@dataclass(frozen=True)
class Found:
    """The strongest candidate of a series, or of a part of it.

    Attributes
    ----------
    start, stop : int
        Dates of the part.
    at : int
        First date after the step, or date at which the drift starts.
    drifts : bool
        Whether it is a drift, not a step.
    change, std : float
        Size of the step, or of the drift until the last date of the part, and its standard deviation.
    before : float
        Value before the change.
    statistic : float
        Change in standard deviations.
    p_value : float
        p-value, corrected for the number of candidates.
    """

    start: int
    stop: int
    at: int
    drifts: bool
    change: float
    std: float
    before: float
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Line:
    """A weighted straight line through a series: slope per day with its standard deviation."""

    slope: float
    std: float


def _whitened(series: Series) -> tuple[Array, Array, Array]:
    """Inverse root of the covariance, basis of mean and nuisance, and the whitened values without these."""
    lower = np.linalg.cholesky(series.covariance)
    n = len(series.values)
    null = scipy.linalg.solve_triangular(lower, np.column_stack([np.ones(n), series.nuisance]), lower=True)
    u, s, _ = np.linalg.svd(null / np.maximum(np.linalg.norm(null, axis=0), 1e-300), full_matrices=False)
    basis = u[:, s > 1e-9 * s[0]]
    y = scipy.linalg.solve_triangular(lower, series.values, lower=True)
    return np.asarray(lower), np.asarray(basis), np.asarray(y - basis @ (basis.T @ y))


def strongest(series: Series, freedom: float, start: int = 0) -> Found | None:
    """The strongest candidate, step or drift; None if there are too few dates."""
    n = len(series.values)
    steps = np.tri(n, n - 1, -1)  # column k is one from date k + 1 on
    # A drift from one of the last two dates on is a step.
    ramps = np.maximum(series.days[:, None] - series.days[None, : n - 2], 0.0) if n > 2 else np.zeros((n, 0))
    ramps = ramps / np.maximum(ramps[-1:], 1e-300)
    places = [*range(1, n), *range(ramps.shape[1])]
    return _best(series, np.column_stack([steps, ramps]), places, n - 1, freedom, start)


def _best(series: Series, columns: Array, places: list[int], steps: int, freedom: float, start: int) -> Found | None:
    """The strongest of some candidates (n, c), of which the first `steps` are steps and the others drifts."""
    n = len(series.values)
    if n < 2 or n <= 1 + series.nuisance.shape[1]:
        return None
    lower, basis, y = _whitened(series)
    white = scipy.linalg.solve_triangular(lower, columns, lower=True)
    rest = white - basis @ (basis.T @ white)
    power = np.sum(rest**2, axis=0)
    usable = power > _SAME**2 * np.sum(white**2, axis=0)
    if not usable.any():
        return None
    power = np.where(usable, power, np.inf)
    change = rest.T @ y / power
    z = np.abs(change) * np.where(usable, np.sqrt(power), 0.0)
    best = int(np.argmax(z))
    return Found(
        start=start,
        stop=start + n,
        at=start + places[best],
        drifts=best >= steps,
        change=float(change[best]),
        std=float(1.0 / np.sqrt(power[best])),
        before=_before(series, columns[:, best], float(change[best])),
        statistic=float(z[best]),
        p_value=min(1.0, int(usable.sum()) * 2.0 * float(scipy.stats.t.sf(z[best], freedom))),
    )


def _before(series: Series, column: Array, change: float) -> float:
    """Value before the change, at the mean of the nuisance."""
    weight = 1.0 / np.diag(series.covariance)
    design = np.column_stack([np.ones(len(weight)), series.nuisance - series.nuisance.mean(axis=0)])
    root = np.sqrt(weight)
    target = (series.values - column * change) * root
    return float(np.linalg.lstsq(design * root[:, None], target, rcond=None)[0][0])


def segments_of(series: Series, limit: float, freedom: float) -> list[Found]:
    """All changes of a series whose p-value is below a limit, in order of time.

    A step splits the series, and both parts are searched again; a drift ends the search of its part. Each step is then
    measured between the dates since the change before and those until the next one.
    """
    found = _split(series, limit, freedom, 0)
    edges = [0, *(one.at for one in found), len(series.values)]
    out = []
    for k, one in enumerate(found):
        start, stop = edges[k], edges[k + 2]
        alone = series.part(start, stop)
        column = (np.arange(start, stop) >= one.at).astype(float)[:, None]
        again = None if one.drifts else _best(alone, column, [one.at - start], 1, freedom, start)
        # The p-value is that of the search, which counts all candidates.
        out.append(one if again is None else replace(again, p_value=one.p_value))
    return out


def _split(series: Series, limit: float, freedom: float, start: int) -> list[Found]:
    best = strongest(series, freedom, start) if len(series.values) > 1 else None
    if best is None or best.p_value >= limit:
        return []
    if best.drifts:
        return [best]
    cut = best.at - start
    before = _split(series.part(0, cut), limit, freedom, start)
    after = _split(series.part(cut, len(series.values)), limit, freedom, best.at)
    return [*before, best, *after]


def fit_line(series: Series) -> Line | None:
    """Weighted regression on time with the nuisance removed; None if the dates do not determine a slope."""
    n = len(series.values)
    if n < 3 or np.ptp(series.days) == 0:
        return None
    lower, basis, y = _whitened(series)
    white = scipy.linalg.solve_triangular(lower, series.days - series.days.mean(), lower=True)
    rest = white - basis @ (basis.T @ white)
    power = float(rest @ rest)
    if power <= _SAME**2 * float(white @ white):
        return None
    return Line(float(rest @ y) / power, 1.0 / np.sqrt(power))


def robust_variance(differences: Array, known: Array) -> float:
    """Variance t >= 0 such that differences (n,) have the variances known (n,) + t, whatever a few of them do."""
    if not len(differences):
        return 0.0
    expected = _clipped_mean()

    def excess(t: float) -> float:
        return float(np.mean(np.minimum(differences**2 / (known + t), _CUT**2))) - expected

    if excess(0.0) <= 0.0:
        return 0.0
    high = float(np.max(differences**2)) + 1e-300
    if excess(high) > 0.0:
        high *= 100.0
    return float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-12 * high, rtol=1e-6))


def _clipped_mean() -> float:
    """Mean of min(x^2, cut^2) of a standard normal number."""
    tail = scipy.stats.norm.sf(_CUT)
    inside = 1.0 - 2.0 * tail - 2.0 * _CUT * scipy.stats.norm.pdf(_CUT)
    return float(inside + 2.0 * tail * _CUT**2)
