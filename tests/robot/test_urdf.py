"""URDF files: what is in the file is what the robot has. Pinocchio's own reading of the same text is the oracle."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import dynid
import dynid.robot
from dynid.assessment.model.other_code import against_pinocchio
from tests.support.robot_files import Load, joint, link, motion, one_joint, pinocchio_q, urdf

SAME = 1e-11  # two codes in double precision, torques up to a few hundred N m


# Two branches on a torso, every joint kind, a tool of three links on fixed joints and a camera fixed to the base.
MASSES = {
    "pedestal": 7.5,
    "camera": 0.25,
    "torso": 6.5,
    "left": 1.25,
    "left_hand": 0.75,
    "right": 2.25,
    "wrist": 1.75,
    "flange": 0.5,
    "tool": 1.5,
    "blade": 0.125,
}
URDF = urdf(
    *(link(name, mass) for name, mass in MASSES.items()),
    *[
        joint("camera_mount", "fixed", "pedestal", "camera", '<origin xyz="0.1 0.2 0.3" rpy="0.5 0 0.2"/>'),
        joint(
            "lift",
            "prismatic",
            "pedestal",
            "torso",
            '<origin xyz="0 0.1 0.4" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/>'
            '<limit lower="-0.1" upper="0.6" velocity="0.5" effort="900"/><dynamics damping="30" friction="12"/>',
        ),
        joint(
            "left_shoulder",
            "continuous",
            "torso",
            "left",
            '<origin xyz="0 0.2 0.3" rpy="-0.4 0 1"/><axis xyz="0.48 0.6 0.64"/><limit velocity="3" effort="40"/>',
        ),
        joint("left_grip", "fixed", "left", "left_hand", '<origin xyz="0.3 0 0" rpy="0 1.2 0"/>'),
        joint(
            "right_shoulder",
            "revolute",
            "torso",
            "right",
            '<origin xyz="0 -0.2 0.3"/><axis xyz="1 -2 0.5"/><limit lower="-2" upper="1" velocity="2" effort="60"/>'
            '<dynamics damping="0.7"/>',
        ),
        joint(
            "right_wrist",
            "revolute",
            "right",
            "wrist",
            '<origin xyz="0.4 0 0" rpy="0 0 1.5"/><axis xyz="0 -1 0"/>'
            '<limit lower="-1" upper="1" velocity="4" effort="9"/>',
        ),
        joint("flange_mount", "fixed", "wrist", "flange", '<origin xyz="0 0 0.1" rpy="0.2 0.3 0.4"/>'),
        joint("tool_mount", "fixed", "flange", "tool", '<origin xyz="0.05 0 0.05" rpy="0 -0.6 0"/>'),
        joint("blade_mount", "fixed", "tool", "blade", '<origin xyz="0 0.02 0.2"/>'),
    ],
)


def test_masses_stand_on_the_links_they_were_written_for(load: Load) -> None:
    """Every link has a mass of its own, and reading by name gives that very mass, merged ones added."""
    robot = load(URDF, ".urdf", base="instrumented")
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    tool = MASSES["wrist"] + MASSES["flange"] + MASSES["tool"] + MASSES["blade"]
    expected = {
        "pedestal": MASSES["pedestal"] + MASSES["camera"],
        "torso": MASSES["torso"],
        "left": MASSES["left"] + MASSES["left_hand"],
        "right": MASSES["right"],
        "wrist": tool,
    }
    assert {link.name for link in robot.links} == set(expected)
    for name, mass in expected.items():
        assert value[f"m_{name}"] == pytest.approx(mass, rel=1e-15)


def test_fixed_links_carry_their_whole_inertia_to_the_body(load: Load) -> None:
    """Ten numbers of every body equal Pinocchio's, which merges fixed joints by its own code."""
    robot = load(URDF, ".urdf")
    model = pin.buildModelFromXML(URDF)
    for j, body in zip(robot.joints, robot.links[1:], strict=True):
        theirs = model.inertias[model.getJointId(j.name)].toDynamicParameters()
        np.testing.assert_allclose(body.inertia, theirs, atol=1e-14)  # sums of four bodies of a few kg
    np.testing.assert_allclose(robot.links[0].inertia, model.inertias[0].toDynamicParameters(), atol=1e-14)


