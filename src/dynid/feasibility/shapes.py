"""Ellipsoids around collision shapes, for the constraint `Ellipsoids`: the mass of a link lies inside its shape.

Boxes, cylinders, spheres and capsules have their smallest ellipsoid in closed form; that of a mesh is found by
Khachiyan's algorithm. Collision shapes enclose their links, so that the mass of a link is inside.

Source: Todd and Yildirim, On Khachiyan's Algorithm for the Computation of Minimum-Volume Enclosing Ellipsoids (2007);
Wensing, Kim and Slotine (2018), for ellipsoids that bound the mass of a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from dynid.errors import DataError, InvalidShape, InvalidValue, ModelError
from dynid.robot.collision import CollisionShape, collision_shapes
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement

__all__ = ["bounding_ellipsoids", "enclosing_ellipsoid", "moved_ellipsoid"]

Array = NDArray[np.float64]

# Relative accuracy of the volume of the ellipsoid of a mesh; all points are inside in any case.
_TOLERANCE = 1e-4
_ITERATIONS = 10_000


def bounding_ellipsoids(
    path: str | Path, robot: Robot, *, packages: Sequence[str | Path] = ()
) -> dict[str, list[Array]]:
    """Smallest ellipsoid around each collision shape of a URDF file.

    Parameters
    ----------
    path : str or Path
        URDF file.
    robot : Robot
        Robot that was loaded from it.
    packages : sequence of str or Path
        Folders in which meshes named `package://NAME/...` are searched, in addition to the parent folders of the file.

    Returns
    -------
    dict of str to list of ndarray
        Per link, matrices Q (4, 4) with [x; 1]' Q [x; 1] >= 0 inside, in the link frame (m). Shapes of links on fixed
        joints belong to the link that carries them; links without shapes are left out.

    Raises
    ------
    ModelError
        For shapes that are unknown, meshes that cannot be read, and links that the robot does not have.
    """
    out: dict[str, list[Array]] = {}
    for shape in collision_shapes(path, robot, packages):
        moved = moved_ellipsoid(_ellipsoid(shape), shape.placement)
        out.setdefault(robot.links[shape.link].name, []).append(moved)
    return out


def moved_ellipsoid(matrix: ArrayLike, h: ArrayLike) -> Array:
    """An ellipsoid Q (4, 4) expressed in the frame in which its own frame has placement `h` (4, 4)."""
    back = inverse_placement(np.asarray(h, dtype=float))
    return np.asarray(back.T @ np.asarray(matrix, dtype=float) @ back)


def enclosing_ellipsoid(points: ArrayLike, *, tolerance: float = _TOLERANCE) -> Array:
    """Ellipsoid of smallest volume around points (n, 3), as Q (4, 4), by Khachiyan's algorithm with away steps.

    Weights u on the points [x; 1] are changed until all points with positive weight have the same, largest
    [x; 1]' X^-1 [x; 1], where X is the sum of u [x; 1][x; 1]' (Todd and Yildirim 2007).
    """
    given = np.asarray(points, dtype=float)
    if given.ndim != 2 or given.shape[1] != 3 or not np.all(np.isfinite(given)):
        raise InvalidShape(f"points to enclose need shape (n, 3) and finite values, got {given.shape}", "points")
    try:
        corners = given[spatial.ConvexHull(given).vertices]
    except (spatial.QhullError, ValueError):
        raise InvalidValue("points to enclose do not span a volume", "points") from None
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
    # Slightly more than the largest: points on the boundary stay inside after rounding.
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
        # Affine image of the ball around a cube: half edges times the square root of three.
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
    """Q (4, 4) of an ellipsoid with given semi-axes."""
    return np.diag([*(-1.0 / semi_axes**2), 1.0])
