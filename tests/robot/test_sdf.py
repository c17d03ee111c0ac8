"""SDF files, held against the same robot as URDF and against a second reading of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
import dynid.robot
from dynid.errors import ModelError
from tests.support.compare import difference
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_motion

INERTIAL = """<inertial><pose>0.1 0 0.2 0.3 0.1 -0.2</pose><mass>{}</mass>
  <inertia><ixx>0.1</ixx><ixy>0.01</ixy><iyy>0.12</iyy><izz>0.09</izz></inertia></inertial>"""
URDF_INERTIAL = """<inertial><origin xyz="0.1 0 0.2" rpy="0.3 0.1 -0.2"/><mass value="{}"/>
  <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.12" iyz="0" izz="0.09"/></inertial>"""

# Poses relative to links, joints, frames and the model; axes in other frames; a fixed link; a follower.
SDF = f"""<?xml version="1.0"?>
<sdf version="1.11">
  <model name="arm">
    <joint name="to_world" type="fixed"><parent>world</parent><child>base</child></joint>
    <link name="base">{INERTIAL.format(3)}</link>
    <frame name="mount" attached_to="base"><pose>0 0 0.1 0 0 0.5</pose></frame>
    <link name="upper"><pose relative_to="mount">0.1 0.2 0.3 0.4 0.5 0.6</pose>{INERTIAL.format(2)}</link>
    <joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
      <axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>30</effort><velocity>-1</velocity></limit>
        <dynamics><damping>0.3</damping><friction>0.2</friction></dynamics></axis></joint>
    <link name="fore"><pose relative_to="shoulder">0 0 0.5 0 0.2 0</pose>{INERTIAL.format(1)}</link>
    <joint name="elbow" type="continuous"><parent>upper</parent><child>fore</child>
      <pose relative_to="upper" degrees="true">0 0 0.5 0 90 0</pose>
      <axis><xyz expressed_in="upper">1 1 0</xyz></axis></joint>
    <link name="slider"><pose relative_to="fore" rotation_format="quat_xyzw">0 0.1 0 0 0 0.6 0.8</pose>
      {INERTIAL.format(0.5)}</link>
    <joint name="slide" type="prismatic"><parent>fore</parent><child>slider</child>
      <axis><xyz expressed_in="__model__">0 0 1</xyz><limit><lower>-1e16</lower><upper>0.4</upper></limit>
        <mimic joint="shoulder" axis="axis"><multiplier>2</multiplier><offset>0.3</offset><reference>0.1</reference>
        </mimic></axis></joint>
    <link name="tool"><pose relative_to="slider">0 0 0.2 0 0 0</pose>{INERTIAL.format(0.2)}</link>
    <joint name="flange" type="fixed"><parent>slider</parent><child>tool</child></joint>
    <frame name="tip" attached_to="tool"><pose>0 0 0.05 0 0 0</pose></frame>
  </model>
</sdf>
"""


