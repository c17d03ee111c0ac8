"""Covariances of full-parameter estimates: with the barrier of the constraints, without it, and of base values.

The data fix base values only. What a standard vector scatters like therefore depends on what picks it among equally
good ones: nothing (the shortest vector), the barrier that an interior-point method leaves it with, or a prior.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.identify.base import BaseParameters
from dynid.robot.inertia import inertia_to_pseudo
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["barrier_covariance", "barrier_hessian", "base_covariance", "shortest_covariance"]

Array = NDArray[np.float64]

_RANK = 1e-11


def shortest_covariance(factor: ArrayLike) -> Array:
    """Covariance (p, p) of the shortest vector that fits rows R (k, p) with unit noise: the pseudo-inverse of R'R."""
    _, s, vt = np.linalg.svd(np.asarray(factor, dtype=float), full_matrices=False)
    kept = s > _RANK * s[0]
    root = vt[kept].T / s[kept]
    return np.asarray(root @ root.T)


def barrier_hessian(robot: Robot, parameters: ArrayLike) -> Array:
    """Curvature (p, p) of -log det of all pseudo-inertias and signed drive values at possible parameters (p,)."""
    pi = checked(parameters, (len(robot.layout),), "parameters", DataError)
    units = np.array([inertia_to_pseudo(row) for row in np.eye(10)])
    out = np.zeros((len(pi), len(pi)))
    for b in robot.parameter_links:
        at = robot.parameter_names.index(f"m_{robot.links[b].name}") + np.arange(10)
        J = inertia_to_pseudo(pi[at])
        try:
            L = scipy.linalg.cholesky(J, lower=True)
        except np.linalg.LinAlgError:
            raise DataError(f"link '{robot.links[b].name}' is not possible; its barrier has no curvature") from None
        seen = scipy.linalg.solve_triangular(L, units, lower=True)
        whitened = scipy.linalg.solve_triangular(L, np.swapaxes(seen, 1, 2), lower=True).reshape(10, 16)
        out[np.ix_(at, at)] = whitened @ whitened.T
    for i, p in enumerate(robot.layout):
        if not p.inertial and not p.symbol.startswith("off"):
            if pi[i] <= 0:
                raise DataError(f"'{p.name}' is not positive; its barrier has no curvature")
            out[i, i] = 1.0 / pi[i] ** 2
    return out


def barrier_covariance(robot: Robot, parameters: ArrayLike, factor: ArrayLike, barrier: float = 1e-9) -> Array:
    """Covariance (p, p) of an estimate over possible robots, from whitened rows R (k, p) with unit noise.

    B B' with B = N^-1 R' and N = R'R + barrier times the curvature of the constraints, which picks among vectors that
    fit equally well. It settles as the barrier falls; far below 1e-12 of the data's information rounding wins.
    """
    R = np.asarray(factor, dtype=float)
    H = barrier_hessian(robot, parameters)
    scale = 1.0 / np.sqrt(np.diag(H) + np.diag(H).max() * 1e-12)
    size = np.linalg.norm(R * scale, 2) ** 2 / np.linalg.norm(scale[:, None] * H * scale, 2)
    stiff = np.sqrt(barrier * size) * _root(scale[:, None] * H * scale)
    rows = np.vstack([R * scale, stiff])
    q, t = scipy.linalg.qr(rows, mode="economic")
    if np.abs(np.diag(t)).min() <= _RANK * np.abs(np.diag(t)).max():
        raise DataError("neither data nor constraints pin some parameters; fix them or leave them out")
    B = scale[:, None] * scipy.linalg.solve_triangular(t, q[: len(R)].T)
    return np.asarray(B @ B.T)


def base_covariance(base: BaseParameters, covariance: ArrayLike) -> Array:
    """Covariance (b, b) of base values from that of standard parameters (p, p): K S K'."""
    K = base.matrix
    return np.asarray(K @ checked(covariance, (K.shape[1], K.shape[1]), "covariance", DataError) @ K.T)


def _root(H: Array) -> Array:
    """Rows S with S'S = H for a positive semidefinite H."""
    values, vectors = np.linalg.eigh(H)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
