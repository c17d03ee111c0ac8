"""Estimators that simulate the closed loop: DIDIM and instrumental variables, each with and without constraints.

All four repeat the same iteration: simulate with the current parameters, build the regressor of the simulated states,
solve. DIDIM regresses the measured torques on the simulated regressor; instrumental variables use it as instruments for
the measured one. The methods PC-DIDIM and PC-IV solve over physically consistent robots only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.constraints import Constraints, Inertia, Signs, constraint_set
from dynid.feasibility.metrics import METRICS, Metric
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.feasible import (
    FeasibleOptions,
    Objective,
    allowed_excess,
    check_excess,
    check_prior_weight,
    feasible,
    feasible_solution,
    preference,
)
from dynid.identification.estimators.options import MethodOptions, Start, check_choice, check_iteration
from dynid.identification.estimators.solution import (
    Iteration,
    Outcome,
    Solution,
    report_iteration,
    solve_factor,
)
from dynid.identification.estimators.wls import joint_noise, wls
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, WeightedRows
from dynid.identification.paired import Paired
from dynid.progress import ProgressCallback
from dynid.robot.parts import checked
from dynid.simulation.simulation import Simulation

__all__ = [
    "DidimOptions",
    "IvOptions",
    "PcDidimOptions",
    "PcIvOptions",
    "aborted",
    "didim",
    "iv",
    "pc_didim",
    "pc_iv",
    "starting_parameters",
    "with_history",
]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 10
_TOLERANCE = 0.025
_STDS = 4.0
_TORQUE_SHARE, _RESIDUAL_CHANGE = 1e-3, 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class DidimOptions(MethodOptions):
    """Options of method "didim".

    Attributes
    ----------
    start : {"prior", "feasible"} or array_like, shape (p,), default "prior"
        Standard parameters of the first simulation: those of the robot, those of method "feasible" on the measured
        regressor, or given values.
    tolerance : float, default 0.025
        The method has converged when no base parameter moves by more than this share of its size.
    max_iterations : int, default 10
        Largest number of iterations.
    """

    start: Start = "prior"
    tolerance: float = _TOLERANCE
    max_iterations: int = _MAX_ITERATIONS

    def __post_init__(self) -> None:
        check_iteration(self.start, self.tolerance, self.max_iterations)


@dataclass(frozen=True, eq=False, kw_only=True)
class IvOptions(DidimOptions):
    """Options of method "iv": those of "didim".

    With `max_iterations=1` the instruments come from the start alone (two-stage least squares).
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class _ConstrainedOptions(DidimOptions):
    """Options that "pc-iv" and "pc-didim" share.

    Attributes
    ----------
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, as for method "feasible".
    prior : array_like, shape (p,), optional
        Standard parameters that are preferred among those that fit equally well; by default those of the start.
    metric : {"euclidean", "pullback", "entropic"}, default "euclidean"
        Distance to the prior.
    excess : float or None, default 0.0
        Allowed excess of the sum of squares, as for method "feasible" (None for the default there). It is zero here
        because the start may be wrong; give None where the prior is meant and bodies should stay near it.
    """

    constraints: Constraints = "full"
    prior: ArrayLike | None = None
    metric: Metric = "euclidean"
    excess: float | None = 0.0

    def __post_init__(self) -> None:
        DidimOptions.__post_init__(self)
        constraint_set(self.constraints)
        check_excess(self.excess)
        check_choice("metric", self.metric, METRICS)


@dataclass(frozen=True, eq=False, kw_only=True)
class PcIvOptions(_ConstrainedOptions):
    """Options of method "pc-iv": those of "didim", and the following.

    Attributes
    ----------
    weight : float, optional
        Weight of the prior against the data. By default the prior decides only among vectors that fit equally well.
    """

    weight: float | None = None

    def __post_init__(self) -> None:
        _ConstrainedOptions.__post_init__(self)
        check_prior_weight(self.weight, ())


