"""Nonlinear least squares over physically consistent parameters: Gauss-Newton in log-Cholesky coordinates.

The pseudo-inertia of each link is U U' with a triangular U whose diagonal is an exponential.
Drive parameters that must not be negative are exponentials; the other parameters are unchanged. The map is one to one
onto the interior of the feasible set, so that the gradient with respect to the standard parameters is zero at an
interior optimum. An optimum on the boundary is infinitely far away in these coordinates: it is approached and never
reported as reached.

With weak priors the objective has valleys that are straight in the standard parameters and curved in the coordinates.
Therefore a full step over the standard parameters is tried first; where it leaves the feasible set, a damped step over
the coordinates is taken. Such steps can stall at the boundary far from the optimum. The search then starts again with a
barrier, the divergence from its start, whose weight decreases in stages.

    J = U U',    U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]],
    theta <- theta + argmin |r + r' step|^2 + damping |step|^2 in units of the columns.

Sources: Rucker and Wensing, Smooth Parameterization of Rigid-Body Inertia (2022), for the coordinates; Nielsen, Damping
Parameter in Marquardt's Method (1999), for the update of the damping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, Infeasible
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.metrics import Metric, distance, local_rows, signed_columns
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.robot.inertia import inertia_from_log_cholesky, inertia_from_pseudo, inertia_to_log_cholesky
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.threads import one_blas_thread

__all__ = ["Refinement", "fit_log_cholesky", "log_cholesky_jacobian", "refine_parameters"]

Array = NDArray[np.float64]
Residual = Callable[[Array], tuple[Array, Array]]
Status = Literal["converged", "stalled at the boundary", "stalled", "stopped at the iteration limit"]

# Row and column in U of the off-diagonal coordinates s12, s23, s13, t1, t2, t3.
_OFF_DIAGONAL = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
# Start value of a drive parameter that is zero, relative to its typical size.
_FIRST = 1e-3
# Smallest slack of an interior point, in units of a link or joint.
_INSIDE = 1e-12
# Largest change of a logarithm in one step, against overflow.
_LONGEST = 1.0
_RANK = 1e-12
# Iterations of the plain descent before it is restarted with a barrier.
_PLAIN_STEPS = 100
# Factor of the barrier weight per stage, iterations per stage, and last weight relative to the objective.
_LESS, _STAGE_STEPS, _LAST_BARRIER = 0.1, 30, 1e-12
# Step lengths of the line search, and required share of the predicted decrease.
_SHARES, _ENOUGH = tuple(0.5**k for k in range(12)), 0.2
_ROUNDING = 1e-14
# Largest damping: the step is then negligible.
_MOST_DAMPING = 1e15
# A fit stalls if this many steps together gain less than this share of the gap.
_STALL_STEPS, _STALL_SHARE = 10, 1e-3
# Slack, in units of a link or joint, below which a stalled fit is at that boundary.
_NEAR = 1e-4


@dataclass(frozen=True, eq=False)
class Refinement:
    """Result of `refine_parameters`.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        Standard parameters, SI units.
    objective : float
        Value of the objective.
    gap : float
        Decrease of the quadratic model of the objective at its unconstrained minimum: near zero only at an interior
        optimum.
    status : str
        "converged", "stalled at the boundary", "stalled" or "stopped at the iteration limit".
    iterations : int
        Number of iterations.
    boundary : tuple of str
        Constraints at whose boundary the fit stalled.
    """

    parameters: Array
    objective: float
    gap: float
    status: Status
    iterations: int
    boundary: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the gap is below the tolerance."""
        return self.status == "converged"


