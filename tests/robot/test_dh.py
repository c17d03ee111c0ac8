"""Denavit-Hartenberg tables, in code and in files, against matrices multiplied by hand and published formulas."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid import Robot
from tests.support.robot_files import Array, Load, motion

EXACT = 1e-12  # products of a few rotations and lengths of a metre


def about_x(alpha: float, a: float) -> Array:
    c, s = math.cos(alpha), math.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def about_z(theta: float, d: float) -> Array:
    c, s = math.cos(theta), math.sin(theta)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])


def standard(alpha: float, a: float, d: float, theta: float) -> Array:
    """Rot_z(theta) Trans_z(d) Trans_x(a) Rot_x(alpha)."""
    return about_z(theta, d) @ about_x(alpha, a)


def modified(alpha: float, a: float, d: float, theta: float) -> Array:
    """Rot_x(alpha) Trans_x(a) Rot_z(theta) Trans_z(d)."""
    return about_x(alpha, a) @ about_z(theta, d)


ROWS = [(0.3, 0.4, 0.1, 0.2), (-1.1, 0.2, -0.3, 0.0), (0.7, 0.0, 0.25, -0.6), (math.pi / 2, -0.1, 0.0, 1.0)]


@pytest.mark.parametrize(("convention", "matrix"), [("standard", standard), ("modified", modified)])
@pytest.mark.parametrize("kinds", ["rrrr", "prpr", "rrpp"])
def test_frames_are_products_of_the_tables_matrices(convention: str, matrix: object, kinds: str) -> None:
    """Every link frame is the product of the rows before it, the variable added to theta or to d."""
    rows = [
        {"alpha": row[0], "a": row[1], "d": row[2], "theta": row[3], "kind": "revolute" if k == "r" else "prismatic"}
        for row, k in zip(ROWS, kinds, strict=True)
    ]
    robot = Robot.from_dh(rows, convention)  # type: ignore[arg-type]
    for q in motion(robot)[0]:
        place = np.eye(4)
        for k, ((alpha, a, d, theta), x) in enumerate(zip(ROWS, q, strict=True)):
            shift = (0.0, x) if kinds[k] == "r" else (x, 0.0)
            place = place @ matrix(alpha, a, d + shift[0], theta + shift[1])  # type: ignore[operator]
            np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, f"link{k + 1}"), place, atol=EXACT)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_file_and_code_give_the_same_robot(load: Load, convention: str) -> None:
    """A table in TOML and the same table in Python are one robot."""
    body = {"mass": 2.0, "com": [0.1, 0.2, -0.1], "tensor": [0.1, 0.01, 0.02, 0.2, 0.03, 0.15]}
    rows = [dict(zip(("alpha", "a", "d", "theta"), row, strict=True), inertia=body) for row in ROWS]
    text = f'name = "table"\nconvention = "{convention}"\n'
    for alpha, a, d, theta in ROWS:
        text += f"[[joint]]\nalpha = {alpha}\na = {a}\nd = {d}\ntheta = {theta}\n"
        text += "inertia = { mass = 2, com = [0.1, 0.2, -0.1], tensor = [0.1, 0.01, 0.02, 0.2, 0.03, 0.15] }\n"
    ours, coded = load(text, ".toml"), Robot.from_dh(rows, convention, name="table")  # type: ignore[arg-type]
    assert ours.parameter_names == coded.parameter_names
    q, v, a = motion(ours)
    np.testing.assert_array_equal(dynid.regressor(ours, q, v, a), dynid.regressor(coded, q, v, a))
    np.testing.assert_array_equal(ours.parameters, coded.parameters)


def test_rows_of_four_numbers_are_alpha_a_d_theta() -> None:
    """A bare row has the order of the tables: alpha, a, d, theta."""
    q = np.array([0.1, 0.2, 0.3, 0.4])
    named = [dict(zip(("alpha", "a", "d", "theta"), row, strict=True)) for row in ROWS]
    bare = dynid.dynamics.frame_placement(Robot.from_dh(ROWS), q, "link4")
    np.testing.assert_array_equal(bare, dynid.dynamics.frame_placement(Robot.from_dh(named), q, "link4"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("pi", math.pi), ("-pi/2", -math.pi / 2), ("+ 3 * pi / 4", 3 * math.pi / 4), ("2pi", 2 * math.pi)],
)
def test_angles_may_be_multiples_of_pi(text: str, value: float) -> None:
    """pi is written as pi, and right angles leave no dust in the rotation."""
    rotation = dynid.dynamics.frame_placement(Robot.from_dh([{"alpha": text}]), [0.0], "link1")
    np.testing.assert_allclose(rotation, about_x(value, 0), atol=1e-15)
    if text == "-pi/2":
        assert set(rotation[:3, :3].ravel()) == {-1.0, 0.0, 1.0}


def test_a_fixed_row_is_a_frame_and_its_mass_is_merged() -> None:
    """A fixed row has no coordinate: its place is a frame, its body is added to the link before it."""
    tool = {"mass": 0.5, "com": [0, 0, 0.1], "tensor": [0.01, 0, 0, 0.01, 0, 0.01]}
    arm = {"mass": 2.0, "com": [0.1, 0, 0], "tensor": [0.1, 0, 0, 0.1, 0, 0.1]}
    rows = [
        {"a": 0.4, "inertia": arm},
        {"alpha": 0.3, "d": 0.2, "kind": "fixed", "link": "tool", "name": "flange", "inertia": tool},
        {"a": 0.1, "link": "hand", "inertia": arm},
    ]
    robot = Robot.from_dh(rows)
    assert robot.coordinates == ("joint1", "joint3")
    assert [(m.link, m.joint, m.into, m.mass) for m in robot.merged] == [("tool", "flange", "link1", 0.5)]
    q = np.array([0.3, -0.4])
    to_tool = standard(0, 0.4, 0, 0.3) @ standard(0.3, 0, 0.2, 0)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, "tool"), to_tool, atol=EXACT)
    np.testing.assert_allclose(
        dynid.dynamics.frame_placement(robot, q, "hand"), to_tool @ standard(0, 0.1, 0, -0.4), atol=EXACT
    )
    alone = Robot.from_dh([rows[0]])
    bodies = pin.Inertia.FromDynamicParameters(alone.links[1].inertia) + pin.SE3(standard(0.3, 0, 0.2, 0)).act(
        pin.Inertia(0.5, np.array([0, 0, 0.1]), 0.01 * np.eye(3))
    )
    np.testing.assert_allclose(robot.links[1].inertia, bodies.toDynamicParameters(), atol=1e-15)


def test_branches_and_base_frame(load: Load) -> None:
    """A row may hang on any link made before it, and base_frame moves all that hang on the base."""
    text = """
