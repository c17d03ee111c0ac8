"""The questions of feasibility: is it possible, which possible one is nearest, and what may the rest be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DataError, DynidError
from dynid.feasibility.certificate import Certificate, block_unit
from dynid.feasibility.cone import Block, ConeProgram
from dynid.feasibility.conflict import explain_conflict
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.fit import closest, fit
from dynid.feasibility.metrics import Metric
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.robot.model import Robot
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["Nearest", "Verdict", "is_feasible", "nearest_feasible", "standard_parameters"]

Array = NDArray[np.float64]
Unit = Literal["relative", "SI"]

# No body is more than this many of its own units inside its cone; it bounds a search that could go on forever.
_CAP = 1.0
# Candidates have parameters up to this many times the typical size.
_REACH = 1e5
# What a solver leaves of an equality, as a share of its terms.
_ROUNDING = 1e-7
# Distances are small numbers: in units of a ten-thousandth the solver's tolerance is far below what is printed.
_FINE = 1e4
# The pull towards the prior picks one standard vector of many. A strong one is resolved best (to a hundredth of the
# typical size); it is made weaker until its share of the objective, squares of such small units, is hidden.
_PULLS = (1e-3, 1e-5, 1e-8, 1e-11, 1e-14)
_HIDDEN = 5e-4


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether some possible robot has these parameters, how clearly, and the proof.

    `margin` is how far inside (positive) or outside all constraints together the best candidate lies, in units of each
    constraint. Within `tolerance` of zero the answer is "undecided". `parameters` (p,) is that candidate: the witness
    of "feasible". `certificate` proves "infeasible". `virtual` is set for a standard vector that is impossible itself
    while another one with the same dynamics is possible.
    """

    answer: Literal["feasible", "infeasible", "undecided"]
    margin: float
    tolerance: float
    parameters: Array
    certificate: Certificate | None
    reasons: tuple[str, ...]
    virtual: bool = False

    def __bool__(self) -> bool:
        return self.answer == "feasible"

    def summary(self) -> str:
        """The verdict and its reasons, a line each."""
        kind = "virtually feasible" if self.virtual and self else self.answer
        head = f"{kind} (margin {self.margin:.3g}, undecided within {self.tolerance:.0e})"
        return "\n".join([head, *(f"  {reason}" for reason in self.reasons)])


@dataclass(frozen=True, eq=False)
class Nearest:
    """The possible base parameters (b,) nearest to given ones, a standard vector (p,) that has them, the distance."""

    beta: Array
    parameters: Array
    distance: float
    active: tuple[str, ...]


def is_feasible(
    subject: BaseParameters | Robot,
    values: ArrayLike | None = None,
    constraints: Constraints = "full",
    *,
    rounding: float = 0.0,
    tolerance: float = 1e-7,
    unit: Unit = "relative",
) -> Verdict:
    """Whether base parameters (b,) of BaseParameters, or standard ones (p,) of a Robot, belong to a possible robot.

    `values` default to the a-priori ones. With `rounding`, every base value may be off by that much: half of the last
    printed digit of a table. The margin is measured in units of each link and joint, or in SI units.
    """
    if rounding < 0:
        raise DataError(f"rounding must not be negative, got {rounding:g}")
    if unit not in ("relative", "SI"):
        raise DataError(f"unit '{unit}' is unknown: use relative or SI")
    if isinstance(subject, Robot):
        return _standard_verdict(subject, values, constraints, tolerance, unit)
    beta = _base_values(subject, values)
    possible = feasible_set(subject.robot, constraints)
    offset, directions = _given(possible, subject, beta, rounding)
    return _verdict(possible, subject, beta, offset, directions, rounding, tolerance, unit)