def log_cholesky_jacobian(theta: ArrayLike) -> Array:
    """Derivative (10, 10) of the inertial parameters with respect to those of `inertia_from_log_cholesky`.

    d(U U') = dU U' + U dU'; alpha scales all of U, d_k its diagonal entry k, the others are entries of U.
    """
    theta = checked(theta, (10,), "log-Cholesky parameters", DataError)
    size = np.exp(theta[0])
    upper = np.diag([*np.exp(theta[1:4]), 1.0])
    for k, (i, j) in enumerate(_OFF_DIAGONAL):
        upper[i, j] = theta[4 + k]
    upper *= size
    change = np.zeros((10, 4, 4))
    change[0] = upper
    for k in range(3):
        change[1 + k, k, k] = upper[k, k]
    for k, (i, j) in enumerate(_OFF_DIAGONAL):
        change[4 + k, i, j] = size
    half = change @ upper.T
    return inertia_from_pseudo(half + np.swapaxes(half, -1, -2)).T


def fit_log_cholesky(
    robot: Robot,
    R: Array,
    z: Array,
    prior: Array,
    weight: float,
    start: ArrayLike | None = None,
    metric: Metric = "euclidean",
    *,
    scale: Array | None = None,
    max_iterations: int = 500,
    tolerance: float = 1e-12,
) -> Refinement:
    """Minimise 1/2 |R pi - z|^2 + weight * distance(pi, prior), as `fit` does, from an interior start (the prior)."""
    return refine_parameters(
        robot,
        lambda pi: (R @ pi - z, R),
        prior if start is None else start,
        prior=prior,
        weight=weight,
        metric=metric,
        scale=scale,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )


def refine_parameters(
    robot: Robot,
    residual: Residual,
    start: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    weight: float = 0.0,
    metric: Metric = "euclidean",
    scale: Array | None = None,
    max_iterations: int = 500,
    tolerance: float = 1e-12,
) -> Refinement:
    """Minimise `|r(pi)|^2 / 2 + weight * distance(pi, prior)` over the interior of the feasible set.

    The pseudo-inertia of every link stays positive definite, and friction and rotor inertia stay positive.

    Parameters
    ----------
    robot : Robot
        The robot.
    residual : callable
        residual(pi) -> r (k,) and its derivative (k, p) at standard parameters pi (p,).
    start : array_like, shape (p,)
        Standard parameters inside the feasible set. Friction and rotor inertia of zero start slightly above zero.
    prior : array_like, shape (p,), optional
        Prior; `robot.parameters` if not given.
    weight : float
        Weight of the distance from the prior.
    metric : {"euclidean", "pullback", "entropic"}
        Distance from the prior.
    scale : ndarray, shape (p,), optional
        Units of the Euclidean distance; typical sizes if not given.
    max_iterations : int
        Largest number of iterations.
    tolerance : float
        The search has converged when the gap is below this share of the objective.

    Returns
    -------
    Refinement

    Raises
    ------
    DataError
        For wrong shapes, and if the start is not inside the feasible set.
    """
    feasible = feasible_set(robot, [Inertia(margin=0.0), Signs()])
    about = checked(
        robot.parameters if prior is None else prior, (feasible.size,), f"prior of robot '{robot.name}'", DataError
    )
    inside = _inside(feasible, start)
    units = feasible.scale if scale is None else scale
    problem = _Problem(feasible, _Coordinates(robot), residual, about, weight, metric, units, inside)
    with one_blas_thread():  # small matrices: several threads are slower
        return _search(problem, inside, max_iterations, tolerance)


def _search(problem: _Problem, start: Array, max_iterations: int, tolerance: float) -> Refinement:
    """A plain descent; if it does not converge, one with a decreasing barrier; the better of both."""
    plain = _descent(problem, start, min(max_iterations, _PLAIN_STEPS), tolerance)
    left = max_iterations - plain.iterations
    if plain.converged or left <= 0:
        return plain
    parameters, first = start, problem.at(start).objective
    barrier = first / len(start)
    while barrier > _LAST_BARRIER * first and left > 0:
        kept = _descent(replace(problem, barrier=barrier), parameters, min(left, _STAGE_STEPS), tolerance, barrier)
        parameters, left, barrier = kept.parameters, left - kept.iterations, _LESS * barrier
    last = _descent(problem, parameters, left, tolerance)
    best = min(plain, last, key=lambda end: end.objective)
    return replace(best, iterations=max_iterations - left + last.iterations)