def write(folder: Path, text: str, name: str = "arm.sdf") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_way_to_give_a_pose(tmp_path: Path) -> None:
    """The same arm with the poses worked out by hand gives the same torques."""
    robot = dynid.load_robot(write(tmp_path, SDF), friction="viscous+coulomb")
    assert [x.name for x in robot.links] == ["base", "upper", "fore", "slider"]
    assert (robot.base, robot.coordinates) == ("fixed", ("shoulder", "elbow"))
    assert robot.limits["shoulder"] == dynid.robot.Limits(-1, 2, np.inf, 30)
    assert robot.limits["elbow"] == dynid.robot.Limits()
    assert robot.joints[2].limits == dynid.robot.Limits(upper=0.4)
    mimic = robot.joints[2].mimic
    assert mimic is not None and (mimic.leader, mimic.ratio) == ("shoulder", 2.0)
    assert mimic.offset == pytest.approx(0.1)
    assert [(m.link, m.into) for m in robot.merged] == [("tool", "slider")]
    values = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    assert (values["fv_shoulder"], values["fc_shoulder"], values["fv_elbow"]) == (0.3, 0.2, 0.0)

    from dynid.robot.spatial import inverse_placement, placement, rpy_rotation

    def pose(x: float, y: float, z: float, *rpy: float) -> np.ndarray:
        return placement(rpy_rotation(*rpy), (x, y, z))

    upper = pose(0, 0, 0.1, 0, 0, 0.5) @ pose(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    fore = upper @ pose(0, 0, 0.5, 0, 0.2, 0)
    slider = fore @ pose(0, 0.1, 0, 0, 0, 2 * np.arctan2(0.6, 0.8))
    elbow = upper @ pose(0, 0, 0.5, 0, np.pi / 2, 0)
    still = np.zeros(2)
    start = dict(zip(("upper", "fore", "slider"), (upper, fore, slider), strict=True))
    # The follower stands at its offset, along the z of the model.
    start["slider"] = slider.copy()
    start["slider"][:3, 3] += [0, 0, mimic.offset]
    for name, place in start.items():
        np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, still, name), place, atol=1e-12)
    tip = start["slider"] @ pose(0, 0, 0.25, 0, 0, 0)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, still, "tip"), tip, atol=1e-12)
    axis = elbow[:3, :3].T @ upper[:3, :3] @ np.array([1, 1, 0]) / np.sqrt(2)
    np.testing.assert_allclose(robot.joints[1].axis, axis, atol=1e-12)
    np.testing.assert_allclose(robot.joints[1].placement, inverse_placement(upper) @ elbow, atol=1e-12)


def test_the_same_arm_as_urdf(tmp_path: Path) -> None:
    """Where SDF says nothing that URDF cannot, both readers give one robot."""
    urdf = f"""<robot name="arm"><link name="base">{URDF_INERTIAL.format(3)}</link>
      <link name="upper">{URDF_INERTIAL.format(2)}</link><link name="tool">{URDF_INERTIAL.format(0.2)}</link>
      <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/>
        <origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="0 1 1"/><dynamics damping="2" friction="1"/></joint>
      <joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/><origin xyz="0 0 1"/></joint>
      </robot>"""
    sdf = f"""<sdf version="1.7"><world name="lab"><gravity>0 0 -9.81</gravity><include><uri>ground</uri></include>
      <model name="arm"><static>1</static>
      <link name="base">{INERTIAL.format(3)}</link>
      <link name="upper"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>{INERTIAL.format(2)}</link>
      <link name="tool"><pose relative_to="upper">0 0 1 0 0 0</pose>{INERTIAL.format(0.2)}</link>
      <joint name="shoulder" type="continuous"><parent>base</parent><child>upper</child><axis><xyz>0 1 1</xyz>
        <dynamics><damping>2</damping><friction>1</friction></dynamics></axis></joint>
      <joint name="flange" type="fixed"><parent>upper</parent><child>tool</child></joint>
      </model></world></sdf>"""
    one, two = (
        dynid.load_robot(write(tmp_path, text, name), friction="viscous+coulomb", base="instrumented")
        for text, name in ((urdf, "arm.urdf"), (sdf, "arm.sdf"))
    )
    assert one.parameter_names == two.parameter_names
    np.testing.assert_allclose(two.parameters, one.parameters, atol=1e-14)
    motion = random_motion(one, 0, 10)
    assert difference(dynid.inverse_dynamics(two, *motion), dynid.inverse_dynamics(one, *motion)) < 1e-12


