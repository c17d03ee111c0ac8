"""Where a wrench is measured: the frame its moment is about, and the axes it is written in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.robot.parts import checked_placement

__all__ = ["Axes", "WrenchSensor"]

Array = NDArray[np.float64]
Axes = Literal["sensor", "world", "base"]


@dataclass(frozen=True, eq=False)
class WrenchSensor:
    """A sensor of the wrench (force, then moment) that the surroundings exert on the robot.

    frame: what it is fixed to: a link or named frame of the robot, "base", or "world" as a force plate is.
    placement: 4x4 of the sensor in that frame; its origin is the point that moments are about. axes: those the numbers
    are written in, the sensor's own, the world's or the base's. link: the link that the wrench acts on; only sensors
    fixed to the world need it, and only where joint torques are measured too.
    """

    frame: str
    axes: Axes = "sensor"
    placement: Array = field(default_factory=lambda: np.eye(4))
    link: str | None = None

    def __post_init__(self) -> None:
        if self.axes not in get_args(Axes):
            raise DataError(f"axes '{self.axes}' of a wrench are unknown: use {', '.join(get_args(Axes))}")
        where = checked_placement(self.placement, f"placement of the wrench sensor on '{self.frame}'", DataError)
        object.__setattr__(self, "placement", where)
