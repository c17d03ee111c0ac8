"""Joints that follow others: the coupled robot is the uncoupled one seen through q_all = G q + offset.

Pinocchio on the robot with all joints independent is the oracle; virtual work gives tau = G' tau_all.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid import Robot
from tests.support.robot_files import Array, Load, joint, link, motion, urdf

SAME = 1e-12  # two codes in double precision, torques of a few N m

LIMIT = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
# A finger follows the wrist, a second finger the first one, a slide in the palm the second finger.
GRIPPER = urdf(
    *(link(name, mass) for name, mass in (("base", 2.0), ("hand", 1.5), ("thumb", 0.7), ("index", 0.5), ("pin", 0.3))),
    joint("wrist", "continuous", "base", "hand", '<origin rpy="0.3 0 0" xyz="0 0 0.2"/><axis xyz="0 1 0"/>'),
    joint(
        "close",
        "revolute",
        "hand",
        "thumb",
        f'<origin xyz="0.1 0.05 0"/><axis xyz="0 0 1"/>{LIMIT}<dynamics damping="0.2" friction="0.1"/>',
    ),
    joint(
        "follow",
        "revolute",
        "hand",
        "index",
        f'<origin xyz="0.1 -0.05 0"/><axis xyz="0 0.6 0.8"/>{LIMIT}<dynamics damping="0.4" friction="0.3"/>'
        '<mimic joint="close" multiplier="-1.5" offset="0.1"/>',
    ),
    joint(
        "slide",
        "prismatic",
        "index",
        "pin",
        f'<origin xyz="0.05 0 0.1" rpy="0 0.5 0"/><axis xyz="1 0 0"/>{LIMIT}'
        '<mimic joint="follow" multiplier="0.5" offset="-0.2"/>',
    ),
)
# q of close, follow and slide over the coordinates (close, wrist): follow = -1.5 close + 0.1,
# slide = 0.5 follow - 0.2 = -0.75 close - 0.15.
LEAD = {
    "wrist": (np.array([0.0, 1.0]), 0.0),
    "close": (np.array([1.0, 0.0]), 0.0),
    "follow": (np.array([-1.5, 0.0]), 0.1),
    "slide": (np.array([-0.75, 0.0]), -0.15),
}


def coupling(robot: Robot) -> tuple[Array, Array]:
    """G (joint, n) and offset (joint,) in the order of the robot's joints, from the table above."""
    order = [("close", "wrist").index(name) for name in robot.coordinates]
    G = np.array([LEAD[j.name][0][order] for j in robot.joints])
    return G, np.array([LEAD[j.name][1] for j in robot.joints])


def test_followers_have_no_coordinate(load: Load) -> None:
    """Only the independent joints are in q, in the limits and in the torque channels."""
    robot = load(GRIPPER, ".urdf")
    assert set(robot.coordinates) == set(robot.limits) == set(robot.channels) == {"wrist", "close"}
    assert {link.name for link in robot.links} == {"base", "hand", "thumb", "index", "pin"}


def test_chains_are_followed_to_the_independent_joint(load: Load) -> None:
    """A mimic of a mimic multiplies ratios and carries offsets through."""
    mimic = {j.name: j.mimic for j in load(GRIPPER, ".urdf").joints}
    slide = mimic["slide"]
    assert slide is not None
    assert slide.leader == "close"
    assert (slide.ratio, slide.offset) == (pytest.approx(-0.75), pytest.approx(-0.15))


def test_torques_regressor_and_mass_matrix_fold_the_coupling(load: Load) -> None:
    """Torque G' tau, regressor G' Y and mass matrix G' M G of the robot with all joints free."""
    robot = load(GRIPPER, ".urdf")
    G, offset = coupling(robot)
    model = robot.to_pinocchio(independent=True)
    data = model.createData()
    for q, v, a in zip(*motion(robot), strict=True):
        state = G @ q + offset, G @ v, G @ a
        torque = G.T @ pin.rnea(model, data, *state)
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), torque, atol=SAME)
        Y = G.T @ pin.computeJointTorqueRegressor(model, data, *state)
        np.testing.assert_allclose(dynid.regressor(robot, q, v, a), Y, atol=SAME)
        M = np.triu(pin.crba(model, data, state[0]))
        M = G.T @ (M + np.triu(M, 1).T) @ G
        np.testing.assert_allclose(dynid.mass_matrix(robot, q), M, atol=SAME)


