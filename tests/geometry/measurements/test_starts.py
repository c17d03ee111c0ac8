"""Starts from nothing lead to the same minimum as the truth does, on few postures and bad nominal geometry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares

from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.poses import Poses
from dynid.geometry.measurements.starts import hand_eye
from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import GeometryModel
from tests.support.geometry_truth import Truth, any_placement, near, points_of, robot_of

Array = NDArray[np.float64]

# Nominal errors of 10 mm and 3 degrees.
MODEL = GeometryModel(position=1e-2, rotation=0.05, zero=0.05, compliance=0.0, learned=False)


def cost(problem: Problem) -> float:
    """The smallest sum of squares that SciPy reaches from the start, for the stated noise and standard deviations."""
    std = np.array([u.std for u in problem.unknowns])
    known = np.isfinite(std)
    scale = np.where(known, std, 1.0)

    def away(z: Array) -> Array:
        return np.concatenate([problem.rows(z * scale)[0].residual.ravel(), z[known]])

    def slope(z: Array) -> Array:
        return np.vstack([problem.rows(z * scale)[0].slope.reshape(-1, len(z)) * scale, np.eye(len(z))[known]])

    found = least_squares(away, np.zeros(len(std)), slope, x_scale="jac", xtol=1e-12, ftol=1e-12, max_nfev=500)
    return float(2 * found.cost)


@pytest.mark.parametrize(("postures", "markers", "hidden"), [(5, 1, 0.0), (5, 3, 0.0), (6, 3, 0.4)])
@pytest.mark.parametrize("seed", range(3))
def test_markers_of_few_postures_and_an_arbitrary_base(seed: int, postures: int, markers: int, hidden: float) -> None:
    rng = np.random.default_rng(seed)
    truth = Truth.of(robot_of("puma560"), rng, 1e-2, np.deg2rad(3))
    q, base, local = 0.5 * truth.postures(postures, rng), any_placement(rng, 3), 0.2 * rng.normal(size=(markers, 3))
    frames = base @ truth.frames(q, "link6")
    seen = np.stack([points_of(frames, c) for c in local], axis=1)
    seen += 2e-4 * rng.normal(size=seen.shape)
    away = rng.random(seen.shape[:2]) < hidden
    away[range(markers), range(markers)] = False
    seen[away] = np.nan
    blind = Points(q, "link6", points=seen)
    told = replace(blind, base=base, known=local)
    assert cost(Problem.of(truth.robot, [blind], MODEL)) < cost(Problem.of(truth.robot, [told], MODEL)) * 1.01 + 0.1


@pytest.mark.parametrize("in_hand", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_poses_of_few_postures(seed: int, in_hand: bool) -> None:
    rng = np.random.default_rng(seed)
    truth = Truth.of(robot_of("puma560"), rng, 1e-2, np.deg2rad(3))
    q, base, mount = 0.5 * truth.postures(4, rng), any_placement(rng, 3), any_placement(rng, 0.3)
    poses = base @ truth.frames(q, "link6") @ mount
    seen = np.array([near(rng, np.linalg.inv(x) if in_hand else x, 5e-4, 2e-3) for x in poses])
    blind = Poses(q, "link6", poses=seen, in_hand=in_hand)
    told = replace(blind, base=base, mount=mount)
    assert cost(Problem.of(truth.robot, [blind], MODEL)) < cost(Problem.of(truth.robot, [told], MODEL)) * 1.01 + 0.1


@pytest.mark.parametrize("known", ["", "base", "mount"])
def test_hand_eye_of_exact_poses_is_exact(known: str) -> None:
    rng = np.random.default_rng(3)
    base, mount, frames = any_placement(rng), any_placement(rng), np.array([any_placement(rng) for _ in range(6)])
    given = {"base": base, "mount": mount}
    found = hand_eye(
        frames[:, :3, :3],
        frames[:, :3, 3],
        base @ frames @ mount,
        *(given[name] if name == known else None for name in given),
    )
    assert np.allclose(found, [base, mount], atol=1e-9)
