"""Two estimates compared: the level holds under the null, and a payload is told and measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.errors import Mismatch
from dynid.fleet import compare_estimates
from tests.support.errors import expect_error


@pytest.fixture(scope="module")
def estimate() -> dynid.Estimate:
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    return dynid.identify(robot, synthetic_recording(robot, 0, 10.0), "wls", noise_model="white")


def test_p_values_are_uniform_if_nothing_changed(estimate: dynid.Estimate) -> None:
    random = np.random.default_rng(0)
    root = np.linalg.cholesky(estimate.covariance)
    pairs = [
        [replace(estimate, beta=estimate.beta + root @ random.normal(size=len(root))) for _ in "ab"] for _ in range(200)
    ]
    found = [compare_estimates(a, b).p_value for a, b in pairs]
    assert scipy.stats.kstest(found, "uniform").pvalue > 0.01


def test_hotelling_is_used_where_it_exists(estimate: dynid.Estimate) -> None:
    moved = replace(estimate, beta=estimate.beta + 0.5 * estimate.std)
    few = [replace(e, freedom=30.0) for e in (estimate, moved)]
    plain, small = compare_estimates(estimate, moved), compare_estimates(*few)
    assert small.statistic == pytest.approx(plain.statistic) and small.p_value > plain.p_value
    p, n = small.freedom, 30.0
    expected = scipy.stats.f.sf(small.statistic * (n - p + 1) / (p * n), p, n - p + 1)
    assert small.p_value == pytest.approx(expected) and small.residual_freedom == 30.0
    assert np.isinf(compare_estimates(*(replace(e, freedom=5.0) for e in few)).residual_freedom)


def test_a_payload_and_what_it_does_to_torques(estimate: dynid.Estimate) -> None:
    robot, base = estimate.robot, estimate.base
    heavy = robot.parameters.copy()
    for name, value in (("m_link2", 1.0), ("mx_link2", 0.3), ("Izz_link2", 0.09)):
        heavy[robot.parameter_names.index(name)] += value
    moved = replace(estimate, beta=estimate.beta + base.values(heavy) - base.values())
    t = np.linspace(0, 5, 50)[:, None] + np.arange(2)
    found = compare_estimates(estimate, moved, motion=(np.sin(t), np.cos(t), -np.sin(t)))
    assert found.changed and found.payload is not None and found.payload_p < 1e-6 and found.other_p > 0.9
    assert found.torque_change is not None and np.all(found.torque_change > 0.1)
    assert "payload on link2" in found.summary() and found.to_dict()["changed"]


def test_estimates_of_other_robots_are_refused(estimate: dynid.Estimate) -> None:
    other = dynid.load_robot("twolink", friction="viscous")
    with expect_error(Mismatch):
        compare_estimates(estimate, dynid.identify(other, synthetic_recording(other, 0, 10.0), "wls"))
