"""Placements of links whose joints have errors, and the twist by which each error moves what its joint carries.

With the placement (R, p) of a joint on its parent and its errors: translations t, rotation vector w and position d,

    p' = p + R t,    R' = R exp(w),    placed by the joint at    reading + d

and a unit of t moves by R, of w turns by R J(w) about p', of d by the axis of R' about or along it, with J the left
Jacobian of rotations. Twists are written as rotation and as velocity of the origin of the base.

Source: Lynch and Park, Modern Robotics (2017), chapter 3; Chirikjian, Stochastic Models, Information Theory, and Lie
Groups, volume 2 (2012), chapter 10, for J.
"""

from typing import Any

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step

# Below this angle (rad) the series of the rotation formulas are exact to rounding.
_SMALL = 1e-4
SHIFT, TURN, ALONG = 0, 1, 2


@step
def _series(w: Any, one: float, linear: float, square: float, out: Any) -> None:
    """one + linear [w] + square [w]^2."""
    size = w[0] ** 2 + w[1] ** 2 + w[2] ** 2
    for i in range(3):
        for k in range(3):
            out[i, k] = square * w[i] * w[k]
        out[i, i] += one - square * size
        out[i, (i + 1) % 3] -= linear * w[(i + 2) % 3]
        out[i, (i + 2) % 3] += linear * w[(i + 1) % 3]


@step
def _product(a: Any, b: Any, out: Any) -> None:
    """Product of two matrices (3, 3)."""
    for i in range(3):
        for k in range(3):
            out[i, k] = a[i, 0] * b[0, k] + a[i, 1] * b[1, k] + a[i, 2] * b[2, k]


@kernel
def misplaced(
    parent: Any, placement: Any, mount: Any, axis: Any, slides: Any, reading: Any,
    first: Any, columns: Any, form: Any, direction: Any, slope: Any, x: Any,
    link: Any, turn: Any, move: Any
) -> None:  # fmt: skip
    """Write the placements link (N, J + 1, 3, 4) of the base and of J links, and twists turn and move (N, 3, X).

    parent (J) is a number of `link`; placement and mount (J, 3, 4); reading (N, J). The errors of joint j are
    columns[first[j] : first[j + 1]] of form, direction (K, 3), slope (N, K) and x (K).
    """
    count, joints = reading.shape
    R, p, w, a, v = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    E, L, T = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for n in range(count):
        for i in range(3):
            for k in range(4):
                link[n, 0, i, k] = 1.0 if i == k else 0.0
        for j in range(joints):
            up = parent[j]
            for i in range(3):
                total = link[n, up, i, 3]
                for m in range(3):
                    total += link[n, up, i, m] * placement[j, m, 3]
                p[i] = total
                for k in range(3):
                    total = 0.0
                    for m in range(3):
                        total += link[n, up, i, m] * placement[j, m, k]
                    R[i, k] = total
            w[:] = 0.0
            v[:] = 0.0
            position = reading[n, j]
            for c in range(first[j], first[j + 1]):
                k = columns[c]
                if form[k] == ALONG:
                    position += x[k] * slope[n, k]
                else:
                    for i in range(3):
                        if form[k] == SHIFT:
                            v[i] += x[k] * direction[k, i]
                        else:
                            w[i] += x[k] * slope[n, k] * direction[k, i]
            for i in range(3):
                for m in range(3):
                    p[i] += R[i, m] * v[m]
            # Rotation and left Jacobian of w.
            angle = np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2)
            if angle < _SMALL:
                sine, cosine, rest = 1 - angle**2 / 6, 0.5 - angle**2 / 24, 1 / 6 - angle**2 / 120
            else:
                sine, cosine = np.sin(angle) / angle, (1 - np.cos(angle)) / angle**2
                rest = (1 - sine) / angle**2
            _series(w, 1.0, sine, cosine, E)
            _series(w, 1.0, cosine, rest, L)
            _product(R, L, T)
            for c in range(first[j], first[j + 1]):
                k = columns[c]
                if form[k] == SHIFT:
                    for i in range(3):
                        move[n, i, k] = (
                            R[i, 0] * direction[k, 0] + R[i, 1] * direction[k, 1] + R[i, 2] * direction[k, 2]
                        )
                elif form[k] == TURN:
                    for i in range(3):
                        a[i] = T[i, 0] * direction[k, 0] + T[i, 1] * direction[k, 1] + T[i, 2] * direction[k, 2]
                    for i in range(3):
                        turn[n, i, k] = slope[n, k] * a[i]
                        b, d = (i + 1) % 3, (i + 2) % 3
                        move[n, i, k] = slope[n, k] * (p[b] * a[d] - p[d] * a[b])
            _product(R, E, T)
            for i in range(3):
                a[i] = T[i, 0] * axis[j, 0] + T[i, 1] * axis[j, 1] + T[i, 2] * axis[j, 2]
            for c in range(first[j], first[j + 1]):
                k = columns[c]
                if form[k] == ALONG:
                    for i in range(3):
                        b, d = (i + 1) % 3, (i + 2) % 3
                        if slides[j]:
                            move[n, i, k] = slope[n, k] * a[i]
                        else:
                            turn[n, i, k] = slope[n, k] * a[i]
                            move[n, i, k] = slope[n, k] * (p[b] * a[d] - p[d] * a[b])
            if slides[j]:
                for i in range(3):
                    p[i] += a[i] * position
            else:
                _series(axis[j], 1.0, np.sin(position), 1 - np.cos(position), E)
                _product(T, E, R)
                T[:] = R
            for i in range(3):
                total = p[i]
                for m in range(3):
                    total += T[i, m] * mount[j, m, 3]
                link[n, j + 1, i, 3] = total
                for k in range(3):
                    total = 0.0
                    for m in range(3):
                        total += T[i, m] * mount[j, m, k]
                    link[n, j + 1, i, k] = total