def _descent(problem: _Problem, start: Array, max_iterations: int, tolerance: float, enough: float = 0.0) -> Refinement:
    """Descent from an interior start until the gap is below a share of the objective, or below `enough`."""
    here = problem.at(start)
    past = [here.objective]
    damping, factor = 1e-3, 2.0
    status: Status | None = None
    iterations = 0
    while status is None:
        if here.gap <= max(enough, tolerance * here.objective + here.rounding):
            here, status = problem.polished(here), "converged"
        elif damping > _MOST_DAMPING or _no_progress(past, here.gap):
            status = "stalled"
        elif iterations >= max_iterations:
            status = "stopped at the iteration limit"
        else:
            iterations += 1
            there = problem.along(here)
            if there is None:
                theta, promised = _damped(here, problem.coordinates, damping)
                there = problem.tried(problem.coordinates.parameters(theta))
                gain = 0.0 if there is None else here.objective - there.objective
                if there is None or min(gain, promised) <= 0:
                    damping, factor = damping * factor, 2.0 * factor
                    continue
                damping, factor = damping * max(0.1, 1.0 - (2.0 * gain / promised - 1.0) ** 3), 2.0
            here = there
            past.append(here.objective)
    boundary = problem.near(here.parameters) if status != "converged" else ()
    if status == "stalled" and boundary:
        status = "stalled at the boundary"
    return Refinement(here.parameters, here.objective, here.gap, status, iterations, boundary)


