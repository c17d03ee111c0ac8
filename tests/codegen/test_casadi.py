"""CasADi functions: our numbers, derivatives of them, and files that load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.functions import FUNCTIONS
from dynid.codegen.generate import casadi_functions, generate_code
from dynid.errors import DataError
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.random_robots import random_motion, random_robot

ca = pytest.importorskip("casadi")

ROBOTS = {
    "tx40": lambda: dynid.load_robot("tx40"),
    "drives": lambda: random_robot(5, 3, drives=True),
    "floating": lambda: random_robot(6, 4, base="floating", rotors=True),
}


@pytest.fixture(scope="module", params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


def called(function: Any, *given: np.ndarray) -> np.ndarray:
    return np.asarray(function(*given)[0] if function.n_out() > 1 else function(*given))


def test_every_function_gives_our_numbers(robot: Robot) -> None:
    """To 1e-12 of their size; the solve of forward dynamics to 1e-11."""
    functions = casadi_functions(robot, tuple(FUNCTIONS))
    q, v, a = random_motion(robot, 1, 1)
    motion = {"q": q[0], "v": v[0], "a": a[0], "tau": 5.0 * a[0]}
    for name, (arguments, result) in FUNCTIONS.items():
        function = functions[name]
        assert function.name_in() == list(arguments) and function.name_out()[0] == result
        if name == "drive_torque":
            continue
        given = [motion[x] for x in arguments]
        expect = getattr(dynid.dynamics, name)(robot, *given)
        ours = called(function, *given).reshape(expect.shape)
        assert difference(ours, expect) < (1e-11 if name == "forward_dynamics" else 1e-12), name


def test_derivatives_are_those_of_the_dynamics() -> None:
    """d tau/da is the mass matrix; the gradient over q agrees with central differences to 1e-6."""
    robot = random_robot(3, 4, rotors=True)
    torque = casadi_functions(robot, ("inverse_dynamics",))["inverse_dynamics"]
    q, v, a = (ca.SX.sym(x, 4) for x in "qva")
    slopes = ca.Function("slopes", [q, v, a], [ca.jacobian(torque(q, v, a), x) for x in (q, a)])
    given = [x[0] for x in random_motion(robot, 2, 1)]
    over_q, over_a = (np.asarray(x) for x in slopes(*given))
    assert difference(over_a, dynid.mass_matrix(robot, given[0])) < 1e-12
    h = 1e-6
    steps = given[0] + h * np.array([[1], [-1]])[:, :, None] * np.eye(4)
    sides = [dynid.inverse_dynamics(robot, s, *(np.tile(x, (4, 1)) for x in given[1:])) for s in steps]
    assert difference(over_q, ((sides[0] - sides[1]) / (2 * h)).T) < 1e-6


def test_parameters_may_be_an_argument() -> None:
    """The torque is then linear in them, with the regressor as its slope."""
    robot = dynid.load_robot("twolink")
    for kind, base in (("symbolic", None), ("symbolic-base", dynid.base_parameters(robot))):
        torque = casadi_functions(robot, ("inverse_dynamics",), parameters=kind)["inverse_dynamics"]
        assert torque.name_in()[-1] == "parms"
        parms = ca.SX.sym("parms", torque.size1_in(3))
        given = [x[0] for x in random_motion(robot, 2, 1)]
        slope = np.asarray(ca.DM(ca.jacobian(torque(*given, parms), parms)))
        expect = dynid.regressor(robot, *given) if base is None else base.regressor(*given)
        assert difference(slope, expect) < 1e-12


def test_saved_files_load_and_pivots_tell_of_impossible_masses(tmp_path: Path) -> None:
    """Forward dynamics say through their second output whether the result means anything."""
    robot = dynid.load_robot("twolink")
    paths = generate_code(robot, ("mass_matrix", "forward_dynamics"), language="casadi").write(tmp_path)
    assert [p.name for p in paths] == ["twolink_mass_matrix.casadi", "twolink_forward_dynamics.casadi"]
    mass, forward = (ca.Function.load(str(p)) for p in paths)
    q = np.array([0.3, -0.4])
    assert difference(np.asarray(mass(q)), dynid.mass_matrix(robot, q)) < 1e-12
    assert np.all(np.asarray(forward(q, q, q)[1]) > 0)
    bad = robot.with_parameters(-robot.parameters)
    with expect_error(DataError, "allow_infeasible", code="untrusted"):
        casadi_functions(bad)
    turned = casadi_functions(bad, allow_infeasible=True)["forward_dynamics"]
    assert np.any(np.asarray(turned(q, q, q)[1]) < 0)


def test_any_name_of_a_robot_will_do() -> None:
    """CasADi itself refuses two underscores in a row."""
    from dataclasses import replace

    odd = replace(dynid.load_robot("twolink"), name="_arm  2")
    assert casadi_functions(odd, ("mass_matrix",))["mass_matrix"].name() == "arm_2_mass_matrix"
