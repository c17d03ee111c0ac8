"""A robot in the form that the recursions of generated code use: joints about z between constant rotations and shifts.

Where the parameters are numbers, link frames are chosen for few operations: on the joint axes, rotated and shifted so
that constant rotations are about one axis and shifts have few entries. Parameters of a body that its joint cannot
separate from its parent are moved to the parent (Khalil and Kleinfinger 1987). The torques agree to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.graph import Graph, Node
from dynid.codegen.vectors import Inertia, shift_inertia, snap, turn_inertia
from dynid.dynamics.tree import compile_robot
from dynid.robot.inertia import move_inertia
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement

__all__ = ["Bodies", "Body", "TidyFrames", "joint_bodies", "link_bodies", "tidy_frames"]

Array = NDArray[np.float64]


# Choice of frames on the joint axes for as many zeros as possible in the constant rotations and shifts between them.
#
# A frame on a joint axis may be rotated about the axis and shifted along it without changing the motion: a rotation
# adds
# a constant to the joint angle, a shift changes nothing.


@dataclass(frozen=True, eq=False)
class TidyFrames:
    """New frames: each in its parent's, what is added to its angle, and where it stands in the old moving frame."""

    placements: list[Array]
    offsets: Array
    moves: list[Array]


def tidy_frames(robot: Robot, placements: list[Array]) -> TidyFrames:
    """Turn the frames until constant rotations are about x, then slide them until shifts have few entries."""
    parents = [joint.parent - 1 for joint in robot.joints]
    revolute = [joint.kind == "revolute" for joint in robot.joints]
    fixed = robot.base == "fixed"
    placements = [x.copy() for x in placements]
    for x in placements:
        x[:3] = snap(x[:3])
    turns = np.zeros(len(placements))  # of each moving frame
    static = np.zeros(len(placements))  # of the frame it moves in
    taken: set[int] = set()
    for j, x in enumerate(placements):
        parent = parents[j]
        if parent >= 0:
            x[:] = _turn_z(-turns[parent]) @ x
        x[:3] = snap(x[:3])
        if _renames(x[:3, :3]):
            continue
        first, last = _ends(x[:3, :3])
        alone = parent >= 0 and not any(_renames(placements[k][:3, :3]) for k in _of(parents, parent))
        if alone and parent not in taken and revolute[parent] and not _in_quarters(first):
            for k in _of(parents, parent):
                if k < j:
                    placements[k] = _turn_z(-first) @ placements[k]
            taken.add(parent)
            turns[parent] += first
            x[:] = _turn_z(-first) @ x
        if revolute[j] and not _in_quarters(last):
            static[j] = -last
            x[:] = x @ _turn_z(-last)
        x[:3] = snap(x[:3])
    slides = _slides(placements, parents, revolute, fixed)
    moves = []
    for j, x in enumerate(placements):
        if parents[j] >= 0:
            x[2, 3] -= slides[parents[j]]
        x[:3, 3] = snap(x[:3, 3] + slides[j] * x[:3, 2])
        move = _turn_z(turns[j])
        move[2, 3] = slides[j]
        moves.append(move)
    return TidyFrames(placements, turns - static, moves)


def _slides(placements: list[Array], parents: list[int], revolute: list[bool], fixed: bool) -> Array:
    """How far each frame slides along its axis so that few entries of the shifts are left."""
    slides = np.zeros(len(placements))
    for j, x in enumerate(placements):
        if not revolute[j]:
            continue
        axis, p = x[:3, 2], x[:3, 3].copy()
        if parents[j] >= 0:
            p[2] -= slides[parents[j]]
        weight = 0 if fixed and parents[j] < 0 else 1  # a base that never moves feels no shift
        children = [placements[k] for k in _of(parents, j)]
        choices = [0.0, *(-p[i] / axis[i] for i in range(3) if axis[i]), *(c[2, 3] for c in children)]

        def cost(
            t: float, p: Array = p, axis: Array = axis, weight: int = weight, children: list[Array] = children
        ) -> int:
            return weight * _entries(p + t * axis) + sum(_after_own_slide(c, t) for c in children)

        slides[j] = min(choices, key=lambda t: (cost(t), abs(t)))
    return slides


def _after_own_slide(child: Array, t: float) -> int:
    """Entries left in a child's shift when its parent slid by t and it slides itself as is best for it."""
    p, axis = child[:3, 3] - np.array([0, 0, t]), child[:3, 2]
    return min(_entries(p + s * axis) for s in (0.0, *(-p[i] / axis[i] for i in range(3) if axis[i])))


