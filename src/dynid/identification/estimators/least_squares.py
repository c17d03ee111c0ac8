"""Least squares from the folded factor: ordinary, per joint, towards a prior, total, generalized, robust.

With the rows [W y] of all channels and the noise s_j of channel j, the methods minimise

    ols    sum |y_j - W_j beta|^2,                              covariance s^2 (W'W)^-1
    wls    sum |y_j - W_j beta|^2 / s_j^2,                      covariance (sum of W_j'W_j / s_j^2)^-1
    ridge  the same + |S^-1/2 (beta - prior)|^2
    gls    sum over samples of e' C^-1 e,                       C = mean of e e' over the channels of a sample
    tls    |[dW dy]| subject to y + dy = (W + dW) beta
    irls   sum of rho(e / s_j), with weights psi(z) / z,        covariance A^-1 B A^-1

and all solve R beta = z with the triangular factor [R z] of the weighted rows.

Sources: Gautier and Poignet, Extended Kalman Filtering and Weighted Least Squares Dynamic Identification of Robot
(2001), for weights by the residuals of each joint; Zellner, An Efficient Method of Estimating Seemingly Unrelated
Regressions (1962), for gls; Van Huffel and Vandewalle, The Total Least Squares Problem (1991), for tls; Huber, Robust
Statistics (1981), for irls and its covariance; Hoerl and Kennard, Ridge Regression (1970), for ridge, here with a prior
mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DynidError, InvalidShape, InvalidValue, TooFew
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import MethodOptions, check_at_least_one, check_choice
from dynid.identification.estimators.solution import Outcome, Solution, solve_factor, with_rows
from dynid.identification.observation import Block, Observation, WeightedRows, fold
from dynid.parameters.base import BaseParameters

__all__ = [
    "GLS",
    "IRLS",
    "LOSSES",
    "OLS",
    "RIDGE",
    "SCALE_ITERATIONS",
    "TLS",
    "WLS",
    "GlsOptions",
    "IrlsOptions",
    "OlsOptions",
    "Reweighted",
    "RidgeOptions",
    "TlsOptions",
    "WlsOptions",
    "gls",
    "irls",
    "joint_noise",
    "ols",
    "reweighted",
    "ridge",
    "robust_scale",
    "rough_noise",
    "tls",
    "wls",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class OlsOptions(MethodOptions):
    """Options of method "ols": there are none."""


def ols(observation: Observation, options: OlsOptions | None = None) -> Solution:
    """Minimise |y - W beta|, with one noise variance for all rows: |residual|^2 / (rows - b)."""
    beta, inverse = solve_factor(observation.stacked(), observation.base)
    freedom = observation.total_rows - beta.size
    variance = float(np.sum(observation.residual_norms(beta) ** 2)) / freedom
    noise = np.full(len(observation.rows), np.sqrt(variance))
    return Solution(beta, variance * inverse @ inverse.T, noise)


Array = NDArray[np.float64]
Freedom = Literal["columns", "parameters", "none"]


OLS = Method(
    name="ols",
    sentence="Ordinary least squares, with one noise variance for all rows.",
    options=OlsOptions,
    function=ols,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class WlsOptions(MethodOptions):
    """Options of method "wls".

    Attributes
    ----------
    iterations : int, default 1
        How often the rows are weighted again by the residuals of the fit before. One iteration is the classical
        two-step procedure.
    freedom : {"columns", "parameters", "none"}, default "columns"
        What is subtracted from the number of rows of a channel in the estimate of its noise: the number of columns that
        are not zero in this channel, the number of all base parameters (Sousa 2014), or nothing (Nguyen 2021).
    """

    iterations: int = 1
    freedom: Freedom = "columns"

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)
        check_choice("freedom", self.freedom, ("columns", "parameters", "none"))


def wls(observation: Observation, options: WlsOptions | None = None) -> Solution:
    """Divide the rows of each joint by the standard deviation of its residual in the fit before, starting from OLS."""
    options = options or WlsOptions()
    beta = ols(observation).beta
    for _ in range(options.iterations):
        noise = joint_noise(observation, beta, options.freedom)
        beta, inverse = solve_factor(observation.stacked(1.0 / noise), observation.base)
    return Solution(beta, inverse @ inverse.T, noise, iterations=options.iterations)


WLS = Method(
    name="wls",
    sentence="Weighted least squares, with rows divided by the noise of their joint.",
    options=WlsOptions,
    function=wls,
)


def joint_noise(observation: Observation, beta: Array, freedom: Freedom = "columns") -> Array:
    """Standard deviation of the residual of each channel, (channel,); `freedom` as in `WlsOptions`."""
    rows = np.array(observation.rows, dtype=float)
    if freedom == "columns":
        rows -= [np.count_nonzero(np.linalg.norm(f[:, :-1], axis=0)) for f in observation.factors]
    elif freedom == "parameters":
        rows -= beta.size
    empty = np.array(observation.rows) == 0
    short = np.flatnonzero((rows < 1) & ~empty)
    if short.size:
        raise TooFew(f"channel '{observation.base.channels[short[0]]}' has too few rows to estimate its noise")
    noise = observation.residual_norms(beta) / np.sqrt(np.maximum(rows, 1))
    return np.maximum(noise, noise_floor(observation))


def noise_floor(observation: Observation) -> Array:
    """Rounding error of the torque of each channel, (channel,), which is taken as the smallest possible noise."""
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    return np.asarray(np.where(size > 0, 1e-13 * size, 1.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeOptions(MethodOptions):
    """Options of method "ridge".

    Attributes
    ----------
    prior : array_like, shape (b,), optional
        Prior mean of the base parameters; by default the a-priori values of the robot.
    std : array_like, default 1.0
        Prior standard deviation: one number relative to the typical size of each kind of parameter, one value per base
        parameter (b,), or a covariance (b, b).
    iterations : int, default 3
        How often the noise of the joints is estimated from the residuals and the fit repeated.
    """

    prior: ArrayLike | None = None
    std: ArrayLike = 1.0
    iterations: int = 3

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)
        if np.ndim(self.std) < 2 and not np.all(np.asarray(self.std, dtype=float) > 0):
            raise InvalidValue(
                "prior standard deviations must be positive: one number, or one per base parameter", "std"
            )


def ridge(observation: Observation, options: RidgeOptions | None = None) -> Solution:
    """Weighted least squares with a Gaussian prior on the base parameters."""
    options = options or RidgeOptions()
    base = observation.base
    centre = base.values() if options.prior is None else np.asarray(options.prior, dtype=float)
    if centre.shape != (base.count,) or not np.all(np.isfinite(centre)):
        raise InvalidShape(f"the prior needs {base.count} finite base parameters, got shape {centre.shape}", "prior")
    root = _prior_whitening(base, centre, options.std)
    extra = np.column_stack([root, root @ centre])
    noise = rough_noise(observation)
    for _ in range(options.iterations):
        factor = fold(np.vstack([observation.stacked(1.0 / noise), extra]))
        beta, inverse = solve_factor(factor, observation.base)
        noise = joint_noise(observation, beta)
    return Solution(beta, inverse @ inverse.T, noise, iterations=options.iterations, prior_rows=root)


RIDGE = Method(
    name="ridge",
    sentence="Weighted least squares with a Gaussian prior on the base parameters.",
    options=RidgeOptions,
    function=ridge,
    has_prior=True,
)


def rough_noise(observation: Observation) -> Array:
    """A first guess (channel,) before any fit: a tenth of the RMS torque per channel."""
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    return np.asarray(np.where(size > 0, 0.1 * size, 1.0))


def _prior_whitening(base: BaseParameters, centre: Array, std: ArrayLike) -> Array:
    """Matrix whose product with (beta - prior) has unit covariance under the prior."""
    d = np.asarray(std, dtype=float)
    if d.ndim == 2:
        if d.shape != (base.count, base.count):
            raise InvalidShape(f"the prior covariance needs shape {(base.count,) * 2}, got {d.shape}", "std")
        try:
            return np.asarray(np.linalg.inv(np.linalg.cholesky(d)))
        except np.linalg.LinAlgError:
            raise InvalidValue("the prior covariance is not positive definite", "std") from None
    if d.ndim == 0:
        d = float(d) * typical_sizes(base, centre)
    if d.shape != (base.count,) or not np.all(d > 0):
        raise InvalidValue(f"prior standard deviations must be positive, one per base parameter ({base.count})", "std")
    return np.diag(1.0 / d)


def typical_sizes(base: BaseParameters, values: Array) -> Array:
    """Root mean square of the values of each kind of parameter, (b,); one where all are zero."""
    groups = np.array([base.robot.layout[j].group for j in base.kept])
    out = np.ones(base.count)
    for group in set(groups):
        same = groups == group
        size = float(np.sqrt(np.mean(values[same] ** 2)))
        out[same] = size if size > 0 else 1.0
    return out


@dataclass(frozen=True, eq=False, kw_only=True)
class TlsOptions(MethodOptions):
    """Options of method "tls": there are none."""


def tls(observation: Observation, options: TlsOptions | None = None) -> Solution:
    """The smallest change of columns and torque together that makes them agree (smallest singular vector of [W y]).

    Rows are divided by the noise of their joint and columns are scaled to unit norm, so that all columns have the same
    relative noise. The covariance is first order (Van Huffel and Vandewalle): (1 + |beta_s|^2) sigma^2 (W'W)^-1.
    """
    start = wls(observation)
    factor = observation.stacked(1.0 / start.noise)
    _, inverse = solve_factor(factor, observation.base)
    norms = np.linalg.norm(factor, axis=0)
    scaled = factor / norms
    _, singular, vt = np.linalg.svd(scaled)
    last = vt[-1]
    if abs(last[-1]) < 1e-12 or singular[-1] > 0.999 * singular[-2]:
        raise DynidError(
            "total least squares has no unique solution for these data; use wls", "method", code="not_identifiable"
        )
    ratio = -last[:-1] / last[-1]
    beta = ratio * norms[-1] / norms[:-1]
    freedom = observation.total_rows - beta.size
    variance = float(singular[-1] ** 2 * norms[-1] ** 2) / freedom
    covariance = (1.0 + float(ratio @ ratio)) * variance * inverse @ inverse.T
    return Solution(beta, covariance, start.noise)


TLS = Method(
    name="tls",
    sentence="Total least squares, with noise in the regressor as well as in the torques.",
    options=TlsOptions,
    function=tls,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class GlsOptions(MethodOptions):
    """Options of method "gls".

    Attributes
    ----------
    iterations : int, default 2
        How often the covariance between the joints is estimated from the residuals and the fit repeated.
    """

    iterations: int = 2

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)


def gls(observation: Observation, options: GlsOptions | None = None) -> Solution:
    """Least squares whitened by the covariance between joints, estimated from the residuals of the fit before.

    Only samples with a row in every channel can be whitened together; the others are left out.
    """
    options = options or GlsOptions()
    beta = ols(observation).beta
    for _ in range(options.iterations):
        covariance, used = _joint_covariance(observation, beta)
        whitened = Whitened(_whitening(covariance), observation.base.count)
        known = observation.known_rows(1.0 / np.sqrt(np.diag(covariance)))
        parts = observation.reduced(whitened)
        beta, inverse = solve_factor(fold(np.vstack([known, *parts])), observation.base)
    note = f"{used} of {max(observation.rows)} samples have a row in every channel"
    noise = np.sqrt(np.diag(covariance))
    solution = Solution(beta, inverse @ inverse.T, noise, iterations=options.iterations, notes=(note,))
    return with_rows(solution, observation, whitened, parts)


GLS = Method(
    name="gls",
    sentence="Generalized least squares, whitened by the covariance of the noise between joints.",
    options=GlsOptions,
    function=gls,
    reads_again=True,
)


@dataclass(frozen=True, eq=False)
class Whitened:
    """The rows [W y] of complete samples, whitened by a matrix (channel, channel), as one factor."""

    matrix: Array
    unknowns: int

    def stream(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        """The whitened rows of each channel."""
        for W, y, index in _complete_samples(blocks, len(self.matrix)):
            rows = np.concatenate([np.einsum("ij,mjb->mib", self.matrix, W), (y @ self.matrix.T)[:, :, None]], axis=2)
            for channel in range(rows.shape[1]):
                yield channel, rows[:, channel, :-1], rows[:, channel], index

    def over(self, blocks: Iterable[Block]) -> Array:
        """Factor of the whitened rows."""
        factor = np.zeros((0, self.unknowns + 1))
        for _, _, rows, _ in self.stream(blocks):
            factor = fold(np.vstack([factor, rows]))
        return factor

    def join(self, first: Array, second: Array) -> Array:
        """Factor of both."""
        return fold(np.vstack([first, second]))


@dataclass(frozen=True, eq=False)
class Products:
    """Sum of the products of the residuals (channel, channel) of complete samples, and the number of these."""

    beta: Array
    channels: int

    def over(self, blocks: Iterable[Block]) -> tuple[Array, int]:
        """Sum and number of some blocks."""
        total, used = np.zeros((self.channels, self.channels)), 0
        for W, y, _ in _complete_samples(blocks, self.channels):
            residual = y - W @ self.beta
            total += residual.T @ residual
            used += len(y)
        return total, used

    def join(self, first: tuple[Array, int], second: tuple[Array, int]) -> tuple[Array, int]:
        """Sum and number of both."""
        return first[0] + second[0], first[1] + second[1]


def _whitening(covariance: Array) -> Array:
    """The matrix (channel, channel) that whitens noise of this covariance."""
    return np.asarray(
        scipy.linalg.solve_triangular(np.linalg.cholesky(covariance), np.eye(len(covariance)), lower=True)
    )


def _joint_covariance(observation: Observation, beta: Array) -> tuple[Array, int]:
    """Covariance of the residuals (channel, channel) and the number of samples it comes from."""
    n = len(observation.rows)
    parts = observation.reduced(Products(beta, n))
    total, used = np.sum([one for one, _ in parts], axis=0), sum(count for _, count in parts)
    if used <= n:
        raise TooFew("gls finds too few samples with a row in every channel; lower min_velocity", "min_velocity")
    return total / used + np.diag(noise_floor(observation) ** 2), used


def _complete_samples(blocks: Iterable[Block], n: int) -> Iterator[tuple[Array, Array, NDArray[np.int64]]]:
    """W (m, channel, b), y (m, channel) and numbers (m,) of the samples with a row in all n channels, by segments."""
    pending: list[Block] = []
    for block in blocks:
        if pending and block.channel <= pending[-1].channel:
            yield from _meet(pending, n)
            pending = []
        pending.append(block)
    yield from _meet(pending, n)


def _meet(blocks: list[Block], n: int) -> Iterator[tuple[Array, Array, NDArray[np.int64]]]:
    """The common samples of blocks of all channels."""
    if len(blocks) < n:
        return
    common = blocks[0].index
    for block in blocks[1:]:
        common = np.intersect1d(common, block.index, assume_unique=True)
    if common.size:
        picks = [np.searchsorted(block.index, common) for block in blocks]
        yield (
            np.stack([b.W[p] for b, p in zip(blocks, picks, strict=True)], axis=1),
            np.stack([b.y[p] for b, p in zip(blocks, picks, strict=True)], axis=1),
            common,
        )


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
            raise InvalidValue(f"tolerance must be positive, got {self.tolerance!r:.40}", "tolerance")


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


IRLS = Method(
    name="irls",
    sentence="Robust least squares, in which outliers have less weight or none.",
    options=IrlsOptions,
    function=irls,
    reads_again=True,
    robust=True,
)


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
