"""Least squares within the feasible set.

    minimise |R pi - z|^2 / 2 + weight distance(pi, prior)    subject to C_b(pi) in cones

with the first of decreasing weights whose share of the cost is negligible, or the largest one whose fit keeps
|R pi - z|^2 / 2 within `excess` of its infimum.

Sources: Sousa and Cortesao (2014) and Sousa (2014), section 3.5, for the constrained fit of a QR factor; Wensing, Kim
and Slotine (2018) and Lee, Wensing and Park (2020), for the distance as a regularisation. The search of the weight is
our own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import DynidError
from dynid.feasibility.certificate import cone_scale
from dynid.feasibility.cone import Block, ConeSolution, smat, svec
from dynid.feasibility.conflict import explain_conflict
from dynid.feasibility.metrics import Metric, add_distance
from dynid.feasibility.sets import FeasibleSet

__all__ = ["Fit", "Restored", "closest", "fit", "fit_near_prior", "outside", "restored"]

Array = NDArray[np.float64]


# The last step of a solve: unknowns that end slightly outside of their cones are moved to the nearest point inside.
#
# An interior-point method ends within its tolerance of the boundary, on either side of it. A matrix that is outside is
# replaced by the nearest positive semidefinite one (its negative eigenvalues become zero, measured in the unit of its
# body), a sign by zero. Cones of different bodies have no unknown in common, so that this is the nearest point. Where
# equalities and sums of bodies hold too, the projections are repeated in turn, and the result is near but not nearest.
#
#     P+ = V max(L, 0) V' for P = V L V' in the unit of its block
#
# Source: Higham, Computing a Nearest Symmetric Positive Semidefinite Matrix (1988).


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


# Many standard vectors fit the data equally well. The prior selects one of them, with a weight that is reduced until
# its share of the objective is negligible: with unit noise, the sum of squares changes by less than 2e-3.
_PULLS = (1e-6, 1e-8, 1e-10, 1e-12)
_HIDDEN = 1e-3
_BOUNDARY = 1e-4
# Search of the weight: the least one, with which the fit is as good as the best, and the first and the largest one that
# are tried, all relative to the allowed excess of the cost.
_LEAST, _FIRST, _LARGEST = 2e-4, 0.03, 1e4
# A weight is accepted when it uses more than this share of the allowed excess, or after so many solves.
_USED, _SOLVES = 0.3, 4
# Larger weights that are tried where the solver fails.
_LARGER = (1.0, 1.7, 5.0, 30.0, 1000.0)
# Final check of a solution: largest violation of a cone, relative to its terms.
_OUTSIDE = 1e-6


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a constrained least-squares fit.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        Standard parameters, SI units.
    cost : float
        1/2 |R pi - z|^2 at the solution.
    weight : float
        Weight of the distance from the prior.
    solution : ConeSolution
        Result of the solver.
    feasible : FeasibleSet
        The constraints.
    best : ndarray, shape (p,), or None
        Standard parameters of the best fit, if the prior moved the solution away from it.
    failed : tuple of float
        Weights of the prior that are meant for the best fit and with which the solver failed: `best` has a larger one,
        and what exceeds its cost is a little more than was allowed.
    """

    parameters: Array
    cost: float
    weight: float
    solution: ConeSolution
    feasible: FeasibleSet
    best: Array | None = None
    failed: tuple[float, ...] = ()
    outside: float = 0.0
    restoring: float = 0.0
    inside: bool = True

    @property
    def visible(self) -> bool:
        """Whether the share of the prior in the objective is more than negligible."""
        return self.solution.objective - self.cost > _HIDDEN

    @property
    def active(self) -> list[str]:
        """Active constraints: on the boundary, with a multiplier larger than the remaining slack."""
        unknowns = self.solution.x[: self.feasible.size + self.feasible.extra]
        found = []
        for block, dual in zip(self.feasible.blocks, self.solution.duals, strict=False):
            size = float(np.linalg.norm(dual * (block.unit if block.unit is not None else 1.0)))
            slack = block.slack(unknowns)
            if block.cone == "zero" or slack < min(size, _BOUNDARY):
                found.append(block.label)
        return found


def fit(
    feasible: FeasibleSet,
    R: Array,
    z: Array,
    prior: Array,
    metric: Metric = "euclidean",
    weight: float | None = None,
    solver: str = "clarabel",
    scale: Array | None = None,
) -> Fit:
    """Minimise 1/2 |R pi - z|^2 + weight * distance(pi, prior) over the feasible set; R (k, p), z (k,).

    Without a weight, the prior only selects among vectors that fit equally well. `scale` (p,) are the units of the
    Euclidean distance, the typical sizes if not given.
    """
    found: Fit | None = None
    pulls = _PULLS if weight is None else (weight,)
    for pull in pulls:
        program = feasible.program()
        program.minimise_squares(R, z)
        if pull > 0:
            add_distance(program, feasible, prior, metric, pull, scale)
        result = program.solve(solver)
        # A solver may fail with one weight and not with a larger or a smaller one.
        if result.status == "failed" and (found is not None or pull != pulls[-1]):
            continue
        found = _solved(feasible, result, R, z, pull, "the feasible fit")
        if not found.visible:
            break
    assert found is not None
    return found


