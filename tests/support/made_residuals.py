"""Residuals made by hand at hyper-parameters of no fit, for tests of what is computed with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dynid import Robot
from dynid.residual import exact, sparse
from dynid.residual.blend import Blend
from dynid.residual.features import fit_features
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import parse_noise
from dynid.residual.posterior import Block, Posterior, basis_columns
from dynid.residual.problem import Problem
from dynid.residual.residual import JointResidual, Residual

Array = NDArray[np.float64]


def motion(robot: Robot, samples: int, seed: int, reach: float = 1.0) -> tuple[Array, Array, Array]:
    """q, v, a (samples, n) within +-reach of zero; positions of the first joint twice as far."""
    rng = np.random.default_rng(seed)
    q, v, a = rng.uniform(-reach, reach, (3, samples, robot.n))
    q[:, 0] *= 2
    return q, v, a


def made_residual(
    robot: Robot,
    samples: int = 120,
    *,
    kernel: str = "ard",
    noise: str = "even",
    degree: int = -1,
    inducing: int = 0,
    local: int = 1,
    bound: float = 5.0,
    blend: Blend | None = None,
    missing: tuple[int, ...] = (),
    has_rigid: bool = True,
    periodic: bool = False,
) -> Residual:
    """Every joint but the `missing` ones has learned a wave of its position and a step of its velocity.

    From all samples, from `inducing` points, or from `local` models.
    """
    q, v, a = motion(robot, samples, 0)
    features = fit_features(robot, q, v, a, periodic)
    x = features(q, v, a)
    rng = np.random.default_rng(1)
    joints: list[JointResidual | None] = []
    with threadpool_limits(1, "blas"):
        for j in range(robot.n):
            k, scatter = parse_kernel(kernel, features, j), parse_noise(noise, features, j)
            y = np.sin(2 * q[:, j]) + np.tanh(5 * v[:, j])
            problem = Problem.of(k, scatter, features, x, y, basis_columns(degree, x))
            theta = problem.start() + rng.uniform(-0.3, 0.3, problem.size)
            blocks, centers = _blocks(problem, theta, inducing, local, rng)
            k_theta, noise_theta = problem.split(theta)
            posterior = Posterior(k, k_theta, scatter, noise_theta, 1.5 + j, blocks, centers, degree)
            joints.append(None if j in missing else JointResidual(posterior, 0.9 - 0.05 * j, bound, 1.3))
    home = rng.uniform(-0.5, 0.5, robot.n)
    return Residual(robot, features, tuple(joints), home, blend or Blend(0.3, 0.9), has_rigid)


def _blocks(
    problem: Problem, theta: Array, inducing: int, local: int, rng: np.random.Generator
) -> tuple[tuple[Block, ...], Array]:
    x, (k_theta, _) = problem.x, problem.split(theta)
    if inducing:
        points = x[sparse.choose_points(problem.kernel, k_theta, x, inducing)]
        gathered = sparse.gather(problem, theta, points)
        return (sparse.condition(problem.kernel, k_theta, points, gathered),), x[:1]
    if local == 1:
        return (exact.condition(problem, theta),), x[:1]
    centers = x[rng.choice(len(x), local, replace=False)]
    nearest = np.argmin(((x[:, None] - centers) ** 2).sum(axis=2), axis=1)
    return tuple(exact.condition(problem.rows(np.flatnonzero(nearest == c)), theta) for c in range(local)), centers
