"""Columns of the regressor on the graph: torque of every channel per unit of each standard parameter."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dynid.codegen.bodies import Bodies
from dynid.codegen.drive_terms import drive_columns
from dynid.codegen.graph import Node
from dynid.codegen.newton_euler import Moving, down, motion, shift_of
from dynid.codegen.vectors import Vector, add, cross, dot, turn
from dynid.dynamics.tree import compile_robot
from dynid.robot.model import Robot

__all__ = ["regressor"]

Twist = tuple[Vector, Vector]


def regressor(
    robot: Robot, model: Bodies, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node], wanted: Collection[int]
) -> list[list[Node]]:
    """Rows of Y (channel, parameter); columns outside `wanted` are left zero. `model` stands in link frames."""
    graph = model.graph
    tree = compile_robot(robot).tree
    first = len(robot.channels) - robot.n
    out = [[graph.zero] * len(robot.layout) for _ in robot.channels]
    moved, base, angles, sc = motion(model, q, v, a)
    zero = (graph.zero, graph.zero, graph.zero)
    units = [[graph.one if i == k else graph.zero for i in range(6)] for k in range(6)]
    # Twists of the channels in the frame of each body: the base's six where it has rows, then the supporting joints.
    twists: dict[int, list[tuple[int, float, Twist]]] = {
        -1: [(k, 1.0, ((e[0], e[1], e[2]), (e[3], e[4], e[5]))) for k, e in enumerate(units)] if model.wrench else []
    }
    for i, body in enumerate(model.bodies):
        reach = tuple(graph.const(x) for x in body.reach)
        carried = []
        p = tuple(graph.total([x]) for x in shift_of(body, angles[i]))
        for row, weight, (s, t) in twists[body.parent]:
            s = turn(graph, body.after.T, down(model, body, sc[i], add(s, cross(t, p))))  # type: ignore[arg-type]
            t = turn(graph, body.after.T, down(model, body, sc[i], t))
            carried.append((row, weight, (add(s, cross(t, reach)), t)))  # type: ignore[arg-type]
        along = turn(graph, body.after.T, (graph.zero, graph.zero, graph.one))
        own = (cross(along, reach), along) if body.revolute else (along, zero)  # type: ignore[arg-type]
        twists[i] = [*carried, (first + body.coordinate, body.ratio, own)]
    for i in range(-1, len(model.bodies)):
        column = int(tree.column[i + 1])
        if column < 0 or not any(column <= c < column + 10 for c in wanted):
            continue
        for row, weight, twist in twists[i]:
            for k, entry in enumerate(_columns(moved[i] if i >= 0 else base, *twist)):
                if column + k in wanted:
                    out[row][column + k] = out[row][column + k] + entry * weight
    for c, rows in drive_columns(robot, graph, q, v, a).items():
        if c in wanted:
            for r, entry in rows.items():
                out[first + r][c] = entry
    return out


def _columns(at: Moving, s: Vector, t: Vector) -> list[Node]:
    """Power of the wrench of each of the ten numbers on the twist (s, t)."""
    (_, uxy, uxz), (uyx, _, uyz), (uzx, uzy, _) = rows = at.u
    x2, y2, z2, wxy, wxz, wyz = at.products
    x, y, z = at.dw
    pushed = cross(at.a, t)
    first_moments = [dot(s, (rows[0][k], rows[1][k], rows[2][k])) + pushed[k] for k in range(3)]
    return [
        dot(s, at.a),
        *first_moments,
        dot(t, (x, wxz, -wxy)),
        dot(t, (-uzx, uzy, x2 - y2)),
        dot(t, (-wyz, y, wxy)),
        dot(t, (uyx, z2 - x2, -uyz)),
        dot(t, (y2 - z2, -uxy, uxz)),
        dot(t, (wyz, -wxz, z)),
    ]
