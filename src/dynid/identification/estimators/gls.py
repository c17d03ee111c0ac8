"""Generalised least squares: correlated noise of the joints is whitened by its full covariance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.options import MethodOptions, check_at_least_one
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import noise_floor
from dynid.identification.observation import Block, Observation, WeightedRows, fold

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
        rows = _whitened(observation, covariance)
        factor = observation.known_rows(1.0 / np.sqrt(np.diag(covariance)))
        for _, _, part, _ in rows():
            factor = fold(np.vstack([factor, part]))
        beta, inverse = solve_factor(factor, observation.base)
    note = f"{used} of {max(observation.rows)} samples have a row in every channel"
    noise = np.sqrt(np.diag(covariance))
    return Solution(beta, inverse @ inverse.T, noise, iterations=options.iterations, notes=(note,), rows=rows)


def _whitened(observation: Observation, covariance: Array) -> WeightedRows:
    """The rows [W y] of complete samples, whitened by the covariance (channel, channel) of their noise."""
    whiten = scipy.linalg.solve_triangular(np.linalg.cholesky(covariance), np.eye(len(covariance)), lower=True)

    def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        for W, y, index in _complete_samples(observation):
            rows = np.concatenate([np.einsum("ij,mjb->mib", whiten, W), (y @ whiten.T)[:, :, None]], axis=2)
            for channel in range(rows.shape[1]):
                yield channel, rows[:, channel, :-1], rows[:, channel], index

    return stream


def _joint_covariance(observation: Observation, beta: Array) -> tuple[Array, int]:
    """Covariance of the residuals (channel, channel) and the number of samples it comes from."""
    n = len(observation.rows)
    total, used = np.zeros((n, n)), 0
    for W, y, _ in _complete_samples(observation):
        residual = y - W @ beta
        total += residual.T @ residual
        used += len(y)
    if used <= n:
        raise DataError("gls finds too few samples with a row in every channel; lower min_velocity")
    return total / used + np.diag(noise_floor(observation) ** 2), used


def _complete_samples(observation: Observation) -> Iterator[tuple[Array, Array, NDArray[np.int64]]]:
    """W (m, channel, b), y (m, channel) and numbers (m,) of the samples with a row in every channel, by segments."""
    n = len(observation.rows)
    pending: list[Block] = []
    for block in observation.blocks():
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
