"""Every robot gets a physically consistent prior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.feasibility import consistent_prior, feasible_set
from dynid.feasibility.fit import Fit, fit, fit_near_prior
from dynid.feasibility.metrics import distance
from dynid.robot.inertia import inertia_to_com


def test_a_consistent_robot_keeps_its_bodies() -> None:
    robot = dynid.load_robot("tx40")
    prior = consistent_prior(robot)
    np.testing.assert_array_equal(prior.parameters, robot.parameters)
    assert prior.assumed == prior.repaired == () and not prior.complete and prior.notes() == []


def test_a_table_of_lengths_becomes_rods() -> None:
    """Masses lie between the joints, for both conventions of the table."""
    modified = dynid.Robot.from_dh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0)], "modified", name="arm")
    standard = dynid.Robot.from_dh([(0.0, 0.5, 0.0, 0.0), (0.0, 0.3, 0.0, 0.0)], "standard", name="arm")
    for robot, middle in ((modified, 0.25), (standard, -0.25)):
        prior = consistent_prior(robot)
        assert prior.complete and prior.assumed == ("link1", "link2")
        assert feasible_set(robot).violations(prior.parameters) == []
        mass, center, _ = inertia_to_com(prior.parameters[:10])
        assert mass > 0 and abs(center[0] - middle) < 1e-12
    doubled = consistent_prior(modified).scaled(modified, 2.0)
    np.testing.assert_allclose(doubled.parameters, 2 * consistent_prior(modified).parameters)


def test_massless_and_impossible_bodies_are_mended() -> None:
    """A link without mass gets a light rod; a mass with too small an inertia keeps its mass and centre of mass."""
    robot = dynid.load_robot("tx40")
    links = list(robot.links)
    links[2] = replace(links[2], inertia=np.zeros(10))
    bad = links[4].inertia.copy()
    bad[4:] = 0.0
    links[4] = replace(links[4], inertia=bad)
    broken = replace(robot, links=tuple(links))
    prior = consistent_prior(broken)
    assert prior.assumed == (links[2].name,) and prior.repaired == (links[4].name,) and len(prior.notes()) == 2
    assert feasible_set(broken).violations(prior.parameters) == []
    at = broken.parameter_names.index(f"m_{links[4].name}")
    np.testing.assert_allclose(prior.parameters[at : at + 4], bad[:4], atol=1e-12)
    masses = [link.inertia[0] for link in robot.links[1:]]
    assert 0 < prior.parameters[broken.parameter_names.index(f"m_{links[2].name}")] < max(masses)


def test_the_fit_near_the_prior_uses_the_allowed_excess() -> None:
    """Its cost is between the best one and the best plus the excess, and nearer to the prior than the best."""
    robot = dynid.load_robot("twolink")
    base = dynid.base_parameters(robot)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(200, base.count)) @ base.matrix
    allowed = feasible_set(robot)
    prior = 1.5 * consistent_prior(robot).parameters
    target = W @ robot.parameters + rng.normal(size=200)
    best = fit(allowed, W, target, prior, "entropic", 1e-6)
    near = fit_near_prior(allowed, W, target, prior, 2.0, "entropic")
    # The infimum itself is known to a hundredth of the excess or so.
    assert best.cost < near.cost <= best.cost + 2.2
    assert near.cost > best.cost + 0.2
    near_by, far_off = (distance(robot, x.parameters, prior, "entropic", allowed.scale) for x in (near, best))
    assert near_by < far_off


def test_a_solver_that_fails_with_a_large_weight_does_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prior that is right allows any weight, also those with which a solver makes no progress."""
    robot = dynid.load_robot("twolink")
    base = dynid.base_parameters(robot)
    rng = np.random.default_rng(0)
    W = 1e-3 * rng.normal(size=(200, base.count)) @ base.matrix
    prior = consistent_prior(robot).parameters
    tried = []

    def failing(*given: Any) -> Fit:
        tried.append(given[5])
        if given[5] > 10.0:
            raise dynid.DynidError("no progress")
        return fit(*given)

    monkeypatch.setattr("dynid.feasibility.fit.fit", failing)
    near = fit_near_prior(feasible_set(robot), W, W @ robot.parameters, prior, 20.0, "entropic")
    assert max(tried) > 10.0 and 0.1 < near.weight <= 10.0
    np.testing.assert_allclose(near.parameters, prior, rtol=0.05, atol=1e-3)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("weight", [1e5, 1e6, 1e7])
def test_a_prior_that_outweighs_the_data_is_solved(seed: int, weight: float) -> None:
    """Data with much signal and a prior that counts more: the costs of both are scaled for the solver."""
    robot = dynid.load_robot("twolink")
    base, prior = dynid.base_parameters(robot), consistent_prior(robot).parameters
    rng = np.random.default_rng(seed)
    W = 30.0 * rng.normal(size=(base.count, base.count)) @ base.matrix
    target = W @ (prior * (1 + 0.02 * rng.normal(size=len(prior))))
    found = fit(feasible_set(robot), W, target, prior, "entropic", weight)
    assert found.cost <= 0.5 * np.sum((W @ prior - target) ** 2)
    np.testing.assert_allclose(found.parameters, prior, rtol=0.05, atol=1e-3)