@dataclass(frozen=True, eq=False)
class _Point:
    """The objective at standard parameters, and its quadratic model 1/2 |rows @ change + rest|^2 plus a constant.

    Rows are over the coordinates theta. `newton` (p,) is the smallest change of the standard parameters that minimises
    the model, and `gap` the decrease of the model: both are independent of the coordinates and of the boundary.
    """

    parameters: Array
    theta: Array
    objective: float
    rows: Array
    rest: Array
    newton: Array
    gap: float
    rounding: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective: 1/2 |r|^2 + weight * distance from the prior + barrier * divergence from `about`."""

    feasible: FeasibleSet
    coordinates: _Coordinates
    residual: Residual
    prior: Array
    weight: float
    metric: Metric
    scale: Array
    about: Array
    barrier: float = 0.0

    def at(self, pi: Array) -> _Point:
        """Objective and quadratic model at a point."""
        robot, p = self.feasible.robot, self.feasible.size
        rest, rows = self.residual(pi)
        objective = 0.5 * float(rest @ rest)
        parts: list[tuple[float, Array, Metric]] = [
            (self.weight, self.prior, self.metric),
            (self.barrier, self.about, "entropic"),
        ]
        for weight, prior, metric in parts:
            if weight > 0:
                more, target = local_rows(robot, pi, prior, metric, self.scale)
                rows = np.vstack([rows, np.sqrt(weight) * more])
                rest = np.concatenate([rest, np.sqrt(weight) * target])
                objective += weight * distance(robot, pi, prior, metric, self.scale)
        rounding = 0.5 * _ROUNDING**2 * float(np.sum((rows * pi) ** 2))
        theta = self.coordinates.of(pi)
        slope = self.coordinates.jacobian(theta)
        folded = np.asarray(np.linalg.qr(np.column_stack([rows @ slope, rest]), mode="r"))
        rows, rest = folded[:, :p], folded[:, p]
        size = np.linalg.norm(rows, axis=0)
        size[size == 0] = 1.0
        left, strength, right = np.linalg.svd(rows / size, full_matrices=False)
        count = int(np.sum(strength > _RANK * strength[0]))
        seen = left[:, :count].T @ rest
        newton = -slope @ ((right[:count].T @ (seen / strength[:count])) / size)
        return _Point(pi, theta, objective, rows, rest, newton, 0.5 * float(seen @ seen), rounding)

    def tried(self, pi: Array) -> _Point | None:
        """The point, or None where it is not inside the feasible set.

        In coordinates all links are inside, up to rounding; couplings between drives are not among the coordinates.
        """
        return self.at(pi) if self.feasible.slack(pi) > _INSIDE else None

    def along(self, here: _Point) -> _Point | None:
        """A lower point along the full step: its end or, with a barrier, a point before."""
        for share in _SHARES if self.barrier > 0 else _SHARES[:1]:
            there = self.tried(here.parameters + share * here.newton)
            if there is not None and here.objective - there.objective > _ENOUGH * share * here.gap:
                return there
        return None

    def polished(self, here: _Point) -> _Point:
        """One more full step if it reduces the gap, below the resolution of the objective."""
        there = self.tried(here.parameters + here.newton)
        return here if there is None or there.gap >= here.gap else there

    def near(self, pi: Array) -> tuple[str, ...]:
        """Labels of the constraints whose boundary is close, in units of each link and joint."""
        found = []
        for block in self.feasible.blocks:
            slack = block.slack(pi)
            if block.cone == "nonnegative":
                slack /= self.feasible.scale[block.matrix.indices[0]]
            if slack < _NEAR:
                found.append(block.label)
        return tuple(found)


class _Coordinates:
    """Unconstrained coordinates theta (p,) of feasible standard parameters."""

    def __init__(self, robot: Robot) -> None:
        self.links = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
        self.signed = signed_columns(robot)
        # alpha and d1, d2, d3 of every link.
        self.logarithms = np.array([first + k for first in self.links for k in range(4)] + self.signed)

    def of(self, pi: Array) -> Array:
        """Coordinates of standard parameters."""
        theta = pi.copy()
        for first in self.links:
            theta[first : first + 10] = inertia_to_log_cholesky(pi[first : first + 10])
        theta[self.signed] = np.log(pi[self.signed])
        return theta

    def parameters(self, theta: Array) -> Array:
        """Standard parameters of coordinates."""
        pi = theta.copy()
        for first in self.links:
            pi[first : first + 10] = inertia_from_log_cholesky(theta[first : first + 10])
        pi[self.signed] = np.exp(theta[self.signed])
        return pi

    def jacobian(self, theta: Array) -> Array:
        """Derivative (p, p) of the standard parameters with respect to theta."""
        out = np.eye(len(theta))
        for first in self.links:
            own = slice(first, first + 10)
            out[own, own] = log_cholesky_jacobian(theta[own])
        out[self.signed, self.signed] = np.exp(theta[self.signed])
        return out


def _damped(here: _Point, coordinates: _Coordinates, damping: float) -> tuple[Array, float]:
    """Coordinates after a Levenberg-Marquardt step, and the decrease that the quadratic model predicts."""
    size = np.linalg.norm(here.rows, axis=0)
    size = np.maximum(size, 1e-8 * size.max())
    p = len(here.theta)
    stacked = np.vstack([here.rows / size, np.sqrt(damping) * np.eye(p)])
    step = scipy.linalg.lstsq(stacked, np.concatenate([-here.rest, np.zeros(p)]), lapack_driver="gelsy")[0] / size
    longest = float(np.abs(step[coordinates.logarithms]).max())
    step = step * min(1.0, _LONGEST / longest) if longest > 0 else step
    after = here.rest + here.rows @ step
    return here.theta + step, 0.5 * float(here.rest @ here.rest - after @ after)


def _no_progress(past: list[float], gap: float) -> bool:
    """Whether the last steps together gained too little."""
    return len(past) > _STALL_STEPS and past[-1 - _STALL_STEPS] - past[-1] < _STALL_SHARE * gap


def _inside(feasible: FeasibleSet, start: ArrayLike) -> Array:
    """The start, with drive parameters of zero raised slightly; an error if it is not inside the feasible set."""
    pi = np.array(checked(start, (feasible.size,), f"start of robot '{feasible.robot.name}'", DataError))
    zero = [i for i in signed_columns(feasible.robot) if pi[i] == 0]
    pi[zero] = _FIRST * feasible.scale[zero]
    outside = [block.label for block in feasible.blocks if block.slack(pi) <= _INSIDE]
    if outside:
        raise Infeasible(
            f"the start is not inside the feasible set: {'; '.join(outside)}; give a feasible start", "start"
        )
    return pi
