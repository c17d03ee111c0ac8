"""Values with their derivatives in all unknowns: vectors, and placements of frames.

A vector carries v and dv/dx. A placement carries the rotation R and the origin p, and for each unknown the rotation
vector w and the velocity u of the origin, so that a point c of the frame has

    v = R c + p,    dv/dx = w x (R c) + u + R dc/dx

Source: forward-mode differentiation; Lynch and Park, Modern Robotics (2017), chapter 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Placed",
    "Tangent",
    "across",
    "components",
    "cross",
    "dot",
    "left_jacobian",
    "nearby",
    "norm",
    "perpendiculars",
    "rotation_vector",
    "rotations",
    "rotations_about",
    "stacked",
    "unit",
]

Array = NDArray[np.float64]

# Below this angle (rad) the series of the rotation formulas are exact to rounding.
_SMALL = 1e-4


@dataclass(frozen=True, eq=False)
class Tangent:
    """A value and its derivative.

    Attributes
    ----------
    value : ndarray, shape (...)
        The value.
    slope : ndarray, shape (..., X)
        Its derivative in each of the X unknowns.
    """

    value: Array
    slope: Array

    def __add__(self, other: Tangent | Array | float) -> Tangent:
        if isinstance(other, Tangent):
            return Tangent(self.value + other.value, self.slope + other.slope)
        return Tangent(self.value + other, self.slope)

    def __sub__(self, other: Tangent | Array | float) -> Tangent:
        if isinstance(other, Tangent):
            return Tangent(self.value - other.value, self.slope - other.slope)
        return Tangent(self.value - other, self.slope)

    def __mul__(self, other: Tangent | Array | float) -> Tangent:
        if isinstance(other, Tangent):
            slope = self.slope * other.value[..., None] + other.slope * self.value[..., None]
            return Tangent(self.value * other.value, slope)
        return Tangent(self.value * other, self.slope * np.asarray(other)[..., None])

    def __truediv__(self, other: Tangent) -> Tangent:
        slope = (self.slope - (self.value / other.value)[..., None] * other.slope) / other.value[..., None]
        return Tangent(self.value / other.value, slope)

    def __neg__(self) -> Tangent:
        return Tangent(-self.value, -self.slope)

    def __getitem__(self, key: Any) -> Tangent:
        """Entries of the value, with the derivative of each; `key` picks along the axes of the value."""
        return Tangent(self.value[key], self.slope[key])

    def along(self, axis: ArrayLike) -> Tangent:
        """Component along a constant vector (3,) or one per row."""
        axis = np.asarray(axis, dtype=float)
        return Tangent((self.value * axis).sum(-1), np.einsum("...ix,...i->...x", self.slope, axis))


def dot(a: Tangent, b: Tangent) -> Tangent:
    """Scalar product over the last axis of the values."""
    slope = np.einsum("...ix,...i->...x", a.slope, b.value) + np.einsum("...ix,...i->...x", b.slope, a.value)
    return Tangent((a.value * b.value).sum(-1), slope)


def cross(a: Tangent, b: Tangent) -> Tangent:
    """Vector product over the last axis of the values."""
    slope = across(a.slope, b.value) - across(b.slope, a.value)
    return Tangent(np.cross(a.value, b.value), slope)


def norm(a: Tangent) -> Tangent:
    """Length over the last axis of the values; its derivative is zero where the length is."""
    length = np.linalg.norm(a.value, axis=-1)
    unit = a.value / np.where(length > 0, length, 1.0)[..., None]
    return Tangent(length, np.einsum("...ix,...i->...x", a.slope, unit))


def unit(a: Tangent) -> Tangent:
    """Directions of vectors, over the last axis of the values."""
    length = np.linalg.norm(a.value, axis=-1)[..., None]
    direction = a.value / length
    radial = np.einsum("...ix,...i->...x", a.slope, direction)[..., None, :]
    return Tangent(direction, (a.slope - direction[..., None] * radial) / length[..., None])


def components(parts: list[Tangent]) -> Tangent:
    """Numbers of the same shape as the entries of vectors, along a new last axis of the values."""
    shape = np.broadcast_shapes(*(p.value.shape for p in parts))
    width = parts[0].slope.shape[-1]
    values = [np.broadcast_to(p.value, shape) for p in parts]
    return Tangent(np.stack(values, -1), np.stack([np.broadcast_to(p.slope, (*shape, width)) for p in parts], axis=-2))


def perpendiculars(direction: Array) -> Array:
    """Two unit vectors (..., 2, 3) across unit vectors (..., 3)."""
    other = np.eye(3)[np.argmin(np.abs(direction), axis=-1)]
    first = np.cross(direction, other)
    first = first / np.linalg.norm(first, axis=-1, keepdims=True)
    return np.stack([first, np.cross(direction, first)], axis=-2)


def nearby(direction: Array, x: Tangent) -> Tangent:
    """Unit vectors (1, 3) beside one of them (3,), by small amounts (1, 2) along the two axes across it."""
    axes = perpendiculars(direction)
    return unit(Tangent(direction + x.value @ axes, axes.T @ x.slope))


def stacked(parts: list[Tangent]) -> Tangent:
    """Parts one after another along the first axis."""
    return Tangent(np.concatenate([p.value for p in parts]), np.concatenate([p.slope for p in parts]))


def across(turns: Array, vector: Array) -> Array:
    """Vector products (..., 3, X) of rotations (..., 3, X) with one vector (..., 3)."""
    # As a matrix product: one pass over the columns.
    return np.asarray(-_skews(vector) @ turns)


@dataclass(frozen=True, eq=False)
class Placed:
    """Placements of a frame, one per posture or one for all.

    Attributes
    ----------
    rotation : ndarray, shape (N, 3, 3)
        Axes of the frame.
    origin : ndarray, shape (N, 3)
        Its origin (m).
    turn, shift : ndarray, shape (N, 3, X)
        Rotation and velocity of the origin per unknown.
    """

    rotation: Array
    origin: Array
    turn: Array
    shift: Array

    def point(self, local: Tangent | Array) -> Tangent:
        """Where a point (3,) or (N, 3) of the frame is."""
        turned = self.vector(local)
        return Tangent(turned.value + self.origin, turned.slope + self.shift)

    def vector(self, local: Tangent | Array) -> Tangent:
        """A vector of the frame, in the axes of its reference."""
        value = local.value if isinstance(local, Tangent) else local
        turned = (self.rotation @ value[..., None])[..., 0]
        slope = across(self.turn, turned)
        if isinstance(local, Tangent):
            slope = slope + self.rotation @ local.slope
        return Tangent(turned, slope)

    def inverse(self) -> Placed:
        """Placement of the reference in the frame."""
        back = np.swapaxes(self.rotation, -1, -2)
        shift = across(self.turn, self.origin) - self.shift
        return Placed(back, -(back @ self.origin[..., None])[..., 0], -(back @ self.turn), back @ shift)

    def then(self, other: Placed) -> Placed:
        """Placement of a frame that is placed by `other` in this one."""
        offset = (self.rotation @ other.origin[..., None])[..., 0]
        shift = across(self.turn, offset) + self.shift + self.rotation @ other.shift
        turn = self.turn + self.rotation @ other.turn
        return Placed(self.rotation @ other.rotation, self.origin + offset, turn, shift)


def rotations(vector: ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3), Rodrigues' formula."""
    w = np.asarray(vector, dtype=float)
    angle = np.linalg.norm(w, axis=-1)[..., None, None]
    k = _skews(w)
    small = angle < _SMALL
    safe = np.where(small, 1.0, angle)
    first = np.where(small, 1 - angle**2 / 6, np.sin(safe) / safe)
    second = np.where(small, 0.5 - angle**2 / 24, (1 - np.cos(safe)) / safe**2)
    out: Array = np.eye(3) + first * k + second * (k @ k)
    return out


