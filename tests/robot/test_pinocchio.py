"""Pinocchio models in and out: names, frames, limits, drives, and what cannot be held."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

import dynid
import dynid.robot
from dynid import Robot
from dynid.assessment.model.other_code import against_pinocchio
from dynid.errors import ModelError
from dynid.robot import Joint, Link
from dynid.robot.parts import Frame
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.robot_files import Array, joint, link, motion, urdf

SAME = 1e-11  # two codes in double precision, torques up to 100 N m


def turned(rpy: tuple[float, float, float], xyz: tuple[float, float, float]) -> pin.SE3:
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))


BODY = pin.Inertia(1.5, np.array([0.1, -0.2, 0.05]), np.diag([0.02, 0.03, 0.04]))


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_robot_survives_the_way_through_pinocchio(base: str) -> None:
    """Out and in again: names, link frames, bodies, limits, gravity and frames are the same robot."""
    robot = dynid.load_robot("wam7", base=base, gravity=(1, 2, -9)).without("*")  # type: ignore[arg-type]
    robot = robot.with_limits({"joint3": {"position": (-1, 2), "velocity": 3, "effort": 4}})
    back = Robot.from_pinocchio(robot.to_pinocchio())
    assert back.coordinates == robot.coordinates
    assert [body.name for body in back.links] == [body.name for body in robot.links]
    assert back.limits == robot.limits
    assert back.base == base
    np.testing.assert_array_equal(back.gravity, robot.gravity)
    # Mass moments pass through centre-of-mass form and two placements.
    np.testing.assert_allclose(back.parameters, robot.parameters, atol=1e-14)
    q = motion(robot)[0][0]
    at = np.concatenate([[0.1, 0.2, 0.3, 0, 0, 0.6, 0.8], q]) if base == "floating" else q
    for body in robot.links:
        ours, theirs = (dynid.dynamics.frame_placement(r, at, body.name) for r in (robot, back))
        np.testing.assert_allclose(theirs, ours, atol=1e-14)


def test_named_frames_come_along_both_ways() -> None:
    """A tool frame of the robot is a frame of the model, and comes back where it was."""
    robot = dynid.load_robot("wam7")
    tool = Frame("tool", 7, turned((0.1, 0.2, 0.3), (0, 0.1, 0.2)).homogeneous)
    robot = Robot(robot.name, robot.links, robot.joints, frames=(tool,))
    model = robot.to_pinocchio()
    data = model.createData()
    back = Robot.from_pinocchio(model)
    q = motion(robot)[0][0]
    pin.framesForwardKinematics(model, data, q)
    ours = dynid.dynamics.frame_placement(robot, q, "tool")
    np.testing.assert_allclose(data.oMf[model.getFrameId("tool")].homogeneous, ours, atol=1e-14)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(back, q, "tool"), ours, atol=1e-14)


def test_link_frame_is_the_frame_of_the_named_body() -> None:
    """A body off its joint frame keeps its own frame: its placement and its parameters are those of that frame."""
    model = pin.Model()
    hand = turned((0.3, -0.2, 0.5), (0.1, 0.2, 0.3))
    for parent, name in ((0, "shoulder"), (1, "elbow")):
        i = model.addJoint(parent, pin.JointModelRY(), turned((0.2, 0, 0), (0, 0, 0.4)), name)
        model.appendBodyToJoint(i, BODY, hand)
        model.addBodyFrame(f"{name}_body", i, hand, 0)
    robot = Robot.from_pinocchio(model)
    np.testing.assert_allclose(robot.links[2].inertia, BODY.toDynamicParameters(), atol=1e-15)
    data = model.createData()
    for q, v, a in zip(*motion(robot), strict=True):
        pin.framesForwardKinematics(model, data, q)
        theirs = data.oMf[model.getFrameId("elbow_body")].homogeneous
        np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, "elbow_body"), theirs, atol=1e-14)
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), pin.rnea(model, data, q, v, a), atol=SAME)


def composite() -> pin.Model:
    """A hinge, then a composite of hinge, slide and hinge with limits and armature of its parts, then a hinge."""
    wrist = pin.JointModelComposite(pin.JointModelRX(), turned((0.1, 0, 0), (0, 0.1, 0)))
    wrist.addJoint(pin.JointModelPrismaticUnaligned(np.array([0.6, 0.0, 0.8])), turned((0, 0.4, 0), (0.1, 0, 0)))
    wrist.addJoint(pin.JointModelRZ(), turned((0, 0, 0.7), (0, 0, 0.2)))
    model = pin.Model()
    for name, kind in (("first", pin.JointModelRZ()), ("wrist", wrist), ("last", pin.JointModelRY())):
        i = model.addJoint(model.njoints - 1, kind, turned((0.3, 0.1, 0), (0, 0, 0.3)), name)
        model.appendBodyToJoint(i, BODY, turned((0, 0, 0.2), (0.05, 0, 0)))
    model.lowerPositionLimit = -np.arange(1.0, 6.0)
    model.upperPositionLimit = np.arange(11.0, 16.0)
    model.velocityLimit, model.effortLimit = np.arange(21.0, 26.0), np.arange(31.0, 36.0)
    model.armature, model.damping = np.arange(0.1, 0.6, 0.1), np.arange(1.1, 1.6, 0.1)
    return model


def test_composite_joints_are_taken_apart() -> None:
    """Every part has its own name, limits and armature; the links between are no bodies; torques are Pinocchio's."""
    model = composite()
    robot = dynid.load_robot(model, friction="viscous", rotor_inertia=True)
    assert robot.coordinates == ("first", "wrist.1", "wrist.2", "wrist.3", "last")
    assert [body.virtual for body in robot.links] == [False, False, True, True, False, False]
    assert robot.limits["wrist.2"] == dynid.robot.Limits(-3, 13, 23, 33)
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    np.testing.assert_allclose([value[f"Ia_{n}"] for n in robot.coordinates], model.armature)
    np.testing.assert_allclose([value[f"fv_{n}"] for n in robot.coordinates], model.damping)
    data = model.createData()
    for q, v, a in zip(*motion(robot), strict=True):
        theirs = pin.rnea(model, data, q, v, a) + model.damping * v  # rnea has armature but no damping
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), theirs, atol=SAME)


