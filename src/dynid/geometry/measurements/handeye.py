"""A sensor and a target, one on the robot and the other standing still: what poses and images of boards share.

    X = B F(q) M

with the robot's base B in the frame of what stands still, and M on the robot. X is the target in a sensor that stands
still (eye to hand), or the sensor in a target that stands still (eye in hand).

Source: Zhuang, Roth and Sudhakar, Simultaneous robot/world and tool/flange calibration by solving homogeneous
transformation equations of the form AX = YB (1994).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import TooFew
from dynid.geometry.measurements.measurement import Measurement, Part, Space, free_placement, placement_of
from dynid.geometry.measurements.starts import hand_eye
from dynid.geometry.tangents import Placed
from dynid.robot.spatial import inverse_placement

__all__ = ["HandEye"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HandEye(Measurement):
    """A sensor that sees a target, one of them on the robot.

    Attributes
    ----------
    in_hand : bool
        Whether the sensor is on the robot and the target stands still; the other way round by default.
    base : ndarray, shape (4, 4), optional
        The robot's base in the frame of what stands still; unknown if not given.
    base_std : tuple of float
        Its standard deviations: position (m) and direction (rad).
    mount : ndarray, shape (4, 4), optional
        What is on the robot, in the measured frame; unknown if not given.
    mount_std : tuple of float
        Its standard deviations: position (m) and direction (rad).
    """

    in_hand: bool = False
    base: Array | None = None
    base_std: tuple[float, float] = (np.inf, np.inf)
    mount: Array | None = None
    mount_std: tuple[float, float] = (np.inf, np.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "base", placement_of(self.base, "base"))
        object.__setattr__(self, "mount", placement_of(self.mount, "mount"))

    def parts(self) -> tuple[Part, ...]:
        """The base, and what is mounted on the robot."""
        base = np.eye(4) if self.base is None else self.base
        mount = np.eye(4) if self.mount is None else self.mount
        return (
            free_placement("base", base, np.repeat(self.base_std, 3)),
            free_placement("mount", mount, np.repeat(self.mount_std, 3)),
        )

    def sensed(self, space: Space) -> Placed:
        """The target in the sensor, for every posture."""
        found = space.placement("base").then(space.frames[self.frame]).then(space.placement("mount"))
        return found.inverse() if self.in_hand else found

    def placed(self, frames: Mapping[str, Placed], poses: Array) -> Self:
        """The measurement with starts of base and mount from poses (N, 4, 4) of the target in the sensor."""
        if self.base is not None and self.mount is not None:
            return self
        seen = np.isfinite(poses).all((1, 2))
        if not seen.any():
            raise TooFew(f"{self.name} saw its target in no posture")
        frame, found = frames[self.frame], poses[seen]
        if self.in_hand:
            found = np.array([inverse_placement(x) for x in found])
        base, mount = hand_eye(frame.rotation[seen], frame.origin[seen], found, self.base, self.mount)
        return replace(self, base=base, mount=mount)
