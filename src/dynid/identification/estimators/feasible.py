"""Least squares over possible robots only: the estimate is a robot that could be built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.covariance import bootstrap_covariance, constrained_covariance
from dynid.feasibility.fit import Fit, fit
from dynid.feasibility.metrics import Metric, hessian_rows
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimators.irls import LOSSES, SCALE_ITERATIONS, reweighted, robust_scale
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.solution import Solution
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.robot.parts import checked

__all__ = ["feasible", "possible_solution"]

Array = NDArray[np.float64]
Objective = Literal["ols", "wls", "huber", "tukey"]

_WEIGHTS = 10.0 ** np.arange(-6.0, 5.0)
_FOLDS = 5
_ROBUST_ITERATIONS = 50
_SETTLED = 1e-3
_ROUNDING = 1e-8


def feasible(
    observation: Observation,
    objective: Objective = "wls",
    constraints: Constraints = "full",
    prior: ArrayLike | None = None,
    metric: Metric = "euclidean",
    weight: float | Literal["cv"] | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    solver: str = "clarabel",
) -> Solution:
    """Minimise the whitened sum of squares over the robots that `constraints` allow.

    `objective`: "ols" with one noise for all joints, "wls" with one a joint, "huber" or "tukey" reweighted row by row.
    The data fix base parameters only; among equally good standard vectors the one closest to `prior` (p,), by default
    the robot's own, is taken in the `metric`. With a `weight` the prior pulls against the data as well; "cv" chooses
    it by cross-validation over stretches of time. With `bootstrap` draws the covariance comes from as many repeated
    solves on simulated data instead of a linearisation.
    """
    base = observation.base
    possible = feasible_set(base.robot, constraints)
    start = base.robot.parameters if prior is None else checked(prior, (len(base.robot.layout),), "prior", DataError)
    noise, notes = _noise(observation, objective)
    if weight not in (None, "cv") and not (isinstance(weight, int | float) and weight > 0):
        raise DataError(f"the weight of the prior must be positive or 'cv', got {weight!r}")

    def solve(factor: Array, pull: float | None) -> Fit:
        return fit(possible, *_rows(factor, base.matrix, possible), start, metric, pull, solver)

    factor = observation.stacked(1.0 / noise)
    pull = weight
    if pull == "cv":
        pull = _cross_validated(observation, noise, solve)
        notes.append(f"weight of the prior by cross-validation: {pull:g}")
    found, iterations = solve(factor, pull), 1
    if objective in LOSSES:
        factor, noise, found, iterations = _robust(observation, objective, found, lambda f: solve(f, pull))
    solution = _solution(base, factor, found, noise, start, metric, pull is None)
    if bootstrap:
        R, _ = _rows(factor, base.matrix, possible)
        covariance = bootstrap_covariance(
            lambda z: base.matrix @ fit(possible, R, z, start, metric, found.weight, solver).parameters,
            R[:, : possible.size] @ found.parameters,
            bootstrap,
            seed,
        )
        solution = replace(solution, covariance=covariance, parameter_covariance=None)
    return replace(solution, iterations=iterations, notes=(*notes, *solution.notes))


def possible_solution(
    base: BaseParameters,
    possible: FeasibleSet,
    factor: Array,
    noise: Array,
    prior: Array,
    metric: Metric = "euclidean",
    weight: float | None = None,
) -> Solution:
    """Least squares over possible robots from a whitened factor of [W y]."""
    found = fit(possible, *_rows(factor, base.matrix, possible), prior, metric, weight)
    return _solution(base, factor, found, noise, prior, metric, weight is None)


def _solution(
    base: BaseParameters, factor: Array, found: Fit, noise: Array, prior: Array, metric: Metric, tie_break: bool
) -> Solution:
    """A fit with its uncertainty; the prior's pull pins what the data do not show."""
    K, possible = base.matrix, found.possible
    R, _ = _rows(factor, K, possible)
    pinned = np.sqrt(found.weight) * hessian_rows(possible, found.parameters, prior, metric)
    standard = constrained_covariance(found, R, pinned)
    active = found.active
    notes = [f"held back by {len(active)} constraints: {', '.join(active)}"] if active else []
    if tie_break and found.visible:
        share = found.solution.objective - found.cost
        notes.append(
            f"the solver allows no weaker tie-break: the prior's share of the sum of squares is {2 * share:.2g}"
        )
    return Solution(
        beta=K @ found.parameters,
        covariance=K @ standard @ K.T,
        noise=noise,
        condition_number=float(np.linalg.cond(factor[:, :-1])),
        status=found.solution.status,
        notes=tuple(notes),
        parameters=found.parameters,
        parameter_covariance=standard,
    )


