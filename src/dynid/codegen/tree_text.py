"""Rigid-body dynamics as Python text over tensors: one text for PyTorch and JAX, with the robot's constants.

The straight-line code of the other languages is not used here. Over 4096 samples, the gradient of the forward dynamics
of a 6-joint robot took the compiler of JAX 50 s to compile and 2.5 s to run, since it repeats shared expressions. Here
only the placements of the links are computed link by link. Everything else is computed for all links at once, in base
axes, and sums along the tree are products with a constant matrix of zeros and ones. Moments and inertias refer to the
origin of each link, which keeps the digits of single precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.tree import Tree, compile_robot
from dynid.robot.model import Robot

__all__ = ["TREE_TEXT", "Columns", "tree_constants"]

Array = NDArray[np.float64]

# Places of mass, first moment and inertia tensor (row by row) among the ten inertial parameters.
_PLACES = (0, 1, 2, 3, 4, 5, 7, 5, 6, 8, 7, 8, 9)

TREE_TEXT = '''

def _turn(rotation, x):
    return np.einsum("...ij,...j->...i", rotation, x)


def _turn_back(rotation, x):
    return np.einsum("...ji,...j->...i", rotation, x)


def _outward(x):
    """For every link, the sum over the joints between it and the base."""
    return np.einsum("bj,...jk->...bk", _constant("path", x), x)


def _inward(x):
    """For every joint, the sum over the links that it carries."""
    return np.einsum("bj,...bk->...jk", _constant("path", x), x)


def _whirl(w, dw, x):
    """Acceleration of the point x of a body with angular velocity w and angular acceleration dw."""
    return _cross(dw, x) + _cross(w, _cross(w, x))


def _joints(x):
    """Motion of all joints from that of the independent ones."""
    return x @ _constant("ratios", x) if _MIMICS else x


def _place(q):
    """Rotations and origins of the links, axes and origins of the joints, origins of the links before the joints."""
    x = _joints(q[..., q.shape[-1] - len(JOINTS) :]) + _constant("offsets", q)
    motion = np.stack((np.ones_like(x), np.sin(x), np.cos(x), x), -1)
    local = np.einsum("...jf,jfk->...jk", motion, _constant("placements", q))
    turned, shifted = local[..., :9].reshape(*local.shape[:-1], 3, 3), local[..., 9:]
    rotations = [_constant("identity", q) + np.zeros_like(turned[..., 0, :, :])]
    origins = [np.zeros_like(shifted[..., 0, :])]
    for j, link in enumerate(_PARENTS):
        rotations.append(rotations[link] @ turned[..., j, :, :])
        origins.append(origins[link] + _turn(rotations[link], shifted[..., j, :]))
    before = np.stack([rotations[link] for link in _PARENTS], -3)
    start = np.stack([origins[link] for link in _PARENTS], -2)
    axes = _turn(before, _constant("axes", q))
    joints = start + _turn(before, _constant("origins", q))
    return np.stack(rotations[1:], -3), np.stack(origins[1:], -2), axes, joints, start


def _bodies(parms, places):
    """Mass (..., link, 1), first moment (..., link, 3) and inertia tensor (..., link, 3, 3), in link axes."""
    x = _take(parms, places)
    x = x.reshape(*x.shape[:-1], len(places) // 13, 13)
    return x[..., :1], x[..., 1:4], x[..., 4:].reshape(*x.shape[:-1], 3, 3)


def _base_body(parms):
    mass, moment, inertia = _bodies(parms, _BASE)
    return mass[..., 0, :], moment[..., 0, :], inertia[..., 0, :, :]


def _rigid_torque(placed, q, v, a, parms, gravity=True):
    """Torque of every channel, without drives."""
    rotations, origins, axes, joints, start = placed
    mass, moment, inertia = _bodies(parms, _LINKS)
    revolute = _constant("revolute", q)
    n = len(JOINTS)
    u, du = _joints(v[..., v.shape[-1] - n :])[..., None], _joints(a[..., a.shape[-1] - n :])[..., None]
    w_base, dw_base, lift_base = _base_motion(q, v, a, gravity)
    turning, sliding = revolute * axes * u, (1.0 - revolute) * axes
    w = _outward(turning) + w_base[..., None, :]
    w_before = w - turning
    turned = revolute * axes * du + _cross(w_before, turning)
    dw = _outward(turned) + dw_base[..., None, :]
    reach = origins - joints
    step = _whirl(w_before, dw - turned, joints - start + (1.0 - revolute) * reach) + _whirl(w, dw, revolute * reach)
    step = step + sliding * du + 2.0 * _cross(w_before, sliding * u)
    lift = _outward(step) + lift_base[..., None, :]
    moment = _turn(rotations, moment)
    w_own, dw_own = _turn_back(rotations, w), _turn_back(rotations, dw)
    torque = _turn(rotations, _turn(inertia, dw_own) + _cross(w_own, _turn(inertia, w_own))) + _cross(moment, lift)
    force = mass * lift + _whirl(w, dw, moment)
    carried = _inward(force)
    lever = _cross(origins - start, carried)
    about_joint = _inward(torque + lever) - lever + _cross(reach, carried)
    out = np.sum(axes * (revolute * about_joint + (1.0 - revolute) * carried), -1)
    if _MIMICS:
        out = out @ _constant("ratios", out).swapaxes(0, 1)
    if not _WRENCH:
        return out
    mass, moment, inertia = _base_body(parms)
    force = np.sum(force, -2) + mass * lift_base + _whirl(w_base, dw_base, moment)
    torque = np.sum(torque + lever, -2) + _cross(moment, lift_base)
    torque = torque + _turn(inertia, dw_base) + _cross(w_base, _turn(inertia, w_base))
    return np.concatenate((force, torque, out), -1)


def _base_motion(q, v, a, gravity):
    """Angular velocity, its rate, and the acceleration less gravity of the base, in base axes."""
    g = _constant("gravity", q) if gravity else 0.0 * _constant("gravity", q)
    still = np.zeros_like(v[..., :1]) * g
    if not _FLOATING:
        return still, still, still - g
    # The rotation of the base, turned back: g + 2 (w e + axis x e) with e = axis x g and the axis reversed.
    axis = -q[..., 3:6]
    e = _cross(axis, g + still)
    g = g + 2.0 * (q[..., 6:7] * e + _cross(axis, e))
    w = v[..., 3:6]
    return w, a[..., 3:6], a[..., :3] + _cross(w, v[..., :3]) - g


def _rigid_mass(placed, parms):
    """Mass matrix without rotors, from the inertia of the links that each joint carries."""
    rotations, origins, axes, joints, start = placed
    mass, moment, inertia = _bodies(parms, _LINKS)
    revolute, identity = _constant("revolute", origins), _constant("identity", origins)
    arm, reach = origins - start, origins - joints
    carried = _inward(mass)
    shift = arm * carried
    moment = _turn(rotations, moment) + shift
    moment_carried = _inward(moment) - shift
    product = moment_carried[..., :, None] * arm[..., None, :]
    product = product + product.swapaxes(-1, -2) + shift[..., :, None] * arm[..., None, :]
    moved = np.sum((2.0 * moment_carried + shift) * arm, -1)[..., None, None] * identity - product
    inertia = rotations @ inertia @ rotations.swapaxes(-1, -2) + moved
    inertia_carried = _inward(inertia.reshape(*inertia.shape[:-2], 9)).reshape(inertia.shape) - moved
    turning, sliding = revolute * axes, (1.0 - revolute) * axes
    velocity = _cross(turning, reach) + sliding
    force = carried * velocity + _cross(turning, moment_carried)
    torque = _cross(moment_carried, velocity) + _turn(inertia_carried, turning) + _cross(origins, force)
    twists = np.concatenate((_cross(joints, turning) + sliding, turning), -1)
    wrenches = np.concatenate((force, torque), -1)
    out = np.einsum("...kc,...jc->...kj", twists, wrenches) * _constant("path", origins).swapaxes(0, 1)
    out = out + (out * _constant("others", origins)).swapaxes(-1, -2)
    if _MIMICS:
        ratios = _constant("ratios", origins)
        wrenches, out = ratios @ wrenches, ratios @ out @ ratios.swapaxes(0, 1)
    if not _FLOATING:
        return out
    base_mass, base_moment, base_inertia = _base_body(parms)
    total, moment = np.sum(mass, -2) + base_mass, np.sum(moment, -2) + base_moment
    tensor = np.sum(inertia, -3) + base_inertia
    skew = _cross(moment[..., None, :], identity + np.zeros_like(tensor)).swapaxes(-1, -2)
    top = np.concatenate((total[..., None] * identity - 0.0 * skew, -skew), -1)
    base = np.concatenate((top, np.concatenate((skew, tensor), -1)), -2)
    top = np.concatenate((base, wrenches.swapaxes(-1, -2)), -1)
    return np.concatenate((top, np.concatenate((wrenches, out), -1)), -2)
'''


class Columns:
    """Where the numbers of the robot stand in `parms`, and behind it those that are fixed."""

    def __init__(self, robot: Robot, places: Sequence[int]) -> None:
        self.fixed = [0.0]
        self._size = len(places)
        self._at = {place: k for k, place in enumerate(places)}
        self._robot, self._tree = robot, compile_robot(robot).tree

    def of(self, column: int) -> int:
        """Place of a standard parameter; that of a zero where it is no base parameter."""
        return self._at.get(column, self._size)

    def body(self, link: int) -> list[int]:
        """Places of mass, first moment and inertia tensor of a link."""
        if not self._tree.massive[link]:
            return [self._size] * len(_PLACES)
        first = int(self._tree.column[link])
        if first >= 0:
            return [self.of(first + k) for k in _PLACES]
        start = self._size + len(self.fixed)
        self.fixed += [float(x) for x in self._robot.links[link].inertia]
        return [start + k for k in _PLACES]


def tree_constants(robot: Robot, columns: Columns) -> tuple[dict[str, object], dict[str, Array]]:
    """Plain values and arrays that TREE_TEXT needs."""
    tree = compile_robot(robot).tree
    joints = len(robot.joints)
    path, ratios = np.zeros((joints, joints)), np.zeros((robot.n, joints))
    for j in range(joints):
        path[j, tree.support[tree.support_start[j + 1] : tree.support_start[j + 2]]] = 1.0
        ratios[tree.coordinate[j], j] = tree.ratio[j]
    plain = {
        "_FLOATING": bool(tree.moving),
        "_WRENCH": bool(tree.wrench_rows),
        "_MIMICS": not np.array_equal(ratios, np.eye(robot.n, joints)),
        "_PARENTS": tuple(int(x) for x in tree.parent),
        "_LINKS": [k for link in range(1, joints + 1) for k in columns.body(link)],
        "_BASE": columns.body(0) if tree.wrench_rows else [],
    }
    arrays = {
        "identity": np.eye(3),
        "gravity": tree.gravity,
        "path": path,
        "others": 1.0 - np.eye(joints),
        "ratios": ratios,
        "offsets": tree.offset,
        "revolute": np.array([[float(joint.kind == "revolute")] for joint in robot.joints]),
        "axes": np.array([joint.placement[:3, :3] @ joint.axis for joint in robot.joints]),
        "origins": np.array([joint.placement[:3, 3] for joint in robot.joints]),
        "placements": _placements(tree),
    }
    return plain, arrays


def _placements(tree: Tree) -> Array:
    """Rotation and origin of each link before its joint, per 1, sine, cosine and position of the joint (joint, 4, 12)."""
    rotation = np.concatenate((tree.rotation, np.zeros((len(tree.rotation), 1, 9))), 1)
    return np.concatenate((rotation, tree.position), 2)
