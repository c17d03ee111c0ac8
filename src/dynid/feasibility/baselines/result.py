"""Result of a baseline method, its checked problem, and the columns of the parameters that the methods share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, InvalidShape, InvalidType, NotFinite
from dynid.feasibility.constraints import Signs
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["BaselineFit", "body_columns", "checked_problem", "signed_columns"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BaselineFit:
    """What a baseline method found.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        Standard parameters, SI units. Whether they are physically consistent depends on the method.
    cost : float
        Half the sum of squares of R pi - z.
    converged : bool
        Whether the method ended at its solution, or at what it takes for one.
    iterations : int
        Number of iterations.
    seconds : float
        Wall-clock time.
    message : str
        How it ended, in words.
    """

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


def checked_problem(robot: Robot, R: ArrayLike, z: ArrayLike) -> tuple[Array, Array]:
    """Rows (k, p) and targets (k,) as finite numbers, or a DataError."""
    count = len(robot.layout)
    try:
        rows = np.asarray(R, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType("the rows of the problem are not numbers", "R") from None
    if rows.ndim != 2 or rows.shape[1] != count:
        raise InvalidShape(f"the rows for robot '{robot.name}' must have shape (k, {count}), got {rows.shape}", "R")
    if not np.all(np.isfinite(rows)):
        raise NotFinite("the rows of the problem have values that are not finite", "R")
    return rows, checked(z, (len(rows),), f"targets of {len(rows)} rows", DataError)
