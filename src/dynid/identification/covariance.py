"""Covariances of standard parameters: with the barrier of the constraints, without it, and of base parameters.

The data determine base parameters only. The covariance of the standard parameters therefore depends on how they are
chosen among those that fit equally well: by their norm, by the barrier of an interior-point method, or by a prior.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.cone import smat
from dynid.feasibility.constraints import Signs
from dynid.parameters.base import BaseParameters
from dynid.robot.inertia import inertia_to_pseudo
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["barrier_covariance", "barrier_hessian", "base_covariance", "shortest_covariance"]

Array = NDArray[np.float64]

_RANK = 1e-11


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
        raise DataError(f"{what}: not strictly feasible, so the barrier has no Hessian") from None
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
    stiff = np.sqrt(barrier * size) * _root(scale[:, None] * H * scale)
    rows = np.vstack([R * scale, stiff])
    q, t = scipy.linalg.qr(rows, mode="economic")
    if np.abs(np.diag(t)).min() <= _RANK * np.abs(np.diag(t)).max():
        raise DataError("neither data nor constraints determine some parameters; fix them or leave them out")
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


def _root(H: Array) -> Array:
    """Rows S with S'S = H for a positive semidefinite H."""
    values, vectors = np.linalg.eigh(H)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