def rotations_about(axis: Array, angle: Array) -> Array:
    """Rotation matrices (N, 3, 3) about one unit vector (3,) by angles (N,)."""
    k = _skews(axis)
    return np.asarray(np.eye(3) + np.sin(angle)[:, None, None] * k + (1 - np.cos(angle))[:, None, None] * (k @ k))


def left_jacobian(vector: ArrayLike) -> Array:
    """Matrices (..., 3, 3) from the change of a rotation vector to the rotation that it causes, in outer axes."""
    w = np.asarray(vector, dtype=float)
    angle = np.linalg.norm(w, axis=-1)[..., None, None]
    k = _skews(w)
    small = angle < _SMALL
    safe = np.where(small, 1.0, angle)
    first = np.where(small, 0.5 - angle**2 / 24, (1 - np.cos(safe)) / safe**2)
    second = np.where(small, 1 / 6 - angle**2 / 120, (safe - np.sin(safe)) / safe**3)
    out: Array = np.eye(3) + first * k + second * (k @ k)
    return out


def rotation_vector(matrix: ArrayLike) -> Array:
    """Rotation vectors (..., 3) of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    r = np.asarray(matrix, dtype=float)
    out: Array = Rotation.from_matrix(r.reshape(-1, 3, 3)).as_rotvec().reshape(*r.shape[:-1])
    return out


def _skews(w: Array) -> Array:
    out = np.zeros((*w.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -w[..., 2], w[..., 1], -w[..., 0]
    return out - np.swapaxes(out, -1, -2)