def _standard_verdict(
    robot: Robot, values: ArrayLike | None, constraints: Constraints, tolerance: float, unit: Unit
) -> Verdict:
    from dynid.parameters.base import base_parameters

    pi = robot.parameters if values is None else _standard_values(robot, values)
    possible = feasible_set(robot, constraints)
    own = [_in_unit(b, unit) for b in possible.blocks]
    if possible.extra:
        raise DataError("a standard vector cannot be tested against unions of ellipsoids; test its base parameters")
    margin = min((b.slack(pi) for b in own if b.cone != "zero"), default=np.inf)
    off = max((-b.slack(pi) for b in own if b.cone == "zero"), default=0.0)
    margin = min(margin, -off) if off > tolerance else margin
    if margin > tolerance:
        return Verdict("feasible", margin, tolerance, pi, None, ())
    reasons = tuple(possible.violations(pi, 0.0))
    base = base_parameters(robot)
    other = is_feasible(base, base.values(pi), constraints, tolerance=tolerance, unit=unit)
    if other:
        return replace(other, reasons=reasons, virtual=True)
    answer = "undecided" if abs(margin) <= tolerance else other.answer
    return Verdict(answer, margin, tolerance, pi, other.certificate, reasons)


def _verdict(
    possible: FeasibleSet,
    base: BaseParameters,
    beta: Array,
    offset: Array,
    directions: Array,
    rounding: float,
    tolerance: float,
    unit: Unit,
) -> Verdict:
    """Push the candidate as far inside all cones as it goes."""
    count = directions.shape[1]
    size = np.where(directions != 0, np.abs(directions), np.nan)
    # As large as the largest typical change of a parameter that one unit of a direction stands for.
    scale = np.nanmin(possible.scale[:, None] / size, axis=0)
    program = ConeProgram(count, scale)
    (t,) = program.more(1)
    for block in possible.blocks:
        inner = block.substituted(offset, directions)
        if block.cone != "zero":
            slack = sparse.csr_array(-block_unit(_in_unit(block, unit))[:, None])
            inner = replace(inner, matrix=sparse.csr_array(sparse.hstack([inner.matrix, slack])))
        program.require(inner)
    program.require(_row(t, -1.0, _CAP, program.unknowns, "cap"))
    if rounding:
        for i in range(base.count):
            program.require(_row(i, 1.0, rounding, program.unknowns, "rounding"))
            program.require(_row(i, -1.0, rounding, program.unknowns, "rounding"))
    # The best candidate may be infinitely heavy; a search without end ends badly.
    reach = _REACH * max(1.0, float(np.abs(offset / possible.scale).max(initial=0.0)))
    bounded = sparse.csr_array(sparse.vstack([sparse.csr_array((1, count)), sparse.diags_array(1 / (reach * scale))]))
    program.require(Block("second-order", bounded, np.eye(count + 1)[0], "reach"))
    cost = np.zeros(program.unknowns)
    cost[t] = -1.0
    program.minimise_linear(cost)
    found = program.solve(tolerance=min(1e-9, 0.01 * tolerance))
    if found.status == "infeasible":
        explain_conflict(possible)
    # Whatever the solver says of itself: a witness and a proof are checked for what they are.
    apart = found.status == "infeasible"  # equalities and these base values exclude each other
    x = offset if apart else offset + directions @ found.x[:count]
    margin = min((_in_unit(b, unit).slack(x) for b in possible.blocks if b.cone != "zero"), default=_CAP)
    pi = x[: possible.size]
    if margin > tolerance and not apart and _equalities_hold(possible, x):
        return Verdict("feasible", margin, tolerance, pi, None, ())
    certificate = Certificate.of(possible, base, beta, rounding, found.duals[: len(possible.blocks)])
    pairs = zip(possible.blocks, certificate.multipliers, strict=True)
    weight = sum(float(z @ block_unit(_in_unit(b, unit))) for b, z in pairs if b.cone != "zero")
    # No candidate lies further inside than the proof allows.
    outside = certificate.value / weight if weight > 0 else -np.inf
    reasons = certificate.reasons
    if certificate.holds and outside < -tolerance:
        return Verdict("infeasible", outside, tolerance, pi, certificate, reasons)
    if not apart:
        found.require("the feasibility test")
    return Verdict("undecided", margin, tolerance, pi, None, reasons)


def _equalities_hold(possible: FeasibleSet, x: Array) -> bool:
    """Whether every equality holds up to rounding of its terms."""
    for block in possible.blocks:
        size = np.abs(block.constant) + abs(block.matrix) @ np.maximum(np.abs(x), possible.scale)
        if block.cone == "zero" and np.any(np.abs(block.value(x)) > _ROUNDING * size):
            return False
    return True


