"""Least squares over physically consistent robots only: masses positive, inertias of a real mass distribution.

With the factor [R z] of the weighted rows [W y] over the base parameters beta = K pi:

    pi = argmin |R K pi - z|^2 / 2 + weight distance(pi, prior)    subject to cones of pi,

where without a weight the largest one is taken whose fit exceeds the smallest sum of squares by no more than `excess`.

Sources: Sousa and Cortesao, Physical Feasibility of Robot Base Inertial Parameter Identification: A Linear Matrix
Inequality Approach (2014), for least squares under linear matrix inequalities, reduced by QR; Wensing, Kim and Slotine,
Linear Matrix Inequalities for Physically Consistent Inertial Parameter Identification (2018), for the pseudo-inertia;
Lee, Wensing and Park, Geometric Robot Dynamic Identification: A Convex Programming Approach (2020), for the metrics.
The bound on the excess is our own: what noise alone makes of the sum of squares is no reason to leave the prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError, InvalidValue
from dynid.feasibility.box import boxed_set, plausible_box, wall_notes, walls_of
from dynid.feasibility.cone import SOLVERS
from dynid.feasibility.constraints import Constraints, constraint_set
from dynid.feasibility.covariance import bootstrap_covariance, constrained_covariance
from dynid.feasibility.fit import Fit, fit, fit_near_prior
from dynid.feasibility.metrics import METRICS, Metric, hessian_rows, quadratic_rows
from dynid.feasibility.prior import KnownMasses, Prior, consistent_prior, known_masses, wide_bodies
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimators.least_squares import (
    LOSSES,
    SCALE_ITERATIONS,
    Reweighted,
    joint_noise,
    ols,
    reweighted,
    robust_scale,
    rough_noise,
)
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import BodyOptions, check_choice
from dynid.identification.estimators.solution import Outcome, Solution, solve_factor, with_rows
from dynid.identification.jackknife import jackknife
from dynid.identification.observation import Observation, fold, time_parts
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = [
    "FEASIBLE",
    "FeasibleOptions",
    "Preference",
    "allowed_excess",
    "boundary_notes",
    "check_excess",
    "check_prior_weight",
    "correlation",
    "feasible",
    "feasible_fit",
    "feasible_solution",
    "least_squares_rows",
    "preference",
    "retry_notes",
    "row_noise",
    "scaled_to_data",
]

Array = NDArray[np.float64]
Objective = Literal["ols", "wls", "huber", "tukey"]

_WEIGHTS = 10.0 ** np.arange(-3.0, 5.0)
_FOLDS = 5
_ROBUST_ITERATIONS = 50
_CONVERGED = 1e-3
_ROUNDING = 1e-8
# Violations below ten times the tolerance of the solver are not told.
_SOLVED = 1e-8
# Factor by which assumed bodies are at most lighter or heavier than those of typical arms.
_LIGHTEST = 100.0
# Noise alone moves the best fit further than the default excess in all but this share of recordings.
_INDISTINGUISHABLE = 0.01


@dataclass(frozen=True, eq=False, kw_only=True)
class FeasibleOptions(BodyOptions):
    """Options of method "feasible", beside those of `BodyOptions`.

    Attributes
    ----------
    objective : {"ols", "wls", "huber", "tukey"}, default "wls"
        Weights of the rows: the same for all joints, one noise standard deviation per joint, or a robust loss with one
        weight per row.
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, as for `dynid.feasibility.feasible_set`.
    prior : array_like, shape (p,), optional
        Standard parameters that are preferred among those that fit equally well; by default those of the robot. Links
        without a consistent body get one, see `dynid.feasibility.consistent_prior`.
    metric : {"euclidean", "pullback", "entropic"}, default "entropic"
        Distance to the prior, as in `dynid.feasibility`.
    excess : float, optional
        Among the robots whose sum of squared torque errors, in units of independent noise, exceeds the smallest one by
        no more than this, the one nearest to the prior is taken. By default the 1 % quantile of chi-squared with as
        many degrees of freedom as base parameters: noise alone moves the best fit further in 99 of 100 recordings. With
        0 the fit is the best one, even if it needs bodies of any mass; the prior then decides only among vectors that
        fit equally well.
    weight : float or "cv", optional
        Weight of the prior against the data, instead of `excess`; "cv" chooses it by cross-validation over segments of
        time. With 1, a pseudo-inertia is known within a factor of about two.
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
    metric: Metric = "entropic"
    excess: float | None = None
    weight: float | Literal["cv"] | None = None
    bootstrap: int = 0
    seed: int = 0
    solver: str = "clarabel"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("objective", self.objective, get_args(Objective))
        check_choice("metric", self.metric, METRICS)
        check_prior_weight(self.weight)
        check_excess(self.excess)
        constraint_set(self.constraints)
        check_choice("solver", self.solver, tuple(SOLVERS))
        if self.bootstrap < 0 or self.bootstrap == 1:
            raise InvalidValue(
                f"bootstrap must be 0 or a number of at least two draws, got {self.bootstrap}", "bootstrap"
            )


