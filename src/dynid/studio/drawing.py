"""A robot as simple solids: bars between its joints, and the ellipsoid of equal inertia of every link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.collision import Collision, LinkShape
from dynid.robot.inertia import inertia_to_com, inertia_violations
from dynid.robot.model import Robot
from dynid.robot.posture import link_placements

__all__ = ["Bar", "Ellipsoid", "bars", "closest_pairs", "ellipsoid_corners", "ellipsoids", "frame", "poses", "reach"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bar:
    """A rod of a link from its own joint to where another one sits, in the link's frame; `rotation` has z along it."""

    link: int
    start: Array
    end: Array

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.end - self.start))

    @property
    def rotation(self) -> Array:
        z = (self.end - self.start) / self.length
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
        return np.column_stack([x, np.cross(z, x), z])


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The even solid with a link's mass, centre and inertia, in the link's frame."""

    link: int
    centre: Array
    rotation: Array
    semi_axes: Array


def bars(robot: Robot) -> list[Bar]:
    """Rods from the joint of every link to the joints that it carries, and past the centre of mass of a last link."""
    out = []
    for i, link in enumerate(robot.links):
        # A frame by standard DH parameters lies at the far end of its link.
        start = np.zeros(3) if i == 0 else np.linalg.inv(robot.joints[i - 1].mount)[:3, 3]
        ends = [j.placement[:3, 3] for j in robot.joints if j.parent == i]
        if not ends and link.inertia[0] > 0:
            ends = [2 * link.inertia[1:4] / link.inertia[0] - start]
        out += [
            Bar(i, np.asarray(start, dtype=float), np.asarray(end))
            for end in ends
            if np.linalg.norm(end - start) > 1e-4
        ]
    return out


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


def poses(robot: Robot, q: Array) -> Array:
    """Placements (links, 4, 4) at a posture; a floating base's first."""
    joints = q[-robot.n :]
    placed = link_placements(robot, dict(zip(robot.coordinates, map(float, joints), strict=True)))
    if robot.base == "floating" and len(q) == robot.nq:
        from scipy.spatial.transform import Rotation

        world = np.eye(4)
        world[:3, :3], world[:3, 3] = Rotation.from_quat(q[3:7]).as_matrix(), q[:3]
        placed = world @ placed
    return placed


def closest_pairs(robot: Robot, q: Array, thickness: float) -> tuple[Array, list[tuple[str, str]]]:
    """Smallest distance (N,) between drawn bars of links that are not neighbours, and of which two."""
    shapes = [LinkShape.capsule(robot.links[b.link].name, b.start, b.end, thickness) for b in bars(robot)]
    collision = Collision(robot, distance=0.0, shapes=shapes)
    distances = collision.distances(q[:, -robot.n :])
    nearest = np.argmin(distances, axis=1)
    return distances.min(axis=1), [collision.pairs[k] for k in nearest]
