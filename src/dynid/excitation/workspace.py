"""Clearance: a point of the robot stays in a box of the base frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch
from dynid.dynamics.frames import frame_jacobian, frame_placement
from dynid.errors import DataError, InvalidShape, InvalidValue, MissingArgument, NotApplicable
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["KeepIn"]

Array = NDArray[np.float64]

# Half width (m) of an axis with a bound on one side only.
_OPEN = 0.5


class KeepIn:
    """Clearance: a point of a link or named frame stays in a box of the base frame.

    Six values per posture: the distances to the lower and then to the upper sides over half the width of the box, 1 in
    its middle.

    Parameters
    ----------
    robot : Robot
        Robot whose base does not float.
    frame : str
        Link or named frame.
    point : array, shape (3,)
        Point in that frame, m.
    lower, upper : array, shape (3,)
        Sides of the box in the base frame, m; infinite where there is none.
    label : str, optional
        Name of the limit.
    """

    def __init__(
        self,
        robot: Robot,
        frame: str,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        lower: ArrayLike = (-np.inf,) * 3,
        upper: ArrayLike = (np.inf,) * 3,
        label: str | None = None,
    ) -> None:
        if robot.base == "floating":
            raise NotApplicable("a box needs a robot with a fixed base; fix the base first")
        self.robot, self.frame, self.label = robot, frame, label or f"box of '{frame}'"
        self.point = checked(point, (3,), f"point of '{frame}'", DataError)
        self.lower, self.upper = np.array(lower, dtype=float), np.array(upper, dtype=float)
        for what, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound.shape != (3,) or np.any(np.isnan(bound)):
                raise InvalidShape(f"the {what} bounds of '{frame}' need three numbers, got {bound.tolist()}")
        empty = np.flatnonzero(self.lower >= self.upper)
        if empty.size:
            raise InvalidValue(f"the box of '{frame}' is empty along {'xyz'[empty[0]]}", "lower")
        if not np.any(np.isfinite([self.lower, self.upper])):
            raise MissingArgument(f"the box of '{frame}' has no bound: give lower or upper", "lower")
        frame_placement(robot, np.zeros(robot.n), frame)
        width = self.upper - self.lower
        self._half = np.where(np.isfinite(width), 0.5 * width, _OPEN)

    def values(self, q: Array) -> Array:
        """Distance to the six sides (N, 6) over half the width; 1 for a side without a bound."""
        h = frame_placement(self.robot, np.atleast_2d(q), self.frame)
        at = h[:, :3, 3] + h[:, :3, :3] @ self.point
        sides = np.concatenate([(at - self.lower) / self._half, (self.upper - at) / self._half], axis=1)
        return np.where(np.isfinite(sides), sides, 1.0)

    def gradients(self, q: Array, which: NDArray[np.intp]) -> Array:
        """Derivative (N, n) of value `which` (N,) at each posture."""
        (q,), samples, _ = as_batch(self.robot, q=q)
        which = np.asarray(which)
        jacobian = frame_jacobian(self.robot, q, self.frame)
        arm = frame_placement(self.robot, q, self.frame)[:, :3, :3] @ self.point
        slope = jacobian[:, :3] + np.cross(jacobian[:, 3:], arm[:, :, None], axis=1)
        axis, sign = which % 3, np.where(which < 3, 1.0, -1.0)
        bound = np.concatenate([self.lower, self.upper])[which]
        factor = np.where(np.isfinite(bound), sign / self._half[axis], 0.0)
        return np.asarray(factor[:, None] * slope[np.arange(samples), axis])