def check_prior_weight(weight: object, words: tuple[str, ...] = ("cv",)) -> None:
    """Raise a DataError unless the weight of a prior is None, positive, or one of the words."""
    number = isinstance(weight, int | float) and not isinstance(weight, bool) and weight > 0
    if weight is not None and weight not in words and not number:
        other = "".join(f" or '{word}'" for word in words)
        raise InvalidValue(f"the weight of the prior must be positive{other}, got {weight!r:.40}", "weight")


def allowed_excess(excess: float | None, base: BaseParameters) -> float:
    """The allowed excess of the sum of squares in units of independent noise."""
    return float(scipy.stats.chi2.ppf(_INDISTINGUISHABLE, base.count)) if excess is None else excess


def check_excess(excess: object) -> None:
    """Raise a DataError unless the allowed excess of the sum of squares is a number that is not negative."""
    if excess is None:
        return
    if isinstance(excess, bool) or not isinstance(excess, int | float) or not excess >= 0:
        raise InvalidValue(f"excess must be a number that is not negative, got {excess!r:.40}", "excess")


@dataclass(frozen=True, eq=False)
class Preference:
    """Which of many feasible robots is taken: the prior, the distance from it, and how much it counts.

    Attributes
    ----------
    prior : ndarray, shape (p,)
        Physically consistent standard parameters.
    scale : ndarray, shape (p,)
        Units of parameters that are measured by their difference.
    metric : {"euclidean", "pullback", "entropic"}
        Distance to the prior.
    excess : float
        Allowed excess of the sum of squares, for white noise of unit variance.
    weight : float or None
        Weight of the prior, instead of the excess.
    solver : str
        Solver of the cone program.
    bodies : Prior or None
        The a-priori bodies, and which of them were assumed.
    """

    prior: Array
    scale: Array
    metric: Metric
    excess: float
    weight: float | None = None
    solver: str = "clarabel"
    bodies: Prior | None = None

    def solve(self, feasible: FeasibleSet, R: Array, z: Array) -> Fit:
        """The preferred feasible fit of R pi = z."""
        if self.weight is None and self.excess > 0:
            cost = 0.5 * self.excess
            return fit_near_prior(feasible, R, z, self.prior, cost, self.metric, self.solver, self.scale)
        return fit(feasible, R, z, self.prior, self.metric, self.weight, self.solver, self.scale)

    def rows(self, feasible: FeasibleSet, parameters: Array) -> Array:
        """Rows (k, p) of a prior that knows each pseudo-inertia within a factor of about two."""
        wide = wide_bodies(feasible.robot, parameters, self.prior)
        return quadratic_rows(feasible.robot, wide, "pullback", self.scale)[0]