def _entries(p: Array) -> int:
    return int(np.count_nonzero(np.abs(p) > 1e-14))


def _of(parents: list[int], parent: int) -> list[int]:
    return [k for k, p in enumerate(parents) if p == parent]


def _renames(rotation: Array) -> bool:
    return bool(np.all(np.isin(rotation, (-1.0, 0.0, 1.0))))


def _in_quarters(angle: float) -> bool:
    return bool(abs(angle / (np.pi / 2) - round(angle / (np.pi / 2))) < 1e-12)


def _ends(rotation: Array) -> tuple[float, float]:
    """First and last angle of rotation = Rz(a) Rx(b) Rz(c)."""
    if np.hypot(rotation[0, 2], rotation[1, 2]) < 1e-12:
        return 0.0, float(np.arctan2(rotation[1, 0], rotation[0, 0])) * (1.0 if rotation[2, 2] > 0 else -1.0)
    return float(np.arctan2(rotation[0, 2], -rotation[1, 2])), float(np.arctan2(rotation[2, 0], rotation[2, 1]))


def _turn_z(angle: float) -> Array:
    out = np.eye(4)
    s, c = np.sin(angle), np.cos(angle)
    out[:2, :2] = [[c, -s], [s, c]]
    return out


@dataclass(frozen=True, eq=False)
class Body:
    """One body and its joint: frame in the parent = (before, shift) * motion along z * (after, reach).

    `reach` runs from the joint to the body's origin in body axes. The joint moves by ratio * q[coordinate] + offset;
    `parent` is -1 for the base. `inertia` are ten nodes, None for a body without mass.
    """

    parent: int
    revolute: bool
    coordinate: int
    ratio: float
    offset: float
    before: Array
    shift: Array
    after: Array
    reach: Array
    inertia: Inertia | None


@dataclass(frozen=True, eq=False)
class Bodies:
    """All bodies, parents first, and the base: its inertia (None where it has no effect), gravity, and its kind."""

    graph: Graph
    bodies: tuple[Body, ...]
    base_inertia: Inertia | None
    gravity: Array
    n: int
    floating: bool
    wrench: bool

    @property
    def children(self) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {i: [] for i in range(-1, len(self.bodies))}
        for i, body in enumerate(self.bodies):
            out[body.parent].append(i)
        return out


def link_bodies(robot: Robot, graph: Graph, values: Sequence[Node | float] | None) -> Bodies:
    """Bodies in the link frames of the robot, whose parameters are taken as they are (None: without inertia)."""
    inertias = _inertias(robot, graph, values)
    bodies = []
    for j, joint in enumerate(robot.joints):
        turned = _axis_to_z(joint.axis)
        mount = joint.mount
        bodies.append(
            _body(
                robot,
                j,
                0.0,
                joint.placement[:3, :3] @ turned,
                joint.placement[:3, 3],
                turned.T @ mount[:3, :3],
                mount[:3, :3].T @ mount[:3, 3],
                inertias[j + 1],
            )
        )
    return _all(robot, graph, bodies, inertias[0], robot.gravity)


def joint_bodies(robot: Robot, graph: Graph, values: Sequence[Node | float]) -> Bodies:
    """Bodies in frames on the joint axes; numbers are regrouped towards the base, nodes only moved."""
    placements, mounts = _joint_frames(robot)
    offsets = np.zeros(len(robot.joints))
    numeric = not any(isinstance(x, Node) for x in values)
    if numeric:
        tidy = tidy_frames(robot, placements)
        placements, offsets = tidy.placements, tidy.offsets
        mounts = [inverse_placement(d) @ y for d, y in zip(tidy.moves, mounts, strict=True)]
        inertias = _regrouped(robot, graph, values, placements, mounts)
    else:
        inertias = _moved(robot, graph, values, mounts)
    bodies = [
        _body(robot, j, offsets[j], x[:3, :3], x[:3, 3], np.eye(3), np.zeros(3), inertias[j + 1])
        for j, x in enumerate(placements)
    ]
    return _all(robot, graph, bodies, inertias[0], robot.gravity)


def _all(robot: Robot, graph: Graph, bodies: list[Body], base: Inertia | None, gravity: Array) -> Bodies:
    kind = robot.base
    return Bodies(graph, tuple(bodies), base, gravity, robot.n, kind == "floating", kind != "fixed")


