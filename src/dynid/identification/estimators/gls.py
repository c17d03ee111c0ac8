"""Generalised least squares: correlated noise of the joints is whitened by its full covariance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.options import MethodOptions, check_at_least_one
from dynid.identification.estimators.solution import Solution, solve_factor, with_rows
from dynid.identification.estimators.wls import noise_floor
from dynid.identification.observation import Block, Observation, fold

__all__ = ["GlsOptions", "gls"]

Array = NDArray[np.float64]


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
        raise DataError("gls finds too few samples with a row in every channel; lower min_velocity")
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
