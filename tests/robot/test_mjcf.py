"""MJCF files against Pinocchio where it reads them right, and against plainer files that mean the same where not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
import dynid.robot
from dynid import Robot
from tests.support.robot_files import Load, motion

SAME = 1e-12  # two codes in double precision, torques of a few tens of N m

BODY = '<inertial mass="2" pos="0.1 0.1 0.2" quat="0.9 0.1 0.2 0.3" diaginertia="0.03 0.02 0.04"/>'
LIGHT = '<inertial mass="0.7" pos="0.1 -0.1 0.05" fullinertia="0.03 0.02 0.04 0.001 0.002 0.003"/>'
RADIAN = '<compiler angle="radian"/>'

# One body on three joints, with anchors off its frame, and an arm behind it.
COMPOSITE = f"""
<mujoco model="composite">{RADIAN}
<worldbody>
  <body name="a" pos="0.1 0.2 0.3" quat="0.8 0.6 0 0">
    <joint name="yaw" type="hinge" axis="0 0 1" pos="0.05 0.02 0.01" range="-1 1" armature="0.1" damping="0.5"/>
    <joint name="rail" type="slide" axis="1 1 0" range="-0.2 0.4" armature="0.2" frictionloss="0.7"/>
    <joint name="roll" type="hinge" axis="0 1 1" pos="-0.1 0 0.03" armature="0.3" actuatorfrcrange="-8 9"/>
    {BODY}
    <site name="probe" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3"/>
    <body name="b" pos="0.3 0 0">
      <joint name="elbow" axis="1 0 0" pos="0.01 0.02 0.03"/>
      {LIGHT}
      <body name="c" pos="0 0.1 0" euler="0.1 0.2 0.3">{BODY}</body>
    </body>
  </body>
</worldbody>
</mujoco>
"""


@pytest.fixture(autouse=True, params=["MuJoCo", "light"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test of this file holds with MuJoCo's compiler as the reader and without it."""
    if request.param == "light":
        monkeypatch.setattr("dynid.robot.mjcf.find_spec", lambda name: None)


def mjcf(world: str, before: str = RADIAN, after: str = "") -> str:
    return f'<mujoco model="test">{before}<worldbody>{world}</worldbody>{after}</mujoco>'


def arm(more: str = "", inside: str = "") -> str:
    """A hinge and a slide; `more` are attributes of the hinge, `inside` stands in the second body."""
    return (
        f'<body name="upper" pos="0 0 0.5" euler="0.3 0.2 0.1"><joint name="hinge" axis="0 1 0" {more}/>{BODY}'
        f'<body name="lower" pos="0.1 0.2 0.3"><joint name="slide" type="slide" axis="1 0 0"/>{LIGHT}{inside}'
        "</body></body>"
    )


def assert_same_dynamics(ours: Robot, other: Robot) -> None:
    assert ours.coordinates == other.coordinates
    q, v, a = motion(ours)
    np.testing.assert_allclose(dynid.inverse_dynamics(ours, q, v, a), dynid.inverse_dynamics(other, q, v, a), atol=SAME)


def pinocchio_model(text: str, path: Path) -> pin.Model:
    path.write_text(text)
    return pin.buildModelFromMJCF(str(path))


@pytest.mark.parametrize("text", [COMPOSITE, mjcf(arm())], ids=["several joints in a body", "arm"])
def test_torques_and_frames_are_pinocchios(load: Load, tmp_path: Path, text: str) -> None:
    """Torques, body frames and sites agree with Pinocchio's reading, armature included."""
    robot = load(text, ".xml", rotor_inertia=True)
    model = pinocchio_model(text, tmp_path / "oracle.xml")
    data = model.createData()
    frames = [f for f in model.frames if f.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME)]
    assert len(frames) >= 2
    for q, v, a in zip(*motion(robot), strict=True):
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), pin.rnea(model, data, q, v, a), atol=SAME)
        pin.framesForwardKinematics(model, data, q)
        for frame in frames:
            theirs = data.oMf[model.getFrameId(frame.name, frame.type)].homogeneous
            np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, frame.name), theirs, atol=1e-14)


