"""Changes of the bodies of a unit: along the directions of a payload on a link, and along all others.

A body fixed to a link changes the base parameters by K_L p, where p are its ten inertial parameters. A step of the body
parameters at an unknown date is split into the part in the span of K_L and the rest, whose statistics are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.calibration.body_fit import fit_body
from dynid.errors import DataError
from dynid.robot.inertia import inertia_to_com

__all__ = ["BodySeries", "BodyStep", "Dispersion", "PayloadChange", "body_steps", "dispersion_of", "fit_payload"]

Array = NDArray[np.float64]

_WEAKEST = 1e-9


@dataclass(frozen=True, eq=False)
class PayloadChange:
    """A payload that appeared on a link, or left it.

    Attributes
    ----------
    link : str
        Link that carries it.
    mass, mass_std : float
        Change of the mass and its standard deviation, kg; negative for a payload that was removed.
    centre, centre_std : ndarray, shape (3,)
        Centre of mass of the payload in the frame of the link and its standard deviation, m.
    inertial : ndarray, shape (10,)
        Inertial parameters of the body that appeared or left, in the frame of the link.
    """

    link: str
    mass: float
    mass_std: float
    centre: Array
    centre_std: Array
    inertial: Array


@dataclass(frozen=True, eq=False)
class BodySeries:
    """Body parameters of one unit over time: values (n, k) and covariances (n, k, k)."""

    values: Array
    covariances: Array

    @cached_property
    def information(self) -> tuple[Array, Array]:
        """Cumulative sums of the inverse covariances (n + 1, k, k), and of these times the values (n + 1, k)."""
        weights = np.linalg.inv(self.covariances)
        pulled = np.einsum("nij,nj->ni", weights, self.values)
        first = np.zeros((1, *weights.shape[1:])), np.zeros((1, weights.shape[1]))
        return np.concatenate([first[0], weights]).cumsum(axis=0), np.concatenate([first[1], pulled]).cumsum(axis=0)

    def mean(self, start: int, stop: int) -> tuple[Array, Array]:
        """Weighted mean over a range of dates, and its covariance."""
        weights, pulled = self.information
        covariance = np.linalg.inv(weights[stop] - weights[start])
        return covariance @ (pulled[stop] - pulled[start]), covariance


@dataclass(frozen=True)
class Dispersion:
    """Mean square of whitened differences relative to its expectation, at least one, along payloads and the rest.

    `freedom` are the degrees of freedom behind the figures.
    """

    payload: float
    rest: float
    payload_freedom: float
    rest_freedom: float


@dataclass(frozen=True, eq=False)
class BodyStep:
    """A step of the body parameters.

    Attributes
    ----------
    at : int
        First date after the step.
    change, covariance : ndarray, shapes (k,) and (k, k)
        Change of the body parameters and its covariance.
    payload_p, rest_p : float
        p-values of the parts along and beyond the directions of a payload, corrected for the number of dates.
    is_payload : bool
        Whether the part along the directions of a payload is the stronger one.
    strength : float
        Mean square of the stronger part; p-values of strong changes are all zero in floating point.
    """

    at: int
    change: Array
    covariance: Array
    payload_p: float
    rest_p: float
    is_payload: bool
    strength: float


def payload_basis(columns: Array) -> Array:
    """Orthonormal basis (k, r) of the directions of a payload, from the columns of the base matrix (k, 10)."""
    size = np.linalg.norm(columns, axis=0)
    u, s, _ = np.linalg.svd(columns[:, size > 0] / size[size > 0], full_matrices=False)
    return np.asarray(u[:, s > _WEAKEST * s[0]])


def _statistics(change: Array, covariance: Array, basis: Array) -> tuple[float, float]:
    """Squares of the whitened change along the basis and beyond it."""
    lower = np.linalg.cholesky(covariance)
    y = scipy.linalg.solve_triangular(lower, change, lower=True)
    q, _ = np.linalg.qr(scipy.linalg.solve_triangular(lower, basis, lower=True))
    along = float(np.sum((q.T @ y) ** 2))
    return along, max(float(y @ y) - along, 0.0)


def dispersion_of(units: Sequence[BodySeries], basis: Array) -> Dispersion:
    """How much more the body parameters vary between successive dates than their covariances say."""
    squares = [
        _statistics(u.values[i + 1] - u.values[i], u.covariances[i + 1] + u.covariances[i], basis)
        for u in units
        for i in range(len(u.values) - 1)
    ]
    size, along = basis.shape
    if not squares:
        return Dispersion(1.0, 1.0, 1.0, 1.0)
    table = np.array(squares)
    ratios = [
        float(np.median(table[:, k])) / scipy.stats.chi2.ppf(0.5, n) if n else 1.0
        for k, n in enumerate((along, size - along))
    ]
    # The median of a chi-square variable has about 60 % of the efficiency of its mean.
    worth = 0.6 * len(table)
    return Dispersion(
        max(ratios[0], 1.0), max(ratios[1], 1.0), max(worth * along, 1.0), max(worth * (size - along), 1.0)
    )


def body_steps(unit: BodySeries, basis: Array, dispersion: Dispersion, limit: float) -> list[BodyStep]:
    """All steps of the body parameters whose p-value is below a limit, in order of time.

    Each is measured between the dates since the step before and those until the next one.
    """
    cuts = _cuts(unit, basis, dispersion, limit, 0)
    edges = [0, *cuts, len(unit.values)]
    return [
        _step(unit, basis, dispersion, edges[k], edges[k + 1], edges[k + 2], len(unit.values)) for k in range(len(cuts))
    ]


def between(unit: BodySeries, first: tuple[int, int], second: tuple[int, int]) -> tuple[Array, Array]:
    """Weighted mean of the body parameters over the second range of dates less that over the first; covariance."""
    (before, covariance), (after, other) = unit.mean(*first), unit.mean(*second)
    return after - before, covariance + other


def _cuts(unit: BodySeries, basis: Array, dispersion: Dispersion, limit: float, start: int) -> list[int]:
    """First dates after each step, by splitting at the strongest one and searching both parts again."""
    n = len(unit.values)
    if n < 2:
        return []
    steps = [_step(unit, basis, dispersion, 0, k, n, n) for k in range(1, n)]
    best = min(steps, key=lambda s: (min(s.payload_p, s.rest_p), -s.strength))
    if min(best.payload_p, best.rest_p) >= limit:
        return []
    parts = [BodySeries(unit.values[s], unit.covariances[s]) for s in (slice(0, best.at), slice(best.at, n))]
    before = _cuts(parts[0], basis, dispersion, limit, start)
    after = _cuts(parts[1], basis, dispersion, limit, start + best.at)
    return [*before, start + best.at, *after]


def _step(
    unit: BodySeries, basis: Array, dispersion: Dispersion, start: int, at: int, stop: int, dates: int
) -> BodyStep:
    """The step between the dates from `start` to `at` and those from `at` to `stop`."""
    size, along = basis.shape
    change, covariance = between(unit, (start, at), (at, stop))
    squares = _statistics(change, covariance, basis)
    first, second = squares[0] / dispersion.payload / along, squares[1] / dispersion.rest / max(size - along, 1)
    return BodyStep(
        at=at,
        change=change,
        covariance=covariance * dispersion.payload,
        payload_p=min(1.0, (dates - 1) * _tail(first, along, dispersion.payload_freedom)),
        rest_p=min(1.0, (dates - 1) * _tail(second, size - along, dispersion.rest_freedom)),
        is_payload=first >= second,
        strength=max(first, second),
    )


def _tail(ratio: float, count: int, freedom: float) -> float:
    """p-value of a mean square with `count` degrees of freedom."""
    return float(scipy.stats.f.sf(ratio, count, freedom)) if count else 1.0


def fit_payload(change: Array, covariance: Array, columns: Array, link: str) -> PayloadChange:
    """The physically consistent payload that explains a change of the body parameters best.

    Parameters
    ----------
    change, covariance : ndarray, shapes (k,) and (k, k)
        Change of the body parameters and its covariance.
    columns : ndarray, shape (k, 10)
        Columns of the base matrix of the inertial parameters of the link.
    link : str
        Name of the link.

    Returns
    -------
    PayloadChange

    Raises
    ------
    DataError
        If a body on the link has no effect on the parameters.
    """
    if not np.any(columns):
        raise DataError(f"a body on link '{link}' has no effect on the base parameters")
    lower = np.linalg.cholesky(covariance)
    R = scipy.linalg.solve_triangular(lower, columns, lower=True)
    z = scipy.linalg.solve_triangular(lower, change, lower=True)
    fits = [(sign, fit_body(R, sign * z, "full", feasible=True)) for sign in (1.0, -1.0)]
    sign, body = min(fits, key=lambda x: float(np.sum((R @ x[1].inertial - x[0] * z) ** 2)))
    mass, centre, _ = inertia_to_com(body.inertial)
    slope = np.hstack([-np.asarray(centre)[:, None], np.eye(3)]) / max(float(mass), 1e-12)
    covariance = body.covariance[:4, :4]
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    centre_std = np.sqrt(np.maximum(np.diag(slope @ finite @ slope.T), 0.0))
    lost = ~np.isfinite(np.diag(covariance))
    centre_std = np.where(lost[1:] | lost[0], np.inf, centre_std)
    mass_std = float(np.sqrt(max(covariance[0, 0], 0.0)))
    return PayloadChange(link, sign * float(mass), mass_std, np.asarray(centre), centre_std, sign * body.inertial)
