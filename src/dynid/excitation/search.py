"""Sequential quadratic programming on the limits that matter: those close at the last look, and no others."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.excitation.problem import Problem

__all__ = ["refine", "shrunk"]

Array = NDArray[np.float64]

# Limits with less slack than this are looked at by the solver.
_NEAR = 0.5
_ROUNDS = 10
# Farthest that a coefficient goes in one round, in units of the limits.
_LEAP = 0.5
# Stands for a criterion that is infinite.
_NOTHING = 1e10
_BROKEN = 1e-6


@dataclass
class _Working:
    """Limits in the working set: for each kind the samples and columns."""

    points: dict[str, tuple[NDArray[np.intp], NDArray[np.intp]]]

    @property
    def size(self) -> int:
        return sum(len(s) for s, _ in self.points.values())


def shrunk(problem: Problem, X: Array, room: float = 0.0) -> Array | None:
    """The motion drawn together about the middle of the ranges until all limits are kept; None where that never is.

    `room` is the slack that is left.
    """
    centre = problem.resting
    low, high = 0.0, 1.0
    if problem.worst(X) >= room:
        return X
    if problem.worst(centre) < room:
        return None
    for _ in range(40):
        middle = 0.5 * (low + high)
        if problem.worst(centre + middle * (X - centre)) >= room:
            low = middle
        else:
            high = middle
    return centre + low * (X - centre)


def refine(problem: Problem, X: Array, deadline: float, iterations: int = 60) -> Array:
    """A local optimum from a motion X within all limits; the best one within them that was seen.

    Each round looks at the limits that are close, solves, and draws the result together where others are broken.
    """
    best, value = X, problem.value(X)
    working = _near(problem, X)
    for _ in range(_ROUNDS):
        found = _slsqp(problem, X, working, deadline, iterations)
        kept = shrunk(problem, found)
        if kept is not None:
            new = problem.value(kept)
            if new < value:
                best, value = kept, new
        broken = problem.worst(found) < -_BROKEN
        if not broken or time.monotonic() > deadline:
            break
        working = _joined(working, _near(problem, found))
        X = found if kept is None else kept
    return best


def _slsqp(problem: Problem, X: Array, working: _Working, deadline: float, iterations: int) -> Array:
    """One solve from X with the limits of a working set; unknowns are steps in units of the limits."""
    unit = problem.unit
    last: list[Array] = [np.zeros(X.size)]

    def there(y: Array) -> Array:
        return X + y.reshape(X.shape) * unit

    def objective(y: Array) -> tuple[float, Array]:
        value, gradient = problem.gradient(there(y))
        return (value if np.isfinite(value) else _NOTHING), (gradient * unit).ravel()

    def slack(y: Array) -> Array:
        found = {limit.kind: limit.slack for limit in problem.slacks(there(y))}
        return np.concatenate([found[kind][s, c] for kind, (s, c) in working.points.items()])

    def slopes(y: Array) -> Array:
        Z = there(y)
        rows = [problem.slack_gradients(Z, kind, s, c) for kind, (s, c) in working.points.items()]
        return np.asarray((np.concatenate(rows) * unit).reshape(working.size, -1))

    def late(y: Array) -> None:
        last[0] = y.copy()
        if time.monotonic() > deadline:
            raise StopIteration

    found = scipy.optimize.minimize(
        objective,
        last[0],
        jac=True,
        method="SLSQP",
        # Limits that are not looked at hold only near by.
        bounds=[(-_LEAP, _LEAP)] * X.size,
        constraints=[{"type": "ineq", "fun": slack, "jac": slopes}] if working.size else [],
        callback=late,
        options={"maxiter": iterations, "ftol": 1e-5},
    )
    return there(np.asarray(found.x if np.all(np.isfinite(found.x)) else last[0]))


def _near(problem: Problem, X: Array, slack: float = _NEAR) -> _Working:
    """Limits with little slack, one a peak: the smallest of each run of neighbouring samples."""
    points = {}
    for limit in problem.slacks(X):
        value = limit.slack
        before, after = np.roll(value, 1, axis=0), np.roll(value, -1, axis=0)
        if not problem.basis.periodic:
            before[0], after[-1] = np.inf, np.inf
        sample, column = np.nonzero((value < slack) & (value <= before) & (value <= after))
        if len(sample):
            points[limit.kind] = (sample, column)
    return _Working(points)


def _joined(one: _Working, two: _Working) -> _Working:
    points = dict(one.points)
    for kind, (sample, column) in two.points.items():
        if kind in points:
            sample, column = np.concatenate([points[kind][0], sample]), np.concatenate([points[kind][1], column])
            pairs = np.unique(np.column_stack([sample, column]), axis=0)
            sample, column = pairs[:, 0], pairs[:, 1]
        points[kind] = (sample, column)
    return _Working(points)
