"""Feasible standard parameters from a user-supplied regressor: other kinematics, other sensors, a published problem."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.fit import Fit, closest, fit
from dynid.feasibility.metrics import Metric
from dynid.feasibility.sets import feasible_set
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["fit_regressor"]

Array = NDArray[np.float64]


def fit_regressor(
    robot: Robot,
    W: ArrayLike,
    y: ArrayLike,
    *,
    std: ArrayLike = 1.0,
    constraints: Constraints = "full",
    prior: ArrayLike | None = None,
    metric: Metric = "euclidean",
    weight: float | None = None,
    bound: float | None = None,
    unit: Literal["typical", "SI"] = "typical",
) -> Fit:
    """Least-squares fit of feasible standard parameters to y = W pi, near a prior.

    With r = (W pi - y) / std, it minimises `|r|^2 / 2 + weight * distance(pi, prior)` or, with a `bound`, the distance
    subject to `|r| <= bound`. With neither, the prior only selects among vectors that fit equally well.

    Parameters
    ----------
    robot : Robot
        The robot.
    W : array_like, shape (N, p)
        Regressor.
    y : array_like, shape (N,)
        Measurements.
    std : array_like, scalar or shape (N,)
        One standard deviation of the measurement noise, in the unit of `y`.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.
    prior : array_like, shape (p,), optional
        Prior; `robot.parameters` if not given.
    metric : {"euclidean", "pullback", "entropic"}
        Distance from the prior.
    weight : float, optional
        Weight of the distance.
    bound : float, optional
        Bound on `|r|`; excludes `weight`.
    unit : {"typical", "SI"}
        Unit of the Euclidean distance: the typical size of each parameter, or SI units.

    Returns
    -------
    Fit
        Standard parameters, cost, and active constraints.

    Raises
    ------
    DataError
        For wrong shapes and settings.
    DynidError
        If the constraints contradict each other, or the solver fails.
    """
    p = len(robot.layout)
    rows = np.asarray(W, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != p:
        raise DataError(f"the regressor of robot '{robot.name}' must have shape (N, {p}), got {rows.shape}")
    values = checked(y, (len(rows),), f"measurements of {len(rows)} regressor rows", DataError)
    if not np.all(np.isfinite(rows)):
        raise DataError("the regressor has values that are not finite")
    try:
        noise = np.broadcast_to(np.asarray(std, dtype=float), (len(rows),))
    except (TypeError, ValueError):
        raise DataError(f"std must be one number or have shape ({len(rows)},)") from None
    if not np.all(np.isfinite(noise) & (noise > 0)):
        raise DataError("std must be positive")
    if weight is not None and bound is not None:
        raise DataError("give the weight of the prior or a bound on the residual, not both")
    for what, number in (("weight of the prior", weight), ("bound on the residual", bound)):
        if number is not None and not (np.isfinite(number) and number > 0):
            raise DataError(f"the {what} must be positive, got {number!r}")
    if unit not in ("typical", "SI"):
        raise DataError(f"unit '{unit}' is unknown: use typical or SI")
    start = robot.parameters if prior is None else checked(prior, (p,), "prior", DataError)
    feasible = feasible_set(robot, constraints)
    stacked = np.column_stack([rows, values]) / noise[:, None]
    factor = scipy.linalg.qr(stacked, mode="r", check_finite=False)[0][: p + 1]
    R = np.pad(factor[:, :-1], ((0, 0), (0, feasible.extra)))
    scale = np.ones(p) if unit == "SI" else None
    if bound is not None:
        return closest(feasible, R, factor[:, -1], bound, start, metric, scale=scale)
    return fit(feasible, R, factor[:, -1], start, metric, weight, scale=scale)
