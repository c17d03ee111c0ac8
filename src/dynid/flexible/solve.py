"""Weighted Gauss-Newton fit of everything at once: bodies, motors, frictions, compliances, lags and encoder offsets.

Tests of a cubic spring, of backlash and of hysteresis say whether the stiffness is linear. Each adds one column per
flexible joint to the rows of its deflections: the cube of the spring torque s, its sign (a gap is crossed where the
torque changes sign), the sign of its rate (the deflection depends on the direction of loading). The coefficient is
tested with the standard deviation of blocks of time, an F test with one degree of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import NotIdentifiable
from dynid.feasibility.fit import fit
from dynid.feasibility.prior import consistent_prior
from dynid.feasibility.sets import feasible_set
from dynid.flexible.rows import FlexibleModel, FlexibleRows, Rows, Unknowns
from dynid.identification.jackknife import block_jackknife
from dynid.identification.observation import fold

__all__ = [
    "Solution",
    "StiffnessKind",
    "StiffnessTest",
    "consistent_links",
    "least_squares",
    "linear_rows",
    "motor_stiffness",
    "solve",
    "stiffness_tests",
]

Array = NDArray[np.float64]


def consistent_links(model: FlexibleModel, factor: Array) -> Array:
    """Standard parameters (p,) of the link side in the feasible set that fit the data best.

    `factor` (k, u + 1) is the factor of the weighted rows over all unknowns, base parameters of the links first. The
    other unknowns are eliminated: they take their best values for every choice of the links.
    """
    b = model.base.count
    last = np.concatenate([factor[:, b:-1], factor[:, :b], factor[:, -1:]], axis=1)
    others = factor.shape[1] - 1 - b
    R = scipy.linalg.qr(last, mode="r", check_finite=False)[0][others : last.shape[1], others:]
    feasible = feasible_set(model.links, "full")
    rows = np.pad(R[:, :-1] @ model.base.matrix, ((0, 0), (0, feasible.extra)))
    prior = consistent_prior(model.links, model.links.parameters).parameters
    return fit(feasible, rows, R[:, -1], prior).parameters


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
        raise NotIdentifiable(
            f"'{rows.model.robot.coordinates[i]}' does not move faster than min_velocity in any run", "min_velocity"
        )
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
        raise NotIdentifiable(
            "the motion does not determine all parameters of the flexible joints: move all joints, in several postures"
        )
    return root @ root.T * np.outer(found.ratio, found.ratio), float(found.blocks - 1)


# A column is determined if this share of it is not in the span of the others.
_DETERMINED = 1e-3


class StiffnessKind(StrEnum):
    """How a spring may be nonlinear."""

    CUBIC = "cubic"
    BACKLASH = "backlash"
    HYSTERESIS = "hysteresis"


@dataclass(frozen=True)
class StiffnessTest:
    """Test of one kind of nonlinear stiffness of one joint.

    Attributes
    ----------
    joint : str
        The joint.
    kind : StiffnessKind
        cubic (stiffness changes with torque), backlash (a gap that is crossed where the torque changes sign) or
        hysteresis (a band between loading and unloading).
    size : float
        Deflection in rad or m: of the cubic term at the largest torque, half the gap, half the band; NaN where the
        motion does not show the effect.
    std : float
        Standard deviation of `size`.
    p_value : float
        Probability of a size as large for a linear spring; NaN where the motion does not show the effect.
    """

    joint: str
    kind: StiffnessKind
    size: float
    std: float
    p_value: float


def stiffness_tests(rows: FlexibleRows, solution: Solution) -> tuple[StiffnessTest, ...]:
    """Test every kind of nonlinear stiffness for every flexible joint, at a solution with both encoders."""
    u = solution.unknowns
    lags = u.lags(solution.x)
    parts = (*rows.torques, *rows.deflections(lags))
    linear = list(linear_rows(parts, u, solution.x, lags))
    loads = _loads(parts, solution)
    return tuple(test for kind in StiffnessKind for test in _tests(kind, rows, solution, parts, linear, loads))


def _loads(parts: tuple[Rows, ...], solution: Solution) -> list[Array]:
    """Torque (m,) of the spring in every block of deflections, nothing for torques."""
    return [p.links @ solution.x[p.columns] if p.spring >= 0 else np.zeros(0) for p in parts]


def _column(kind: StiffnessKind, load: Array, largest: float) -> Array:
    """Column (m,) of unit size."""
    if kind is StiffnessKind.CUBIC:
        return np.asarray((load / largest) ** 3)
    return np.sign(load) if kind is StiffnessKind.BACKLASH else np.sign(np.gradient(load))


def _tests(
    kind: StiffnessKind,
    rows: FlexibleRows,
    solution: Solution,
    parts: tuple[Rows, ...],
    linear: list[tuple[int, Array, NDArray[np.int64]]],
    loads: list[Array],
) -> Iterator[StiffnessTest]:
    u = solution.unknowns
    largest = [
        max(
            (float(np.abs(s).max(initial=0.0)) for p, s in zip(parts, loads, strict=True) if p.spring == k), default=1.0
        )
        for k in range(u.flexible)
    ]

    def wide(part: Rows, load: Array, row: Array) -> Array:
        extra = np.zeros((len(row), u.flexible))
        if part.spring >= 0 and len(row) > 1:
            extra[:, part.spring] = _column(kind, load, max(largest[part.spring], 1e-300))
        return np.hstack([row[:, :-1], extra, row[:, -1:]]) / solution.noise[part.channel]

    def stream(without: tuple[int, ...]) -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        for part, load, (channel, row, index) in zip(parts, loads, linear, strict=True):
            weighted = np.delete(wide(part, load, row), without, axis=1)
            yield channel, weighted[:, :-1], weighted, index

    stacked = fold(np.asfortranarray(np.vstack([w for _, _, w, _ in stream(())])))
    unseen = tuple(u.size + int(k) for k in np.flatnonzero(~_determined(stacked, u.size, u.flexible)))
    stacked = np.delete(stacked, unseen, axis=1)
    x = least_squares(stacked)
    found = block_jackknife(lambda: stream(unseen), x, rows.channels)
    root = np.linalg.pinv(stacked[:, :-1], rcond=1e-12)
    place = iter(range(u.size, u.size + u.flexible))
    for k, i in enumerate(rows.model.flexible):
        name = rows.model.robot.coordinates[i]
        if found is None or u.size + k in unseen:
            yield StiffnessTest(name, kind, np.nan, np.nan, np.nan)
            continue
        at = next(place)
        size, std = float(x[at]), float(np.linalg.norm(root[at]) * found.ratio[at])
        yield StiffnessTest(name, kind, size, std, float(scipy.stats.f.sf((size / std) ** 2, 1, found.blocks - 1)))


def _determined(stacked: Array, size: int, count: int) -> NDArray[np.bool_]:
    """Whether each of the last columns has a part that the others do not have."""
    W = stacked[:, :-1]
    out = []
    for k in range(size, size + count):
        others = np.delete(W, k, axis=1)
        norm = np.linalg.norm(others, axis=0)
        others = others / np.where(norm > 0, norm, 1.0)
        left = W[:, k] - others @ np.linalg.lstsq(others, W[:, k], rcond=1e-12)[0]
        out.append(np.linalg.norm(left) > _DETERMINED * np.linalg.norm(W[:, k]) > 0)
    return np.array(out)