def preference(
    observation: Observation,
    noise: Array,
    *,
    prior: ArrayLike | None = None,
    metric: Metric = "entropic",
    excess: float = 1.0,
    weight: float | None = None,
    solver: str = "clarabel",
    known: KnownMasses | None = None,
) -> tuple[Preference, list[str]]:
    """The preference of an observation with given noise (channel,), and notes on its prior.

    Robots without bodies get a prior from their geometry whose mass the data choose, unless it is known. Drive
    parameters are measured in units in which they would explain all torques. `excess` is in units of white noise: with
    autocorrelated residuals the caller multiplies it by `correlation`.
    """
    robot = observation.robot
    given = None if prior is None else checked(prior, (len(robot.layout),), "prior", DataError)
    bodies = consistent_prior(robot, given)
    factor = observation.stacked(1.0 / noise)
    rows = factor[:, :-1] @ observation.base.matrix
    size = np.linalg.norm(rows, axis=0)
    inertial = np.array([p.inertial for p in robot.layout])
    torque = float(np.linalg.norm(factor[:, -1]))
    unit = np.where((size > 0) & (torque > 0), torque / np.where(size > 0, size, 1.0), 1.0)
    scale = np.where(inertial, feasible_set(robot).scale[: len(robot.layout)], unit)
    notes = bodies.notes()
    if known is not None and (known.total is not None or known.links):
        bodies = bodies.weighing(robot, known.total, known.links)
    elif bodies.complete:
        bodies, note = scaled_to_data(robot, bodies, rows, factor[:, -1], inertial)
        notes.append(note)
    return Preference(bodies.parameters, scale, metric, excess, weight, solver, bodies), notes


def scaled_to_data(
    robot: Robot, bodies: Prior, rows: Array, torque: Array, inertial: NDArray[np.bool_]
) -> tuple[Prior, str]:
    """Assumed bodies times the factor with which they explain the torques best, beside all drive parameters."""
    columns = np.column_stack([rows[:, inertial] @ bodies.parameters[inertial], rows[:, ~inertial]])
    size = np.linalg.norm(columns, axis=0)
    used = size > 0
    values = np.linalg.lstsq(columns[:, used] / size[used], torque, rcond=1e-8)[0]
    factor = float(values[0] / size[0]) if used[0] else 0.0
    if factor <= 0:
        return bodies, "the data do not show the mass of these bodies: that of typical arms is assumed"
    scaled = bodies.scaled(robot, float(np.clip(factor, 1 / _LIGHTEST, _LIGHTEST)))
    masses = [v for v, p in zip(scaled.parameters, robot.layout, strict=True) if p.inertial and p.symbol == "m"]
    return scaled, f"the data choose {sum(masses):.3g} kg for the sum of these bodies"


def feasible(observation: Observation, options: FeasibleOptions | None = None) -> Solution:
    """Minimise the weighted sum of squares over the robots that satisfy the constraints.

    The data determine base parameters only, and those within their noise. Among the standard vectors that the data
    cannot distinguish from the best the one nearest to the prior is taken.
    """
    options = options or FeasibleOptions()
    objective = options.objective
    base = observation.base
    known = known_masses(base.robot, options.mass, options.link_masses)
    noise, notes = row_noise(observation, objective)
    weight = None if options.weight == "cv" else options.weight
    wanted, remarks = preference(
        observation,
        noise,
        prior=options.prior,
        metric=options.metric,
        excess=allowed_excess(options.excess, base) * correlation(observation, noise),
        weight=weight,
        solver=options.solver,
        known=known,
    )
    notes += remarks
    box = None
    if options.box:
        assert wanted.bodies is not None
        box = plausible_box(base.robot, wanted.bodies, mass=known.total, link_masses=known.links)
    allowed = boxed_set(base.robot, options.constraints, box)
    factor = observation.stacked(1.0 / noise)

    def solve(factor: Array, wanted: Preference) -> Fit:
        return feasible_fit(base, allowed, factor, wanted)

    if options.weight == "cv":
        wanted = _cross_validated(observation, noise, wanted, solve)
        notes.append(f"weight of the prior by cross-validation: {wanted.weight:g}")
    found, iterations = solve(factor, wanted), 1
    weighted = None
    if objective in LOSSES:
        held = replace(wanted, weight=found.weight)
        factor, noise, found, iterations = _robust(observation, objective, found, lambda f: solve(f, held))
        # The best fit with the weights of the last iteration, from which the prior moved the estimate.
        if wanted.weight is None:
            near = solve(factor, wanted)
            found = replace(found, best=near.best, failed=near.failed)
        weighted = Reweighted(base.matrix @ found.parameters, noise, objective)
    solution = _solution(base, factor, found, noise, wanted)
    if box is not None:
        weight = found.weight
        walls = walls_of(box, found, lambda: _unconstrained(base, factor, wanted, weight))
        solution = replace(solution, walls=walls, notes=(*solution.notes, *box.notes, *wall_notes(walls)))
    if options.bootstrap:
        R, _ = least_squares_rows(factor, base.matrix, allowed)
        held = replace(wanted, weight=found.weight)
        covariance = bootstrap_covariance(
            lambda z: base.matrix @ held.solve(allowed, R, z).parameters,
            R[:, : allowed.size] @ found.parameters,
            options.bootstrap,
            seed=options.seed,
        )
        solution = replace(solution, covariance=covariance, parameter_covariance=None, prior_rows=None, resampled=True)
        notes.append(f"standard deviations from {options.bootstrap} solves with simulated white noise")
    solution = replace(solution, iterations=iterations, notes=(*notes, *solution.notes))
    return solution if weighted is None else with_rows(solution, observation, weighted)


