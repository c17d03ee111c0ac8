"""The NumPy file of robots with closed loops gives the Python result on random reachable postures."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import dynid
from dynid import Robot
from tests.support.generated import difference, expected, states
from tests.support.generated_linkages import MAKERS, WITHIN, rod
from tests.support.linkages import parallelogram


def module(robot: Robot, functions: object = "all", parameters: str = "standard") -> SimpleNamespace:
    code = dynid.generate_code(
        robot, functions, language="python", parameters=parameters, name="linkage", allow_infeasible=True
    )  # type: ignore[arg-type]
    names: dict[str, object] = {}
    exec(code.files["linkage.py"], names)
    return SimpleNamespace(**names, functions=code.program.functions)


@pytest.mark.parametrize("name", ["fourbar", "palletizer", *MAKERS])
def test_functions(name: str) -> None:
    robot = MAKERS[name]() if name in MAKERS else dynid.load_robot(name)
    check(robot, "standard")


def test_parameters_as_an_argument() -> None:
    check(dynid.load_robot("fourbar"), "symbolic")


@pytest.mark.slow
def test_leg_of_twelve_joints() -> None:
    check(dynid.load_robot("leg12"), "standard")


def check(robot: Robot, parameters: str) -> None:
    """Each sample by itself: a spatial loop may reach another branch on another path."""
    at, code = states(robot, 50), module(robot, parameters=parameters)
    for function in code.functions:
        ours = getattr(code, function.name)(*(at[x.name] for x in function.arguments))
        alone = ({k: x if k == "parms" else x[i : i + 1] for k, x in at.items()} for i in range(50))
        theirs = np.concatenate([expected(robot, function.name, x) for x in alone])
        assert ours.shape == theirs.shape
        assert difference(ours, theirs) < WITHIN, function.name


def test_motion_of_all_joints_from_sample_to_sample() -> None:
    """With the last posture given, the path is that of dynid. It ends on another branch than a direct one here."""
    robot = dynid.load_robot("leg12")
    code, at = module(robot, ("gravity_torque",)), states(robot, 50)
    motion = [at[x][36:40] for x in "qva"]
    theirs, posture = dynid.dynamics.assemble(robot, *motion), np.array(robot.assembled)
    for k in range(4):
        sample = [x[k] for x in motion]
        direct = code.assemble(*sample)[0]
        posture, v, a = code.assemble(*sample, posture)
        for ours, other in ((posture, theirs.q), (v, theirs.v), (a, theirs.a)):
            assert difference(ours, other[k]) < WITHIN
    assert difference(direct, posture) > 0.01


def test_shapes_and_posture() -> None:
    """One sample, samples on two axes, and a posture other than the assembled one."""
    robot = dynid.load_robot("fourbar")
    code = module(robot, ("gravity_torque", "inverse_dynamics"))
    q = robot.home + np.linspace(0, 0.6, 6).reshape(2, 3, 1)
    theirs = dynid.dynamics.gravity_torque(robot, q.reshape(-1, 1)).reshape(2, 3, 1)
    assert difference(code.gravity_torque(q), theirs) < WITHIN
    assert code.gravity_torque(q[0, 1]).shape == (1,)
    assert code.inverse_dynamics(q, np.zeros(1), np.zeros(1)).shape == (2, 3, 1)
    there = dynid.dynamics.assemble(robot, q[1, 2][None]).q[0]
    assert difference(code.gravity_torque(q, posture=there), theirs) < WITHIN


def test_what_cannot_be_closed_is_refused() -> None:
    code = module(parallelogram(), ("gravity_torque",))
    with pytest.raises(ValueError, match="sample 1 is at or beyond a singular posture"):
        code.gravity_torque([[0.5], [0.0]])
    with pytest.raises(ValueError, match="not finite"):
        code.gravity_torque([np.nan])
    with pytest.raises(ValueError, match="expected 1 positions"):
        code.gravity_torque([0.1, 0.2])
    with pytest.raises(ValueError, match="posture: the loops are open there"):
        module(rod(), ("gravity_torque",)).gravity_torque([0.5], posture=[0.5, 0.0])
