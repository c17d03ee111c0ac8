"""Drive terms on shafts that move with several joints: tendons, and mimic joints that have a spring."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynid.robot.drives import DriveTerm
from dynid.robot.model import Robot

__all__ = ["shaft_direction", "shaft_term"]

Array = NDArray[np.float64]


def shaft_direction(robot: Robot, weights: Mapping[str, float]) -> tuple[Array, float]:
    """Direction over the coordinates of a robot, and constant part, of a weighted sum over positions of its joints."""
    direction, constant = np.zeros(robot.n), 0.0
    for joint in robot.joints:
        weight = weights.get(joint.name, 0.0)
        leader, ratio, offset = (
            (joint.name, 1.0, 0.0)
            if joint.mimic is None
            else (joint.mimic.leader, joint.mimic.ratio, joint.mimic.offset)
        )
        direction[robot.coordinates.index(leader)] += weight * ratio
        constant += weight * offset
    return direction, constant


def shaft_term(
    robot: Robot, symbol: str, name: str, weights: Mapping[str, float], value: float, rest: float = 0.0
) -> DriveTerm:
    """A drive term on the shaft `name` whose position is the weighted sum over positions of joints."""
    direction, constant = shaft_direction(robot, weights)
    owner = int(np.flatnonzero(direction)[0])
    return DriveTerm(symbol, name, direction, owner, value, rest=rest - constant if symbol == "k" else 0.0)
