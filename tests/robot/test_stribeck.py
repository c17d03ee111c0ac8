"""Stribeck friction as a drive term: its column, its sign, its storage, and robots with locked joints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.dynamics import regressor_adjoint
from dynid.errors import ModelError
from dynid.feasibility import feasible_set
from dynid.parameters.base import base_parameters
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.errors import expect_error
from tests.support.synthetic import arm


def with_stribeck(joint: int, velocity: float, value: float = 0.5) -> dynid.Robot:
    robot = arm()
    return robot.with_terms(robot.joint_term(joint, "fs", value, velocity=velocity))


def test_torque_fades_with_velocity() -> None:
    robot, plain = with_stribeck(1, 0.2), arm()
    v = np.zeros((4, 3))
    v[:, 1] = 0.0, 0.01, -0.2, 2.0
    still = np.zeros((4, 3))
    more = dynid.inverse_dynamics(robot, still, v, still) - dynid.inverse_dynamics(plain, still, v, still)
    expected = 0.5 * np.array([0.0, np.exp(-0.0025), -np.exp(-1.0), 0.0])
    np.testing.assert_allclose(more[:, 1], expected, atol=1e-12)
    np.testing.assert_array_equal(more[:, [0, 2]], 0.0)


def test_coefficient_is_not_negative() -> None:
    robot = with_stribeck(1, 0.2, value=-0.5)
    assert any("fs_joint2" in text for text in feasible_set(robot).violations(robot.parameters))
    assert feasible_set(with_stribeck(1, 0.2)).violations(with_stribeck(1, 0.2).parameters) == []


@pytest.mark.parametrize("slope", [0.0, 8.0])
def test_gradient(slope: float) -> None:
    """Away from the jump, against differences."""
    robot = with_stribeck(1, 0.3)
    robot = robot.with_smooth_coulomb(slope) if slope else robot
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(0.1, 0.5, (3, 1, 3))
    weight = rng.normal(size=dynid.regressor(robot, q, v, a).shape)
    slopes = regressor_adjoint(robot, weight, q, v, a)[1]
    for j in range(3):
        step = np.zeros((1, 3))
        step[0, j] = 1e-6
        up, down = (float((weight * dynid.regressor(robot, q, v + s, a)).sum()) for s in (step, -step))
        assert slopes[0, j] == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_it_is_stored(tmp_path: Path) -> None:
    robot = with_stribeck(2, 0.123)
    stored = json.loads(json.dumps(robot_to_dict(robot)))
    assert {t.name: t.velocity for t in robot_from_dict(stored).drives}["fs_joint3"] == 0.123
    for name in ("drives.json", "drives.toml", "drives.yaml"):
        dynid.export.write_parameters(robot, tmp_path / name)
        read = dynid.export.load_parameters(tmp_path / name, arm())
        assert {t.name: (t.value, t.velocity) for t in read.drives}["fs_joint3"] == (0.5, 0.123)


def test_a_velocity_is_needed() -> None:
    with expect_error(ModelError, "velocity", code="invalid_value"):
        arm().joint_term(0, "fs", 0.5)
    with expect_error(ModelError, "velocity", code="invalid_value"):
        arm().joint_term(0, "fc", 0.5, velocity=0.1)


def test_a_locked_robot_keeps_the_law() -> None:
    locked = with_stribeck(2, 0.2).locked({"joint1": 0.3})
    assert [(t.owner, t.velocity) for t in locked.drives if t.symbol == "fs"] == [(1, 0.2)]
    assert "fs_joint2" not in with_stribeck(1, 0.2).locked({"joint2": 0.0}).parameter_names


@pytest.mark.parametrize("velocity", [1e-3, 0.2])
def test_slow_laws_are_base_parameters(velocity: float) -> None:
    """Random motion of a few rad/s would never show a law of 1 mrad/s."""
    assert "fs_joint2" in base_parameters(with_stribeck(1, velocity), channels="torque").names
    assert "fs_joint2" in base_parameters(with_stribeck(1, velocity), channels="torque", method="recursive").names
