"""Least squares over physically consistent robots only: masses positive, inertias of a real mass distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError
from dynid.feasibility.cone import SOLVERS
from dynid.feasibility.constraints import Constraints, constraint_set
from dynid.feasibility.covariance import bootstrap_covariance, constrained_covariance
from dynid.feasibility.fit import Fit, fit
from dynid.feasibility.metrics import METRICS, Metric, hessian_rows
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimators.irls import LOSSES, SCALE_ITERATIONS, reweighted, robust_scale
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.options import MethodOptions, check_choice
from dynid.identification.estimators.solution import Outcome, Solution
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.robot.parts import checked

__all__ = ["FeasibleOptions", "check_prior_weight", "feasible", "feasible_solution"]

Array = NDArray[np.float64]
Objective = Literal["ols", "wls", "huber", "tukey"]

_WEIGHTS = 10.0 ** np.arange(-6.0, 5.0)
_FOLDS = 5
_ROBUST_ITERATIONS = 50
_CONVERGED = 1e-3
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class FeasibleOptions(MethodOptions):
    """Options of method "feasible".

    Attributes
    ----------
    objective : {"ols", "wls", "huber", "tukey"}, default "wls"
        Weights of the rows: the same for all joints, one noise standard deviation per joint, or a robust loss with one
        weight per row.
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, as for `dynid.feasibility.feasible_set`.
    prior : array_like, shape (p,), optional
        Standard parameters that are preferred among those that fit equally well; by default those of the robot.
    metric : {"euclidean", "pullback", "entropic"}, default "euclidean"
        Distance to the prior, as in `dynid.feasibility`.
    weight : float or "cv", optional
        Weight of the prior against the data; "cv" chooses it by cross-validation over segments of time. By default the
        prior decides only among vectors that fit equally well.
    bootstrap : int, default 0
        Number of repeated solves on simulated data from which the covariance is computed; with 0 it is linearised.
    seed : int, default 0
        Seed of the bootstrap.
    solver : str, default "clarabel"
        Solver of the cone program.
    """

    objective: Objective = "wls"
    constraints: Constraints = "full"
    prior: ArrayLike | None = None
    metric: Metric = "euclidean"
    weight: float | Literal["cv"] | None = None
    bootstrap: int = 0
    seed: int = 0
    solver: str = "clarabel"

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, get_args(Objective))
        check_choice("metric", self.metric, METRICS)
        check_prior_weight(self.weight)
        constraint_set(self.constraints)
        check_choice("solver", self.solver, tuple(SOLVERS))
        if self.bootstrap < 0 or self.bootstrap == 1:
            raise DataError(f"bootstrap must be 0 or a number of at least two draws, got {self.bootstrap}")


def check_prior_weight(weight: object, words: tuple[str, ...] = ("cv",)) -> None:
    """Raise a DataError unless the weight of a prior is None, positive, or one of the words."""
    number = isinstance(weight, int | float) and not isinstance(weight, bool) and weight > 0
    if weight is not None and weight not in words and not number:
        other = "".join(f" or '{word}'" for word in words)
        raise DataError(f"the weight of the prior must be positive{other}, got {weight!r:.40}")


def feasible(observation: Observation, options: FeasibleOptions | None = None) -> Solution:
    """Minimise the weighted sum of squares over the robots that satisfy the constraints.

    The data determine base parameters only. Among standard vectors that fit equally well the one closest to the prior
    is taken.
    """
    options = options or FeasibleOptions()
    objective, prior, metric, solver = options.objective, options.prior, options.metric, options.solver
    base = observation.base
    possible = feasible_set(base.robot, options.constraints)
    start = base.robot.parameters if prior is None else checked(prior, (len(base.robot.layout),), "prior", DataError)
    noise, notes = _noise(observation, objective)

    def solve(factor: Array, pull: float | None) -> Fit:
        return fit(possible, *_rows(factor, base.matrix, possible), start, metric, pull, solver)

    factor = observation.stacked(1.0 / noise)
    pull = options.weight
    if pull == "cv":
        pull = _cross_validated(observation, noise, solve)
        notes.append(f"weight of the prior by cross-validation: {pull:g}")
    found, iterations = solve(factor, pull), 1
    if objective in LOSSES:
        factor, noise, found, iterations = _robust(observation, objective, found, lambda f: solve(f, pull))
    solution = _solution(base, factor, found, noise, start, metric, pull is None)
    if options.bootstrap:
        R, _ = _rows(factor, base.matrix, possible)
        covariance = bootstrap_covariance(
            lambda z: base.matrix @ fit(possible, R, z, start, metric, found.weight, solver).parameters,
            R[:, : possible.size] @ found.parameters,
            options.bootstrap,
            seed=options.seed,
        )
        solution = replace(solution, covariance=covariance, parameter_covariance=None)
    return replace(solution, iterations=iterations, notes=(*notes, *solution.notes))


def feasible_solution(
    base: BaseParameters,
    possible: FeasibleSet,
    factor: Array,
    noise: Array,
    prior: Array,
    metric: Metric = "euclidean",
    weight: float | None = None,
) -> Solution:
    """Least squares over physically consistent robots from a whitened factor of [W y]."""
    found = fit(possible, *_rows(factor, base.matrix, possible), prior, metric, weight)
    return _solution(base, factor, found, noise, prior, metric, weight is None)


def _solution(
    base: BaseParameters, factor: Array, found: Fit, noise: Array, prior: Array, metric: Metric, tie_break: bool
) -> Solution:
    """A fit with its covariance; the prior determines what the data do not."""
    K, possible = base.matrix, found.feasible
    R, _ = _rows(factor, K, possible)
    pinned = np.sqrt(found.weight) * hessian_rows(possible, found.parameters, prior, metric)
    standard = constrained_covariance(found, R, pinned)
    active = found.active
    notes = [f"{len(active)} constraints are active: {', '.join(active)}"] if active else []
    if tie_break and found.visible:
        share = found.solution.objective - found.cost
        notes.append(f"the prior could not be given less weight: it contributes {2 * share:.2g} to the sum of squares")
    return Solution(
        beta=K @ found.parameters,
        covariance=K @ standard @ K.T,
        noise=noise,
        status=found.solution.status,
        outcome=Outcome.CONVERGED if found.solution.status == "solved" else Outcome.NOT_CONVERGED,
        notes=tuple(notes),
        parameters=found.parameters,
        parameter_covariance=standard,
    )


def _rows(factor: Array, K: Array, possible: FeasibleSet) -> tuple[Array, Array]:
    """Least-squares rows over all unknowns, without the row that holds only the residual."""
    b = len(K)
    rows = factor[:b] if len(factor) == b + 1 else factor
    return np.pad(rows[:, :-1] @ K, ((0, 0), (0, possible.extra))), rows[:, -1]


def _noise(observation: Observation, objective: str) -> tuple[Array, list[str]]:
    """Noise standard deviation per channel from least squares, or a tenth of the torque if the motion is too poor."""
    rows = np.array(observation.rows, dtype=float)
    try:
        beta = ols(observation).beta
    except DynidError as error:
        size = observation.torque_norms() / np.sqrt(np.maximum(rows, 1))
        return np.where(size > 0, 0.1 * size, 1.0), [
            f"{error}; they are taken from the prior, and the noise is assumed to be a tenth of the torque"
        ]
    if objective == "ols":
        total = np.linalg.norm(observation.residual_norms(beta))
        return np.full(len(rows), max(total / np.sqrt(max(rows.sum() - beta.size, 1)), 1e-300)), []
    return joint_noise(observation, beta), []


def _robust(
    observation: Observation, loss: str, found: Fit, solve: Callable[[Array], Fit]
) -> tuple[Array, Array, Fit, int]:
    """Weight rows by their residuals and solve again until the base parameters converge."""
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
        if iteration > SCALE_ITERATIONS and (moved < _CONVERGED or rounding):
            return factor, scale, found, iteration
    raise DynidError(f"the {loss} weights did not converge in {_ROBUST_ITERATIONS} iterations")


def _cross_validated(observation: Observation, noise: Array, solve: Callable[[Array, float | None], Fit]) -> float:
    """The weight of the prior whose fits of four fifths of the time predict the other fifth best."""
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
            except DynidError:  # the solver fails where the weight is too small or too large
                errors[i] = np.inf
                continue
            errors[i] += float(np.sum((held_out[:, :-1] @ beta - held_out[:, -1]) ** 2))
    if not np.any(np.isfinite(errors)):
        raise DynidError("cross-validation found no weight of the prior with which all parts can be solved")
    return float(_WEIGHTS[int(np.argmin(errors))])
