"""Tests of residuals: whiteness, normality and homoscedasticity, with correlograms.

    Ljung-Box      (N + 2) / N times the sum of n_k r_k^2 ~ chi2(lags), with the n_k pairs of rows at lag k
    Jarque-Bera    N / 6 (skewness^2 + (kurtosis - 3)^2 / 4) ~ chi2(2)
    Breusch-Pagan  N R^2 of the regression of e^2 on the explanatory columns ~ chi2(columns)

Decimated white noise is compared with its own autocorrelations, with the covariance of Bartlett's formula.

Sources: Ljung and Box, On a Measure of Lack of Fit in Time Series Models (1978); Jarque and Bera, Efficient Tests for
Normality, Homoscedasticity and Serial Independence of Regression Residuals (1980); Breusch and Pagan, A Simple Test for
Heteroscedasticity and Random Coefficient Variation (1979), in the studentised form of Koenker, A Note on Studentizing a
Test for Heteroscedasticity (1981).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    InvalidShape,
    InvalidValue,
    MissingArgument,
    MissingData,
    NotApplicable,
    NotFinite,
    NotIdentifiable,
    TooFew,
    named,
)
from dynid.hypothesis import Correction, Hypothesis, HypothesisTest, TestCode, chi2_tail, tests_frame
from dynid.identification.estimators.least_squares import joint_noise
from dynid.identification.observation import Observation
from dynid.markup import HtmlFrame
from dynid.results import Result, about
from dynid.signals.noise_color import correlation_covariance, decimated_noise, independent_share
from dynid.signals.spacing import checked_index, positions, usual_step

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Correlogram",
    "ResidualTests",
    "Residuals",
    "correlogram",
    "homoscedasticity",
    "independent_rows",
    "normality",
    "residual_tests",
    "residuals_of",
    "whiteness",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Tail = tuple[float, str, float]

_MOST_LAGS = 20
_VARIANCE = 0.1

_WHITE = Hypothesis(
    TestCode.WHITENESS,
    "whiteness of the residual (Ljung-Box)",
    "the residual is not autocorrelated",
    "no autocorrelation is seen",
    "the residual is autocorrelated",
    "standard deviations that treat rows as independent are valid",
    "decimate more if rows are closer than the motion needs; if the autocorrelation remains, a term is missing "
    "(missing_effects), and standard deviations that treat rows as independent are too small",
)
_NORMAL = Hypothesis(
    TestCode.NORMALITY,
    "normality of the residual (Jarque-Bera)",
    "the residual is normally distributed",
    "no departure from the normal distribution is seen",
    "the residual is not normally distributed",
    "confidence intervals are valid as they are",
    "look for outliers (method irls) and for friction near standstill (min_velocity); with many rows the estimate is "
    "still normally distributed, and mild departures do no harm",
)
_EVEN = Hypothesis(
    TestCode.HOMOSCEDASTICITY,
    "constant variance of the residual (Breusch-Pagan, studentised)",
    "the variance of the residual does not depend on the torque",
    "no change of the variance is seen",
    "the variance changes with the torque",
    "one standard deviation per joint is enough",
    "the noise grows with the load, or a term is missing where torques are large: use robust covariances, or weight "
    "rows by load",
)


@dataclass(frozen=True, eq=False)
class Correlogram(Result):
    """Autocorrelation and partial autocorrelation of a residual at lags 1, 2, ..."""

    autocorrelation: Array = field(
        metadata=about("Autocorrelation and partial autocorrelation of the residual.", size=("lag",))
    )
    partial: Array = field(
        metadata=about("Autocorrelation and partial autocorrelation of the residual.", size=("lag",))
    )
    expected: Array = field(
        metadata=about("The same of white noise: zero, or that of decimated white noise.", size=("lag",))
    )
    expected_partial: Array = field(
        metadata=about("The same of white noise: zero, or that of decimated white noise.", size=("lag",))
    )
    pairs: Index = field(metadata=about("Number of pairs of rows at each lag."))
    limits: Array = field(
        metadata=about(
            "Half width of the confidence band of white noise, 1.96 / sqrt(pairs) at a level of 5 %.", size=("lag",)
        )
    )
    rows: int = field(metadata=about("Number of rows of the residual."))

    @property
    def outside(self) -> tuple[int, ...]:
        """Lags at which the autocorrelation leaves its confidence band; one in twenty does by chance at 5 %."""
        return tuple(int(k) + 1 for k in np.flatnonzero(np.abs(self.autocorrelation - self.expected) > self.limits))

    @property
    def partial_outside(self) -> tuple[int, ...]:
        """Lags at which the partial autocorrelation leaves its confidence band."""
        return tuple(int(k) + 1 for k in np.flatnonzero(np.abs(self.partial - self.expected_partial) > self.limits))


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residual rows divided by the noise of their channel, predicted torques and sample numbers, per channel."""

    channels: tuple[str, ...]
    values: tuple[Array, ...]
    predicted: tuple[Array, ...]
    index: tuple[Index, ...]


