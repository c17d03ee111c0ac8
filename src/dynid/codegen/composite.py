"""Mass matrix by composite inertias and the Coriolis matrix of the Christoffel symbols, in joint frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynid.codegen.bodies import Bodies
from dynid.codegen.graph import Graph, Node
from dynid.codegen.newton_euler import down, joint_angles, shift_of, sines, up
from dynid.codegen.vectors import Inertia, Vector, add, cross, dot, shift_inertia, turn_inertia, turn_inertia_z

__all__ = ["coriolis_matrix", "mass_matrix"]

Wrench = tuple[Vector, Vector]
# A body's part of the Coriolis matrix: a twist (s, t) meets the wrench (t x f, D t).
Coriolis = tuple[Vector, tuple[Vector, Vector, Vector]]


def mass_matrix(model: Bodies, q: Sequence[Node]) -> list[list[Node]]:
    """Rigid mass matrix, base rows first where the base moves."""
    graph = model.graph
    angles = joint_angles(model, q[7:] if model.floating else q)
    sc = sines(model, angles)
    composite = _composites(model, angles, sc)
    first = 6 if model.floating else 0
    out = [[graph.zero] * (first + model.n) for _ in range(first + model.n)]
    for j, body in enumerate(model.bodies):
        load = _times(composite[j], *_twist(graph, body.revolute))
        col = first + body.coordinate
        value = _along(load, body.revolute) * (body.ratio * body.ratio)
        out[col][col] = out[col][col] + value
        for i, parent in _way_to_base(model, j):
            load = _lift(model, i, angles[i], sc[i], load)
            if parent < 0:
                break
            above = model.bodies[parent]
            row = first + above.coordinate
            value = _along(load, above.revolute) * (body.ratio * above.ratio)
            if row == col:
                value = value * 2.0
            out[row][col] = out[row][col] + value
            out[col][row] = out[row][col]
        if model.floating:
            for k, x in enumerate((*load[0], *load[1])):
                out[k][col] = out[col][k] = out[k][col] + x * body.ratio
    if model.floating:
        for k in range(6):
            s, t = _base_twist(graph, k)
            for r, x in enumerate(_flat(_times(composite[-1], s, t))):
                out[r][k] = x
    return out


def coriolis_matrix(model: Bodies, q: Sequence[Node], v: Sequence[Node]) -> list[list[Node]]:
    """C with C v the Coriolis torque and dM/dt = C + C' (Echeandia and Wensing 2021)."""
    graph = model.graph
    angles = joint_angles(model, q[7:] if model.floating else q)
    sc = sines(model, angles)
    inertia = _composites(model, angles, sc)
    twists = _twists(model, v, angles, sc)
    terms = _coriolis_terms(model, angles, sc, twists)
    first = 6 if model.floating else 0
    out = [[graph.zero] * (first + model.n) for _ in range(first + model.n)]
    for j, body in enumerate(model.bodies):
        s, t = _twist(graph, body.revolute)
        col = first + body.coordinate
        load = _sum(_times(inertia[j], *_rate(twists[j], s, t)), _meets(terms[j], t))
        momentum = _times(inertia[j], s, t)
        back = _meets_transposed(graph, terms[j], s, t)
        value = _along(load, body.revolute) * (body.ratio * body.ratio)
        out[col][col] = out[col][col] + value
        for i, parent in _way_to_base(model, j):
            load, momentum, back = (_lift(model, i, angles[i], sc[i], x) for x in (load, momentum, back))
            if parent < 0:
                break
            above = model.bodies[parent]
            row, weight = first + above.coordinate, body.ratio * above.ratio
            out[row][col] = out[row][col] + _along(load, above.revolute) * weight
            ds, dt = _rate(twists[parent], *_twist(graph, above.revolute))
            value = dot(ds, momentum[0]) + dot(dt, momentum[1]) + _along(back, above.revolute)
            out[col][row] = out[col][row] + value * weight
        if model.floating:
            for k, x in enumerate(_flat(load)):
                out[k][col] = out[k][col] + x * body.ratio
                s, t = _base_twist(graph, k)
                ds, dt = _rate(twists[-1], s, t)
                value = dot(ds, momentum[0]) + dot(dt, momentum[1]) + dot(s, back[0]) + dot(t, back[1])
                out[col][k] = out[col][k] + value * body.ratio
    if model.floating:
        for k in range(6):
            s, t = _base_twist(graph, k)
            load = _sum(_times(inertia[-1], *_rate(twists[-1], s, t)), _meets(terms[-1], t))
            for r, x in enumerate(_flat(load)):
                out[r][k] = x
    return out


