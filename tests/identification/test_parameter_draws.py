"""Draws of parameters: their statistics, and the robots and laws that have them."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import Duplicate, InvalidShape, InvalidValue, Mismatch, NotFinite
from dynid.identification import ParameterDraws
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error

NAMES = ("Ia_joint1", "fc of all joints", "delay", "kp_joint2")


def drawn(count: int = 4000) -> ParameterDraws:
    """Armature and friction that are correlated by -0.8, a delay for all joints, and a gain that does not vary."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, count))
    friction = -0.8 * a + 0.6 * b
    values = np.column_stack([0.1 + 0.01 * a, 0.5 + 0.05 * friction, 0.005 + 0.0005 * c, np.full(count, 30.0)])
    units = ("kg m2", "N m", "s", "N m/rad")
    return ParameterDraws(NAMES, ("joint1", "", "", "joint2"), ("Ia", "fc", "delay", "kp"), units, values)


def test_statistics_are_those_of_the_distribution() -> None:
    draws = drawn()
    assert draws.count == 4000
    assert draws.mean == pytest.approx([0.1, 0.5, 0.005, 30.0], rel=0.01)
    assert draws.std == pytest.approx([0.01, 0.05, 0.0005, 0.0], rel=0.05)
    low, high = draws.quantiles(0.9)
    assert (high - low)[:3] == pytest.approx(2 * 1.645 * np.array([0.01, 0.05, 0.0005]), rel=0.05)
    assert draws.correlation[0, 1] == pytest.approx(-0.8, abs=0.03) and abs(draws.correlation[0, 2]) < 0.05
    assert draws.correlation[3].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert draws.correlation[:3, :3] == pytest.approx(np.corrcoef(draws.values[:, :3].T))


def test_models_have_the_values_of_their_draw() -> None:
    robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    law = ActuatorLaw(robot.coordinates, kp=20.0, kd=0.5)
    draws = drawn(5)
    for row, (one, its_law) in zip(draws.values, draws.models(robot, law), strict=True):
        value = dict(zip(one.parameter_names, one.parameters, strict=True))
        assert value["Ia_joint1"] == row[0] and value["fc_joint1"] == value["fc_joint2"] == row[1]
        assert its_law.delay.tolist() == [row[2]] * 2 and its_law.kp.tolist() == [20.0, 30.0]
        same = [n for n in robot.parameter_names if n not in ("Ia_joint1", "fc_joint1", "fc_joint2")]
        before = dict(zip(robot.parameter_names, robot.parameters, strict=True))
        assert all(value[n] == before[n] for n in same)


def test_inertial_parameters_are_found_by_name() -> None:
    robot = dynid.load_robot("twolink")
    draws = ParameterDraws(("m_link2",), ("",), ("m",), ("kg",), np.array([[1.5], [1.6]]))
    masses = [one.links[2].inertia[0] for one, _ in draws.models(robot, ActuatorLaw(robot.coordinates))]
    assert masses == [1.5, 1.6]


def test_bad_input() -> None:
    robot = dynid.load_robot("twolink")
    one = (("a",), ("",), ("a",), ("1",))
    with expect_error(InvalidShape, "draws"):
        ParameterDraws(*one, np.array([[1.0]]))
    with expect_error(NotFinite, "draws"):
        ParameterDraws(*one, np.array([[1.0], [np.nan]]))
    with expect_error(Duplicate, "draws"):
        ParameterDraws(("a", "a"), ("", ""), ("a", "a"), ("", ""), np.ones((2, 2)))
    with expect_error(InvalidShape, "draws"):
        ParameterDraws(("a",), (), ("a",), ("",), np.ones((2, 1)))
    draws = ParameterDraws(*one, np.ones((2, 1)))
    with expect_error(Mismatch):
        next(draws.models(robot, ActuatorLaw(robot.coordinates)))
    with expect_error(InvalidValue, "level"):
        draws.quantiles(95)
