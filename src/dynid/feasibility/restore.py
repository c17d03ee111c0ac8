"""The last step of a solve: unknowns that end slightly outside of their cones are moved to the nearest point inside.

An interior-point method ends within its tolerance of the boundary, on either side of it. A matrix that is outside is
replaced by the nearest positive semidefinite one (its negative eigenvalues become zero, measured in the unit of its
body), a sign by zero. Cones of different bodies have no unknown in common, so that this is the nearest point. Where
equalities and sums of bodies hold too, the projections are repeated in turn, and the result is near but not nearest.

    P+ = V max(L, 0) V' for P = V L V' in the unit of its block

Source: Higham, Computing a Nearest Symmetric Positive Semidefinite Matrix (1988).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.feasibility.certificate import cone_scale
from dynid.feasibility.cone import Block, smat, svec
from dynid.feasibility.sets import FeasibleSet

__all__ = ["Restored", "outside", "restored"]

Array = NDArray[np.float64]

# Eigenvalues and signs end this far inside, in units of their cone: rounding of the sums does not undo the projection.
_INSIDE = 1e-13
# Residual of an equality, relative to its terms, that counts as zero.
_ROUNDING = 1e-12
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Restored:
    """Unknowns (n,) after the projection, and their largest violation before and after it, in the unit of each block.

    Blocks are those of the set, margins included: a body may be outside of its cone and still physically consistent.
    """

    x: Array
    before: float
    after: float


def restored(feasible: FeasibleSet, x: Array) -> Restored:
    """Project unknowns (p + extra,) onto the cones of a set. What is inside stays as it is, to the last bit.

    If the projections do not meet, the unknowns stay as they are, and `after` equals `before`.
    """
    cones = [b for b in feasible.blocks if b.cone != "zero"]
    flat = [b for b in feasible.blocks if b.cone == "zero"]
    before = outside(feasible, x)
    out = x.copy()
    for _ in range(_ROUNDS if before > 0 else 0):
        for block in cones:
            if block.slack(out) < 0:
                _move(block, out, feasible.scale)
        wrong = [b for b in flat if _residual(b, out) > max(_ROUNDING, _residual(b, x))]
        if not wrong and all(b.slack(out) >= 0 for b in cones):
            return Restored(out, before, 0.0)
        for block in wrong:
            _move(block, out, feasible.scale)
    return Restored(x, before, before)


def outside(feasible: FeasibleSet, x: Array) -> float:
    """Largest violation of an inequality, in the unit of its block; zero inside."""
    return max(0.0, -feasible.slack(x))


def _move(block: Block, x: Array, scale: Array) -> None:
    """Move the unknowns of one block onto its cone, with the smallest change in units of their scale."""
    value = block.value(x)
    columns = np.unique(block.matrix.indices)
    matrix = block.matrix[:, columns].toarray() * scale[columns]
    unit = cone_scale(block)
    if block.cone == "psd":
        sizes, vectors = np.linalg.eigh(smat(value / unit))
        wanted = svec((vectors * np.maximum(sizes, _INSIDE)) @ vectors.T) * unit
    elif block.cone == "nonnegative":
        rows = value < 0
        matrix, value, unit = matrix[rows], value[rows], unit[rows]
        wanted = _INSIDE * unit
    else:
        wanted = np.zeros(len(value))
    step = np.linalg.lstsq(matrix / unit[:, None], (wanted - value) / unit, rcond=None)[0]
    x[columns] += scale[columns] * step


def _residual(block: Block, x: Array) -> float:
    """Largest residual of an equality, relative to its terms."""
    size = np.abs(block.constant) + abs(block.matrix) @ np.abs(x)
    return float(np.max(np.abs(block.value(x)) / np.maximum(size, 1e-300), initial=0.0))
