"""Tables, options and arrays that cannot be used: one line each, naming the culprit; never a foreign exception."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.robot import DriveTerm, Joint, Limits, Link, Transmission
from tests.support.robot_files import Load, refused

HEAD = 'name = "r"\nconvention = "standard"\n'
ORIGIN = HEAD.replace("standard", "origin")
ROW = "[[joint]]\na = 1\n"
MOTOR = '[[motor]]\nname = "m"\n'

BAD_TOML = {
    "empty file": ("", ["robot.toml", "name"]),
    "broken TOML": ("a = [", ["robot.toml", "TOML"]),
    "no rows": (HEAD, ["joint"]),
    "no convention": ('name = "r"\n' + ROW, ["convention"]),
    "unknown convention": (HEAD.replace("standard", "craig") + ROW, ["convention", "'modified'"]),
    "unknown key": (HEAD + ROW + 'paint = "red"\n', ["joint.1.paint"]),
    "origin keys in a DH table": (HEAD + ROW + "xyz = [0, 0, 0]\n", ["joint row 1", "'xyz'", "standard"]),
    "DH keys among origins": (ORIGIN + ROW, ["joint row 1", "'a'", "origin"]),
    "row without values": (HEAD + ROW + '[[joint]]\nname = "elbow"\n', ["joint row 2", "'elbow'", "alpha"]),
    "bad angle": (HEAD + '[[joint]]\nalpha = "pi/x"\n', ["joint row 1", "alpha", "'pi/x'"]),
    "angle by zero": (HEAD + '[[joint]]\nalpha = "pi/0"\n', ["joint row 1", "alpha"]),
    "NaN length": (HEAD + "[[joint]]\na = nan\n", ["joint row 1", "finite"]),
    "word for a length": (HEAD + '[[joint]]\na = "long"\n', ["joint.1.a"]),
    "NaN position": (ORIGIN + "[[joint]]\nxyz = [0, nan, 0]\n", ["joint row 1", "xyz"]),
    "zero axis": (ORIGIN + '[[joint]]\nname = "hip"\naxis = [0, 0, 0]\n', ["'hip'", "zero axis"]),
    "unknown parent": (HEAD + ROW + 'parent = "torso"\n', ["joint row 1", "'torso'"]),
    "link twice": (HEAD + ROW + 'link = "l"\n' + ROW + 'link = "l"\n', ["joint row 2", "'l'"]),
    "link named as the base": (HEAD + ROW + 'link = "base"\n', ["joint row 1", "'base'"]),
    "joint twice": (HEAD + ROW + 'name = "j"\n' + ROW + 'name = "j"\n', ["two joints", "'j'"]),
    "unknown kind": (HEAD + ROW + 'kind = "ball"\n', ["joint row 1", "'ball'", "prismatic"]),
    "mimic of nobody": (HEAD + ROW + 'mimic = { joint = "thumb" }\n', ["'joint1'", "'thumb'"]),
    "mimic of itself": (HEAD + ROW + 'mimic = { joint = "joint1" }\n', ["'joint1'", "itself"]),
    "mimic in words": (HEAD + ROW + 'mimic = { joint = "x", multiplier = "two" }\n', ["joint.1.mimic.multiplier"]),
    "endless mimic": (HEAD + ROW + ROW + 'mimic = { joint = "joint1", offset = inf }\n', ["'joint1'", "finite"]),
    "driven mimic": (HEAD + ROW + ROW + 'drive = { fv = 1 }\nmimic = { joint = "joint1" }\n', ["'joint2'", "drive"]),
    "unknown drive term": (HEAD + ROW + "drive = { stick = 1 }\n", ["'stick'", "joint1", "fv"]),
    "NaN friction": (HEAD + ROW + "drive = { fv = nan }\n", ["'fv_joint1'"]),
    "rest without spring": (HEAD + ROW + "drive = { rest = 1 }\n", ["'joint1'", "spring"]),
    "drive on a fixed row": (HEAD + ROW + 'kind = "fixed"\ndrive = { fv = 1 }\n', ["joint row 1", "fixed"]),
    "limits upside down": (HEAD + ROW + "limits = { position = [1, 0] }\n", ["'joint1'", "limits"]),
    "unknown limit": (HEAD + ROW + "limits = { jerk = 1 }\n", ["'joint1'", "'jerk'"]),
    "limit in words": (HEAD + ROW + 'limits = { velocity = "fast" }\n', ["'joint1'", "fast"]),
    "NaN mass": (HEAD + ROW + "inertia = { mass = nan }\n", ["joint row 1", "mass"]),
    "inertia twice": (HEAD + ROW + "inertia = { mass = 1, com = [0, 0, 0], moment = [0, 0, 0] }\n", ["row 1", "both"]),
    "short centre of mass": (HEAD + ROW + "inertia = { mass = 1, com = [0, 0] }\n", ["joint.1.inertia.com"]),
    "NaN gravity": (HEAD + "gravity = [0, 0, nan]\n" + ROW, ["gravity"]),
    "unknown base": (HEAD + 'base = "hovering"\n' + ROW, ["base", "floating"]),
    "coupling without motors": (HEAD + "coupling = [[1]]\n" + ROW, ["coupling", "motor"]),
    "coupling of another shape": (HEAD + "coupling = [[1, 2]]\n" + ROW + MOTOR, ["(1, 2)"]),
    "ragged coupling": (HEAD + "coupling = [[1, 2], [1]]\n" + ROW + MOTOR, ["coupling"]),
    "gear ratio of zero": (HEAD + ROW + MOTOR + "ratio = 0\n", ["ratio"]),
    "motor on no joint": (HEAD + "coupling = [[0]]\n" + ROW + MOTOR + "drive = { fv = 1 }\n", ["'fv_m'"]),
    "two motors of one name": (HEAD + ROW + ROW + MOTOR + MOTOR, ["two motors", "m"]),
    "names over two lines": (ORIGIN + '[[joint]]\nname = "a\\nb"\naxis = [0, 0, 0]\n', ["'a b'"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TOML)
def test_bad_robot_file_is_refused_in_one_line(load: Load, case: str) -> None:
    """The message names the row, joint or key and what is wrong with it."""
    text, words = BAD_TOML[case]
    refused(lambda: load(text, ".toml"), *words)


BAD_ROWS = [
    (None, "None"),
    (5, "5"),
    ("abcd", "'abcd'"),
    ([5], "joint row 1"),
    ([(0, 1, 0, 0), (1, 2, 3)], "joint row 2"),
    ([(1, 2, 3, 4, 5)], "(alpha, a, d, theta)"),
    ([("a", "b", "c", "d")], "joint.1.a"),
    ([{"b": 1}], "joint.1.b"),
    ([[0, np.inf, 0, 0]], "joint row 1"),
]


@pytest.mark.parametrize(("rows", "word"), BAD_ROWS, ids=str)
def test_bad_rows_in_code_are_refused(rows: Any, word: str) -> None:
    """Tables of the wrong form never get far enough to fail elsewhere."""
    refused(lambda: Robot.from_dh(rows), word)


BAD_OPTIONS = {
    "friction word": ({"friction": "sticky"}, ["'sticky'", "viscous"]),
    "friction word of one joint": ({"friction": {"joint2": "viscous+sticky"}}, ["'sticky'"]),
    "no friction word": ({"friction": ""}, ["''", "none"]),
    "friction twice": ({"friction": "viscous+viscous"}, ["viscous+viscous", "twice"]),
    "friction as a number": ({"friction": 5}, ["friction", "5"]),
    "friction as a list": ({"friction": ["viscous"]}, ["friction", "['viscous']"]),
    "friction of nobody": ({"friction": {"elbow": "viscous"}}, ["'elbow'", "joint1"]),
    "rotor of nobody": ({"rotor_inertia": ["elbow"]}, ["'elbow'", "joint1"]),
    "rotor as a number": ({"rotor_inertia": 5}, ["rotor_inertia", "5"]),
    "base": ({"base": "hovering"}, ["'hovering'", "floating"]),
    "gravity of two": ({"gravity": (0, 0)}, ["gravity", "(2,)"]),
    "gravity NaN": ({"gravity": (0, 0, np.nan)}, ["gravity", "finite"]),
    "gravity in words": ({"gravity": "down"}, ["gravity", "'down'"]),
    "limits of nobody": ({"limits": {"elbow": {}}}, ["'elbow'", "joint1"]),
    "limits as a number": ({"limits": 5}, ["limits", "5"]),
    "limits of a joint as a number": ({"limits": {"joint1": 5}}, ["'joint1'", "5"]),
    "unknown limit": ({"limits": {"joint1": {"jerk": 5}}}, ["'joint1'", "'jerk'"]),
    "limits upside down": ({"limits": {"joint1": {"position": (1, 0)}}}, ["'joint1'", "[1.0, 0.0]"]),
    "half a range": ({"limits": {"joint1": {"position": 1}}}, ["'joint1'"]),
    "NaN limit": ({"limits": {"joint1": {"velocity": np.nan}}}, ["'joint1'", "nan"]),
    "negative effort": ({"limits": {"joint1": {"effort": -1}}}, ["'joint1'", "-1.0"]),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_refused(case: str) -> None:
    """Every option of load_robot names what it did not understand."""
    options, words = BAD_OPTIONS[case]
    refused(lambda: dynid.load_robot("tx40", **options), *words)


def test_a_single_joint_name_is_a_rotor() -> None:
    """rotor_inertia="joint3" means that joint, not its letters."""
    names = dynid.load_robot("box2", rotor_inertia="joint2").parameter_names
    assert [n for n in names if n.startswith("Ia")] == ["Ia_joint2"]


TX40 = dynid.load_robot("tx40")
ZERO = np.zeros(6)


@pytest.mark.parametrize(
    "bad",
    [None, "abc", {}, [1, 2], np.zeros((2, 3, 6)), np.full(6, np.nan), np.full(6, np.inf), [0] * 5 + ["x"]],
    ids=str,
)
def test_bad_arrays_are_refused_by_every_function(bad: Any) -> None:
    """Wrong shapes, words, NaN and infinity in q, v, a or tau are named, wherever they enter."""
    refused(lambda: dynid.regressor(TX40, bad, ZERO, ZERO), "q")
    refused(lambda: dynid.regressor(TX40, ZERO, bad, ZERO), "v")
    refused(lambda: dynid.inverse_dynamics(TX40, ZERO, ZERO, bad), "a")
    refused(lambda: dynid.forward_dynamics(TX40, ZERO, ZERO, bad), "tau")
    refused(lambda: dynid.mass_matrix(TX40, bad), "q")
    refused(lambda: dynid.dynamics.gravity_torque(TX40, bad), "q")
    refused(lambda: dynid.dynamics.coriolis_matrix(TX40, ZERO, bad), "v")
    refused(lambda: dynid.dynamics.potential_energy(TX40, bad), "q")
    refused(lambda: dynid.dynamics.frame_placement(TX40, bad, "link6"), "q")
    refused(lambda: TX40.with_parameters(bad), "parameters", "tx40")


def test_lengths_that_differ_and_wrong_parameters_are_refused() -> None:
    """Ten positions with nine velocities, 86 parameters instead of 87, a NaN: each message gives the sizes."""
    refused(lambda: dynid.regressor(TX40, np.zeros((10, 6)), np.zeros((9, 6)), np.zeros((10, 6))), "(10, 6)", "(9, 6)")
    refused(lambda: dynid.inverse_dynamics(TX40, ZERO, ZERO, ZERO, np.zeros(86)), "87", "(86,)")
    poisoned = TX40.parameters.copy()
    poisoned[3] = np.nan
    refused(lambda: dynid.inverse_dynamics(TX40, ZERO, ZERO, ZERO, poisoned), "mz_link1")


def test_quaternions_must_have_unit_length() -> None:
    """A floating base at zeros, or with a quaternion nobody normalised, is told which sample."""
    flying = TX40.with_base("floating")
    q = np.zeros((3, 13))
    q[:, 6] = 1.0
    q[2, 6] = 1.1
    refused(lambda: dynid.mass_matrix(flying, q), "quaternion", "sample 2", "1.1")


def test_unknown_frames_and_links_are_named_with_the_known_ones() -> None:
    """A misspelt frame gets the list of those there are."""
    refused(lambda: dynid.dynamics.frame_placement(TX40, ZERO, "hand"), "'hand'", "link6")
    refused(lambda: dynid.dynamics.frame_jacobian(TX40, ZERO, "link6", reference="world"), "'world'", "local")  # type: ignore[arg-type]
    refused(lambda: TX40.with_payload("hand", np.ones(10)), "'hand'", "link6")


BAD_TERMS = {
    "joint number": (lambda: TX40.joint_term(6, "k"), ["6", "tx40"]),
    "joint of a half": (lambda: TX40.joint_term(0.5, "k"), ["0.5"]),  # type: ignore[arg-type]
    "joint name": (lambda: TX40.joint_term("elbow", "k"), ["'elbow'", "joint1"]),
    "symbol": (lambda: TX40.joint_term(0, "stick"), ["'stick'", "fv"]),
    "NaN": (lambda: TX40.joint_term(0, "k", np.nan), ["'k_joint1'", "finite"]),
    "word": (lambda: TX40.joint_term(0, "k", "stiff"), ["'k_joint1'", "'stiff'"]),  # type: ignore[arg-type]
    "twice": (lambda: TX40.with_terms(TX40.joint_term(0, "fv")), ["'fv_joint1'"]),
    "motor": (lambda: TX40.motor_term("motor9", "fv"), ["'motor9'", "motor6"]),
    "no motors": (lambda: dynid.load_robot("box2").motor_term("motor1", "fv"), ["box2", "transmission"]),
    "owner": (lambda: TX40.with_terms(DriveTerm("k", "s", np.eye(6)[0], 6)), ["'k_s'", "6"]),
    "direction": (lambda: TX40.with_terms(DriveTerm("k", "s", np.ones(5), 0)), ["'k_s'"]),
    "pattern": (lambda: TX40.without("stick_*"), ["'stick_*'"]),
    "custom shape": (lambda: TX40.custom_term("c", 0, lambda q, v, a: q[:, :2]), ["'c'", "(4, 2)"]),
    "custom words": (lambda: TX40.custom_term("c", 0, lambda q, v, a: "x"), ["'c'", "'x'"]),
    "custom no function": (lambda: TX40.custom_term("c", 0, 5), ["'c'", "5"]),  # type: ignore[arg-type]
    "custom squared": (lambda: TX40.custom_term("c", 0, lambda q, v, a: a**2), ["'c'", "affine"]),
    "custom modulus": (lambda: TX40.custom_term("c", 0, lambda q, v, a: np.abs(a)), ["'c'", "affine"]),
    "custom odd": (lambda: TX40.custom_term("c", 0, lambda q, v, a: a * np.abs(a)), ["'c'", "affine"]),
    "custom with velocity": (lambda: TX40.custom_term("c", 0, lambda q, v, a: v * a), ["'c'", "q alone"]),
    "transmission shape": (lambda: Transmission(("m",), np.ones((6, 2)), np.ones(1)), ["(6, 2)", "1 motors"]),
    "transmission rows": (
        lambda: TX40.without("*_motor6").with_transmission(Transmission(("m",), np.ones((5, 1)), np.ones(1))),
        ["5 rows", "6 joints"],
    ),
    "transmission again": (lambda: TX40.with_transmission(TX40.transmission), ["tx40", "motor"]),  # type: ignore[arg-type]
    "joint kind": (lambda: Joint("hip", "ball", 0, np.eye(4), np.ones(3)), ["'hip'", "'ball'"]),  # type: ignore[arg-type]
    "mirrored joint": (lambda: Joint("hip", "revolute", 0, np.diag([1, 1, -1, 1]), np.ones(3)), ["'hip'", "rotation"]),
    "scaled mount": (
        lambda: Joint("hip", "revolute", 0, np.eye(4), np.ones(3), mount=np.diag([2, 2, 2, 1])),
        ["'hip'", "mount"],
    ),
    "short inertia": (lambda: Link("arm", np.ones(9)), ["'arm'", "(9,)"]),
    "NaN range": (lambda: Limits(np.nan, 1), ["limits", "nan"]),
    "parent after child": (
        lambda: Robot(
            "r",
            (Link("a", np.zeros(10)), Link("b", np.zeros(10))),
            (Joint("hip", "revolute", 1, np.eye(4), np.ones(3)),),
        ),
        ["'hip'", "earlier link"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TERMS)
def test_bad_parts_and_terms_are_refused(case: str) -> None:
    """Drive terms, transmissions, joints and links that make no sense name themselves."""
    call, words = BAD_TERMS[case]
    refused(call, *words)


@pytest.mark.parametrize("bad", ["abc", None, [1, 2], np.full(10, np.nan), 5, [0] * 9 + ["x"]], ids=str)
def test_bad_bodies_are_refused_by_every_conversion(bad: Any) -> None:
    """No conversion of inertial numbers lets words, NaN or wrong shapes through."""
    for convert in (
        dynid.inertia.inertia_to_com,
        dynid.inertia.inertia_to_pseudo,
        dynid.inertia.inertia_to_spatial,
        dynid.inertia.inertia_to_log_cholesky,
        dynid.inertia.inertia_violations,
        dynid.inertia.inertia_from_pseudo,
        dynid.inertia.inertia_from_spatial,
        dynid.inertia.inertia_from_log_cholesky,
    ):
        refused(lambda convert=convert: convert(bad))  # type: ignore[misc]
    refused(lambda: dynid.inertia.move_inertia(bad, np.eye(4)))
    refused(lambda: dynid.inertia.reorder_inertia(bad, "khalil", "pinocchio"))
    refused(lambda: TX40.with_payload("link6", bad))


def test_impossible_conversions_say_why() -> None:
    """No centre of mass without mass, no log-Cholesky form of an inconsistent body, no unknown order."""
    refused(lambda: dynid.inertia.inertia_to_com(np.zeros(10)), "zero mass")
    refused(lambda: dynid.inertia.inertia_to_log_cholesky([1, 0, 0, 0, 1, 0, 1, 0, 0, 3]), "positive definite")
    refused(lambda: dynid.inertia.reorder_inertia(np.ones(10), "craig", "pinocchio"), "'craig'", "khalil")
    refused(lambda: dynid.inertia.move_inertia(np.ones(10), 2 * np.eye(4)), "rotation")
    refused(lambda: dynid.inertia.inertia_from_com([1, 2], np.zeros(3), np.eye(3)), "(2,)", "(3,)")
