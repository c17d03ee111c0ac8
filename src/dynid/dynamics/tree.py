"""A robot as flat arrays for the kernels.

The rotation about a unit axis n is R(x) = 1 + sin x [n] + (1 - cos x) [n]^2 with [n] y = n x y, after that of the fixed
placement of the joint: a constant, one part times sin x and one times cos x.

Source: Rodrigues' formula, as in Siciliano, Sciavicco, Villani and Oriolo, Robotics: Modelling, Planning and Control
(2009), chapter 2.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.drives import DRIVE_LAWS, TermKind
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement, skew, twist_adjoint

__all__ = ["Compiled", "DriveArrays", "Tree", "compile_robot"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


# Kinds that can be split into the part of each joint and the coupling; cross_only has no effect on the others.
LINEAR_KINDS = {law.kind for law in DRIVE_LAWS.values() if law.linear}


class Tree(NamedTuple):
    """Kinematics and parameter columns. Body 0 is the base, body j + 1 is the child link of joint j.

    Link frame of joint j in its parent: R = rotation[0] + sin q rotation[1] + cos q rotation[2] (rows of nine entries),
    p = position[0] + sin q position[1] + cos q position[2] + q position[3], where q = ratio * q[coordinate] + offset.
    `subspace` is the joint twist in the link frame. `support` lists the joints between the base and a body, base first.
    `column` is the first parameter column of a body or -1. `stretch` holds the ranges of columns of the bodies that a
    joint carries (drive columns may lie between them). `wrench_rows` is 6 if the base wrench has rows, otherwise 0;
    `moving` is 1 for a floating base.
    """

    parent: Index
    coordinate: Index
    ratio: Array
    offset: Array
    rotation: Array
    position: Array
    subspace: Array
    support_start: Index
    support: Index
    column: Index
    stretch_start: Index
    stretch: NDArray[np.uint64]  # unsigned: without negative indices, the compiler can vectorise
    massive: Index
    gravity: Array
    wrench_rows: int
    moving: int


class DriveArrays(NamedTuple):
    """Drive terms: kind code, parameter column, and the shaft direction as sparse rows (start, joint, weight).

    `rest` is the rest position of a spring, or the velocity of Stribeck friction.
    `slope` is the slope of smooth Coulomb friction, 0 for the sign function. A simulation puts custom columns into
    `table` (term, node) over the shaft position or velocity, with `grid` (first node, nodes per unit).
    """

    kind: Index
    column: Index
    start: Index
    joint: Index
    weight: Array
    rest: Array
    cross: Index
    slope: Array
    table: Array
    grid: Array


class Compiled(NamedTuple):
    """The arrays of a robot and the parameter columns of its drive terms."""

    tree: Tree
    drives: DriveArrays
    drive_columns: Index
    custom: tuple[tuple[int, int], ...]  # (index in robot.drives, parameter column)

    def inertias(self, robot: Robot, parameters: Array) -> Array:
        """Inertial parameters (body, 10) of all bodies; those of links without parameters are taken from the robot."""
        out = np.array([link.inertia for link in robot.links])
        for b, c in enumerate(self.tree.column):
            if c >= 0:
                out[b] = parameters[c : c + 10]
        return out


_COMPILED: WeakKeyDictionary[Robot, Compiled] = WeakKeyDictionary()


def compile_robot(robot: Robot) -> Compiled:
    """Arrays of a robot, made once per Robot object."""
    if robot.loops:
        raise ModelError(
            f"this is not available for robots with closed loops, such as '{robot.name}'", code="not_applicable"
        )
    found = _COMPILED.get(robot)
    if found is None:
        found = _COMPILED[robot] = _compile(robot)
    return found


def _compile(robot: Robot) -> Compiled:
    """Arrays of a robot."""
    joints = len(robot.joints)
    rotation, position = np.zeros((joints, 3, 9)), np.zeros((joints, 4, 3))
    subspace = np.zeros((joints, 6))
    parent, coordinate = np.zeros(joints, np.int64), np.zeros(joints, np.int64)
    ratio, offset = np.ones(joints), np.zeros(joints)
    support: list[list[int]] = [[]]
    for j, joint in enumerate(robot.joints):
        before, after = joint.placement, joint.mount
        r0, r1, p1 = before[:3, :3], after[:3, :3], after[:3, 3]
        twist = np.zeros(6)
        if joint.kind == "revolute":
            k = skew(joint.axis)
            parts = [np.eye(3) + k @ k, k, -(k @ k)]  # Rodrigues: constant, sine and cosine
            twist[3:] = joint.axis
        else:
            parts = [np.eye(3), np.zeros((3, 3)), np.zeros((3, 3))]
            position[j, 3] = r0 @ joint.axis
            twist[:3] = joint.axis
        for i, part in enumerate(parts):
            rotation[j, i] = (r0 @ part @ r1).ravel()
            position[j, i] = r0 @ part @ p1
        position[j, 0] += before[:3, 3]
        subspace[j] = twist_adjoint(inverse_placement(after)) @ twist
        parent[j] = joint.parent
        leader = joint.name if joint.mimic is None else joint.mimic.leader
        coordinate[j] = robot.coordinates.index(leader)
        if joint.mimic is not None:
            ratio[j], offset[j] = joint.mimic.ratio, joint.mimic.offset
        support.append([*support[joint.parent], j])
    names = {name: i for i, name in enumerate(robot.parameter_names)}
    column = np.full(joints + 1, -1, np.int64)
    for b in robot.parameter_links:
        column[b] = names[f"m_{robot.links[b].name}"]
    stretches = [_stretches(column, [b for b in range(joints + 1) if j in support[b]]) for j in range(joints)]
    tree = Tree(
        parent,
        coordinate,
        ratio,
        offset,
        rotation,
        position,
        subspace,
        np.cumsum([0, *map(len, support)]).astype(np.int64),
        np.array([j for chain in support for j in chain], np.int64),
        column,
        np.cumsum([0, *map(len, stretches)]).astype(np.int64),
        np.array([s for each in stretches for s in each], np.uint64).reshape(-1, 2),
        np.array(
            [int(not x.virtual and (b > 0 or robot.base != "fixed")) for b, x in enumerate(robot.links)], np.int64
        ),
        np.array(robot.gravity),
        6 if robot.base != "fixed" else 0,
        int(robot.base == "floating"),
    )
    plain = [t for t in robot.drives if t.kind != TermKind.CUSTOM]
    shafts = [np.flatnonzero(t.direction) for t in plain]
    columns = np.array([names[t.name] for t in plain], np.int64)
    drives = DriveArrays(
        np.array([int(t.kind) for t in plain], np.int64),
        columns,
        np.cumsum([0, *map(len, shafts)]).astype(np.int64),
        np.array([i for s in shafts for i in s], np.int64),
        np.array([t.direction[i] for t, s in zip(plain, shafts, strict=True) for i in s], float),
        np.array([t.velocity or t.rest for t in plain], float),
        np.array([int(t.cross_only and t.kind in LINEAR_KINDS) for t in plain], np.int64),
        np.array([t.slope for t in plain], float),
        np.zeros((0, 0)),
        np.zeros((0, 2)),
    )
    custom = tuple((i, names[t.name]) for i, t in enumerate(robot.drives) if t.kind == TermKind.CUSTOM)
    return Compiled(tree, drives, columns, custom)


def _stretches(column: Index, carried: list[int]) -> list[list[int]]:
    """Ranges of parameter columns of consecutive bodies that are carried by a joint."""
    out: list[list[int]] = []
    inside = False
    for b in np.argsort(column):
        if column[b] < 0:
            continue
        if b not in carried:
            inside = False
        elif inside:
            out[-1][1] = int(column[b]) + 10
        else:
            out.append([int(column[b]), int(column[b]) + 10])
            inside = True
    return out
