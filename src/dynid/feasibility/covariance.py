"""Covariance of an estimate with active constraints.

Near the solution, active constraints act as equalities, and the curvature of their cones adds to the Hessian (the limit
of the central path of an interior-point method). The covariance is the sandwich of the data term between two inverses
of that Hessian, computed from factors: differences of nearly equal matrices are avoided.

With the data rows R, prior rows S and, per active matrix constraint X with multiplier Z, eigenvalues s_i of X and z_a
of Z in common eigenvectors:

    H = R'R + S'S + sum of 2 (z_a / s_i) (v_a' dX v_i)^2,    covariance = B (B'H B)^-1 B'R'R B (B'H B)^-1 B'

where B spans the changes that leave the active equalities as they are.

Sources: Shapiro, First and Second Order Analysis of Nonlinear Semidefinite Programs (1997), and Bonnans and Shapiro,
Perturbation Analysis of Optimization Problems (2000), for the curvature of the cone; Janot and Wensing (2021), section
IV-D, for covariances of constrained parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import InvalidValue
from dynid.feasibility.certificate import cone_scale
from dynid.feasibility.cone import Block, smat, svec_indices
from dynid.feasibility.fit import Fit

__all__ = ["bootstrap_covariance", "constrained_covariance"]

Array = NDArray[np.float64]

_RANK = 1e-10


def constrained_covariance(fit: Fit, R: Array, prior_rows: Array) -> Array:
    """Covariance (p, p) of the fitted standard parameters for unit noise on the rows of R (k, p).

    `prior_rows` are those of the distance from the prior, times the square root of its weight: they determine the
    parameters that are not identifiable from the data.
    """
    feasible = fit.feasible
    unknowns = feasible.size + feasible.extra
    scale = feasible.scale
    held, stiff = [], [np.pad(prior_rows, ((0, 0), (0, feasible.extra)))]
    for block, dual in zip(feasible.blocks, fit.solution.duals, strict=False):
        hard, soft = _face(block, fit.solution.x[:unknowns], dual)
        held.append(hard)
        stiff.append(soft)
    fixed = np.vstack(held) * scale
    basis = _null_space(fixed) if len(fixed) else np.eye(unknowns)
    data = np.pad(R, ((0, 0), (0, unknowns - R.shape[1]))) * scale @ basis
    rows = np.vstack([data, *(s * scale @ basis for s in stiff)])
    q, t = scipy.linalg.qr(rows, mode="economic")
    keep = np.abs(np.diag(t)) > _RANK * np.abs(np.diag(t)).max(initial=0.0)
    if not keep.all():
        # Unknowns without data, prior or constraints (parts of a union of ellipsoids) do not matter.
        u, s, vt = np.linalg.svd(rows, full_matrices=False)
        strong = s > _RANK * s[0]
        gain = (vt[strong].T / s[strong]) @ u[: len(data), strong].T
    else:
        gain = scipy.linalg.solve_triangular(t, q[: len(data)].T)
    root = (scale[:, None] * (basis @ gain))[: feasible.size]
    return np.asarray(root @ root.T)


def bootstrap_covariance(solve: Callable[[Array], Array], expected: Array, draws: int, *, seed: int = 0) -> Array:
    """Parametric bootstrap: covariance of solve(z) over draws of z = expected + unit noise."""
    if draws < 2:
        raise InvalidValue(f"a bootstrap needs at least two draws, got {draws}", "draws")
    rng = np.random.default_rng(seed)
    found = np.array([solve(expected + rng.standard_normal(expected.shape)) for _ in range(draws)])
    return np.atleast_2d(np.cov(found, rowvar=False))


def _face(block: Block, x: Array, dual: Array) -> tuple[Array, Array]:
    """Rows over the unknowns that an active block fixes, and rows of the curvature that it adds."""
    matrix = block.matrix.toarray()
    none = np.zeros((0, matrix.shape[1]))
    if block.cone == "zero":
        return matrix, none
    weight = cone_scale(block)
    value, multiplier = block.value(x) / weight, dual * weight
    matrix = matrix / weight[:, None]
    if block.cone == "nonnegative":
        return matrix[multiplier > value], none
    # In the limit, slack and multiplier commute, and one eigenvalue of each pair is zero.
    values, vectors = np.linalg.eigh(smat(value) - smat(multiplier))
    rows, columns, _ = svec_indices(len(values))
    turned = np.zeros_like(matrix)
    for k in np.unique(block.matrix.indices):
        turned[:, k] = (vectors.T @ smat(matrix[:, k]) @ vectors)[rows, columns]
    active = values < 0
    both = active[rows] & active[columns]
    mixed = active[rows] != active[columns]
    z = np.where(active[rows], -values[rows], -values[columns])[mixed]
    s = np.where(active[rows], values[columns], values[rows])[mixed]
    return turned[both], np.sqrt(2.0 * z / np.maximum(s, 1e-300))[:, None] * turned[mixed]


def _null_space(rows: Array) -> Array:
    """Orthonormal basis of the null space."""
    _, s, vt = np.linalg.svd(rows)
    rank = int(np.count_nonzero(s > _RANK * s[0])) if len(s) else 0
    return np.asarray(vt[rank:].T)
