"""Nested F tests of friction models, and the number of independent rows.

    F = ((RSS_smaller - RSS) / extra) / (RSS / freedom)

or its largest value over inner parameters theta that are undefined under the smaller model, whose distribution is that
of the largest |U(theta)' e|^2 for white noise e and a basis U of the columns that the larger model adds.

Source: Davies, Hypothesis Testing when a Nuisance Parameter Is Present Only under the Alternative (1987), for why the
largest value is not F-distributed; the simulation of its distribution is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import TooFew
from dynid.friction.models import FrictionModel
from dynid.friction.rows import FrictionRows
from dynid.friction.separable import Separable
from dynid.signals.autocorrelation import independent_rows

__all__ = ["NestedTest", "effective_rows", "nested_test"]

Array = NDArray[np.float64]

_DRAWS = 4000
_RANK = 1e-6
# Above this quantile of the simulated statistics the tail is that of the F distribution, times a constant.
_TAIL = 0.98


class NestedTest:
    """A test statistic with the logarithm of its p-value, which may be too small for a float."""

    def __init__(self, statistic: float, log_p: float, distribution: str) -> None:
        self.statistic, self.log_p, self.distribution = statistic, log_p, distribution

    @property
    def p_value(self) -> float:
        """Probability of a larger statistic by chance."""
        return float(np.exp(self.log_p))


def effective_rows(rows: FrictionRows, residual: Array) -> float:
    """Number of independent rows: those of white noise after decimation, or fewer if the residual is autocorrelated."""
    own = independent_rows(residual[: rows.own], rows.index) / rows.own
    return float(rows.samples * min(rows.independent / rows.samples, own))


def nested_test(
    rows: FrictionRows,
    smaller: FrictionModel,
    larger: FrictionModel,
    rss: tuple[float, float],
    parameters: tuple[int, int],
    effective: float,
    theta: Array,
    seed: int = 0,
) -> NestedTest:
    """F test of a larger model against a smaller one it contains, fitted with inner parameters `theta` (m,).

    `rss` and `parameters` are the residual sums of squares and the numbers of parameters of both models.

    Where an inner parameter is undefined under the smaller model, such as the Stribeck velocity of a zero Stribeck
    torque, the largest F over its values does not follow the F distribution. Its distribution is then simulated: the
    same columns over the whole grid, with white noise in place of the residual.
    """
    extra = parameters[1] - parameters[0]
    freedom = effective - parameters[1]
    if freedom < 1:
        raise TooFew(
            f"too few independent rows to compare friction models: {effective:.0f} for {parameters[1]} parameters"
        )
    gain = max(rss[0] - rss[1], 0.0)
    statistic = gain / extra / (rss[1] / freedom) if rss[1] > 0 else np.inf
    unseen = larger.unseen_inner(smaller)
    words = f"F({extra}, {freedom:.0f})"
    if not any(unseen):
        return NestedTest(statistic, float(scipy.stats.f.logsf(statistic, extra, freedom)), words)
    draws = _simulated(rows, smaller, larger, unseen, extra, freedom, theta, seed)
    log_p = _tail(draws, statistic, extra, freedom)
    return NestedTest(statistic, log_p, f"largest {words}")


def _simulated(
    rows: FrictionRows,
    smaller: FrictionModel,
    larger: FrictionModel,
    unseen: Sequence[bool],
    extra: int,
    freedom: float,
    fitted: Array,
    seed: int,
) -> Array:
    """Simulated statistics (draws,) of the larger model where the smaller one is true."""
    f, max_velocity = rows.features, rows.max_velocity
    small = np.hstack([rows.W, rows.rows_of(np.hstack([smaller.fixed(f), smaller.curved(f, fitted)]))])
    known = Separable(small, small[:, :0], rows.y, lambda _: small, lambda _: small)
    value = {x.name: t for x, t in zip(smaller.inner, fitted, strict=True)}
    grids = [
        x.grid(max_velocity) if free else np.array([value.get(x.name, x.null)])
        for x, free in zip(larger.inner, unseen, strict=True)
    ]
    spans = []
    for theta in (np.array(p, dtype=float) for p in product(*grids)):
        new = rows.rows_of(np.hstack([larger.fixed(f), larger.curved(f, theta)]))
        sizes = np.linalg.norm(new, axis=0)
        # A parameter that is defined under the smaller model adds one direction, the derivative of its column.
        seen = [s.sum(axis=1) for s, free in zip(larger.slopes(f, theta), unseen, strict=True) if not free]
        if seen:
            tangent = rows.rows_of(np.column_stack(seen))
            new, sizes = np.hstack([new, tangent]), np.append(sizes, np.linalg.norm(tangent, axis=0))
        rest = known._rest(new / np.where(sizes > 0, sizes, 1.0))
        u, s, _ = np.linalg.svd(rest, full_matrices=False)
        spans.append(u[:, s > _RANK])
    every = np.hstack(spans)
    if not every.shape[1]:
        return np.zeros(_DRAWS)
    basis, s, _ = np.linalg.svd(every, full_matrices=False)
    basis = basis[:, s > _RANK * s[0]]
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(_DRAWS, basis.shape[1]))
    left = rng.chisquare(max(freedom + extra - basis.shape[1], 1.0), _DRAWS)
    total = left + np.sum(noise**2, axis=1)
    explained = np.zeros(_DRAWS)
    for span in spans:
        np.maximum(explained, np.sum((noise @ (basis.T @ span)) ** 2, axis=1), out=explained)
    return np.asarray(explained / extra / ((total - explained) / freedom))


def _tail(draws: Array, statistic: float, extra: int, freedom: float) -> float:
    """Logarithm of the p-value: the share of larger draws, or the tail of F fitted to the largest of them."""
    edge = float(np.quantile(draws, _TAIL))
    if statistic <= edge or edge == 0.0:
        return float(np.log((1 + np.count_nonzero(draws >= statistic)) / (1 + len(draws))))
    log = scipy.stats.f.logsf
    return float(min(0.0, np.log(1 - _TAIL) + log(statistic, extra, freedom) - log(edge, extra, freedom)))
