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


def _turn(rotation, x):
    return np.sum(rotation * x, 1)


def _turn_back(rotation, x):
    return np.sum(rotation * x[:, None], 0)


def _product(a, b):
    return np.sum(a[:, :, None] * b, 1)


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
    rotations = [np.zeros_like(turned[:, :, 0]) + _constant("identity", q)[..., 0]]
    origins = [np.zeros_like(shifted[:, 0])]
    for j, link in enumerate(_PARENTS):
        rotations.append(_product(rotations[link], turned[:, :, j]))
        origins.append(origins[link] + _turn(rotations[link], shifted[:, j]))
    before = np.stack([rotations[link] for link in _PARENTS], 2)
    start = np.stack([origins[link] for link in _PARENTS], 1)
    axes = _turn(before, _constant("axes", q))
    joints = start + _turn(before, _constant("origins", q))
    return np.stack(rotations[1:], 2), np.stack(origins[1:], 1), axes, joints, start


def _bodies(parms, places):
    """Mass (1, link, n), first moment (3, link, n) and inertia tensor (3, 3, link, n), in link axes."""
    x = _take(parms, places).reshape(13, len(places) // 13, parms.shape[1])
    return x[:1], x[1:4], x[4:].reshape(3, 3, *x.shape[1:])


def _rigid_torque(placed, q, v, a, parms, gravity=True):
    """Torque of every channel, without drives."""
    rotations, origins, axes, joints, start = placed
    mass, moment, inertia = _bodies(parms, _LINKS)
    revolute = _constant("revolute", q)
    u, du = _joints(v), _joints(a)
    w_base, dw_base, lift_base = _base_motion(q, v, a, gravity)
    turning, reach = axes * (revolute * u), origins - joints
    w = _outward(turning) + w_base
    w_before = w - turning
    turned = axes * (revolute * du) + _cross(w_before, turning)
    dw = _outward(turned) + dw_base
    if _SLIDES:
        sliding = (1.0 - revolute) * axes
        step = _whirl(w_before, dw - turned, joints - start + (1.0 - revolute) * reach)
        step = step + _whirl(w, dw, revolute * reach) + sliding * du + 2.0 * _cross(w_before, sliding * u)
    else:
        step = _whirl(w_before, dw - turned, joints - start) + _whirl(w, dw, reach)
    lift = _outward(step) + lift_base
    moment = _turn(rotations, moment)
    w_own, dw_own = _turn_back(rotations, w), _turn_back(rotations, dw)
    torque = _turn(rotations, _turn(inertia, dw_own) + _cross(w_own, _turn(inertia, w_own))) + _cross(moment, lift)
    force = mass * lift + _whirl(w, dw, moment)
    carried = _inward(force)
    lever = _cross(origins - start, carried)
    about_joint = _inward(torque + lever) - lever + _cross(reach, carried)
    out = np.sum(axes * (revolute * about_joint + (1.0 - revolute) * carried if _SLIDES else about_joint), 0)
    if _MIMICS:
        out = _constant("ratios", out).swapaxes(0, 1) @ out
    if not _WRENCH:
        return out
    mass, moment, inertia = _bodies(parms, _BASE)
    force = np.sum(force, 1) + (mass * lift_base + _whirl(w_base, dw_base, moment))[:, 0]
    spin = _turn(inertia, dw_base) + _cross(w_base, _turn(inertia, w_base)) + _cross(moment, lift_base)
    return np.concatenate((force, np.sum(torque + lever, 1) + spin[:, 0], out), 0)


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
    mass, moment, inertia = _bodies(parms, _LINKS)
    revolute, identity = _constant("revolute", origins), _constant("identity", origins)
    arm, reach = origins - start, origins - joints
    carried = _inward(mass)
    shift = arm * carried
    moment = _turn(rotations, moment) + shift
    moment_carried = _inward(moment) - shift
    product = moment_carried[:, None] * arm
    product = product + product.swapaxes(0, 1) + shift[:, None] * arm
    moved = np.sum((2.0 * moment_carried + shift) * arm, 0) * identity - product
    inertia = _product(_product(rotations, inertia), rotations.swapaxes(0, 1)) + moved
    inertia_carried = _inward(inertia.reshape(9, *inertia.shape[2:])).reshape(inertia.shape) - moved
    turning, sliding = revolute * axes, (1.0 - revolute) * axes
    velocity = _cross(turning, reach) + sliding
    force = carried * velocity + _cross(turning, moment_carried)
    torque = _cross(moment_carried, velocity) + _turn(inertia_carried, turning) + _cross(origins, force)
    twists = np.concatenate((_cross(joints, turning) + sliding, turning), 0)
    wrenches = np.concatenate((force, torque), 0)
    out = np.sum(twists[:, :, None] * wrenches[:, None], 0) * _constant("carries", origins)
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
    top = np.concatenate((total * identity[..., 0], -skew), 1)
    base = np.concatenate((top, np.concatenate((skew, tensor), 1)), 0)
    top = np.concatenate((base, wrenches), 1)
    return np.concatenate((top, np.concatenate((wrenches.swapaxes(0, 1), out), 1)), 0)
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
        "identity": np.eye(3)[:, :, None, None],
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
    """Rotation and origin of each link before its joint, per 1, sine, cosine and position of the joint (joint, 4, 12)."""
    rotation = np.concatenate((tree.rotation, np.zeros((len(tree.rotation), 1, 9))), 1)
    return np.concatenate((rotation, tree.position), 2)