def test_nested_models_and_old_axes(tmp_path: Path) -> None:
    """Scoped names, poses of inner models, axes that older versions give in the frame of the model."""
    text = f"""<sdf version="1.6"><model name="outer"><link name="base">{INERTIAL.format(1)}</link>
      <model name="hand"><pose>0 0 1 0 0 1.5707963267948966</pose>
        <link name="palm"><pose>0.5 0 0 0 0 0</pose>{INERTIAL.format(1)}</link>
        <link name="finger"><pose>0.5 0 0.1 1.5707963267948966 0 0</pose>{INERTIAL.format(0.1)}</link>
        <joint name="bend" type="revolute"><parent>palm</parent><child>finger</child>
          <axis><xyz>0 0 1</xyz><use_parent_model_frame>true</use_parent_model_frame></axis></joint>
      </model>
      <joint name="wrist" type="revolute"><parent>base</parent><child>hand::palm</child>
        <axis><xyz>1 0 0</xyz></axis></joint>
      </model></sdf>"""
    robot = dynid.load_robot(write(tmp_path, text))
    assert (robot.base, robot.coordinates) == ("floating", ("wrist", "hand::bend"))
    assert [x.name for x in robot.links] == ["base", "hand::palm", "hand::finger"]
    fixed = robot.with_base("fixed")
    palm = dynid.dynamics.frame_placement(fixed, np.zeros(2), "hand::palm")
    np.testing.assert_allclose(palm[:3, 3], [0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(robot.joints[1].axis, [0, 1, 0], atol=1e-12)


def test_gravity_is_that_of_the_bases_axes(tmp_path: Path) -> None:
    """A model on the wall feels it from the side; in a world of the format's own gravity, of that size."""
    text = f"""<sdf version="1.8"><world name="w"><model name="arm"><pose>1 2 3 0 1.5707963267948966 0</pose>
      <link name="base">{INERTIAL.format(1)}</link><link name="upper">{INERTIAL.format(1)}</link>
      <joint name="f" type="fixed"><parent>world</parent><child>base</child></joint>
      <joint name="j" type="revolute"><parent>base</parent><child>upper</child></joint></model></world></sdf>"""
    robot = dynid.load_robot(write(tmp_path, text))
    np.testing.assert_allclose(robot.gravity, [9.8, 0, 0], atol=1e-12)
    turning = text.replace('name="f" type="fixed"', 'name="f" type="revolute"')
    robot = dynid.load_robot(write(tmp_path, turning))
    assert [x.name for x in robot.links] == ["world", "base", "upper"]
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.8])
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0, 0], "base")[:3, 3], [1, 2, 3], atol=1e-12)


