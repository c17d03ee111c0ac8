"""Force plate: reaction on the body, in the frame of the plate and in the laboratory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, InvalidValue, MissingData
from dynid.mocap.resample import resample
from dynid.robot.spatial import placement

__all__ = ["Plate", "placement_of_corners"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plate:
    """A force plate with its reaction on the body (never the action of the body on the plate).

    Attributes
    ----------
    name : str
        Name of the plate.
    rate : float
        Sampling rate, Hz; the first sample is at time 0.
    wrench : ndarray, shape (K, 6)
        Force (N), then moment (N m) about the centre of the top surface, in plate axes.
    placement : ndarray, shape (4, 4)
        Plate frame in the laboratory. As in C3D, its origin is the centre of the top surface, corner 1 lies at +x +y,
        corner 2 at -x +y, and z usually points into the floor.
    corners : ndarray, shape (4, 3), or None
        Corners in the laboratory, m; None for forces without a plate.
    """

    name: str
    rate: float
    wrench: Array
    placement: Array
    corners: Array | None = None

    def __post_init__(self) -> None:
        if self.wrench.ndim != 2 or self.wrench.shape[1] != 6:
            raise InvalidShape(
                f"plate '{self.name}': the wrench has shape {self.wrench.shape}, expected (K, 6)", "wrench"
            )
        if not self.rate > 0:
            raise InvalidValue(f"plate '{self.name}': the rate must be positive, got {self.rate:g}", "rate")

    @property
    def t(self) -> Array:
        """Times (K,), s."""
        return np.arange(len(self.wrench)) / self.rate

    def in_laboratory(self) -> Array:
        """Wrench (K, 6) in laboratory axes, with the moment about the origin of the laboratory."""
        turn, at = self.placement[:3, :3], self.placement[:3, 3]
        force = self.wrench[:, :3] @ turn.T
        return np.hstack([force, self.wrench[:, 3:] @ turn.T + np.cross(at, force)])

    def centre_of_pressure(self, least_force: float = 10.0) -> Array:
        """Centre of pressure (K, 3) in the laboratory, m; nan where the normal force is below `least_force` N."""
        x, y = self._pressure(least_force)
        local = np.column_stack([x, y, np.zeros(len(x))])
        return np.asarray(local @ self.placement[:3, :3].T + self.placement[:3, 3])

    def free_moment(self, least_force: float = 10.0) -> Array:
        """Free moment (K,) about the upward normal through the centre of pressure, N m; nan as for the centre."""
        x, y = self._pressure(least_force)
        f = self.wrench
        about_z = f[:, 5] - x * f[:, 1] + y * f[:, 0]
        return np.asarray(about_z * (1.0 if self.placement[2, 2] >= 0 else -1.0))

    def _pressure(self, least_force: float) -> tuple[Array, Array]:
        normal = np.where(np.abs(self.wrench[:, 2]) >= max(least_force, 1e-12), self.wrench[:, 2], np.nan)
        return -self.wrench[:, 4] / normal, self.wrench[:, 3] / normal

    def zeroed(self, start: float, stop: float) -> Plate:
        """The plate with its mean over `start` to `stop` s subtracted, an interval in which it carried no load."""
        rows = (self.t >= start) & (self.t < stop)
        if not rows.any():
            raise MissingData(f"plate '{self.name}' has no samples between {start:g} and {stop:g} s")
        return replace(self, wrench=self.wrench - self.wrench[rows].mean(axis=0))

    def at(self, times: Array, new_rate: float | None = None) -> Array:
        """Laboratory wrench (N, 6) at `times` in s, filtered to the new rate; nan outside the recorded time."""
        return resample(self.in_laboratory(), self.rate, times, new_rate)


def placement_of_corners(corners: Array, name: str) -> Array:
    """Plate frame in the laboratory from the four corners (4, 3), numbered as the quadrants of its x-y plane."""
    x, y = corners[0] - corners[1], corners[0] - corners[3]
    z = np.cross(x, y)
    if not np.all(np.isfinite(corners)) or np.linalg.norm(z) < 1e-9:
        raise InvalidValue(f"plate '{name}': its corners span no surface", "corners")
    y = np.cross(z, x)
    turn = np.column_stack([a / np.linalg.norm(a) for a in (x, y, z)])
    return placement(turn, corners.mean(axis=0))