name = "tree"
convention = "origin"
base_frame = { xyz = [0, 0, 1], rpy = [0, 0, "pi/2"] }
[base_link]
name = "floor"
[[joint]]
name = "left"
xyz = [1, 0, 0]
axis = [0, 1, 0]
[[joint]]
name = "right"
parent = "floor"
xyz = [-1, 0, 0]
[[joint]]
name = "finger"
parent = "link1"
kind = "prismatic"
xyz = [0, 0, 0.5]
axis = [0, 0, 2]
"""
    robot = load(text, ".toml")
    assert robot.coordinates == ("left", "right", "finger")
    assert [j.parent for j in robot.joints] == [0, 0, 1]
    q = np.array([0.0, 0.3, 0.25])
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, "link1")[:3, 3], [0, 1, 1], atol=EXACT)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, "link2")[:3, 3], [0, -1, 1], atol=EXACT)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, "link3")[:3, 3], [0, 1, 1.75], atol=EXACT)


def test_tx40_table_gives_the_published_urdf_origins() -> None:
    """Nguyen (2021), Fig. 3.4 against Fig. 3.5 (roll of joint 5 corrected): one geometry, two descriptions.

    The URDF keeps joints 2 and 3 in their table angles, so its coordinates are shifted by a quarter turn.
    """
    half = math.pi / 2
    origins = [
        ((0, 0, 0.320), (0, 0, 0)),
        ((0, 0, 0), (-half, 0, 0)),
        ((0.225, 0, 0.035), (0, 0, 0)),
        ((0, -0.225, 0), (half, 0, 0)),
        ((0, 0, 0), (-half, 0, 0)),
        ((0, 0, 0), (half, math.pi, 0)),
    ]
    shift = np.array([0, -half, half, 0, 0, 0])
    robot = dynid.load_robot("tx40")
    for q in motion(robot)[0]:
        place = np.eye(4)
        for k, ((xyz, rpy), angle) in enumerate(zip(origins, q + shift, strict=True)):
            step = pin.SE3(pin.rpy.rpyToMatrix(*map(float, rpy)), np.array(xyz, dtype=float)).homogeneous
            place = place @ step @ about_z(angle, 0.0)
            np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, f"link{k + 1}"), place, atol=EXACT)


# -- the two-joint example of Sousa (2014), section 7.1 ---------------------------------------------


def example_robot(parameters: Array | None = None) -> Robot:
    """Rows (-pi/2, 0, 0, q + pi/2) and (pi/2, 0, 0, q - pi/2) with viscous and Coulomb friction."""
    rows = [{"alpha": "-pi/2", "theta": "pi/2"}, {"alpha": "pi/2", "theta": "-pi/2"}]
    robot = Robot.from_dh(rows).with_drives("viscous+coulomb")
    return robot if parameters is None else robot.with_parameters(parameters)


def test_example_robot_has_the_published_pose_and_jacobian() -> None:
    """T_end and J_end of the example, entry by entry."""
    robot = example_robot()
    for q in motion(robot)[0]:
        (s1, s2), (c1, c2) = np.sin(q), np.cos(q)
        turn = [[-s1 * s2, -c1, s1 * c2], [s2 * c1, -s1, -c1 * c2], [c2, 0, s2]]
        place = dynid.dynamics.frame_placement(robot, q, "link2")
        np.testing.assert_allclose(place[:3, :3], turn, atol=EXACT)
        np.testing.assert_allclose(place[:3, 3], 0, atol=EXACT)
        jacobian = [[0, 0], [0, 0], [0, 0], [0, -c1], [0, -s1], [1, 0]]
        np.testing.assert_allclose(dynid.dynamics.frame_jacobian(robot, q, "link2"), jacobian, atol=EXACT)


def published_torques(p: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """The generated C function of the example; p holds tensor, first moment, mass, fv, fc of link 1, then of link 2."""
    s, c = math.sin(q[1]), math.cos(q[1])
    x4, x5 = s * dq[0], c * dq[0]
    x10, x11 = dq[1] * x5 + s * ddq[0], -dq[1] * x4 + c * ddq[0]
    x6 = dq[1] * p[15] + p[13] * x5 + p[16] * x4
    x12 = dq[1] * p[16] + p[14] * x5 + p[17] * x4
    x13 = dq[1] * p[13] + p[12] * x5 + p[14] * x4
    first = dq[0] * p[10] + p[11] * np.sign(dq[0]) + p[3] * ddq[0]
    first += c * (ddq[1] * p[13] + dq[1] * x12 + p[12] * x11 + p[14] * x10 + p[19] * 9.81 * s - x6 * x4)
    first -= s * (-ddq[1] * p[16] + dq[1] * x13 - p[14] * x11 - p[17] * x10 + p[19] * 9.81 * c - x5 * x6)
    second = ddq[1] * p[15] + dq[1] * p[22] + p[13] * x11 + p[16] * x10 - p[18] * 9.81 * s + p[20] * 9.81 * c
    return np.array([first, second + p[23] * np.sign(dq[1]) - x12 * x5 + x13 * x4])


def test_example_robot_has_the_published_torques() -> None:
    """Inverse dynamics of the example equals its published C code for random parameters, in that code's order."""
    rng = np.random.default_rng(0)
    p = rng.uniform(-1, 1, 24)
    ours = np.concatenate(
        [
            np.append(dynid.inertia.reorder_inertia(p[k : k + 10], "sympybotics", "pinocchio"), p[k + 10 : k + 12])
            for k in (0, 12)
        ]
    )
    robot = example_robot(ours)
    for q, v, a in zip(*motion(robot), strict=True):
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), published_torques(p, q, v, a), atol=EXACT)


def test_example_robot_has_twelve_base_parameters() -> None:
    """Twelve combinations, among them Iyy_1 + Izz_2 and Ixx_2 - Izz_2, as published."""
    base = dynid.base_parameters(example_robot())
    assert base.count == 12
    expressions = {e.replace(" ", "") for e in base.expressions}
    assert {
        "Iyy_1+Izz_2",
        "Ixx_2-Izz_2",
        "fv_1",
        "fc_1",
        "Ixy_2",
        "Ixz_2",
        "Iyy_2",
        "Iyz_2",
        "mx_2",
        "mz_2",
    } <= expressions