FEASIBLE = Method(
    name="feasible",
    sentence="Weighted least squares over physically consistent robots, near the a-priori one.",
    options=FeasibleOptions,
    function=feasible,
    robust_options={"objective": tuple(LOSSES)},
    has_prior=True,
    consistent=True,
)


def _unconstrained(base: BaseParameters, factor: Array, wanted: Preference, weight: float) -> Array:
    """Standard parameters (p,) that the data and the prior want without any constraint."""
    rows, target = quadratic_rows(base.robot, wanted.prior, "pullback", wanted.scale)
    stacked = np.vstack([factor[:, :-1] @ base.matrix, np.sqrt(weight) * rows])
    size = np.linalg.norm(stacked, axis=0)
    found = np.linalg.lstsq(stacked / size, np.concatenate([factor[:, -1], np.sqrt(weight) * target]), rcond=None)[0]
    return np.asarray(found / size)


def feasible_fit(base: BaseParameters, allowed: FeasibleSet, factor: Array, wanted: Preference) -> Fit:
    """The preferred feasible fit to a whitened factor of [W y]."""
    return wanted.solve(allowed, *least_squares_rows(factor, base.matrix, allowed))


def feasible_solution(
    base: BaseParameters, allowed: FeasibleSet, factor: Array, noise: Array, wanted: Preference
) -> Solution:
    """Least squares over physically consistent robots from a whitened factor of [W y]."""
    return _solution(base, factor, feasible_fit(base, allowed, factor, wanted), noise, wanted)


def _solution(base: BaseParameters, factor: Array, found: Fit, noise: Array, wanted: Preference) -> Solution:
    """A fit with its covariance; the prior determines what the data do not."""
    K, allowed = base.matrix, found.feasible
    R, _ = least_squares_rows(factor, K, allowed)
    pinned = np.sqrt(found.weight) * hessian_rows(allowed, found.parameters, wanted.prior, wanted.metric, wanted.scale)
    standard = constrained_covariance(found, R, pinned)
    active = found.active
    notes = [f"{len(active)} constraints are active: {', '.join(active)}"] if active else []
    notes += retry_notes(found) + boundary_notes(found)
    if wanted.weight is None and not wanted.excess and found.visible:
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
        prior_rows=wanted.rows(allowed, found.parameters),
        equalities=_equalities(allowed),
        shift=None if found.best is None else K @ (found.parameters - found.best),
    )


def retry_notes(found: Fit) -> list[str]:
    """A remark where the solver needed a larger weight of the prior for the best fit."""
    if not found.failed:
        return []
    failed = ", ".join(f"{w:.1g}" for w in found.failed)
    return [
        f"the solver failed with the weight {failed} of the prior: the smallest sum of squares is that of a larger "
        "weight, so the estimate may exceed the true minimum by more than was asked"
    ]


