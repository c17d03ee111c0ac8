"""Closed loops on the graph: how far the loops are open, how each joint moves that, and its drift.

Each loop is seen from the last link that carries both of its frames, so that only the joints between that link and the
frames take part. Rows are those of `dynid.dynamics.kernels.assembly`, except that a rod of length L has the row
(d d - L L) / (2 L), which needs no square root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.codegen.bodies import Bodies, Body, link_bodies
from dynid.codegen.closed_form import Ratios, TwoBars, closed_form, loop_chains
from dynid.codegen.functions import FUNCTIONS, Argument, Function, arguments_of
from dynid.codegen.graph import Graph, Node
from dynid.codegen.newton_euler import joint_angles, sines
from dynid.codegen.simplify import simplified
from dynid.codegen.vectors import Vector, add, combine, cross, dot, scale, snap, turn, turn_z
from dynid.dynamics.tree import compile_robot
from dynid.errors import ModelError
from dynid.robot.constraints import JointEquality, Loop, LoopKind
from dynid.robot.model import Robot
from dynid.robot.parts import Frame

__all__ = ["Linkage", "build_linkage", "closed_function"]

# Functions of the tree that each function of a linkage is computed from.
_NEEDS = {
    "forward_dynamics": ("inverse_dynamics", "mass_matrix"),
    "coriolis_matrix": ("mass_matrix", "coriolis_matrix"),
}


@dataclass(frozen=True, eq=False)
class Linkage:
    """What generated code of a robot with closed loops needs besides its public functions.

    `rows` gives, one after the other, the residual of all loops, its columns of the passive joints and its columns of
    the independent joints, of the joints q of the tree. `drift` gives the residual's second derivative without joint
    accelerations. `tree` are functions of the tree by name. `steps` give the passive joints in closed form, one after
    the other; where there are none, an iteration finds them.
    """

    rows: Function
    drift: Function
    tree: dict[str, Function]
    steps: tuple[Ratios | TwoBars, ...] = ()

    @property
    def inner(self) -> tuple[Function, ...]:
        """Functions that the others call."""
        bars = (step.bars for step in self.steps if isinstance(step, TwoBars))
        return (self.rows, self.drift, *bars, *self.tree.values())

    def parts(self, function: str) -> tuple[Function, ...]:
        """Functions of the tree that a function of the linkage calls."""
        return tuple(self.tree[name] for name in _NEEDS.get(function, (function,)))


def build_linkage(robot: Robot, functions: Sequence[str], make: Callable[[str], Function]) -> Linkage:
    """The linkage of a robot with closed loops; `make` builds a function of its tree."""
    needed = dict.fromkeys(x for name in functions for x in _NEEDS.get(name, (name,)))
    count = sum(loop.rows for loop in robot.loops)
    rows, drift = _rows(robot, count), _drift(robot, count)
    return Linkage(rows, drift, {name: make(name) for name in needed}, closed_form(robot))


def closed_function(robot: Robot, linkage: Linkage, name: str, symbols: int | None) -> Function:
    """The function as the caller sees it: its arguments and its shape, without entries."""
    names, result = FUNCTIONS[name]
    arguments = arguments_of(robot, names, None if name == "regressor" else symbols)
    rows, *columns = linkage.parts(name)[-1].shape
    shape = (rows - len(robot.passive), *columns)
    if name in ("mass_matrix", "coriolis_matrix", "forward_dynamics"):
        shape = (robot.nv,) if name == "forward_dynamics" else (robot.nv, robot.nv)
    return Function(name, arguments, result, shape, ())


@dataclass(frozen=True, eq=False)
class _Turning:
    """A joint that moves a frame: a point on its axis, and the axis."""

    body: Body
    point: Vector
    axis: Vector


@dataclass(frozen=True, eq=False)
class _End:
    """A frame of a loop seen from the link that carries the whole loop: rotation by rows, position, motion, joints.

    Accelerations are those without joint accelerations.
    """

    rotation: tuple[Vector, Vector, Vector]
    position: Vector
    velocity: Vector
    acceleration: Vector
    angular_acceleration: Vector
    joints: tuple[_Turning, ...]


def _rows(robot: Robot, count: int) -> Function:
    graph = Graph()
    names = robot.tree_coordinates
    q = graph.inputs("q", len(names))
    still = [graph.zero] * len(names)
    rest: list[Node] = []
    columns: list[list[Node]] = [[] for _ in names]
    for loop, first, second in _ends(robot, graph, q, still):
        apart = _minus(first.position, second.position)
        rest += _residual(graph, loop, first, second, apart)
        for k in range(len(names)):
            both = zip(_moved(graph, first, k), _moved(graph, second, k), strict=True)
            linear, angular = (_minus(a, b) for a, b in both)
            if loop.kind == LoopKind.ROD:
                columns[k].append(dot(apart, linear) * (1.0 / loop.length))
            else:
                columns[k] += [*linear, *(angular if loop.kind == LoopKind.WELD else ())]
    order = [names.index(x) for x in (*robot.passive, *robot.coordinates)]
    made = simplified([*rest, *(x for k in order for x in columns[k])])
    return Function("loop_rows", _joints(len(names), "q"), "rows", (1 + len(names), count), tuple(made))


def _drift(robot: Robot, count: int) -> Function:
    graph = Graph()
    size = len(robot.tree_coordinates)
    drift: list[Node] = []
    for loop, first, second in _ends(robot, graph, graph.inputs("q", size), graph.inputs("v", size)):
        pull = _minus(first.acceleration, second.acceleration)
        if loop.kind == LoopKind.ROD:
            apart, rate = _minus(first.position, second.position), _minus(first.velocity, second.velocity)
            drift.append((dot(apart, pull) + dot(rate, rate)) * (1.0 / loop.length))
            continue
        drift += pull
        if loop.kind == LoopKind.WELD:
            drift += _minus(first.angular_acceleration, second.angular_acceleration)
    return Function("loop_drift", _joints(size, "q", "v"), "drift", (count,), tuple(simplified(drift)))


def _joints(size: int, *names: str) -> tuple[Argument, ...]:
    """Arguments over all joints of the tree, without a floating base."""
    return tuple(Argument(name, size, "joints of the tree") for name in names)


def _residual(graph: Graph, loop: Loop, first: _End, second: _End, apart: Vector) -> list[Node]:
    if loop.kind == LoopKind.ROD:
        return [(dot(apart, apart) - loop.length**2) * (0.5 / loop.length)]
    if loop.kind == LoopKind.CONNECT:
        return [*apart]
    # Small rotation from the second frame to the first: half the sum of b x a over their axes.
    zero = (graph.zero, graph.zero, graph.zero)
    twist: Vector = zero
    for c in range(3):
        a, b = (x.rotation for x in (first, second))
        twist = add(twist, cross((b[0][c], b[1][c], b[2][c]), (a[0][c], a[1][c], a[2][c])))
    return [*apart, *scale(0.5, twist)]


def _moved(graph: Graph, end: _End, coordinate: int) -> tuple[Vector, Vector]:
    """Velocity and angular velocity of a frame per velocity of a coordinate."""
    linear = angular = (graph.zero, graph.zero, graph.zero)
    for joint in end.joints:
        if joint.body.coordinate != coordinate:
            continue
        axis = scale(joint.body.ratio, joint.axis)
        if joint.body.revolute:
            linear = add(linear, cross(axis, _minus(end.position, joint.point)))
            angular = add(angular, axis)
        else:
            linear = add(linear, axis)
    return linear, angular


def _ends(robot: Robot, graph: Graph, q: list[Node], v: list[Node]) -> list[tuple[Loop, _End, _End]]:
    """Both frames of every loop."""
    tree = robot.tree.with_base("fixed")
    model, arrays = link_bodies(tree, graph, None), compile_robot(tree).tree
    out = []
    for loop in robot.loops:
        if isinstance(loop, JointEquality):
            raise ModelError(
                f"{loop} cannot be written as code: code has loops between frames only", code="unsupported"
            )
        own = loop_chains(arrays, loop)
        out.append((loop, _end(model, loop.first, own[0], q, v), _end(model, loop.second, own[1], q, v)))
    return out


def _end(model: Bodies, frame: Frame, chain: list[int], q: list[Node], v: list[Node]) -> _End:
    graph = model.graph
    angles = joint_angles(model, q)
    sc = sines(model, angles)
    zero = (graph.zero, graph.zero, graph.zero)
    rotation = ((graph.one, zero[0], zero[0]), (zero[0], graph.one, zero[0]), (zero[0], zero[0], graph.one))
    p, u, acc, w, dw = zero, zero, zero, zero, zero
    joints = []

    def to(r: Vector) -> None:
        """Go on to a point at r of the same body."""
        nonlocal p, u, acc
        around = cross(w, r)
        p, u, acc = add(p, r), add(u, around), add(acc, add(cross(dw, r), cross(w, around)))

    for j in chain:
        body, rate = model.bodies[j], v[model.bodies[j].coordinate] * model.bodies[j].ratio
        to(_at(graph, rotation, body.shift))
        rotation = _turned(graph, rotation, body.before)
        axis = (rotation[0][2], rotation[1][2], rotation[2][2])
        joints.append(_Turning(body, p, axis))
        moving = scale(rate, axis)
        if body.revolute:
            dw, w = add(dw, cross(w, moving)), add(w, moving)
        else:
            to(scale(angles[j], axis))
            u, acc = add(u, moving), add(acc, scale(2.0, cross(w, moving)))
        s, c = sc[j]
        rotation = (turn_z(-s, c, rotation[0]), turn_z(-s, c, rotation[1]), turn_z(-s, c, rotation[2]))
        rotation = _turned(graph, rotation, body.after)
        to(_at(graph, rotation, body.reach))
    place = snap(np.asarray(frame.placement))
    to(_at(graph, rotation, place[:3, 3]))
    return _End(_turned(graph, rotation, place[:3, :3]), p, u, acc, dw, tuple(joints))


Rotation = tuple[Vector, Vector, Vector]


def _turned(graph: Graph, rotation: Rotation, by: np.ndarray) -> Rotation:
    """The rotation times a constant one."""
    return turn(graph, by.T, rotation[0]), turn(graph, by.T, rotation[1]), turn(graph, by.T, rotation[2])


def _at(graph: Graph, rotation: Rotation, r: np.ndarray) -> Vector:
    """A constant vector of the body, turned."""
    return combine(graph, r, rotation[0]), combine(graph, r, rotation[1]), combine(graph, r, rotation[2])


def _minus(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]
