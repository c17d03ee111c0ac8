"""Fits over log-Cholesky coordinates: exact derivatives, the optimum of the cone program, and an honest status."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid
from dynid.errors import Infeasible
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.fit import fit
from dynid.feasibility.log_cholesky import fit_log_cholesky, log_cholesky_jacobian, refine_parameters
from dynid.feasibility.metrics import METRICS, Metric, distance, local_rows, signed_columns
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import inertia_from_log_cholesky, inertia_to_log_cholesky, inertia_violations
from tests.support.errors import expect_error
from tests.support.random_robots import random_inertia, random_motion, random_robot

Array = NDArray[np.float64]

_STRICT = [Inertia(margin=0.0), Signs()]


def _driven(seed: int, joints: int = 3) -> dynid.Robot:
    """A robot with friction, offsets and rotors of order 0.3, those without a sign negative."""
    robot = random_robot(seed, joints, mounts=False).with_drives("viscous+coulomb+offset", rotor_inertia=True)
    rng = np.random.default_rng(seed)
    values = [
        x if p.inertial else rng.uniform(0.2, 0.4) * (-1.0 if p.symbol == "off" else 1.0)
        for p, x in zip(robot.layout, robot.parameters, strict=True)
    ]
    return robot.with_parameters(values)


def _data(robot: dynid.Robot, seed: int, noise: float = 0.5) -> tuple[Array, Array]:
    """Whitened factor R (p + 1, p) and target z of 200 random samples."""
    W = dynid.regressor(robot, *random_motion(robot, seed, 200)).reshape(-1, len(robot.layout))
    torque = W @ robot.parameters + noise * np.random.default_rng(seed).normal(size=len(W))
    factor = np.linalg.qr(np.column_stack([W, torque]) / (noise or 1.0), mode="r")
    return factor[:, :-1], factor[:, -1]


def _heavier(robot: dynid.Robot, seed: int) -> Array:
    """A prior with every link's mass off by up to 40 %."""
    prior = robot.parameters.copy()
    rng = np.random.default_rng(seed)
    for i, p in enumerate(robot.layout):
        if p.symbol == "m":
            prior[i : i + 10] *= rng.uniform(0.7, 1.4)
    return prior


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**16))
def test_jacobian_matches_differences(seed: int) -> None:
    theta = inertia_to_log_cholesky(random_inertia(np.random.default_rng(seed)))
    step = 1e-6
    steps = step * np.eye(10)
    central = (inertia_from_log_cholesky(theta + steps) - inertia_from_log_cholesky(theta - steps)).T / (2 * step)
    # Central differences with this step leave about 1e-10 of numbers of order one.
    np.testing.assert_allclose(log_cholesky_jacobian(theta), central, atol=1e-8)


@pytest.mark.parametrize("metric", METRICS)
def test_local_rows_are_gradient_and_hessian_of_the_distance(metric: Metric) -> None:
    robot = _driven(4, 2)
    prior, scale = _heavier(robot, 1), feasible_set(robot).scale
    pi = robot.parameters
    rows, rest = local_rows(robot, pi, prior, metric, scale)
    for direction in scale * np.random.default_rng(0).normal(size=(10, len(pi))):
        # With this step differences of numbers of order 10 leave 1e-10 and 1e-5; their truncation is some 1e-6 of them.
        step = 2e-5
        back, here, forth = (distance(robot, pi + s * direction, prior, metric, scale) for s in (-step, 0.0, step))
        slope = rows @ direction
        assert (forth - back) / (2 * step) == pytest.approx(slope @ rest, rel=1e-5, abs=1e-6)
        assert (forth - 2 * here + back) / step**2 == pytest.approx(slope @ slope, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", [4, 5, 6, 10])
def test_it_agrees_with_the_cone_program_inside(metric: Metric, seed: int) -> None:
    robot = _driven(seed)
    R, z = _data(robot, seed)
    prior = _heavier(robot, seed)
    weight = 1.0
    possible = feasible_set(robot)
    expected = fit(possible, R, z, prior, metric, weight)
    assert not expected.active, "the case must have its optimum inside"
    found = fit_log_cholesky(robot, R, z, prior, weight, metric=metric)
    assert found.status == "converged"
    K = dynid.base_parameters(robot).matrix
    objective = expected.cost + weight * distance(robot, expected.parameters, prior, metric, possible.scale)
    assert found.objective == pytest.approx(objective, rel=1e-8)
    np.testing.assert_allclose(K @ found.parameters, K @ expected.parameters, atol=1e-6 * np.abs(K @ prior).max())
    assert not feasible_set(robot, _STRICT).violations(found.parameters, 0.0)


def test_the_start_does_not_matter() -> None:
    robot = _driven(3)
    R, z = _data(robot, 3)
    start = robot.parameters.copy()
    for i, p in enumerate(robot.layout):
        if p.symbol == "m":
            start[i : i + 10] = random_inertia(np.random.default_rng(i))
    ends = [fit_log_cholesky(robot, R, z, robot.parameters, 1.0, s, "entropic") for s in (None, start)]
    assert all(end.converged for end in ends)
    np.testing.assert_allclose(ends[0].parameters, ends[1].parameters, rtol=1e-7, atol=1e-9)


def test_damped_steps_find_the_way_where_the_full_one_leaves() -> None:
    """The square root of a mass 100 times too large asks for a negative mass: the search bends, and arrives."""
    robot = random_robot(3, 1)
    truth = robot.parameters
    start = 100.0 * truth

    def residual(pi: Array) -> tuple[Array, Array]:
        root, slope = np.sqrt(pi[0] / truth[0]), np.eye(10)
        slope[0, 0] = 0.5 / (root * truth[0])
        return np.concatenate([[root - 1.0], pi[1:] - truth[1:]]), slope

    first = start[0] - residual(start)[0][0] / residual(start)[1][0, 0]
    assert first < 0
    found = refine_parameters(robot, residual, start)
    assert found.converged
    np.testing.assert_allclose(found.parameters, truth, rtol=1e-6, atol=1e-8)


def test_forward_dynamics_are_refined() -> None:
    """A problem that is not linear in pi: accelerations predicted from torques, da/dpi = -M^-1 Y(q, v, a)."""
    robot = _driven(8, 2)
    q, v, a = random_motion(robot, 8, 60)
    torque = dynid.inverse_dynamics(robot, q, v, a)

    def residual(pi: Array) -> tuple[Array, Array]:
        guess = robot.with_parameters(pi)
        predicted = dynid.forward_dynamics(guess, q, v, torque)
        slope = -np.linalg.solve(dynid.mass_matrix(guess, q), dynid.regressor(robot, q, v, predicted))
        return (predicted - a).ravel(), slope.reshape(-1, len(pi))

    found = refine_parameters(robot, residual, _heavier(robot, 2))
    assert found.converged
    K = dynid.base_parameters(robot).matrix
    np.testing.assert_allclose(K @ found.parameters, K @ robot.parameters, atol=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "pullback"])
