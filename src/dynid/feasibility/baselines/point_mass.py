"""Links as nonnegative point masses at fixed positions: nonnegative least squares (Ayusawa, Nakamura 2010).

Every link is a grid of points in its box, so its ten inertial parameters are a nonnegative combination of known
columns. The cone of such bodies is a polyhedron inside the feasible cone: the fit is always feasible, its centre of
mass is always in the box, and its error is never below that of the cone program.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from dynid.errors import DataError, DynidError, InvalidValue, MissingArgument
from dynid.feasibility.baselines.result import BaselineFit, body_columns, checked_problem, signed_columns
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import inertia_from_com
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["box_points", "point_mass_columns", "point_mass_fit"]

Array = NDArray[np.float64]
Box = tuple[ArrayLike, ArrayLike]


def box_points(lower: ArrayLike, upper: ArrayLike) -> Array:
    """The 27 points of a box: centre, vertices, centres of edges and of faces.

    Parameters
    ----------
    lower, upper : array_like, shape (3,)
        Corners of the box (m).

    Returns
    -------
    ndarray, shape (27, 3)

    Raises
    ------
    DataError
        If the box has no volume.

    Examples
    --------
    >>> from dynid.feasibility.baselines import box_points
    >>> box_points([-1, -1, -1], [1, 1, 1]).shape
    (27, 3)
    """
    low, high = checked(lower, (3,), "lower corner", DataError), checked(upper, (3,), "upper corner", DataError)
    if np.any(low >= high):
        raise InvalidValue("a box needs a lower corner below its upper one on every axis", "box")
    axes = [(a, 0.5 * (a + b), b) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def point_mass_columns(points: ArrayLike) -> Array:
    """Inertial parameters of a unit mass at each of several points.

    Parameters
    ----------
    points : array_like, shape (n, 3)
        Points in the frame of the link (m).

    Returns
    -------
    ndarray, shape (10, n)
        One column per point.

    Examples
    --------
    >>> from dynid.feasibility.baselines import point_mass_columns
    >>> point_mass_columns([[0.0, 0.0, 2.0]])[:, 0]
    array([1., 0., 0., 2., 4., 0., 4., 0., 0., 0.])
    """
    points = np.asarray(points, dtype=float)
    return inertia_from_com(np.ones(len(points)), points, np.zeros((len(points), 3, 3))).T


def point_mass_fit(
    robot: Robot,
    R: ArrayLike,
    z: ArrayLike,
    boxes: Mapping[str, Box],
    *,
    prior: ArrayLike | None = None,
    weight: float = 0.0,
) -> BaselineFit:
    """Least squares over links that are 27 point masses each in their boxes (Ayusawa and Nakamura 2010).

    Signed drive parameters are not negative, the others are free. The result is always physically consistent, with all
    centres of mass in their boxes, and never better than that of the cone program.

    Parameters
    ----------
    robot : Robot
        The robot.
    R : array_like, shape (k, p)
        Rows over the standard parameters, divided by the noise: a regressor, or its triangular factor.
    z : array_like, shape (k,)
        Their targets.
    boxes : mapping
        Link name to the lower and the upper corner of its box, in the frame of the link (m).
    prior : array_like, shape (p,), optional
        Prior; `robot.parameters` if not given.
    weight : float
        Weight of the squared difference from the prior, in units of the typical sizes of the parameters, as in the
        feasible fit.

    Returns
    -------
    BaselineFit

    Raises
    ------
    DataError
        For wrong shapes, and for a link without a box.
    DynidError
        If nonnegative least squares ends early.
    """
    R, z = checked_problem(robot, R, z)
    started = time.perf_counter()
    bodies, signed = body_columns(robot), signed_columns(robot)
    names = [robot.layout[first].owner for first in bodies]
    missing = [n for n in names if n not in boxes]
    if missing:
        raise MissingArgument(f"link '{missing[0]}' has no box for its point masses", "boxes")
    rows, target = R, z
    if weight > 0:
        pi = robot.parameters if prior is None else checked(prior, (R.shape[1],), "prior", DataError)
        pull = np.sqrt(weight) / feasible_set(robot).scale
        rows, target = np.vstack([R, np.diag(pull)]), np.concatenate([z, pull * pi])
    shapes = [point_mass_columns(box_points(*boxes[n])) for n in names]
    columns = [rows[:, first : first + 10] @ shape for first, shape in zip(bodies, shapes, strict=True)]
    positive = np.hstack([*columns, rows[:, signed]])
    taken = {c for first in bodies for c in range(first, first + 10)} | set(signed)
    free = [c for c in range(R.shape[1]) if c not in taken]
    # Eliminate the free unknowns: fit only the part of the target that is orthogonal to their columns.
    basis = linalg.orth(rows[:, free]) if free else np.zeros((len(rows), 0))
    reduced = positive - basis @ (basis.T @ positive)
    size = np.linalg.norm(positive, axis=0)
    size[size == 0] = 1.0
    try:
        found, _ = optimize.nnls(reduced / size, target - basis @ (basis.T @ target), maxiter=100 * len(size))
    except RuntimeError as error:
        raise DynidError(f"the point-mass fit was not solved: {error}", code="not_converged") from None
    amounts = found / size
    out = np.zeros(R.shape[1])
    out[free] = np.linalg.lstsq(rows[:, free], target - positive @ amounts, rcond=None)[0] if free else 0.0
    for k, (first, shape) in enumerate(zip(bodies, shapes, strict=True)):
        out[first : first + 10] = shape @ amounts[27 * k : 27 * k + 27]
    out[signed] = amounts[27 * len(bodies) :]
    cost = 0.5 * float(np.sum((R @ out - z) ** 2))
    active = int(np.count_nonzero(amounts))
    message = f"{active} of {len(amounts)} masses and signed parameters are not zero"
    return BaselineFit(out, cost, True, active, time.perf_counter() - started, message)
