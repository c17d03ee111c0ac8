"""Excitation: a designed motion with its limits, what it tells, and the files a controller can run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.excitation.basis import Basis
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.problem import Clearance, Problem
from dynid.robot.model import Robot

__all__ = ["Excitation"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Excitation:
    """Coefficients (n, k) of a basis for one robot, with the limits and the criterion they were found under."""

    robot: Robot
    basis: Basis
    coefficients: Array
    limits: MotionLimits
    criterion: Criterion
    clearances: tuple[Clearance, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        return self.basis.duration

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v and a (N, n) at times (N,)."""
        q, v, a = (self.basis.values(t, order) @ self.coefficients.T for order in range(3))
        return q, v, a

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """t (N,), q, v and a (N, n) over the whole motion at a rate (Hz), both ends included."""
        if not (np.isfinite(rate) and rate > 0):
            raise DataError(f"the rate must be positive, got {rate}")
        steps = max(1, round(self.duration * rate))
        t = np.linspace(0.0, self.duration, steps + 1)
        return t, *self.at(t)

    def problem(self, samples: int) -> Problem:
        """The design problem on a grid of so many samples, to look at slacks and criteria."""
        return Problem(self.basis, self.criterion, self.limits, samples, self.clearances)

    @cached_property
    def slacks(self) -> dict[str, float]:
        """Smallest slack of each kind of limit on a fine grid: 0 on the limit, 1 far from it, negative beyond."""
        found = self.problem(2000).slacks(self.coefficients)
        return {limit.kind: float(limit.slack.min(initial=1.0)) for limit in found}

    def base_regressor(self, rate: float = 100.0) -> Array:
        """W (N, channel, b) along the motion."""
        _, q, v, a = self.sample(rate)
        return self.criterion.base.regressor(q, v, a)

    @cached_property
    def condition_number(self) -> float:
        """Of the stacked base regressor at 100 Hz, as it is."""
        W = self.base_regressor()
        return float(np.linalg.cond(W.reshape(-1, W.shape[-1])))

    def predicted_sigma(self, noise: ArrayLike, periods: int = 1, rate: float = 100.0) -> Array:
        """Standard deviation (b,) of each base parameter after `periods` runs at a rate, with white torque noise."""
        deviation = np.broadcast_to(np.asarray(noise, dtype=float), (len(self.criterion.base.channels),))
        if not np.all(deviation > 0):
            raise DataError("torque noise must be positive")
        W = self.base_regressor(rate)[:-1] / deviation[:, None]
        r = np.linalg.qr(W.reshape(-1, W.shape[-1]), mode="r")
        return np.linalg.norm(np.linalg.inv(r), axis=1) / np.sqrt(periods)
