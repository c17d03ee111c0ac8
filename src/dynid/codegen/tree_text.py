"""Rigid-body dynamics as Python text over tensors: one text for PyTorch and JAX, with the robot's constants.

The straight-line code of the other languages is not used here. Over 4096 samples, the gradient of the forward dynamics
of a 6-joint robot took the compiler of JAX 50 s to compile and 2.5 s to run, since it repeats shared expressions. Here
only the placements of the links are computed link by link. Everything else is computed for all links at once, in base
axes, and sums along the tree are products with a constant matrix of zeros and ones. The axes of an array are component,
link, sample, so that loops run over samples. Moments and inertias refer to the origin of each link, which keeps the
digits of single precision.
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

def _cross(a, b):
    (ax, ay, az), (bx, by, bz) = a, b
    return np.stack((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _turn(rotation, x):
    return rotation[:, 0] * x[0] + rotation[:, 1] * x[1] + rotation[:, 2] * x[2]


def _turn_back(rotation, x):
    return rotation[0] * x[0] + rotation[1] * x[1] + rotation[2] * x[2]


def _product(a, b):
    return a[:, :1] * b[0] + a[:, 1:2] * b[1] + a[:, 2:] * b[2]


def _outward(x):
    """For every link, the sum over the joints between it and the base."""
    return np.einsum("bj,cjn->cbn", _constant("path", x), x)


def _inward(x):
    """For every joint, the sum over the links that it carries."""
    return np.einsum("bj,cbn->cjn", _constant("path", x), x)


def _whirl(w, dw, x):
    """Acceleration of the point x of a body with angular velocity w and angular acceleration dw."""
    return _cross(dw, x) + _cross(w, _cross(w, x))


def _joints(x):
    """Motion of all joints from that of the independent ones, which come last."""
    x = x[len(x) - len(JOINTS) :]
    return _constant("ratios", x) @ x if _MIMICS else x


def _place(q):
    """Rotations and origins of the links, axes and origins of the joints, origins of the links before the joints."""
    x = _joints(q) + _constant("offsets", q)
    motion = np.stack((np.ones_like(x), np.sin(x), np.cos(x), x))
    local = np.einsum("kfj,fjn->kjn", _constant("placements", q), motion)
    turned, shifted = local[:9].reshape(3, 3, *x.shape), local[9:]
    return _link_by_link(_next_link, turned, shifted, _constant("axes", x), _constant("origins", x))


def _next_link(before, start, turned, shifted, axis, joint):
    """What `_place` gives of one link, from the rotation and the origin of the link before it."""
    return (
        _product(before, turned),
        start + _turn(before, shifted),
        _turn(before, axis),
        start + _turn(before, joint),
        start,
    )


def _bodies(parms, places):
    """Mass (1, link, n), first moment (3, link, n) and inertia tensor (3, 3, link, n), in link axes."""
    x = _take(parms, places).reshape(13, len(places) // 13, parms.shape[1])
    return x[:1], x[1:4], x[4:].reshape(3, 3, *x.shape[1:])


def _rigid_torque(placed, q, v, a, parms, gravity=True):
    """Torque of every channel, without drives."""
    rotations, origins, axes, joints, start = placed
    revolute, u, du = _constant("revolute", q), _joints(v), _joints(a)
    w_base, dw_base, lift_base = _base_motion(q, v, a, gravity)
    turning = axes * (revolute * u)
    w = _outward(turning) + w_base
    turned = axes * (revolute * du) + _cross(w - turning, turning)
    dw = _outward(turned) + dw_base
    step = _per_link(_link_step, placed, revolute, u, du, w, turning, dw, turned)
    lift = _outward(step) + lift_base
    force, torque = _per_link(_link_wrench, rotations, w, dw, lift, *_bodies(parms, _LINKS))
    carried = _inward(force)
    lever = _cross(origins - start, carried)
    torque = torque + lever
    about_joint = _inward(torque) - lever + _cross(origins - joints, carried)
    out = _dot(axes, revolute * about_joint + (1.0 - revolute) * carried if _SLIDES else about_joint)
    if _MIMICS:
        out = _constant("ratios", out).swapaxes(0, 1) @ out
    if not _WRENCH:
        return out
    mass, moment, inertia = _bodies(parms, _BASE)
    force = np.sum(force, 1) + (mass * lift_base + _whirl(w_base, dw_base, moment))[:, 0]
    spin = _turn(inertia, dw_base) + _cross(w_base, _turn(inertia, w_base)) + _cross(moment, lift_base)
    return np.concatenate((force, np.sum(torque, 1) + spin[:, 0], out), 0)


def _link_step(placed, revolute, u, du, w, turning, dw, turned):
    """Acceleration of the origin of a link relative to that of the link before it."""
    _, origin, axis, joint, start = placed
    w_before, dw_before, reach = w - turning, dw - turned, origin - joint
    if not _SLIDES:
        return _whirl(w_before, dw_before, joint - start) + _whirl(w, dw, reach)
    sliding = (1.0 - revolute) * axis
    out = _whirl(w_before, dw_before, joint - start + (1.0 - revolute) * reach) + _whirl(w, dw, revolute * reach)
    return out + sliding * du + 2.0 * _cross(w_before, sliding * u)


def _link_wrench(rotation, w, dw, lift, mass, moment, inertia):
    """Force and torque that move a link, at its origin."""
    moment = _turn(rotation, moment)
    w_own = _turn_back(rotation, w)
    spin = _turn(inertia, _turn_back(rotation, dw)) + _cross(w_own, _turn(inertia, w_own))
    return mass * lift + _whirl(w, dw, moment), _turn(rotation, spin) + _cross(moment, lift)


def _base_motion(q, v, a, gravity):
    """Angular velocity, its rate, and the acceleration less gravity of the base (3, 1, n), in base axes."""
    still = np.zeros_like(v[:1]) + np.zeros_like(_constant("gravity", v))
    g = still + (1.0 if gravity else 0.0) * _constant("gravity", v)
    if not _FLOATING:
        return still, still, -g
    # The rotation of the base, turned back: g + 2 (w e + axis x e) with e = axis x g and the axis reversed.
    axis = -q[3:6, None]
    e = _cross(axis, g)
    g = g + 2.0 * (q[6] * e + _cross(axis, e))
    w = v[3:6, None]
    return w, a[3:6, None], a[:3, None] + _cross(w, v[:3, None]) - g


def _rigid_mass(placed, parms):
    """Mass matrix without rotors, from the inertia of the links that each joint carries."""
    rotations, origins, axes, joints, start = placed
    revolute, arm = _constant("revolute", origins), origins - start
    mass, moment, inertia = _bodies(parms, _LINKS)
    carried = _inward(mass)
    shift = arm * carried
    moment = _turn(rotations, moment) + shift
    moment_carried = _inward(moment) - shift
    inertia, moved = _per_link(_link_inertia, rotations, inertia, moment_carried, shift, arm)
    inertia_carried = _inward(inertia.reshape(9, *inertia.shape[2:])).reshape(inertia.shape) - moved
    twists, wrenches = _per_link(_link_twist, placed, revolute, carried, moment_carried, inertia_carried)
    out = np.einsum("ckn,cjn->kjn", twists, wrenches) * _constant("carries", origins)
    out = out + (out * _constant("others", origins)).swapaxes(0, 1)
    if _MIMICS:
        ratios = _constant("ratios", origins)
        wrenches, out = np.einsum("ji,cjn->cin", ratios, wrenches), np.einsum("ki,kln,lj->ijn", ratios, out, ratios)
    if not _FLOATING:
        return out
    base_mass, base_moment, base_inertia = _bodies(parms, _BASE)
    total, moment = np.sum(mass + 0.0 * axes[:1], 1) + base_mass[:, 0], np.sum(moment, 1) + base_moment[:, 0]
    tensor = np.sum(inertia, 2) + base_inertia[:, :, 0]
    x, y, z = moment
    none = np.zeros_like(x)
    skew = np.stack((np.stack((none, -z, y)), np.stack((z, none, -x)), np.stack((-y, x, none))))
    top = np.concatenate((total * _identity(x), -skew), 1)
    base = np.concatenate((top, np.concatenate((skew, tensor), 1)), 0)
    top = np.concatenate((base, wrenches), 1)
    return np.concatenate((top, np.concatenate((wrenches.swapaxes(0, 1), out), 1)), 0)


def _identity(like):
    return _constant("identity", like).reshape(3, 3, *(1,) * like.ndim)


def _link_inertia(rotation, inertia, moment, shift, arm):
    """Inertia of a link in base axes with what its carried mass adds at the link before it, and that alone."""
    product = moment[:, None] * arm
    product = product + product.swapaxes(0, 1) + shift[:, None] * arm
    moved = _dot(2.0 * moment + shift, arm) * _identity(arm[0]) - product
    return _product(_product(rotation, inertia), rotation.swapaxes(0, 1)) + moved, moved


def _link_twist(placed, revolute, mass, moment, inertia):
    """Motion of the base origin with a unit velocity of the joint, and the wrench at the base origin that it needs."""
    _, origin, axis, joint, _ = placed
    turning, sliding = revolute * axis, (1.0 - revolute) * axis
    velocity = _cross(turning, origin - joint) + sliding
    force = mass * velocity + _cross(turning, moment)
    torque = _cross(moment, velocity) + _turn(inertia, turning) + _cross(origin, force)
    return np.concatenate((_cross(joint, turning) + sliding, turning), 0), np.concatenate((force, torque), 0)
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
    path, ratios = np.zeros((joints, joints)), np.zeros((joints, robot.n))
    for j in range(joints):
        path[j, tree.support[tree.support_start[j + 1] : tree.support_start[j + 2]]] = 1.0
        ratios[j, tree.coordinate[j]] = tree.ratio[j]
    plain = {
        "_FLOATING": bool(tree.moving),
        "_WRENCH": bool(tree.wrench_rows),
        "_SLIDES": any(joint.kind == "prismatic" for joint in robot.joints),
        "_MIMICS": not np.array_equal(ratios, np.eye(joints, robot.n)),
        "_PARENTS": tuple(int(x) for x in tree.parent),
        "_LINKS": _by_number([columns.body(link) for link in range(1, joints + 1)]),
        "_BASE": columns.body(0) if tree.wrench_rows else [],
    }
    kinds = [float(joint.kind == "revolute") for joint in robot.joints]
    axes = np.array([joint.placement[:3, :3] @ joint.axis for joint in robot.joints])
    origins = np.array([joint.placement[:3, 3] for joint in robot.joints])
    arrays = {
        "identity": np.eye(3),
        "gravity": tree.gravity[:, None, None],
        "path": path,
        "carries": path.T[:, :, None],
        "others": 1.0 - np.eye(joints)[:, :, None],
        "ratios": ratios,
        "offsets": tree.offset[:, None],
        "revolute": np.array(kinds)[:, None],
        "axes": axes.T[:, :, None],
        "origins": origins.T[:, :, None],
        "placements": _placements(tree).transpose(2, 1, 0),
    }
    return plain, arrays


def _by_number(bodies: list[list[int]]) -> list[int]:
    """Places of the first number of all links, then of the second, and so on."""
    return [int(k) for row in np.array(bodies).T for k in row]


def _placements(tree: Tree) -> Array:
    """Rotation and origin of each link, per 1, sine, cosine and position of its joint (joint, 4, 12)."""
    rotation = np.concatenate((tree.rotation, np.zeros((len(tree.rotation), 1, 9))), 1)
    return np.concatenate((rotation, tree.position), 2)