@dataclass(frozen=True, eq=False, kw_only=True)
class PcDidimOptions(_ConstrainedOptions):
    """Options of method "pc-didim": those of "didim", and the following.

    Attributes
    ----------
    constraints, prior, metric
        As for method "pc-iv".
    weight : float or "cv", optional
        Weight of the prior against the data, as for method "feasible".
    objective : {"ols", "wls", "huber", "tukey"}, default "wls"
        Weights of the rows, as for method "feasible".
    """

    weight: float | Literal["cv"] | None = None
    objective: Objective = "wls"

    def __post_init__(self) -> None:
        _ConstrainedOptions.__post_init__(self)
        check_prior_weight(self.weight)
        check_choice("objective", self.objective, get_args(Objective))


def didim(
    experiment: Experiment, options: DidimOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Direct and inverse dynamic identification model: weighted least squares on simulated regressors.

    The iterates need not be physically consistent. If one is not, the simulation may stop early; the outcome is then
    ABORTED.
    """
    options = options or DidimOptions()

    def solve(simulations: tuple[Simulation, ...], _: Array) -> tuple[Solution, Observation]:
        observation = experiment.observe(simulations)
        return wls(observation), observation

    return _iterate(experiment, solve, options, options.start, progress)


def pc_didim(
    experiment: Experiment, options: PcDidimOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """DIDIM over physically consistent robots: every simulation is well posed."""
    options = options or PcDidimOptions()
    first = starting_parameters(experiment, options.start)
    each = FeasibleOptions(
        objective=options.objective,
        constraints=options.constraints,
        prior=first if options.prior is None else options.prior,
        metric=options.metric,
        excess=options.excess,
        weight=options.weight,
    )

    def solve(simulations: tuple[Simulation, ...], _: Array) -> tuple[Solution, Observation]:
        observation = experiment.observe(simulations)
        return feasible(observation, each), observation

    return _iterate(experiment, solve, options, first, progress)


def iv(
    experiment: Experiment, options: IvOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Instrumental variables: simulated regressors as instruments for the measured ones."""
    options = options or IvOptions()

    def solve(simulations: tuple[Simulation, ...], beta: Array) -> tuple[Solution, Observation]:
        paired = experiment.pair(simulations)
        noise = joint_noise(paired.measured, _instrumental(paired, joint_noise(paired.measured, beta))[0])
        found, inverse = _instrumental(paired, noise)
        return Solution(found, inverse @ inverse.T, noise, rows=_instrument_rows(paired, noise)), paired.measured

    return _iterate(experiment, solve, options, options.start, progress)


def pc_iv(
    experiment: Experiment, options: PcIvOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Instrumental variables over physically consistent robots.

    The torque errors are projected onto the instruments, and the sum of their squares is minimised.
    """
    options = options or PcIvOptions()
    first = starting_parameters(experiment, options.start)
    allowed = feasible_set(experiment.robot, options.constraints)
    prior = first if options.prior is None else options.prior

    def solve(simulations: tuple[Simulation, ...], beta: Array) -> tuple[Solution, Observation]:
        paired = experiment.pair(simulations)
        noise = joint_noise(paired.measured, _instrumental(paired, joint_noise(paired.measured, beta))[0])
        wanted, _ = preference(
            paired.measured,
            noise,
            prior=prior,
            metric=options.metric,
            excess=allowed_excess(options.excess, paired.base),
            weight=options.weight,
        )
        factor = paired.projected(1.0 / noise)
        return feasible_solution(paired.base, allowed, factor, noise, wanted), paired.measured

    return _iterate(experiment, solve, options, first, progress)


def _instrumental(paired: Paired, noise: Array) -> tuple[Array, Array]:
    """Base parameters whose errors are orthogonal to the instruments, and the root of their covariance."""
    return solve_factor(paired.projected(1.0 / noise), paired.base)


def _instrument_rows(paired: Paired, noise: Array) -> WeightedRows:
    """The weighted rows of instruments and measured regressor."""

    def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        for block in paired.blocks():
            std = noise[block.channel]
            yield block.channel, block.Z / std, np.column_stack([block.X, block.y]) / std, block.index

    return stream


def _iterate(
    experiment: Experiment,
    solve: Callable[[tuple[Simulation, ...], Array], tuple[Solution, Observation]],
    options: DidimOptions,
    start: Start,
    progress: ProgressCallback | None,
) -> tuple[Solution, Observation]:
    """Simulate and solve until base parameters and residual converge.

    A base parameter has converged when it moves by less than `tolerance` times the largest of its value, four of its
    standard deviations, and the change that moves the torques by a thousandth.
    """
    tolerance, max_iterations = options.tolerance, options.max_iterations
    base, pi = experiment.base, starting_parameters(experiment, start)
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    beta, residual = base.values(pi), np.inf
    history: list[Iteration] = []
    solution: Solution | None = None
    rows: Observation | None = None
    for _ in range(max_iterations):
        started = time.perf_counter()
        simulations = experiment.simulate(pi)
        simulated = time.perf_counter()
        if not simulations[-1].completed:
            rows = rows or experiment.measured
            return aborted(solution, beta, rows, history, simulations[-1].outcome), rows
        solution, rows = solve(simulations, beta)
        pi = base.standard(solution.beta, pi) if solution.parameters is None else solution.parameters
        step = float(np.max(np.abs(solution.beta - beta) / _sizes(solution, rows)))
        left = float(np.linalg.norm(rows.residual_norms(solution.beta)) / np.linalg.norm(rows.torque_norms()))
        converged = step <= tolerance and abs(left - residual) <= tolerance * left + _RESIDUAL_CHANGE
        beta, residual = solution.beta, left
        seconds = simulated - started, time.perf_counter() - simulated
        history.append(Iteration(beta, step, left, possible.slack(pi), *seconds))
        report_iteration(progress, history, max_iterations)
        if converged or max_iterations == 1:
            return with_history(solution, "converged" if converged else "one iteration", history), rows
    assert solution is not None and rows is not None
    status = f"not converged in {max_iterations} iterations"
    return with_history(solution, status, history, Outcome.NOT_CONVERGED), rows


def _sizes(solution: Solution, rows: Observation) -> Array:
    """The sizes (b,) that steps of the base parameters are compared with."""
    factor = rows.stacked(1.0 / solution.noise)
    columns = np.linalg.norm(factor[:, :-1], axis=0)
    floor = _TORQUE_SHARE * np.linalg.norm(factor[:, -1]) / np.where(columns > 0, columns, np.inf)
    # Rounding may leave a negative variance of a parameter that active constraints determine.
    std = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
    return np.asarray(np.maximum.reduce([np.abs(solution.beta), _STDS * std, floor]))


def with_history(
    solution: Solution, status: str, history: list[Iteration], outcome: Outcome = Outcome.CONVERGED
) -> Solution:
    """The solution with its status, outcome and iterations."""
    return replace(solution, status=status, outcome=outcome, iterations=len(history), history=tuple(history))


def aborted(
    solution: Solution | None, beta: Array, rows: Observation, history: list[Iteration], outcome: str
) -> Solution:
    """The last solution with outcome ABORTED, because the next iterate could not be simulated."""
    if solution is None:
        unknown = np.full((len(beta), len(beta)), np.nan)
        solution = Solution(beta, unknown, np.full(len(rows.factors), np.nan))
    return with_history(solution, f"aborted in iteration {len(history) + 1}: {outcome}", history, Outcome.ABORTED)


def starting_parameters(experiment: Experiment, start: Start) -> Array:
    """Standard parameters (p,) of the first simulation."""
    robot = experiment.robot
    if isinstance(start, str):
        if start == "prior":
            return robot.parameters
        found = feasible(experiment.measured).parameters
        assert found is not None
        return found
    return checked(start, (len(robot.layout),), "start", DataError)
