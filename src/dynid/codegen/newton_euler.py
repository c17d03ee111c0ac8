"""Recursive Newton-Euler algorithm on the expression graph: torques, and the motion of each body for the regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.codegen.bodies import Bodies, Body
from dynid.codegen.graph import Node
from dynid.codegen.vectors import Inertia, Vector, add, cross, scale, turn, turn_z

__all__ = ["Moving", "down", "gravity_in_base", "joint_angles", "motion", "shift_of", "torques", "up"]


@dataclass(frozen=True, eq=False)
class Moving:
    """Angular velocity, its rate, the acceleration of the origin less gravity, and U = w' x + w x w x, in body axes."""

    w: Vector
    dw: Vector
    a: Vector
    products: tuple[Node, ...]  # wx wx, wy wy, wz wz, wx wy, wx wz, wy wz

    @property
    def u(self) -> tuple[Vector, Vector, Vector]:
        """Rows of U, the matrix that takes a point of the body to its acceleration about the origin."""
        xx, yy, zz, xy, xz, yz = self.products
        x, y, z = self.dw
        return (-(yy + zz), xy - z, xz + y), (xy + z, -(xx + zz), yz - x), (xz - y, yz + x, -(xx + yy))

    def acceleration_of(self, p: Sequence[Node | float]) -> Vector:
        """Acceleration less gravity of the point p."""
        r = self.u
        return add(self.a, (_row(r[0], p), _row(r[1], p), _row(r[2], p)))


def _row(r: Vector, p: Sequence[Node | float]) -> Node:
    return r[0] * p[0] + r[1] * p[1] + r[2] * p[2]


def moving(w: Vector, dw: Vector, a: Vector) -> Moving:
    x, y, z = w
    return Moving(w, dw, a, (x * x, y * y, z * z, x * y, x * z, y * z))


def gravity_in_base(model: Bodies, q: Sequence[Node]) -> Vector:
    """Gravity in base axes: constant, or turned back by the quaternion (x, y, z, w) of a floating base."""
    graph = model.graph
    g = tuple(graph.const(x) for x in model.gravity)
    if not model.floating:
        return (g[0], g[1], g[2])
    axis = (-q[3], -q[4], -q[5])
    # R' g = g + 2 (w e + e x e) with e = axis x g, the axis reversed.
    e = cross(axis, (g[0], g[1], g[2]))
    turned = add(scale(q[6], e), cross(axis, e))
    return add((g[0], g[1], g[2]), scale(2.0, turned))


def joint_angles(model: Bodies, q: Sequence[Node]) -> list[Node]:
    """Position of every joint (q are the joint coordinates alone)."""
    return [q[b.coordinate] * b.ratio + b.offset for b in model.bodies]


def sines(model: Bodies, angles: Sequence[Node]) -> list[tuple[Node, Node]]:
    graph = model.graph
    return [
        (graph.call("sin", x), graph.call("cos", x)) if b.revolute else (graph.zero, graph.one)
        for b, x in zip(model.bodies, angles, strict=True)
    ]


def down(model: Bodies, body: Body, sc: tuple[Node, Node], a: Vector) -> Vector:
    """A vector in parent axes, in the axes of the body's joint (before `after`)."""
    return turn_z(-sc[0], sc[1], turn(model.graph, body.before.T, a))


def up(model: Bodies, body: Body, sc: tuple[Node, Node], a: Vector) -> Vector:
    """A vector in the axes of the body's joint, in parent axes."""
    return turn(model.graph, body.before, turn_z(sc[0], sc[1], a))


def shift_of(body: Body, angle: Node) -> tuple[Node | float, Node | float, Node | float]:
    """Where the joint stands in the parent frame; a prismatic one moves."""
    x, y, z = (float(s) for s in body.shift)
    if body.revolute:
        return x, y, z
    ax, ay, az = (float(s) for s in body.before[:, 2])
    return angle * ax + x, angle * ay + y, angle * az + z


