"""What a camera or tracker sees of a robot: a cone in front of it, a distance, and the side that faces it.

    cos(opening) |m - c| <= a . (m - c),    near <= |m - c| <= far,    cos(facing) |m - c| <= n . (c - m)

with the camera c that looks along a, the marker m on the robot and the normal n of a board.

Source: own derivation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, InvalidValue
from dynid.robot.parts import checked

__all__ = ["Sight"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sight:
    """Postures in which a point of the robot, or the face of a board on it, is seen.

    Attributes
    ----------
    position : array, shape (3,)
        Where the camera or tracker stands, in the base of the robot (m).
    direction : array, shape (3,)
        Where it looks, in the base.
    opening : float
        Half the angle of its cone (rad).
    nearest, farthest : float
        Distances at which it sees (m).
    point : array, shape (3,)
        The point in the measured frame (m).
    normal : array, shape (3,), optional
        Direction of the measured frame that has to face the camera: the normal of a board, the front of a marker.
    facing : float
        Largest angle between this normal and the direction to the camera (rad).

    Examples
    --------
    >>> import numpy as np
    >>> from dynid.geometry import Sight
    >>> seen = Sight(position=(2, 0, 1), direction=(-1, 0, 0), opening=0.5)
    >>> seen(np.zeros((1, 6)), np.eye(4)[None])
    array([ True])
    """

    position: ArrayLike
    direction: ArrayLike
    opening: float
    nearest: float = 0.0
    farthest: float = np.inf
    point: ArrayLike = (0.0, 0.0, 0.0)
    normal: ArrayLike | None = None
    facing: float = np.pi / 3

    def __post_init__(self) -> None:
        for name in ("position", "direction", "point", *(("normal",) if self.normal is not None else ())):
            value = checked(getattr(self, name), (3,), f"{name} of a sight", DataError)
            if name in ("direction", "normal"):
                if not np.any(value):
                    raise InvalidValue(f"the {name} of a sight has no length", name)
                value = value / np.linalg.norm(value)
            object.__setattr__(self, name, value)
        for name in ("opening", "facing"):
            if not 0 < getattr(self, name) <= np.pi:
                raise InvalidValue(f"the {name} angle is {getattr(self, name)}: use 0 to pi", name)
        if not 0 <= self.nearest < self.farthest:
            raise InvalidValue("the nearest distance must be zero or more, and below the farthest", "nearest")

    def __call__(self, q: Array, placement: Array) -> NDArray[np.bool_]:
        """Whether each posture is seen, by the placement (N, 4, 4) of the measured frame in the base."""
        away = placement[:, :3, 3] + placement[:, :3, :3] @ np.asarray(self.point) - np.asarray(self.position)
        distance = np.linalg.norm(away, axis=1)
        seen = (away @ np.asarray(self.direction) >= np.cos(self.opening) * distance) & (distance >= self.nearest)
        seen &= distance <= self.farthest
        if self.normal is not None:
            front = placement[:, :3, :3] @ np.asarray(self.normal)
            seen &= -np.einsum("ni,ni->n", front, away) >= np.cos(self.facing) * distance
        return np.asarray(seen)