def test_free_base_is_pinocchios_free_flyer(load: Load, tmp_path: Path) -> None:
    """A free joint makes a floating robot, whatever pose its body starts in."""
    text = mjcf(f'<body name="drone"><freejoint/>{BODY}{arm()}</body>')
    robot = load(text, ".xml")
    model = pinocchio_model(text, tmp_path / "oracle.xml")
    assert (robot.base, robot.nq, robot.nv, robot.links[0].name) == ("floating", 9, 8, "drone")
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, 9), rng.uniform(-1, 1, 8), rng.uniform(-1, 1, 8)
    q[3:7] /= np.linalg.norm(q[3:7])
    tau = pin.rnea(model, model.createData(), q, v, a)
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), tau, atol=SAME)
    moved = load(text.replace('name="drone"', 'name="drone" pos="1 2 3" euler="1 0 0"'), ".xml")
    np.testing.assert_allclose(dynid.inverse_dynamics(moved, q, v, a), tau, atol=SAME)


def test_joints_of_one_body_keep_names_limits_and_armature(load: Load) -> None:
    """Each joint of a body is a joint of its own; the links between them have no parameters."""
    robot = load(COMPOSITE, ".xml", friction="viscous+coulomb", rotor_inertia=True)
    assert robot.coordinates == ("yaw", "rail", "roll", "elbow")
    assert robot.limits["yaw"] == dynid.robot.Limits(-1, 1)
    assert robot.limits["rail"] == dynid.robot.Limits(-0.2, 0.4)
    assert robot.limits["roll"] == dynid.robot.Limits(effort=8)  # the weaker direction
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    assert [value[f"Ia_{n}"] for n in robot.coordinates] == [0.1, 0.2, 0.3, 0.0]
    assert (value["fv_yaw"], value["fc_rail"]) == (0.5, 0.7)
    assert {p.owner for p in robot.layout if p.inertial} == {"a", "b"}
    assert [m.link for m in robot.merged] == ["c"]


def test_masses_stand_on_the_bodies_they_were_written_for(load: Load) -> None:
    """Mass and centre of mass are read back in MuJoCo's body frame, by name, fixed children added."""
    robot = load(COMPOSITE, ".xml")
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    assert value["m_a"] == 2
    assert value["m_b"] == pytest.approx(2.7)
    np.testing.assert_allclose([value[f"{s}_a"] for s in ("mx", "my", "mz")], [0.2, 0.2, 0.4], atol=1e-15)


def test_degrees_are_the_default_and_do_not_touch_slides(load: Load) -> None:
    """MuJoCo's angles are degrees unless told otherwise; a slide's range and reference stay metres."""
    text = arm('range="-30 60" ref="90"').replace('type="slide"', 'type="slide" range="-0.5 0.5" ref="0.2"')
    robot = load(mjcf(text.replace('euler="0.3 0.2 0.1"', ""), before=""), ".xml")
    assert robot.limits["hinge"].lower == pytest.approx(-np.pi / 6)
    assert robot.limits["slide"] == dynid.robot.Limits(-0.5, 0.5)
    plain = load(mjcf(arm().replace('euler="0.3 0.2 0.1"', "")), ".xml")
    q, v, a = motion(robot)
    shifted = dynid.inverse_dynamics(plain, q - [np.pi / 2, 0.2], v, a)
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), shifted, atol=SAME)


def test_range_counts_only_where_it_limits(load: Load) -> None:
    """limited="false" and autolimits="false" leave a range without effect, as in MuJoCo."""
    assert load(mjcf(arm('range="-1 1"')), ".xml").limits["hinge"] == dynid.robot.Limits(-1, 1)
    assert load(mjcf(arm('range="-1 1" limited="false"')), ".xml").limits["hinge"] == dynid.robot.Limits()
    manual = '<compiler angle="radian" autolimits="false"/>'
    assert load(mjcf(arm('range="-1 1"'), manual), ".xml").limits["hinge"] == dynid.robot.Limits()
    assert load(mjcf(arm('range="-1 1" limited="true"'), manual), ".xml").limits["hinge"] == dynid.robot.Limits(-1, 1)


def test_gravity_comes_from_the_file(load: Load) -> None:
    """A file that leans its world, or switches gravity off, is believed."""
    np.testing.assert_array_equal(load(mjcf(arm()), ".xml").gravity, [0, 0, -9.81])
    leaning = load(mjcf(arm(), RADIAN + '<option gravity="1 2 -3"/>'), ".xml")
    np.testing.assert_array_equal(leaning.gravity, [1, 2, -3])
    off = load(mjcf(arm(), RADIAN + '<option gravity="1 2 -3"><flag gravity="disable"/></option>'), ".xml")
    np.testing.assert_array_equal(off.gravity, [0, 0, 0])


