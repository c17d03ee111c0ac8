"""The most probable geometry, with outliers set aside, and with the noise and the sizes of errors learned.

    minimise  sum over sensors s of  1/sigma_s^2 sum over postures of |r|^2  +  sum over unknowns of  x^2/tau_k^2

Levenberg and Marquardt's method with exact derivatives. Around it, in turn: postures whose residual chance does not
explain are set aside; sigma_s follows from the residuals and the degrees of freedom they keep; tau_k of every kind that
joints share follows from its unknowns,

    tau_k^2 = (4 tau_0^2 + sum x^2) / (4 + sum over k of (1 - C_ii/tau_k^2))

Sources: Marquardt, An Algorithm for Least-Squares Estimation of Nonlinear Parameters (1963); MacKay, Bayesian
Interpolation (1992); Lange, Little and Taylor, Robust Statistical Modeling Using the t Distribution (1989).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dynid.errors import NotIdentifiable, TooFew
from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import UnknownKind

__all__ = ["Solution", "solve"]

Array = NDArray[np.float64]

# Relative change of the cost, and of standard deviations, at which iterations end.
_COST, _SCALE = 1e-10, 1e-3
_STEPS, _TURNS = 60, 40
# Degrees of freedom of the t distribution that finds outliers, and the chance with which any good posture is one.
_HEAVY, _CHANCE = 4.0, 0.01
# Joints that the stated standard deviation of a kind counts as.
_STATED = 4.0


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
    noise : ndarray, shape (S,)
        Standard deviation of the residuals of each sensor over the expected one.
    weights : tuple of ndarray
        One per posture of each sensor, zero for outliers.
    iterations : int
        Steps of the solver.
    converged : bool
        Whether the last search of the solver ended at a minimum.
    """

    x: Array
    covariance: Array
    prior_std: Array
    noise: Array
    weights: tuple[Array, ...]
    iterations: int
    converged: bool


def solve(problem: Problem, *, robust: bool = True, learned: bool | None = None) -> Solution:
    """Solve a calibration.

    Parameters
    ----------
    problem : Problem
        The measurements.
    robust : bool
        Set postures aside whose residual chance does not explain.
    learned : bool, optional
        Learn standard deviations of kinds; as the model says by default.

    Raises
    ------
    TooFew
        If nothing but unknowns of sensors could be estimated.
    NotIdentifiable
        If the solver finds no finite residuals.
    """
    unknowns = problem.unknowns
    kinds = np.array([u.kind for u in unknowns])
    stated = np.array([u.std for u in unknowns])
    learned = problem.geometry.model.learned if learned is None else learned
    state = Solution(
        np.zeros(len(unknowns)),
        np.zeros((len(unknowns),) * 2),
        stated,
        np.ones(len(problem.measurements)),
        tuple(np.ones(len(m.q)) for m in problem.measurements),
        0,
        False,
    )
    free = int(np.isinf(stated).sum())
    seen = sum(int(r.seen.sum()) for r in problem.rows(state.x)) + len(problem.ties(state.x)[0])
    if seen <= free:
        raise TooFew(f"{seen} measured values cannot show {free} unknowns of the sensors alone: measure more postures")
    # With heavy tails first, so that outliers neither decide the noise nor the errors; then without them.
    for weigh in (_heavy, _without) if robust else (_all,):
        for _ in range(_TURNS):
            before = np.concatenate([state.noise, state.prior_std[np.isfinite(stated)]])
            state = _minimised(problem, state)
            state = replace(state, weights=weigh(problem, state))
            state = _scaled(problem, state)
            if learned:
                state = replace(state, prior_std=_sizes(kinds, stated, state))
            after = np.concatenate([state.noise, state.prior_std[np.isfinite(stated)]])
            if np.all(np.abs(after - before) <= _SCALE * before):
                break
    return state


