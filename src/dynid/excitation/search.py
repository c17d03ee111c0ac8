"""Sequential quadratic programming with feasible iterates.

Every iterate satisfies all limits, so a search whose budget is spent still returns a usable motion. A quadratic model
of the criterion (BFGS) is minimised subject to the limits that are nearly active, by a non-negative least-squares dual;
the step is then shortened at the first other limit. Limits on positions and their derivatives are linear, so for them
this is exact.

    d = argmin g . d + d'B d / 2 subject to rows d <= room,    B <- B - B s s'B / (s'B s) + y y' / (s . y)

with y = t (change of the gradient) + (1 - t) B s and t so that s . y >= s'B s / 5.

Sources: Panier and Tits, On Combining Feasibility, Descent and Superlinear Convergence in Inequality Constrained
Optimization (1993), for feasible iterates; Powell, A Fast Algorithm for Nonlinearly Constrained Optimization
Calculations (1978), for the damped update; Lawson and Hanson, Solving Least Squares Problems (1974), chapter 23, for
the dual of the quadratic program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.excitation.problem import Problem

__all__ = ["Work", "refine", "shrunk"]

Array = NDArray[np.float64]

# Limits with less slack than this enter the quadratic program.
_NEAR = 0.4
# Share of the distance to the first other limit that a step covers.
_SHORT_OF = 0.98
_ENOUGH = 1e-4
# Rounding error of a limit that is met exactly, as a share of it.
_ROUNDING = 1e-6
_IDLE = 4


@dataclass
class Work:
    """Iterations that a search may still take. Only a time limit asks the clock, and then the search says so.

    Attributes
    ----------
    left : int
    time_limit : float or None
        Seconds, from the creation of this object.
    late : bool
        Whether the time limit ended the search.
    """

    left: int
    time_limit: float | None = None
    late: bool = False

    def __post_init__(self) -> None:
        self._began = time.monotonic()

    @property
    def ended(self) -> bool:
        """Whether the budget or the time is spent."""
        self.late = self.late or (self.time_limit is not None and time.monotonic() - self._began > self.time_limit)
        return self.late or self.left <= 0


def shrunk(problem: Problem, X: Array, room: float = 0.0) -> Array | None:
    """The motion scaled down about a posture at rest until all slacks are at least `room`; None if that fails."""
    center = problem.resting
    low, high = 0.0, 1.0
    if problem.worst(X) >= room:
        return X
    if problem.worst(center) < room:
        return None
    for _ in range(24):
        middle = 0.5 * (low + high)
        if problem.worst(center + middle * (X - center)) >= room:
            low = middle
        else:
            high = middle
    return center + low * (X - center)


def refine(
    problem: Problem,
    X: Array,
    work: Work,
    *,
    max_iterations: int = 150,
    tolerance: float = 1e-4,
    seen: Callable[[float], None] | None = None,
) -> Array:
    """A local optimum from a motion X within all limits, or the best motion when the work ends.

    Limits hold to 1e-6 of their value. The search ends when four successive iterations gain less than the tolerance.
    `seen` receives the criterion after every iteration.
    """
    free = problem.unit.ravel() > 0
    unit = problem.unit.ravel()[free]

    def there(step: Array) -> Array:
        out = np.zeros(X.size)
        out[free] = unit * step
        return X + out.reshape(X.shape)

    value, slope = problem.gradient(X)
    gradient = slope.ravel()[free] * unit
    curvature = _fresh(gradient)
    idle = 0
    for _ in range(max_iterations):
        if work.ended or not np.isfinite(value):
            break
        work.left -= 1
        rows, room = _close_limits(problem, X, free, unit)
        step = _quadratic_step(curvature, gradient, rows, room)
        promised = float(gradient @ step)
        if promised >= -1e-9:
            break
        reach = _reach(problem, X, there(step))
        length = 1.0 if reach >= 1.0 else _SHORT_OF * reach
        taken = None
        for _ in range(12):
            new = there(length * step)
            if problem.worst(new) >= -_ROUNDING:
                found, at = problem.gradient(new)
                if found <= value + _ENOUGH * length * promised:
                    taken = (new, found, at.ravel()[free] * unit)
                    break
            length *= 0.5
        if taken is None:
            break
        new, found, at_new = taken
        curvature = _updated(curvature, length * step, at_new - gradient)
        if not _definite(curvature):
            # Sharp changes of the active limits can make the model indefinite by rounding: restart it.
            curvature = _fresh(at_new)
        idle = idle + 1 if value - found < tolerance else 0
        X, value, gradient = new, found, at_new
        if seen is not None:
            seen(value)
        if idle >= _IDLE:
            break
    return X


def _close_limits(problem: Problem, X: Array, free: NDArray[np.bool_], unit: Array) -> tuple[Array, Array]:
    """Rows and right sides of rows @ step <= room for the limits that are close, linearised.

    Of neighbouring samples only local minima of the slack and those next to them take part: the others follow.
    """
    rows, room = [], []
    for limit in problem.slacks(X):
        slack = limit.slack
        peak = (slack <= np.roll(slack, 1, axis=0)) & (slack <= np.roll(slack, -1, axis=0))
        peak |= np.roll(peak, 1, axis=0) | np.roll(peak, -1, axis=0)
        sample, column = np.nonzero(peak & (slack < _NEAR))
        if len(sample):
            found = problem.slack_gradients(X, limit.kind, sample, column).reshape(len(sample), -1)
            rows.append(-found[:, free] * unit)
            room.append(np.maximum(limit.slack[sample, column], 0.0))
    if not rows:
        return np.zeros((0, len(unit))), np.zeros(0)
    return np.vstack(rows), np.concatenate(room)


def _quadratic_step(curvature: Array, gradient: Array, rows: Array, room: Array) -> Array:
    """Minimiser of gradient.d + 1/2 d'curvature d with rows @ d <= room, by its least-distance dual.

    With curvature = L L' and z = L'd + L^-1 gradient the point of least |z| is sought; Lawson and Hanson turn that into
    non-negative least squares.
    """
    L = np.linalg.cholesky(curvature)
    start = scipy.linalg.solve_triangular(L, gradient, lower=True)
    if len(room):
        G = -scipy.linalg.solve_triangular(L, rows.T, lower=True).T
        h = G @ start - room
        if h.max(initial=-1.0) > 0:
            E = np.vstack([G.T, h])
            target = np.zeros(len(E))
            target[-1] = 1.0
            u, _ = scipy.optimize.nnls(E, target)
            residual = E @ u - target
            if residual[-1] < 0:
                z = -residual[:-1] / residual[-1]
                return scipy.linalg.solve_triangular(L.T, z - start, lower=False)
            return np.zeros(len(gradient))
    return scipy.linalg.solve_triangular(L.T, -start, lower=False)


def _reach(problem: Problem, X: Array, to: Array) -> float:
    """How far towards `to` the first linear limit lets the motion go, as a share of the distance."""
    lim = problem.limits
    out = np.inf
    upper = (lim.upper, lim.velocity, lim.acceleration, lim.jerk)
    lower = (lim.lower, -lim.velocity, -lim.acceleration, -lim.jerk)
    for here, there, high, low in zip(problem.motion(X), problem.motion(to), upper, lower, strict=True):
        move = there - here
        slack = 0.5 * _ROUNDING * (high - low)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(move > 0, high + slack - here, low - slack - here)
            share = np.where(move != 0, ahead / move, np.inf)
        out = min(out, float(share.min()))
    return max(out, 0.0)


def _fresh(gradient: Array) -> Array:
    """Initial model: a multiple of the identity for which a step is about one unit."""
    return np.eye(len(gradient)) * max(float(np.linalg.norm(gradient)), 1e-3)


def _definite(curvature: Array) -> bool:
    try:
        np.linalg.cholesky(curvature)
    except np.linalg.LinAlgError:
        return False
    return True


def _updated(curvature: Array, step: Array, change: Array) -> Array:
    """BFGS update with Powell's damping, which keeps the model convex."""
    bent = curvature @ step
    along, curve = float(step @ change), float(step @ bent)
    if curve <= 0:
        return curvature
    share = 1.0 if along >= 0.2 * curve else 0.8 * curve / (curve - along)
    change = share * change + (1 - share) * bent
    return np.asarray(
        curvature - np.outer(bent, bent) / curve + np.outer(change, change) / float(step @ change), dtype=float
    )
