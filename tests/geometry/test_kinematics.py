"""Placements of a robot with errors against Pinocchio, and their derivatives against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.errors import NotApplicable
from dynid.geometry import Geometry, GeometryModel
from dynid.geometry.tangents import Placed
from dynid.geometry.unknowns import UnknownKind, axis_letters, joint_axes
from studies.reproduce.geometry_plants import STANDARD, TOOL, Plant, Sizes

Array = NDArray[np.float64]

ALL = GeometryModel(gear=1e-3)
URDF = """
<robot name="branched">
  <link name="base"/>
  <link name="slider"><inertial><mass value="4"/><origin xyz="0.1 0 0.05"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><mass value="3"/><origin xyz="0.2 0 0.1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="hand"><inertial><mass value="1"/><origin xyz="0.1 0.02 0"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="other"/>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="slider"/>
    <origin xyz="0 0 0.3" rpy="0.2 0.1 0"/><axis xyz="0.6 0 0.8"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="skew" type="revolute"><parent link="slider"/><child link="arm"/>
    <origin xyz="0.1 0.2 0" rpy="0 0.4 0"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
  <joint name="follower" type="revolute"><parent link="arm"/><child link="hand"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 1 0"/><mimic joint="skew" multiplier="-0.7" offset="0.1"/>
    <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
  <joint name="side" type="revolute"><parent link="slider"/><child link="other"/>
    <origin xyz="0 -0.3 0"/><axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
