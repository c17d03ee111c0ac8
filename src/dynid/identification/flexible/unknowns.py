"""Places of the unknowns of a robot with flexible joints in one vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.identification.flexible.rows import ENCODER_COLUMNS, EncoderError
from dynid.identification.flexible.sides import FlexibleModel

__all__ = ["Unknowns"]

Array = NDArray[np.float64]

# Lags of dampers in s beyond which rows are not computed; those of gears are a few milliseconds.
_LONGEST_LAG = 0.02


@dataclass(frozen=True)
class Unknowns:
    """Places of the unknowns in their vector: link base parameters, motor parameters, springs, encoder errors.

    A spring has the compliance c = 1/k and e = d/k^2: to first order, the deflection is c s - e s' under the torque s.
    Both are zero for a rigid joint, and both columns are defined there.
    """

    links: int
    motors: int
    flexible: int
    runs: int
    errors: int = 0

    @staticmethod
    def of(model: FlexibleModel, runs: int, errors: Sequence[EncoderError]) -> Unknowns:
        """The unknowns of a robot, with some encoder offsets per joint and other errors of the link encoders."""
        columns = sum(ENCODER_COLUMNS[error] for error in errors)
        return Unknowns(model.base.count, len(model.motor_names), len(model.flexible), runs, columns)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.links + self.motors + self.flexible * (2 + self.runs + self.errors)

    @property
    def compliance(self) -> slice:
        """Compliances c = 1/k of the flexible joints, rad/(N m) or m/N."""
        start = self.links + self.motors
        return slice(start, start + self.flexible)

    @property
    def lagging(self) -> slice:
        """e = d/k^2 = c T of the flexible joints, rad s/(N m) or m s/N."""
        return slice(self.compliance.stop, self.compliance.stop + self.flexible)

    def lags(self, x: Array) -> Array:
        """Lags T = d/k (flexible joint,) in s that rows can be computed with."""
        c, e = x[self.compliance], x[self.lagging]
        return np.clip(np.where(c > 0, e / np.where(c > 0, c, 1.0), 0.0), 0.0, _LONGEST_LAG)

    def offset(self, joint: int, run: int) -> int:
        """Offset of the encoders of a flexible joint, the same for all runs or one per run."""
        return self.lagging.stop + joint * self.runs + (run if self.runs > 1 else 0)

    def encoder(self, joint: int) -> slice:
        """Other encoder errors of a flexible joint, in the order of `EncoderError`."""
        start = self.lagging.stop + self.flexible * self.runs + joint * self.errors
        return slice(start, start + self.errors)
