"""Size of the links of a robot: from their shapes where the file has them, else from the joints around them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.robot.extent import joined_boxes
from dynid.robot.model import Robot

__all__ = ["LinkSize", "link_sizes"]

Array = NDArray[np.float64]

_LENGTH = 0.3  # m, of a link of a robot whose joints are all in one place
_COINCIDENT = 1e-6  # distance of joints in one place, over the mean length of links


@dataclass(frozen=True, eq=False)
class LinkSize:
    """Space of a link.

    Attributes
    ----------
    box : ndarray, shape (2, 3)
        Corners (m) of the box around the shapes of the link and its joints, in the link frame.
    half : float
        Half the diagonal (m) of that box. Without shapes, the longest link next to this one and the mean length of all
        links are added: a joint frame may lie anywhere on its axis.
    volume : float
        Volume (m3) of the box around the shapes alone; without shapes, that of a cube with half the diagonal `half`.
    shaped : bool
        Whether the link has shapes.
    between_joints : bool
        Whether it is only the place between the joints of a compound joint, which needs no mass.
    """

    box: Array
    half: float
    volume: float
    shaped: bool
    between_joints: bool

    def outside(self, point: Array) -> float:
        """Distance (m) of a point from the box; 0 inside."""
        return float(np.linalg.norm(np.maximum(np.maximum(self.box[0] - point, point - self.box[1]), 0.0)))


def link_sizes(robot: Robot) -> dict[str, LinkSize]:
    """Size of every link, by name."""
    boxes = [_joint_box(robot, i) for i in range(len(robot.links))]
    lengths = np.array([float(np.linalg.norm(box[1] - box[0])) for box in boxes])
    typical = float(np.mean(lengths[lengths > 0])) if np.any(lengths > 0) else _LENGTH
    carrying = {joint.parent for joint in robot.joints}
    out = {}
    for i, link in enumerate(robot.links):
        between = i in carrying and lengths[i] < _COINCIDENT * typical
        if link.extent is not None:
            box = joined_boxes((boxes[i], link.extent))
            assert box is not None
            volume = float(np.prod(link.extent[1] - link.extent[0]))
            out[link.name] = LinkSize(box, 0.5 * float(np.linalg.norm(box[1] - box[0])), volume, True, between)
            continue
        beside = [lengths[k + 1] for k, joint in enumerate(robot.joints) if joint.parent == i]
        beside += [lengths[robot.joints[i - 1].parent]] if i else []
        half = 0.5 * lengths[i] + max(beside, default=0.0) + typical
        out[link.name] = LinkSize(boxes[i], float(half), float((2 * half / np.sqrt(3)) ** 3), False, between)
    return out


def _joint_box(robot: Robot, link: int) -> Array:
    """Box (2, 3) around the joint that moves a link and the joints on it."""
    points = [joint.placement[:3, 3] for joint in robot.joints if joint.parent == link]
    if link:
        mount = robot.joints[link - 1].mount
        points.append(-mount[:3, :3].T @ mount[:3, 3])
    return np.array([np.min(points, axis=0), np.max(points, axis=0)]) if points else np.zeros((2, 3))