def boundary_notes(found: Fit) -> list[str]:
    """A remark where the solver ended clearly outside of the constraints."""
    if found.outside <= _SOLVED:
        return []
    ended = f"the solver ended outside of the constraints, by {found.outside:.2g} of their units"
    if not found.inside:
        return [f"{ended}, and no point inside was found beside it"]
    return [f"{ended}; the nearest point inside changes the sum of squares by {2 * found.restoring:.2g}"]


def _equalities(allowed: FeasibleSet) -> Array:
    """Rows (k, p) of the equalities between standard parameters."""
    every = [b.matrix.toarray() for b in allowed.blocks if b.cone == "zero"]
    rows = [block[~np.any(block[:, allowed.size :], axis=1), : allowed.size] for block in every]
    return np.vstack(
        [np.zeros((0, allowed.size)), *(np.pad(r, ((0, 0), (0, allowed.size - r.shape[1]))) for r in rows)]
    )


def least_squares_rows(factor: Array, K: Array, allowed: FeasibleSet) -> tuple[Array, Array]:
    """Least-squares rows over all unknowns, without the row that holds only the residual."""
    b = len(K)
    rows = factor[:b] if len(factor) == b + 1 else factor
    return np.pad(rows[:, :-1] @ K, ((0, 0), (0, allowed.extra))), rows[:, -1]


def row_noise(observation: Observation, objective: str) -> tuple[Array, list[str]]:
    """Noise standard deviation per channel from least squares, or a tenth of the torque if the motion is too poor."""
    rows = np.array(observation.rows, dtype=float)
    try:
        beta = ols(observation).beta
    except DynidError as error:
        note = f"{error}; they are taken from the prior, and the noise is assumed to be a tenth of the torque"
        return rough_noise(observation), [note]
    if objective == "ols":
        total = np.linalg.norm(observation.residual_norms(beta))
        return np.full(len(rows), max(total / np.sqrt(max(rows.sum() - beta.size, 1)), 1e-300)), []
    return joint_noise(observation, beta), []


def correlation(observation: Observation, noise: Array) -> float:
    """Variance of the least-squares estimate relative to that of white noise, median of the base parameters.

    1 where the motion does not determine all parameters, or where the samples are not kept.
    """
    try:
        beta = solve_factor(observation.stacked(1.0 / noise), observation.base)[0]
    except DynidError:
        return 1.0
    found = jackknife(observation, beta, noise)
    return 1.0 if found is None else max(float(np.median(found.ratio**2)), 1.0)


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
    raise DynidError(f"the {loss} weights did not converge in {_ROBUST_ITERATIONS} iterations", code="not_converged")


def _cross_validated(
    observation: Observation, noise: Array, wanted: Preference, solve: Callable[[Array, Preference], Fit]
) -> Preference:
    """The weight of the prior whose fits of four fifths of the time predict the other fifth best."""
    factors = [np.vstack([f / n for f, n in zip(part, noise, strict=True)]) for part in time_parts(observation, _FOLDS)]
    K = observation.base.matrix
    errors = np.zeros(len(_WEIGHTS))
    for k, held_out in enumerate(factors):
        train = fold(np.vstack([f for i, f in enumerate(factors) if i != k]))
        for i, weight in enumerate(_WEIGHTS):
            try:
                beta = K @ solve(train, replace(wanted, weight=float(weight))).parameters
            except DynidError:  # the solver fails where the weight is too small or too large
                errors[i] = np.inf
                continue
            errors[i] += float(np.sum((held_out[:, :-1] @ beta - held_out[:, -1]) ** 2))
    if not np.any(np.isfinite(errors)):
        raise DynidError(
            "cross-validation found no weight of the prior with which all parts can be solved", code="not_converged"
        )
    return replace(wanted, weight=float(_WEIGHTS[int(np.argmin(errors))]))