def motion(
    model: Bodies, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node], gravity: bool = True
) -> tuple[list[Moving], Moving, list[Node], list[tuple[Node, Node]]]:
    """Motion of all bodies and of the base, joint positions, and their sines and cosines."""
    graph = model.graph
    first_q, first_v = (7, 6) if model.floating else (0, 0)
    angles = joint_angles(model, q[first_q:])
    sc = sines(model, angles)
    zero = (graph.zero, graph.zero, graph.zero)
    lift = scale(-1.0, gravity_in_base(model, q)) if gravity else zero
    base = moving(zero, zero, lift)
    if model.floating:
        w = (v[3], v[4], v[5])
        linear = add((a[0], a[1], a[2]), cross(w, (v[0], v[1], v[2])))
        base = moving(w, (a[3], a[4], a[5]), add(linear, lift))
    out: list[Moving] = []
    for i, body in enumerate(model.bodies):
        parent = out[body.parent] if body.parent >= 0 else base
        rate = v[first_v + body.coordinate] * body.ratio
        push = a[first_v + body.coordinate] * body.ratio
        w, dw = down(model, body, sc[i], parent.w), down(model, body, sc[i], parent.dw)
        origin = down(model, body, sc[i], parent.acceleration_of(shift_of(body, angles[i])))
        if body.revolute:
            dw = (dw[0] + w[1] * rate, dw[1] - w[0] * rate, dw[2] + push)
            w = (w[0], w[1], w[2] + rate)
        else:
            twice = rate * 2.0
            origin = (origin[0] + w[1] * twice, origin[1] - w[0] * twice, origin[2] + push)
        back = body.after.T
        now = moving(turn(graph, back, w), turn(graph, back, dw), turn(graph, back, origin))
        out.append(Moving(now.w, now.dw, now.acceleration_of([float(x) for x in body.reach]), now.products))
    return out, base, angles, sc


def wrench(body: Inertia, at: Moving) -> tuple[Vector, Vector]:
    """Force m a + U h and moment I w' + w x I w + h x a, with the products of w shared with U."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = body
    (_, uxy, uxz), (uyx, _, uyz), (uzx, uzy, _) = at.u
    x2, y2, z2, wxy, wxz, wyz = at.products
    x, y, z = at.dw
    rows = at.u
    force = add(scale(m, at.a), (_row(rows[0], (hx, hy, hz)), _row(rows[1], (hx, hy, hz)), _row(rows[2], (hx, hy, hz))))
    moment = (
        xx * x + (zz - yy) * wyz - xy * uzx + xz * uyx + yz * (y2 - z2),
        yy * y + (xx - zz) * wxz + xy * uzy - yz * uxy + xz * (z2 - x2),
        zz * z + (yy - xx) * wxy - xz * uyz + yz * uxz + xy * (x2 - y2),
    )
    return force, add(moment, cross((hx, hy, hz), at.a))


def torques(
    model: Bodies, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node], gravity: bool = True
) -> tuple[list[Node], list[Node]]:
    """Base wrench (fx, fy, fz, mx, my, mz; zero for a fixed base) and torque of every independent joint."""
    graph = model.graph
    moved, base, angles, sc = motion(model, q, v, a, gravity)
    zero = (graph.zero, graph.zero, graph.zero)
    loads = {i: wrench(b.inertia, moved[i]) if b.inertia else (zero, zero) for i, b in enumerate(model.bodies)}
    loads[-1] = wrench(model.base_inertia, base) if model.base_inertia and model.wrench else (zero, zero)
    tau = [graph.zero] * model.n
    for i in range(len(model.bodies) - 1, -1, -1):
        body = model.bodies[i]
        force, moment = loads[i]
        moment = add(moment, cross(tuple(graph.const(x) for x in body.reach), force))  # type: ignore[arg-type]
        force, moment = turn(graph, body.after, force), turn(graph, body.after, moment)
        along = moment[2] if body.revolute else force[2]
        tau[body.coordinate] = tau[body.coordinate] + along * body.ratio
        if body.parent < 0 and not model.wrench:
            continue
        force, moment = up(model, body, sc[i], force), up(model, body, sc[i], moment)
        x, y, z = shift_of(body, angles[i])
        moment = add(moment, (force[2] * y - force[1] * z, force[0] * z - force[2] * x, force[1] * x - force[0] * y))
        above = loads[body.parent]
        loads[body.parent] = add(above[0], force), add(above[1], moment)
    return [*loads[-1][0], *loads[-1][1]], tau
