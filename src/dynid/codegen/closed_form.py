"""Passive joints in closed form: those that follow at constant ratios, and two bars in a plane.

In a parallelogram, the passive joints are sums and differences of independent joints. A loop in a plane with two
unknown joints is a triangle: from a known point A one bar, turned by the first joint, reaches the point at which the
second bar, turned by the second joint, arrives from a known point B. Of the two intersections of the circles around A
and B, the one on the side of the assembled posture is the branch of the robot: only a singular posture joins both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.functions import Argument, Function
from dynid.codegen.graph import Graph, Node, evaluate
from dynid.codegen.simplify import simplified
from dynid.dynamics.assembly import assemble, reachable_postures
from dynid.dynamics.tree import Tree, compile_robot
from dynid.robot.constraints import Constraint, JointEquality, Loop, LoopKind
from dynid.robot.model import Robot
from dynid.robot.parts import Frame

__all__ = ["Ratios", "TwoBars", "closed_form", "loop_chains"]

Array = NDArray[np.float64]

_POSTURES = 64  # random ones, at which ratios must be the same
_SAME = 1e-10  # rad or m; iteration and ratios differ by rounding only
_PARALLEL = 1e-10
_SHORTEST = 1e-9  # m, of a bar


@dataclass(frozen=True, eq=False)
class Ratios:
    """A passive joint of the tree that is `constant` plus the sum of ratio times independent joint (number, ratio)."""

    joint: int
    constant: float
    terms: tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class TwoBars:
    """Two passive joints of the tree that turn two bars.

    `bars` gives, of the joints of the tree of which these two are not read: the vector from A to B, both bars before
    they are turned, and the angles by which the joints before turn them too. `signs` are 1 or -1, for the directions of
    the two axes. `serial`: the first joint turns both bars. `branch` is 1 or -1, the side of the line from A to B.
    """

    joints: tuple[int, int]
    signs: tuple[float, float]
    serial: bool
    branch: float
    bars: Function


def closed_form(robot: Robot) -> tuple[Ratios | TwoBars, ...]:
    """How all passive joints follow, in the order of computation; nothing where some need an iteration."""
    robot = robot.with_base("fixed")
    steps: list[Ratios | TwoBars] = list(_ratios(robot))
    names = robot.tree_coordinates
    unknown = {names.index(x) for x in robot.passive} - {x.joint for x in steps if isinstance(x, Ratios)}
    loops = list(robot.loops)
    while unknown and loops:
        found = next(((loop, x) for loop in loops if (x := _two_bars(robot, loop, unknown, len(steps)))), None)
        if found is None:
            return ()
        loops.remove(found[0])
        steps.append(found[1])
        unknown -= set(found[1].joints)
    return () if unknown else tuple(steps)


def loop_chains(arrays: Tree, loop: Loop) -> tuple[list[int], list[int]]:
    """Joints from the last link that carries both frames of a loop to each of them."""
    starts = arrays.support_start
    chains = [[int(j) for j in arrays.support[starts[f.link] : starts[f.link + 1]]] for f in loop.frames]
    shared = set(chains[0]) & set(chains[1])
    first, second = ([j for j in chain if j not in shared] for chain in chains)
    return first, second


def _ratios(robot: Robot) -> list[Ratios]:
    """The passive joints whose ratios are the same at random postures."""
    rng = np.random.default_rng(0)
    q = reachable_postures(robot, rng.uniform(-1, 1, (_POSTURES, robot.n)))
    moved, home = assemble(robot, q).q, assemble(robot, robot.home)
    out = []
    for k, name in enumerate(robot.passive):
        i, ratios = robot.tree_coordinates.index(name), np.round(home.slopes[0, k], 12)
        constant = round(float(home.q[0, i] - ratios @ robot.home), 14) + 0.0
        if np.abs(constant + q @ ratios - moved[:, i]).max() < _SAME:
            terms = tuple((int(j), float(ratios[j])) for j in np.flatnonzero(ratios))
            out.append(Ratios(i, constant, terms))
    return out


@dataclass(frozen=True, eq=False)
class _Turn:
    """A joint of a planar chain: coordinate, angle per coordinate and at zero, and the vector to the next joint."""

    coordinate: int
    ratio: float
    offset: float
    reach: Array


@dataclass(frozen=True, eq=False)
class _Chain:
    """Joints from the link that carries the whole loop to a frame, in the plane of the loop."""

    start: Array
    turns: tuple[_Turn, ...]

    def unknown(self, joints: set[int]) -> list[int]:
        """Places of unknown joints."""
        return [i for i, turn in enumerate(self.turns) if turn.coordinate in joints]


Point = tuple[Node, Node]


def _two_bars(robot: Robot, loop: Constraint, unknown: set[int], number: int) -> TwoBars | None:
    """The loop as two bars, if it lies in a plane and has two unknown joints, which turn the bars."""
    chains = _planar(robot, loop)
    if chains is None:
        return None
    places = [chain.unknown(unknown) for chain in chains]
    if sorted(map(len, places)) not in ([0, 2], [1, 1]):
        return None
    graph = Graph()
    q = graph.inputs("q", len(robot.tree_coordinates))
    if len(places[0]) == 1:
        serial, turns = False, [chain.turns[at[0]] for chain, at in zip(chains, places, strict=True)]
        sides = [_walk(graph, q, chain, at[0]) for chain, at in zip(chains, places, strict=True)]
        bars = [_bar(graph, q, chain.turns[at[0] :]) for chain, at in zip(chains, places, strict=True)]
        (first, angle), (second, other) = sides
    else:
        serial, (own, far) = True, chains if places[0] else chains[::-1]
        i, k = own.unknown(unknown)
        turns = [own.turns[i], own.turns[k]]
        first, angle = _walk(graph, q, own, i)
        second, _ = _walk(graph, q, far, len(far.turns))
        other = _angle(graph, q, own.turns[i + 1 : k])
        back = _bar(graph, q, own.turns[k:])
        bars = [_bar(graph, q, own.turns[i:k]), (-back[0], -back[1])]
    if len({turn.coordinate for turn in turns}) < 2 or any(abs(turn.ratio) != 1 or turn.offset for turn in turns):
        return None
    entries = [second[0] - first[0], second[1] - first[1], *bars[0], *bars[1], angle, other]
    arguments = (Argument("q", len(q), "joints of the tree"),)
    made = Function(f"loop_bars{number}", arguments, "bars", (8,), tuple(simplified(entries)))
    assert robot.assembled is not None
    x = np.array([float(node) for node in evaluate(made.entries, {"q": np.array(robot.assembled)})])
    if min(np.hypot(*x[2:4]), np.hypot(*x[4:6]), np.hypot(*x[:2])) < _SHORTEST:
        return None
    i, k = (turn.coordinate for turn in turns)
    turned = x[6] + turns[0].ratio * robot.assembled[i]
    along = np.cos(turned) * x[2:4] + np.sin(turned) * np.array([-x[3], x[2]])
    side = 1.0 if x[0] * along[1] - x[1] * along[0] > 0 else -1.0
    return TwoBars((i, k), (turns[0].ratio, turns[1].ratio), serial, side, made)


def _planar(robot: Robot, loop: Constraint) -> tuple[_Chain, _Chain] | None:
    """Both chains of a loop in the plane across their axes, if all of them are parallel; None otherwise."""
    if isinstance(loop, JointEquality) or loop.kind != LoopKind.CONNECT:
        return None
    tree = robot.tree
    arrays = compile_robot(tree).tree
    own = loop_chains(arrays, loop)
    if any(tree.joints[j].kind != "revolute" for chain in own for j in chain):
        return None
    places = [_places(tree, chain, f) for chain, f in zip(own, loop.frames, strict=True)]
    axes = np.vstack([lines for _, lines in places])
    signs = axes @ axes[0]
    if np.abs(axes - signs[:, None] * axes[0]).max() > _PARALLEL:
        return None
    across = np.linalg.svd(axes[:1])[2][1:]
    if np.linalg.det(np.vstack([across, axes[:1]])) < 0:
        across = across[::-1]
    at = 0
    out = []
    for chain, (points, lines) in zip(own, places, strict=True):
        flat = points @ across.T
        turns = []
        for n, j in enumerate(chain):
            sign = float(np.sign(signs[at + n]))
            ratio, offset = sign * float(arrays.ratio[j]), sign * float(arrays.offset[j])
            turns.append(_Turn(int(arrays.coordinate[j]), ratio, offset, flat[n + 1] - flat[n]))
        out.append(_Chain(flat[0], tuple(turns)))
        at += len(lines)
    return out[0], out[1]


def _places(tree: Robot, chain: Sequence[int], frame: Frame) -> tuple[Array, Array]:
    """Points on the axes and the origin of the frame (n + 1, 3), and axes (n, 3), with all joints at zero."""
    at, points, axes = np.eye(4), [], []
    for j in chain:
        joint = tree.joints[j]
        at = at @ joint.placement
        points.append(at[:3, 3])
        axes.append(at[:3, :3] @ joint.axis)
        at = at @ joint.mount
    points.append((at @ frame.placement)[:3, 3])
    return np.array(points), np.array(axes).reshape(-1, 3)


def _angle(graph: Graph, q: Sequence[Node], turns: Sequence[_Turn]) -> Node:
    """Sum of the angles of joints."""
    return graph.total(turn.ratio * q[turn.coordinate] + turn.offset for turn in turns)


def _bar(graph: Graph, q: Sequence[Node], turns: Sequence[_Turn]) -> Point:
    """Vector from the first of some joints to the end of the last, before the first one turns it."""
    x, y = graph.const(turns[0].reach[0]), graph.const(turns[0].reach[1])
    for n in range(1, len(turns)):
        dx, dy = _turned(graph, _angle(graph, q, turns[1 : n + 1]), turns[n].reach)
        x, y = x + dx, y + dy
    return x, y


def _walk(graph: Graph, q: Sequence[Node], chain: _Chain, count: int) -> tuple[Point, Node]:
    """Where a chain is after its first joints, and the angle by which they turn what follows."""
    x, y = graph.const(chain.start[0]), graph.const(chain.start[1])
    for n in range(count):
        dx, dy = _turned(graph, _angle(graph, q, chain.turns[: n + 1]), chain.turns[n].reach)
        x, y = x + dx, y + dy
    return (x, y), _angle(graph, q, chain.turns[:count])


def _turned(graph: Graph, angle: Node, by: Array) -> Point:
    s, c = graph.call("sin", angle), graph.call("cos", angle)
    return c * float(by[0]) - s * float(by[1]), s * float(by[0]) + c * float(by[1])
