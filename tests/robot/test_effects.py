"""Effects of drives by name: their torques, what a saved or locked robot keeps, and what an identification finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.errors import ModelError
from dynid.robot.effects import EFFECTS, body_torques
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.synthetic import EXACT, arm, motion

Array = NDArray[np.float64]
Torques = Callable[[Array, Array, Array], Array]

ALL = (
    "load-friction",
    "quadratic-friction=joint1",
    "ripple=joint2:7.5",
    "counterbalance=joint2",
    "spring=joint1;joint3",
    "coupled-friction=joint3:joint2",
    "coupled-inertia=joint3:joint2",
)


def states(seed: int = 0, samples: int = 40, joints: int = 3) -> list[Array]:
    return list(np.random.default_rng(seed).normal(size=(3, samples, joints)))


def load(q: Array, v: Array, a: Array) -> Array:
    return np.abs(dynid.inverse_dynamics(arm().with_drives("none", rotor_inertia=False), q, v, a)) * np.sign(v)


# Torques of an effect in one joint, by its parameters.
FORMULAS: dict[str, tuple[str, int, Torques]] = {
    "fl_joint2": ("load-friction", 1, lambda q, v, a: load(q, v, a)[:, 1]),
    "fq_joint1": ("quadratic-friction=joint1", 0, lambda q, v, a: v[:, 0] * np.abs(v[:, 0])),
    "rs7.5_joint2": ("ripple=joint2:7.5", 1, lambda q, v, a: np.sin(7.5 * q[:, 1])),
    "rc7.5_joint2": ("ripple=joint2:7.5", 1, lambda q, v, a: np.cos(7.5 * q[:, 1])),
    "bs_joint2": ("counterbalance=joint2", 1, lambda q, v, a: np.sin(q[:, 1])),
    "ks_joint3": ("spring=joint1;joint3", 2, lambda q, v, a: q[:, 2]),
    "kr_joint3": ("spring=joint1;joint3", 2, lambda q, v, a: np.ones(len(q))),
    "fvo_joint2_joint3": ("coupled-friction=joint3:joint2", 2, lambda q, v, a: v[:, 1]),
    "fco_joint2_joint3": ("coupled-friction=joint3:joint2", 2, lambda q, v, a: np.sign(v[:, 1])),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_torque_of_an_effect(name: str) -> None:
    text, joint, formula = FORMULAS[name]
    robot, given = arm().with_effects(text), states()
    found = dynid.regressor(robot, *given)[:, :, robot.parameter_names.index(name)]
    expected = np.zeros_like(found)
    expected[:, joint] = formula(*given)
    assert found == pytest.approx(expected, abs=1e-12)


def test_torques_of_bodies_are_those_of_the_dynamics() -> None:
    """Trees of both kinds of joints, with joints that follow others; two computations that share nothing."""
    kinds = set[str]()
    for seed in range(12):
        robot = random_robot(seed, mimics=seed % 3)
        kinds |= {j.kind for j in robot.joints}
        given = states(seed, joints=robot.n)
        assert body_torques(robot, *given) == pytest.approx(dynid.inverse_dynamics(robot, *given), rel=1e-9, abs=1e-9)
    assert kinds == {"revolute", "prismatic"}


def test_every_effect_has_a_formula_here() -> None:
    assert {text.partition("=")[0] for text in ALL} == set(EFFECTS)
    assert {text for text, *_ in FORMULAS.values()} | {"coupled-inertia=joint3:joint2"} == set(ALL)


def test_coupled_inertia_keeps_the_mass_matrix_symmetric() -> None:
    robot = with_values(arm().with_effects(ALL[-1]), {"Io_joint2_joint3": 0.01})
    difference = dynid.mass_matrix(robot, states()[0]) - dynid.mass_matrix(arm(), states()[0])
    assert difference[0] == pytest.approx(0.01 * np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]]))


def with_values(robot: Robot, values: dict[str, float]) -> Robot:
    return robot.with_parameters(
        [values.get(n, x) for n, x in zip(robot.parameter_names, robot.parameters, strict=True)]
    )


def test_accelerations_with_friction_of_the_load_give_the_torques_back() -> None:
    """The friction depends on the acceleration that is asked for, and not linearly."""
    tx40 = dynid.load_robot("tx40", effects=["load-friction"])
    robot = with_values(tx40, {f"fl_{joint}": 0.2 for joint in tx40.coordinates})
    q, v, torque = states(3, 500, 6)
    a = dynid.forward_dynamics(robot, q, v, 20.0 * torque)
    assert dynid.inverse_dynamics(robot, q, v, a) == pytest.approx(20.0 * torque, abs=1e-7)


def test_a_saved_robot_keeps_its_effects() -> None:
    """Also the bodies whose torque is the load, after the robot got other ones."""
    robot = arm().with_effects(*ALL)
    other = robot.with_parameters(1.5 * robot.parameters)
    again = robot_from_dict(json.loads(json.dumps(robot_to_dict(other))))
    assert again.parameter_names == robot.parameter_names
    given = states()
    assert np.array_equal(dynid.regressor(again, *given), dynid.regressor(other, *given))
    assert np.array_equal(dynid.regressor(other, *given), dynid.regressor(robot, *given))


@pytest.mark.parametrize("damage", [{"effect": "gone"}, {"law": 7}, {"joint": 3}, {"other": 9}, {"bodies": [1.0]}])
def test_a_damaged_effect_is_refused(damage: dict[str, object]) -> None:
    data = robot_to_dict(arm().with_effects("load-friction"))
    column = next(x["function"] for x in data["drives"] if x["function"])
    column["column"] |= damage
    with pytest.raises(ModelError):
        robot_from_dict(data)


def test_a_locked_robot_keeps_the_effects_of_the_joints_that_move() -> None:
    """The load of a free joint is that with the locked bodies where they stand."""
    robot = arm().with_effects(*ALL)
    locked = robot.locked({"joint2": 0.3})
    gone = {n for n in robot.parameter_names if n.endswith("_joint2") or "_joint2_" in n}
    drives = {p.name for p in robot.layout if not p.inertial}
    assert {p.name for p in locked.layout if not p.inertial} == drives - gone
    q, v, a = states()
    q[:, 1], v[:, 1], a[:, 1] = 0.3, 0.0, 0.0
    free = [0, 2]
    whole, part = dynid.regressor(robot, q, v, a), dynid.regressor(locked, q[:, free], v[:, free], a[:, free])
    for name in drives - gone:
        columns = whole[:, free, robot.parameter_names.index(name)], part[:, :, locked.parameter_names.index(name)]
        assert columns[0] == pytest.approx(columns[1], abs=1e-12), name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("load-frictoin", "did you mean load-friction"),
        ("ripple", "needs the periods per revolution: ripple=JOINT:NUMBER"),
        ("ripple=joint2", "needs the periods"),
        ("ripple=joint2:many", "must be a positive number, got 'many'"),
        ("ripple=joint2:-3", "must be a positive number"),
        ("spring=joint9", "no joint fits 'joint9', they are joint1, joint2, joint3"),
        ("coupled-friction=joint1", "needs the other joint: coupled-friction=JOINT:JOINT"),
        ("coupled-friction=joint1:joint9", "no joint fits 'joint9'"),
    ],
)
def test_what_is_wrong_with_an_effect_is_said(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        arm().with_effects(text)


def test_friction_of_the_load_needs_bodies_on_a_fixed_base() -> None:
    empty = arm().with_parameters(0.0 * arm().parameters)
    with expect_error(ModelError, code="missing_data"):
        empty.with_effects("load-friction")
    with expect_error(ModelError, "effect", code="not_applicable"):
        arm().with_base("floating").with_effects("load-friction")


@pytest.mark.parametrize("method", ["auto", "wls", "feasible"])
def test_identified_effects_are_the_true_ones(method: str) -> None:
    true = {"fl_joint2": 0.08, "rs7.5_joint3": 0.4, "rc7.5_joint3": -0.3, "fvo_joint2_joint3": 0.2}
    robot = arm().with_effects("load-friction=joint2", "ripple=joint3:7.5", "coupled-friction=joint3:joint2")
    plant = with_values(robot, true)
    t, q, v, a = motion(plant, 1, 4000)
    torque = dynid.inverse_dynamics(plant, q, v, a) + 0.02 * np.random.default_rng(1).normal(size=q.shape)
    recording = dynid.Recording(plant.coordinates, (dynid.Run(t, q, torque=torque),))
    found = dynid.identify(robot, recording, method, signals=replace(EXACT, decimate=(5,)))
    values = dict(zip(found.robot.parameter_names, found.parameters, strict=True)) if method != "wls" else {}
    values = values or dict(zip(found.base.names, found.beta, strict=True))
    assert {n: values[n] for n in true} == pytest.approx(true, abs=0.03)
