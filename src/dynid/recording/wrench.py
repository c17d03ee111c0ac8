"""Where a wrench is measured: the frame of the sensor, and the axes in which the wrench is expressed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, UnknownName
from dynid.robot.parts import checked_placement

__all__ = ["Axes", "WrenchSensor"]

Array = NDArray[np.float64]
Axes = Literal["sensor", "world", "base"]


@dataclass(frozen=True, eq=False)
class WrenchSensor:
    """A sensor of the wrench (force in N, then moment in N m) that the surroundings exert on the robot.

    Attributes
    ----------
    frame : str
        What the sensor is fixed to: a link or named frame of the robot, "base", or "world" for a force plate.
    axes : {"sensor", "world", "base"}
        Axes in which the wrench is expressed.
    placement : ndarray (4, 4)
        Placement of the sensor in that frame; moments are about its origin.
    link : str or None
        The link on which the wrench acts. It is needed only for sensors fixed to the world, and only if joint torques
        are measured too.

    Raises
    ------
    DataError
        If the axes are unknown or the placement is not a rigid transform.

    Examples
    --------
    >>> from dynid.recording import WrenchSensor
    >>> WrenchSensor("world", link="left_foot").axes
    'sensor'
    """

    frame: str
    axes: Axes = "sensor"
    placement: Array = field(default_factory=lambda: np.eye(4))
    link: str | None = None

    def __post_init__(self) -> None:
        if self.axes not in get_args(Axes):
            raise UnknownName(f"axes '{self.axes}' of a wrench are unknown: use {', '.join(get_args(Axes))}", "axes")
        where = checked_placement(self.placement, f"placement of the wrench sensor on '{self.frame}'", DataError)
        object.__setattr__(self, "placement", where)