def test_free_flyer_in_a_turned_frame_keeps_its_gravity() -> None:
    """The base moves in the frame Pinocchio puts under its free-flyer; gravity is turned into that frame."""
    model = pin.Model()
    i = model.addJoint(0, pin.JointModelFreeFlyer(), turned((0.4, -0.3, 0.2), (1, 2, 3)), "root")
    model.appendBodyToJoint(i, BODY, pin.SE3.Identity())
    j = model.addJoint(i, pin.JointModelRX(), turned((0, 0.2, 0), (0.1, 0, 0)), "arm")
    model.appendBodyToJoint(j, BODY, pin.SE3.Identity())
    robot = Robot.from_pinocchio(model)
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, 8), rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 7)
    q[3:7] /= np.linalg.norm(q[3:7])
    theirs = pin.rnea(model, model.createData(), q, v, a)
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), theirs, atol=SAME)


def test_a_second_tree_beside_a_free_flyer_makes_the_base_fixed() -> None:
    """A free-flyer beside a joint on the world is a floating joint inside the tree."""
    model = pin.Model()
    i = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Random(), "root")
    model.appendBodyToJoint(i, BODY, pin.SE3.Identity())
    i = model.addJoint(0, pin.JointModelRX(), pin.SE3.Random(), "door")
    model.appendBodyToJoint(i, BODY, pin.SE3.Identity())
    robot = Robot.from_pinocchio(model)
    assert (robot.base, robot.n) == ("fixed", 7)
    assert against_pinocchio(model).largest < SAME


@pytest.mark.parametrize(
    "kind",
    [
        pin.JointModelSpherical(),
        pin.JointModelSphericalZYX(),
        pin.JointModelTranslation(),
        pin.JointModelPlanar(),
        pin.JointModelFreeFlyer(),
        pin.JointModelUniversal(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])),
        pin.JointModelHX(0.3),
        pin.JointModelHelicalUnaligned(np.array([0.0, 0.6, 0.8]), -0.2),
    ],
    ids=lambda k: k.shortname(),
)
def test_joints_with_more_freedom_become_chains(kind: pin.JointModel) -> None:
    """Inside the tree, with a body on a joint before and after it: mass matrix and torques through the velocity map."""
    pin.seed(0)
    model, i = pin.Model(), 0
    for name, each in (("first", pin.JointModelRX()), ("odd", kind), ("last", pin.JointModelPY())):
        i = model.addJoint(i, each, pin.SE3.Random(), name)
        model.appendBodyToJoint(i, pin.Inertia.Random(), pin.SE3.Identity())
    robot = Robot.from_pinocchio(model)
    assert robot.n == model.nv
    assert len(robot.parameter_links) == 3
    assert against_pinocchio(model).largest < SAME


def test_an_ellipsoid_joint_is_refused_by_name() -> None:
    """Joints that are no chain of simple ones have no place in the robot; the message names the joint."""
    model = pin.Model()
    model.addJoint(0, pin.JointModelEllipsoid(0.1, 0.2, 0.3), pin.SE3.Identity(), "odd")
    with expect_error(ModelError, code="unsupported"):
        Robot.from_pinocchio(model)


def test_base_body_off_the_root_is_a_frame_not_the_base_link() -> None:
    """Only a body that sits in the root frame lends its name to the base; another one stays a frame in its place."""
    model = pin.Model()
    place = turned((0, 0, 0.5), (1, 0, 0))
    model.appendBodyToJoint(0, BODY, place)
    model.addBodyFrame("table", 0, place, 0)
    model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "j")
    robot = Robot.from_pinocchio(model)
    assert robot.links[0].name == "base_link"
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.3], "table"), place.homogeneous, atol=1e-15)


