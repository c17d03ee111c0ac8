"""Iteratively reweighted least squares: outliers get less weight (Huber) or none (Tukey)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.options import MethodOptions, check_at_least_one, check_choice
from dynid.identification.estimators.solution import Outcome, Solution, solve_factor, with_rows
from dynid.identification.estimators.wls import joint_noise, noise_floor, wls
from dynid.identification.observation import Block, Observation, WeightedRows, fold

__all__ = [
    "LOSSES",
    "SCALE_ITERATIONS",
    "IrlsOptions",
    "Reweighted",
    "irls",
    "reweighted",
    "robust_scale",
    "weighted_rows",
]

Array = NDArray[np.float64]

# Tuning constants with 95 % efficiency under Gaussian noise.
LOSSES = {"huber": 1.345, "tukey": 4.685}
_HISTOGRAM = 4096
# The scale has converged after this many iterations; holding it from then on lets the weights converge.
SCALE_ITERATIONS = 6


@dataclass(frozen=True, eq=False, kw_only=True)
class IrlsOptions(MethodOptions):
    """Options of method "irls".

    Attributes
    ----------
    loss : {"huber", "tukey"}, default "huber"
        Loss function: Huber's reduces the weight of outliers, Tukey's biweight removes them.
    max_iterations : int, default 50
        Largest number of iterations.
    tolerance : float, default 1e-6
        The method has converged when no base parameter moves by more than this many of its standard deviations.
    """

    loss: Literal["huber", "tukey"] = "huber"
    max_iterations: int = 50
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, tuple(LOSSES))
        check_at_least_one("max_iterations", self.max_iterations)
        if not self.tolerance > 0:
            raise DataError(f"tolerance must be positive, got {self.tolerance!r:.40}")


def irls(observation: Observation, options: IrlsOptions | None = None) -> Solution:
    """Least squares with rows weighted by their residual in the fit before, until the base parameters converge.

    The noise of each joint is its robust scale (median absolute residual / 0.6745), which outliers do not increase.
    The rows are streamed again in every iteration; a data set is read again.
    """
    options = options or IrlsOptions()
    loss = options.loss
    beta = wls(observation).beta
    converged, iteration = False, 0
    while iteration < options.max_iterations and not converged:
        iteration += 1
        if iteration <= SCALE_ITERATIONS:
            scale = robust_scale(observation, beta)
        new, inverse = solve_factor(reweighted(observation, beta, scale, loss), observation.base)
        std = np.sqrt(np.sum(inverse**2, axis=1))
        moved = float(np.max(np.abs(new - beta) / std))
        rounding = float(np.abs(new - beta).max()) <= 1e-12 * float(np.abs(new).max())
        beta = new
        converged = moved < options.tolerance or rounding
    covariance = _covariance(observation, beta, scale, loss)
    status = "solved" if converged else "stopped at the iteration limit"
    outcome = Outcome.CONVERGED if converged else Outcome.NOT_CONVERGED
    solution = Solution(beta, covariance, scale, status, outcome, iteration)
    return with_rows(solution, observation, Reweighted(beta, scale, loss))


@dataclass(frozen=True, eq=False)
class Reweighted:
    """The rows [W y], each weighted by its residual under beta with a loss function, as one factor.

    Attributes
    ----------
    beta : ndarray, shape (b,)
        Base parameters of the fit before.
    scale : ndarray, shape (channel,)
        Robust standard deviation of the residual.
    loss : {"huber", "tukey"}
        Loss function.
    """

    beta: Array
    scale: Array
    loss: str

    def stream(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        """The weighted rows of each block."""
        for block in blocks:
            z = (block.y - block.W @ self.beta) / self.scale[block.channel]
            weight = np.sqrt(_weights(z, self.loss)) / self.scale[block.channel]
            rows = np.column_stack([block.W, block.y]) * weight[:, None]
            yield block.channel, rows[:, :-1], rows, block.index

    def over(self, blocks: Iterable[Block]) -> Array:
        """Factor of the weighted rows."""
        factor = np.zeros((0, self.beta.size + 1))
        for _, _, rows, _ in self.stream(blocks):
            factor = fold(np.vstack([factor, rows]))
        return factor

    def join(self, first: Array, second: Array) -> Array:
        """Factor of both."""
        return fold(np.vstack([first, second]))


def reweighted(observation: Observation, beta: Array, scale: Array, loss: str) -> Array:
    """Factor of [W y] with each row weighted by its residual under beta."""
    parts = observation.reduced(Reweighted(beta, scale, loss))
    return fold(np.vstack([observation.known_rows(1.0 / scale), *parts]))


def weighted_rows(observation: Observation, beta: Array, scale: Array, loss: str) -> WeightedRows:
    """The rows [W y], each weighted by its residual under beta."""
    return lambda: Reweighted(beta, scale, loss).stream(observation.blocks())


def _weights(z: Array, loss: str) -> Array:
    """Weights of residuals z in units of their scale."""
    c = LOSSES[loss]
    size = np.abs(z)
    if loss == "huber":
        return np.where(size <= c, 1.0, c / np.maximum(size, c))
    return np.where(size < c, (1 - (z / c) ** 2) ** 2, 0.0)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts (channel, bin) of the residuals under beta, in units of a rough standard deviation per channel."""

    beta: Array
    rough: Array

    def over(self, blocks: Iterable[Block]) -> Array:
        """Counts of some blocks."""
        counts = np.zeros((len(self.rough), _HISTOGRAM + 1))
        for block in blocks:
            size = np.abs(block.y - block.W @ self.beta) / self.rough[block.channel]
            bins = np.minimum((size * (_HISTOGRAM / 8.0)).astype(int), _HISTOGRAM)
            counts[block.channel] += np.bincount(bins, minlength=_HISTOGRAM + 1)
        return counts

    def join(self, first: Array, second: Array) -> Array:
        """Counts of both."""
        return first + second


