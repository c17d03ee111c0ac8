"""Torques of rigid bodies over many samples in plain NumPy: the load that friction depends on.

Newton and Euler's equations of each body about the origin of its link, in the base frame. The kernels of
`dynid.dynamics` are far faster, but a robot does not depend on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.robot.mechanism import Mechanism
from dynid.robot.spatial import skew

__all__ = ["body_torques"]

Array = NDArray[np.float64]


def body_torques(robot: Mechanism, q: Array, v: Array, a: Array) -> Array:
    """Torques (N, n) of the bodies of a tree on a fixed base.

    Parameters
    ----------
    robot : Mechanism
        The tree; its drives do not count.
    q, v, a : ndarray, shape (N, n)
        Positions, velocities and accelerations of its joints.

    Returns
    -------
    ndarray, shape (N, n)
    """
    count = len(q)
    start = np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3))
    frames = [start]
    still = np.zeros((count, 3))
    motions = [(still, still, still - robot.gravity)]
    axes: list[tuple[Array, Array]] = []
    for joint in robot.joints:
        ratio, offset, leader = (
            (1.0, 0.0, joint.name)
            if joint.mimic is None
            else (joint.mimic.ratio, joint.mimic.offset, joint.mimic.leader)
        )
        k = robot.tree_coordinates.index(leader)
        x, rate, change = ratio * q[:, k] + offset, (ratio * v[:, k])[:, None], (ratio * a[:, k])[:, None]
        (R, p), (w, dw, dv) = frames[joint.parent], motions[joint.parent]
        place = R @ joint.placement[:3, :3]
        origin = p + R @ joint.placement[:3, 3]
        z = place @ joint.axis
        dv = _moved(dv, w, dw, origin - p)
        if joint.kind == "prismatic":
            dv = _moved(dv, w, dw, x[:, None] * z) + 2 * np.cross(w, rate * z) + change * z
            end = origin + x[:, None] * z
        else:
            dw = dw + change * z + np.cross(w, rate * z)
            w = w + rate * z
            end, place = origin, place @ _turned(joint.axis, x)
        tip = end + place @ joint.mount[:3, 3]
        frames.append((place @ joint.mount[:3, :3], tip))
        motions.append((w, dw, _moved(dv, w, dw, tip - end)))
        axes.append((z, origin))
    return _projected(robot, frames, motions, axes)


def _projected(
    robot: Mechanism,
    frames: list[tuple[Array, Array]],
    motions: list[tuple[Array, Array, Array]],
    axes: list[tuple[Array, Array]],
) -> Array:
    """Forces and moments of all bodies, summed from the tips to the base, on the axes of the joints."""
    wrenches = [_wrench(robot.links[i].inertia, frames[i][0], motions[i]) for i in range(len(robot.links))]
    torques = np.zeros((len(frames[0][1]), len(robot.tree_coordinates)))
    for i in range(len(robot.joints), 0, -1):
        joint, (z, origin) = robot.joints[i - 1], axes[i - 1]
        force, moment = wrenches[i]
        arm = frames[i][1] - origin
        about = moment + np.cross(arm, force)
        ratio, leader = (1.0, joint.name) if joint.mimic is None else (joint.mimic.ratio, joint.mimic.leader)
        along = about if joint.kind == "revolute" else force
        torques[:, robot.tree_coordinates.index(leader)] += ratio * np.sum(along * z, axis=1)
        before, turning = wrenches[joint.parent]
        wrenches[joint.parent] = (
            before + force,
            turning + moment + np.cross(frames[i][1] - frames[joint.parent][1], force),
        )
    return torques


def _wrench(inertia: Array, R: Array, motion: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Force and moment (N, 3) about the origin of a link that move its body."""
    w, dw, dv = motion
    mass, moment, (xx, xy, yy, xz, yz, zz) = inertia[0], inertia[1:4], inertia[4:]
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    h, inner = R @ moment, R @ tensor @ np.swapaxes(R, 1, 2)
    force = mass * dv + np.cross(dw, h) + np.cross(w, np.cross(w, h))
    spin = (inner @ w[:, :, None])[:, :, 0]
    return force, (inner @ dw[:, :, None])[:, :, 0] + np.cross(w, spin) + np.cross(h, dv)


def _moved(dv: Array, w: Array, dw: Array, r: Array) -> Array:
    """Acceleration (N, 3) of a point of a body at r from one with acceleration dv."""
    return np.asarray(dv + np.cross(dw, r) + np.cross(w, np.cross(w, r)))


def _turned(axis: Array, angle: Array) -> Array:
    """Rotations (N, 3, 3) about an axis."""
    K, angle = skew(axis), angle[:, None, None]
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K))