def fit_near_prior(
    feasible: FeasibleSet,
    R: Array,
    z: Array,
    prior: Array,
    excess: float,
    metric: Metric = "entropic",
    solver: str = "clarabel",
    scale: Array | None = None,
) -> Fit:
    """The feasible parameters nearest to a prior among those that the data cannot distinguish from the best.

    The best fit is often only approached as masses tend to infinity, since mass that has no effect on torques relaxes
    the constraints of its link. Therefore the cost 1/2 |R pi - z|^2 may exceed its infimum by `excess`, and the largest
    weight of the prior that keeps to it is searched. The cost increases with the weight, nearly as a power of it.
    """

    def solved(weight: float) -> Fit:
        # A solver may fail with one weight and not with a larger one.
        for factor in _LARGER:
            try:
                return fit(feasible, R, z, prior, metric, factor * weight, solver, scale)
            except DynidError as error:
                failure = error
        raise failure

    first = found = solved(_LEAST * excess)
    best, allowed = found.cost, found.cost + excess
    # Weights and their excess: below the allowed one, and above it.
    lower, upper = (found.weight, _LEAST * excess), (np.inf, np.inf)
    weight = _FIRST * excess
    for _ in range(_SOLVES):
        try:
            trial = solved(weight)
        except DynidError:  # what was found keeps to the excess: a weight between both may do better
            weight = float(np.sqrt(lower[0] * weight))
            continue
        over = max(trial.cost - best, _LEAST * excess)
        if trial.cost <= allowed:
            found, lower = trial, (trial.weight, over)
            if over >= _USED * excess or weight >= _LARGEST * excess:
                break
        else:
            upper = (trial.weight, over)
        weight = _next_weight(lower, upper, 0.7 * excess, _LARGEST * excess)
    failed = tuple(f * _LEAST * excess for f in _LARGER if f * _LEAST * excess < first.weight)
    return replace(found, best=first.parameters, failed=failed)


def _next_weight(lower: tuple[float, float], upper: tuple[float, float], aim: float, largest: float) -> float:
    """The weight at which a power law through two weights and their excess, or a straight one, meets the aim."""
    (w0, e0), (w1, e1) = lower, upper
    if not np.isfinite(w1):
        return float(min(w0 * min(max(aim / e0, 3.0), 30.0), largest))
    power = np.log(e1 / e0) / np.log(w1 / w0)
    step = np.log(aim / e0) / max(power, 1e-3)
    return float(np.exp(np.log(w0) + np.clip(step, 0.1 * np.log(w1 / w0), 0.9 * np.log(w1 / w0))))


def closest(
    feasible: FeasibleSet,
    R: Array,
    z: Array,
    bound: float,
    prior: Array,
    metric: Metric = "euclidean",
    solver: str = "clarabel",
    scale: Array | None = None,
) -> Fit:
    """The feasible parameters nearest to a prior among those with |R pi - z| <= bound."""
    program = feasible.program()
    rows = sparse.csr_array(np.vstack([np.zeros((1, R.shape[1])), R / bound]))
    inside = Block("second-order", rows, np.concatenate([[1.0], -z / bound]), "the data are fitted")
    program.require(inside)
    add_distance(program, feasible, prior, metric, scale=scale)
    return _solved(feasible, program.solve(solver), R, z, 1.0, "the point closest to the prior")


def _solved(feasible: FeasibleSet, found: ConeSolution, R: Array, z: Array, weight: float, what: str) -> Fit:
    """The fit of a solution, checked against all constraints."""
    if found.status in ("infeasible", "failed"):
        explain_conflict(feasible)
    found.require(what)
    unknowns = found.x[: feasible.size + feasible.extra]
    outside = max((_outside(b, unknowns) for b in feasible.blocks), default=0.0)
    if outside > _OUTSIDE:
        raise DynidError(
            f"{what} violates a constraint by {outside:.1e}, although {found.solver} reports that it is solved",
            code="not_converged",
        )
    return _restored_fit(feasible, found, restored(feasible, unknowns), R, z, weight)


def _restored_fit(feasible: FeasibleSet, found: ConeSolution, last: Restored, R: Array, z: Array, weight: float) -> Fit:
    """The fit with unknowns that were moved inside, which the solution then has too."""
    ended = found.x
    x = np.concatenate([last.x, ended[len(last.x) :]])
    before, cost = (0.5 * float(np.sum((R @ u[: R.shape[1]] - z) ** 2)) for u in (ended, x))
    return Fit(
        parameters=x[: feasible.size],
        cost=cost,
        weight=weight,
        solution=replace(found, x=x, objective=found.objective + cost - before),
        feasible=feasible,
        outside=last.before,
        restoring=cost - before,
        inside=last.after == 0,
    )


def _outside(block: Block, x: Array) -> float:
    """Violation of a block, relative to its terms (to its unit, where those are smaller)."""
    outside = -block.slack(x)
    if outside <= _OUTSIDE:
        return outside
    terms = (np.abs(block.constant) + abs(block.matrix) @ np.abs(x)) / cone_scale(block)
    return outside / max(1.0, float(terms.max(initial=0.0)))
