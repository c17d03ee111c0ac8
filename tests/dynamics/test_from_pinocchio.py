"""Models built with Pinocchio's own means, read by `Robot.from_pinocchio`: the same dynamics comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.robot.inertia import inertia_transform
from tests.support.compare import difference
from tests.support.random_robots import random_inertia, random_motion, random_placement

Array = NDArray[np.float64]

SAME = 1e-10  # two algorithms in double precision, see test_against_pinocchio.py


def tree_of_all_kinds(floating: bool) -> pin.Model:
    """A branched tree with every joint kind that can be read: aligned, unaligned, unbounded, prismatic, composite."""
    rng = np.random.default_rng(11)

    def body() -> pin.Inertia:
        return pin.Inertia.FromDynamicParameters(random_inertia(rng))

    model = pin.Model()
    model.gravity.linear = rng.normal(size=3) * 5
    root = 0
    if floating:
        root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
        model.appendBodyToJoint(root, body(), pin.SE3(random_placement(rng)))
    wrist = pin.JointModelComposite()
    wrist.addJoint(pin.JointModelRX(), pin.SE3(random_placement(rng)))
    wrist.addJoint(pin.JointModelPrismaticUnaligned(np.array([0.6, 0.0, 0.8])), pin.SE3(random_placement(rng)))
    wrist.addJoint(pin.JointModelRZ(), pin.SE3(random_placement(rng)))
    kinds = [
        pin.JointModelRX(),
        pin.JointModelRUBY(),
        pin.JointModelPZ(),
        pin.JointModelRevoluteUnaligned(np.array([0.48, 0.6, 0.64])),
        pin.JointModelRUBX(),
        pin.JointModelPX(),
        wrist,
        pin.JointModelRY(),
    ]
    made = [root]
    for kind, parent in zip(kinds, (0, 1, 2, 1, 4, 0, 6, 6), strict=True):
        made.append(model.addJoint(made[parent], kind, pin.SE3(random_placement(rng)), f"joint{len(made)}"))
        # Two bodies on one joint, the second off its frame: Pinocchio adds them up, and so must we.
        model.appendBodyToJoint(made[-1], body(), pin.SE3.Identity())
        model.appendBodyToJoint(made[-1], body(), pin.SE3(random_placement(rng)))
    # A named body off its joint frame: the link frame is the body's.
    for name, joint in (("forearm", made[3]), ("hand", made[7])):
        model.addFrame(pin.Frame(name, joint, 0, pin.SE3(random_placement(rng)), pin.FrameType.BODY))
    return model


def fixed_tree() -> pin.Model:
    return tree_of_all_kinds(False)


def floating_tree() -> pin.Model:
    return tree_of_all_kinds(True)


def columns(robot: Robot, theirs: Array) -> Array:
    """Pinocchio's regressor of one sample, its columns taken from bodies in joint frames to bodies in link frames."""
    blocks = [theirs[:, 10 * i : 10 * i + 10] for i in range(len(robot.parameter_links))]
    mounts = [robot.joints[b - 1].mount if b else np.eye(4) for b in robot.parameter_links]
    return np.hstack([block @ inertia_transform(mount) for block, mount in zip(blocks, mounts, strict=True)])


def positions(model: pin.Model, robot: Robot, q: Array) -> Array:
    """Our q as Pinocchio's, which stores cosine and sine of unbounded joints."""
    taken = robot.nq - robot.n
    start = 1 if robot.base == "fixed" else 2
    out = [q[:, :taken]]
    for joint in model.joints[start:]:
        part = q[:, taken : taken + joint.nv]
        taken += joint.nv
        out.append(part if joint.nq == joint.nv else np.hstack([np.cos(part), np.sin(part)]))
    return np.hstack(out)


@pytest.mark.parametrize(
    "build",
    [pin.buildSampleModelManipulator, pin.buildSampleModelHumanoid, fixed_tree, floating_tree],
    ids=["manipulator", "humanoid", "fixed tree", "floating tree"],
)
def test_model_read_from_pinocchio_keeps_its_dynamics(build: Callable[[], pin.Model]) -> None:
    """Regressor, torques, mass matrix, accelerations and energies of the robot are those of the model it came from."""
    model = build()
    model.armature = np.zeros(model.nv)  # read as drive terms only where asked for
    robot = Robot.from_pinocchio(model)
    assert robot.nv == model.nv
    q, v, a = random_motion(robot, 3)
    at = positions(model, robot, q)
    data = model.createData()
    for k in range(len(q)):
        state = (model, data, at[k], v[k], a[k])
        Y = columns(robot, pin.computeJointTorqueRegressor(*state))
        assert difference(dynid.regressor(robot, q[k], v[k], a[k]), Y) < SAME
        assert difference(dynid.inverse_dynamics(robot, q[k], v[k], a[k]), pin.rnea(*state)) < SAME
        M = np.triu(pin.crba(model, data, at[k]))
        M = M + np.triu(M, 1).T
        assert difference(dynid.mass_matrix(robot, q[k]), M) < SAME
        # Accelerations carry the condition of M, up to 1e5 for a humanoid.
        tolerance = max(SAME, 1e-15 * np.linalg.cond(M))
        assert difference(dynid.forward_dynamics(robot, q[k], v[k], a[k]), pin.aba(*state)) < tolerance
        assert difference(dynid.dynamics.kinetic_energy(robot, q[k], v[k]), pin.computeKineticEnergy(*state[:4])) < SAME
        assert difference(dynid.dynamics.potential_energy(robot, q[k]), pin.computePotentialEnergy(*state[:3])) < SAME
