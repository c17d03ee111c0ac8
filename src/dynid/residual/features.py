"""Features of a motion, the inputs of the Gaussian processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue
from dynid.robot.model import Robot

__all__ = ["Features", "fit_features"]

Array = NDArray[np.float64]

# Share of a joint's rms velocity that is the scale of its smooth direction of motion, tanh(v / velocity_scale).
_DIRECTION_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class Features:
    """Features x (N, d) of a motion, each centred and scaled.

    The columns are all positions, velocities, accelerations and directions of motion tanh(v / velocity_scale).

    Attributes
    ----------
    periodic : array of bool, shape (n,)
        Joints whose position enters with two columns, sine and cosine.
    velocity_scale : array, shape (n,)
        Velocity in rad/s or m/s at which the direction of motion reaches tanh(1).
    center, scale : array, shape (d,)
        A column x is (raw value - center) / scale.
    low, high : array, shape (d,)
        Range of the training data, scaled.
    """

    periodic: NDArray[np.bool_]
    velocity_scale: Array
    center: Array
    scale: Array
    low: Array
    high: Array

    @property
    def n(self) -> int:
        """Number of joint coordinates."""
        return len(self.velocity_scale)

    @property
    def count(self) -> int:
        """Number of columns d."""
        return len(self.center)

    @property
    def positions(self) -> tuple[tuple[int, ...], ...]:
        """Columns of every joint's position."""
        starts = np.cumsum([0, *(1 + self.periodic.astype(int))])
        return tuple(tuple(range(starts[j], starts[j + 1])) for j in range(self.n))

    def velocities(self, joint: int) -> tuple[int, ...]:
        """Columns of one joint's velocity and direction of motion."""
        first = self.count - 3 * self.n
        return first + joint, first + 2 * self.n + joint

    def own(self, joint: int) -> tuple[int, ...]:
        """Columns of one joint's position, velocity and direction of motion."""
        return (*self.positions[joint], *self.velocities(joint))

    def load(self, joint: int) -> tuple[int, ...]:
        """Columns of all positions, and of one joint's velocity and direction of motion."""
        return (*(column for columns in self.positions for column in columns), *self.velocities(joint))

    @property
    def motion(self) -> tuple[int, ...]:
        """Columns of all joints' positions, velocities and accelerations."""
        return tuple(range(self.count - self.n))

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        """Features x (N, d) of a motion q, v, a (N, n)."""
        return (_raw(self.periodic, self.velocity_scale, q, v, a) - self.center) / self.scale

    def edges(self, columns: Iterable[int], reach: float) -> Array:
        """Reciprocal distance (d,) beyond its range at which a column ends all trust in the learned part.

        Only the positions among `columns` count; the others are 0. The distance is `reach` times the range of the
        training data, whatever the length scales: gravity load, cables and gears differ at other positions.
        """
        out = np.zeros(self.count)
        for c in columns:
            if c < self.count - 3 * self.n:
                # A column that was constant in the training data gets a range of one unit.
                out[c] = 1.0 / (reach * max(self.high[c] - self.low[c], 1.0))
        return out

    def inside(self, x: Array, edges: Array) -> Array:
        """Trust (N,) from the range of the training data: 1 within it, falling to 0 at the `edges` (d,)."""
        beyond = np.maximum(np.maximum(self.low - x, x - self.high), 0.0) * edges
        return np.asarray(np.clip(1.0 - beyond.max(axis=1), 0.0, 1.0))


def fit_features(robot: Robot, q: Array, v: Array, a: Array, periodic: bool | str = "auto") -> Features:
    """Features scaled to a motion q, v, a (N, n).

    With `periodic`, positions of revolute joints enter as sine and cosine; "auto" does so for joints whose range of
    motion exceeds half a revolution.
    """
    kind = {joint.name: joint.kind for joint in robot.joints}
    revolute = np.array([kind[name] == "revolute" for name in robot.coordinates])
    if periodic == "auto":
        turning = revolute & (np.ptp(q, axis=0) > np.pi)
    elif isinstance(periodic, bool):
        turning = revolute & periodic
    else:
        raise InvalidValue(f"periodic must be true, false or 'auto', got {periodic!r}", "periodic")
    rms = np.sqrt(np.mean(v**2, axis=0))
    velocity_scale = np.where(rms > 0, _DIRECTION_SHARE * rms, 1.0)
    raw = _raw(turning, velocity_scale, q, v, a)
    std = raw.std(axis=0)
    # A constant column is scaled by its SI unit, so that a query at another value counts as far from the data.
    center, scale = raw.mean(axis=0), np.where(std > 1e-9, std, 1.0)
    x = (raw - center) / scale
    return Features(turning, velocity_scale, center, scale, x.min(axis=0), x.max(axis=0))


def _raw(periodic: NDArray[np.bool_], velocity_scale: Array, q: Array, v: Array, a: Array) -> Array:
    places = [np.column_stack([np.sin(x), np.cos(x)]) if p else x[:, None] for x, p in zip(q.T, periodic, strict=True)]
    return np.column_stack([*places, v, a, np.tanh(v / velocity_scale)])
