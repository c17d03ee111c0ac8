"""Exact Gaussian-process regression: marginal likelihood with its gradient, and the posterior.

    log p(y) = -y' S^-1 y / 2 - log det(S) / 2 - n log(2 pi) / 2,    S = K + H H' + D,    alpha = S^-1 y
    d log p / d theta = tr((alpha alpha' - S^-1) dS / d theta) / 2
    mean = k' w + h' c,    c = (1 + H' S_0^-1 H)^-1 H' S_0^-1 y,    w = S_0^-1 (y - H c),    S_0 = K + D

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), equations 2.30 and 5.9, and section 2.7
for explicit basis functions H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from dynid.residual.posterior import Block
from dynid.residual.problem import Problem, Unfit

__all__ = ["condition", "extend", "log_likelihood"]

Array = NDArray[np.float64]


def log_likelihood(problem: Problem, theta: Array) -> tuple[float, Array]:
    """Log marginal likelihood of the hyper-parameters and its gradient, the basis integrated out."""
    kernel_theta, noise_theta = problem.split(theta)
    K = problem.kernel.matrix(kernel_theta, problem.x)
    if problem.basis.shape[1]:
        K += problem.basis @ problem.basis.T
    K[np.diag_indices_from(K)] += problem.noise_variance(noise_theta)
    L = _factor(K)
    alpha = _solve(L, problem.y)
    n = len(alpha)
    value = -0.5 * problem.y @ alpha - np.log(np.diag(L)).sum() - 0.5 * n * np.log(2 * np.pi)
    inverse = _inverse(L)
    outer = np.outer(alpha, 0.5 * alpha)
    outer -= 0.5 * inverse
    gradient = problem.kernel.gradient(kernel_theta, problem.x, None, outer)
    return float(value), np.append(gradient, problem.noise_gradient(noise_theta, np.diag(outer)))


def condition(problem: Problem, theta: Array) -> Block:
    """Posterior of the data at these hyper-parameters."""
    kernel_theta, noise_theta = problem.split(theta)
    K = problem.kernel.matrix(kernel_theta, problem.x)
    K[np.diag_indices_from(K)] += problem.noise_variance(noise_theta)
    L = _factor(K)
    H = problem.basis
    if H.shape[1]:
        solved = _solve(L, H)
        precision = np.eye(H.shape[1]) + H.T @ solved
        coefficients = np.asarray(np.linalg.solve(precision, solved.T @ problem.y))
        covariance = np.asarray(np.linalg.inv(precision))
    else:
        solved, coefficients, covariance = np.zeros_like(H), np.zeros(0), np.zeros((0, 0))
    weights = _solve(L, problem.y - H @ coefficients)
    return Block(problem.x, weights, _inverse(L), coefficients, covariance, solved.T.copy())


def extend(block: Block, cross: Array, corner: Array, x: Array, y: Array) -> Block:
    """The block with points x (k, d) added, of covariances cross (m, k), corner (k, k); y (m + k,) are all targets."""
    A = block.reduction
    solved = A @ cross
    L = _factor(corner - cross.T @ solved)
    back = _solve(L, solved.T)
    inverse = np.block([[A + solved @ back, -back.T], [-back, _inverse(L)]])
    none = np.zeros((0, len(y)))
    return Block(np.vstack([block.points, x]), inverse @ y, inverse, np.zeros(0), np.zeros((0, 0)), none)


def _factor(K: Array) -> Array:
    L, info = lapack.dpotrf(K, lower=1, overwrite_a=1, clean=1)
    if info:
        raise Unfit("the covariance matrix is not positive definite")
    return np.asarray(L)


def _solve(L: Array, b: Array) -> Array:
    x, info = lapack.dpotrs(L, b, lower=1)
    assert info == 0
    return np.asarray(x)


def _inverse(L: Array) -> Array:
    low, info = lapack.dpotri(L, lower=1)
    assert info == 0
    out = np.tril(low)
    out += np.tril(low, -1).T
    return np.asarray(out)
