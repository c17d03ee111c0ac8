"""What a residual model sees of a motion: scaled positions, speeds, accelerations and directions of motion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.robot.model import Robot

__all__ = ["Features", "fit_features"]

Array = NDArray[np.float64]

# Share of a joint's usual speed at which its smooth direction of motion, tanh(v / speed), has three quarters converged.
_DIRECTION_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class Features:
    """Columns x (N, d) of a motion: positions, speeds, accelerations, directions tanh(v / speed), each centred, scaled.

    A joint that is `periodic` (n,) has two columns for its position, sine and cosine. `speed` (n,) settles the
    directions; `centre` and `scale` are (d,). The columns of what was learned from lay between `low` and `high`
    (d,), in scaled units.
    """

    periodic: NDArray[np.bool_]
    speed: Array
    centre: Array
    scale: Array
    low: Array
    high: Array

    @property
    def n(self) -> int:
        return len(self.speed)

    @property
    def count(self) -> int:
        return len(self.centre)

    @property
    def positions(self) -> tuple[tuple[int, ...], ...]:
        """Columns of every joint's position."""
        starts = np.cumsum([0, *(1 + self.periodic.astype(int))])
        return tuple(tuple(range(starts[j], starts[j + 1])) for j in range(self.n))

    def speeds(self, joint: int) -> tuple[int, ...]:
        """Columns of one joint's speed and direction of motion."""
        first = self.count - 3 * self.n
        return first + joint, first + 2 * self.n + joint

    def own(self, joint: int) -> tuple[int, ...]:
        """Columns of one joint's position, speed and direction of motion."""
        return (*self.positions[joint], *self.speeds(joint))

    def load(self, joint: int) -> tuple[int, ...]:
        """Columns of all positions, and of one joint's speed and direction of motion."""
        return (*(column for columns in self.positions for column in columns), *self.speeds(joint))

    @property
    def motion(self) -> tuple[int, ...]:
        """Columns of all joints' positions, speeds and accelerations."""
        return tuple(range(self.count - self.n))

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        """x (N, d)."""
        return (_raw(self.periodic, self.speed, q, v, a) - self.centre) / self.scale

    def edges(self, columns: Iterable[int], reach: float) -> Array:
        """One over how far each column (d,) may go beyond its range until nothing is trusted, 0 where none counts.

        The positions among the given columns count, up to `reach` of their range, however little a kernel minds them:
        gravity, hoses and gears are others elsewhere.
        """
        out = np.zeros(self.count)
        for c in columns:
            if c < self.count - 3 * self.n:
                # What never changed has a range of one unit.
                out[c] = 1.0 / (reach * max(self.high[c] - self.low[c], 1.0))
        return out

    def inside(self, x: Array, edges: Array) -> Array:
        """1 (N,) where all columns of x (N, d) that count are within their ranges, falling to 0 at their `edges`."""
        beyond = np.maximum(np.maximum(self.low - x, x - self.high), 0.0) * edges
        return np.asarray(np.clip(1.0 - beyond.max(axis=1), 0.0, 1.0))


def fit_features(robot: Robot, q: Array, v: Array, a: Array, periodic: bool | str = "auto") -> Features:
    """Features scaled to a motion (N, n) each.

    `periodic`: whether positions of revolute joints enter as sine and cosine; "auto" for those that turn further than
    half a revolution.
    """
    kind = {joint.name: joint.kind for joint in robot.joints}
    revolute = np.array([kind[name] == "revolute" for name in robot.coordinates])
    if periodic == "auto":
        turning = revolute & (np.ptp(q, axis=0) > np.pi)
    elif isinstance(periodic, bool):
        turning = revolute & periodic
    else:
        raise DataError(f"periodic is true, false or 'auto', not {periodic!r}")
    usual = np.sqrt(np.mean(v**2, axis=0))
    speed = np.where(usual > 0, _DIRECTION_SHARE * usual, 1.0)
    raw = _raw(turning, speed, q, v, a)
    spread = raw.std(axis=0)
    # What never changes gets its SI unit for a scale: a query elsewhere is then seen to be elsewhere.
    centre, scale = raw.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)
    x = (raw - centre) / scale
    return Features(turning, speed, centre, scale, x.min(axis=0), x.max(axis=0))


def _raw(periodic: NDArray[np.bool_], speed: Array, q: Array, v: Array, a: Array) -> Array:
    places = [np.column_stack([np.sin(x), np.cos(x)]) if p else x[:, None] for x, p in zip(q.T, periodic, strict=True)]
    return np.column_stack([*places, v, a, np.tanh(v / speed)])
