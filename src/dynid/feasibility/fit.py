"""Least squares within the set of possible robots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import DynidError
from dynid.feasibility.certificate import cone_scale
from dynid.feasibility.cone import Block, ConeSolution
from dynid.feasibility.conflict import explain_conflict
from dynid.feasibility.metrics import Metric, add_distance
from dynid.feasibility.sets import FeasibleSet

__all__ = ["Fit", "closest", "fit"]

Array = NDArray[np.float64]

# Data leave many standard vectors equally good. The prior decides among them with a pull that is made weaker until its
# share of the objective is hidden: with unit noise the sum of squares moves by less than 2e-3.
_PULLS = (1e-6, 1e-8, 1e-10, 1e-12)
_HIDDEN = 1e-3
_BOUNDARY = 1e-4
# A solution is looked at once more: eigenvalues may miss their cone by this share of the terms they are made of.
_OUTSIDE = 1e-6


@dataclass(frozen=True, eq=False)
class Fit:
    """Standard parameters (p,) that fit best, 1/2 |R pi - z|^2 at them, the prior's weight, and the solve."""

    parameters: Array
    cost: float
    weight: float
    solution: ConeSolution
    possible: FeasibleSet

    @property
    def visible(self) -> bool:
        """Whether the prior's pull shows in the objective."""
        return self.solution.objective - self.cost > _HIDDEN

    @property
    def active(self) -> list[str]:
        """Constraints that hold the fit back: on the boundary, with a multiplier larger than what slack is left."""
        unknowns = self.solution.x[: self.possible.size + self.possible.extra]
        found = []
        for block, dual in zip(self.possible.blocks, self.solution.duals, strict=False):
            size = float(np.linalg.norm(dual * (block.unit if block.unit is not None else 1.0)))
            slack = block.slack(unknowns)
            if block.cone == "zero" or slack < min(size, _BOUNDARY):
                found.append(block.label)
        return found


def fit(
    possible: FeasibleSet,
    R: Array,
    z: Array,
    prior: Array,
    metric: Metric = "euclidean",
    weight: float | None = None,
    solver: str = "clarabel",
    scale: Array | None = None,
) -> Fit:
    """Minimise 1/2 |R pi - z|^2 + weight * distance(pi, prior) over possible robots; R (k, p), z (k,).

    Without a weight the prior only decides among vectors that fit equally well. `scale` (p,) are the units of the
    Euclidean distance, by default typical sizes.
    """
    found: Fit | None = None
    pulls = _PULLS if weight is None else (weight,)
    for pull in pulls:
        program = possible.program()
        program.minimise_squares(R, z)
        if pull > 0:
            add_distance(program, possible, prior, metric, pull, scale)
        answer = program.solve(solver)
        # A weaker pull may be too much for the solver where a stronger or a still weaker one is not.
        if answer.status == "failed" and (found is not None or pull != pulls[-1]):
            continue
        found = _solved(possible, answer, R, z, pull, "the feasible fit")
        if not found.visible:
            break
    assert found is not None
    return found


def closest(
    possible: FeasibleSet,
    R: Array,
    z: Array,
    bound: float,
    prior: Array,
    metric: Metric = "euclidean",
    solver: str = "clarabel",
    scale: Array | None = None,
) -> Fit:
    """The possible robot nearest to a prior among those with |R pi - z| <= bound."""
    program = possible.program()
    rows = sparse.csr_array(np.vstack([np.zeros((1, R.shape[1])), R / bound]))
    inside = Block("second-order", rows, np.concatenate([[1.0], -z / bound]), "the data are fitted")
    program.require(inside)
    add_distance(program, possible, prior, metric, scale=scale)
    return _solved(possible, program.solve(solver), R, z, 1.0, "the point closest to the prior")


def _solved(possible: FeasibleSet, found: ConeSolution, R: Array, z: Array, weight: float, what: str) -> Fit:
    if found.status == "infeasible":
        explain_conflict(possible)
    found.require(what)
    unknowns = found.x[: possible.size + possible.extra]
    outside = max((_outside(b, unknowns) for b in possible.blocks), default=0.0)
    if outside > _OUTSIDE:
        raise DynidError(f"{what} breaks a constraint by {outside:.1e} though {found.solver} calls it solved")
    pi = found.x[: possible.size]
    return Fit(pi, 0.5 * float(np.sum((R @ found.x[: R.shape[1]] - z) ** 2)), weight, found, possible)


def _outside(block: Block, x: Array) -> float:
    """How far a block lies outside its cone, as a share of its terms (of its unit, where those are smaller)."""
    outside = -block.slack(x)
    if outside <= _OUTSIDE:
        return outside
    terms = (np.abs(block.constant) + abs(block.matrix) @ np.abs(x)) / cone_scale(block)
    return outside / max(1.0, float(terms.max(initial=0.0)))