def test_report_says_which_links_were_merged_into_which(load: Load) -> None:
    """A user must learn that the tool has no parameters of its own, where they went, and how heavy it is."""
    merged = {m.link: m for m in load(URDF, ".urdf").merged}
    assert set(merged) == {"camera", "left_hand", "flange", "tool", "blade"}
    assert (merged["blade"].into, merged["blade"].joint, merged["blade"].mass) == ("wrist", "blade_mount", 0.125)
    assert merged["camera"].into == "pedestal"


def test_limits_are_read_and_a_continuous_joint_has_no_range(load: Load) -> None:
    """Position, velocity and effort limits come from the file; missing ones are infinite."""
    robot = load(URDF, ".urdf")
    lift, shoulder = robot.limits["lift"], robot.limits["left_shoulder"]
    assert (lift.lower, lift.upper, lift.velocity, lift.effort) == (-0.1, 0.6, 0.5, 900)
    assert (shoulder.lower, shoulder.upper, shoulder.velocity) == (-math.inf, math.inf, 3)
    assert load(one_joint(), ".urdf").limits["j"] == dynid.robot.Limits()


def test_limits_without_speed_and_effort_are_open(load: Load) -> None:
    """Many files leave out velocity and effort; that means unknown, not zero."""
    text = one_joint("revolute", '<limit lower="-1" upper="2"/>')
    assert load(text, ".urdf").limits["j"] == dynid.robot.Limits(-1, 2)


def test_axes_and_kinds_come_from_the_file(load: Load) -> None:
    """An axis of any length and direction is kept as a unit vector; left out, it is x as URDF says."""
    robot = load(URDF, ".urdf")
    by_name = {j.name: j for j in robot.joints}
    assert [by_name[n].kind for n in ("lift", "left_shoulder", "right_wrist")] == ["prismatic", "revolute", "revolute"]
    np.testing.assert_allclose(by_name["right_shoulder"].axis, np.array([1, -2, 0.5]) / np.sqrt(5.25), atol=1e-15)
    np.testing.assert_array_equal(by_name["right_wrist"].axis, [0, -1, 0])
    np.testing.assert_array_equal(load(one_joint(), ".urdf").joints[0].axis, [1, 0, 0])


def test_every_link_of_the_file_is_a_frame_in_its_place(load: Load) -> None:
    """Placements of links and merged links are those of Pinocchio's frames of the same name."""
    robot = load(URDF, ".urdf")
    model = pin.buildModelFromXML(URDF)
    data = model.createData()
    for q in motion(robot)[0]:
        pin.framesForwardKinematics(model, data, pinocchio_q(model, q))
        for name in MASSES:
            theirs = data.oMf[model.getFrameId(name, pin.FrameType.BODY)].homogeneous
            np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, name), theirs, atol=1e-14)  # metres


def test_dynamics_of_a_branched_tree_is_pinocchios(load: Load) -> None:
    """Torques and regressor of a tree with all joint kinds agree with Pinocchio's, column by column."""
    robot = load(URDF, ".urdf")
    model = pin.buildModelFromXML(URDF)
    data = model.createData()
    for q, v, a in zip(*motion(robot), strict=True):
        at = pinocchio_q(model, q)
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), pin.rnea(model, data, at, v, a), atol=SAME)
        theirs = pin.computeJointTorqueRegressor(model, data, at, v, a)
        np.testing.assert_allclose(dynid.regressor(robot, q, v, a), theirs, atol=SAME)


def test_floating_base_is_pinocchios_free_flyer(load: Load) -> None:
    """base="floating" gives the same six base rows and joint rows as the same file on a free-flyer."""
    robot = load(URDF, ".urdf", base="floating")
    model = pin.buildModelFromXML(URDF, pin.JointModelFreeFlyer())
    data = model.createData()
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1, 1, robot.nq), rng.uniform(-1, 1, robot.nv), rng.uniform(-1, 1, robot.nv)
    q[3:7] /= np.linalg.norm(q[3:7])
    at = np.concatenate([q[:7], pinocchio_q(pin.buildModelFromXML(URDF), q[7:])])
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), pin.rnea(model, data, at, v, a), atol=SAME)
    assert robot.channels[:6] == ("base.fx", "base.fy", "base.fz", "base.mx", "base.my", "base.mz")
    assert robot.parameter_names[0] == "m_pedestal"


