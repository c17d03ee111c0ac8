"""Result of a baseline method, and the columns of the standard parameter vector that the methods share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.feasibility.constraints import Signs
from dynid.robot.model import Robot

__all__ = ["BaselineFit", "body_columns", "signed_columns"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BaselineFit:
    """Standard parameters (p,) found by a method, their cost 1/2 |R pi - z|^2, and how the method ended."""

    parameters: Array
    cost: float
    converged: bool
    iterations: int
    seconds: float
    message: str


def body_columns(robot: Robot) -> list[int]:
    """Index of the first of the ten inertial columns, per link."""
    return [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]


def signed_columns(robot: Robot) -> list[int]:
    """Columns of friction coefficients and rotor inertias, which must not be negative."""
    return [int(b.matrix.indices[0]) for b in Signs().blocks(robot) if b.cone == "nonnegative"]
