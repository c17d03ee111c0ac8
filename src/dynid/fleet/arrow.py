"""Arrow-shaped least squares: parameters common to the fleet, those of each unit, and those of each entry.

The columns of an entry are eliminated from its factor by QR, what is left is stacked per unit, the columns of the unit
are eliminated in turn, and what is left of all units is solved for the common parameters. Values follow by
back-substitution. No matrix grows with the number of units.

    [C_e D_e] -> [R_e S_e; 0 D_e'] by QR per entry,    then the D_e' of a unit stacked, then those of all units

Source: Golub and Plemmons, Large-Scale Geodetic Least-Squares Adjustment by Dissection and Orthogonal Decomposition
(1980).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.identification.observation import fold

__all__ = ["Arrow", "eliminate", "solve_arrow"]

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

_WEAKEST = 1e-9


@dataclass(frozen=True, eq=False)
class Arrow:
    """Solution of an arrow-shaped problem.

    Attributes
    ----------
    shared, shared_covariance : ndarray, shapes (s,) and (s, s)
        Common parameters; infinite variance where no entry determines them.
    values, std : ndarray, shape (entry, b)
        All parameters of every entry; NaN and infinite where nothing determines them.
    squares : float
        Sum of the squared residuals in units of the noise.
    """

    shared: Array
    shared_covariance: Array
    values: Array
    std: Array
    squares: float


@dataclass(frozen=True, eq=False)
class _Solved:
    """Eliminated columns: x = root (target - rest y), where y are the columns that remain. Free ones are NaN."""

    order: Columns
    root: Array
    rest: Array
    target: Array
    free: Columns

    def values(self, y: Array, covariance: Array) -> tuple[Array, Array, Array]:
        """x, its covariance, and the covariance of x and y."""
        size = len(self.order) + len(self.free)
        known = np.nan_to_num(y)
        x = np.full(size, np.nan)
        x[self.order] = self.root @ (self.target - self.rest @ known)
        slope = self.root @ self.rest
        out = np.zeros((size, size))
        out[np.ix_(self.order, self.order)] = self.root @ self.root.T + slope @ covariance @ slope.T
        out[self.free, self.free] = np.inf
        cross = np.zeros((size, len(y)))
        cross[self.order] = -slope @ covariance
        return x, out, cross


def eliminate(rows: Array, count: int) -> tuple[_Solved, Array]:
    """Eliminate the first `count` columns of [lead, rest, target]; the second result has the remaining columns."""
    lead, rest = rows[:, :count], rows[:, count:]
    size = np.linalg.norm(lead, axis=0) if len(lead) else np.zeros(count)
    scale = np.where(size > 0, size, 1.0)
    if not count or not len(rows):
        nothing = np.zeros(0, dtype=np.intp)
        empty = np.zeros((0, rows.shape[1] - count - 1))
        return _Solved(nothing, np.zeros((0, 0)), empty, np.zeros(0), np.arange(count)), rest
    q, r, order = scipy.linalg.qr(lead / scale, pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int(np.count_nonzero(diagonal > _WEAKEST * max(diagonal[0], 1e-300))) if diagonal[0] > 0 else 0
    turned = q.T @ rest
    triangle = r[:rank, :rank]
    root = scipy.linalg.solve_triangular(triangle, np.eye(rank)) / scale[order[:rank], None]
    solved = _Solved(order[:rank], root, turned[:rank, :-1], turned[:rank, -1], order[rank:])
    return solved, np.asarray(turned[rank:])


def solve_arrow(
    rows: Sequence[Array],
    targets: Sequence[Array],
    units: Sequence[int],
    shared: Columns,
    per_unit: Columns,
    per_date: Columns,
    *,
    used: Sequence[bool] | None = None,
) -> Arrow:
    """Least squares over parameters of three levels.

    Parameters
    ----------
    rows, targets : sequence of ndarray, shapes (k, b) and (k,)
        Rows of every entry with unit noise.
    units : sequence of int
        Number of the unit of every entry.
    shared, per_unit, per_date : ndarray of int
        Columns of the three levels; together all of them, each once.
    used : sequence of bool, optional
        Entries that take part; by default all. The values of the others are NaN.

    Returns
    -------
    Arrow
    """
    per_entry: dict[int, _Solved] = {}
    left: dict[int, list[Array]] = {}
    squares = 0.0
    for k, (A, z, unit) in enumerate(zip(rows, targets, units, strict=True)):
        if used is not None and not used[k]:
            continue
        ordered = np.column_stack([A[:, per_date], A[:, per_unit], A[:, shared], z])
        solved, rest = eliminate(ordered, len(per_date))
        per_entry[k] = solved
        left.setdefault(unit, []).append(rest)
    of_unit: dict[int, _Solved] = {}
    remains = []
    for unit, parts in left.items():
        stack = fold(np.asfortranarray(np.vstack(parts)))
        of_unit[unit], rest = eliminate(stack, len(per_unit))
        remains.append(rest)
    stack = fold(np.asfortranarray(np.vstack(remains)))
    top, rest = eliminate(stack, len(shared))
    squares = float(np.sum(rest[:, -1] ** 2))
    common, covariance, _ = top.values(np.zeros(0), np.zeros((0, 0)))
    finite = _finite(covariance)
    count = len(shared) + len(per_unit) + len(per_date)
    values, std = np.full((len(rows), count), np.nan), np.full((len(rows), count), np.inf)
    for unit in left:
        x, mine, cross = of_unit[unit].values(common, finite)
        both = np.concatenate([x, common])
        joint = np.block([[_finite(mine), cross], [cross.T, finite]])
        for k in [k for k in per_entry if units[k] == unit]:
            d, own, _ = per_entry[k].values(both, joint)
            for columns, part, c in ((per_date, d, own), (per_unit, x, mine), (shared, common, covariance)):
                values[k, columns] = part
                std[k, columns] = np.sqrt(np.maximum(np.diag(c), 0.0))
    return Arrow(common, covariance, values, std, squares)


def _finite(covariance: Array) -> Array:
    """A covariance with zeros in place of infinite variances, whose parameters have no effect on the rest."""
    return np.where(np.isfinite(covariance), covariance, 0.0)
