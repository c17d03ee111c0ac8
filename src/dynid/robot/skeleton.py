"""A robot as bars between its joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.robot.model import Robot
from dynid.robot.posture import link_placements

__all__ = ["Bar", "bars", "poses"]

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
