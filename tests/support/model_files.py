"""What the tests of model files share: other parameters for a robot, and torques compared by names of joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import dynid
from dynid import Robot
from tests.support.compare import difference
from tests.support.random_robots import mimic_map, random_inertia, random_motion

Array = NDArray[np.float64]

SAME = 1e-9  # torques relative to the largest of them


def changed(robot: Robot, seed: int = 0) -> Robot:
    """The robot with other values of all parameters, its bodies and drives possible."""
    rng = np.random.default_rng(seed)
    first = 1 if robot.base == "fixed" else 0
    bodies = tuple(x if x.virtual else replace(x, inertia=random_inertia(rng)) for x in robot.links[first:])
    drives = tuple(replace(t, value=float(rng.uniform(0.1, 2))) for t in robot.drives)
    return replace(robot, links=(*robot.links[:first], *bodies), drives=drives)


def by_name(x: Array, source: Sequence[str], target: Sequence[str]) -> Array:
    """The last columns of `x` from the order of `source` in that of `target`; those before stay."""
    first = x.shape[1] - len(source)
    return x[:, [*range(first), *(first + list(source).index(n) for n in target)]]


def assert_same_torques(back: Robot, robot: Robot, samples: int = 10) -> None:
    """Torques of both along one motion, joints matched by name."""
    motion = random_motion(robot, 0, samples)
    tau = dynid.inverse_dynamics(robot, *motion)
    q, v, a, theirs = (by_name(x, robot.coordinates, back.coordinates) for x in (*motion, tau))
    assert difference(dynid.inverse_dynamics(back, q, v, a), theirs) < SAME


def assert_pinocchios_torques(model: pin.Model, robot: Robot, samples: int = 10) -> None:
    """Rigid-body torques of a model without mimic joints, folded onto the joints that lead."""
    model.gravity.linear = robot.gravity
    data, first = model.createData(), robot.nv - robot.n
    G, offset = mimic_map(robot)
    joints = [model.joints[model.getJointId(j.name)] for j in robot.joints]
    index = [j.idx_v for j in joints]
    ours, theirs = [], []
    for q, v, a in zip(*random_motion(robot, 0, samples), strict=True):
        x, speed, acceleration = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        x[: robot.nq - robot.n], speed[:first], acceleration[:first] = q[: robot.nq - robot.n], v[:first], a[:first]
        for joint, angle in zip(joints, G @ q[robot.nq - robot.n :] + offset, strict=True):
            # An unbounded joint is stored as cosine and sine.
            x[joint.idx_q : joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        speed[index], acceleration[index] = G @ v[first:], G @ a[first:]
        tau = pin.rnea(model, data, x, speed, acceleration)
        theirs.append([*tau[:first], *(G.T @ tau[index])])
        ours.append(dynid.inverse_dynamics(robot, q, v, a)[len(robot.channels) - robot.nv :])
    assert difference(ours, theirs) < SAME


def assert_mujocos_torques(mujoco: ModuleType, model: object, robot: Robot, samples: int = 10) -> None:
    """mj_inverse without constraints, folded onto the joints that lead, gives our inverse dynamics."""
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # type: ignore[attr-defined]
    data = mujoco.MjData(model)
    numbers = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, j.name) for j in robot.joints]
    if -1 in numbers:  # a joint of a template without a name
        numbers = list(range(model.njnt - len(robot.joints), model.njnt))  # type: ignore[attr-defined]
    place, speed = model.jnt_qposadr[numbers], model.jnt_dofadr[numbers]  # type: ignore[attr-defined]
    G, offset = mimic_map(robot)
    ours, theirs = [], []
    for q, v, a in zip(*random_motion(robot, 0, samples), strict=True):
        data.qpos[place] = G @ q[robot.nq - robot.n :] + offset
        data.qvel[speed], data.qacc[speed] = G @ v[robot.nv - robot.n :], G @ a[robot.nv - robot.n :]
        turn = np.eye(3)
        if robot.base == "floating":  # MuJoCo: quaternion w x y z, linear velocity of the base in the world
            turn = dynid.dynamics.frame_placement(robot, q, robot.links[0].name)[:3, :3]
            data.qpos[:7] = [*q[:3], *q[[6, 3, 4, 5]]]
            data.qvel[:6] = [*turn @ v[:3], *v[3:6]]
            data.qacc[:6] = [*turn @ (a[:3] + np.cross(v[3:6], v[:3])), *a[3:6]]
        mujoco.mj_inverse(model, data)
        tau = data.qfrc_inverse
        root = [*turn.T @ tau[:3], *tau[3:6]] if robot.base == "floating" else []
        theirs.append([*root, *(G.T @ tau[speed])])
        ours.append(dynid.inverse_dynamics(robot, q, v, a)[len(robot.channels) - robot.nv :])
    assert difference(ours, theirs) < SAME
