"""Sensors of a closed loop: what the controller measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, UnknownName

__all__ = ["Sensors"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sensors:
    """Encoders, velocity measurement and torque sensors of a closed loop.

    Attributes
    ----------
    noise : float or array of shape (n,)
        White noise on measured positions, standard deviation (rad or m). It acts inside the loop.
    counts : float or array of shape (n,)
        Encoder counts per revolution, or per metre for a prismatic joint; 0 for no quantisation.
    velocity : {"difference", "exact"}
        Measured velocity: the difference of measured positions over one control period, or the true velocity.
    velocity_cutoff : float or None
        Cut-off frequency (Hz) of a first-order low-pass on differenced velocities; None for no filter.
    torque_noise : float or array of shape (n,)
        White noise on recorded torques, standard deviation (N m or N). It is outside the loop.
    delay : int
        Control periods between a measurement and the torque it leads to. The first command is held until the second
        one is due.

    Raises
    ------
    DataError
        If a value is negative or not finite, or the delay is not a whole number.

    Examples
    --------
    >>> import dynid
    >>> dynid.simulation.Sensors(noise=1e-5, velocity_cutoff=100.0).delay
    0
    """

    noise: ArrayLike = 0.0
    counts: ArrayLike = 0.0
    velocity: Literal["difference", "exact"] = "difference"
    velocity_cutoff: float | None = None
    torque_noise: ArrayLike = 0.0
    delay: int = 0

    def __post_init__(self) -> None:
        if self.velocity not in ("difference", "exact"):
            raise UnknownName(f"velocity is measured by 'difference' or 'exact', not '{self.velocity}'", "velocity")
        if self.delay < 0 or self.delay != int(self.delay):
            raise InvalidValue(f"a delay is a whole number of control periods, got {self.delay}", "delay")
        if self.velocity_cutoff is not None and not self.velocity_cutoff > 0:
            raise InvalidValue(
                f"the velocity filter needs a positive cut-off, got {self.velocity_cutoff:g} Hz", "velocity_cutoff"
            )
        for name in ("noise", "counts", "torque_noise"):
            value = np.asarray(getattr(self, name), dtype=float)
            if not np.all((value >= 0) & np.isfinite(value)):
                raise InvalidValue(f"sensor {name} must be finite and not negative")

    def of_joints(self, name: str, n: int) -> Array:
        """One of "noise", "counts" or "torque_noise" as an array of shape (n,)."""
        value = np.asarray(getattr(self, name), dtype=float)
        if value.shape not in ((), (n,)):
            raise InvalidShape(f"sensor {name} needs one number, or one per joint ({n}), got shape {value.shape}")
        return np.broadcast_to(value, (n,)).copy()

    def noise_free(self) -> Sensors:
        """The same sensors without noise and without quantisation."""
        return replace(self, noise=0.0, counts=0.0, torque_noise=0.0)

    def smoothing(self, rate: float) -> float:
        """Gain of the first-order velocity low-pass per control period at `rate` Hz; 1 without a filter."""
        return 1.0 if self.velocity_cutoff is None else float(1.0 - np.exp(-2 * np.pi * self.velocity_cutoff / rate))
