"""Standard deviations that hold with autocorrelated residuals: the delete-one-block jackknife.

Residuals of a real robot are correlated over time and between joints, and their size depends on the motion. The
covariance (W'W)^-1 of white noise is then too small. Here the recording is cut into blocks of time that are longer than
the correlation of the residuals. The estimate without block k moves by

    d_k = (N - N_k)^-1 g_k,   N = W'W, N_k the part of block k, g_k = W_k' e_k,

and the sum of d_k^2, times (B - 1) / B, is the variance of a parameter with B - 1 degrees of freedom, whatever the
correlation within a block (CR3 in econometrics). With few blocks it is well defined for each parameter but not as a
matrix, so the correlations between parameters are those of white noise.

Slow effects (a drive that warms up, friction that depends on where the arm is) may be hidden in a residual that looks
white and still outlast a block: the scores g_k of neighbouring blocks then have the same direction. Blocks are made
longer until they do not.

Sources: Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982); Kunsch, The Jackknife and the Bootstrap
for General Stationary Observations (1989), for blocks of dependent data; Bell and McCaffrey, Bias Reduction in Standard
Errors for Linear Regression with Multi-Stage Samples (2002), for the exact deletion of a block in linear regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.identification.estimators.options import check_choice
from dynid.identification.estimators.solution import Solution
from dynid.identification.observation import Observation, WeightedRows, in_parts
from dynid.signals.autocorrelation import independent_rows

__all__ = [
    "Jackknife",
    "NoiseModel",
    "NoiseSource",
    "Uncertainty",
    "block_jackknife",
    "check_noise_model",
    "jackknife",
    "uncertainty",
]

Array = NDArray[np.float64]
NoiseModel = Literal["autocorrelated", "white"]
# What standard deviations rest on: a noise model of the residuals, or the scatter of repetitions.
NoiseSource = Literal["autocorrelated", "white", "repetitions"]

# More blocks give more degrees of freedom; each must hold several correlation times of the residual. Measured coverage
# of 95 % intervals for noise with corners from 0.5 Hz to white: docs/study-reports/intervals.md.
_MOST_BLOCKS, _FEWEST_BLOCKS = 20, 6
_CORRELATION_TIMES = 3.0
# Neighbouring blocks are correlated if their autocorrelation is above this many of its standard errors.
_SIGNIFICANT = 2.0
# A block that holds nearly all information of a direction: its share is taken as at most this.
_LARGEST_LEVERAGE = 0.98
# Least standard deviation relative to that of white noise: residuals of exact data are zero.
_LEAST = 1e-6
# Condition number beyond which information matrices have no digits left.
_SINGULAR = 1e14


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Standard deviations from blocks of time.

    Attributes
    ----------
    std : ndarray, shape (b,)
        Standard deviation of each base parameter.
    ratio : ndarray, shape (b,)
        The same relative to that of white noise.
    blocks : int
        Number of blocks; the standard deviations have one degree of freedom less.
    independent_rows : tuple of float
        Effective number of independent rows per channel.
    """

    std: Array
    ratio: Array
    blocks: int
    independent_rows: tuple[float, ...]


