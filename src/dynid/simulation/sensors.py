"""What the controller sees of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError

__all__ = ["Sensors"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sensors:
    """Encoders and torque signals; one number for all joints or one a joint.

    noise: deviation of measured positions (rad or m), inside the loop. counts: encoder counts a revolution (a metre
    where the joint slides), 0 for none. speed: "exact", or "difference" of measured positions, with a first-order
    low-pass of `velocity_cutoff` Hz. torque_noise: deviation of recorded torques (N m), not in the loop. delay: control
    periods from measurement to torque; the first command holds until the second is due.
    """

    noise: ArrayLike = 0.0
    counts: ArrayLike = 0.0
    speed: Literal["difference", "exact"] = "difference"
    velocity_cutoff: float | None = None
    torque_noise: ArrayLike = 0.0
    delay: int = 0

    def __post_init__(self) -> None:
        if self.speed not in ("difference", "exact"):
            raise DataError(f"speeds are sensed by 'difference' or 'exact', not '{self.speed}'")
        if self.delay < 0 or self.delay != int(self.delay):
            raise DataError(f"a delay is a whole number of control periods, got {self.delay}")
        if self.velocity_cutoff is not None and not self.velocity_cutoff > 0:
            raise DataError(f"the speed filter needs a positive cut-off, got {self.velocity_cutoff:g} Hz")
        for name in ("noise", "counts", "torque_noise"):
            value = np.asarray(getattr(self, name), dtype=float)
            if not np.all((value >= 0) & np.isfinite(value)):
                raise DataError(f"sensor {name} must be finite and not negative")

    def of_joints(self, name: str, n: int) -> Array:
        """One of noise, counts, torque_noise as (n,)."""
        value = np.asarray(getattr(self, name), dtype=float)
        if value.shape not in ((), (n,)):
            raise DataError(f"sensor {name} needs one number or one a joint ({n}), got shape {value.shape}")
        return np.broadcast_to(value, (n,)).copy()

    def smoothing(self, rate: float) -> float:
        """Share of a new speed that the low-pass lets through in one period."""
        return 1.0 if self.velocity_cutoff is None else float(1.0 - np.exp(-2 * np.pi * self.velocity_cutoff / rate))
