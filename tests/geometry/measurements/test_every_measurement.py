"""What holds for every class of measurement: exact derivatives, and the truth found without a start."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.geometry.kinematics import Postures
from dynid.geometry.measurements.kinds import MEASUREMENTS
from dynid.geometry.measurements.measurement import Space
from dynid.geometry.problem import Problem
from dynid.geometry.solve import solve
from dynid.geometry.tangents import rotation_vector
from dynid.geometry.unknowns import GeometryModel
from tests.support.geometry_cases import CASES, FRAME, TIP, Case
from tests.support.geometry_truth import Truth, points_of, robot_of

Array = NDArray[np.float64]

MODEL = GeometryModel(gear=1e-3, eccentricity=1e-3, bending=1e-5)


@cache
def made(name: str, count: int) -> tuple[Truth, Case]:
    """A case with its robot; the same postures for every test."""
    rng = np.random.default_rng(sorted(CASES).index(name))
    truth = Truth.of(robot_of("iiwa14"), rng)
    return truth, CASES[name](truth, rng, count)


def test_every_class_has_a_case() -> None:
    kinds = {type(made(name, 20)[1].measurement).kind for name in CASES}
    assert kinds == set(MEASUREMENTS)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    truth, case = made(name, 20)
    problem = Problem.of(truth.robot, [case.measurement], MODEL)
    rng = np.random.default_rng(1)
    std = np.array([u.std for u in problem.unknowns])
    x = rng.normal(size=len(std)) * np.minimum(std, 0.02)

    def everything(x: Array) -> Array:
        return np.concatenate([problem.rows(x)[0].residual.ravel(), problem.ties(x)[0]])

    slope = np.concatenate([problem.rows(x)[0].slope.reshape(-1, len(x)), problem.ties(x)[1]])
    assert np.isfinite(slope).all() and (np.abs(slope).max(0) > 0).sum() > 7
    # Along random mixtures of all unknowns, and along each of those of the sensor.
    ways = [*rng.normal(size=(6, len(x))), *np.eye(len(x))[len(problem.geometry.unknowns) :]]
    for way in (w * np.minimum(std, 1e-2) for w in ways):
        numeric = (everything(x + 1e-4 * way) - everything(x - 1e-4 * way)) / 2e-4
        assert slope @ way == pytest.approx(numeric, rel=1e-5, abs=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_found_without_a_start(name: str) -> None:
    truth, case = made(name, 60)
    problem = Problem.of(truth.robot, [case.measurement], GeometryModel(compliance=0.0))
    found = solve(problem)
    # Where a posture gives more than a point, the scatter of the robot takes a part of the noise.
    least = 0.0 if found.noise[0].position else 0.7
    assert found.converged and least < found.noise[0].sensor < 1.4
    std = np.sqrt(np.diag(found.covariance))
    _check_parts(problem, found.x, std, case)
    # The tool at new postures, where the sensor sees it: within a few standard deviations.
    q = truth.postures(50, np.random.default_rng(7))
    place = problem.geometry.place(Postures(truth.robot, q), found.x, len(found.x))
    tool, base = place[FRAME], np.eye(4) if case.base is None else case.base
    if case.base is not None:
        tool = Space({}, problem.places[0], found.x, len(found.x)).placement("base").then(tool)
    predicted = tool.point(TIP)
    away = predicted.value - points_of(base @ truth.frames(q, FRAME), TIP)
    variance = np.einsum("nix,xy,niy->ni", predicted.slope, found.covariance, predicted.slope)
    assert np.mean(away**2 / variance) < 9
    if case.sharp:
        nothing = problem.geometry.place(Postures(truth.robot, q), np.zeros(len(found.x)), len(found.x))[FRAME]
        before = nothing.point(TIP).value - points_of(truth.frames(q, FRAME), TIP)
        assert np.sqrt(np.mean(away**2)) < 0.5 * np.sqrt(np.mean(before**2))


def _check_parts(problem: Problem, x: Array, std: Array, case: Case) -> None:
    """What a case knows of its sensor is found within five standard deviations, from no start."""
    space = Space({}, problem.places[0], x, len(x))
    expected = case.parts | ({} if case.base is None else {"base": case.base})
    assert set(expected) <= set(problem.places[0])
    for part, true in expected.items():
        where = problem.places[0][part][1]
        if np.shape(true) == (4, 4):
            found = space.placement(part)
            turned = rotation_vector(found.rotation[0] @ true[:3, :3].T)
            away = np.concatenate([found.origin[0] - true[:3, 3], turned])
        else:
            away = space.values(part).value[0] - true
        assert (np.abs(away) < 5 * std[where] + 1e-9).all(), (part, away, std[where])
