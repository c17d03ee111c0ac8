"""Fits that cannot leave the possible: Gauss-Newton over log-Cholesky coordinates of every link.

Each link's pseudo-inertia is U U' with a triangular U whose diagonal is an exponential (Rucker and Wensing 2022), drive
parameters that must not be negative are exponentials, the others are themselves. The map is one to one onto the
interior of the possible, so an optimum inside is one where the gradient over the standard parameters is zero. An
optimum on the boundary lies infinitely far away in these coordinates: it is approached, and never reported as reached.

Weak priors make valleys that are straight in the standard parameters and curved in the coordinates. So the full step
over standard parameters comes first; where it leaves the possible, a damped one over the coordinates is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.errors import DataError
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.metrics import Metric, distance, local_rows, signed_columns
from dynid.feasibility.possible import PossibleRobots, possible_robots
from dynid.robot.inertia import inertia_from_log_cholesky, inertia_from_pseudo, inertia_to_log_cholesky
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["Refinement", "fit_log_cholesky", "log_cholesky_jacobian", "refine"]

Array = NDArray[np.float64]
Residual = Callable[[Array], tuple[Array, Array]]
Status = Literal["converged", "stalled at the boundary", "stalled", "stopped at the iteration limit"]

# Row and column in U of the off-diagonal coordinates s12, s23, s13, t1, t2, t3.
_OFF_DIAGONAL = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
# A drive parameter of zero starts at this share of its typical size.
_FIRST = 1e-3
# No logarithm moves by more than this in one step, so that nothing overflows.
_LONGEST = 3.0
_RANK = 1e-12
_ROUNDING = 1e-14
# Damping beyond which no step is left.
_MOST_DAMPING = 1e15
# A fit stalls if this many steps together gain less than a share of what is left to gain.
_STALL_STEPS, _STALL_SHARE = 10, 1e-3
# Slack, in units of a link or joint, below which a stalled fit is said to be at that boundary.
_NEAR = 1e-4


@dataclass(frozen=True, eq=False)
class Refinement:
    """Standard parameters (p,), the objective there, and how the search ended.

    `gap` is how much lower the objective's quadratic model gets without any constraint: near zero only at an optimum
    inside. `boundary` names the constraints that a fit stalled at.
    """

    parameters: Array
    objective: float
    gap: float
    status: Status
    iterations: int
    boundary: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        return self.status == "converged"


def log_cholesky_jacobian(theta: ArrayLike) -> Array:
    """Derivative (10, 10) of the ten inertial numbers by the log-Cholesky ones of `inertia_from_log_cholesky`.

    d(U U') = dU U' + U dU'; alpha scales all of U, d_k its diagonal entry k, the others are entries themselves.
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
    max_iterations: int = 300,
    tolerance: float = 1e-12,
) -> Refinement:
    """Minimise 1/2 |R pi - z|^2 + weight * distance(pi, prior), as `fit` does, from a start inside (the prior)."""
    return refine(
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


def refine(
    robot: Robot,
    residual: Residual,
    start: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    weight: float = 0.0,
    metric: Metric = "euclidean",
    scale: Array | None = None,
    max_iterations: int = 300,
    tolerance: float = 1e-12,
) -> Refinement:
    """Minimise 1/2 |r(pi)|^2 + weight * distance(pi, prior) over robots that are strictly possible.

    `residual` gives r (k,) and its derivative (k, p) at standard parameters (p,). Links stay full bodies and drive
    parameters keep their signs. It has converged when the objective's quadratic model has less than `tolerance` of it
    left to gain.
    """
    problem = _Problem.of(robot, residual, prior, weight, metric, scale)
    with threadpool_limits(1, "blas"):  # small matrices: more threads only get in each other's way
        return _search(problem, _inside(problem, start), max_iterations, tolerance)


def _search(problem: _Problem, start: Array, max_iterations: int, tolerance: float) -> Refinement:
    coordinates = _Coordinates(problem.possible.robot)
    theta = coordinates.of(start)
    here = problem.at(coordinates.parameters(theta))
    past = [here.objective]
    damping, factor = 1e-3, 2.0
    status: Status | None = None
    iterations = 0
    while status is None:
        if here.gap <= tolerance * here.objective + here.rounding:
            status = "converged"
        elif damping > _MOST_DAMPING or _no_progress(past, here.gap):
            status = "stalled"
        elif iterations >= max_iterations:
            status = "stopped at the iteration limit"
        else:
            iterations += 1
            full = here.parameters + here.newton
            if problem.allows(full) and (there := problem.at(full)).objective < here.objective:
                theta, here = coordinates.of(full), there
                past.append(here.objective)
                continue
            step, promised = _damped_step(here, coordinates, theta, damping)
            there = problem.at(coordinates.parameters(theta + step))
            gain = here.objective - there.objective
            if min(gain, promised) > 0 and problem.allows(there.parameters):
                damping, factor = damping * max(0.1, 1.0 - (2.0 * gain / promised - 1.0) ** 3), 2.0
                theta, here = theta + step, there
                past.append(here.objective)
            else:
                damping, factor = damping * factor, 2.0 * factor
    boundary = problem.near(here.parameters) if status != "converged" else ()
    if status == "stalled" and boundary:
        status = "stalled at the boundary"
    return Refinement(here.parameters, here.objective, here.gap, status, iterations, boundary)


@dataclass(frozen=True, eq=False)
class _Point:
    """The objective at standard parameters and its quadratic model 1/2 |rows @ change + rest|^2 plus a constant.

    `newton` (p,) is the smallest change that minimises the model and `gap` what it gains.
    """

    parameters: Array
    objective: float
    rows: Array
    rest: Array
    newton: Array
    gap: float
    rounding: float


@dataclass(frozen=True, eq=False)
class _Problem:
    possible: PossibleRobots
    residual: Residual
    prior: Array
    weight: float
    metric: Metric
    scale: Array

    @staticmethod
    def of(
        robot: Robot,
        residual: Residual,
        prior: ArrayLike | None,
        weight: float,
        metric: Metric,
        scale: Array | None,
    ) -> _Problem:
        possible = possible_robots(robot, [Inertia(margin=0.0), Signs()])
        given = robot.parameters if prior is None else prior
        about = checked(given, (possible.size,), f"prior of robot '{robot.name}'", DataError)
        return _Problem(possible, residual, about, weight, metric, possible.scale if scale is None else scale)

    def at(self, pi: Array) -> _Point:
        robot, p = self.possible.robot, self.possible.size
        rest, rows = self.residual(pi)
        objective = 0.5 * float(rest @ rest)
        if self.weight > 0:
            more, target = local_rows(robot, pi, self.prior, self.metric, self.scale)
            rows = np.vstack([rows, np.sqrt(self.weight) * more])
            rest = np.concatenate([rest, np.sqrt(self.weight) * target])
            objective += self.weight * distance(robot, pi, self.prior, self.metric, self.scale)
        folded = np.asarray(np.linalg.qr(np.column_stack([rows, rest]), mode="r"))
        rows, rest = folded[:, :p], folded[:, p]
        left, strength, right = np.linalg.svd(rows * self.possible.scale, full_matrices=False)
        count = int(np.sum(strength > _RANK * strength[0]))
        seen = left[:, :count].T @ rest
        newton = -self.possible.scale * (right[:count].T @ (seen / strength[:count]))
        rounding = 0.5 * _ROUNDING**2 * float(np.sum((rows * pi) ** 2))
        return _Point(pi, objective, rows, rest, newton, 0.5 * float(seen @ seen), rounding)

    def allows(self, pi: Array) -> bool:
        """Whether all constraints hold strictly; rounding and couplings between drives are not in the coordinates."""
        return self.possible.slack(pi) > 0

    def near(self, pi: Array) -> tuple[str, ...]:
        """Labels of the constraints whose boundary is close, in units of each link and joint."""
        found = []
        for block in self.possible.blocks:
            slack = block.slack(pi)
            if block.cone == "nonnegative":
                slack /= self.possible.scale[block.matrix.indices[0]]
            if slack < _NEAR:
                found.append(block.label)
        return tuple(found)


class _Coordinates:
    """Unconstrained coordinates theta (p,) of the standard parameters of a possible robot."""

    def __init__(self, robot: Robot) -> None:
        self.links = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
        self.signed = signed_columns(robot)
        # alpha and d1, d2, d3 of every link.
        self.logarithms = np.array([first + k for first in self.links for k in range(4)] + self.signed)

    def of(self, pi: Array) -> Array:
        theta = pi.copy()
        for first in self.links:
            theta[first : first + 10] = inertia_to_log_cholesky(pi[first : first + 10])
        theta[self.signed] = np.log(pi[self.signed])
        return theta

    def parameters(self, theta: Array) -> Array:
        pi = theta.copy()
        for first in self.links:
            pi[first : first + 10] = inertia_from_log_cholesky(theta[first : first + 10])
        pi[self.signed] = np.exp(theta[self.signed])
        return pi

    def chained(self, rows: Array, theta: Array) -> Array:
        """Derivatives by theta from derivatives by the standard parameters (k, p)."""
        out = rows.copy()
        for first in self.links:
            out[:, first : first + 10] = rows[:, first : first + 10] @ log_cholesky_jacobian(theta[first : first + 10])
        out[:, self.signed] *= np.exp(theta[self.signed])
        return out


def _damped_step(here: _Point, coordinates: _Coordinates, theta: Array, damping: float) -> tuple[Array, float]:
    """Levenberg-Marquardt step in theta and the gain that the quadratic model promises for it."""
    rows = coordinates.chained(here.rows, theta)
    size = np.linalg.norm(rows, axis=0)
    size = np.maximum(size, 1e-8 * size.max())
    scaled = rows / size
    stacked = np.vstack([scaled, np.sqrt(damping) * np.eye(len(theta))])
    target = np.concatenate([-here.rest, np.zeros(len(theta))])
    step = scipy.linalg.lstsq(stacked, target, lapack_driver="gelsy")[0] / size
    longest = float(np.abs(step[coordinates.logarithms]).max())
    step = step * min(1.0, _LONGEST / longest) if longest > 0 else step
    after = here.rest + rows @ step
    return step, 0.5 * float(here.rest @ here.rest - after @ after)


def _no_progress(past: list[float], gap: float) -> bool:
    return len(past) > _STALL_STEPS and past[-1 - _STALL_STEPS] - past[-1] < _STALL_SHARE * gap


def _inside(problem: _Problem, start: ArrayLike) -> Array:
    """The start, with drive parameters of zero a little above it, or an error that says what is not inside."""
    possible = problem.possible
    pi = np.array(checked(start, (possible.size,), f"start of robot '{possible.robot.name}'", DataError))
    zero = [i for i in signed_columns(possible.robot) if pi[i] == 0]
    pi[zero] = _FIRST * possible.scale[zero]
    outside = [block.label for block in possible.blocks if block.slack(pi) <= 0]
    if outside:
        raise DataError(f"the start is not inside the possible: {'; '.join(outside)}; give a start that is")
    return pi