def _body(
    robot: Robot,
    j: int,
    offset: float,
    before: Array,
    shift: Array,
    after: Array,
    reach: Array,
    inertia: Inertia | None,
) -> Body:
    tree = compile_robot(robot).tree
    return Body(
        int(tree.parent[j]) - 1,
        robot.joints[j].kind == "revolute",
        int(tree.coordinate[j]),
        float(tree.ratio[j]),
        float(tree.offset[j]) + float(offset),
        snap(before),
        snap(shift),
        snap(after),
        snap(reach),
        inertia,
    )


def _axis_to_z(axis: Array) -> Array:
    """A rotation whose third column is the axis; one that only renames axes where it can."""
    axis = snap(axis)
    k = int(np.argmax(np.abs(axis)))
    if abs(axis[k]) == 1.0:
        second = np.eye(3)[(k + 2) % 3]
        return np.column_stack([np.cross(second, axis), second, axis])
    first = np.cross(np.eye(3)[int(np.argmin(np.abs(axis)))], axis)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def _joint_frames(robot: Robot) -> tuple[list[Array], list[Array]]:
    """Frame of each joint in that of its parent's joint, and of each link in its joint's, both 4x4."""
    placements: list[Array] = []
    mounts: list[Array] = []
    for joint in robot.joints:
        turned = np.eye(4)
        turned[:3, :3] = _axis_to_z(joint.axis)
        above = np.eye(4) if joint.parent == 0 else mounts[joint.parent - 1]
        placements.append(above @ joint.placement @ turned)
        mounts.append(turned.T @ joint.mount)
    return placements, mounts


def _inertias(robot: Robot, graph: Graph, values: Sequence[Node | float] | None) -> list[Inertia | None]:
    """Ten nodes a link in link frames; links outside the standard vector keep the robot's own numbers."""
    model = compile_robot(robot)
    out: list[Inertia | None] = []
    for b, link in enumerate(robot.links):
        column = int(model.tree.column[b])
        if values is None or not model.tree.massive[b]:
            out.append(None)
            continue
        entries = values[column : column + 10] if column >= 0 else link.inertia.tolist()
        out.append(tuple(x if isinstance(x, Node) else graph.const(x) for x in entries))
    return out


def _moved(robot: Robot, graph: Graph, values: Sequence[Node | float], mounts: list[Array]) -> list[Inertia | None]:
    out = _inertias(robot, graph, values)
    for j, mount in enumerate(mounts):
        body = out[j + 1]
        if body is not None:
            turned = turn_inertia(graph, snap(mount[:3, :3]), body)
            out[j + 1] = shift_inertia(snap(mount[:3, 3]).tolist(), turned)
    return out


def _regrouped(
    robot: Robot,
    graph: Graph,
    values: Sequence[Node | float],
    placements: list[Array],
    mounts: list[Array],
) -> list[Inertia | None]:
    """Numbers in joint frames, with what a joint's motion leaves unchanged carried by its parent."""
    model = compile_robot(robot)
    numbers = model.inertias(robot, np.array([float(x) for x in values if not isinstance(x, Node)]))
    for b in range(len(numbers)):
        if not model.tree.massive[b]:
            numbers[b] = 0.0
        elif b > 0:
            numbers[b] = move_inertia(numbers[b], mounts[b - 1])
    sizes = np.abs(numbers).max(axis=0)
    for j in range(len(robot.joints) - 1, -1, -1):
        body = numbers[j + 1]
        same = np.zeros(10)
        if robot.joints[j].kind == "revolute":
            # A thin rod along the axis: mass, mz, and one moment of inertia across.
            same[[0, 3, 4, 6]] = body[0], body[3], body[6], body[6]
        else:
            same[4:] = body[4:]  # a pure moment of inertia does not feel a shift
        numbers[j + 1] = body - same
        parent = int(model.tree.parent[j])
        if parent > 0 or robot.base != "fixed":
            numbers[parent] += move_inertia(same, placements[j])
    sizes = np.maximum(sizes, np.abs(numbers).max(axis=0))
    groups = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    for group in range(3):
        size = sizes[groups == group].max()
        part = numbers[:, groups == group]
        part[np.abs(part) <= 1e-15 * size] = 0.0
        numbers[:, groups == group] = part
    first = 0 if robot.base != "fixed" else 1
    return [tuple(graph.const(x) for x in row) if b >= first and np.any(row) else None for b, row in enumerate(numbers)]
