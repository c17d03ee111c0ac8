"""Markers on the robot seen by motion capture, a laser tracker or a measuring machine.

    T (p_frame(q) + R_frame(q) c_m) - y_m = 0

with the base of the robot in the tracker T, and the markers c_m on the robot.

Source: Hollerbach, Khalil and Gautier, Model Identification, Springer Handbook of Robotics (2016), chapter 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, MissingData
from dynid.geometry.measurements.measurement import Measurement, Part, Space, free_placement, free_point
from dynid.geometry.measurements.starts import register
from dynid.geometry.tangents import Placed, Tangent
from dynid.robot.spatial import placement

__all__ = ["Points"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Points(Measurement):
    """Markers seen by a tracker.

    Attributes
    ----------
    points : ndarray, shape (N, M, 3)
        Measured positions of the M markers (m), not a number where one was hidden.
    markers : sequence of str
        Names of the markers.
    known : ndarray, shape (M, 3), optional
        Where the markers sit in the frame (m); unknown if not given.
    known_std : float
        Standard deviation of each of their coordinates (m).
    base : ndarray, shape (4, 4), optional
        The robot's base in the tracker's frame; unknown if not given.
    base_std : tuple of float
        Its standard deviations: position (m) and direction (rad).
    noise : float
        Standard deviation of each coordinate (m).
    """

    points: Array = ()  # type: ignore[assignment]
    markers: tuple[str, ...] = ()
    known: Array | None = None
    known_std: float = np.inf
    base: Array | None = None
    base_std: tuple[float, float] = (np.inf, np.inf)
    noise: float = 2e-4

    kind: ClassVar[str] = "points"
    about: ClassVar[str] = "markers on the robot, seen by motion capture, a laser tracker or a measuring machine"
    rows: ClassVar[tuple[str, ...]] = ("points",)

    def __post_init__(self) -> None:
        super().__post_init__()
        points = np.array(self.points, dtype=float)
        if points.ndim == 2 and points.shape[1] == 3:
            points = points[:, None]
        if points.ndim != 3 or points.shape[2] != 3 or len(points) != len(self.q):
            raise InvalidShape(f"points must have shape ({len(self.q)}, markers, 3), got {points.shape}", "points")
        object.__setattr__(self, "points", points)
        names = tuple(self.markers) or tuple(f"marker {m + 1}" for m in range(points.shape[1]))
        object.__setattr__(self, "markers", names)
        if len(names) != points.shape[1]:
            raise InvalidShape(f"{len(names)} names are given for {points.shape[1]} markers", "markers")

    @property
    def std(self) -> Array:
        """The noise of each coordinate of every marker."""
        return np.full(3 * self.points.shape[1], self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The base in the tracker, and the markers in the frame."""
        base = np.eye(4) if self.base is None else self.base
        known = np.zeros((len(self.markers), 3)) if self.known is None else self.known
        at = free_placement("base", base, np.repeat(self.base_std, 3))
        return (at, *(free_point(m, x, self.known_std) for m, x in zip(self.markers, known, strict=True)))

    def residual(self, space: Space) -> Tangent:
        """Predicted less measured positions, marker after marker."""
        frame = space.placement("base").then(space.frames[self.frame])
        seen = [frame.point(space.values(m)) - self.points[:, k] for k, m in enumerate(self.markers)]
        return Tangent(np.concatenate([s.value for s in seen], axis=1), np.concatenate([s.slope for s in seen], axis=1))

    def point(self, space: Space) -> Tangent:
        """The middle (N, 3) of the markers in the base of the robot (m)."""
        middle = space.values(self.markers[0])
        for name in self.markers[1:]:
            middle = middle + space.values(name)
        return space.frames[self.frame].point(middle * (1 / len(self.markers)))

    def expected(self, space: Space) -> Self:
        """The measurement with markers seen where they are predicted."""
        seen = replace(self, points=np.zeros_like(self.points)).residual(space).value
        return replace(self, points=seen.reshape(self.points.shape))

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Base and markers that are unknown, found from the measured points."""
        seen = np.atleast_1d(np.isfinite(self.points).all(2).any(0))
        hidden = [m for m, any_seen in zip(self.markers, seen, strict=True) if not any_seen]
        if hidden:
            raise MissingData(f"{hidden[0]} was never seen", "markers")
        if self.base is not None and self.known is not None:
            return self
        frame = frames[self.frame]
        rotation, origin, found = register(frame.rotation, frame.origin, self.points, self.known, self.base)
        return replace(self, base=placement(rotation, origin), known=found)

    def distances(self, residual: Array) -> Array:
        """Root mean square over the markers seen."""
        away = np.sum(residual.reshape(len(residual), -1, 3) ** 2, axis=2)
        seen = np.isfinite(away)
        count = np.maximum(seen.sum(1), 1)
        return np.where(seen.any(1), np.sqrt(np.nansum(away, axis=1) / count), np.nan)
