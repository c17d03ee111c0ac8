"""Rotations, placements and twists as arrays.

A placement is a 4x4 homogeneous matrix that maps child coordinates to parent coordinates.
A twist is (linear, angular), as in Pinocchio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "axis_rotation",
    "clean",
    "inverse_placement",
    "placement",
    "rpy_rotation",
    "skew",
    "twist_adjoint",
    "twist_matrix",
]

Array = NDArray[np.float64]


def skew(w: ArrayLike) -> Array:
    """Cross-product matrix of w, shape (3, 3)."""
    x, y, z = np.asarray(w, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def axis_rotation(axis: ArrayLike, angle: float) -> Array:
    """Rotation by `angle` about the unit vector `axis` (Rodrigues)."""
    k = skew(axis)
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * (k @ k)


def rpy_rotation(roll: float, pitch: float, yaw: float) -> Array:
    """Rotation of URDF's fixed-axis angles: Rz(yaw) Ry(pitch) Rx(roll)."""
    return axis_rotation((0, 0, 1), yaw) @ axis_rotation((0, 1, 0), pitch) @ axis_rotation((1, 0, 0), roll)


def placement(rotation: ArrayLike | None = None, translation: ArrayLike | None = None) -> Array:
    """Homogeneous 4x4 matrix of a rotation and a translation (identity if not given)."""
    h = np.eye(4)
    if rotation is not None:
        h[:3, :3] = rotation
    if translation is not None:
        h[:3, 3] = translation
    return h


def inverse_placement(h: Array) -> Array:
    """Inverse of a placement by transposition, exact to rounding."""
    r = h[:3, :3].T
    return placement(r, -r @ h[:3, 3])


def clean(h: Array) -> Array:
    """Replace entries within rounding of -1, 0 and 1 by these values.

    cos(pi/2) is 6e-17 in floating point. Such rounding errors would make columns of the regressor that are zero or
    linearly dependent look almost so.
    """
    out = np.array(h, dtype=float)
    for exact in (-1.0, 0.0, 1.0):
        out[np.abs(out - exact) < 4e-16] = exact
    return out


def twist_matrix(twist: ArrayLike) -> Array:
    """The 4x4 matrix whose exponential is the motion along the twist."""
    t = np.asarray(twist, dtype=float)
    h = np.zeros((4, 4))
    h[:3, :3] = skew(t[3:])
    h[:3, 3] = t[:3]
    return h


def twist_adjoint(h: Array) -> Array:
    """6x6 map of a twist in child coordinates to parent coordinates under placement `h`."""
    r, p = h[:3, :3], h[:3, 3]
    x = np.zeros((6, 6))
    x[:3, :3] = r
    x[3:, 3:] = r
    x[:3, 3:] = skew(p) @ r
    return x
