"""Draws of standard parameters from every estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidValue
from dynid.feasibility.fit import fit
from dynid.feasibility.pull import pulled_inside
from dynid.feasibility.sets import feasible_set
from dynid.identification import ParameterDraws
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, record

METHODS = ("wls", "feasible", "auto")


@pytest.fixture(scope="module")
def estimates() -> dict[str, Estimate]:
    """The same recording by methods without and with a prior."""
    robot = arm()
    prior = robot.with_parameters(robot.parameters * 1.2)
    recording = record(robot, (0, 1), noise=0.05)
    return {method: identify(prior, recording, method, signals=EXACT) for method in METHODS}


def slack(robot: dynid.Robot, draws: np.ndarray) -> float:
    return min(feasible_set(robot).slack(row) for row in draws)


@pytest.mark.parametrize("method", METHODS)
def test_base_parameters_have_the_distribution_of_the_estimate(method: str, estimates: dict[str, Estimate]) -> None:
    """2000 draws: the standard deviation of a standard deviation is 1.6 %, that of a mean 2.2 % of it."""
    estimate = estimates[method]
    away = (estimate.base.values(estimate.draws(2000, feasible=False)) - estimate.beta) / estimate.std
    start = (estimate.base.values(estimate.parameters) - estimate.beta) / estimate.std
    np.testing.assert_allclose(away.mean(axis=0), start, atol=0.1)
    np.testing.assert_allclose(away.std(axis=0), 1.0, atol=0.08)
    size = np.outer(estimate.std, estimate.std)
    np.testing.assert_allclose(np.cov(away.T), estimate.covariance / size, atol=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_every_draw_is_physically_consistent_and_keeps_what_is_known(
    method: str, estimates: dict[str, Estimate]
) -> None:
    """Base parameters within a few percent are hardly moved by what makes a draw consistent."""
    estimate = estimates[method]
    free, draws = estimate.draws(500, feasible=False), estimate.draws(500)
    assert slack(estimate.robot, free) < 0 <= slack(estimate.robot, draws)
    known = estimate.std < 0.05 * np.abs(estimate.beta)
    assert np.count_nonzero(known) >= 10
    moved = (estimate.base.values(draws) - estimate.base.values(free))[:, known] / estimate.std[known]
    assert np.abs(moved.mean(axis=0)).max() < 0.3
    ratio = estimate.base.values(draws).std(axis=0) / estimate.base.values(free).std(axis=0)
    np.testing.assert_allclose(ratio[known], 1.0, atol=0.1)


def test_the_same_seed_gives_the_same_draws(estimates: dict[str, Estimate]) -> None:
    estimate = estimates["auto"]
    first, again, other = estimate.draws(5, seed=3), estimate.draws(5, seed=3), estimate.draws(5, seed=4)
    assert np.array_equal(first, again) and not np.any(np.all(first == other, axis=1))
    with expect_error(InvalidValue, "count"):
        estimate.draws(0)


def test_standard_parameters_of_a_method_with_a_prior_have_its_covariance(estimates: dict[str, Estimate]) -> None:
    estimate = estimates["auto"]
    assert estimate.standard_covariance is not None
    std = np.sqrt(np.diag(estimate.standard_covariance))
    np.testing.assert_allclose(estimate.draws(2000, feasible=False).std(axis=0)[std > 0] / std[std > 0], 1.0, atol=0.1)


def test_joints_at_rest_keep_their_value(estimates: dict[str, Estimate]) -> None:
    """What the recording does not show at all has no standard deviation, so the draws do not touch it."""
    estimate = estimates["wls"]
    still = estimate.base.names.index("fv_joint3")
    open_ = estimate.covariance.copy()
    open_[still, still] = np.inf
    draws = replace(estimate, covariance=open_).draws(50)
    assert np.isfinite(draws).all()
    values = estimate.base.values(draws)
    np.testing.assert_allclose(values[:, still], estimate.beta[still], rtol=1e-6)
    assert np.all(np.delete(values, still, axis=1).std(axis=0) > 0)


def test_points_move_to_the_nearest_feasible_ones() -> None:
    """Against a cone program per point; points inside stay."""
    robot = arm()
    rng = np.random.default_rng(0)
    root = np.diag(0.5 * np.abs(robot.parameters) + 0.01) @ (
        np.eye(len(robot.layout)) + 0.1 * rng.normal(size=(42, 42))
    )
    points = robot.parameters + rng.normal(size=(5, 42)) @ root.T
    feasible = feasible_set(robot)
    pulled = pulled_inside(feasible, np.vstack([points, robot.parameters]), root)
    assert np.array_equal(pulled[-1], robot.parameters)
    rows = np.linalg.inv(root)
    for point, found in zip(points, pulled, strict=False):
        nearest = fit(feasible, rows, rows @ point, robot.parameters, weight=0.0).parameters
        # The tangents end slightly inside, which takes a little more.
        assert np.linalg.norm(rows @ (found - point)) < 1.02 * np.linalg.norm(rows @ (nearest - point))
        assert feasible.slack(found) >= 0


def test_draws_for_domain_randomization(estimates: dict[str, Estimate]) -> None:
    """All standard parameters under their names; every model has those of its draw."""
    estimate = estimates["auto"]
    robot = estimate.robot
    draws = ParameterDraws.of(estimate, 4, seed=2)
    assert draws.names == robot.parameter_names and np.array_equal(draws.values, estimate.draws(4, seed=2))
    assert draws.joints[draws.names.index("fc_joint2")] == "joint2" and draws.joints[0] == ""
    for row, (one, _) in zip(draws.values, draws.models(robot, ActuatorLaw(robot.coordinates)), strict=True):
        np.testing.assert_allclose(one.parameters, row, rtol=1e-12)