def _way_to_base(model: Bodies, j: int) -> Iterator[tuple[int, int]]:
    """Each body from j on and its parent; the base is the last parent, -1, where it moves."""
    while j >= 0 and (model.bodies[j].parent >= 0 or model.floating):
        yield j, model.bodies[j].parent
        j = model.bodies[j].parent


def _composites(model: Bodies, angles: list[Node], sc: list[tuple[Node, Node]]) -> dict[int, Inertia]:
    """Inertia of each body with all it carries, in its joint frame; -1 is the base."""
    graph = model.graph
    nothing = (graph.zero,) * 10
    out = {i: b.inertia or nothing for i, b in enumerate(model.bodies)}
    out[-1] = model.base_inertia or nothing
    for i in range(len(model.bodies) - 1, -1, -1):
        body = model.bodies[i]
        if body.parent < 0 and not model.floating:
            continue
        carried = turn_inertia(graph, body.before, turn_inertia_z(*sc[i], out[i]))
        carried = shift_inertia(shift_of(body, angles[i]), carried)
        out[body.parent] = tuple(x + y for x, y in zip(out[body.parent], carried, strict=True))
    return out


def _coriolis_terms(
    model: Bodies, angles: list[Node], sc: list[tuple[Node, Node]], twists: dict[int, Wrench]
) -> dict[int, Coriolis]:
    graph = model.graph
    zero = (graph.zero, graph.zero, graph.zero)
    out: dict[int, Coriolis] = {}
    for i in range(-1, len(model.bodies)):
        inertia = model.bodies[i].inertia if i >= 0 else (model.base_inertia if model.floating else None)
        out[i] = _body_coriolis(inertia, *twists[i]) if inertia else (zero, (zero, zero, zero))
    for i in range(len(model.bodies) - 1, -1, -1):
        body = model.bodies[i]
        if body.parent < 0 and not model.floating:
            continue
        f, d = out[i]
        f = up(model, body, sc[i], f)
        rows = [up(model, body, sc[i], r) for r in d]  # (R D')' = D R'
        columns = [up(model, body, sc[i], (rows[0][k], rows[1][k], rows[2][k])) for k in range(3)]
        p = tuple(model.graph.total([x]) for x in shift_of(body, angles[i]))
        # A twist (s, t) of the parent is (s + t x p, t) here, and the wrench (g, n) there (g, n + p x g):
        # D grows by p x (t x f) = t (p.f) - f (p.t).
        pf = dot(p, f)  # type: ignore[arg-type]
        grown = tuple(
            tuple(columns[c][r] - f[r] * p[c] + (pf if r == c else graph.zero) for c in range(3)) for r in range(3)
        )
        above_f, above_d = out[body.parent]
        summed = tuple(tuple(above_d[r][c] + grown[r][c] for c in range(3)) for r in range(3))
        out[body.parent] = add(above_f, f), summed  # type: ignore[assignment]
    return out