def test_the_world_may_be_written_as_a_link(tmp_path: Path) -> None:
    """Old files do so; the robot is the same."""
    text = f"""<sdf version="1.6"><model name="arm"><pose>1 2 3 3.14 0 0</pose>HERE
      <link name="base"><pose>0 0 1 0 0 0</pose>{INERTIAL.format(1)}</link>
      <joint name="lift" type="prismatic"><parent>world</parent><child>base</child>
      <axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""
    robots = [
        dynid.load_robot(write(tmp_path, text.replace("HERE", here)))
        for here in ("", "<link name='world'/>", f"<link name='world'>{INERTIAL.format(5)}</link>")
    ]
    motion = random_motion(robots[0], 5)
    torques = [dynid.inverse_dynamics(robot, *motion) for robot in robots]
    assert robots[1].base == "fixed" and np.array_equal(torques[0], torques[1]) and np.array_equal(*torques[1:])


def test_a_link_without_inertia_weighs_a_kilogram(tmp_path: Path) -> None:
    """So the format has it."""
    text = """<sdf version="1.9"><model name="m"><link name="a"/><link name="b"><inertial/></link>
      <joint name="j" type="revolute"><parent>a</parent><child>b</child></joint></model></sdf>"""
    robot = dynid.load_robot(write(tmp_path, text))
    for link in robot.links:
        np.testing.assert_array_equal(link.inertia, [1, 0, 0, 0, 1, 0, 1, 0, 0, 1])


JOINT = '<joint name="j" type="revolute"><parent>a</parent><child>b</child></joint>'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<mujoco/>", (ModelError, "", "file_format")),
        ("<sdf/>", (ModelError, "", "file_damaged")),
        ('<sdf version="1.7"/>', (ModelError, "", "missing_data")),
        ('<sdf version="1.7"><model name="m"/></sdf>', (ModelError, "", "missing_data")),
        (f'<model name="m"><link name="a"/>{JOINT}</model>', (ModelError, "", "unknown_name")),
        (
            f'<model name="m"><link name="a"/><link name="b"/>{JOINT.replace("revolute", "rope")}</model>',
            (ModelError, "", "unsupported"),
        ),
        (f'<model name="m"><link name="a"/><link name="a"/>{JOINT}</model>', (ModelError, "", "duplicate")),
        (f'<model name="m"><link name="a"/><link name="b"/><link name="c"/>{JOINT}</model>', (ModelError, "")),
        (
            f'<model name="m"><include><uri>x</uri></include><link name="a"/>{JOINT}</model>',
            (ModelError, "", "unsupported"),
        ),
        (f'<model name="m" placement_frame="a"><link name="a"/>{JOINT}</model>', (ModelError, "", "unsupported")),
        ('<model name="m"><link name="a"><pose>1 2</pose></link></model>', (ModelError, "", "file_damaged")),
        (
            '<model name="m"><link name="a"><pose frame="b">0 0 0 0 0 0</pose></link></model>',
            (ModelError, "", "unsupported"),
        ),
        (
            '<model name="m"><link name="a"><inertial auto="true"/></link></model>',
            (ModelError, "inertia_from", "missing_data"),
        ),
        (
            '<model name="m"><link name="a"><pose relative_to="b"/></link>'
            f'<link name="b"><pose relative_to="a"/></link>{JOINT}</model>',
            (ModelError, ""),
        ),
        (
            f'<model name="m"><link name="a"/><link name="b"><pose relative_to="c"/></link>{JOINT}</model>',
            (ModelError, "", "unknown_name"),
        ),
        (
            '<model name="m"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent>a</parent>'
            "<child>b</child><axis><xyz>0 0 0</xyz></axis></joint></model>",
            (ModelError, ""),
        ),
        (
            '<model name="m"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent>a</parent>'
            '<child>b</child><axis><mimic joint="k"/></axis></joint></model>',
            (ModelError, ""),
        ),
    ],
)
def test_errors_name_the_culprit(tmp_path: Path, text: str, error: Error) -> None:
    """One plain sentence each."""
    whole = f'<sdf version="1.7">{text}</sdf>' if text.startswith("<model") else text
    with expect_error(*error):
        dynid.load_robot(write(tmp_path, whole))


def test_several_robots_in_one_world_are_refused(tmp_path: Path) -> None:
    """The ground beside a robot is none."""
    robot = f'<model name="m"><link name="a"/><link name="b"/>{JOINT}</model>'
    ground = '<model name="ground"><static>true</static><link name="g"/></model>'
    one = f'<sdf version="1.7"><world name="w">{ground}{robot}</world></sdf>'
    assert dynid.load_robot(write(tmp_path, one)).coordinates == ("j",)
    with expect_error(ModelError, code="unsupported"):
        dynid.load_robot(write(tmp_path, one.replace(ground, robot)))


def test_joints_with_more_freedom_and_springs(tmp_path: Path) -> None:
    """Ball, universal and screw joints against Pinocchio models of the same; a spring is a drive term."""
    kinds = {
        "ball": ("", pin.JointModelSpherical()),
        "universal": (
            "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>1 0 0</xyz></axis2>",
            pin.JointModelUniversal(np.array([0.0, 0, 1]), np.array([1.0, 0, 0])),
        ),
        "screw": (
            f"<axis><xyz>0 0 1</xyz></axis><screw_thread_pitch>{0.2 * np.pi}</screw_thread_pitch>",
            pin.JointModelHZ(0.1),
        ),
    }
    for kind, (inside, joint) in kinds.items():
        text = (
            '<sdf version="1.9"><model name="m"><link name="b"><pose>0.1 0.2 0.3 0 0 0</pose></link>'
            '<joint name="fix" type="revolute"><parent>world</parent><child>b</child><axis><xyz>0 1 0</xyz><dynamics>'
            "<spring_stiffness>5</spring_stiffness><spring_reference>0.3</spring_reference></dynamics></axis></joint>"
            '<link name="c"><pose relative_to="j">0.1 0.2 0.3 0 0 0</pose></link>'
            f'<joint name="j" type="{kind}"><pose relative_to="b">0 0 0.5 0 0 0</pose><parent>b</parent>'
            f"<child>c</child>{inside}</joint></model></sdf>"
        )
        robot = dynid.load_robot(write(tmp_path, text))
        model = pin.Model()
        one = pin.Inertia(1.0, np.zeros(3), np.eye(3))
        i = model.addJoint(0, pin.JointModelRY(), pin.SE3(np.eye(3), np.array([0.1, 0.2, 0.3])), "fix")
        model.appendBodyToJoint(i, one, pin.SE3.Identity())
        i = model.addJoint(i, joint, pin.SE3(np.eye(3), np.array([0, 0, 0.5])), "j")
        model.appendBodyToJoint(i, one, pin.SE3(np.eye(3), np.array([0.1, 0.2, 0.3])))
        same = dynid.Robot.from_pinocchio(model)
        assert robot.n == model.nv
        q, v, a = random_motion(robot, 0)
        spring = np.zeros_like(q)
        spring[:, 0] = 5.0 * (q[:, 0] - 0.3)
        theirs = dynid.inverse_dynamics(same, q, v, a)
        if kind == "ball":  # the middle axis of the three lies along the body, the same in both
            assert robot.coordinates == same.coordinates
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), theirs + spring, atol=1e-11)


FOURBAR = """<sdf version="1.9"><model name="m">
  <link name="crank"><inertial><pose>0.1 0 0 0 0 0</pose><mass>2</mass></inertial></link>
  <link name="coupler"><pose>0 0 0.3 0 0 0</pose></link>
  <link name="rocker"><pose>0.5 0 0 0 0 0</pose><inertial><pose>0 0 0.2 0 0 0</pose><mass>3</mass></inertial></link>
  <joint name="c" type="revolute"><parent>world</parent><child>crank</child><axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="d" type="revolute"><parent>crank</parent><child>coupler</child><axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="e" type="revolute"><parent>world</parent><child>rocker</child><axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="pin" type="KIND"><pose relative_to="rocker">0.1 0 0.4 0 0 0</pose><parent>rocker</parent>
    <child>coupler</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>"""


@pytest.mark.parametrize("kind", ["revolute", "ball"])
def test_a_second_parent_closes_a_loop(tmp_path: Path, kind: str) -> None:
    """A four-bar: its torque is that of the open chain projected on the motion of the closed one."""
    robot = dynid.load_robot(write(tmp_path, FOURBAR.replace("KIND", kind)))
    tree = dynid.load_robot(write(tmp_path, FOURBAR.replace("KIND", kind)), ignore_loops=True)
    assert (robot.coordinates, robot.passive, tree.n) == (("c",), ("d", "e"), 3)
    assert "'pin' closes a loop" in tree.notes[0]
    h = 1e-5
    full = dynid.dynamics.assemble(robot, [[-h], [0.0], [h]], [[1.0]] * 3, [[0.5]] * 3)
    slope = (full.q[2] - full.q[0]) / (2 * h)
    tau = dynid.inverse_dynamics(tree, full.q[1], full.v[1], full.a[1]) @ slope
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, [0.0], [1.0], [0.5]), [tau], rtol=1e-8)
    pins = [dynid.dynamics.frame_placement(tree, full.q[2], link) for link in ("coupler", "rocker")]
    at = [(0.6, 0, 0.1, 1), (0.1, 0, 0.4, 1)]  # the pin in both links
    np.testing.assert_allclose(pins[0] @ at[0], pins[1] @ at[1], atol=1e-10)


SLIDER_CRANK = """<sdf version="1.9"><model name="m">
  <link name="crank"><inertial><pose>0.1 0 0 0 0 0</pose><mass>2</mass></inertial></link>
  <link name="coupler"><pose>0 0 0.3 0 0 0</pose></link>
  <link name="piston"><pose>0.4 0 0 0 0 0</pose></link>
  <joint name="c" type="revolute"><parent>world</parent><child>crank</child><axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="d" type="revolute"><parent>crank</parent><child>coupler</child><axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="e" type="revolute"><parent>coupler</parent><child>piston</child><axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="slide" type="prismatic"><parent>world</parent><child>piston</child><axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""