@dataclass(frozen=True, eq=False)
class ResidualTests(HtmlFrame):
    """Residual tests of an estimate.

    Attributes
    ----------
    whiteness, normality, homoscedasticity : HypothesisTest
        The tests, with one detail per channel.
    correlograms : dict of str to Correlogram
        Correlogram of each channel.
    """

    whiteness: HypothesisTest
    normality: HypothesisTest
    homoscedasticity: HypothesisTest
    correlograms: dict[str, Correlogram]

    def to_frame(self) -> pl.DataFrame:
        """The tests as a table.

        Returns
        -------
        polars.DataFrame
            One row per test: code, name, statistic, distribution, p_value, level, rejected and verdict.
        """
        return tests_frame((self.whiteness, self.normality, self.homoscedasticity))

    def summary(self) -> str:
        """Return all tests as text."""
        return "\n\n".join(t.summary() for t in (self.whiteness, self.normality, self.homoscedasticity))

    def to_dict(self) -> dict[str, Any]:
        """Return tests and correlograms as plain data for JSON."""
        tests = {t: getattr(self, t).to_dict() for t in ("whiteness", "normality", "homoscedasticity")}
        return {**tests, "correlograms": {k: c.to_dict() for k, c in self.correlograms.items()}}


def correlogram(
    residual: ArrayLike,
    index: ArrayLike | None = None,
    *,
    lags: int | None = None,
    level: float = 0.05,
    decimated: bool | None = None,
) -> Correlogram:
    """Compute the autocorrelation and partial autocorrelation of a residual.

    Only rows that are exactly k steps apart are paired, so dropped rows and ends of runs have no influence.

    Parameters
    ----------
    residual : array_like, shape (m,)
        Residual, in any unit.
    index : array_like of int, shape (m,), optional
        Sample numbers of the rows; by default 0, 1, 2, ...
    lags : int, optional
        Number of lags; by default 20, but at most a fifth of the rows.
    level : float
        Significance level of the confidence band.
    decimated : bool, optional
        Whether the rows were decimated, and are compared with decimated white noise. By default, rows count as
        decimated if their sample numbers rise by more than one.

    Returns
    -------
    Correlogram

    Raises
    ------
    DataError
        If the residual is constant or not finite, or has too few rows for the lags.

    Examples
    --------
    >>> import numpy as np
    >>> white = np.random.default_rng(0).normal(size=1000)
    >>> len(correlogram(white, lags=10).outside)
    0
    """
    e = _checked(residual)
    number = checked_index(index, len(e))
    count = min(_MOST_LAGS, len(e) // 5) if lags is None else lags
    if not 1 <= count < len(e):
        raise TooFew(f"{count} lags cannot be computed from {len(e)} rows", "lags")
    from statsmodels.tsa.stattools import levinson_durbin

    place = positions(number, count)
    dense, there = np.zeros((2, int(place[-1]) + 1))
    dense[place], there[place] = e - e.mean(), 1.0
    pairs = np.array([np.count_nonzero(there[k:] * there[:-k]) for k in range(1, count + 1)])
    if not pairs.all():
        raise TooFew(f"no two rows are {int(np.argmin(pairs)) + 1} steps apart; choose fewer lags", "lags")
    power = dense @ dense / len(e)
    correlation = np.array([dense[k:] @ dense[:-k] for k in range(1, count + 1)]) / pairs / power
    colored = usual_step(number) > 1 if decimated is None else decimated
    expected = decimated_noise()[1 : count + 1] if colored else np.zeros(count)
    if len(expected) < count:
        raise InvalidValue(f"decimated rows can be compared up to lag {len(expected)}, not {count}", "lags")

    def partial(rho: Array) -> Array:
        return np.asarray(levinson_durbin(np.concatenate([[1.0], rho]), nlags=count, isacov=True)[2][1:])

    limits = scipy.stats.norm.isf(level / 2) / np.sqrt(pairs)
    return Correlogram(correlation, partial(correlation), expected, partial(expected), pairs, limits, len(e))


def whiteness(
    residual: ArrayLike,
    index: ArrayLike | None = None,
    *,
    lags: int | None = None,
    level: float = 0.05,
    decimated: bool | None = None,
) -> HypothesisTest:
    """Ljung-Box test of a residual (m,): its first autocorrelations are jointly those of white noise.

    Decimation keeps four fifths of the band, so decimated white noise has autocorrelations of 0.18, -0.16, 0.12, ...;
    decimated rows are compared with these. For the arguments see `correlogram`.
    """
    page = correlogram(residual, index, lags=lags, level=level, decimated=decimated)
    return _WHITE.judge(*_ljung_box(page), level)


def normality(residual: ArrayLike, *, level: float = 0.05) -> HypothesisTest:
    """Jarque-Bera test of a residual (m,): its skewness and kurtosis are those of the normal distribution."""
    return _NORMAL.judge(*_jarque_bera(_checked(residual)), level)


def homoscedasticity(residual: ArrayLike, explanatory: ArrayLike, *, level: float = 0.05) -> HypothesisTest:
    """Breusch-Pagan test of a residual (m,): its square does not depend on the `explanatory` columns (m, k).

    The studentised form of Koenker, which does not assume normal residuals. A constant column is added.
    """
    return _EVEN.judge(*_breusch_pagan(_checked(residual), explanatory), level)


def residuals_of(observation: Observation, beta: ArrayLike, noise: ArrayLike | None = None) -> Residuals:
    """Residual rows of base parameters (b,) divided by the noise of their channel.

    `noise` (channel,) is the standard deviation per channel; by default that of the residual itself.
    """
    base = observation.base
    values = np.asarray(beta, dtype=float)
    if values.shape != (base.count,):
        raise InvalidShape(f"expected {base.count} base parameters, got shape {values.shape}", "beta")
    std = joint_noise(observation, values) if noise is None else np.asarray(noise, dtype=float)
    if std.shape != (len(base.channels),) or not np.all(std > 0):
        raise InvalidValue(f"{named('noise')} must be {len(base.channels)} positive numbers, one per channel")
    found: list[list[tuple[Array, Array, Index]]] = [[] for _ in base.channels]
    for block in observation.blocks():
        predicted = block.W @ values
        found[block.channel].append(((block.y - predicted) / std[block.channel], predicted, block.index))
    empty = [c for c, blocks in zip(base.channels, found, strict=True) if not blocks]
    if empty:
        raise MissingData(f"channel '{empty[0]}' has no rows: the joint does not move, or the rows were not kept")
    columns = [[np.concatenate(part) for part in zip(*blocks, strict=True)] for blocks in found]
    e, predicted_rows, index = zip(*columns, strict=True)
    return Residuals(base.channels, e, predicted_rows, index)


def independent_rows(observation: Observation) -> float:
    """Number of independent rows for white measurement noise: all, or 85 % of decimated rows."""
    blocks = [block.index for block in observation.blocks()]
    if not blocks:
        raise MissingArgument(
            "the observation does not keep its samples: give the number of independent rows (rows=)", "rows"
        )
    decimated = usual_step(np.concatenate(blocks)) > 1
    return observation.total_rows * (independent_share() if decimated else 1.0)


def residual_tests(
    observation: Observation,
    beta: ArrayLike,
    noise: ArrayLike | None = None,
    *,
    lags: int | None = None,
    level: float = 0.05,
    correction: Correction = "holm",
) -> ResidualTests:
    """Test the residuals of base parameters for whiteness, normality and constant variance, per channel.

    Parameters
    ----------
    observation : Observation
        Rows of regressor and torques.
    beta : array_like, shape (b,)
        Base parameters.
    noise : array_like, shape (channel,), optional
        Standard deviation of the torque noise per channel; by default that of the residual.
    lags : int, optional
        Lags of the correlograms, see `correlogram`.
    level : float
        Significance level.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        Correction of the p-values for the number of channels.

    Returns
    -------
    ResidualTests

    Notes
    -----
    The variance is regressed on the predicted torque and its square. Runs whose sample numbers follow one another
    without a gap count as one.
    """
    rows = residuals_of(observation, beta, noise)
    pages = {
        c: correlogram(e, i, lags=lags, level=level)
        for c, e, i in zip(rows.channels, rows.values, rows.index, strict=True)
    }

    def each(words: Hypothesis, tail: Callable[[int], Tail]) -> HypothesisTest:
        return words.judge_each(rows.channels, [tail(k) for k in range(len(rows.channels))], level, correction)

    def variance(k: int) -> Tail:
        torque = rows.predicted[k] / np.abs(rows.predicted[k]).max()
        return _breusch_pagan(rows.values[k], np.column_stack([torque, torque**2]))

    return ResidualTests(
        each(_WHITE, lambda k: _ljung_box(pages[rows.channels[k]])),
        each(_NORMAL, lambda k: _jarque_bera(rows.values[k])),
        each(_EVEN, variance),
        pages,
    )


def _checked(residual: ArrayLike) -> Array:
    """Return a residual as an array, refusing what cannot be tested."""
    e = np.asarray(residual, dtype=float)
    if e.ndim != 1 or len(e) < 10:
        raise InvalidShape(f"a residual must be a vector of at least ten rows, got shape {e.shape}", "residual")
    if not np.all(np.isfinite(e)):
        raise NotFinite(f"the residual is not a finite number at row {int(np.argmin(np.isfinite(e)))}", "residual")
    if np.ptp(e) == 0:
        raise NotApplicable("the residual is constant: there is nothing to test", "residual")
    return e


def _ljung_box(page: Correlogram) -> Tail:
    """Statistic, distribution and p-value of the Ljung-Box test."""
    # Among N rows of white noise a lag of n pairs has the variance N / (n (N + 2)).
    excess = (page.autocorrelation - page.expected) * np.sqrt(page.pairs * (page.rows + 2) / page.rows)
    if not page.expected.any():
        return chi2_tail(float(excess @ excess), len(excess))
    variance, directions = np.linalg.eigh(correlation_covariance(decimated_noise(), len(excess)))
    # Noise without part of the band has almost no variance in a few directions.
    used = variance > _VARIANCE
    part = directions[:, used].T @ excess
    return chi2_tail(float(np.sum(part**2 / variance[used])), int(used.sum()))


def _jarque_bera(e: Array) -> Tail:
    """Statistic, distribution and p-value of the Jarque-Bera test."""
    from statsmodels.stats.stattools import jarque_bera

    statistic, p, _, _ = jarque_bera(e)
    return float(statistic), "chi2(2)", float(p)


def _breusch_pagan(e: Array, explanatory: ArrayLike) -> Tail:
    """Statistic, distribution and p-value of the studentised Breusch-Pagan test."""
    from statsmodels.stats.diagnostic import het_breuschpagan

    columns = np.asarray(explanatory, dtype=float)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or len(columns) != len(e) or not np.all(np.isfinite(columns)):
        raise InvalidShape(
            f"explanatory columns must be finite and have {len(e)} rows, got shape {columns.shape}", "columns"
        )
    design = np.column_stack([np.ones(len(e)), columns / np.maximum(np.abs(columns).max(axis=0), 1e-300)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise NotIdentifiable("the explanatory columns are linearly dependent or constant", "columns")
    statistic, p, _, _ = het_breuschpagan(e, design)
    return float(statistic), f"chi2({columns.shape[1]})", float(p)