def _body_coriolis(body: Inertia, u: Vector, w: Vector) -> Coriolis:
    """f = m u + w x h and D = (h.u) 1 - u h' - w x Sigma with Sigma = tr(I)/2 1 - I, for the twist (u, w)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = body
    h = (hx, hy, hz)
    half = (xx + yy + zz) * 0.5
    sigma = ((half - xx, -xy, -xz), (-xy, half - yy, -yz), (-xz, -yz, half - zz))
    f = add((u[0] * m, u[1] * m, u[2] * m), cross(w, h))
    hu = dot(h, u)
    columns = [cross(w, s) for s in sigma]
    rows = tuple(
        tuple((hu if r == c else hu.graph.zero) - u[r] * h[c] - columns[c][r] for c in range(3)) for r in range(3)
    )
    return f, rows  # type: ignore[return-value]


def _twists(model: Bodies, v: Sequence[Node], angles: list[Node], sc: list[tuple[Node, Node]]) -> dict[int, Wrench]:
    """Velocity of each body's joint frame (linear, angular) in its own axes."""
    graph = model.graph
    zero = (graph.zero, graph.zero, graph.zero)
    first = 6 if model.floating else 0
    out: dict[int, Wrench] = {-1: ((v[0], v[1], v[2]), (v[3], v[4], v[5])) if model.floating else (zero, zero)}
    for i, body in enumerate(model.bodies):
        u, w = out[body.parent]
        p = tuple(graph.total([x]) for x in shift_of(body, angles[i]))
        u, w = down(model, body, sc[i], add(u, cross(w, p))), down(model, body, sc[i], w)  # type: ignore[arg-type]
        rate = v[first + body.coordinate] * body.ratio
        if body.revolute:
            w = (w[0], w[1], w[2] + rate)
        else:
            u = (u[0], u[1], u[2] + rate)
        out[i] = (u, w)
    return out


def _lift(model: Bodies, i: int, angle: Node, sc: tuple[Node, Node], load: Wrench) -> Wrench:
    """A wrench in the frame of body i's joint, in its parent's frame."""
    body = model.bodies[i]
    force, moment = up(model, body, sc, load[0]), up(model, body, sc, load[1])
    x, y, z = shift_of(body, angle)
    return force, add(moment, (force[2] * y - force[1] * z, force[0] * z - force[2] * x, force[1] * x - force[0] * y))


def _twist(graph: Graph, revolute: bool) -> Wrench:
    along, zero = (graph.zero, graph.zero, graph.one), (graph.zero, graph.zero, graph.zero)
    return (zero, along) if revolute else (along, zero)


def _base_twist(graph: Graph, k: int) -> Wrench:
    e = [graph.one if i == k else graph.zero for i in range(6)]
    return (e[0], e[1], e[2]), (e[3], e[4], e[5])


def _along(load: Wrench, revolute: bool) -> Node:
    return load[1][2] if revolute else load[0][2]


def _flat(load: Wrench) -> tuple[Node, ...]:
    return (*load[0], *load[1])


def _sum(a: Wrench, b: Wrench) -> Wrench:
    return add(a[0], b[0]), add(a[1], b[1])


def _times(body: Inertia, s: Vector, t: Vector) -> Wrench:
    """Spatial inertia times a twist: force m s + t x h, moment h x s + I t."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = body
    h = (hx, hy, hz)
    moment = (
        xx * t[0] + xy * t[1] + xz * t[2],
        xy * t[0] + yy * t[1] + yz * t[2],
        xz * t[0] + yz * t[1] + zz * t[2],
    )
    return add((s[0] * m, s[1] * m, s[2] * m), cross(t, h)), add(cross(h, s), moment)


def _rate(velocity: Wrench, s: Vector, t: Vector) -> Wrench:
    """How a twist fixed to a body changes as the body moves."""
    u, w = velocity
    return add(cross(w, s), cross(u, t)), cross(w, t)


def _meets(term: Coriolis, t: Vector) -> Wrench:
    f, d = term
    return cross(t, f), (dot(d[0], t), dot(d[1], t), dot(d[2], t))


def _meets_transposed(graph: Graph, term: Coriolis, s: Vector, t: Vector) -> Wrench:
    """The transposed has only a moment, f x s + D' t."""
    f, d = term
    zero = (graph.zero, graph.zero, graph.zero)
    columns = [(d[0][k], d[1][k], d[2][k]) for k in range(3)]
    return zero, add(cross(f, s), (dot(columns[0], t), dot(columns[1], t), dot(columns[2], t)))
