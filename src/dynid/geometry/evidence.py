"""How probable measurements are under one hypothesis about what is wrong with them, from a quick fit.

    log p(y) = sum log t_4(y_i; x, sigma) + log p(x | tau) - 1/2 log |A| + log p(tau),    r = r(x) + E z

with residuals of heavy tails, errors of joints x whose sizes tau are learned by kind, and unknowns z of the hypothesis
that act by columns E. A is the matrix of the normal equations: Laplace's approximation, which charges a hypothesis for
what it can adapt. Residuals of a posture are split into a motion of the frame, by which the robot misses all that is
seen of it at once, and the rest; each of the two has its own scatter sigma.

Sources: MacKay, Bayesian Interpolation (1992); Lange, Little and Taylor, Robust Statistical Modeling Using the t
Distribution (1989).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dynid.geometry.problem import Problem, Rows
from dynid.geometry.unknowns import UnknownKind

__all__ = ["Block", "Columns", "Fit", "densities", "fitted", "linear_gains"]

Array = NDArray[np.float64]

# Degrees of freedom of residuals, and joints that a stated size counts as.
_HEAVY, _STATED = 4.0, 4.0
# Numbers per posture beyond which a motion of the frame is told from the rest, and those of a motion.
_OF_A_POINT, _MOTION = 3, 6
# Evaluations of the residuals, and the gain (in log p) below which a step ends the fit.
_STEPS, _ENOUGH = 40, 1e-3
# Standard deviation (m, rad) of what nobody knows, the same in all hypotheses.
_ANYWHERE = 1.0
# Least scatter over the expected one, and share of a scatter by which it may still change.
_LEAST, _SETTLED = 1e-2, 1e-2
# Damping at which no step gains any more, and ratio below which directions of a motion are none.
_STUCK, _INDEPENDENT = 1e8, 1e-6
# Share of its own residual that a posture keeps at least when it is left out.
_LEAST_LEFT = 0.02


@dataclass(frozen=True, eq=False)
class Columns:
    """What the unknowns of a hypothesis do to residuals, in units of their expected standard deviations.

    Attributes
    ----------
    sensors : tuple of ndarray
        (N, r, k) for each sensor.
    ties : ndarray, shape (m, k)
        For what is known about sensors.
    """

    sensors: tuple[Array, ...]
    ties: Array


_Make = Callable[[Sequence[Rows], Array], Columns]


@dataclass(frozen=True, eq=False)
class Block:
    """A part of the residuals of one sensor that has its own scatter.

    Attributes
    ----------
    sensor : int
        Number of the sensor.
    turn : ndarray, shape (N, r, b)
        Orthonormal directions of the residuals that it is made of.
    count : ndarray, shape (N,)
        How many of its numbers each posture shows.
    residual : ndarray, shape (N, b)
        The part.
    slope : ndarray, shape (N, b, X)
        Its derivative.
    """

    sensor: int
    turn: Array
    count: Array
    residual: Array
    slope: Array

    @property
    def squares(self) -> Array:
        """Sum of squares (N,)."""
        return np.asarray((self.residual**2).sum(1))

    def weights(self, scatter: float) -> Array:
        """Weights (N,) of postures by the t distribution."""
        return np.asarray((_HEAVY + self.count) / (_HEAVY + self.squares / scatter**2))


@dataclass(frozen=True, eq=False)
class Fit:
    """A quick fit of one hypothesis.

    Attributes
    ----------
    problem : Problem
        What was fitted.
    x : ndarray, shape (X,)
        Values of all unknowns.
    extra : ndarray, shape (k,)
        Values of the unknowns of the hypothesis.
    score : float
        Log of the probability of the measurements.
    blocks : tuple of Block
        Residuals and derivatives, those of the hypothesis included.
    scatter : tuple of float
        Scatter of each block over the expected one.
    rows : tuple of Rows
        Residuals and derivatives of each sensor, without the hypothesis.
    ties : tuple of ndarray
        What is known about sensors: residuals with the hypothesis, and derivatives.
    covariance : ndarray, shape (X + k, X + k)
        Of all unknowns, those of the hypothesis last.
    left_out : tuple of ndarray
        Errors (m) of each posture when it is left out.
    """

    problem: Problem
    x: Array
    extra: Array
    score: float
    blocks: tuple[Block, ...]
    scatter: tuple[float, ...]
    rows: tuple[Rows, ...]
    ties: tuple[Array, Array]
    covariance: Array
    left_out: tuple[Array, ...]

    @property
    def typical(self) -> float:
        """Median error (m) of postures that are left out."""
        return float(np.nanmedian(np.concatenate(self.left_out)))


@dataclass(frozen=True, eq=False)
class _Here:
    """Residuals and derivatives at one point, columns of the hypothesis included."""

    z: Array
    rows: tuple[Rows, ...]
    blocks: tuple[Block, ...]
    ties: tuple[Array, Array]


def fitted(problem: Problem, x: Array | None = None, make: _Make | None = None, std: Array | None = None) -> Fit:
    """Fit a hypothesis quickly.

    Parameters
    ----------
    problem : Problem
        The measurements, corrected by what is discrete about the hypothesis.
    x : ndarray, shape (X,), optional
        Start; zero by default.
    make : callable, optional
        Makes the columns of the hypothesis from residuals and derivatives.
    std : ndarray, shape (k,), optional
        Expected standard deviations of its unknowns.
    """
    width, extra = len(problem.unknowns), np.zeros(0) if std is None else np.asarray(std, dtype=float)
    stated = np.concatenate([[u.std for u in problem.unknowns], extra])
    stated[np.isinf(stated)] = _ANYWHERE
    kinds = np.array([u.kind for u in problem.unknowns] + [UnknownKind.SENSOR] * len(extra))
    here = _here(problem, np.concatenate([np.zeros(width) if x is None else x, np.zeros(len(extra))]), make)
    scatter = [max(float(np.sqrt(np.median(b.squares / np.maximum(b.count, 1)))), _LEAST) for b in here.blocks]
    tau, damping = stated.copy(), 1e-6
    A, b = _normal(here, scatter, tau)
    for _ in range(_STEPS):
        scale = np.sqrt(np.diag(A))
        step = -np.linalg.solve(A / np.outer(scale, scale) + damping * np.eye(len(b)), b / scale) / scale
        there = _here(problem, here.z + step, make)
        gain = _likelihood(there, scatter, tau) - _likelihood(here, scatter, tau)
        if not gain >= -_ENOUGH:
            damping = max(10 * damping, 1e-4)
            if damping > _STUCK:
                break
            continue
        here, damping = there, damping / 10
        C = _inverse(_normal(here, scatter, tau)[0])
        before = np.array([*scatter, *tau])
        scatter = _scatter(here, scatter, C)
        if problem.geometry.model.learned:
            tau = _sizes(kinds, stated, here.z, C, tau)
        A, b = _normal(here, scatter, tau)
        if gain < 10 * _ENOUGH and np.all(np.abs(np.array([*scatter, *tau]) / before - 1) < _SETTLED):
            break
    C = _inverse(A)
    return Fit(
        problem,
        here.z[:width],
        here.z[width:],
        _evidence(here, scatter, tau, stated, kinds, A),
        here.blocks,
        tuple(scatter),
        here.rows,
        here.ties,
        C,
        tuple(_left_out(problem, k, here, scatter, C) for k in range(len(here.rows))),
    )


def _here(problem: Problem, z: Array, make: _Make | None) -> _Here:
    width = len(problem.unknowns)
    rows, (value, slope) = problem.rows(z[:width]), problem.ties(z[:width])
    added = Columns(tuple(r.slope[..., :0] for r in rows), slope[:, :0]) if make is None else make(rows, slope)
    blocks = []
    for k, (r, e) in enumerate(zip(rows, added.sensors, strict=True)):
        e = np.where(r.seen[..., None], e, 0.0)
        blocks += _blocks(k, r, r.residual + e @ z[width:], np.concatenate([r.slope, e], axis=2))
    return _Here(z, rows, tuple(blocks), (value + added.ties @ z[width:], np.hstack([slope, added.ties])))


def _blocks(k: int, rows: Rows, residual: Array, slope: Array) -> list[Block]:
    """The residuals of a sensor, or their motion of the frame and the rest where there is one."""
    n, r = rows.seen.shape
    seen = rows.seen.sum(1)
    if r <= _OF_A_POINT:
        return [Block(k, np.tile(np.eye(r), (n, 1, 1)), seen, residual, slope)]
    turn, sizes, _ = np.linalg.svd(rows.pose)
    rank = (sizes > _INDEPENDENT * np.maximum(sizes[:, :1], 1e-300)).sum(1)
    counts = rank, seen - rank
    parts = turn[..., :_MOTION], turn[..., _MOTION:]
    out = []
    for part, count in zip(parts, counts, strict=True):
        if count.any():
            back = np.swapaxes(part, 1, 2)
            out.append(Block(k, part, np.maximum(count, 0), (back @ residual[..., None])[..., 0], back @ slope))
    return out


def _factors(block: Block, scatter: float) -> Array:
    """Factors (N b,) of the squared rows in the normal equations."""
    return np.repeat(block.weights(scatter) / scatter**2, block.residual.shape[1])


def _normal(here: _Here, scatter: Sequence[float], tau: Array) -> tuple[Array, Array]:
    value, slope = here.ties
    A, b = slope.T @ slope + np.diag(tau**-2.0), slope.T @ value + here.z / tau**2
    for block, s in zip(here.blocks, scatter, strict=True):
        w, flat = _factors(block, s), _flat(block.slope)
        A, b = A + flat.T @ (w[:, None] * flat), b + flat.T @ (w * block.residual.ravel())
    return A, b


def _flat(slope: Array) -> Array:
    return slope.reshape(-1, slope.shape[2])


def _inverse(A: Array) -> Array:
    scale = np.sqrt(np.diag(A))
    return np.asarray(np.linalg.inv(A / np.outer(scale, scale)) / np.outer(scale, scale))


def densities(count: Array, squares: Array, scatter: float) -> Array:
    """Log of the t density (N,) of `count` residuals with a sum of squares."""
    constant = gammaln((_HEAVY + count) / 2) - gammaln(_HEAVY / 2) - 0.5 * count * np.log(_HEAVY * np.pi * scatter**2)
    return np.asarray(constant - 0.5 * (_HEAVY + count) * np.log1p(squares / scatter**2 / _HEAVY))


def _likelihood(here: _Here, scatter: Sequence[float], tau: Array) -> float:
    """Log of the probability of the measurements and of x, but for constants."""
    total = -0.5 * float((here.z**2 / tau**2).sum() + here.ties[0] @ here.ties[0])
    total += sum(float(densities(b.count, b.squares, s).sum()) for b, s in zip(here.blocks, scatter, strict=True))
    return total if np.isfinite(total) else -np.inf


def _scatter(here: _Here, scatter: Sequence[float], C: Array) -> list[float]:
    out = []
    for block, s in zip(here.blocks, scatter, strict=True):
        flat, count = _flat(block.slope), float(block.count.sum())
        taken = float((_factors(block, s) * ((flat @ C) * flat).sum(1)).sum())
        squares = float((block.weights(s) * block.squares).sum())
        out.append(max(float(np.sqrt(squares / max(count - taken, 0.1 * count))), _LEAST))
    return out


def _sizes(kinds: Array, stated: Array, z: Array, C: Array, tau: Array) -> Array:
    out = tau.copy()
    for kind in set(kinds.tolist()) - {UnknownKind.SENSOR}:
        mine = kinds == kind
        shown = np.clip(1 - np.diag(C)[mine] / tau[mine] ** 2, 0.0, 1.0).sum()
        out[mine] = np.sqrt((_STATED * stated[mine][0] ** 2 + (z[mine] ** 2).sum()) / (_STATED + shown))
    return out


def _evidence(here: _Here, scatter: Sequence[float], tau: Array, stated: Array, kinds: Array, A: Array) -> float:
    sizes = 0.0
    for kind in set(kinds.tolist()) - {UnknownKind.SENSOR}:
        ratio = float((tau[kinds == kind][0] / stated[kinds == kind][0]) ** 2)
        sizes -= 0.5 * _STATED * (np.log(ratio) + 1 / ratio - 1)
    adapts = np.linalg.slogdet(A * np.outer(tau, tau))[1]
    return _likelihood(here, scatter, tau) - 0.5 * float(adapts) + sizes


def _left_out(problem: Problem, k: int, here: _Here, scatter: Sequence[float], C: Array) -> Array:
    """Errors (m) of every posture of a sensor, predicted from the others by one linear step."""
    mine = [(b, np.sqrt(b.weights(s)) / s) for b, s in zip(here.blocks, scatter, strict=True) if b.sensor == k]
    root = np.concatenate([np.tile(f[:, None], (1, b.residual.shape[1])) for b, f in mine], axis=1)
    J = np.concatenate([b.slope for b, _ in mine], axis=1) * root[..., None]
    r = np.concatenate([b.residual for b, _ in mine], axis=1) * root
    values, vectors = np.linalg.eigh(np.eye(r.shape[1]) - J @ C @ np.swapaxes(J, 1, 2))
    turned = (np.swapaxes(vectors, 1, 2) @ r[..., None])[..., 0] / np.maximum(values, _LEAST_LEFT)
    back = (vectors @ turned[..., None])[..., 0] / root
    away = (np.concatenate([b.turn for b, _ in mine], axis=2) @ back[..., None])[..., 0]
    m = problem.measurements[k]
    return m.distances(np.where(here.rows[k].seen, away, np.nan) * m.std)


def linear_gains(fit: Fit, candidates: Sequence[Columns], std: Array, plain: bool) -> Array:
    """Gain in log p of each candidate's unknowns by one linear step; `plain` weighs all postures the same.

    Parameters
    ----------
    fit : Fit
        The fit without the hypothesis.
    candidates : sequence of Columns
        What their unknowns do; all have the same number.
    std : ndarray, shape (k,)
        Expected standard deviations of these.
    plain : bool
        Do not lower the weight of postures that are far away.
    """
    value, slope = fit.ties
    factors, C = [_factors(b, s) for b, s in zip(fit.blocks, fit.scatter, strict=True)], fit.covariance
    # What is left of the gradient of the fit, whose weights are others than the plain ones.
    pull = np.zeros(len(fit.x))
    if plain:
        # Without weights the scatter is that of all postures.
        sizes = [max(float(b.squares.sum() / b.count.sum()), _LEAST**2) for b in fit.blocks]
        factors = [np.full(b.residual.size, 1 / s2) for b, s2 in zip(fit.blocks, sizes, strict=True)]
        stated = np.array([u.std for u in fit.problem.unknowns])
        prior = np.where(np.isinf(stated), _ANYWHERE, stated) ** -2.0
        A, pull = slope.T @ slope + np.diag(prior), slope.T @ value + prior * fit.x
        for b, f in zip(fit.blocks, factors, strict=True):
            A = A + _flat(b.slope).T @ (f[:, None] * _flat(b.slope))
            pull = pull + _flat(b.slope).T @ (f * b.residual.ravel())
        C = _inverse(A)
    gains = []
    for one in candidates:
        B, g, S = slope.T @ one.ties, one.ties.T @ value, one.ties.T @ one.ties + np.diag(std**-2.0)
        for b, f in zip(fit.blocks, factors, strict=True):
            seen = fit.rows[b.sensor].seen[..., None]
            E = _flat(np.swapaxes(b.turn, 1, 2) @ np.where(seen, one.sensors[b.sensor], 0.0))
            B = B + _flat(b.slope).T @ (f[:, None] * E)
            g, S = g + E.T @ (f * b.residual.ravel()), S + E.T @ (f[:, None] * E)
        g, S = g - B.T @ C @ pull, S - B.T @ C @ B
        gains.append(0.5 * float(g @ np.linalg.solve(S, g) - np.linalg.slogdet(S * np.outer(std, std))[1]))
    return np.array(gains)
