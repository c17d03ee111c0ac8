"""Is the stiffness linear? Tests of a cubic spring, of backlash and of hysteresis.

Each adds one column per flexible joint to the rows of its deflections: the cube of the spring torque s, its sign (a gap
is crossed where the torque changes sign), the sign of its rate (the deflection depends on the direction of loading).
The coefficient is tested with the standard deviation of blocks of time, an F test with one degree of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.identification.flexible.rows import FlexibleRows, Rows
from dynid.identification.flexible.solve import Solution, least_squares, linear_rows
from dynid.identification.jackknife import block_jackknife
from dynid.identification.observation import fold

__all__ = ["StiffnessKind", "StiffnessTest", "stiffness_tests"]

Array = NDArray[np.float64]

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
    loads = _loads(parts, solution, lags)
    return tuple(test for kind in StiffnessKind for test in _tests(kind, rows, solution, parts, linear, loads))


def _loads(parts: tuple[Rows, ...], solution: Solution, lags: Array) -> list[Array]:
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
