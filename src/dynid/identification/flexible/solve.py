"""Weighted Gauss-Newton fit of everything at once: bodies, motors, frictions, compliances, lags and encoder offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.flexible.rows import FlexibleRows, Rows
from dynid.identification.flexible.unknowns import Unknowns
from dynid.identification.jackknife import block_jackknife
from dynid.identification.observation import fold

__all__ = ["Solution", "least_squares", "linear_rows", "motor_stiffness", "solve"]

Array = NDArray[np.float64]

_MAX_ITERATIONS, _MAX_LAGS = 20, 6
# Converged if predictions change by less than this share of the standard deviation of their noise, root mean square.
_CONVERGED = 1e-3
# Singular values of scaled columns below this share of the largest are not determined.
_RANK = 1e-12


@dataclass(frozen=True, eq=False)
class Solution:
    """The unknowns with their covariance, the noise and the number of rows per channel, and how they were found.

    `factor` is the triangular factor of the weighted rows that are linearised at the solution.
    """

    unknowns: Unknowns
    x: Array
    covariance: Array
    noise: Array
    rows: tuple[int, ...]
    freedom: float
    iterations: int
    converged: bool
    factor: Array = field(repr=False)


def solve(rows: FlexibleRows, per_run: bool = False) -> Solution:
    """Fit all unknowns; `per_run` gives the encoders one offset per run."""
    unknowns = Unknowns.of(rows.model, len(rows.motions) if per_run else 1, rows.errors)
    lags = np.zeros(unknowns.flexible)
    parts = (*rows.torques, *rows.deflections(lags))
    x, noise = _start(rows, parts, unknowns)
    total, change = 0, np.inf
    for _ in range(_MAX_LAGS):
        x, noise, stacked, counts, iterations, change = _gauss_newton(parts, unknowns, x, noise, lags)
        total += iterations
        # The rows are exact at the lags that they were computed with, and linear in them elsewhere.
        effect = np.zeros(unknowns.size)
        effect[unknowns.lagging] = x[unknowns.compliance] * (unknowns.lags(x) - lags)
        lags = unknowns.lags(x)
        if np.linalg.norm(stacked[:, :-1] @ effect) < _CONVERGED * np.sqrt(sum(counts)):
            break
        parts = (*rows.torques, *rows.deflections(lags))
    covariance, freedom = _covariance(parts, unknowns, x, noise, stacked, lags, rows.channels)
    return Solution(unknowns, x, covariance, noise, tuple(counts), freedom, total, bool(change < _CONVERGED), stacked)


def linear_rows(
    parts: Sequence[Rows], unknowns: Unknowns, x: Array, lags: Array
) -> Iterator[tuple[int, Array, NDArray[np.int64]]]:
    """Channel, [W y] (m, unknown + 1) linearised at x, and sample numbers of rows that were computed at some lags."""
    b, torques = unknowns.links, unknowns.motors
    for part in parts:
        wide = np.zeros((len(part.y), unknowns.size + 1))
        if part.spring >= 0:
            _deflection(wide, part, unknowns, x, lags)
        else:
            wide[:, part.columns], wide[:, b : b + torques], wide[:, -1] = part.links, part.motors, part.y
        yield part.channel, wide, part.index


def _deflection(wide: Array, part: Rows, unknowns: Unknowns, x: Array, lags: Array) -> None:
    """Columns and values of deflections (c columns + e slopes) beta, linearised in the products at x."""
    k = part.spring
    c, e, beta = float(x[unknowns.compliance][k]), float(x[unknowns.lagging][k]), x[part.columns]
    columns = part.links - lags[k] * part.slopes
    load, slope = columns @ beta, part.slopes @ beta
    wide[:, part.columns] = c * columns + e * part.slopes
    wide[:, unknowns.compliance.start + k] = load
    wide[:, unknowns.lagging.start + k] = slope
    wide[:, unknowns.offset(k, part.run)] = 1.0
    wide[:, unknowns.encoder(k)] = part.encoder
    wide[:, -1] = part.y + c * load + e * slope


def _gauss_newton(
    parts: Sequence[Rows], unknowns: Unknowns, x: Array, noise: Array, lags: Array
) -> tuple[Array, Array, Array, list[int], int, float]:
    """Iterate with rows that were computed at some lags.

    Returns the unknowns, noise per channel, weighted factor, rows per channel, iterations and the last change.
    """
    for iteration in range(1, _MAX_ITERATIONS + 1):  # noqa: B007
        factors, counts = _factors(parts, unknowns, x, lags, len(noise))
        found, noise, stacked = _weighted(factors, counts, unknowns, noise)
        change = float(np.linalg.norm(stacked[:, :-1] @ (found - x)) / np.sqrt(sum(counts)))
        x = found
        if change < _CONVERGED:
            break
    return x, noise, stacked, counts, iteration, change


def _factors(
    parts: Sequence[Rows], unknowns: Unknowns, x: Array, lags: Array, channels: int
) -> tuple[list[Array], list[int]]:
    """Triangular factor of [W y] and number of rows per channel."""
    stacks: list[list[Array]] = [[] for _ in range(channels)]
    for channel, wide, _ in linear_rows(parts, unknowns, x, lags):
        stacks[channel].append(wide)
    counts = [sum(map(len, stack)) for stack in stacks]
    return [fold(np.asfortranarray(np.vstack(stack))) for stack in stacks], counts


def _weighted(factors: list[Array], counts: list[int], unknowns: Unknowns, noise: Array) -> tuple[Array, Array, Array]:
    """Solution of weighted least squares, noise per channel from its residuals, and the weighted factor."""
    spent = unknowns.size / len(factors)
    for _ in range(3):
        stacked = fold(np.asfortranarray(np.vstack([f / s for f, s in zip(factors, noise, strict=True)])))
        x = least_squares(stacked)
        left = [np.linalg.norm(f[:, -1] - f[:, :-1] @ x) for f in factors]
        # Exact data have no residual; rounding is then the noise.
        least = [1e-9 * np.linalg.norm(f[:, -1]) + 1e-300 for f in factors]
        noise = np.maximum(left, least) / np.sqrt(np.maximum(np.array(counts) - spent, 1.0))
    return x, noise, stacked


def least_squares(stacked: Array) -> Array:
    """Least squares with columns of unit norm; directions without data stay at zero."""
    scale = np.linalg.norm(stacked[:, :-1], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(np.linalg.lstsq(stacked[:, :-1] / scale, stacked[:, -1], rcond=_RANK)[0] / scale)


def _start(rows: FlexibleRows, parts: Sequence[Rows], unknowns: Unknowns) -> tuple[Array, Array]:
    """Compliances from the equations of the motors, then everything else with them, and the noise per channel."""
    x = np.zeros(unknowns.size)
    x[unknowns.compliance] = [1.0 / motor_stiffness(rows, parts, k) for k in range(unknowns.flexible)]
    compliance = x[unknowns.compliance].copy()
    # With beta = 0 the columns of c and e are zero: what is left is linear in all unknowns.
    factors, counts = _factors(parts, unknowns, x, np.zeros(unknowns.flexible), rows.channels)
    # Equal relative errors at first: with a small weight of the deflections, friction of links would replace springs.
    sizes = np.array([np.linalg.norm(f[:, -1]) + 1e-300 for f in factors]) / np.sqrt(np.maximum(counts, 1))
    x, noise, _ = _weighted(factors, counts, unknowns, sizes)
    x[unknowns.compliance], x[unknowns.lagging] = compliance, 0.0
    return x, noise


def motor_stiffness(rows: FlexibleRows, parts: Sequence[Rows], k: int) -> float:
    """Stiffness of flexible joint k by least squares on the equation of its motor."""
    i = int(rows.model.flexible[k])
    torques = [np.column_stack([p.motors, np.ones(len(p.y)), p.y]) for p in parts if p.channel == i]
    table, bent = np.vstack(torques), np.concatenate([p.y for p in parts if p.spring == k])
    if not len(table):
        raise DataError(f"'{rows.model.robot.coordinates[i]}' does not move faster than min_velocity in any run")
    W = np.column_stack([table[:, :-1], bent])
    W = W[:, np.any(W, axis=0)]
    scale = np.linalg.norm(W, axis=0)
    found = float((np.linalg.lstsq(W / scale, table[:, -1], rcond=None)[0] / scale)[-1])
    # Where noise makes it negative: the stiffness whose torque is as large as that of the drive.
    return found if found > 0 else float(np.std(table[:, -1]) / max(np.std(bent), 1e-300))


def _covariance(
    parts: Sequence[Rows], unknowns: Unknowns, x: Array, noise: Array, stacked: Array, lags: Array, channels: int
) -> tuple[Array, float]:
    """Covariance of the unknowns from blocks of time, and its degrees of freedom."""

    def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        for channel, wide, index in linear_rows(parts, unknowns, x, lags):
            weighted = wide / noise[channel]
            yield channel, weighted[:, :-1], weighted, index

    scale = np.linalg.norm(stacked[:, :-1], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    root = np.linalg.pinv(stacked[:, :-1] / scale, rcond=_RANK) / scale[:, None]
    found = block_jackknife(stream, x, channels)
    if found is None:
        raise DataError(
            "the motion does not determine all parameters of the flexible joints: move all joints, in several postures"
        )
    return root @ root.T * np.outer(found.ratio, found.ratio), float(found.blocks - 1)
