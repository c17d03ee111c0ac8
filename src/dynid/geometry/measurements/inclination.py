"""An inclinometer or accelerometer at rest on the robot: which way is down, seen from the link.

    directions:      2 E m / (1 + m . d) = 0,    m = M' R_F(q)' g / |g|
    accelerometer:   (b - S M' R_F(q)' g - a) / |g| = 0

with gravity g in the robot's base, the mounting M of the sensor on the frame, the measured direction d with the two
axes E across it, and of an accelerometer the scales S, the bias b and its reading a. The first is the angle between
predicted and measured direction, to third order, and grows up to the opposite direction.

Source: D'Amore, Ciarleglio and Akin, IMU-based manipulator kinematic identification (2015); own derivation of the
stereographic residual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, InvalidValue, MissingData
from dynid.geometry.measurements.measurement import Measurement, Part, Space, three
from dynid.geometry.measurements.starts import nearest_rotation, spread_rotations
from dynid.geometry.tangents import Placed, Tangent, components, left_jacobian, nearby, perpendiculars, rotations

__all__ = ["Inclination"]

Array = NDArray[np.float64]

_STEPS = 60


@dataclass(frozen=True, eq=False)
class Inclination(Measurement):
    """Readings of an inclinometer or accelerometer while the robot rests.

    Attributes
    ----------
    readings : ndarray, shape (N, 3)
        Measured vectors in the axes of the sensor: of any length without scale and bias, otherwise in the unit of
        gravity (m/s^2); not numbers where nothing was read.
    upward : bool
        Whether readings point up, as those of an accelerometer at rest do, or down.
    gravity : ndarray, shape (3,)
        Gravity in the robot's base (m/s^2).
    tilt_std : float, optional
        Standard deviation of its direction about each axis across (rad), infinite for a base that stands in any way;
        no error by default.
    mount : ndarray, shape (3, 3), optional
        Axes of the sensor in the frame; unknown if not given.
    mount_std : float
        Standard deviation of their direction about each axis (rad).
    bias_std : float, optional
        Standard deviation of a bias of each axis (m/s^2); no bias by default.
    scale_std : float, optional
        Standard deviation of the relative error of each axis' scale; no such error by default.
    noise : float
        Standard deviation of a direction (rad), or of a reading over gravity.
    scale : float
        Start of the scales.
    """

    readings: Array = ()  # type: ignore[assignment]
    upward: bool = True
    gravity: Array = (0.0, 0.0, -9.81)  # type: ignore[assignment]
    tilt_std: float | None = None
    mount: Array | None = None
    mount_std: float = np.inf
    bias_std: float | None = None
    scale_std: float | None = None
    noise: float = 1e-3
    scale: float = 1.0

    kind: ClassVar[str] = "inclination"
    about: ClassVar[str] = "readings of an inclinometer or accelerometer on the robot at rest"
    rows: ClassVar[tuple[str, ...]] = ("readings",)

    def __post_init__(self) -> None:
        super().__post_init__()
        readings = np.array(self.readings, dtype=float)
        if readings.shape != (len(self.q), 3):
            raise InvalidShape(f"readings must have shape ({len(self.q)}, 3), got {readings.shape}", "readings")
        zero = np.flatnonzero(~np.any(readings, axis=1))
        if len(zero):
            raise InvalidValue(f"reading {zero[0]} has no length: a sensor at rest shows gravity", "readings")
        object.__setattr__(self, "readings", readings)
        object.__setattr__(self, "gravity", three(self.gravity, "gravity"))
        if not np.linalg.norm(self.gravity) > 0:
            raise InvalidValue("gravity has no length: inclination has no reference without it", "gravity")
        if self.mount is not None:
            mount = np.array(self.mount, dtype=float)
            if mount.shape != (3, 3):
                raise InvalidShape(f"mount must be a 3x3 rotation, got shape {mount.shape}", "mount")
            object.__setattr__(self, "mount", nearest_rotation(mount))

    @property
    def scaled(self) -> bool:
        """Whether lengths of readings count, not only their directions."""
        return self.bias_std is not None or self.scale_std is not None

    @property
    def down(self) -> Array:
        """Readings (N, 3) turned to point along gravity."""
        return -self.readings if self.upward else self.readings

    @property
    def std(self) -> Array:
        """The noise of both angles, or of three readings over gravity."""
        return np.full(3 if self.scaled else 2, self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The mounting, and what else may differ: tilt, bias, scale."""
        axes = ("x", "y", "z")
        turns = tuple(f"r{a}" for a in axes)
        found = [Part("mount", np.zeros(3), np.full(3, self.mount_std), turns, ("rad",) * 3)]
        if self.tilt_std is not None:
            found.append(Part("tilt", np.zeros(2), np.full(2, self.tilt_std), ("turn1", "turn2"), ("rad",) * 2))
        if self.bias_std is not None:
            found.append(Part("bias", np.zeros(3), np.full(3, self.bias_std), axes, ("m/s^2",) * 3))
        if self.scale_std is not None:
            found.append(Part("scale", np.full(3, self.scale), np.full(3, self.scale_std), axes, ("",) * 3))
        return tuple(found)

    def residual(self, space: Space) -> Tangent:
        """Predicted less measured direction, or reading over gravity."""
        frame, x = space.frames[self.frame], space.values("mount")
        strength = float(np.linalg.norm(self.gravity))
        down = self.gravity / strength
        width = x.slope.shape[-1]
        turned = Tangent(down[None], np.zeros((1, 3, width)))
        if self.tilt_std is not None:
            turned = nearby(down, space.values("tilt"))
        start = np.eye(3) if self.mount is None else self.mount
        turn = left_jacobian(x.value) @ x.slope
        mount = Placed(rotations(x.value) @ start, np.zeros((1, 3)), turn, np.zeros((1, 3, width)))
        seen = mount.inverse().vector(frame.inverse().vector(turned))
        if not self.scaled:
            length = np.linalg.norm(self.down, axis=1)[:, None]
            measured = self.down / length
            hidden = ~np.isfinite(measured).all(1)
            axes = perpendiculars(np.where(hidden[:, None], down, measured))
            away = components([seen.along(axes[:, 0]), seen.along(axes[:, 1])]) * 2.0
            return away / components([seen.along(measured) + 1.0] * 2)
        if self.scale_std is not None:
            seen = seen * space.values("scale")
        seen = seen * np.array(-1.0 if self.upward else 1.0) - self.readings / strength
        return seen + space.values("bias") * np.array(1 / strength) if self.bias_std is not None else seen

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """The mounting, tilt and scale that are unknown, found from the directions."""
        read = np.isfinite(self.readings).all(1)
        if not read.any():
            raise MissingData(f"{self.name} has no reading", "readings")
        down, r = self.down[read], frames[self.frame].rotation[read]
        length = np.linalg.norm(down, axis=1)
        strength = float(np.linalg.norm(self.gravity))
        free = self.scale_std == np.inf
        scale = float(np.median(length)) / strength if free else self.scale
        d, g = down / length[:, None], self.gravity / strength
        turns = spread_rotations() if self.mount is None else self.mount[None]
        gravity = np.tile(g, (len(turns), 1))
        open_tilt = self.tilt_std == np.inf
        for _ in range(_STEPS if open_tilt else 1):
            if open_tilt:
                gravity = np.einsum("nij,sjk,nk->si", r, turns, d)
                gravity = gravity / np.linalg.norm(gravity, axis=1, keepdims=True)
            if self.mount is None:
                turns = nearest_rotation(np.einsum("nji,sj,nk->sik", r, gravity, d))
        best = int(np.argmax(np.einsum("nij,sjk,nk,si->s", r, turns, d, gravity)))
        return replace(self, mount=turns[best], gravity=gravity[best] * strength, scale=scale)

    def distances(self, residual: Array) -> Array:
        """Not a number: directions show no position."""
        return np.full(len(residual), np.nan)