def test_instrumented_base_gives_the_wrench_under_a_base_that_stands_still(load: Load) -> None:
    """The six extra rows are what a free-flyer at rest would need to stay there, joint rows are untouched."""
    robot = load(URDF, ".urdf", base="instrumented")
    floating = robot.with_base("floating")
    for q, v, a in zip(*motion(robot, seed=2), strict=True):
        rest = np.zeros(6)
        still = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q]), np.concatenate([rest, v]), np.concatenate([rest, a])
        tau = dynid.inverse_dynamics(robot, q, v, a)
        np.testing.assert_allclose(tau, dynid.inverse_dynamics(floating, *still), atol=SAME)
        np.testing.assert_allclose(tau[6:], dynid.inverse_dynamics(robot.with_base("fixed"), q, v, a), atol=SAME)


def test_gravity_override_hangs_the_robot_upside_down(load: Load) -> None:
    """Gravity is the file's only until the user says how the robot is mounted."""
    robot, hung = load(URDF, ".urdf"), load(URDF, ".urdf", gravity=(0, 0, 9.81))
    q = motion(robot)[0]
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.81])
    held = dynid.dynamics.gravity_torque(robot, q)
    assert np.abs(held).max() > 10
    np.testing.assert_allclose(dynid.dynamics.gravity_torque(hung, q), -held, atol=SAME)


def test_limits_override_replaces_what_it_names_and_nothing_else(load: Load) -> None:
    """A cell narrows one range; the rest of that joint's limits and all other joints stay."""
    robot = load(URDF, ".urdf", limits={"right_wrist": {"position": (-0.2, 0.3)}, "left_shoulder": {"effort": 5}})
    assert robot.limits["right_wrist"] == dynid.robot.Limits(-0.2, 0.3, 4, 9)
    assert robot.limits["left_shoulder"] == dynid.robot.Limits(-math.inf, math.inf, 3, 5)
    assert robot.limits["lift"] == load(URDF, ".urdf").limits["lift"]


def test_file_friction_is_the_starting_value_of_the_terms_that_are_asked_for(load: Load) -> None:
    """Damping and friction of the file fill the drive parameters; nothing is modelled that was not asked for."""
    assert load(URDF, ".urdf").drives == ()
    robot = load(URDF, ".urdf", friction="viscous+coulomb+offset", rotor_inertia=True)
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    assert (value["fv_lift"], value["fc_lift"], value["off_lift"], value["Ia_lift"]) == (30, 12, 0, 0)
    assert (value["fv_right_shoulder"], value["fc_right_shoulder"]) == (0.7, 0)
    assert value["fv_left_shoulder"] == 0
    one_sided = load(URDF, ".urdf", friction={"lift": "viscous-asymmetric+coulomb-asymmetric"})
    assert [t.value for t in one_sided.drives] == [30, 30, 12, 12]
    assert [t.symbol for t in one_sided.drives] == ["fvp", "fvn", "fcp", "fcn"]


def test_shapes_and_foreign_elements_do_not_matter(load: Load) -> None:
    """Missing meshes, odd materials, plugins and a namespace change nothing: only masses and joints are read."""
    clutter = (
        '<visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry><material name="unknown"/></visual>'
        '<collision><geometry><box size="1 1"/></geometry></collision>'
    )
    noisy = URDF.replace("<inertial>", clutter + "<inertial>").replace(
        "</robot>", '<gazebo reference="x"><plugin/></gazebo><transmission/></robot>'
    )
    noisy = noisy.replace("<robot ", '<!-- a comment --><robot xmlns="http://example.org/urdf" ')
    plain, cluttered = load(URDF, ".urdf"), load(noisy, ".urdf")
    assert cluttered.coordinates == plain.coordinates
    np.testing.assert_array_equal(cluttered.parameters, plain.parameters)


def test_a_urdf_called_xml_is_still_a_urdf(load: Load) -> None:
    """The root element decides, not the name of the file."""
    assert load(URDF, ".xml").coordinates == load(URDF, ".urdf").coordinates


def test_fixed_joint_with_the_name_of_another_link_keeps_both_apart(load: Load) -> None:
    """Joints and links have separate names in URDF; a fixed joint called like a link must not move that link."""
    text = urdf(
        *(link(n, 1.0) for n in ("a", "b", "c", "d")),
        joint("j", "continuous", "a", "b"),
        joint("d", "fixed", "b", "c", '<origin xyz="1 0 0"/>'),
        joint("c", "fixed", "b", "d", '<origin xyz="0 2 0"/>'),
    )
    robot = load(text, ".urdf")
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0], "c")[:3, 3], [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0], "d")[:3, 3], [0, 2, 0], atol=1e-15)


