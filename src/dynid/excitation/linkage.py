"""Clearance: passive joints of closed loops stay within their limits and away from singular postures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.assembly import assemble, assembly_where_closed
from dynid.errors import NotApplicable
from dynid.robot.model import Robot

__all__ = ["PassiveJoints", "with_passive_joints"]

Array = NDArray[np.float64]

_LEAST = 0.2  # smallest margin to a singular posture, relative to that of the assembled posture
_STEP = 1e-6  # rad, m and their rates, of central differences


class PassiveJoints:
    """Clearance of a robot with closed loops.

    Per sample: the margin to a singular posture, then per passive joint the distances to its lower and upper limit over
    half its range, and the distance to its velocity limit. -1 where the loops cannot close.

    Parameters
    ----------
    robot : Robot
        A robot with closed loops.
    least : float
        Smallest margin to a singular posture, relative to that of the assembled posture.

    Raises
    ------
    DataError
        If the robot has no closed loops.
    """

    moving = True

    def __init__(self, robot: Robot, *, least: float = _LEAST) -> None:
        if not robot.loops:
            raise NotApplicable(f"robot '{robot.name}' has no closed loops")
        self.robot, self.label = robot.with_base("fixed"), "closed loops"
        limits = [robot.tree.limits[name] for name in robot.passive]
        self._columns = [robot.tree_coordinates.index(name) for name in robot.passive]
        self._lower, self._upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
        self._velocity = np.array([x.velocity for x in limits])
        width = self._upper - self._lower
        self._half = np.where(np.isfinite(width), 0.5 * width, 1.0)
        home = float(assemble(self.robot, self.robot.home[None]).margin[0])
        self._least, self._room = least * home, (1.0 - least) * home

    def values(self, q: Array) -> Array:
        """Values (N, 1 + 3 passive joints) at rest."""
        return self.values_in_motion(q, np.zeros_like(q), np.zeros_like(q))

    def values_in_motion(self, q: Array, v: Array, a: Array) -> Array:
        """Values (N, 1 + 3 passive joints) along a motion; 1 where there is no limit."""
        x, closed = assembly_where_closed(self.robot, q, v, a)
        own, rates = x.q[:, self._columns], x.v[:, self._columns]
        sides = [(own - self._lower) / self._half, (self._upper - own) / self._half]
        sides.append(1.0 - np.abs(rates) / self._velocity)
        out = np.hstack([((x.margin - self._least) / self._room)[:, None], *sides])
        return np.where(closed[:, None], np.where(np.isfinite(out), out, 1.0), -1.0)

    def gradients(self, q: Array, which: NDArray[np.intp]) -> Array:
        """Derivative (N, n) of value `which` (N,) at each posture."""
        return self.gradients_in_motion(q, np.zeros_like(q), np.zeros_like(q), which)[0]

    def gradients_in_motion(self, q: Array, v: Array, a: Array, which: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Derivatives (N, n) of value `which` (N,) over q, v and a, by central differences."""
        out = np.zeros((3, len(q), self.robot.n))
        rows = np.arange(len(q))
        for j in range(self.robot.n):
            step = _STEP * np.eye(self.robot.n)[j]
            for order, (up, down) in enumerate((((q + step, v), (q - step, v)), ((q, v + step), (q, v - step)))):
                change = self.values_in_motion(*up, a) - self.values_in_motion(*down, a)
                out[order, :, j] = change[rows, which] / (2 * _STEP)
        return out[0], out[1], out[2]


def with_passive_joints(robot: Robot, clearances: Sequence[Any]) -> tuple[Any, ...]:
    """The clearances, and that of the closed loops of a robot that has loops, unless it is among them."""
    if not robot.loops or any(isinstance(c, PassiveJoints) for c in clearances):
        return tuple(clearances)
    return (PassiveJoints(robot), *clearances)