def test_a_body_wins_over_a_fixed_joint_of_the_same_name() -> None:
    """Models made from URDF may have both; asking for the name gives the body."""
    text = urdf(
        *(link(n, 1.0) for n in ("a", "b", "c", "d")),
        joint("j", "continuous", "a", "b"),
        joint("d", "fixed", "b", "c", '<origin xyz="1 0 0"/>'),
        joint("c", "fixed", "b", "d", '<origin xyz="0 2 0"/>'),
    )
    robot = Robot.from_pinocchio(pin.buildModelFromXML(text))
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0], "c")[:3, 3], [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, [0.0], "d")[:3, 3], [0, 2, 0], atol=1e-15)


def test_drives_that_pinocchio_knows_go_out_with_the_model() -> None:
    """Rotor inertia, viscous and Coulomb friction on one joint become armature, damping and friction."""
    rows = [{"a": 0.3, "inertia": {"mass": 1, "com": [0.1, 0, 0], "tensor": [0.1, 0, 0, 0.1, 0, 0.1]}}] * 2
    robot = Robot.from_dh(rows)
    robot = robot.with_terms(
        robot.joint_term(0, "Ia", 0.4),
        robot.joint_term(0, "fv", 0.5),
        robot.joint_term(1, "fc", 0.6),
        robot.joint_term(1, "off", 0.7),
    )
    coupling = dynid.robot.Transmission(("m1", "m2"), np.array([[-2.0, 1.0], [0.0, 1.0]]), np.array([10.0, 10.0]))
    robot = robot.with_transmission(coupling)
    robot = robot.with_terms(robot.motor_term("m1", "Ia", 0.01), robot.motor_term("m2", "fv", 9.0))
    model = robot.to_pinocchio()
    np.testing.assert_allclose(model.armature, [0.4 + 4 * 0.01, 0])  # motor 1 turns joint 1 alone, twice as fast
    np.testing.assert_allclose(model.damping, [0.5, 0])  # motor 2 turns both joints: no place in that model
    np.testing.assert_allclose(model.friction, [0, 0.6])


def test_mimic_robots_go_out_only_as_independent_joints() -> None:
    """A model with one coordinate a joint cannot hold a coupling; the message says how to ask for it."""
    robot = Robot.from_dh([{"a": 1}, {"a": 1, "mimic": {"joint": "joint1"}}])
    with expect_error(ModelError, "independent", code="unsupported"):
        robot.to_pinocchio()
    assert robot.to_pinocchio(independent=True).nq == 2


def test_a_first_moment_without_mass_is_refused_by_name() -> None:
    """Pinocchio stores a centre of mass, which such a body has not; the message names the link."""
    ghost = Link("ghost", np.array([0, 1, 0, 0, 1, 0, 1, 0, 0, 1]))
    robot = Robot(
        "r", (Link("base", np.zeros(10)), ghost), (Joint("j", "revolute", 0, np.eye(4), np.array([0, 0, 1])),)
    )
    with expect_error(ModelError, code="unsupported"):
        robot.to_pinocchio()


def test_unbounded_joints_are_plain_angles_without_limits() -> None:
    """Pinocchio's cosine and sine become one coordinate."""
    model = pin.Model()
    i = model.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), "spin")
    model.appendBodyToJoint(i, BODY, turned((0.5, 0, 0), (0, 0.1, 0)))
    model.gravity.linear = np.array([3.0, 2.0, -9.0])
    robot = Robot.from_pinocchio(model)
    assert (robot.nq, robot.limits["spin"]) == (1, dynid.robot.Limits())
    angle, v, a = 2.5, np.array([0.4]), np.array([-0.3])
    at: Array = np.array([math.cos(angle), math.sin(angle)])
    theirs = pin.rnea(model, model.createData(), at, v, a)
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, [angle], v, a), theirs, atol=1e-14)


def test_branches_in_any_order_give_a_sound_pinocchio_model() -> None:
    """Joints listed level by level come out branch by branch, under their names, and the mass matrices agree."""
    robot = random_robot(11, 5, parents=[0, 0, 1, 2, 3])
    model = robot.to_pinocchio()
    order = [robot.coordinates.index(name) for name in model.names[1:]]
    assert order == [0, 2, 4, 1, 3]
    q = np.random.default_rng(0).uniform(-1, 1, robot.n)
    theirs = pin.crba(model, model.createData(), q[order])
    theirs = np.triu(theirs) + np.triu(theirs, 1).T
    np.testing.assert_allclose(dynid.mass_matrix(robot, q)[np.ix_(order, order)], theirs, atol=1e-12)
