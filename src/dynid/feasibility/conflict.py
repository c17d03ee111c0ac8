"""Contradictory constraints: a minimal subset that cannot be satisfied together.

    minimise sum of s_b subject to C_b(x) + s_b unit_b in cone_b, s_b >= 0

Source: Chinneck and Dravnieks, Locating Minimal Infeasible Constraint Sets in Linear Programs (1991), for the filter
that drops one constraint after the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import DynidError
from dynid.feasibility.certificate import block_unit
from dynid.feasibility.cone import Block, ConeProgram
from dynid.feasibility.sets import FeasibleSet

__all__ = ["conflict", "explain_conflict"]

Array = NDArray[np.float64]

_BROKEN = 1e-7


def conflict(feasible: FeasibleSet) -> list[str]:
    """Labels of a minimal set of contradictory constraints; empty if all can be satisfied.

    Every constraint is given a slack variable and the sum of slacks is minimised. Constraints without a multiplier
    there have no part in the conflict; the others are dropped one by one where the conflict remains without them.
    """
    kept = list(feasible.blocks)
    broken, duals = _least_violation(feasible, kept)
    if broken <= _BROKEN:
        return []
    kept = [b for b, d in zip(kept, duals, strict=True) if d > 1e-6 * max(duals)]
    for block in list(kept):
        rest = [b for b in kept if b is not block]
        if rest and _least_violation(feasible, rest)[0] > _BROKEN:
            kept = rest
    return [b.label for b in kept]


def explain_conflict(feasible: FeasibleSet) -> None:
    """Raise an error that names contradictory constraints, if there are any."""
    found = conflict(feasible)
    if found:
        raise DynidError(
            f"no robot can satisfy these constraints together: {'; '.join(found)}", "constraints", code="infeasible"
        )


def _least_violation(feasible: FeasibleSet, blocks: list[Block]) -> tuple[float, list[float]]:
    """Smallest sum of slacks with which the blocks can be satisfied, and the size of the multiplier of each block."""
    program = ConeProgram(feasible.size + feasible.extra, feasible.scale)
    cost, units = [], []
    for block in blocks:
        unit = _unit(feasible, block)
        units.append(unit)
        if block.cone == "zero":
            up, down = program.more(block.rows), program.more(block.rows)
            one = np.diag(unit)
            slack = sparse.hstack([_pad(block, up[0]), sparse.csr_array(one), sparse.csr_array(-one)])
            program.require(replace(block, matrix=sparse.csr_array(slack)))
            own = [*up, *down]
        else:
            (column,) = program.more(1)
            slack = sparse.hstack([_pad(block, column), sparse.csr_array(unit[:, None])])
            program.require(replace(block, matrix=sparse.csr_array(slack)))
            own = [column]
        not_negative = sparse.csr_array((np.ones(len(own)), (range(len(own)), own)), shape=(len(own), program.unknowns))
        program.require(Block("nonnegative", not_negative, np.zeros(len(own)), "slack"))
        cost += own
    weights = np.zeros(program.unknowns)
    weights[cost] = 1.0
    program.minimise_linear(weights)
    found = program.solve(tolerance=1e-10).require("the search for conflicting constraints")
    sizes = [float(np.abs(d * unit).sum()) for d, unit in zip(found.duals[::2], units, strict=True)]
    return float(weights @ found.x), sizes


def _unit(feasible: FeasibleSet, block: Block) -> Array:
    """Unit of the slack: the unit of a matrix block; for a row, its magnitude at parameters of typical size."""
    if block.cone == "psd":
        return block_unit(block)
    size = abs(block.matrix) @ feasible.scale
    return np.asarray(np.where(size > 0, size, 1.0))


def _pad(block: Block, width: int) -> sparse.csr_array:
    """The matrix of a block with `width` columns."""
    return sparse.csr_array((block.matrix.data, block.matrix.indices, block.matrix.indptr), shape=(block.rows, width))
