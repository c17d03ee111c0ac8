"""Covariances of standard parameters: with the barrier of the constraints, without it, and of base parameters.

The data determine base parameters only. The covariance of the standard parameters therefore depends on how they are
chosen among those that fit equally well: by their norm, by the barrier of an interior-point method, or by a prior.

The base parameters of draws from an estimate have the covariance C of the estimate. Of methods with a prior, the
standard parameters have their covariance S, given the base parameters K pi:

    pi = pi_0 + G b + (1 - G K) s,    b ~ N(0, C),    s ~ N(0, S),    G = S K' (K S K')^-1.

Where C = K S K' that is S. Other methods say nothing of s, and G is the map of `BaseParameters.standard`.

    shortest: (R'R)^+,    barrier: N^-1 R'R N^-1 with N = R'R + barrier H,    base: K S K'

with the Hessian H of -log det of all pseudo-inertias and signed terms, H_ij = tr(P^-1 P_i P^-1 P_j).

Sources: Janot and Wensing, Sequential Semidefinite Optimization for Physically and Statistically Consistent Robot
Identification (2021), equations 53 to 56, where 54 and 55 simplify to the sandwich above; Nesterov and Nemirovskii,
Interior-Point Polynomial Algorithms in Convex Programming (1994), for the barrier. The covariance of draws, a Gaussian
that is conditioned on K pi and then given the covariance of b, is our own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, Infeasible, InvalidValue, NotIdentifiable
from dynid.feasibility.cone import smat
from dynid.feasibility.constraints import Signs
from dynid.feasibility.pull import pulled_inside
from dynid.feasibility.sets import feasible_set
from dynid.identification.known import prior_covariance
from dynid.parameters.base import BaseParameters
from dynid.robot.inertia import inertia_to_pseudo
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate

__all__ = ["barrier_covariance", "barrier_hessian", "base_covariance", "draw_parameters", "shortest_covariance"]

Array = NDArray[np.float64]

_RANK = 1e-11
# Share of the a-priori covariance in that of a method whose constraints leave some directions no variance.
_STIFF = 1e-6
# The same in the metric of the nearest feasible point, far below what any data determine.
_STIFFEST = 1e-10
_UNSEEN = 1e-10


def shortest_covariance(factor: ArrayLike) -> Array:
    """Covariance of the minimum-norm solution: the pseudo-inverse of R'R.

    Parameters
    ----------
    factor : array_like, shape (k, p)
        Whitened regressor rows R, with noise of unit variance.

    Returns
    -------
    ndarray, shape (p, p)
    """
    _, s, vt = np.linalg.svd(np.asarray(factor, dtype=float), full_matrices=False)
    kept = s > _RANK * s[0]
    root = vt[kept].T / s[kept]
    return np.asarray(root @ root.T)


def barrier_hessian(robot: Robot, parameters: ArrayLike) -> Array:
    """Hessian (p, p) of -log det of all pseudo-inertias and signed drive terms at feasible parameters (p,)."""
    pi = checked(parameters, (len(robot.layout),), "parameters", DataError)
    units = np.array([inertia_to_pseudo(row) for row in np.eye(10)])
    out = np.zeros((len(pi), len(pi)))
    for b in robot.parameter_links:
        at = robot.parameter_names.index(f"m_{robot.links[b].name}") + np.arange(10)
        out[np.ix_(at, at)] = _curvature(inertia_to_pseudo(pi[at]), units, f"link '{robot.links[b].name}'")
    for block in Signs().blocks(robot):
        at = np.unique(block.matrix.indices)
        columns = block.matrix.toarray()[:, at].T
        names = ", ".join(f"'{robot.parameter_names[i]}'" for i in at)
        directions = np.array([smat(column) for column in columns])
        out[np.ix_(at, at)] += _curvature(smat(block.value(pi)), directions, names)
    return out


def _curvature(matrix: Array, directions: Array, what: str) -> Array:
    """Second derivatives (k, k) of -log det of a matrix (n, n) along directions (k, n, n)."""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        raise Infeasible(f"{what}: not strictly feasible, so the barrier has no Hessian") from None
    whitened = (inverse @ directions @ inverse.T).reshape(len(directions), -1)
    return np.asarray(whitened @ whitened.T)


def barrier_covariance(robot: Robot, parameters: ArrayLike, factor: ArrayLike, *, barrier: float = 1e-9) -> Array:
    """Covariance of an estimate over physically consistent robots, chosen by the barrier of the constraints.

    B B' with B = N^-1 R' and N = R'R + barrier times the Hessian of the constraints. The result converges as the
    barrier decreases; rounding dominates far below 1e-12 of the information in the data.

    Parameters
    ----------
    robot : Robot
        The robot.
    parameters : array_like, shape (p,)
        Strictly feasible standard parameters.
    factor : array_like, shape (k, p)
        Whitened regressor rows R, with noise of unit variance.
    barrier : float, default 1e-9
        Weight of the barrier relative to the information in the data.

    Returns
    -------
    ndarray, shape (p, p)

    Raises
    ------
    DataError
        If the parameters are not strictly feasible, or if neither data nor constraints determine some of them.
    """
    R = np.asarray(factor, dtype=float)
    H = barrier_hessian(robot, parameters)
    bent = np.diag(H) > 0
    scale = 1.0 / np.sqrt(np.where(bent, np.diag(H), 1.0))
    most = np.linalg.norm(R[:, bent] * scale[bent], 2)
    seen = np.linalg.norm(R, axis=0)
    # Without a constraint only the data determine a parameter; its scale is that of the others.
    scale = np.where(bent | (seen == 0), scale, most / np.where(seen > 0, seen, 1.0))
    size = most**2 / np.linalg.norm(scale[:, None] * H * scale, 2)
    stiff = np.sqrt(barrier * size) * _root_of(scale[:, None] * H * scale).T
    rows = np.vstack([R * scale, stiff])
    q, t = scipy.linalg.qr(rows, mode="economic")
    if np.abs(np.diag(t)).min() <= _RANK * np.abs(np.diag(t)).max():
        raise NotIdentifiable("neither data nor constraints determine some parameters; fix them or leave them out")
    B = scale[:, None] * scipy.linalg.solve_triangular(t, q[: len(R)].T)
    return np.asarray(B @ B.T)


def base_covariance(base: BaseParameters, covariance: ArrayLike) -> Array:
    """Covariance of base parameters from that of standard parameters: K S K'.

    Parameters
    ----------
    base : BaseParameters
        The base parameters.
    covariance : array_like, shape (p, p)
        Covariance S of the standard parameters.

    Returns
    -------
    ndarray, shape (b, b)
    """
    K = base.matrix
    return np.asarray(K @ checked(covariance, (K.shape[1], K.shape[1]), "covariance", DataError) @ K.T)


def draw_parameters(estimate: Estimate, count: int, seed: int, feasible: bool) -> Array:
    """Draws (count, p) of standard parameters, see `Estimate.draws`."""
    if count < 1:
        raise InvalidValue(f"at least one draw is needed, got {count}", "count")
    with one_blas_thread():  # small matrices: several threads are slower
        root = _draws_root(estimate)
        steps = np.random.default_rng(seed).standard_normal((count, root.shape[1]))
        points = estimate.parameters + steps @ root.T
        return pulled_inside(feasible_set(estimate.robot), points, _metric(estimate, root)) if feasible else points


def _draws_root(estimate: Estimate) -> Array:
    """Root (p, k) of the covariance of the draws."""
    base, own = estimate.base, _root_of(estimate.covariance)
    if estimate.standard_covariance is None:
        start = base.standard(np.zeros(base.count))
        return np.column_stack([base.standard(column) - start for column in own.T])
    left = _finite(estimate.standard_covariance)
    wide = left + _STIFF * prior_covariance(estimate)
    K = base.matrix
    size = np.sqrt(np.diag(K @ wide @ K.T))
    scaled = K / size[:, None]
    lift = wide @ scaled.T @ np.linalg.pinv(scaled @ wide @ scaled.T, hermitian=True) / size
    return np.hstack([lift @ own, _root_of(left) - lift @ (K @ _root_of(left))])


def _metric(estimate: Estimate, root: Array) -> Array:
    """Root of the covariance in which draws are pulled: of the draws, and of all that leaves the base parameters."""
    wide = _root_of(prior_covariance(estimate))
    seen = estimate.base.matrix @ wide
    _, sizes, directions = np.linalg.svd(seen / np.linalg.norm(seen, axis=1)[:, None])
    unseen = directions[np.count_nonzero(sizes > _UNSEEN * sizes[0]) :].T
    rows = np.vstack([root.T, (wide @ unseen).T, np.sqrt(_STIFFEST) * wide.T])
    return np.asarray(scipy.linalg.qr(rows, mode="r")[0][: rows.shape[1]].T)


def _finite(covariance: Array) -> Array:
    """A covariance in which what the recording does not show at all keeps its value."""
    shown = np.isfinite(np.diag(covariance))
    return np.where(np.outer(shown, shown), covariance, 0.0)


def _root_of(covariance: Array) -> Array:
    """Root S of a covariance S S', accurate for parameters of all sizes."""
    finite = _finite(covariance)
    size = np.sqrt(np.maximum(np.diag(finite), 0.0))
    unit = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(finite / np.outer(unit, unit))
    return np.asarray(unit[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))