def test_a_slide_closes_a_loop(tmp_path: Path) -> None:
    """The slide of a slider-crank follows its closed form."""
    robot = dynid.load_robot(write(tmp_path, SLIDER_CRANK))
    assert (robot.coordinates, robot.passive) == (("c",), ("d", "e", "slide"))
    q = np.array([-0.5, 0.0, 0.3, 0.8])
    motion = dynid.dynamics.assemble(robot, q[:, None])
    along = 0.3 * np.sin(q) + np.sqrt(0.5**2 - (0.3 * np.cos(q)) ** 2)
    np.testing.assert_allclose(motion.q[:, 3], along - 0.4, atol=1e-12)


def test_loops_that_hold_a_joint_still_are_refused(tmp_path: Path) -> None:
    """A slide at a right angle to the line between two hinges: the loop closes, but is rigid."""
    joints = [("a", "revolute", "base", "one"), ("b", "revolute", "base", "two"), ("s", "prismatic", "one", "two")]
    text = "".join(
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"<axis><xyz>{'1 0 0' if kind == 'prismatic' else '0 1 0'}</xyz></axis></joint>"
        for name, kind, parent, child in (*joints, ("free", "revolute", "two", "tip"))
    )
    heights = {"base": 0.0, "one": 0.1, "two": 0.4, "tip": 0.6}
    links = "".join(f'<link name="{name}"><pose>0 0 {z} 0 0 0</pose></link>' for name, z in heights.items())
    with expect_error(ModelError, "posture"):
        dynid.load_robot(write(tmp_path, f'<sdf version="1.9"><model name="m">{links}{text}</model></sdf>'))