def test_floating_mimic_robot_folds_the_coupling_behind_its_base(load: Load) -> None:
    """The base rows of a flying gripper see the followers too."""
    robot = load(GRIPPER, ".urdf", base="floating")
    inner, offset = coupling(robot)
    G = np.zeros((6 + len(inner), robot.nv))
    G[:6, :6], G[6:, 6:] = np.eye(6), inner
    model = robot.to_pinocchio(independent=True)
    rng = np.random.default_rng(3)
    q, v, a = rng.uniform(-1, 1, robot.nq), rng.uniform(-1, 1, robot.nv), rng.uniform(-1, 1, robot.nv)
    q[3:7] /= np.linalg.norm(q[3:7])
    at = np.concatenate([q[:7], inner @ q[7:] + offset])
    torque = G.T @ pin.rnea(model, model.createData(), at, G @ v, G @ a)
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), torque, atol=SAME)


def test_followers_stand_where_their_leader_puts_them(load: Load) -> None:
    """The frame of a follower moves with the leader's coordinate, and its Jacobian is the slope of that motion."""
    robot = load(GRIPPER, ".urdf")
    G, offset = coupling(robot)
    model = robot.to_pinocchio(independent=True)
    data = model.createData()
    q = np.array([0.4, -0.7])
    frame = model.getFrameId("pin", pin.FrameType.BODY)
    pin.framesForwardKinematics(model, data, G @ q + offset)
    np.testing.assert_allclose(dynid.dynamics.frame_placement(robot, q, "pin"), data.oMf[frame].homogeneous, atol=1e-14)
    pin.computeJointJacobians(model, data, G @ q + offset)
    J = pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED) @ G
    np.testing.assert_allclose(dynid.dynamics.frame_jacobian(robot, q, "pin"), J, atol=1e-14)


def test_friction_of_followers_in_the_file_is_felt_by_the_leader(load: Load) -> None:
    """Damping adds with the square of the ratio, dry friction with its size: equal power in both descriptions."""
    robot = load(GRIPPER, ".urdf", friction="viscous+coulomb")
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    assert value["fv_close"] == pytest.approx(0.2 + 1.5**2 * 0.4)
    assert value["fc_close"] == pytest.approx(0.1 + 1.5 * 0.3)


def test_robot_file_couples_joints_the_same_way(load: Load) -> None:
    """A chain of mimics in a TOML file equals the robot whose mimics are written on the leader directly."""
    rows = """
name = "hand"
convention = "standard"
[[joint]]
a = 0.3
inertia = { mass = 1, com = [0.1, 0, 0], tensor = [0.1, 0, 0, 0.1, 0, 0.1] }
[[joint]]
a = 0.2
inertia = { mass = 2, com = [0.1, 0.2, 0], tensor = [0.1, 0, 0, 0.1, 0, 0.1] }
mimic = { joint = "joint1", multiplier = 2, offset = 0.5 }
[[joint]]
a = 0.1
inertia = { mass = 3, com = [0, 0.1, 0], tensor = [0.1, 0, 0, 0.1, 0, 0.1] }
mimic = { joint = "joint2", multiplier = -1, offset = 0.25 }
"""
    chained = load(rows, ".toml")
    direct = load(
        rows.replace(
            'joint = "joint2", multiplier = -1, offset = 0.25', 'joint = "joint1", multiplier = -2, offset = -0.25'
        ),
        ".toml",
    )
    q, v, a = motion(chained)
    np.testing.assert_allclose(dynid.regressor(chained, q, v, a), dynid.regressor(direct, q, v, a), atol=SAME)
    assert chained.n == 1
