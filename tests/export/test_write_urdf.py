"""URDF files we write, read by Pinocchio itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
from compare import difference
from dynid import Robot
from dynid.export.urdf import write_urdf
from random_robots import random_motion, random_robot


def pinocchio_q(model: pin.Model, robot: Robot, q: np.ndarray) -> np.ndarray:
    """Joint positions as Pinocchio stores them: by name, cosine and sine of an unbounded joint."""
    out = pin.neutral(model)
    out[: robot.nq - robot.n] = q[: robot.nq - robot.n]
    for name, x in zip(robot.coordinates, q[robot.nq - robot.n :], strict=True):
        joint = model.joints[model.getJointId(name)]
        out[joint.idx_q : joint.idx_q + joint.nq] = [x] if joint.nq == 1 else [np.cos(x), np.sin(x)]
    return out


ROBOTS = {
    **{name: dynid.load_robot(name) for name in dynid.builtin_robots()},
    **{f"tree {seed}": random_robot(seed, 3 + seed % 6) for seed in range(4)},
    "floating tree": random_robot(5, 7, base="floating"),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_pinocchio_computes_the_same_torques(tmp_path: Path, name: str) -> None:
    """Masses, inertias and kinematics of the file are those of the robot."""
    robot = ROBOTS[name].without("*") if ROBOTS[name].drives else ROBOTS[name]
    path = tmp_path / "robot.urdf"
    write_urdf(robot, path)
    floating = robot.base == "floating"
    model = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if floating else []))
    model.gravity.linear = robot.gravity
    data = model.createData()
    first = robot.nv - robot.n
    index = [*range(first), *(model.joints[model.getJointId(n)].idx_v for n in robot.coordinates)]
    ours, theirs = [], []
    for q, v, a in zip(*random_motion(robot, 0), strict=True):
        speed, acceleration = np.zeros((2, robot.nv))
        speed[index], acceleration[index] = v, a
        ours.append(dynid.inverse_dynamics(robot, q, v, a))
        theirs.append(pin.rnea(model, data, pinocchio_q(model, robot, q), speed, acceleration)[index])
    # The file has twelve digits a number.
    assert difference(ours, theirs) < 1e-9