</robot>
"""


@pytest.fixture
def branched(tmp_path: object) -> Robot:
    """A sliding joint, a skew axis, a follower and a branch."""
    path = f"{tmp_path}/branched.urdf"
    with open(path, "w") as file:
        file.write(URDF)
    return dynid.load_robot(path)


def placed(geometry: Geometry, q: Array, x: Array, width: int | None = None, loads: Array | None = None) -> Placed:
    """The first frame; loads of the robot with errors x, or with others."""
    postures = geometry.postures(q, x if loads is None else loads)
    return geometry.place(postures, x, width or len(x))[geometry.frames[0]]


def drawn(geometry: Geometry, seed: int = 0) -> Array:
    """Errors several times as large as expected, so that second orders count."""
    std = np.array([u.std for u in geometry.unknowns])
    return 3 * std * np.random.default_rng(seed).normal(size=len(std))


@pytest.mark.parametrize("kind", STANDARD)
def test_placements_are_those_of_pinocchio(kind: str) -> None:
    plant = Plant.drawn(kind, 1, Sizes(compliance=(0.0, 0.0)))
    geometry = Geometry(plant.robot, (TOOL,), ALL)
    q = plant.readings(20, np.random.default_rng(0))
    rotation, origin = plant.tool(q)
    found = placed(geometry, q, plant.truth(geometry))
    assert np.abs(found.origin - origin).max() < 1e-12
    assert np.abs(found.rotation - rotation).max() < 1e-12


@pytest.mark.parametrize("kind", STANDARD)
def test_joints_yield_under_the_load_of_the_true_robot_at_its_deflected_posture(kind: str) -> None:
    plant = Plant.drawn(kind, 1)
    geometry = Geometry(plant.robot, (TOOL,), ALL)
    q = plant.readings(50, np.random.default_rng(0))
    x, (_, origin) = plant.truth(geometry), plant.tool(q)
    stiff = np.where([u.kind is UnknownKind.COMPLIANCE for u in geometry.unknowns], 0.0, x)
    bent = np.abs(placed(geometry, q, stiff).origin - origin).max()
    of_the_file = np.abs(placed(geometry, q, x, loads=np.zeros(len(x))).origin - origin).max()
    left = np.abs(placed(geometry, q, x).origin - origin).max()
    assert left < 5e-7
    # Axes along gravity bear no load but for their errors.
    assert kind == "SCARA" or (bent > 1e-4 and of_the_file > 10 * left)


def numeric_twist(geometry: Geometry, q: Array, x: Array, direction: Array) -> tuple[Array, Array]:
    """Rotation and velocity of the origin by central differences, loads held."""
    step = 1e-5
    a, b = (placed(geometry, q, x + s * step * direction, loads=x) for s in (1, -1))
    turn = [pin.log3(r @ p.T) / (2 * step) for r, p in zip(a.rotation, b.rotation, strict=True)]
    return np.array(turn), (a.origin - b.origin) / (2 * step)


@pytest.mark.parametrize("name", ["branched", "iiwa14", "rv2sq", "psm"])
def test_derivatives_are_those_of_finite_differences(name: str, branched: Robot) -> None:
    robot = branched if name == "branched" else dynid.load_robot(name)
    if robot.loops:
        with pytest.raises(NotApplicable):
            Geometry(robot, (robot.links[-1].name,), ALL)
        return
    frame = "hand" if name == "branched" else robot.links[-1].name
    geometry = Geometry(robot, (frame,), ALL)
    x, q = drawn(geometry), np.random.default_rng(1).uniform(-1, 1, (6, robot.n))
    found = placed(geometry, q, x, len(x) + 2)
    for k, u in enumerate(geometry.unknowns):
        turn, shift = numeric_twist(geometry, q, x, np.eye(len(x))[k])
        tolerance = 1e-7 * max(np.abs(shift).max(), np.abs(turn).max(), 1.0)
        np.testing.assert_allclose(found.turn[..., k], turn, rtol=1e-6, atol=tolerance, err_msg=u.name)
        np.testing.assert_allclose(found.shift[..., k], shift, rtol=1e-6, atol=tolerance, err_msg=u.name)
    assert not found.turn[..., len(x) :].any() and not found.shift[..., len(x) :].any()


def test_all_kinds_are_among_the_tested_ones(branched: Robot) -> None:
    kinds = {u.kind for u in Geometry(branched, ("hand",), ALL).unknowns}
    assert kinds == set(UnknownKind) - {UnknownKind.SENSOR}


def test_joints_that_move_no_frame_have_no_unknowns(branched: Robot) -> None:
    geometry = Geometry(branched, ("hand",), ALL)
    assert {u.owner for u in geometry.unknowns} == {"slide", "skew", "follower"}
    both = Geometry(branched, ("hand", "other"), ALL)
    x, q = drawn(both), np.random.default_rng(1).uniform(-1, 1, (4, branched.n))
    found = both.place(both.postures(q, x), x, len(x))["other"]
    owners = np.array([u.owner for u in both.unknowns])
    assert not found.shift[..., np.isin(owners, ["skew", "follower"])].any()
    assert found.shift[..., owners == "side"].any()


def test_the_follower_reads_what_its_leader_reads(branched: Robot) -> None:
    geometry = Geometry(branched, ("hand",), GeometryModel.only("zero"))
    x = np.zeros(len(geometry.unknowns))
    q = np.array([[{"slide": 0.1, "skew": 0.5, "side": 0.0}[name] for name in branched.coordinates]])
    names = [u.name for u in geometry.unknowns]
    x[names.index("zero of skew")] = 0.01
    moved = placed(geometry, q, x)
    # An error of the leader's zero moves the leader alone: the follower's encoder reads the same.
    model = branched.to_pinocchio(independent=True)
    data = model.createData()
    readings = {"slide": 0.1, "skew": 0.51, "follower": -0.7 * 0.5 + 0.1, "side": 0.0}
    position = np.zeros(model.nq)
    for name, value in readings.items():
        position[model.joints[model.getJointId(name)].idx_q] = value
    pin.framesForwardKinematics(model, data, position)
    at = data.oMf[model.getFrameId("hand")]
    np.testing.assert_allclose(moved.origin[0], at.translation, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tx40", "puma560", "rv2sq"])
def test_robots_whose_links_have_frames_of_the_textbook(name: str) -> None:
    """Standard Denavit-Hartenberg frames lie behind the joint: errors move what is in front of the mount."""
    robot = dynid.load_robot(name)
    geometry = Geometry(robot, (robot.links[-1].name,), GeometryModel(compliance=0.0, bending=0.0, eccentricity=0.0))
    x, q = drawn(geometry), np.random.default_rng(2).uniform(-1.5, 1.5, (10, robot.n))
    by_name = {u.name: v for u, v in zip(geometry.unknowns, x, strict=True)}
    joints = []
    for joint in robot.joints:
        across, along = axis_letters(joint)
        axes = joint_axes(joint)
        shift = axes @ [by_name.get(f"{s} of {joint.name}", 0.0) for s in (*across, along)]
        turn = axes @ [by_name.get(f"r{s} of {joint.name}", 0.0) for s in (*across, along)]
        placement = joint.placement @ pin.SE3(pin.exp3(turn), shift).homogeneous
        joints.append(replace(joint, placement=placement))
    zeros = np.array([by_name.get(f"zero of {j.name}", 0.0) for j in robot.joints])
    moved = replace(robot, joints=tuple(joints)).to_pinocchio()
    data, found = moved.createData(), placed(geometry, q, x)
    for k, row in enumerate(q):
        pin.framesForwardKinematics(moved, data, row + zeros)
        at = data.oMf[moved.getFrameId(robot.links[-1].name)]
        np.testing.assert_allclose(found.origin[k], at.translation, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.rotation[k], at.rotation, rtol=0, atol=1e-12)
