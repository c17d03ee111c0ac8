"""Partial pooling against the restricted likelihood, and against separate estimates."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.fleet.pooling import pool_units, unit_factor

Array = NDArray[np.float64]

GROUPS = (0, 0, 1, 2)
TRUE = np.array([0.3, 0.3, 2.0, 0.0])  # standard deviations between units


def units(seed: int, count: int = 60) -> tuple[Array, Array, Array]:
    """Rows, targets and true parameters of some units."""
    random = np.random.default_rng(seed)
    theta = np.array([1.0, -2.0, 5.0, 0.5]) + TRUE * random.normal(size=(count, 4))
    rows = np.array([np.linalg.qr(random.normal(size=(12, 4)), mode="r") for _ in range(count)])
    return rows, np.einsum("uij,uj->ui", rows, theta) + random.normal(size=(count, 4)), theta


def restricted(rows: Array, targets: Array, variances: Array) -> float:
    """Restricted log-likelihood of the variances of the groups, written out."""
    information, pull, out = np.zeros((4, 4)), np.zeros(4), 0.0
    own = variances[list(GROUPS)]
    for A, z in zip(rows, targets, strict=True):
        V = np.eye(4) + (A * own) @ A.T
        W = np.linalg.inv(V)
        information += A.T @ W @ A
        pull += A.T @ W @ z
        out -= 0.5 * (np.linalg.slogdet(V)[1] + z @ W @ z)
    mean = np.linalg.solve(information, pull)
    return float(out + 0.5 * pull @ mean - 0.5 * np.linalg.slogdet(information)[1])


def test_variances_maximize_the_restricted_likelihood() -> None:
    rows, targets, _ = units(0)
    found = pool_units(rows, targets, GROUPS)
    best = np.array([found.variance[0], found.variance[2], found.variance[3]])
    assert found.variance[0] == pytest.approx(found.variance[1])
    top = restricted(rows, targets, best)
    for k in range(3):
        for factor in (0.8, 1.25):
            other = best.copy()
            other[k] *= factor
            # The iteration stops where a step no longer matters.
            assert restricted(rows, targets, other) < top + 0.02
    np.testing.assert_allclose(np.sqrt(best[:2]), [0.3, 2.0], rtol=0.3)
    assert np.sqrt(best[2]) < 0.15


def test_pooled_estimates_are_better_and_their_standard_deviations_are_right() -> None:
    separate, pooled, scaled = [], [], []
    for seed in range(5):
        rows, targets, theta = units(seed)
        found = pool_units(rows, targets, GROUPS)
        own = np.linalg.solve(rows, targets[..., None])[..., 0]
        separate.append(np.mean((own - theta) ** 2))
        pooled.append(np.mean((found.values - theta) ** 2))
        scaled.append(np.mean(((found.values - theta) / found.std)[:, :3] ** 2))
    assert np.mean(pooled) < 0.75 * np.mean(separate)
    assert 0.8 < np.mean(scaled) < 1.2


def test_a_unit_without_data_of_a_parameter_gets_the_mean() -> None:
    rows, targets, _ = units(3)
    rows[7, :, 2] = 0.0
    targets[7] = 0.0
    rows[7] = 0.0
    found = pool_units(rows, targets, GROUPS)
    np.testing.assert_allclose(found.values[7], found.mean)
    assert found.std[7, 2] == pytest.approx(np.sqrt(found.variance[2] + found.mean_covariance[2, 2]))


def test_a_unit_is_the_sum_of_its_entries() -> None:
    """Without scatter the factor of a unit is that of all rows; with scatter its information is smaller."""
    random = np.random.default_rng(4)
    rows, targets = [random.normal(size=(5, 3)) for _ in range(4)], [random.normal(size=5) for _ in range(4)]
    A, z = unit_factor(rows, targets, np.zeros(3))
    whole = np.vstack(rows)
    np.testing.assert_allclose(A.T @ A, whole.T @ whole)
    np.testing.assert_allclose(A.T @ z, whole.T @ np.concatenate(targets))
    B, _ = unit_factor(rows, targets, np.full(3, 0.5))
    assert np.all(np.linalg.eigvalsh(A.T @ A - B.T @ B) > 0)
