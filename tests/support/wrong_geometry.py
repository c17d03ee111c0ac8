"""Robots with random errors of their geometry, and where their tools then are by other libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid import Robot
from dynid.geometry import Geometry, GeometryModel, Unknown
from dynid.geometry.real import RealRobot, random_postures

Array = NDArray[np.float64]

RIGID = GeometryModel(gear=0.0, eccentricity=0.0, compliance=0.0, bending=0.0)
EVERYTHING = GeometryModel(gear=1e-3, eccentricity=1e-3, compliance=3e-5, bending=1e-5)


def wrong(robot: Robot, seed: int = 0, model: GeometryModel = RIGID) -> tuple[tuple[Unknown, ...], Array]:
    """Unknowns of all joints, and random values of the size that the model expects."""
    unknowns = Geometry(robot, tuple(x.name for x in robot.links), model).unknowns
    return unknowns, np.random.default_rng(seed).normal(size=len(unknowns)) * [u.std for u in unknowns]


def postures(robot: Robot, count: int = 50, seed: int = 1) -> Array:
    """Random postures within limits."""
    return random_postures(robot, count, seed)


def tool(robot: Robot, unknowns: tuple[Unknown, ...], values: Array, q: Array, frame: str) -> Array:
    """Placements (N, 4, 4) by the kinematics of the calibration."""
    placed = RealRobot(robot, unknowns, values).place(q, [frame])[frame]
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, :3, :3], out[:, :3, 3] = placed.rotation, placed.origin
    return out


def positions(robot: Robot, q: Array) -> dict[str, Array]:
    """Positions (N,) of every joint, followers included."""
    column = dict(zip(robot.coordinates, q.T, strict=True))
    return {
        j.name: column[j.name] if j.mimic is None else j.mimic.ratio * column[j.mimic.leader] + j.mimic.offset
        for j in robot.joints
    }


def by_pinocchio(path: Path, robot: Robot, q: Array, frame: str) -> Array:
    """Placements (N, 4, 4) of a frame of a URDF file."""
    model = pin.buildModelFromUrdf(str(path))
    data, out = model.createData(), []
    place = positions(robot, q)
    for k in range(len(q)):
        x = pin.neutral(model)
        for name, values in place.items():
            joint = model.joints[model.getJointId(name)]
            cyclic = joint.nq == 2
            x[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(values[k]), np.sin(values[k])] if cyclic else [values[k]]
        pin.framesForwardKinematics(model, data, x)
        out.append(data.oMf[model.getFrameId(frame)].homogeneous.copy())
    return np.array(out)


def by_mujoco(path: Path, robot: Robot, q: Array, body: str) -> Array:
    """Placements (N, 4, 4) of a body of an MJCF file, without its meshes."""
    import mujoco

    spec = mujoco.MjSpec.from_file(str(path))
    for geom in list(spec.geoms):
        spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    model = spec.compile()
    data, out = mujoco.MjData(model), []
    place = positions(robot, q)
    for k in range(len(q)):
        for name, values in place.items():
            data.qpos[model.jnt_qposadr[model.joint(name).id]] = values[k]
        mujoco.mj_kinematics(model, data)
        h = np.eye(4)
        h[:3, :3], h[:3, 3] = data.body(body).xmat.reshape(3, 3), data.body(body).xpos
        out.append(h)
    return np.array(out)
