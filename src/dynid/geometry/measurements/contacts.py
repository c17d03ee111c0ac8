"""Two points of one robot that touch: of two arms, or of a finger and a body.

    p_A(q) + R_A(q) c_a - p_B(q) - R_B(q) c_b = 0

Source: Hollerbach, Khalil and Gautier, Model Identification, Springer Handbook of Robotics (2016), chapter 8; Roncone,
Hoffmann, Pattacini and Metta, Automatic kinematic chain calibration using artificial skin: self-touch in the iCub
humanoid robot (2014).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, UnknownName, did_you_mean
from dynid.geometry.measurements.measurement import Measurement, Part, Space, free_point, three
from dynid.geometry.tangents import Placed, Tangent

__all__ = ["PointContacts"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PointContacts(Measurement):
    """Points of a robot that touch each other.

    Attributes
    ----------
    points : mapping of str to (str, array_like)
        Each point: its link or frame, and where it is expected there (m).
    touching : sequence of (str, str)
        Which two points touch at each posture.
    point_std : float
        Standard deviation of each coordinate of the points (m).
    noise : float
        Standard deviation of a contact in each direction (m).
    """

    points: Mapping[str, tuple[str, ArrayLike]] = ()  # type: ignore[assignment]
    touching: Sequence[tuple[str, str]] = ()
    point_std: float = 1e-3
    noise: float = 2e-4

    kind: ClassVar[str] = "contacts"
    about: ClassVar[str] = "two points of the robot touch each other, such as the tips of two arms"
    rows: ClassVar[tuple[str, ...]] = ("touching",)

    def __post_init__(self) -> None:
        super().__post_init__()
        points = {name: (frame, three(at, "points")) for name, (frame, at) in dict(self.points).items()}
        touching = np.array(self.touching, dtype=str)
        if touching.shape != (len(self.q), 2):
            raise InvalidShape(f"touching must name two points for each of {len(self.q)} postures", "touching")
        for k, pair in enumerate(touching.tolist()):
            for name in pair:
                if name not in points:
                    raise UnknownName(f"posture {k} has no point '{name}'{did_you_mean(name, points)}", "touching")
            if pair[0] == pair[1]:
                raise UnknownName(f"at posture {k} point '{pair[0]}' touches itself: name two points", "touching")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "touching", touching)

    @property
    def used(self) -> list[str]:
        """Names of the points that touch another."""
        return sorted(set(np.ravel(self.touching).tolist()))

    @property
    def frames(self) -> tuple[str, ...]:
        """Frames of the points that touch another."""
        return tuple(dict.fromkeys(self.points[name][0] for name in self.used))

    @property
    def std(self) -> Array:
        """The noise of a contact in three directions."""
        return np.full(3, self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The points that touch another."""
        return tuple(free_point(name, np.asarray(self.points[name][1]), self.point_std) for name in self.used)

    def residual(self, space: Space) -> Tangent:
        """First less second point of the pair of each posture."""
        count, width = len(self.q), next(iter(space.frames.values())).turn.shape[-1]
        value, slope = np.zeros((count, 3)), np.zeros((count, 3, width))
        for name in self.used:
            sign = self._signs(name)
            at = space.frames[self.points[name][0]].point(space.values(name)) * sign[:, None]
            value, slope = value + at.value, slope + at.slope
        return Tangent(value, slope)

    def _signs(self, name: str) -> Array:
        """1 where a point is the first of its pair, -1 where it is the second, 0 where it does not touch."""
        pairs = np.asarray(self.touching)
        return np.subtract(pairs[:, 0] == name, pairs[:, 1] == name, dtype=float)

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Points that are unknown, found from all contacts at once."""
        if np.isfinite(self.point_std):
            return self
        # The difference is linear in where the points are; the smallest change where contacts do not tell.
        blocks, right = [], np.zeros(3 * len(self.q))
        for name in self.used:
            frame, at = self.points[name]
            turned = self._signs(name)[:, None, None] * frames[frame].rotation
            blocks.append(turned.reshape(-1, 3))
            right -= (self._signs(name)[:, None] * frames[frame].point(np.asarray(at)).value).ravel()
        moved = np.linalg.lstsq(np.hstack(blocks), right, rcond=1e-6)[0].reshape(-1, 3)
        found = dict(self.points)
        for name, x in zip(self.used, moved, strict=True):
            frame, at = found[name]
            found[name] = (frame, np.asarray(at) + x)
        return replace(self, points=found)
