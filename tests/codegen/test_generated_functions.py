"""Graphs of any robot give what the kernels give: trees, any axes, all drives, every kind of base."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.functions import FUNCTIONS, build_function
from dynid.codegen.graph import evaluate
from dynid.codegen.operations import count_operations
from tests.support.generated import difference, expected, states
from tests.support.random_robots import random_robot

# Hundreds of rounding errors on well-conditioned numbers stay below 1e-13; a solved mass matrix adds its condition.
TOLERANCE = {"forward_dynamics": 1e-10}


def result(robot: Robot, name: str, symbolic: bool, samples: int = 20) -> tuple[np.ndarray, np.ndarray]:
    at = states(robot, samples)
    function = build_function(name, robot, symbols=range(len(robot.layout)) if symbolic else None)
    values = evaluate(function.entries, at)
    ours = np.stack([np.broadcast_to(x, (samples,)) for x in values], axis=-1).reshape(samples, *function.shape)
    return ours, expected(robot, name, at)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1, "joints": 5, "drives": True},
        {"seed": 2, "joints": 6, "base": "floating", "rotors": True},
        {"seed": 3, "joints": 5, "base": "instrumented", "drives": True},
        {"seed": 4, "joints": 7, "mimics": 3},
        {"seed": 5, "joints": 7, "mimics": 2, "base": "floating"},
        {"seed": 6, "joints": 3, "kinds": "ppp", "base": "instrumented"},
        {"seed": 7, "joints": 1, "kinds": "r"},
    ],
    ids=lambda o: "-".join(f"{v}" for v in o.values()),
)
def test_random_robots(options: dict, symbolic: bool, name: str) -> None:
    """Frames, regrouping and sharing change the operations, never the result."""
    ours, theirs = result(random_robot(**options), name, symbolic)
    assert ours.shape == theirs.shape
    assert difference(ours, theirs) < TOLERANCE.get(name, 1e-13)


@pytest.mark.parametrize("name", ["inverse_dynamics", "drive_torque", "regressor", "forward_dynamics"])
def test_smooth_coulomb_friction(name: str) -> None:
    """A slope makes every Coulomb term a tanh, one-sided ones included."""
    robot = random_robot(11, 4, drives=True).with_smooth_coulomb(3.0)
    ours, theirs = result(robot, name, False)
    assert difference(ours, theirs) < TOLERANCE.get(name, 1e-13)


def test_at_rest_a_sharp_step_is_zero() -> None:
    """The value at zero speed is the one thing random motion does not see."""
    robot = random_robot(12, 3, drives=True)
    zero = np.zeros((1, 3))
    function = build_function("inverse_dynamics", robot)
    ours = np.array(evaluate(function.entries, {"q": zero, "v": zero, "a": zero})).T
    assert difference(ours, dynid.inverse_dynamics(robot, zero, zero, zero)) < 1e-13


def test_numbers_cost_less_than_symbols_and_base_less_than_standard() -> None:
    """Regrouped numbers take fewer operations than symbols, and base symbols fewer than all standard ones."""
    robot = dynid.load_robot("wam7")
    base = dynid.base_parameters(robot)
    counts = [
        count_operations(build_function("inverse_dynamics", robot, symbols=s).outputs).total
        for s in (None, base.kept, range(len(robot.layout)))
    ]
    assert counts == sorted(counts) and len(set(counts)) == 3
    assert counts[-1] < 493 + 626  # Sousa (2014), Table 7.1


def test_pivots_tell_an_impossible_mass_matrix() -> None:
    """The last thing forward dynamics gives is whether its mass matrix was positive definite."""
    robot = dynid.load_robot("twolink")
    negative = -robot.parameters
    q = np.zeros((1, 2))
    for values, positive in ((robot.parameters, True), (negative, False)):
        function = build_function("forward_dynamics", robot, values)
        pivots = evaluate(function.positive, {"q": q, "v": q, "tau": q})
        assert all(x > 0 for x in pivots) is positive