def test_pose_of_a_pedestal_tilts_the_robot(load: Load) -> None:
    """A body without joints under the arm moves and turns it; its mass belongs to the base."""
    robot = load(mjcf(f'<body name="pedestal" pos="1 2 3" euler="0.5 0 0">{BODY}{arm()}</body>'), ".xml")
    turned = np.array([[1, 0, 0], [0, np.cos(0.5), np.sin(0.5)], [0, -np.sin(0.5), np.cos(0.5)]]) @ [0, 0, -9.81]
    assert_same_dynamics(robot, load(mjcf(arm()), ".xml", gravity=turned))
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0, 0.0], "pedestal")[:3, 3], [1, 2, 3])
    assert robot.links[0].name == "world"
    assert robot.links[0].inertia[0] == 2
    assert robot.merged[0].link == "pedestal"


def test_two_arms_in_one_world_are_one_robot(load: Load) -> None:
    """Several bodies may hang on the world; none is dropped."""
    other = arm().replace("upper", "upper2").replace("lower", "lower2").replace("hinge", "hinge2")
    other = other.replace('name="slide"', 'name="slide2"')
    robot = load(mjcf(arm() + other), ".xml")
    assert robot.coordinates == ("hinge", "slide", "hinge2", "slide2")
    single = load(mjcf(arm()), ".xml")
    q, v, a = motion(single)
    tau = dynid.inverse_dynamics(robot, np.hstack([q, q]), np.hstack([v, v]), np.hstack([a, a]))
    np.testing.assert_allclose(tau, np.tile(dynid.inverse_dynamics(single, q, v, a), 2), atol=SAME)


def test_defaults_are_inherited_as_mujoco_does(load: Load) -> None:
    """Global defaults, nested classes, childclass and class of an element, the nearest one winning."""
    defaults = (
        f'{RADIAN}<default><joint armature="0.5" axis="0 1 0"/><default class="rail"><joint type="slide" axis="1 0 0"/>'
        '<default class="heavy"><joint armature="0.9"/></default></default></default>'
    )
    world = (
        f'<body name="a"><joint name="j1"/>{BODY}<body name="b" pos="0.1 0 0" childclass="rail"><joint name="j2"/>'
        f'{LIGHT}<body name="c" pos="0.2 0 0"><joint name="j3" class="heavy"/>{LIGHT}</body></body></body>'
    )
    plain = (
        f'<body name="a"><joint name="j1" armature="0.5" axis="0 1 0"/>{BODY}<body name="b" pos="0.1 0 0">'
        f'<joint name="j2" type="slide" axis="1 0 0" armature="0.5"/>{LIGHT}<body name="c" pos="0.2 0 0">'
        f'<joint name="j3" type="slide" axis="1 0 0" armature="0.9"/>{LIGHT}</body></body></body>'
    )
    robot = load(mjcf(world, defaults), ".xml", rotor_inertia=True)
    assert_same_dynamics(robot, load(mjcf(plain), ".xml", rotor_inertia=True))
    assert [t.value for t in robot.drives] == [0.5, 0.5, 0.9]


def test_includes_and_frames_read_like_the_flat_file(load: Load, tmp_path: Path) -> None:
    """Splitting a file, or grouping elements in a <frame>, changes nothing."""
    end = f'<joint name="wrist" axis="0 1 0"/>{LIGHT}'
    flat = load(mjcf(arm(inside=f'<body name="hand" pos="1.5 0.2 0.3">{end}</body>')), ".xml")
    (tmp_path / "hand.xml").write_text(
        f'<mujocoinclude><body name="hand" pos="0.5 0.2 0.3">{end}</body></mujocoinclude>'
    )
    split = load(mjcf(arm(inside='<frame pos="1 0 0"><include file="hand.xml"/></frame>')), ".xml")
    assert_same_dynamics(split, flat)


@pytest.mark.parametrize(
    "written",
    [
        'quat="0.5 0.5 0.5 0.5"',
        'axisangle="2 2 2 2.0943951023931953"',
        'euler="1.5707963267948966 1.5707963267948966 0"',
        'xyaxes="0 3 0 0 1 1"',
    ],
)
def test_every_way_to_write_an_orientation(load: Load, written: str) -> None:
    """Four spellings of the turn that takes x to y, y to z and z to x."""
    robot = load(mjcf(f'<body name="a" {written}><joint name="j"/>{BODY}</body>'), ".xml")
    turn = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0], "a")[:3, :3], turn, atol=1e-15)


