"""Iteratively reweighted least squares: outliers count less (Huber) or not at all (Tukey)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import joint_noise, noise_floor, wls
from dynid.identification.observation import Observation, fold

__all__ = ["LOSSES", "SCALE_ITERATIONS", "irls", "reweighted", "robust_scale"]

Array = NDArray[np.float64]

# Tuning constants with 95 % efficiency under Gaussian noise.
LOSSES = {"huber": 1.345, "tukey": 4.685}
_HISTOGRAM = 4096
# The scale is converged by then; keeping it afterwards lets the iteration converge.
SCALE_ITERATIONS = 6


def irls(observation: Observation, loss: str = "huber", max_iterations: int = 50, tolerance: float = 1e-6) -> Solution:
    """Least squares with rows weighted by how well the fit before explains them, until nothing moves.

    Each joint's noise is its robust scale (median absolute residual / 0.6745), so that outliers do not widen it.
    The rows are streamed again in every iteration.
    """
    if loss not in LOSSES:
        raise DataError(f"loss '{loss}' is unknown: use {' or '.join(LOSSES)}")
    beta = wls(observation).beta
    status, iteration = "stopped at the iteration limit", 0
    while iteration < max_iterations and status != "solved":
        iteration += 1
        if iteration <= SCALE_ITERATIONS:
            scale = robust_scale(observation, beta)
        new, inverse, condition = solve_factor(reweighted(observation, beta, scale, loss), observation.base)
        spread = np.sqrt(np.sum(inverse**2, axis=1))
        moved = float(np.max(np.abs(new - beta) / spread))
        rounding = float(np.abs(new - beta).max()) <= 1e-12 * float(np.abs(new).max())
        beta = new
        if moved < tolerance or rounding:
            status = "solved"
    covariance = _covariance(observation, beta, scale, loss)
    return Solution(beta, covariance, scale, condition, status, iteration)


def reweighted(observation: Observation, beta: Array, scale: Array, loss: str) -> Array:
    """Factor of [W y] with each row weighted by how well beta explains it."""
    factor = np.zeros((0, beta.size + 1))
    for block in observation.blocks():
        z = (block.y - block.W @ beta) / scale[block.channel]
        weight = np.sqrt(_weights(z, loss)) / scale[block.channel]
        rows = np.column_stack([block.W, block.y]) * weight[:, None]
        factor = fold(np.vstack([factor, rows]))
    return factor


def _weights(z: Array, loss: str) -> Array:
    c = LOSSES[loss]
    size = np.abs(z)
    if loss == "huber":
        return np.where(size <= c, 1.0, c / np.maximum(size, c))
    return np.where(size < c, (1 - (z / c) ** 2) ** 2, 0.0)


def robust_scale(observation: Observation, beta: Array) -> Array:
    """Median absolute residual a channel, from a fine histogram: bounded memory whatever the number of rows."""
    rough = joint_noise(observation, beta)
    edges = np.linspace(0.0, 8.0, _HISTOGRAM + 1)
    counts = np.zeros((len(rough), _HISTOGRAM + 1))
    for block in observation.blocks():
        size = np.abs(block.y - block.W @ beta) / rough[block.channel]
        bins = np.minimum((size * (_HISTOGRAM / 8.0)).astype(int), _HISTOGRAM)
        counts[block.channel] += np.bincount(bins, minlength=_HISTOGRAM + 1)
    total = np.cumsum(counts, axis=1)
    middle = np.array([np.searchsorted(t, 0.5 * t[-1]) for t in total])
    median = 0.5 * (edges[np.minimum(middle, _HISTOGRAM - 1)] + edges[np.minimum(middle + 1, _HISTOGRAM)])
    return np.maximum(rough * median / 0.6745, noise_floor(observation))


def _covariance(observation: Observation, beta: Array, scale: Array, loss: str) -> Array:
    """Huber's sandwich for M-estimators: A^-1 B A^-1, A with the mean slope of the influence, B with its square."""
    c = LOSSES[loss]
    slopes = np.zeros(len(scale))
    influence = np.zeros((0, beta.size))
    for block in observation.blocks():
        z = (block.y - block.W @ beta) / scale[block.channel]
        u = (z / c) ** 2
        slope = (u <= 1).astype(float) if loss == "huber" else np.where(u <= 1, (1 - u) * (1 - 5 * u), 0.0)
        slopes[block.channel] += slope.sum()
        psi = z * _weights(z, loss)
        influence = fold(np.vstack([influence, psi[:, None] * block.W / scale[block.channel]]))
    mean = slopes / np.array(observation.rows)
    bread = observation.stacked(np.sqrt(np.maximum(mean, 1e-6)) / scale)[:, :-1]
    half = influence @ np.linalg.inv(bread.T @ bread)
    return np.asarray(half.T @ half)