def check_noise_model(noise_model: str) -> None:
    """Raise a DataError if the noise model is unknown."""
    check_choice("noise_model", noise_model, get_args(NoiseModel))


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of an estimate and what it rests on.

    Attributes
    ----------
    covariance : ndarray, shape (b, b)
        Covariance of the base parameters.
    standard : ndarray, shape (p, p), or None
        Covariance of the standard parameters, for methods that estimate them.
    noise_model : {"autocorrelated", "white"}
        What is assumed of the residuals.
    freedom : float
        Degrees of freedom.
    independent_rows : tuple of float
        Effective number of independent rows per channel; () for white noise.
    """

    covariance: Array
    standard: Array | None
    noise_model: NoiseModel
    freedom: float
    independent_rows: tuple[float, ...] = ()


def uncertainty(
    observation: Observation, solution: Solution, noise_model: NoiseModel, least_ratio: float = 0.0
) -> Uncertainty:
    """Covariance of a solution, with or without the autocorrelation of its residuals.

    No standard deviation is smaller than `least_ratio` times that of white noise.

    A method with a prior over standard parameters gets the covariance of the posterior: what the data do not determine
    is as uncertain as the prior, never certain because a constraint or the prior fixed it. How far the prior moved the
    base parameters from the best fit is part of their standard deviations.

    A posterior has its covariance already, with the independent rows that it rests on.
    A covariance from repeated solves on simulated data is that of white noise, whatever the noise model.
    """
    equations = observation.total_rows if solution.equations is None else solution.equations
    freedom = float(max(equations - solution.beta.size, 1))
    if solution.independent_rows:
        free = min(max(sum(solution.independent_rows) - solution.beta.size, 1.0), solution.freedom)
        known = solution.covariance, solution.parameter_covariance
        return Uncertainty(*known, noise_model, free, solution.independent_rows if noise_model != "white" else ())
    K = observation.base.matrix
    prior = solution.prior_rows
    over_standard = prior is not None and prior.shape[1] == K.shape[1]
    if noise_model == "white" and solution.shift is None:
        over_standard = False  # the best fit itself, as publications have it: constraints count as equalities
    found = None
    if noise_model == "autocorrelated" and not solution.resampled and np.all(np.isfinite(solution.noise)):
        base_rows = _base_rows(K, prior) if over_standard and prior is not None else prior
        if base_rows is None and observation.standstill is not None:
            base_rows = observation.known_rows(1.0 / solution.noise)[:, :-1]
        if solution.time_blocks:
            weighted = [(block,) for block in solution.time_blocks]
            found = _of_factors(weighted, solution.beta, np.ones(1), base_rows, observation.rows)
        else:
            found = jackknife(observation, solution.beta, solution.noise, solution.rows, base_rows)
    ratio = np.ones(solution.beta.size) if found is None else np.maximum(found.ratio, max(least_ratio, _LEAST))
    covariance, standard = solution.covariance * np.outer(ratio, ratio), solution.parameter_covariance
    if over_standard and prior is not None:
        data = observation.stacked(1.0 / solution.noise)[:, :-1] / ratio
        standard = _posterior(np.vstack([data @ K, prior]), solution.equalities)
        covariance = K @ standard @ K.T
    if solution.shift is not None:
        # The data alone would have said something else: that much the prior may be wrong.
        covariance = covariance + np.outer(solution.shift, solution.shift)
    if found is None:
        return Uncertainty(covariance, standard, "white", freedom)
    independent = found.independent_rows
    if solution.equations is not None:
        independent = tuple(sum(independent) / equations * rows for rows in observation.rows)
    return Uncertainty(covariance, standard, "autocorrelated", float(found.blocks - 1), independent)


def _posterior(rows: Array, equalities: Array | None = None) -> Array:
    """Inverse (p, p) of the information of rows (k, p) that determine all parameters, with some combinations known."""
    size = np.linalg.norm(rows, axis=0)
    size = np.where(size > 0, size, 1.0)
    known = np.zeros((0, len(size))) if equalities is None else equalities / size
    basis = scipy.linalg.null_space(known) if len(known) else np.eye(len(size))
    root = (basis @ np.linalg.pinv(rows / size @ basis)) / size[:, None]
    return np.asarray(root @ root.T)


def _base_rows(K: Array, prior: Array) -> Array:
    """Rows (b, b) with the information on base parameters of prior rows (k, p) over standard parameters."""
    carried = K @ _posterior(prior) @ K.T
    return np.asarray(np.linalg.inv(np.linalg.cholesky(carried)))


def jackknife(
    observation: Observation, beta: Array, noise: Array, rows: WeightedRows | None = None, prior: Array | None = None
) -> Jackknife | None:
    """Standard deviations of base parameters (b,) from the residuals of an observation.

    `rows` streams the weighted rows of the estimator, by default those of the observation divided by the noise
    (channel,). `prior` (k, b) are weighted rows of a prior, which no block holds. An observation that has factors per
    block of time in place of samples is taken as these blocks. None if it has neither or too few, or where some
    parameters are determined neither by the data nor by the prior.
    """
    if rows is None and observation.time_blocks:
        return _of_factors(observation.time_blocks, beta, 1.0 / noise, prior, observation.rows)
    return block_jackknife(rows or observation.weighted_rows(1.0 / noise), beta, len(observation.factors), prior)


def _of_factors(
    blocks: Sequence[Sequence[Array]], beta: Array, weights: Array, prior: Array | None, rows_used: Sequence[int]
) -> Jackknife | None:
    """Standard deviations from the factors of blocks of time: they hold W_k'W_k and W_k'e_k as the rows do.

    The residuals themselves are not known. The effective number of rows follows from how much larger the variances are
    than those of white noise.
    """
    size = beta.size
    if len(blocks) < _FEWEST_BLOCKS:
        return None
    information, scores = np.zeros((len(blocks), size, size)), np.zeros((len(blocks), size))
    for k, factors in enumerate(blocks):
        for factor, weight in zip(factors, weights, strict=True):
            rows = weight * factor
            information[k] += rows[:, :-1].T @ rows[:, :-1]
            scores[k] += rows[:, :-1].T @ (rows[:, -1] - rows[:, :-1] @ beta)
    found = _block_std(information, scores, prior)
    if found is None:
        return None
    std, ratio, count = found
    worth = 1.0 / max(float(np.mean(ratio**2)), 1.0)
    return Jackknife(std, ratio, count, tuple(worth * n for n in rows_used))


def block_jackknife(stream: WeightedRows, beta: Array, channels: int, prior: Array | None = None) -> Jackknife | None:
    """Standard deviations of parameters (b,) from a stream of weighted rows of some channels, as `jackknife`."""
    index, residuals = _residuals(stream, beta, channels)
    if len(index) < 2 * _FEWEST_BLOCKS:
        return None
    independent = tuple(independent_rows(e) for e in residuals)
    times = [len(e) / n for e, n in zip(residuals, independent, strict=True) if n]
    count = int(np.clip(len(index) / (_CORRELATION_TIMES * float(np.mean(times))), _FEWEST_BLOCKS, _MOST_BLOCKS))
    # Each block has the same number of samples with rows; no block ends within a sample.
    starts = index[(np.arange(1, count) * len(index)) // count]
    size = beta.size
    information, scores = np.zeros((count, size, size)), np.zeros((count, size))
    for _, Z, Wy, samples in stream():
        for k, here in in_parts(starts, samples):
            z, w = Z[here], Wy[here]
            information[k] += z.T @ w[:, :-1]
            scores[k] += z.T @ (w[:, -1] - w[:, :-1] @ beta)
    found = _block_std(information, scores, prior)
    return None if found is None else Jackknife(*found, independent)


def _block_std(information: Array, scores: Array, prior: Array | None) -> tuple[Array, Array, int] | None:
    """Standard deviations (b,), the same relative to white noise, and the number of blocks that they rest on.

    They follow from the information (B, b, b) and the scores (B, b) of blocks; None where some parameter is unknown.
    """
    total = information.sum(axis=0) + (0.0 if prior is None else prior.T @ prior)
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(total)), 1e-300))
    scaled = scale[:, None] * total * scale
    if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > _SINGULAR:
        return None
    unit = np.linalg.inv(scaled)
    blocks = _uncorrelated(scale[:, None] * information * scale, scale * scores, unit)
    std = scale * _deleted(*blocks, unit)
    white = scale * np.sqrt(np.maximum(np.diag(unit), 1e-300))
    return std, std / white, len(blocks[1])


def _uncorrelated(information: Array, scores: Array, unit: Array) -> tuple[Array, Array]:
    """Information and scores of blocks so long that the scores of neighbours are not correlated.

    The autocorrelation is that over all parameters together, which is known better than that of one.
    """
    longest = len(scores) // _FEWEST_BLOCKS
    for each in range(1, longest + 1):
        count = len(scores) // each
        start = (np.arange(count) * len(scores)) // count
        merged = np.add.reduceat(information, start), np.add.reduceat(scores, start)
        products = merged[1] @ unit @ merged[1].T
        # The scores add up to zero, which alone would make the mean of an autocorrelation -1 / (count - 1).
        found = np.trace(products, 1) * count / (count - 1) / max(np.trace(products), 1e-300) + 1.0 / (count - 1)
        if found < _SIGNIFICANT / np.sqrt(scores.size / each):
            break
    return merged


def _deleted(information: Array, scores: Array, unit: Array) -> Array:
    """Standard deviations (b,) from the information (B, b, b) and the scores (B, b) of B blocks and its inverse sum."""
    count = len(scores)
    steps = np.empty_like(scores)
    for k in range(count):
        # Share of block k in the information of each direction; deleting all of it would leave nothing.
        u, s, vt = np.linalg.svd(np.eye(len(unit)) - information[k] @ unit)
        steps[k] = unit @ (vt.T @ ((u.T @ scores[k]) / np.maximum(s, 1.0 - _LARGEST_LEVERAGE)))
    return np.asarray(np.sqrt((count - 1) / count * np.sum(steps**2, axis=0)))


def _residuals(stream: WeightedRows, beta: Array, channels: int) -> tuple[NDArray[np.int64], list[Array]]:
    """All sample numbers with rows, in order, and the weighted residual of each channel."""
    index: list[NDArray[np.int64]] = []
    residuals: list[list[Array]] = [[] for _ in range(channels)]
    for channel, _, Wy, samples in stream():
        index.append(samples)
        residuals[channel].append(Wy[:, -1] - Wy[:, :-1] @ beta)
    every = np.unique(np.concatenate(index)) if index else np.zeros(0, dtype=np.int64)
    return every, [np.concatenate(e) if e else np.zeros(0) for e in residuals]
