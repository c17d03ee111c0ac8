"""Placements and Jacobians of links and named frames.

With the twists J_j = (s, w) at the base origin of the joints that carry the frame with origin p:

    column of joint j = (s + w x p, w),    drift = sum over j of d/dt J_j v_j = V_p x J_j v_j, moved to the origin p.

Source: Siciliano, Sciavicco, Villani and Oriolo, Robotics: Modelling, Planning and Control (2009), chapter 3.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import assemble, of_given_shape
from dynid.dynamics.batch import as_batch, run
from dynid.dynamics.tree import compile_robot
from dynid.errors import ModelError, NotApplicable, UnknownName, named
from dynid.robot.model import Robot

__all__ = [
    "base_placement",
    "frame_drift",
    "frame_jacobian",
    "frame_on_link",
    "frame_placement",
    "joint_twists",
    "link_of_frame",
    "placement_in_base",
]

Array = NDArray[np.float64]


def frame_placement(robot: Robot, q: ArrayLike, frame: str) -> Array:
    """Forward kinematics: placement of a link or named frame in the world.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    frame : str
        Name of a link or of a frame of the robot.

    Returns
    -------
    ndarray, shape (N, 4, 4) or (4, 4)
        Homogeneous matrices.

    Raises
    ------
    ModelError
        If there is no such link or frame.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.dynamics.frame_placement(robot, [0.1, 0.2], "link2").shape
    (4, 4)
    """
    if robot.loops:
        return of_given_shape(q, frame_placement(robot.tree, assemble(robot, q).q, frame))
    (q,), _, single = as_batch(robot, q=q)
    out = placement_in_base(robot, q, frame)
    if robot.base == "floating":
        out = _base_placement(q) @ out
    return out[0] if single else out


def frame_jacobian(
    robot: Robot, q: ArrayLike, frame: str, *, reference: Literal["aligned", "local"] = "aligned"
) -> Array:
    """Geometric Jacobian of a link or named frame at its origin.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    frame : str
        Name of a link or of a frame of the robot.
    reference : {"aligned", "local"}
        Axes of the result: those of the world or of the frame.

    Returns
    -------
    ndarray, shape (N, 6, nv) or (6, nv)
        Twist per velocity, linear rows first.

    Raises
    ------
    ModelError
        If there is no such link or frame.
    """
    if robot.loops:
        x = assemble(robot, q)
        return of_given_shape(q, frame_jacobian(robot.tree, x.q, frame, reference=reference) @ x.jacobian)
    if reference not in ("aligned", "local"):
        raise UnknownName(f"{named('reference')} '{reference}' is unknown: use aligned or local")
    (q,), samples, single = as_batch(robot, q=q)
    body, on_body = frame_on_link(robot, frame)
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
    """Acceleration (N, 6) of a frame at zero joint acceleration, (dJ/dt) v with J of `frame_jacobian`; fixed base only.

    Linear rows first, in world axes at the origin of the frame.
    """
    if robot.loops:
        x = assemble(robot, q, v)
        turned = frame_jacobian(robot.tree, x.q, frame) @ x.a[:, :, None]
        return of_given_shape(q, frame_drift(robot.tree, x.q, x.v, frame) + turned[:, :, 0])
    if robot.base == "floating":
        raise NotApplicable(f"robot '{robot.name}' has a floating base; the drift of a frame needs a fixed base")
    (q, v), _, single = as_batch(robot, q=q, v=v)
    body, on_body = frame_on_link(robot, frame)
    rotation, position, twists = _kinematics(robot, q, body)
    at = position + rotation @ on_body[:3, 3]
    tree = compile_robot(robot).tree
    chain = tree.support[tree.support_start[body] : tree.support_start[body + 1]]
    parts = (tree.ratio[chain] * v[:, tree.coordinate[chain]])[..., None] * twists[:, chain]
    carried = np.cumsum(parts, axis=1) - parts
    # The twist of a joint moves with the body that carries it: d/dt S = V x S.
    turning = _cross(carried[..., 3:], parts[..., 3:]).sum(axis=1)
    linear = (_cross(carried[..., 3:], parts[..., :3]) + _cross(carried[..., :3], parts[..., 3:])).sum(axis=1)
    twist = parts.sum(axis=1)
    velocity = twist[:, :3] + _cross(twist[:, 3:], at)
    linear += _cross(turning, at) + _cross(twist[:, 3:], velocity)
    rate = np.concatenate([linear, turning], axis=1)
    return rate[0] if single else rate


def placement_in_base(robot: Robot, q: Array, frame: str) -> Array:
    """Placement (N, 4, 4) of a link or named frame in the frame of the base link, for q (N, nq)."""
    if robot.loops:
        return placement_in_base(robot.tree, assemble(robot, q).q, frame)
    body, on_body = frame_on_link(robot, frame)
    rotation, position, _ = _kinematics(robot, q, body)
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, :3, :3] = rotation @ on_body[:3, :3]
    out[:, :3, 3] = position + rotation @ on_body[:3, 3]
    return out


def base_placement(robot: Robot, q: Array) -> Array:
    """Placement (N, 4, 4) of the base in the world, the identity unless the base is floating; q (N, nq)."""
    return _base_placement(q) if robot.base == "floating" else np.tile(np.eye(4), (len(q), 1, 1))


def joint_twists(robot: Robot, q: Array, body: int) -> Array:
    """Twists (N, joint, 6), linear first, of the joints that carry a body, at the base origin, base axes; q (N, nq)."""
    return _kinematics(robot, q, body)[2]


def link_of_frame(robot: Robot, frame: str) -> int:
    """Index of the link that is, or carries, a named frame."""
    return frame_on_link(robot, frame)[0]


def frame_on_link(robot: Robot, name: str) -> tuple[int, Array]:
    """Index of the carrying link of a link or named frame, and the placement on it."""
    for i, link in enumerate(robot.links):
        if link.name == name:
            return i, np.eye(4)
    for frame in robot.frames:
        if frame.name == name:
            return frame.link, frame.placement
    known = [x.name for x in robot.links] + [x.name for x in robot.frames]
    raise ModelError(f"no link or frame named '{name}', known: {', '.join(known)}", "name", code="unknown_name")


def _kinematics(robot: Robot, q: Array, body: int) -> tuple[Array, Array, Array]:
    """Rotation and position of a body in the base frame, and the joint twists at the base origin."""
    from dynid.dynamics.kernels import energy

    rotation, position = np.empty((len(q), 3, 3)), np.empty((len(q), 3))
    twists = np.empty((len(q), len(robot.joints), 6))
    run(energy.placements, len(q), (compile_robot(robot).tree, q), (body, rotation, position, twists))
    return rotation, position, twists


def _cross(a: Array, b: Array) -> Array:
    """Cross products over the last axis; numpy.cross takes ten times as long for small arrays."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out


def _minus_cross(p: Array) -> Array:
    """Negative cross-product matrices (N, 3, 3)."""
    out = np.zeros((len(p), 3, 3))
    x, y, z = p.T
    out[:, 0, 1], out[:, 0, 2] = z, -y
    out[:, 1, 0], out[:, 1, 2] = -z, x
    out[:, 2, 0], out[:, 2, 1] = y, -x
    return out


def _base_placement(q: Array) -> Array:
    """Placement (N, 4, 4) of a floating base in the world, from position and quaternion."""
    x, y, z, w = q[:, 3:7].T
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    out[:, 2, 0], out[:, 2, 1], out[:, 2, 2] = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
    out[:, :3, 3] = q[:, :3]
    return out
