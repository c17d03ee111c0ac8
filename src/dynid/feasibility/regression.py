"""Feasible standard parameters from a user-supplied regressor: other kinematics, other sensors, a published problem."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ConflictingArguments, DataError, InvalidShape, InvalidValue, NotFinite, UnknownName, named
from dynid.feasibility.agreement import FitProblem
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.fit import Fit, closest, fit
from dynid.feasibility.metrics import Metric
from dynid.feasibility.sets import feasible_set
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["fit_problem", "fit_regressor"]

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
    if weight is not None and bound is not None:
        raise ConflictingArguments("give the weight of the prior or a bound on the residual, not both", "weight")
    if bound is not None and not (np.isfinite(bound) and bound > 0):
        raise InvalidValue(f"the bound on the residual must be positive, got {bound!r}", "bound")
    settings: dict[str, Any] = {"std": std, "constraints": constraints, "prior": prior, "metric": metric, "unit": unit}
    given = fit_problem(robot, W, y, weight=1.0 if weight is None else weight, **settings)
    problem = given.feasible, given.R, given.z
    if bound is not None:
        return closest(*problem, bound, given.prior, metric, scale=given.scale)
    return fit(*problem, given.prior, metric, weight, scale=given.scale)


def fit_problem(
    robot: Robot,
    W: ArrayLike,
    y: ArrayLike,
    *,
    std: ArrayLike = 1.0,
    constraints: Constraints = "full",
    prior: ArrayLike | None = None,
    metric: Metric = "euclidean",
    weight: float = 1.0,
    unit: Literal["typical", "SI"] = "typical",
) -> FitProblem:
    """The problem that `fit_regressor` solves with a weight, to be given to other solvers.

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
    weight : float, default 1
        Weight of the distance.
    unit : {"typical", "SI"}
        Unit of the Euclidean distance: the typical size of each parameter, or SI units.

    Returns
    -------
    FitProblem
        `compare()` solves it with all solvers of this computer, `write_sdpa` writes it for others.

    Raises
    ------
    DataError
        For wrong shapes and settings.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> robot = dynid.load_robot("twolink")
    >>> W = dynid.regressor(robot, *np.random.default_rng(0).normal(size=(3, 20, 2))).reshape(-1, 28)
    >>> problem = dynid.feasibility.fit_problem(robot, W, W @ robot.parameters, std=0.1)
    >>> problem.compare(["clarabel"]).agrees()
    True
    """
    p = len(robot.layout)
    rows = np.asarray(W, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != p:
        raise InvalidShape(f"the regressor of robot '{robot.name}' must have shape (N, {p}), got {rows.shape}", "W")
    values = checked(y, (len(rows),), f"measurements of {len(rows)} regressor rows", DataError)
    if not np.all(np.isfinite(rows)):
        raise NotFinite("the regressor has values that are not finite", "W")
    try:
        noise = np.broadcast_to(np.asarray(std, dtype=float), (len(rows),))
    except (TypeError, ValueError):
        raise InvalidShape(f"std must be one number or have shape ({len(rows)},)", "std") from None
    if not np.all(np.isfinite(noise) & (noise > 0)):
        raise InvalidValue("std must be positive", "std")
    if not (np.isfinite(weight) and weight > 0):
        raise InvalidValue(f"the weight of the prior must be positive, got {weight!r}", "weight")
    if unit not in ("typical", "SI"):
        raise UnknownName(f"{named('unit')} '{unit}' is unknown: use typical or SI")
    start = robot.parameters if prior is None else checked(prior, (p,), "prior", DataError)
    feasible = feasible_set(robot, constraints)
    stacked = np.column_stack([rows, values]) / noise[:, None]
    factor = scipy.linalg.qr(stacked, mode="r", check_finite=False)[0][: p + 1]
    R = np.pad(factor[:, :-1], ((0, 0), (0, feasible.extra)))
    scale = np.ones(p) if unit == "SI" else feasible.scale[:p]
    return FitProblem(feasible, R, factor[:, -1], start, metric, float(weight), scale)