def test_an_optimum_on_the_boundary_is_not_called_converged(metric: Metric) -> None:
    """The target has a negative principal moment: the nearest consistent body is degenerate."""
    robot = random_robot(1, 1, kinds="r")
    prior = robot.parameters
    target = prior.copy()
    target[4:10] = -0.3 * target[4:10]
    assert inertia_violations(target)
    found = fit_log_cholesky(robot, np.eye(10), target, prior, 1e-6, metric=metric)
    assert found.status == "stalled at the boundary"
    assert found.boundary == ("l1: pseudo-inertia positive definite",)
    assert found.gap > 0
    assert not inertia_violations(found.parameters)
    best = fit(feasible_set(robot, _STRICT), np.eye(10), target, prior, metric, 1e-6).solution.objective
    # What keeps it off the boundary ends at 1e-12 of the start's objective; the solver of cones stops at 1e-9.
    assert found.objective == pytest.approx(best, rel=1e-6)


def test_friction_that_wants_to_be_negative_stalls_there() -> None:
    robot = _driven(5, 1)
    names = robot.parameter_names
    fv = names.index(next(n for n in names if n.startswith("fv")))
    target = robot.parameters.copy()
    target[fv] = -0.2
    found = fit_log_cholesky(robot, np.eye(len(target)), target, robot.parameters, 1e-6)
    assert found.status == "stalled at the boundary"
    assert found.boundary == (f"{names[fv]} not negative",)
    assert 0 < found.parameters[fv] < 1e-4


def test_too_few_iterations_are_said() -> None:
    robot = _driven(3)
    R, z = _data(robot, 3)
    found = fit_log_cholesky(robot, R, z, _heavier(robot, 3), 1.0, metric="entropic", max_iterations=1)
    assert found.status == "stopped at the iteration limit" and not found.converged


def test_coupled_rotors_stay_positive_definite() -> None:
    """A cross-only rotor has no sign: together with the joints' own it must stay positive definite."""
    robot = random_robot(2, 2, drives=True)
    cross = [n for n, t in zip(robot.parameter_names, robot.layout, strict=True) if not t.inertial]
    assert set(signed_columns(robot)) < {robot.parameter_names.index(n) for n in cross}
    possible = feasible_set(robot, _STRICT)
    target = robot.parameters.copy()
    for term in robot.drives:
        if term.cross_only:
            target[robot.parameter_names.index(term.name)] = -100.0
    found = fit_log_cholesky(robot, np.eye(len(target)), target, robot.parameters, 0.0)
    assert not possible.violations(found.parameters, 0.0)


def test_a_start_outside_is_refused() -> None:
    robot = random_robot(1, 2)
    start = robot.parameters.copy()
    start[10] = -1.0
    with expect_error(Infeasible, "start"):
        fit_log_cholesky(robot, np.eye(20), start, robot.parameters, 1.0, start)


def test_friction_of_zero_may_be_a_start() -> None:
    robot = _driven(3)
    R, z = _data(robot, 3)
    start = np.array([x if p.inertial else 0.0 for p, x in zip(robot.layout, robot.parameters, strict=True)])
    found = fit_log_cholesky(robot, R, z, robot.parameters, 1.0, start, "pullback")
    assert found.converged


def test_the_divergence_of_an_impossible_body_is_infinite() -> None:
    robot = random_robot(1, 1)
    pi = -robot.parameters
    assert distance(robot, pi, robot.parameters, "entropic", np.ones(10)) == np.inf
