"""Vectors, rotations and inertias whose entries are nodes; zeros and ones cost nothing because the graph drops them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.codegen.graph import Graph, Node

__all__ = [
    "Inertia",
    "Vector",
    "add",
    "combine",
    "cross",
    "dot",
    "scale",
    "shift_inertia",
    "snap",
    "turn",
    "turn_inertia",
    "turn_inertia_z",
    "turn_z",
]

Array = NDArray[np.float64]
Vector = tuple[Node, Node, Node]
# m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
Inertia = tuple[Node, ...]

# Rounding that trigonometric functions of multiples of 90 degrees leave behind.
_ROUNDING = 1e-14


def snap(a: ArrayLike, size: float = 1.0) -> Array:
    """Numbers with what is rounding away from a multiple of `size` put onto it: 6e-17 becomes a plain zero."""
    out = np.array(a, dtype=float)
    near = np.round(out / size) * size
    return np.asarray(np.where(np.abs(out - near) <= _ROUNDING * size, near, out) + 0.0)


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale(s: Node | float, a: Vector) -> Vector:
    return (a[0] * s, a[1] * s, a[2] * s)


def cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def dot(a: Vector, b: Vector) -> Node:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def combine(graph: Graph, weights: Sequence[float] | Array, terms: Sequence[Node]) -> Node:
    """Sum of terms with constant weights."""
    return graph.total(x * float(w) for w, x in zip(weights, terms, strict=True) if w)


def turn(graph: Graph, rotation: Array, a: Vector) -> Vector:
    """A constant rotation of a vector."""
    return (
        combine(graph, rotation[0], a),
        combine(graph, rotation[1], a),
        combine(graph, rotation[2], a),
    )


def turn_z(s: Node, c: Node, a: Vector) -> Vector:
    """Rotation about z by the angle with this sine and cosine."""
    return (c * a[0] - s * a[1], s * a[0] + c * a[1], a[2])


def turn_inertia_z(s: Node, c: Node, body: Inertia) -> Inertia:
    """R I R' and R h for a rotation about z, in eight products for the tensor."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = body
    hx, hy, hz = turn_z(s, c, (hx, hy, hz))
    u = s * (xx - yy) + c * (xy * 2.0)
    su = s * u
    xz, yz, _ = turn_z(s, c, (xz, yz, zz))
    return (m, hx, hy, hz, xx - su, c * u - xy, yy + su, xz, yz, zz)


def turn_inertia(graph: Graph, rotation: Array, body: Inertia) -> Inertia:
    """A constant rotation of a body: a relabelling where it can be one, else turns about single axes."""
    if np.all(np.isin(rotation, (-1.0, 0.0, 1.0))):
        return _relabel(graph, rotation, body)
    for axis, order in ((2, (0, 1, 2)), (0, (1, 2, 0)), (1, (2, 0, 1))):
        if abs(rotation[axis, axis]) == 1.0 and rotation[axis, axis] > 0:
            # Name the axes so that the turn is one about z, turn, and name them back.
            names = np.eye(3)[list(order)]
            s, c = rotation[order[1], order[0]], rotation[order[0], order[0]]
            turned = turn_inertia_z(graph.const(s), graph.const(c), _relabel(graph, names, body))
            return _relabel(graph, names.T, turned)
    a, b, c = _zxz(rotation)
    for angle, axis in ((c, 2), (b, 0), (a, 2)):
        body = turn_inertia(graph, _about(axis, angle), body)
    return body


def shift_inertia(p: Sequence[Node | float], body: Inertia) -> Inertia:
    """The body seen from a frame with the same axes in which its own frame stands at p."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = body
    x, y, z = p
    gx, gy, gz = hx + m * x, hy + m * y, hz + m * z
    kx, ky, kz = (hx + gx) * x, (hy + gy) * y, (hz + gz) * z
    return (
        m,
        gx,
        gy,
        gz,
        xx + (ky + kz),
        xy - (hy * x + gx * y),
        yy + (kx + kz),
        xz - (hz * x + gx * z),
        yz - (hz * y + gy * z),
        zz + (kx + ky),
    )


def _relabel(graph: Graph, rotation: Array, body: Inertia) -> Inertia:
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = body
    tensor = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    rows = [turn(graph, rotation, (r[0], r[1], r[2])) for r in tensor]  # (R I')' = I R'
    columns = [turn(graph, rotation, (rows[0][i], rows[1][i], rows[2][i])) for i in range(3)]
    h = turn(graph, rotation, (hx, hy, hz))
    return (m, *h, columns[0][0], columns[0][1], columns[1][1], columns[0][2], columns[1][2], columns[2][2])


def _about(axis: int, angle: float) -> Array:
    s, c = np.sin(angle), np.cos(angle)
    out = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out[i, i], out[i, j], out[j, i], out[j, j] = c, -s, s, c
    return snap(out)


def _zxz(rotation: Array) -> tuple[float, float, float]:
    """Angles with rotation = Rz(a) Rx(b) Rz(c)."""
    b = float(np.arctan2(np.hypot(rotation[0, 2], rotation[1, 2]), rotation[2, 2]))
    if abs(np.sin(b)) < 1e-12:
        return float(np.arctan2(rotation[1, 0], rotation[0, 0])), 0.0 if b < 1 else np.pi, 0.0
    return (
        float(np.arctan2(rotation[0, 2], -rotation[1, 2])),
        b,
        float(np.arctan2(rotation[2, 0], rotation[2, 1])),
    )
