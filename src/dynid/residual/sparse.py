"""Sparse Gaussian-process regression with inducing points: Titsias' collapsed bound, its gradient, the posterior.

    F = log N(y | 0, Q + H H' + D) - tr(D^-1 (K - Q)) / 2,    Q = K_fu K_uu^-1 K_uf

with inducing points u, noise variances D and basis functions H.

Sources: Titsias, Variational Learning of Inducing Variables in Sparse Gaussian Processes (2009); Quinonero-Candela and
Rasmussen, A Unifying View of Sparse Approximate Gaussian Process Regression (2005); Fine and Scheinberg, Efficient SVM
Training Using Low-Rank Kernel Representations (2001), for points by pivoted Cholesky factorisation. Noise that differs
between samples, and the gradient over the places of the points, were derived here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from dynid.residual.kernel import Kernel
from dynid.residual.posterior import Block, Statistics
from dynid.residual.problem import Problem, Unfit

__all__ = ["bound", "choose_points", "choose_rows", "condition", "gather"]

Array = NDArray[np.float64]

# Added to the diagonal of the points' own covariance, as a share of it.
_JITTER = 1e-8


def bound(problem: Problem, theta: Array, points: Array, places: bool = False) -> tuple[float, Array, Array]:
    """Lower bound of the log marginal likelihood, its gradient, and with `places` that over the points (m, d)."""
    kernel, x, y = problem.kernel, problem.x, problem.y
    kernel_theta, noise_theta = problem.split(theta)
    D = problem.noise_variance(noise_theta)
    prior = kernel.variance(kernel_theta)
    Kuf = kernel.matrix(kernel_theta, points, x)
    L = _points_factor(kernel, kernel_theta, points)
    V = np.vstack([solve_triangular(L, Kuf, lower=True), problem.basis.T])
    m, n = Kuf.shape
    VD = V / D
    S = VD @ V.T
    S[np.diag_indices_from(S)] += 1.0
    LS = _factor(S)
    c = solve_triangular(LS, VD @ y, lower=True)
    explained = np.einsum("ij,ij->j", V[:m], V[:m])
    value = -0.5 * (
        n * np.log(2 * np.pi) + np.log(D).sum() + 2 * np.log(np.diag(LS)).sum() + y @ (y / D) - c @ c
        + ((prior - explained) / D).sum()
    )  # fmt: skip
    # d F / d Q = (alpha alpha' - Sigma^-1 + D^-1) / 2, with Sigma = V'V + D; never formed.
    alpha = (y - V.T @ solve_triangular(LS, c, lower=True, trans=1)) / D
    P = solve_triangular(L, V[:m], lower=True, trans=1)
    half = solve_triangular(LS, VD, lower=True)
    PG = 0.5 * (np.outer(P @ alpha, alpha) + ((P @ VD.T) @ solve_triangular(LS, half, lower=True, trans=1)))
    outer_uu = -(PG @ P.T)
    gradient, moved = kernel.gradients(kernel_theta, x, points, 2 * PG.T, places)
    own, moved_own = kernel.gradients(kernel_theta, points, None, outer_uu, places)
    jitter = _JITTER * np.trace(outer_uu)
    variance_gradient = kernel.variance_gradient(kernel_theta)
    gradient = gradient + own + (jitter - 0.5 * (1 / D).sum()) * variance_gradient
    inside = np.einsum("ij,ij->j", half, half)  # D^-2 V_i' S^-1 V_i
    slope = 0.5 * (alpha**2 - 1 / D + inside) + 0.5 * (prior - explained) / D**2
    gradient = np.append(gradient, problem.noise_gradient(noise_theta, slope))
    # Each point stands on both sides of its own covariance.
    return float(value), gradient, moved + 2 * moved_own if places else moved


def gather(problem: Problem, theta: Array, points: Array) -> Statistics:
    """Statistics of these samples for these points."""
    kernel_theta, noise_theta = problem.split(theta)
    L = _points_factor(problem.kernel, kernel_theta, points)
    Kuf = problem.kernel.matrix(kernel_theta, points, problem.x)
    V = np.vstack([solve_triangular(L, Kuf, lower=True), problem.basis.T])
    VD = V / problem.noise_variance(noise_theta)
    return Statistics(VD @ V.T, VD @ problem.y)


def condition(kernel: Kernel, kernel_theta: Array, points: Array, statistics: Statistics) -> Block:
    """The posterior at the inducing points."""
    m = len(points)
    L = _points_factor(kernel, kernel_theta, points)
    S = statistics.information + np.eye(len(statistics.information_vector))
    inverse = np.linalg.inv(S)
    inverse = 0.5 * (inverse + inverse.T)
    w = inverse @ statistics.information_vector
    back = solve_triangular(L, np.eye(m), lower=True)
    # With f = L^-1 k and h, the variance is k(x,x) - f'f + (f, h)' S^-1 (f, h); in the form r = h - T k.
    uu, ub, bb = inverse[:m, :m], inverse[:m, m:], inverse[m:, m:]
    projection = -np.linalg.solve(bb, ub.T) @ back if len(bb) else np.zeros((0, m))
    inner = np.eye(m) - uu + (ub @ np.linalg.solve(bb, ub.T) if len(bb) else 0.0)
    return Block(points, back.T @ w[:m], back.T @ inner @ back, w[m:], bb, projection)


def choose_points(kernel: Kernel, theta: Array, x: Array, count: int) -> NDArray[np.intp]:
    """Indices of inducing points, chosen greedily: each is the sample of largest variance given those before."""
    count = min(count, len(x))
    left = np.full(len(x), kernel.variance(theta))
    rows = np.zeros((count, len(x)))
    chosen: list[int] = []
    for i in range(count):
        best = int(np.argmax(left))
        if left[best] <= 1e-9 * kernel.variance(theta):
            break
        chosen.append(best)
        k = kernel.matrix(theta, x[best : best + 1], x)[0]
        rows[i] = (k - rows[:i].T @ rows[:i, best]) / np.sqrt(left[best])
        left = np.maximum(left - rows[i] ** 2, 0.0)
    return np.array(chosen)


def choose_rows(kernel: Kernel, theta: Array, x: Array, count: int) -> NDArray[np.intp]:
    """Indices of at most `count` samples: those of `choose_points`, then others evenly over the rest."""
    first = choose_points(kernel, theta, x, count)
    rest = np.setdiff1d(np.arange(len(x)), first)
    more = min(count - len(first), len(rest))
    return np.concatenate([first, rest[np.linspace(0, len(rest) - 1, more).astype(np.intp)]]) if more > 0 else first


def _points_factor(kernel: Kernel, theta: Array, points: Array) -> Array:
    K = kernel.matrix(theta, points)
    K[np.diag_indices_from(K)] += _JITTER * kernel.variance(theta)
    return _factor(K)


def _factor(K: Array) -> Array:
    L, info = lapack.dpotrf(K, lower=1, overwrite_a=1, clean=1)
    if info:
        raise Unfit("the covariance matrix is not positive definite")
    return np.asarray(L)
