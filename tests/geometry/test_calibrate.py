"""Geometric calibration of plants whose errors are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.errors import TooFew
from dynid.geometry import GeometryModel, Points, Problem, base_geometry, calibrate_geometry
from dynid.geometry.solve import Solution, solve
from studies.reproduce.geometry import far_run, one_run, rank_of
from studies.reproduce.geometry_plants import CLASSES, STANDARD, TOOL, Plant, Sizes, Taken

Array = NDArray[np.float64]

STIFF = Sizes(eccentricity=0.0, compliance=(0.0, 0.0))
RIGID = GeometryModel.only("position", "rotation", "zero")


def exact(kind: str, markers: int = 3) -> tuple[Plant, Points]:
    """A plant without compliance, seen without noise."""
    plant = Plant.drawn(kind, 2, STIFF)
    taken = plant.taken(60, np.random.default_rng(0), markers=markers, noise=0.0, bits=0, outliers=0.0)
    return plant, taken.measurement


@pytest.mark.parametrize("kind", CLASSES)
def test_without_noise_the_tool_is_where_it_is(kind: str) -> None:
    plant, measured = exact(kind)
    found = solve(Problem.of(plant.robot, [replace(measured, noise=1e-6)], replace(RIGID, learned=False)), robust=False)
    problem = Problem.of(plant.robot, [measured], RIGID)
    q = plant.readings(20, np.random.default_rng(5))
    start = problem.measurements[0]
    assert isinstance(start, Points)
    asked = Points(q, TOOL, points=plant.seen(q, 3), base=start.base, known=start.known)
    there = Problem(problem.geometry, (asked,)).rows(found.x)[0]
    assert np.abs(there.residual * asked.std).max() < 1e-9


@pytest.mark.parametrize("kind", CLASSES)
def test_intervals_hold(kind: str) -> None:
    """A loose band over two robots; the study has fifty."""
    rows = [one_run(kind, robot, 0) for robot in (0, 1)]
    assert all(row["converged"] for row in rows)
    assert sum(row["missed"] for row in rows) == 0 and sum(row["wrongly"] for row in rows) <= 2
    for key, low in (("z", 0.88), ("z marker", 0.85)):
        z = np.concatenate([row[key] for row in rows])
        assert (np.abs(z) < 1.96).mean() > low
        assert 0.4 < np.sqrt(np.mean(z**2)) < 1.35
    for row in rows:
        assert row["found noise"] == pytest.approx(row["noise"], rel=0.25)


@pytest.mark.parametrize("kind", ["7R", "SCARA"])
def test_far_starts_are_no_obstacle(kind: str) -> None:
    row = far_run(kind, 3)
    assert row["converged"] and row["error"] < 3 * row["std"]


@pytest.mark.parametrize("poses", [True, False])
@pytest.mark.parametrize("kind", STANDARD)
def test_the_number_of_parameters_is_the_published_one(kind: str, poses: bool) -> None:
    expected, ours = rank_of(kind, poses)
    assert ours == expected


def test_base_parameters_say_which_unknowns_act_together() -> None:
    plant, measured = exact("6R, parallel axes")
    problem = Problem.of(plant.robot, [measured], RIGID)
    base = base_geometry(problem)
    J = np.vstack([r.slope.reshape(-1, len(problem.unknowns)) for r in problem.rows(np.zeros(len(problem.unknowns)))])
    width = len(problem.geometry.unknowns)
    own = np.linalg.qr(J[:, width:])[0]
    rest = J[:, :width] - own @ (own.T @ J[:, :width])
    # Errors with equal base parameters look the same.
    np.testing.assert_allclose(rest[:, list(base.kept)] @ base.weights, rest, rtol=0, atol=1e-6 * np.abs(rest).max())
    assert np.linalg.matrix_rank(rest, tol=1e-7 * np.linalg.norm(rest, 2)) == base.count
    # A shift along an axis that is parallel to its neighbour's acts as one of the neighbour.
    along = next(e for e in base.expressions if e.startswith("y of joint5"))
    assert all(f"y of joint{k}" in along for k in (2, 3, 4))


@cache
def with_outliers() -> tuple[Plant, Taken]:
    """Two postures in a hundred are wrong by centimetres."""
    plant = Plant.drawn("7R", 4)
    return plant, plant.taken(100, np.random.default_rng(3), markers=1, outliers=0.03)


def test_outliers_are_set_aside_and_named() -> None:
    plant, taken = with_outliers()
    found = calibrate_geometry(plant.robot, taken.measurement, held_out=False)
    assert len(taken.outliers) >= 2
    assert found.sensors[0].set_aside == tuple(taken.outliers)
    assert not found.heavy_tails
    assert found.sensors[0].noise == pytest.approx(1.0, rel=0.25)
    trusting = calibrate_geometry(plant.robot, taken.measurement, robust=False, held_out=False)
    assert trusting.sensors[0].set_aside == () and trusting.sensors[0].noise > 5


def solved(plant: Plant, measured: Points) -> Solution:
    return solve(Problem.of(plant.robot, [measured], GeometryModel()))


def test_many_outliers_are_heavy_tails() -> None:
    plant = Plant.drawn("7R", 4)
    rng = np.random.default_rng(2)
    clean = plant.taken(100, rng, markers=1, noise=0.0, outliers=0.0).measurement
    heavy = replace(clean, points=clean.points + 2e-4 * rng.standard_t(1.0, size=clean.points.shape))
    found = solved(plant, heavy)
    assert found.heavy and all((w > 0).all() for w in found.weights)
    normal = replace(clean, points=clean.points + 2e-4 * rng.normal(size=clean.points.shape))
    assert not solved(plant, normal).heavy


def test_scatter_of_the_robot_is_told_from_that_of_the_sensor() -> None:
    plant = Plant.drawn("7R", 4)
    rng = np.random.default_rng(3)
    seen = plant.taken(150, rng, markers=3, noise=1e-4, outliers=0.0).measurement
    moved = replace(seen, points=seen.points + 3e-4 * rng.normal(size=(150, 1, 3)))
    noise = solved(plant, moved).noise[0]
    assert noise.sensor * seen.noise == pytest.approx(1e-4, rel=0.15)
    assert noise.position == pytest.approx(3e-4, rel=0.2)
    assert solved(plant, seen).noise[0].position < 6e-5


def test_sizes_of_errors_are_learned() -> None:
    plant = Plant.drawn("7R", 5, Sizes(position=(5e-3, 5e-3), zero=(5e-2, 5e-2)))
    taken = plant.taken(100, np.random.default_rng(0), outliers=0.0)
    problem = Problem.of(plant.robot, [taken.measurement], GeometryModel())
    sizes = dict(zip([u.kind.value for u in problem.unknowns], solve(problem).prior_std, strict=True))
    assert 2e-3 < sizes["position"] < 8e-3 and sizes["eccentricity"] < 5e-4
    kept = Problem.of(plant.robot, [taken.measurement], GeometryModel(learned=False))
    assert set(solve(kept).prior_std[np.isfinite(solve(kept).prior_std)]) <= {u.std for u in kept.unknowns}


def test_errors_at_postures_left_out_are_those_of_new_postures() -> None:
    plant, taken = with_outliers()
    found = calibrate_geometry(plant.robot, taken.measurement)
    held = found.held_out
    assert held is not None and held.by == "parts" and len(set(held.part)) == 5
    assert sorted(held.number.tolist()) == list(range(100))
    good = ~np.isin(held.number, taken.outliers)
    after = float(np.sqrt(np.mean(held.after[good] ** 2)))
    # Noise of three coordinates and what is not known of the tool; the nominal robot is far worse.
    assert 0.8 * 2e-4 * 3**0.5 < after < 2.5 * 2e-4 * 3**0.5
    assert np.median(held.before) > 10 * after


def test_too_few_postures_are_refused() -> None:
    plant, measured = exact("7R", markers=1)
    with pytest.raises(TooFew):
        calibrate_geometry(plant.robot, measured.some(np.arange(3)))