@pytest.mark.parametrize(("axis", "sign"), [("0 1 0", -1.0), ("0 -1 0", 1.0)])
def test_a_gearbox_is_a_mimic_joint(tmp_path: Path, axis: str, sign: float) -> None:
    """The angle of the child is minus the ratio times that of the parent, both on the reference body."""
    joint = (
        '<joint name="{0}" type="revolute"><parent>a</parent><child>{1}</child><axis><xyz>0 1 0</xyz></axis></joint>'
    )
    gear = (
        '<joint name="g" type="gearbox"><parent>rotor</parent><child>arm</child><gearbox_ratio>0.04</gearbox_ratio>'
        "<gearbox_reference_body>a</gearbox_reference_body><axis><xyz>0 1 0</xyz></axis>"
        f"<axis2><xyz>{axis}</xyz></axis2></joint>"
    )
    inside = (
        '<link name="a"/><link name="rotor"/><link name="arm"/>' + joint.format("m", "rotor") + joint.format("j", "arm")
    )
    robot = dynid.load_robot(write(tmp_path, f'<sdf version="1.9"><model name="m">{inside}{gear}</model></sdf>'))
    assert robot.coordinates == ("m",)
    (mimic,) = (j.mimic for j in robot.joints if j.name == "j")
    assert mimic is not None and (mimic.leader, mimic.ratio) == ("m", sign * 0.04)
