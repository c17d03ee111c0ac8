"""A robot as simple solids: bars between its joints, and the ellipsoid of equal inertia of every link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.collision import Collision, LinkShape
from dynid.robot.inertia import inertia_to_com, inertia_violations
from dynid.robot.model import Robot
from dynid.robot.posture import link_placements

__all__ = ["Bar", "Ellipsoid", "bars", "closest_pairs", "ellipsoids", "poses", "reach"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bar:
    """A rod of a link from its frame to where a joint sits, in the link's frame; `rotation` has z along it."""

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
    """Rods from every link's frame to the joints that it carries, and to the centre of mass of a last link."""
    out = []
    for i, link in enumerate(robot.links):
        ends = [j.placement[:3, 3] for j in robot.joints if j.parent == i]
        if not ends and link.inertia[0] > 0:
            ends = [2 * link.inertia[1:4] / link.inertia[0]]
        out += [Bar(i, np.zeros(3), np.asarray(end)) for end in ends if np.linalg.norm(end) > 1e-4]
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


def reach(robot: Robot) -> float:
    """A length of the robot's size, m, for cameras and thicknesses."""
    lengths = [np.linalg.norm(j.placement[:3, 3]) for j in robot.joints]
    return float(max(sum(lengths), 0.1))


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