def _system(problem: Problem, state: Solution, x: Array) -> tuple[float, Array, Array]:
    """Cost, and normal equations with their right-hand side."""
    value, slope = problem.ties(x)
    cost, A, b = float(value @ value), slope.T @ slope, slope.T @ value
    for rows, noise, w in zip(problem.rows(x), state.noise, state.weights, strict=True):
        root = np.sqrt(w)[:, None] / noise
        r = (rows.residual * root).ravel()
        J = (rows.slope * root[..., None]).reshape(len(r), -1)
        cost, A, b = cost + float(r @ r), A + J.T @ J, b + J.T @ r
    prior = 1 / state.prior_std**2
    return cost + float(prior @ x**2), A + np.diag(prior), b + prior * x


def _minimised(problem: Problem, state: Solution) -> Solution:
    """The minimum for given noise, weights and prior standard deviations."""
    x, damping, converged = state.x, 1e-6, False
    cost, A, b = _system(problem, state, x)
    if not np.isfinite(cost):
        raise NotIdentifiable("the residuals of the measurements are not finite")
    steps = state.iterations
    for _ in range(_STEPS):
        steps += 1
        scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
        step = -_solved(A / np.outer(scale, scale) + damping * np.eye(len(x)), b / scale) / scale
        new, A_new, b_new = _system(problem, state, x + step)
        if not new <= cost * (1 + 1e-13):
            damping *= 10
            if damping > 1e8:
                converged = True
                break
            continue
        small = cost - new <= _COST * cost
        x, cost, A, b = x + step, new, A_new, b_new
        damping = max(damping / 10, 1e-12)
        if small:
            converged = True
            break
    return replace(state, x=x, covariance=_inverse(A), iterations=steps, converged=converged)


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


# -- weights of postures ------------------------------------------------------------------------------


def _all(problem: Problem, state: Solution) -> tuple[Array, ...]:
    return state.weights


def _heavy(problem: Problem, state: Solution) -> tuple[Array, ...]:
    """Weights of a t distribution of the residual of a posture."""
    out = []
    for rows, noise in zip(problem.rows(state.x), state.noise, strict=True):
        count = rows.seen.sum(1)
        out.append((_HEAVY + count) / (_HEAVY + (rows.residual**2).sum(1) / noise**2))
    return tuple(out)


def _without(problem: Problem, state: Solution) -> tuple[Array, ...]:
    """Zero for postures whose residual is larger than chance explains for the largest of all, one for the others."""
    out = []
    for rows, noise in zip(problem.rows(state.x), state.noise, strict=True):
        count = rows.seen.sum(1)
        away = (rows.residual**2).sum(1) / noise**2
        # Residuals of a fitted posture are smaller than its noise by its leverage.
        left = 1 - _leverages(rows.slope, rows.seen, state, noise)
        limit = stats.chi2.isf(_CHANCE / max(len(count), 1), np.maximum(count, 1))
        out.append(np.where(away > limit * np.clip(left, 0.1, 1.0), 0.0, 1.0))
    return tuple(out)


def _leverages(slope: Array, seen: NDArray[np.bool_], state: Solution, noise: float) -> Array:
    """Mean leverage (N,) of the rows of each posture."""
    spread = np.einsum("nrx,xy,nry->n", slope, state.covariance, slope, optimize=True) / noise**2
    return np.asarray(spread / np.maximum(seen.sum(1), 1))


# -- scales -------------------------------------------------------------------------------------------


def _scaled(problem: Problem, state: Solution) -> Solution:
    """Noise of each sensor from its residuals and the degrees of freedom that they keep."""
    noise = []
    for rows, old, w in zip(problem.rows(state.x), state.noise, state.weights, strict=True):
        used = (rows.seen * w[:, None]).sum()
        taken = np.einsum("nrx,xy,nry,n->", rows.slope, state.covariance, rows.slope, w, optimize=True) / old**2
        left = max(used - taken, 0.05 * used, 1e-300)
        noise.append(np.sqrt(max(float((w[:, None] * rows.residual**2).sum() / left), 1e-16)))
    return replace(state, noise=np.array(noise))


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