def test_negative_mass_loads_and_is_reported(load: Load) -> None:
    """Identified files may hold inconsistent bodies; they load as written, and the check reports them."""
    robot = load(one_joint(mass=-1.0), ".urdf")
    assert robot.links[1].inertia[0] == -1
    assert dynid.inertia.inertia_violations(robot.links[1].inertia)[0] == "mass -1 kg is not positive"
    v, a = np.array([0.5]), np.array([2.0])
    Y = dynid.regressor(robot, [0.3], v, a)
    np.testing.assert_allclose(Y @ robot.parameters, dynid.inverse_dynamics(robot, [0.3], v, a), atol=1e-14)


def test_negative_friction_loads_as_written(load: Load) -> None:
    """An unconstrained estimate may have negative friction; its file must come back with the same values."""
    text = one_joint(more='<dynamics damping="-0.5" friction="-0.25"/>')
    robot = load(text, ".urdf", friction="viscous+coulomb")
    assert {t.name: t.value for t in robot.drives} == {"fv_j": -0.5, "fc_j": -0.25}


INERTIAL = (
    '<inertial><mass value="2"/><origin xyz="0.1 0.2 0.3"/>'
    '<inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def tree(*joints: tuple[str, str, str, str]) -> str:
    """Joints (name, kind, parent, child) on turned origins, between links that have an inertia, except world."""
    links = {end: None for joint in joints for end in joint[2:]}
    solid = "".join(f'<link name="{n}">{"" if n == "world" else INERTIAL}</link>' for n in links)
    return f'<robot name="r">{solid}' + "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>'
        '<origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/></joint>'
        for name, kind, parent, child in joints
    ) + "</robot>"  # fmt: skip


def test_a_floating_root_joint_is_a_floating_base(load: Load, tmp_path: Path) -> None:
    """Its dynamics are those of Pinocchio's free-flyer at the same place; below it a planar joint is a chain."""
    text = tree(("root", "floating", "world", "a"), ("j", "continuous", "a", "b"), ("p", "planar", "b", "c"))
    robot = load(text, ".urdf")
    assert (robot.base, robot.links[0].name) == ("floating", "a")
    assert robot.coordinates == ("j", "p_x", "p_y", "p_rz")
    assert against_pinocchio(tmp_path / "robot.urdf").largest < SAME


def test_a_floating_joint_inside_the_tree_is_a_chain(load: Load, tmp_path: Path) -> None:
    """Beside another moving joint it does not make the base float."""
    robot = load(tree(("j", "continuous", "world", "a"), ("f", "floating", "a", "b")), ".urdf")
    assert (robot.base, robot.n) == ("fixed", 7)
    assert "floating joint 'f' became" in robot.notes[0]
    assert against_pinocchio(tmp_path / "robot.urdf").largest < SAME


def test_a_follower_of_nobody_is_independent_and_said_so(load: Load) -> None:
    """Some files copy a hand with its prefix in one place only."""
    text = tree(("j", "continuous", "world", "a")).replace("<axis", '<mimic joint="thumb"/><axis')
    robot = load(text, ".urdf")
    assert robot.coordinates == ("j",)
    assert "'thumb'" in robot.notes[0]


def test_joints_are_locked_while_loading(load: Load) -> None:
    """lock= is Robot.locked."""
    text = tree(("j", "continuous", "world", "a"), ("k", "continuous", "a", "b"))
    assert load(text, ".urdf", lock={"k": 0.3}).coordinates == ("j",)


def test_reading_takes_steps_in_proportion_to_the_links(tmp_path: Path) -> None:
    """Lines that run, not seconds: 2000 links once took minutes, since each was compared with all others."""

    def lines(count: int) -> int:
        links = "".join(f'<link name="l{k}"/>' for k in range(count + 1))
        ends = '<parent link="l{0}"/><child link="l{1}"/><axis xyz="0 0 1"/>'
        joints = "".join(f'<joint name="j{k}" type="continuous">{ends.format(k, k + 1)}</joint>' for k in range(count))
        path = tmp_path / f"chain{count}.urdf"
        path.write_text(f'<robot name="chain">{links}{joints}</robot>')
        ran = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal ran
            ran += event == "line"
            return trace if "dynid" in frame.f_code.co_filename else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            dynid.load_robot(path)
        finally:
            sys.settrace(before)
        return ran

    lines(5)  # imports
    assert lines(240) < 2.5 * lines(120)
