"""Partial pooling: parameters of the units are drawn from a normal distribution, whose variances are estimated.

Empirical Bayes by expectation maximization with restricted likelihood: the parameters of unit u are theta_u = mu +
gamma_u with gamma_u ~ N(0, T), T diagonal with one variance per group of parameters. A unit with little data moves
towards the mean of the fleet, a unit with much data keeps its own value.

    T_g <- mean over units and parameters of the group of (theta_u - mu)^2 + var(gamma_u),    theta_u = mu + E[gamma_u]

Sources: Laird and Ware, Random-Effects Models for Longitudinal Data (1982), for expectation maximisation with
restricted likelihood; Varadhan and Roland, Simple and Globally Convergent Methods for Accelerating the Convergence of
Any EM Algorithm (2008), for the extrapolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.identification.observation import fold

__all__ = ["Pooled", "pool_units", "unit_factor"]

Array = NDArray[np.float64]

_ITERATIONS, _CONVERGED = 60, 1e-3
# Longest step of the extrapolation, and standard deviations between units that do not matter, relative to those of the
# estimates of units.
_LONGEST, _SMALL = 10.0, 0.1


@dataclass(frozen=True, eq=False)
class Pooled:
    """Result of partial pooling.

    Attributes
    ----------
    mean, mean_covariance : ndarray, shapes (b,) and (b, b)
        Mean of the fleet and its covariance.
    variance : ndarray, shape (b,)
        Variance between units of each base parameter.
    values : ndarray, shape (unit, b)
        Shrinkage estimate of every unit.
    covariance : ndarray, shape (unit, b, b)
        Its covariance, with the uncertainty of the mean.
    iterations : int
        Iterations until the variances converged.
    """

    mean: Array
    mean_covariance: Array
    variance: Array
    values: Array
    covariance: Array
    iterations: int

    @property
    def std(self) -> Array:
        """Standard deviation (unit, b)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0))


def unit_factor(rows: Sequence[Array], targets: Sequence[Array], scatter: Array) -> tuple[Array, Array]:
    """Rows (b, b) and target (b,) of one unit from those of its entries, which vary around it with variance scatter.

    `scatter` (b,) is the variance of each base parameter from date to date.
    """
    parts = []
    for A, z in zip(rows, targets, strict=True):
        lower = np.linalg.cholesky(np.eye(len(A)) + (A * scatter) @ A.T)
        parts.append(np.linalg.solve(lower, np.column_stack([A, z])))
    whole = fold(np.asfortranarray(np.vstack(parts)))
    size = whole.shape[1] - 1
    out = np.zeros((size + 1, size + 1))
    out[: len(whole)] = whole
    return out[:size, :-1], out[:size, -1]


def pool_units(rows: Array, targets: Array, groups: Sequence[int], apart: Sequence[int] = ()) -> Pooled:
    """Pool units partially.

    Parameters
    ----------
    rows, targets : ndarray, shapes (unit, b, b) and (unit, b)
        Rows of every unit with unit noise; rows of zeros where a unit has no data.
    groups : sequence of int
        Group of each base parameter; those of one group share a variance.
    apart : sequence of int
        Units that are not drawn from the distribution of the others: they keep their own values.

    Returns
    -------
    Pooled
    """
    if len(apart):
        return _beside(rows, targets, groups, apart)
    size = rows.shape[2]
    scale = np.sqrt(np.mean(np.sum(rows**2, axis=1), axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    # In units in which every column has unit norm: variances of any size are then comparable.
    A = rows / scale
    member = np.asarray(groups)
    variance = np.full(size, _start(A, targets))
    number = member.max() + 1
    counts = np.bincount(member, minlength=number) * len(A)
    weight = scale**2  # variances of one group are equal in the units of the parameters, not in scaled ones

    def improved(now: Array) -> tuple[Array, float]:
        """Variances after one step of expectation maximization, and the largest relative change that counts."""
        mean, _, values, own, away = _posterior(A, targets, now)
        squares = np.mean((values - mean) ** 2 + away, axis=0) / weight
        new = (np.bincount(member, squares * len(A), minlength=number) / counts)[member] * weight
        seen = np.median(np.diagonal(own, axis1=1, axis2=2), axis=0)
        change = np.abs(np.sqrt(new) - np.sqrt(now)) / (np.sqrt(now) + _SMALL * np.sqrt(seen) + 1e-300)
        return new, float(np.max(change))

    iterations = 0
    for _ in range(_ITERATIONS):
        iterations += 1
        first, change = improved(variance)
        second, _ = improved(first)
        # Extrapolation along both steps (SQUAREM): small variances converge slowly without it.
        step, bend = np.log(first / variance), np.log(second / first) - np.log(first / variance)
        length = float(np.clip(np.linalg.norm(step) / (np.linalg.norm(bend) + 1e-300), 1.0, _LONGEST))
        variance = variance * np.exp(2.0 * length * step + length**2 * bend)
        variance = np.clip(variance, 1e-2 * np.minimum(second, first), 1e2 * np.maximum(second, first))
        if change < _CONVERGED:
            variance = second
            break
    mean, mean_covariance, values, own, _ = _posterior(A, targets, variance)
    return Pooled(
        mean / scale,
        mean_covariance / np.outer(scale, scale),
        variance / weight,
        values / scale,
        own / np.outer(scale, scale),
        iterations,
    )


def _beside(rows: Array, targets: Array, groups: Sequence[int], apart: Sequence[int]) -> Pooled:
    """Pool the units that belong together; the others keep their own values."""
    inside = [k for k in range(len(rows)) if k not in apart]
    found = pool_units(rows[inside], targets[inside], groups)
    values, covariance = np.empty((len(rows), rows.shape[2])), np.empty((len(rows), rows.shape[2], rows.shape[2]))
    values[inside], covariance[inside] = found.values, found.covariance
    for k in apart:
        inverse = np.linalg.pinv(rows[k], rcond=1e-9)
        values[k], covariance[k] = inverse @ targets[k], inverse @ inverse.T
    return replace(found, values=values, covariance=covariance)


def _start(A: Array, z: Array) -> float:
    """Variance to start from: that of the scaled solutions around their mean."""
    information = np.einsum("uij,uik->jk", A, A)
    mean = np.linalg.lstsq(information, np.einsum("uij,ui->j", A, z), rcond=1e-12)[0]
    rest = z - A @ mean
    return float(max(np.mean(rest**2), 1.0))


def _posterior(A: Array, z: Array, variance: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Mean, its covariance, values of the units, their covariances, and the variances (unit, b) of value less mean."""
    size = A.shape[2]
    AT = A * variance
    marginal = np.linalg.inv(AT @ np.swapaxes(A, 1, 2) + np.eye(A.shape[1]))
    weighted = np.swapaxes(A, 1, 2) @ marginal
    information = np.sum(weighted @ A, axis=0)
    mean_covariance = np.linalg.pinv(information, rcond=1e-13, hermitian=True)
    mean = mean_covariance @ np.einsum("ubk,uk->b", weighted, z)
    gain = variance[:, None] * weighted
    values = mean + np.einsum("ubk,uk->ub", gain, z - A @ mean)
    keep = np.eye(size) - gain @ A
    own = keep * variance + keep @ mean_covariance @ np.swapaxes(keep, 1, 2)
    moved = gain @ A
    away = np.diagonal(keep * variance + moved @ mean_covariance @ np.swapaxes(moved, 1, 2), axis1=1, axis2=2)
    return mean, mean_covariance, values, own, away
