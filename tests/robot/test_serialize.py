"""Robots as plain data: every field of every robot comes back to the bit."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ModelError
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot


def assert_same(one: Any, two: Any, where: str) -> None:
    if isinstance(one, np.ndarray):
        assert np.array_equal(one, two) and not two.flags.writeable, where
    elif is_dataclass(one):
        assert type(one) is type(two), where
        for x in fields(one):
            assert_same(getattr(one, x.name), getattr(two, x.name), f"{where}.{x.name}")
    elif isinstance(one, tuple):
        assert isinstance(two, tuple) and len(one) == len(two), where
        for i, (a, b) in enumerate(zip(one, two, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    else:
        assert one == two and type(one) is type(two), where


def again(robot: Robot) -> Robot:
    return robot_from_dict(json.loads(json.dumps(robot_to_dict(robot), allow_nan=False)))


@pytest.mark.parametrize("name", dynid.builtin_robots())
def test_every_builtin_robot_survives(name: str) -> None:
    """With limits, frames, drives, transmissions and where it came from; through JSON."""
    robot = dynid.load_robot(name)
    assert_same(robot, again(robot), name)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("base", ["fixed", "floating", "instrumented"])
def test_random_robots_survive(seed: int, base: Any) -> None:
    """Trees of revolute and prismatic joints about any axis."""
    robot = random_robot(seed, 5, base=base, mimics=1, drives=True, rotors=True)
    assert_same(robot, again(robot), robot.name)


def test_every_kind_of_part_survives() -> None:
    """Mimic joints, smooth friction, springs, coupled motors, payloads, gravity and limits."""
    robot = dynid.load_robot("tx40").with_smooth_coulomb(50.0).with_gravity([0.0, 9.81, 0.0])
    robot = robot.with_terms(robot.joint_term(1, "k", 3.0, rest=0.2))
    robot = robot.with_limits({"joint1": {"position": (-1.0, 2.0), "velocity": 3.0, "effort": 4.0}})
    assert robot.transmission is not None and any(t.motor for t in robot.drives) and any(t.slope for t in robot.drives)
    assert_same(robot, again(robot), "tx40")


def test_fields_of_a_robot_are_all_stored() -> None:
    """A new field of Robot must be stored too."""
    assert set(robot_to_dict(dynid.load_robot("twolink"))) == {x.name for x in fields(Robot)}


def test_functions_are_asked_for() -> None:
    """A custom term comes back with the function that is given, and not without one."""
    robot = dynid.load_robot("twolink")

    def column(q: Any, v: Any, a: Any) -> Any:
        return np.sin(q)

    data = robot_to_dict(robot.with_terms(robot.custom_term("sine", 0, column, 0.3)))
    with expect_error(ModelError, code="unsupported"):
        robot_from_dict(data)
    assert any(t.function is column for t in robot_from_dict(data, {"sine_joint1": column}).drives)


def test_damaged_data_are_refused() -> None:
    data = robot_to_dict(dynid.load_robot("twolink"))
    del data["joints"]
    with expect_error(ModelError, code="file_damaged"):
        robot_from_dict(data)
