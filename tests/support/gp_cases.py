"""Small regression problems over two joints, and predictions from them, for tests of Gaussian processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.residual import exact, sparse
from dynid.residual.features import Features
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import parse_noise
from dynid.residual.posterior import Block, Posterior, basis_columns
from dynid.residual.problem import Problem

Array = NDArray[np.float64]

KERNELS = ["se", "ard", "matern32", "matern52", "friction", "ard+friction", "matern32+se", "matern52+matern32"]
KERNELS += ["exponential", "rational-quadratic", "matern52-iso", "exponential-iso+rational-quadratic-iso+se"]
NOISES = ["even", "reversal"]
DEGREES = [-1, 0, 1]


def features() -> Features:
    """Two joints: positions, velocities, accelerations and directions, as they are."""
    return Features(np.zeros(2, bool), np.full(2, 0.5), np.zeros(8), np.ones(8), np.full(8, -3.0), np.full(8, 3.0))


def inputs(samples: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, samples, 2))
    return features()(q, v, a)


def problem(kernel: str, noise: str = "even", degree: int = -1, samples: int = 30, seed: int = 0) -> Problem:
    x = inputs(samples, seed)
    rng = np.random.default_rng(seed + 100)
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 6] + 0.3 * x[:, 2] * x[:, 4] + 0.1 * rng.normal(size=samples)
    f = features()
    return Problem.of(parse_kernel(kernel, f, 0), parse_noise(noise, f, 0), f, x, y, basis_columns(degree, x))


def hyper_parameters(task: Problem, seed: int = 0) -> Array:
    """Somewhere near the start, every number its own, length scales short enough to bend."""
    rng = np.random.default_rng(seed + 200)
    return np.array(task.start() - 0.3 + 0.3 * rng.normal(size=task.size))


def scattered_points(task: Problem, theta: Array, count: int, places: Array | None = None) -> Array:
    """Inducing points well apart, so that their covariance loses no digits; at places of their own unless given."""
    x = inputs(60, 5) if places is None else places
    return x[sparse.choose_points(task.kernel, task.split(theta)[0], x, count)]


def posterior(task: Problem, theta: Array, block: Block, degree: int) -> Posterior:
    kernel_theta, noise_theta = task.split(theta)
    return Posterior(
        task.kernel, kernel_theta, task.noise, noise_theta, 1.0, (block,), block.points.mean(0)[None], degree
    )


def exact_posterior(task: Problem, theta: Array, degree: int = -1) -> Posterior:
    return posterior(task, theta, exact.condition(task, theta), degree)


def sparse_posterior(task: Problem, theta: Array, points: Array, degree: int = -1) -> Posterior:
    block = sparse.condition(task.kernel, task.split(theta)[0], points, sparse.gather(task, theta, points))
    return posterior(task, theta, block, degree)
