"""Least squares as the textbooks write them, on tall matrices: values, covariances, errors."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import estimate_from
from tests.support.synthetic import arm, base_of, motion, observation_of

Array = np.ndarray
NOISE = np.array([0.5, 0.1, 0.02])


def rows() -> tuple[Array, Array]:
    """W (N, channel, b) and y (N, channel) with another noise in each joint."""
    base = base_of(arm())
    _, q, v, a = motion(arm(), 3, samples=400)
    W = base.regressor(q, v, a)
    return W, W @ base.values() + NOISE * np.random.default_rng(0).normal(size=W.shape[:2])


def stacked(W: Array, y: Array, std: Array) -> tuple[Array, Array]:
    """All rows one below the other, each over the standard deviation of its joint."""
    return (W / std[:, None]).reshape(-1, W.shape[2]), (y / std).ravel()


def estimated(method: str, W: Array, y: Array, **options: object) -> Estimate:
    return estimate_from(observation_of(base_of(arm()), W, y), method, noise_model="white", **options)


def same(ours: Array, theirs: Array) -> None:
    """To the rounding of the normal equations, whose condition number is about 1e5."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


def test_ordinary_least_squares() -> None:
    """(W'W)^-1 W'y, with |residual|^2 / (rows - b) as variance."""
    W, y = rows()
    A, b = stacked(W, y, np.ones(3))
    inverse = np.linalg.inv(A.T @ A)
    beta = inverse @ A.T @ b
    found = estimated("ols", W, y)
    same(found.beta, beta)
    same(found.covariance, np.sum((b - A @ beta) ** 2) / (len(b) - len(beta)) * inverse)
    same(found.relative_std, 100 * found.std / np.abs(beta))


@pytest.mark.parametrize("freedom", ["parameters", "none"])
@pytest.mark.parametrize("iterations", [1, 2])
def test_weighted_least_squares(freedom: str, iterations: int) -> None:
    """Each joint over the standard deviation of its residual in the fit before; the first one is ordinary.

    Sousa (2014) divides by the rows of the joint without the number of parameters, Nguyen (2021) by its rows.
    """
    W, y = rows()
    std = np.ones(3)
    for _ in range(iterations):
        beta = np.linalg.lstsq(*stacked(W, y, std), rcond=None)[0]
        std = np.sqrt(np.sum((y - W @ beta) ** 2, axis=0) / (len(y) - len(beta) * (freedom == "parameters")))
    A, b = stacked(W, y, std)
    inverse = np.linalg.inv(A.T @ A)
    found = estimated("wls", W, y, freedom=freedom, iterations=iterations)
    same(found.beta, inverse @ A.T @ b)
    same(found.covariance, inverse)
    same(found.noise, std)
    assert np.abs(found.beta - estimated("ols", W, y).beta).max() > 1e-3


@pytest.mark.parametrize("method", ["ols", "wls"])
def test_errors_of_the_joints(method: str) -> None:
    """|residual| / |torque| and its root mean square, joint by joint."""
    W, y = rows()
    found = estimated(method, W, y)
    residual = y - W @ found.beta
    same(found.relative_error, np.linalg.norm(residual, axis=0) / np.linalg.norm(y, axis=0))
    same(found.rms, np.sqrt(np.mean(residual**2, axis=0)))
