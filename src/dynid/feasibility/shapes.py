"""Ellipsoids around the collision shapes of a robot file, for `Ellipsoids`: all mass of a link lies inside its shape.

Boxes, cylinders, spheres and capsules have their smallest ellipsoid in closed form, meshes theirs by Khachiyan's
algorithm. A collision shape is often drawn a little too large, and never too small: a link's mass is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from dynid.errors import DataError, ModelError
from dynid.robot.collision import CollisionShape, collision_shapes
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement

__all__ = ["bounding_ellipsoids", "enclosing_ellipsoid", "moved_ellipsoid"]

Array = NDArray[np.float64]

# The smallest ellipsoid of a mesh is found to about this share of its volume; all points are inside in any case.
_TOLERANCE = 1e-4
_ITERATIONS = 10_000


def bounding_ellipsoids(path: str | Path, robot: Robot, packages: Sequence[str | Path] = ()) -> dict[str, list[Array]]:
    """The smallest ellipsoid around each collision shape of a URDF file, by link of the robot read from it.

    Each is a matrix Q (4, 4) with [x; 1]' Q [x; 1] >= 0 inside, link frame, metres. Shapes of links on fixed joints
    belong to the link that carries them; links without shapes are left out. Meshes named `package://NAME/...` are
    looked for in folders `packages` and in those above the file.
    """
    out: dict[str, list[Array]] = {}
    for shape in collision_shapes(path, robot, packages):
        moved = moved_ellipsoid(_ellipsoid(shape), shape.placement)
        out.setdefault(robot.links[shape.link].name, []).append(moved)
    return out


def moved_ellipsoid(matrix: ArrayLike, h: ArrayLike) -> Array:
    """The same ellipsoid seen from the frame in which its own frame has placement `h` (4, 4)."""
    back = inverse_placement(np.asarray(h, dtype=float))
    return np.asarray(back.T @ np.asarray(matrix, dtype=float) @ back)


def enclosing_ellipsoid(points: ArrayLike, tolerance: float = _TOLERANCE) -> Array:
    """The ellipsoid of smallest volume around points (n, 3), as Q (4, 4), by Khachiyan's algorithm with away steps.

    Weights u on the points [x; 1] are moved until X = sum of u [x; 1][x; 1]' gives all of them the same largest
    [x; 1]' X^-1 [x; 1] (Todd and Yildirim 2007).
    """
    given = np.asarray(points, dtype=float)
    if given.ndim != 2 or given.shape[1] != 3 or not np.all(np.isfinite(given)):
        raise DataError(f"points to enclose need shape (n, 3) and finite values, got {given.shape}")
    try:
        corners = given[spatial.ConvexHull(given).vertices]
    except (spatial.QhullError, ValueError):
        raise DataError("points to enclose do not span a volume") from None
    middle, size = corners.mean(axis=0), float(np.abs(corners - corners.mean(axis=0)).max())
    lifted = np.column_stack([(corners - middle) / size, np.ones(len(corners))])
    u = np.full(len(lifted), 1.0 / len(lifted))
    for _ in range(_ITERATIONS):
        reach = np.einsum("ni,ni->n", lifted @ np.linalg.inv((lifted.T * u) @ lifted), lifted)
        far = int(np.argmax(reach))
        near = int(np.argmin(np.where(u > 0, reach, np.inf)))
        if reach[far] - 4.0 <= 4.0 * tolerance:
            break
        chosen = far if reach[far] - 4.0 >= 4.0 - reach[near] else near
        step = (reach[chosen] - 4.0) / (4.0 * (reach[chosen] - 1.0))
        step = max(step, -u[chosen] / (1.0 - u[chosen]))
        u = (1.0 - step) * u
        u[chosen] = max(u[chosen] + step, 0.0)
    inverse = np.linalg.inv((lifted.T * u) @ lifted)
    matrix = -inverse
    # A hair more than the largest: points on the boundary stay inside after rounding.
    matrix[3, 3] += np.einsum("ni,ij,nj->n", lifted, inverse, lifted).max() * (1.0 + 1e-12)
    centre = np.append(u @ lifted[:, :3], 1.0)
    to_unit = np.diag([1.0 / size] * 3 + [1.0])
    to_unit[:3, 3] = -middle / size
    return np.asarray(to_unit.T @ (matrix / (centre @ matrix @ centre)) @ to_unit)


def _ellipsoid(shape: CollisionShape) -> Array:
    """Ellipsoid of one shape in its own frame."""
    if shape.vertices is not None:
        try:
            return enclosing_ellipsoid(shape.vertices)
        except DataError:
            raise ModelError(f"{shape.where}: the mesh does not span a volume") from None
    if shape.kind == "box":
        # The image of a ball around a cube: every half edge times the square root of three.
        return _axes(np.sqrt(3.0) * 0.5 * shape.size)
    r = float(shape.size[0])
    if shape.kind == "sphere":
        return _axes(np.full(3, r))
    half = 0.5 * float(shape.size[1])
    if shape.kind == "cylinder":
        # The rim (r, half) on x^2/a^2 + z^2/c^2 = 1 with a^2 c smallest shares the one as 2/3 and 1/3.
        return _axes(np.array([np.sqrt(1.5) * r, np.sqrt(1.5) * r, np.sqrt(3.0) * half]))
    # A ball at +-half touches from inside where r^2/a^2 + half^2/(c^2 - a^2) = 1; a^4 c^2 is smallest at this a^2.
    wider = half * (np.sqrt(half**2 + 3.0 * r**2) - half) / 3.0
    across = r**2 + wider
    along = across * (1.0 + half**2 / wider)
    return _axes(np.sqrt([across, across, along]))


def _axes(semi_axes: Array) -> Array:
    return np.diag([*(-1.0 / semi_axes**2), 1.0])
