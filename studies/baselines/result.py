"""What every rival method gives back, and where the numbers it treats alike stand in the standard vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.feasibility.constraints import Signs
from dynid.robot.model import Robot

__all__ = ["RivalFit", "body_columns", "signed_columns"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RivalFit:
    """Standard parameters (p,) that a method ended with, 1/2 |R pi - z|^2 at them, and how it ended."""

    parameters: Array
    cost: float
    converged: bool
    iterations: int
    seconds: float
    message: str


def body_columns(robot: Robot) -> list[int]:
    """First of the ten columns of every link."""
    return [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]


def signed_columns(robot: Robot) -> list[int]:
    """Columns of friction coefficients and rotor inertias, which are not negative."""
    return [int(b.matrix.indices[0]) for b in Signs().blocks(robot) if b.cone == "nonnegative"]
