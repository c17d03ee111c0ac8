"""Placements and Jacobians of links and named frames."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch, run
from dynid.dynamics.tree import compile_robot
from dynid.errors import DataError, ModelError
from dynid.robot.model import Robot

__all__ = [
    "base_placement",
    "frame_drift",
    "frame_jacobian",
    "frame_placement",
    "joint_twists",
    "link_of_frame",
    "placement_in_base",
]

Array = NDArray[np.float64]


def frame_placement(robot: Robot, q: ArrayLike, frame: str) -> Array:
    """Homogeneous matrices (N, 4, 4) of a link or named frame, in the world."""
    (q,), _, single = as_batch(robot, q=q)
    out = placement_in_base(robot, q, frame)
    if robot.base == "floating":
        out = _base_placement(q) @ out
    return out[0] if single else out


def frame_jacobian(robot: Robot, q: ArrayLike, frame: str, reference: Literal["aligned", "local"] = "aligned") -> Array:
    """Jacobian (N, 6, nv), linear rows first, of a link or named frame at its own origin.

    `reference` chooses the axes it is written in: the world's ("aligned") or the frame's ("local").
    """
    if reference not in ("aligned", "local"):
        raise DataError(f"reference '{reference}' is unknown: use aligned or local")
    (q,), samples, single = as_batch(robot, q=q)
    body, on_body = _find(robot, frame)
    rotation, position, twists = _kinematics(robot, q, body)
    tree = compile_robot(robot).tree
    at = position + rotation @ on_body[:3, 3]
    first = robot.nv - robot.n
    out = np.zeros((samples, 6, robot.nv))
    if first:
        out[:, :3, :3] = out[:, 3:, 3:6] = np.eye(3)
        out[:, :3, 3:6] = _minus_cross(at)
    for j in tree.support[tree.support_start[body] : tree.support_start[body + 1]]:
        linear = twists[:, j, :3] + _cross(twists[:, j, 3:], at)
        column = first + tree.coordinate[j]
        out[:, :3, column] += tree.ratio[j] * linear
        out[:, 3:, column] += tree.ratio[j] * twists[:, j, 3:]
    if reference == "local":
        axes = np.swapaxes(rotation @ on_body[:3, :3], 1, 2)
    elif robot.base == "floating":
        axes = _base_placement(q)[:, :3, :3]
    else:
        return out[0] if single else out
    out = np.concatenate([axes @ out[:, :3], axes @ out[:, 3:]], axis=1)
    return out[0] if single else out


def frame_drift(robot: Robot, q: ArrayLike, v: ArrayLike, frame: str) -> Array:
    """Acceleration (N, 6) of a frame of a robot with fixed base while no joint accelerates: J' v of `frame_jacobian`.

    Linear rows first, in world axes at the frame's own origin.
    """
    if robot.base == "floating":
        raise DataError(f"robot '{robot.name}' has a floating base; the drift of a frame needs a fixed one")
    (q, v), _, single = as_batch(robot, q=q, v=v)
    body, on_body = _find(robot, frame)
    rotation, position, twists = _kinematics(robot, q, body)
    at = position + rotation @ on_body[:3, 3]
    tree = compile_robot(robot).tree
    chain = tree.support[tree.support_start[body] : tree.support_start[body + 1]]
    parts = (tree.ratio[chain] * v[:, tree.coordinate[chain]])[..., None] * twists[:, chain]
    carried = np.cumsum(parts, axis=1) - parts
    # A joint's twist turns with the body that carries it: d/dt S = V x S.
    turning = _cross(carried[..., 3:], parts[..., 3:]).sum(axis=1)
    linear = (_cross(carried[..., 3:], parts[..., :3]) + _cross(carried[..., :3], parts[..., 3:])).sum(axis=1)
    twist = parts.sum(axis=1)
    speed = twist[:, :3] + _cross(twist[:, 3:], at)
    linear += _cross(turning, at) + _cross(twist[:, 3:], speed)
    rate = np.concatenate([linear, turning], axis=1)
    return rate[0] if single else rate


def placement_in_base(robot: Robot, q: Array, frame: str) -> Array:
    """Homogeneous matrices (N, 4, 4) of a link or named frame as seen from the base link, q (N, nq)."""
    body, on_body = _find(robot, frame)
    rotation, position, _ = _kinematics(robot, q, body)
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, :3, :3] = rotation @ on_body[:3, :3]
    out[:, :3, 3] = position + rotation @ on_body[:3, 3]
    return out


def base_placement(robot: Robot, q: Array) -> Array:
    """World placement (N, 4, 4) of the base, which is the world itself unless it floats; q (N, nq)."""
    return _base_placement(q) if robot.base == "floating" else np.tile(np.eye(4), (len(q), 1, 1))


def joint_twists(robot: Robot, q: Array, body: int) -> Array:
    """Twists (N, joint, 6), linear first, of the joints that carry a body: base axes, at the base origin; q (N, nq)."""
    return _kinematics(robot, q, body)[2]


def link_of_frame(robot: Robot, frame: str) -> int:
    """Number of the link that is, or carries, a named frame."""
    return _find(robot, frame)[0]


def _find(robot: Robot, name: str) -> tuple[int, Array]:
    """Body that carries a link or named frame, and its placement there."""
    for i, link in enumerate(robot.links):
        if link.name == name:
            return i, np.eye(4)
    for frame in robot.frames:
        if frame.name == name:
            return frame.link, frame.placement
    known = [x.name for x in robot.links] + [x.name for x in robot.frames]
    raise ModelError(f"no link or frame named '{name}', known: {', '.join(known)}")


def _kinematics(robot: Robot, q: Array, body: int) -> tuple[Array, Array, Array]:
    from dynid.dynamics.kernels import energy

    rotation, position = np.empty((len(q), 3, 3)), np.empty((len(q), 3))
    twists = np.empty((len(q), len(robot.joints), 6))
    run(energy.placements, len(q), (compile_robot(robot).tree, q), (body, rotation, position, twists))
    return rotation, position, twists


def _cross(a: Array, b: Array) -> Array:
    """Cross products over the last axis; numpy's own takes ten times as long for a few of them."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out


def _minus_cross(p: Array) -> Array:
    out = np.zeros((len(p), 3, 3))
    x, y, z = p.T
    out[:, 0, 1], out[:, 0, 2] = z, -y
    out[:, 1, 0], out[:, 1, 2] = -z, x
    out[:, 2, 0], out[:, 2, 1] = y, -x
    return out


def _base_placement(q: Array) -> Array:
    """World placement (N, 4, 4) of a floating base from position and quaternion."""
    x, y, z, w = q[:, 3:7].T
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    out[:, 2, 0], out[:, 2, 1], out[:, 2, 2] = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
    out[:, :3, 3] = q[:, :3]
    return out
