"""Cone programs over whitened unknowns, which solvers with nothing but cones solve to the accuracy of the data.

The squares of a program are 1/2 |v|^2 and a constant: v are the unknowns along the singular directions of all rows,
from the point that fits best without any constraint. The cost then is what the constraints add to the sum of squares,
in units of the noise, however large the measurements are. Equalities are solved: interior points need an interior.

    R = U S V',    x = offset + directions y,    |R x - z|^2 / 2 = |y|^2 / 2 + what the best fit leaves

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), chapters 5 and 6 (least squares and its equalities).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import Infeasible
from dynid.feasibility.cone import Block, ConeProgram

__all__ = ["Whitened", "whitened"]

Array = NDArray[np.float64]

# Equalities with smaller singular values, relative to the largest, repeat others.
_REPEATED = 1e-10
# Equalities that contradict each other by more than this, relative to their terms.
_APART = 1e-8
# Directions with smaller singular values, relative to the largest, have no squares.
_UNSEEN = 1e-13


@dataclass(frozen=True, eq=False)
class Whitened:
    """Minimise 1/2 |y[:squared]|^2 + cost.y subject to blocks over y, where x = offset + directions y."""

    squared: int
    cost: Array
    blocks: tuple[Block, ...]
    offset: Array
    directions: Array


def whitened(program: ConeProgram) -> Whitened:
    """The program over whitened unknowns, without equalities."""
    offset, directions = _without_equalities(program)
    linear, squares = program.objective()
    rows = np.vstack([np.zeros((0, directions.shape[1])), *(R @ directions[: R.shape[1]] for R, _ in squares)])
    rest = np.concatenate([np.zeros(0), *(z - R @ offset[: R.shape[1]] for R, z in squares)])
    u, s, vt = np.linalg.svd(rows, full_matrices=True) if len(rows) <= rows.shape[1] else _thin(rows)
    squared = int(np.sum(s > _UNSEEN * s.max(initial=0.0)))
    offset = offset + directions @ (vt[:squared].T @ (u.T[:squared] @ rest / s[:squared]))
    length = np.concatenate([1.0 / s[:squared], np.ones(len(vt) - squared)])
    directions = directions @ (vt.T * length)
    blocks = (b.widened(program.unknowns) for b in program.blocks if b.cone != "zero")
    return Whitened(
        squared, linear @ directions, tuple(b.substituted(offset, directions) for b in blocks), offset, directions
    )


def _thin(rows: Array) -> tuple[Array, Array, Array]:
    return np.linalg.svd(rows, full_matrices=False)


def _without_equalities(program: ConeProgram) -> tuple[Array, Array]:
    """Unknowns x = offset + directions y that satisfy all equalities, y of order one."""
    scale = program.scale
    zero = [b.widened(program.unknowns) for b in program.blocks if b.cone == "zero"]
    if not zero:
        return np.zeros(len(scale)), np.diag(scale)
    A = sparse.vstack([b.matrix for b in zero]).toarray() * scale
    b = np.concatenate([x.constant for x in zero])
    size = np.maximum(np.abs(A).max(axis=1), 1e-300)
    A, b = A / size[:, None], b / size
    u, s, vt = np.linalg.svd(A)
    rank = int(np.sum(s > _REPEATED * s[0]))
    start = -vt[:rank].T @ ((u[:, :rank].T @ b) / s[:rank])
    if np.abs(A @ start + b).max() > _APART * max(1.0, float(np.abs(b).max())):
        raise Infeasible("the equalities between the parameters contradict each other", "constraints")
    return scale * start, scale[:, None] * vt[rank:].T