def nearest_feasible(
    subject: BaseParameters | Robot,
    values: ArrayLike,
    constraints: Constraints = "full",
    *,
    covariance: ArrayLike | None = None,
    prior: ArrayLike | None = None,
) -> Nearest:
    """The possible parameters nearest to given base (b,) or, for a Robot, standard values (p,).

    Distances are Euclidean in SI units (they depend on the grouping), or in the metric of a covariance. Among standard
    vectors with the nearest base values the one closest to `prior` is taken, by default the robot's own.
    """
    if isinstance(subject, Robot):
        robot, K, given = subject, np.eye(len(subject.layout)), _standard_values(subject, values)
    else:
        robot, K, given = subject.robot, subject.matrix, _base_values(subject, values)
    root = np.eye(len(given)) if covariance is None else _whitening(covariance, len(given))
    possible = feasible_set(robot, constraints)
    start = robot.parameters if prior is None else _standard_values(robot, prior)
    rows, target = _wide(_FINE * root @ K, possible), _FINE * root @ given
    found = None
    for pull in _PULLS:
        try:
            found = fit(possible, rows, target, start, weight=pull)
        except DynidError:
            # A nearest point that only ever heavier bodies reach: the solver follows them a part of the way.
            if found is None:
                raise
            break
        if found.solution.objective - found.cost <= _HIDDEN:
            break
    assert found is not None
    beta = K @ found.parameters
    return Nearest(beta, found.parameters, float(np.linalg.norm(root @ (beta - given))), tuple(found.active))


def standard_parameters(
    base: BaseParameters,
    beta: ArrayLike,
    constraints: Constraints = "full",
    *,
    prior: ArrayLike | None = None,
    metric: Metric = "euclidean",
    slack: float = 1e-6,
) -> Array:
    """Standard parameters (p,) with given base values that are possible and closest to a prior.

    `slack` is by how much the base values may be missed, as a share of their norm: values on the boundary of the
    possible leave no room otherwise.
    """
    given = _base_values(base, beta)
    if not slack > 0:
        raise DataError(f"slack must be positive, got {slack:g}")
    possible = feasible_set(base.robot, constraints)
    start = base.robot.parameters if prior is None else _standard_values(base.robot, prior)
    bound = slack * (float(np.linalg.norm(given)) or 1.0)
    return closest(possible, _wide(base.matrix, possible), given, bound, start, metric).parameters


def _base_values(base: BaseParameters, values: ArrayLike | None) -> Array:
    if values is None:
        return base.values()
    return checked(values, (base.count,), f"base parameters of robot '{base.robot.name}'", DataError)


def _standard_values(robot: Robot, values: ArrayLike) -> Array:
    return checked(values, (len(robot.layout),), f"parameters of robot '{robot.name}'", DataError)


def _given(possible: FeasibleSet, base: BaseParameters, beta: Array, rounding: float) -> tuple[Array, Array]:
    """All unknowns with base values beta: a point, and the directions of rounding (b, where any) and of the rest."""
    dependent, extra = len(base.dependent), possible.extra
    free = base.join(np.zeros((dependent, base.count)), np.eye(dependent)).T
    if rounding:
        free = np.column_stack([base.join(np.eye(base.count)).T, free])
    offset = np.concatenate([base.join(beta), np.zeros(extra)])
    return offset, scipy.linalg.block_diag(free, np.eye(extra)) if extra else free


def _in_unit(block: Block, unit: Unit) -> Block:
    """The block with its slack measured relative to its link or joint, or in SI units."""
    return replace(block, unit=block_unit(block if unit == "relative" else replace(block, unit=None)))


def _row(column: int, coefficient: float, constant: float, width: int, label: str) -> Block:
    """coefficient times one unknown plus constant is not negative."""
    row = sparse.csr_array(([coefficient], ([0], [column])), shape=(1, width))
    return Block("nonnegative", row, np.array([constant]), label)


def _whitening(covariance: ArrayLike, size: int) -> Array:
    matrix = checked(covariance, (size, size), "covariance", DataError)
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(matrix)))
    except np.linalg.LinAlgError:
        raise DataError("the covariance is not positive definite") from None


def _wide(rows: Array, possible: FeasibleSet) -> Array:
    return np.column_stack([rows, np.zeros((len(rows), possible.extra))]) if possible.extra else rows