def _rows(factor: Array, K: Array, possible: FeasibleSet) -> tuple[Array, Array]:
    """Least-squares rows over all unknowns, without the row that only holds what no parameter explains."""
    b = len(K)
    rows = factor[:b] if len(factor) == b + 1 else factor
    return np.pad(rows[:, :-1] @ K, ((0, 0), (0, possible.extra))), rows[:, -1]


def _noise(observation: Observation, objective: str) -> tuple[Array, list[str]]:
    """Deviation a channel from plain least squares, or a tenth of the torque where the motion is too poor for that."""
    if objective not in ("ols", "wls", *LOSSES):
        raise DataError(f"objective '{objective}' is unknown: use ols, wls, {' or '.join(LOSSES)}")
    rows = np.array(observation.rows, dtype=float)
    try:
        beta = ols(observation).beta
    except DynidError as error:
        size = observation.torque_norms() / np.sqrt(np.maximum(rows, 1))
        return np.where(size > 0, 0.1 * size, 1.0), [
            f"{error}: there the prior decides, and noise is a tenth of torque"
        ]
    if objective == "ols":
        total = np.linalg.norm(observation.residual_norms(beta))
        return np.full(len(rows), max(total / np.sqrt(max(rows.sum() - beta.size, 1)), 1e-300)), []
    return joint_noise(observation, beta), []


def _robust(
    observation: Observation, loss: str, found: Fit, solve: Callable[[Array], Fit]
) -> tuple[Array, Array, Fit, int]:
    """Reweight rows by their residuals and solve again until the base values settle."""
    K = observation.base.matrix
    beta = K @ found.parameters
    for iteration in range(1, _ROBUST_ITERATIONS + 1):
        if iteration <= SCALE_ITERATIONS:
            scale = robust_scale(observation, beta)
        factor = reweighted(observation, beta, scale, loss)
        found = solve(factor)
        new = K @ found.parameters
        moved = np.linalg.norm(factor[:, :-1] @ (new - beta))
        rounding = np.abs(new - beta).max() <= _ROUNDING * np.abs(new).max()
        beta = new
        if iteration > SCALE_ITERATIONS and (moved < _SETTLED or rounding):
            return factor, scale, found, iteration
    raise DynidError(f"the {loss} weights did not settle in {_ROBUST_ITERATIONS} iterations")


def _cross_validated(observation: Observation, noise: Array, solve: Callable[[Array, float | None], Fit]) -> float:
    """The weight whose fits of four fifths of the time predict the last fifth best."""
    b = observation.base.count
    end = max((int(block.index[-1]) for block in observation.blocks()), default=-1) + 1
    if end < _FOLDS:
        raise DataError("cross-validation needs the samples again, which this observation does not keep")
    factors = [np.zeros((0, b + 1)) for _ in range(_FOLDS)]
    for block in observation.blocks():
        part = block.index * _FOLDS // end
        rows = np.column_stack([block.W, block.y]) / noise[block.channel]
        for k in np.unique(part):
            factors[k] = fold(np.vstack([factors[k], rows[part == k]]))
    K = observation.base.matrix
    errors = np.zeros(len(_WEIGHTS))
    for k, held_out in enumerate(factors):
        train = fold(np.vstack([f for i, f in enumerate(factors) if i != k]))
        for i, pull in enumerate(_WEIGHTS):
            try:
                beta = K @ solve(train, float(pull)).parameters
            except DynidError:  # a pull too weak or too strong for the solver is none to choose
                errors[i] = np.inf
                continue
            errors[i] += float(np.sum((held_out[:, :-1] @ beta - held_out[:, -1]) ** 2))
    if not np.any(np.isfinite(errors)):
        raise DynidError("cross-validation found no weight of the prior with which all parts can be solved")
    return float(_WEIGHTS[int(np.argmin(errors))])