def robust_scale(observation: Observation, beta: Array) -> Array:
    """Robust standard deviation of the residual per channel, from a fine histogram in one pass over the rows."""
    rough = joint_noise(observation, beta)
    edges = np.linspace(0.0, 8.0, _HISTOGRAM + 1)
    counts = np.sum(observation.reduced(Histogram(beta, rough)), axis=0)
    total = np.cumsum(counts, axis=1)
    middle = np.array([np.searchsorted(t, 0.5 * t[-1]) for t in total])
    median = 0.5 * (edges[np.minimum(middle, _HISTOGRAM - 1)] + edges[np.minimum(middle + 1, _HISTOGRAM)])
    return np.maximum(rough * median / 0.6745, noise_floor(observation))


@dataclass(frozen=True, eq=False)
class Influence:
    """Sum (channel,) of the slopes of the influence function, and the factor (<= b, b) of the rows times influence."""

    beta: Array
    scale: Array
    loss: str

    def over(self, blocks: Iterable[Block]) -> tuple[Array, Array]:
        """Slopes and factor of some blocks."""
        c = LOSSES[self.loss]
        slopes = np.zeros(len(self.scale))
        influence = np.zeros((0, self.beta.size))
        for block in blocks:
            z = (block.y - block.W @ self.beta) / self.scale[block.channel]
            u = (z / c) ** 2
            slope = (u <= 1).astype(float) if self.loss == "huber" else np.where(u <= 1, (1 - u) * (1 - 5 * u), 0.0)
            slopes[block.channel] += slope.sum()
            psi = z * _weights(z, self.loss)
            influence = fold(np.vstack([influence, psi[:, None] * block.W / self.scale[block.channel]]))
        return slopes, influence

    def join(self, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        """Slopes and factor of both."""
        return first[0] + second[0], fold(np.vstack([first[1], second[1]]))


def _covariance(observation: Observation, beta: Array, scale: Array, loss: str) -> Array:
    """Huber's sandwich for M-estimators: A^-1 B A^-1, A with the mean slope of the influence, B with its square."""
    parts = observation.reduced(Influence(beta, scale, loss))
    mean = np.sum([slopes for slopes, _ in parts], axis=0) / np.maximum(observation.rows, 1)
    influence = fold(np.vstack([rows for _, rows in parts]))
    bread = observation.stacked(np.sqrt(np.maximum(mean, 1e-6)) / scale)[:, :-1]
    half = influence @ np.linalg.inv(bread.T @ bread)
    return np.asarray(half.T @ half)