def test_zaxis_and_outer_euler_angles(load: Load) -> None:
    """zaxis is the smallest rotation of z; capital letters of eulerseq turn about the axes of the parent."""
    robot = load(mjcf(f'<body name="a" zaxis="3 0 0"><joint name="j"/>{BODY}</body>'), ".xml")
    turn = dynid.dynamics.frame_placement(robot, [0.0], "a")[:3, :3]
    np.testing.assert_allclose(turn, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-15)
    outer = '<compiler angle="radian" eulerseq="XYZ"/>'
    robot = load(mjcf(f'<body name="a" euler="0.1 0.2 0.3"><joint name="j"/>{BODY}</body>', outer), ".xml")
    fixed_axes = pin.rpy.rpyToMatrix(0.1, 0.2, 0.3)  # Rz Ry Rx
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0], "a")[:3, :3], fixed_axes, atol=1e-15)


def test_shapes_give_the_inertia_where_none_is_written(load: Load) -> None:
    """Bodies without an inertial element weigh what their shapes weigh: density times volume, or a given mass."""
    shapes = (
        '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/><geom type="sphere" size="0.1" mass="2" pos="0 0.1 0"/>'
        '<geom type="cylinder" fromto="0 0 0.1 0 0 0.5" size="0.05" density="500"/>'
        '<geom type="mesh" mesh="skin" mass="0"/>'
    )
    robot = load(mjcf(f'<body name="a"><joint name="j"/>{shapes}</body>'), ".xml")
    box = pin.SE3(np.eye(3), np.array([0.1, 0, 0])).act(pin.Inertia.FromBox(48.0, 0.2, 0.4, 0.6))
    ball = pin.SE3(np.eye(3), np.array([0, 0.1, 0])).act(pin.Inertia.FromSphere(2.0, 0.1))
    rod = pin.Inertia.FromCylinder(500 * np.pi * 0.05**2 * 0.4, 0.05, 0.4)
    total = box + ball + pin.SE3(np.eye(3), np.array([0, 0, 0.3])).act(rod)
    np.testing.assert_allclose(robot.links[1].inertia, total.toDynamicParameters(), atol=1e-13)


def test_unnamed_parts_get_names(load: Load) -> None:
    """MJCF needs no names; the robot gives its own, all different."""
    world = f"<body><joint/>{BODY}<body><joint/><joint axis='0 1 0'/>{BODY}</body></body>"
    robot = load(f"<mujoco><worldbody>{world}</worldbody></mujoco>", ".xml")
    assert robot.coordinates == ("body1_joint", "body2_joint1", "body2_joint2")
    assert (robot.name, [link.name for link in robot.links][1]) == ("robot", "body1")


@pytest.mark.parametrize("reference", [0.0, 0.3])
def test_joint_equality_is_a_mimic_joint(load: Load, reference: float) -> None:
    """polycoef = (offset, ratio), measured from the reference positions of both joints."""
    finger = f'<body name="finger"><joint name="follower" axis="0 0 1" ref="{reference}"/>{LIGHT}</body>'
    world = arm(f'ref="{2 * reference}"', finger)
    coupled = mjcf(world, after='<equality><joint joint1="follower" joint2="hinge" polycoef="0.2 -1.5"/></equality>')
    robot, free = load(coupled, ".xml"), load(mjcf(world), ".xml")
    assert robot.coordinates == ("hinge", "slide")
    G = np.array([[1.0, 0.0], [0.0, 1.0], [-1.5, 0.0]])
    offset = np.array([0, 0, reference + 0.2 + 1.5 * 2 * reference])
    q, v, a = motion(robot)
    tau = dynid.inverse_dynamics(free, q @ G.T + offset, v @ G.T, a @ G.T) @ G
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), tau, atol=SAME)


def test_inactive_equalities_do_not_couple(load: Load) -> None:
    """An equality that is switched off in the file is not part of the robot, whatever its kind."""
    off = '<joint active="false" joint1="slide" joint2="hinge"/><connect active="false" body1="upper"/>'
    assert load(mjcf(arm(), after=f"<equality>{off}</equality>"), ".xml").coordinates == ("hinge", "slide")
