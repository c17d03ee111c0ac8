"""Feasibility queries: test of parameters, nearest feasible parameters, and standard parameters of base parameters.

    test:       maximise t subject to C_b(pi) - t unit_b in cone_b, K pi = beta, t <= 1
    nearest:    minimise |beta' - beta|^2 subject to C_b(pi) in cone_b, K pi = beta'

Sources: Sousa and Cortesao (2014); Sousa (2014), sections 3.3 (equations 3.34 and 3.35) and 3.4 (equations 3.36 to
3.40). The margin t, in units of each constraint, takes the place of the thesis' fixed shift of the matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DataError, DynidError, InvalidValue, NotApplicable, UnknownName, named
from dynid.feasibility.certificate import Certificate, block_unit
from dynid.feasibility.cone import Block, ConeProgram
from dynid.feasibility.conflict import explain_conflict
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.fit import closest, fit
from dynid.feasibility.metrics import Metric
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.markup import HtmlSummary
from dynid.robot.model import Robot
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["FeasibilityTest", "Nearest", "is_feasible", "nearest_feasible", "standard_parameters"]

Array = NDArray[np.float64]
Unit = Literal["relative", "SI"]

# Largest margin, in units of each constraint: it bounds a search that could diverge.
_CAP = 1.0
# Bound on the parameters of a candidate, in multiples of their typical size.
_REACH = 1e5
# Residual of an equality after a solve, relative to its terms.
_ROUNDING = 1e-7
# Distances are scaled up by this factor, so that the tolerance of the solver is far below the printed digits.
_FINE = 1e4
# Weights of the prior, which selects one of many standard vectors. A large weight is resolved best (to a hundredth of
# the typical size); it is reduced until its share of the scaled objective is below _HIDDEN.
_PULLS = (1e-3, 1e-5, 1e-8, 1e-11, 1e-14)
_HIDDEN = 5e-4


@dataclass(frozen=True, eq=False)
class FeasibilityTest(HtmlSummary):
    """Result of the test whether parameters are physically consistent. It is true if they are feasible.

    Attributes
    ----------
    status : {"feasible", "infeasible", "undecided"}
        "undecided" where the margin is within `tolerance` of zero.
    margin : float
        Smallest slack of all constraints at the best candidate, in units of each constraint; negative if infeasible.
    tolerance : float
        Margins within this distance from zero are undecided.
    parameters : ndarray, shape (p,)
        Standard parameters of the best candidate, which prove "feasible".
    certificate : Certificate or None
        Proof of "infeasible".
    reasons : tuple of str
        Constraints that are violated, or that the certificate combines.
    virtual : bool
        A standard vector that violates the constraints itself, while another one with the same dynamics satisfies them.
    """

    status: Literal["feasible", "infeasible", "undecided"]
    margin: float
    tolerance: float
    parameters: Array
    certificate: Certificate | None
    reasons: tuple[str, ...]
    virtual: bool = False

    def __bool__(self) -> bool:
        return self.status == "feasible"

    def summary(self) -> str:
        """Status, margin and reasons as text, one reason per line."""
        kind = "virtually feasible" if self.virtual and self else self.status
        head = f"{kind} (margin {self.margin:.3g}, undecided within {self.tolerance:.0e})"
        return "\n".join([head, *(f"  {reason}" for reason in self.reasons)])


@dataclass(frozen=True, eq=False)
class Nearest:
    """Feasible parameters nearest to given ones.

    Attributes
    ----------
    beta : ndarray, shape (b,) or (p,)
        Nearest feasible base parameters, or standard parameters where a Robot was given.
    parameters : ndarray, shape (p,)
        Feasible standard parameters with these values.
    distance : float
        Distance from the given values.
    active : tuple of str
        Constraints at which the result lies on the boundary.
    """

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
) -> FeasibilityTest:
    """Test whether base or standard parameters are physically consistent.

    Parameters
    ----------
    subject : BaseParameters or Robot
        BaseParameters to test base parameters, Robot to test standard parameters.
    values : array_like, shape (b,) or (p,), optional
        Parameters to test; the a-priori values of the robot if not given.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.
    rounding : float
        Half the last printed digit of a table: every base value may differ by that much.
    tolerance : float
        Margins within this distance from zero are undecided.
    unit : {"relative", "SI"}
        Whether the margin is relative to the mass and size of each link and joint, or in SI units.

    Returns
    -------
    FeasibilityTest

    Raises
    ------
    DataError
        For wrong shapes and settings.
    DynidError
        If the constraints contradict each other, or the solver fails.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("tx40")
    >>> base = dynid.base_parameters(robot)
    >>> dynid.feasibility.is_feasible(base).status
    'feasible'
    """
    if rounding < 0:
        raise InvalidValue(f"rounding must not be negative, got {rounding:g}", "rounding")
    if unit not in ("relative", "SI"):
        raise UnknownName(f"{named('unit')} '{unit}' is unknown: use relative or SI")
    if isinstance(subject, Robot):
        return _standard_verdict(subject, values, constraints, tolerance, unit)
    beta = _base_values(subject, values)
    feasible = feasible_set(subject.robot, constraints)
    offset, directions = _given(feasible, subject, beta, rounding)
    return _verdict(feasible, subject, beta, offset, directions, rounding, tolerance, unit)


def _standard_verdict(
    robot: Robot, values: ArrayLike | None, constraints: Constraints, tolerance: float, unit: Unit
) -> FeasibilityTest:
    """Test a standard vector itself and, where it violates a constraint, its base parameters."""
    from dynid.parameters.base import base_parameters

    pi = robot.parameters if values is None else _standard_values(robot, values)
    feasible = feasible_set(robot, constraints)
    own = [_in_unit(b, unit) for b in feasible.blocks]
    if feasible.extra:
        raise NotApplicable("a standard vector cannot be tested against unions of ellipsoids; test its base parameters")
    margin = min((b.slack(pi) for b in own if b.cone != "zero"), default=np.inf)
    off = max((-b.slack(pi) for b in own if b.cone == "zero"), default=0.0)
    margin = min(margin, -off) if off > tolerance else margin
    if margin > tolerance:
        return FeasibilityTest("feasible", margin, tolerance, pi, None, ())
    reasons = tuple(feasible.violations(pi, 0.0))
    base = base_parameters(robot)
    other = is_feasible(base, base.values(pi), constraints, tolerance=tolerance, unit=unit)
    if other:
        return replace(other, reasons=reasons, virtual=True)
    status = "undecided" if abs(margin) <= tolerance else other.status
    return FeasibilityTest(status, margin, tolerance, pi, other.certificate, reasons)


def _verdict(
    feasible: FeasibleSet,
    base: BaseParameters,
    beta: Array,
    offset: Array,
    directions: Array,
    rounding: float,
    tolerance: float,
    unit: Unit,
) -> FeasibilityTest:
    """Maximise the smallest slack of all constraints over the candidates."""
    count = directions.shape[1]
    size = np.where(directions != 0, np.abs(directions), np.nan)
    # The typical size of each direction: the smallest ratio of typical size to coefficient.
    scale = np.nanmin(feasible.scale[:, None] / size, axis=0)
    program = ConeProgram(count, scale)
    (t,) = program.more(1)
    for block in feasible.blocks:
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
    # The best candidate may be infinitely heavy: the search is bounded.
    reach = _REACH * max(1.0, float(np.abs(offset / feasible.scale).max(initial=0.0)))
    bounded = sparse.csr_array(sparse.vstack([sparse.csr_array((1, count)), sparse.diags_array(1 / (reach * scale))]))
    program.require(Block("second-order", bounded, np.eye(count + 1)[0], "reach"))
    cost = np.zeros(program.unknowns)
    cost[t] = -1.0
    program.minimise_linear(cost)
    found = program.solve(tolerance=min(1e-9, 0.01 * tolerance))
    if found.status == "infeasible":
        explain_conflict(feasible)
    # Candidate and certificate are checked independently of the status of the solver.
    apart = found.status == "infeasible"  # the equalities contradict these base values
    x = offset if apart else offset + directions @ found.x[:count]
    margin = min((_in_unit(b, unit).slack(x) for b in feasible.blocks if b.cone != "zero"), default=_CAP)
    pi = x[: feasible.size]
    if margin > tolerance and not apart and _equalities_hold(feasible, x):
        return FeasibilityTest("feasible", margin, tolerance, pi, None, ())
    certificate = Certificate.of(feasible, base, beta, rounding, found.duals[: len(feasible.blocks)])
    pairs = zip(feasible.blocks, certificate.multipliers, strict=True)
    weight = sum(float(z @ block_unit(_in_unit(b, unit))) for b, z in pairs if b.cone != "zero")
    # The certificate bounds the margin of every candidate.
    outside = certificate.value / weight if weight > 0 else -np.inf
    reasons = certificate.reasons
    if certificate.holds and outside < -tolerance:
        return FeasibilityTest("infeasible", outside, tolerance, pi, certificate, reasons)
    if not apart:
        found.require("the feasibility test")
    return FeasibilityTest("undecided", margin, tolerance, pi, None, reasons)


def _equalities_hold(feasible: FeasibleSet, x: Array) -> bool:
    """Whether every equality holds up to rounding errors of its terms."""
    for block in feasible.blocks:
        size = np.abs(block.constant) + abs(block.matrix) @ np.maximum(np.abs(x), feasible.scale)
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
    """Feasible parameters nearest to given base or standard parameters.

    Parameters
    ----------
    subject : BaseParameters or Robot
        BaseParameters if `values` are base parameters, Robot if they are standard parameters.
    values : array_like, shape (b,) or (p,)
        Parameters, SI units.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.
    covariance : array_like, shape (b, b) or (p, p), optional
        Covariance of `values`: the distance is then the Mahalanobis distance. Otherwise it is Euclidean in SI units,
        which depends on the grouping of the base parameters.
    prior : array_like, shape (p,), optional
        Among standard vectors with the nearest values, the one closest to the prior is returned; `robot.parameters`
        if not given.

    Returns
    -------
    Nearest

    Raises
    ------
    DataError
        For wrong shapes and a covariance that is not positive definite.
    DynidError
        If the constraints contradict each other, or the solver fails.
    """
    if isinstance(subject, Robot):
        robot, K, given = subject, np.eye(len(subject.layout)), _standard_values(subject, values)
    else:
        robot, K, given = subject.robot, subject.matrix, _base_values(subject, values)
    root = np.eye(len(given)) if covariance is None else _whitening(covariance, len(given))
    feasible = feasible_set(robot, constraints)
    start = robot.parameters if prior is None else _standard_values(robot, prior)
    rows, target = _wide(_FINE * root @ K, feasible), _FINE * root @ given
    found = None
    for pull in _PULLS:
        try:
            found = fit(feasible, rows, target, start, weight=pull)
        except DynidError:
            # The nearest point is a limit of ever heavier bodies: keep the last solution.
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
    """Feasible standard parameters with given base parameters, closest to a prior.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    beta : array_like, shape (b,)
        Values of the base parameters.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.
    prior : array_like, shape (p,), optional
        Prior; `robot.parameters` if not given.
    metric : {"euclidean", "pullback", "entropic"}
        Distance from the prior.
    slack : float
        Allowed error of the base values, relative to their norm. Values on the boundary of the feasible set need it.

    Returns
    -------
    ndarray, shape (p,)
        Standard parameters, SI units.

    Raises
    ------
    DataError
        For wrong shapes and settings.
    DynidError
        If no feasible robot has these base parameters, or the solver fails.
    """
    given = _base_values(base, beta)
    if not slack > 0:
        raise InvalidValue(f"slack must be positive, got {slack:g}", "slack")
    feasible = feasible_set(base.robot, constraints)
    start = base.robot.parameters if prior is None else _standard_values(base.robot, prior)
    bound = slack * (float(np.linalg.norm(given)) or 1.0)
    return closest(feasible, _wide(base.matrix, feasible), given, bound, start, metric).parameters


def _base_values(base: BaseParameters, values: ArrayLike | None) -> Array:
    """Checked base parameters (b,), the a-priori ones if not given."""
    if values is None:
        return base.values()
    return checked(values, (base.count,), f"base parameters of robot '{base.robot.name}'", DataError)


def _standard_values(robot: Robot, values: ArrayLike) -> Array:
    """Checked standard parameters (p,)."""
    return checked(values, (len(robot.layout),), f"parameters of robot '{robot.name}'", DataError)


def _given(feasible: FeasibleSet, base: BaseParameters, beta: Array, rounding: float) -> tuple[Array, Array]:
    """The unknowns with base values beta: a point, and the directions of rounding (if any) and of the null space."""
    dependent, extra = len(base.dependent), feasible.extra
    free = base.join(np.zeros((dependent, base.count)), np.eye(dependent)).T
    if rounding:
        free = np.column_stack([base.join(np.eye(base.count)).T, free])
    offset = np.concatenate([base.join(beta), np.zeros(extra)])
    return offset, scipy.linalg.block_diag(free, np.eye(extra)) if extra else free


def _in_unit(block: Block, unit: Unit) -> Block:
    """The block with its slack relative to its link or joint, or in SI units."""
    return replace(block, unit=block_unit(block if unit == "relative" else replace(block, unit=None)))


def _row(column: int, coefficient: float, constant: float, width: int, label: str) -> Block:
    """coefficient times one unknown plus constant is not negative."""
    row = sparse.csr_array(([coefficient], ([0], [column])), shape=(1, width))
    return Block("nonnegative", row, np.array([constant]), label)


def _whitening(covariance: ArrayLike, size: int) -> Array:
    """Whitening matrix of a covariance."""
    matrix = checked(covariance, (size, size), "covariance", DataError)
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(matrix)))
    except np.linalg.LinAlgError:
        raise InvalidValue("the covariance is not positive definite", "covariance") from None


def _wide(rows: Array, feasible: FeasibleSet) -> Array:
    """Rows over the standard parameters, padded for the extra unknowns."""
    return np.column_stack([rows, np.zeros((len(rows), feasible.extra))]) if feasible.extra else rows
