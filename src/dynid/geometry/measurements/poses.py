"""Full poses of something on the robot in a tracker or camera, or of something fixed in a camera on the robot.

    p_X - p_Y = 0,    log(R_X R_Y') = 0,    with the predicted pose X = B F(q) M, or its inverse, and the measured Y

Source: Zhuang, Roth and Sudhakar, Simultaneous robot/world and tool/flange calibration by solving homogeneous
transformation equations of the form AX = YB (1994); derivative of the logarithm: Chirikjian, Stochastic Models,
Information Theory, and Lie Groups 2 (2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, InvalidValue
from dynid.geometry.measurements.handeye import HandEye
from dynid.geometry.measurements.measurement import Space, proper
from dynid.geometry.measurements.starts import nearest_rotation
from dynid.geometry.tangents import Placed, Tangent, left_jacobian, rotation_vector

__all__ = ["Poses"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Poses(HandEye):
    """Poses of a target in a sensor, one of them on the robot.

    Attributes
    ----------
    poses : ndarray, shape (N, 4, 4)
        Measured poses of the target in the sensor, not numbers where it was not seen.
    noise : tuple of float
        Standard deviations of each coordinate of the position (m) and of the direction (rad).
    """

    poses: Array = ()  # type: ignore[assignment]
    noise: tuple[float, float] = (5e-4, 2e-3)

    kind: ClassVar[str] = "poses"
    about: ClassVar[str] = "full poses of a target in a tracker or camera, either of them on the robot"
    rows: ClassVar[tuple[str, ...]] = ("poses",)

    def __post_init__(self) -> None:
        super().__post_init__()
        poses = np.array(self.poses, dtype=float)
        if poses.shape != (len(self.q), 4, 4):
            raise InvalidShape(f"poses must have shape ({len(self.q)}, 4, 4), got {poses.shape}", "poses")
        seen = np.isfinite(poses.reshape(len(poses), 16)).all(1)
        wrong = np.flatnonzero(seen)[~proper(poses[seen])]
        if len(wrong):
            raise InvalidValue(f"pose {wrong[0]} is no placement: its upper left part is no rotation", "poses")
        poses[~seen] = np.nan
        poses[seen, :3, :3] = nearest_rotation(poses[seen, :3, :3])
        object.__setattr__(self, "poses", poses)

    @property
    def std(self) -> Array:
        """The noise of three coordinates and of three turns."""
        return np.repeat(self.noise, 3)

    def residual(self, space: Space) -> Tangent:
        """Differences of position, then rotation vectors from the measured to the predicted direction."""
        found = self.sensed(space)
        seen = np.atleast_1d(np.isfinite(self.poses).all((1, 2)))
        measured = np.where(seen[:, None, None], self.poses[:, :3, :3], found.rotation)
        away = rotation_vector(found.rotation @ np.swapaxes(measured, 1, 2))
        turned = np.where(seen[:, None], away, np.nan)
        value = np.concatenate([found.origin - self.poses[:, :3, 3], turned], axis=1)
        slope = np.concatenate([found.shift, np.linalg.solve(left_jacobian(away), found.turn)], axis=1)
        return Tangent(value, slope)

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Base and mount that are unknown, found from the poses."""
        return self.placed(frames, self.poses)

    def distances(self, residual: Array) -> Array:
        """Distance of the positions alone."""
        return super().distances(residual[:, :3])
