"""Stribeck friction as a drive term: its column, its sign, its storage, and robots with locked joints."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynid
from dynid.errors import ModelError
from dynid.feasibility import feasible_set
from dynid.parameters.base import base_parameters
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.robot.velocity_laws import Stribeck
from tests.support.synthetic import arm


def with_stribeck(joint: int, velocity: float, value: float = 0.5) -> dynid.Robot:
    robot = arm()
    return robot.with_terms(robot.custom_term("fs", joint, Stribeck(joint, velocity), value, unit="N m"))


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


def test_it_is_stored_without_the_robot() -> None:
    robot = with_stribeck(2, 0.123)
    stored = json.loads(json.dumps(robot_to_dict(robot)))
    assert robot_from_dict(stored).drives[-1].function == Stribeck(2, 0.123)
    for term in stored["drives"]:
        if term["symbol"] == "fs":
            term["function"]["law"] = "other"
    with pytest.raises(ModelError, match="unknown"):
        robot_from_dict(stored)


def test_a_locked_robot_keeps_the_law() -> None:
    locked = with_stribeck(2, 0.2).locked({"joint1": 0.3})
    assert [t.function for t in locked.drives if t.symbol == "fs"] == [Stribeck(1, 0.2)]
    assert "fs_joint2" not in with_stribeck(1, 0.2).locked({"joint2": 0.0}).parameter_names


@pytest.mark.parametrize("velocity", [1e-3, 0.2])
def test_slow_laws_are_base_parameters(velocity: float) -> None:
    """Random motion of a few rad/s would never show a law of 1 mrad/s."""
    assert "fs_joint2" in base_parameters(with_stribeck(1, velocity), channels="torque").names
