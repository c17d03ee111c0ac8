"""The most probable geometry, with outliers set aside, and with the noise and the sizes of errors learned.

    minimise  sum over sensors and postures of  r' S^-1 r  +  sum over unknowns of  x^2/tau_k^2

Levenberg and Marquardt's method with exact derivatives, and a correction of second order where a step fails. Around
it, in turn: postures whose residual chance does not explain are set aside; the scatter S follows from the residuals
(see `noise`); tau_k of every kind that joints share follows from its unknowns,

    tau_k^2 = (4 tau_0^2 + sum x^2) / (4 + sum over k of (1 - C_ii/tau_k^2))

Sources: Marquardt, An Algorithm for Least-Squares Estimation of Nonlinear Parameters (1963); Transtrum and Sethna,
Improvements to the Levenberg-Marquardt Algorithm for Nonlinear Least-Squares Minimization (2012); MacKay, Bayesian
Interpolation (1992); Lange, Little and Taylor, Robust Statistical Modeling Using the t Distribution (1989).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dynid.errors import NotIdentifiable, TooFew
from dynid.geometry.noise import Noise, distances, misfit, renewed, started_noise, whitened
from dynid.geometry.problem import Problem, Rows
from dynid.geometry.unknowns import UnknownKind

__all__ = ["Solution", "solve"]

Array = NDArray[np.float64]

# Relative change of the cost, and of standard deviations, at which iterations end.
_COST, _ROUGH, _SCALE = 1e-10, 1e-4, 1e-3
_STEPS, _TURNS = 60, 40
# Change of the cost below which unknowns move by less than a thousandth of their standard deviations.
_SAME = 1e-6
# Degrees of freedom of the t distribution that finds outliers, and the chance with which any good posture is one.
_HEAVY, _CHANCE = 4.0, 0.01
# Share of postures that may be outliers; more are the noise.
_RARE = 0.1
# Share of postures set aside at which a search ends.
_MOST = 0.5
# Joints that the stated standard deviation of a kind counts as.
_STATED = 4.0
# Damping at which no step lowers the cost any more.
_STUCK = 1e8


@dataclass(frozen=True, eq=False)
class Solution:
    """The most probable unknowns.

    Attributes
    ----------
    x : ndarray, shape (X,)
        Values.
    covariance : ndarray, shape (X, X)
        Their covariance, infinite prior standard deviations included.
    prior_std : ndarray, shape (X,)
        Standard deviations that were expected, after learning.
    noise : tuple of Noise
        Scatter of each sensor, and of the robot as it sees it.
    weights : tuple of ndarray
        One per posture of each sensor, zero for outliers.
    iterations : int
        Steps of the solver.
    converged : bool
        Whether the last search of the solver ended at a minimum.
    heavy : bool
        Whether residuals have the heavy tails of a t distribution, and no posture is set aside.
    """

    x: Array
    covariance: Array
    prior_std: Array
    noise: tuple[Noise, ...]
    weights: tuple[Array, ...]
    iterations: int
    converged: bool
    heavy: bool = False


def solve(problem: Problem, *, robust: bool = True) -> Solution:
    """Solve a calibration.

    Parameters
    ----------
    problem : Problem
        The measurements.
    robust : bool
        Set postures aside whose residual chance does not explain.

    Raises
    ------
    TooFew
        If nothing but unknowns of sensors could be estimated.
    NotIdentifiable
        If the solver finds no finite residuals.
    """
    stated = np.array([u.std for u in problem.unknowns])
    here = _linear(problem, np.zeros(len(stated)))
    state = Solution(
        here.x,
        np.zeros((len(stated),) * 2),
        stated,
        tuple(started_noise(rows) for rows in here.rows),
        tuple(np.ones(len(m.q)) for m in problem.measurements),
        0,
        False,
    )
    free = int(np.isinf(stated).sum())
    seen = sum(int(r.seen.sum()) for r in here.rows) + len(here.ties[0])
    if seen <= free:
        raise TooFew(f"{seen} measured values cannot show {free} unknowns of the sensors alone: measure more postures")
    # With heavy tails first, so that outliers neither decide the noise nor the errors; then without them, unless they
    # are so many that heavy tails describe the measurements better.
    if not robust:
        return _alternated(problem, state, here, _all)
    tails = replace(_alternated(problem, state, here, _heavy), heavy=True)
    problem = problem.loaded(tails.x)
    here = _linear(problem, tails.x)
    rare = all((w == 0).mean() <= _RARE for w in _without(here, tails))
    plain = _alternated(problem, replace(tails, heavy=False), here, _without) if rare else tails
    if any((w == 0).mean() > _RARE for w in plain.weights):
        plain = tails
    if not plain.heavy:
        return plain
    count = float(np.mean([r.seen.sum(1).mean() for r in here.rows]))
    return replace(plain, covariance=plain.covariance * (_HEAVY + count + 2) / (_HEAVY + count))


def _alternated(problem: Problem, state: Solution, here: _Linear, weigh: _Weigh) -> Solution:
    """The minimum with weights, scatter and sizes of errors that agree with it, and with loads of this robot."""
    kinds, stated = np.array([u.kind for u in problem.unknowns]), np.array([u.std for u in problem.unknowns])
    for _ in range(_TURNS):
        before = _scales(state)
        state, here = _minimised(problem, state, here, _ROUGH)
        weights = weigh(here, state)
        if any((w == 0).mean() > _MOST for w in weights):
            # What is left shows nothing; whoever sets postures aside sees that these are too many.
            return replace(state, weights=weights)
        state = _scaled(here, replace(state, weights=weights))
        if problem.geometry.model.learned:
            state = replace(state, prior_std=_sizes(kinds, stated, state))
        problem, last = problem.loaded(state.x), problem
        if problem is not last:
            here = _linear(problem, state.x)
        elif np.all(np.abs(_scales(state) - before) <= _SCALE * before):
            break
    return _minimised(problem, state, here, _COST)[0]


@dataclass(frozen=True, eq=False)
class _Linear:
    """Residuals and derivatives at one point."""

    x: Array
    rows: tuple[Rows, ...]
    ties: tuple[Array, Array]


_Weigh = Callable[[_Linear, Solution], tuple[Array, ...]]


def _linear(problem: Problem, x: Array) -> _Linear:
    return _Linear(x, problem.rows(x), problem.ties(x))


def _scales(state: Solution) -> Array:
    """Every standard deviation that is estimated."""
    noise = np.ravel([(n.sensor, n.position, n.direction) for n in state.noise])
    return np.concatenate([noise, state.prior_std[np.isfinite(state.prior_std)]])


def _cost(here: _Linear, state: Solution) -> float:
    prior = float((here.x**2 / state.prior_std**2).sum() + here.ties[0] @ here.ties[0])
    parts = zip(here.rows, state.noise, state.weights, strict=True)
    return prior + sum(float(w @ misfit(r, noise)) for r, noise, w in parts)


def _normal(here: _Linear, state: Solution) -> tuple[Array, Array]:
    """Normal equations and their right-hand side."""
    value, slope = here.ties
    A, b = slope.T @ slope, slope.T @ value
    for rows, noise, w in zip(here.rows, state.noise, state.weights, strict=True):
        white, root = whitened(rows, noise), np.sqrt(w)[:, None]
        r = (white.residual * root).ravel()
        J = (white.slope * root[..., None]).reshape(len(r), -1)
        A, b = A + J.T @ J, b + J.T @ r
    prior = 1 / state.prior_std**2
    return A + np.diag(prior), b + prior * here.x


def _beyond(here: _Linear, there: _Linear, step: Array) -> list[Array]:
    """What residuals change by beyond their slopes, of ties and of every measurement."""
    ties = there.ties[0] - here.ties[0] - here.ties[1] @ step
    return [ties, *(b.residual - a.residual - a.slope @ step for a, b in zip(here.rows, there.rows, strict=True))]


def _pull(here: _Linear, state: Solution, changes: list[Array]) -> Array:
    """The right-hand side of the normal equations for some residuals."""
    out = here.ties[1].T @ changes[0]
    for rows, change, noise, w in zip(here.rows, changes[1:], state.noise, state.weights, strict=True):
        white = whitened(replace(rows, residual=change), noise)
        out = out + np.einsum("nrx,nr,n->x", white.slope, white.residual, w, optimize=True)
    return out


def _minimised(problem: Problem, state: Solution, here: _Linear, tolerance: float) -> tuple[Solution, _Linear]:
    """The minimum for given noise, weights and prior standard deviations, to a relative change of the cost."""
    damping, converged, steps = 1e-6, False, state.iterations
    cost = _cost(here, state)
    if not np.isfinite(cost):
        raise NotIdentifiable("the residuals of the measurements are not finite")
    A, b = _normal(here, state)
    for _ in range(_STEPS):
        steps += 1
        scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
        damped = A / np.outer(scale, scale) + damping * np.eye(len(b))
        step = -_solved(damped, b / scale) / scale
        there = _linear(problem, here.x + step)
        new = _cost(there, state)
        if not new <= cost * (1 + 1e-13):
            # Along a curved valley: what the residuals are beyond their slopes, taken back.
            bent = _solved(damped, _pull(here, state, _beyond(here, there, step)) / scale) / scale
            there = _linear(problem, there.x - bent)
            new = _cost(there, state)
        if not new <= cost * (1 + 1e-13):
            damping *= 10
            if damping > _STUCK:
                converged = True
                break
            continue
        converged = cost - new <= max(tolerance * cost, _SAME)
        here, cost, damping = there, new, max(damping / 10, 1e-12)
        A, b = _normal(here, state)
        if converged:
            break
    return replace(state, x=here.x, covariance=_inverse(A), iterations=steps, converged=converged), here


def _solved(A: Array, b: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve

    try:
        return np.asarray(cho_solve(cho_factor(A, check_finite=False), b, check_finite=False))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=float)


def _inverse(A: Array) -> Array:
    """Inverse of normal equations, with directions that nothing shows given a huge variance."""
    scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
    values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
    values = np.maximum(values, 1e-13)
    out: Array = (vectors / values) @ vectors.T / np.outer(scale, scale)
    return out


# -- weights of postures, and scatter -----------------------------------------------------------------


def _away(here: _Linear, state: Solution) -> Iterator[tuple[Array, Array]]:
    """Numbers seen (N,) at each posture of a sensor, and squared distance from what the other postures predict."""
    for rows, noise, w in zip(here.rows, state.noise, state.weights, strict=True):
        yield np.maximum(rows.seen.sum(1), 1), distances(whitened(rows, noise), w, state.covariance)


def _all(here: _Linear, state: Solution) -> tuple[Array, ...]:
    return state.weights


def _heavy(here: _Linear, state: Solution) -> tuple[Array, ...]:
    """Weights of a t distribution of the residual of a posture."""
    return tuple((_HEAVY + count) / (_HEAVY + away) for count, away in _away(here, state))


def _without(here: _Linear, state: Solution) -> tuple[Array, ...]:
    """Zero for postures further away than chance explains for the furthest of all, one for the others."""
    return tuple(
        np.where(away > stats.chi2.isf(_CHANCE / len(count), count), 0.0, 1.0) for count, away in _away(here, state)
    )


def _scaled(here: _Linear, state: Solution) -> Solution:
    """Scatter of every sensor and of the robot from what the fit leaves."""
    parts = zip(here.rows, state.noise, state.weights, strict=True)
    return replace(state, noise=tuple(renewed(r, noise, w, state.covariance) for r, noise, w in parts))


def _sizes(kinds: Array, stated: Array, state: Solution) -> Array:
    """Standard deviations of kinds that joints share."""
    out = state.prior_std.copy()
    variance = np.diag(state.covariance)
    for kind in set(kinds.tolist()) - {UnknownKind.SENSOR}:
        mine = kinds == kind
        shown = np.clip(1 - variance[mine] / out[mine] ** 2, 0.0, 1.0).sum()
        start = stated[mine][0]
        out[mine] = np.sqrt((_STATED * start**2 + (state.x[mine] ** 2).sum()) / (_STATED + shown))
    return out
