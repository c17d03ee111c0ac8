"""The ellipsoid of equal inertia of every link, and the space that a robot takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.collision import Collision, LinkShape
from dynid.robot.inertia import inertia_to_com, inertia_violations
from dynid.robot.model import Robot
from dynid.robot.skeleton import bars, poses

__all__ = ["Ellipsoid", "closest_pairs", "ellipsoid_corners", "ellipsoids", "frame", "reach"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The even solid with a link's mass, centre and inertia, in the link's frame."""

    link: int
    centre: Array
    rotation: Array
    semi_axes: Array


def ellipsoids(robot: Robot) -> list[Ellipsoid]:
    """Ellipsoids of equal inertia of the links that a body can have."""
    out = []
    for i, link in enumerate(robot.links):
        if link.inertia[0] <= 0 or inertia_violations(link.inertia):
            continue
        mass, centre, tensor = inertia_to_com(link.inertia)
        moments, axes = np.linalg.eigh(tensor)
        squares = 2.5 * (moments.sum() - 2 * moments) / mass
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        out.append(Ellipsoid(i, centre, axes, np.sqrt(np.maximum(squares, 1e-8))))
    return out


def ellipsoid_corners(robot: Robot) -> dict[int, Array]:
    """Corners (8, 3) of the boxes around the ellipsoids, by the index of their link."""
    signs = np.array(list(product((-1.0, 1.0), repeat=3)))
    return {e.link: e.centre + (signs * e.semi_axes) @ e.rotation.T for e in ellipsoids(robot)}


def reach(robot: Robot) -> float:
    """A length of the robot's size, m, for cameras and thicknesses."""
    lengths = [np.linalg.norm(place[:3, 3]) for j in robot.joints for place in (j.placement, j.mount)]
    return float(max(sum(lengths), 0.1))


def frame(robot: Robot, corners: Mapping[int, Array] | None = None) -> tuple[Array, float]:
    """Centre (3,) and radius (m) of a ball around the robot with its joints at zero.

    `corners` holds points (N, 3) of shapes by the index of their link.
    """
    placed = poses(robot, np.zeros(robot.n))
    points = [placed[:, :3, 3]]
    local = [(b.link, np.array([b.start, b.end])) for b in bars(robot)] + list((corners or {}).items())
    points += [x @ placed[i, :3, :3].T + placed[i, :3, 3] for i, x in local]
    every = np.vstack(points)
    low, high = every.min(axis=0), every.max(axis=0)
    return 0.5 * (low + high), max(0.5 * float(np.linalg.norm(high - low)), 0.05)


def closest_pairs(robot: Robot, q: Array, thickness: float) -> tuple[Array, list[tuple[str, str]]]:
    """Smallest distance (N,) between drawn bars of links that are not neighbours, and of which two."""
    shapes = [LinkShape.capsule(robot.links[b.link].name, b.start, b.end, thickness) for b in bars(robot)]
    collision = Collision(robot, distance=0.0, shapes=shapes)
    distances = collision.distances(q[:, -robot.n :])
    nearest = np.argmin(distances, axis=1)
    return distances.min(axis=1), [collision.pairs[k] for k in nearest]
