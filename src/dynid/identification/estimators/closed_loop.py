"""Estimators that simulate the closed loop: DIDIM and instrumental variables, plain or over possible robots only.

All four repeat one round: simulate with the present parameters, build the regressor from simulated states, solve. DIDIM
regresses the measured torques on it; instrumental variables use it to judge the measured regressor by.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.constraints import Constraints, Inertia, Signs
from dynid.feasibility.metrics import Metric
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.feasible import Objective, feasible, possible_solution
from dynid.identification.estimators.solution import Iteration, Solution, report_iteration, solve_factor
from dynid.identification.estimators.wls import joint_noise, wls
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation
from dynid.identification.paired import Paired
from dynid.robot.parts import checked
from dynid.simulation.engine import Simulation

__all__ = ["Start", "aborted", "didim", "iv", "pc_didim", "pc_iv", "starting_parameters", "with_history"]

Array = NDArray[np.float64]
Start = ArrayLike | Literal["prior", "feasible"]

_MAX_ITERATIONS = 10
_TOLERANCE = 0.025
_DEVIATIONS = 4.0
_NOTICED, _NOTHING = 1e-3, 1e-6


def didim(
    experiment: Experiment, start: Start = "prior", tolerance: float = _TOLERANCE, max_iterations: int = _MAX_ITERATIONS
) -> tuple[Solution, Observation]:
    """Direct and inverse identification model: weighted least squares on simulated regressors, to convergence.

    Nothing keeps an iterate physically possible: one that is not may end the simulation, and the estimate says so.
    """

    def solve(simulations: tuple[Simulation, ...], _: Array) -> tuple[Solution, Observation]:
        observation = experiment.observe(simulations)
        return wls(observation), observation

    return _iterate(experiment, solve, start, tolerance, max_iterations)


def pc_didim(
    experiment: Experiment,
    start: Start = "prior",
    tolerance: float = _TOLERANCE,
    max_iterations: int = _MAX_ITERATIONS,
    objective: Objective = "wls",
    constraints: Constraints = "full",
    prior: ArrayLike | None = None,
    metric: Metric = "euclidean",
    weight: float | None = None,
) -> tuple[Solution, Observation]:
    """DIDIM over possible robots: every iterate can be built, so every simulation is well posed.

    Options as for `feasible`; the prior that decides among equally good vectors is the start unless given.
    """
    first = starting_parameters(experiment, start)

    def solve(simulations: tuple[Simulation, ...], _: Array) -> tuple[Solution, Observation]:
        observation = experiment.observe(simulations)
        pull_to = first if prior is None else prior
        return feasible(observation, objective, constraints, pull_to, metric, weight), observation

    return _iterate(experiment, solve, first, tolerance, max_iterations)


def iv(
    experiment: Experiment, start: Start = "prior", tolerance: float = _TOLERANCE, max_iterations: int = _MAX_ITERATIONS
) -> tuple[Solution, Observation]:
    """Instrumental variables: simulated regressors as instruments for the measured ones.

    With max_iterations=1 the instruments come from the start alone (two-stage); otherwise they are refined to convergence.
    """

    def solve(simulations: tuple[Simulation, ...], beta: Array) -> tuple[Solution, Observation]:
        paired = experiment.pair(simulations)
        noise = joint_noise(paired.measured, _instrumental(paired, joint_noise(paired.measured, beta))[0])
        found, inverse, condition = _instrumental(paired, noise)
        return Solution(found, inverse @ inverse.T, noise, condition), paired.measured

    return _iterate(experiment, solve, start, tolerance, max_iterations)


def pc_iv(
    experiment: Experiment,
    start: Start = "prior",
    tolerance: float = _TOLERANCE,
    max_iterations: int = _MAX_ITERATIONS,
    constraints: Constraints = "full",
    prior: ArrayLike | None = None,
    metric: Metric = "euclidean",
    weight: float | None = None,
) -> tuple[Solution, Observation]:
    """Instrumental variables over possible robots: the torque errors that instruments can see, made least."""
    first = starting_parameters(experiment, start)
    possible = feasible_set(experiment.robot, constraints)
    pull_to = first if prior is None else checked(prior, first.shape, "prior", DataError)

    def solve(simulations: tuple[Simulation, ...], beta: Array) -> tuple[Solution, Observation]:
        paired = experiment.pair(simulations)
        noise = joint_noise(paired.measured, _instrumental(paired, joint_noise(paired.measured, beta))[0])
        factor = paired.projected(1.0 / noise)
        return possible_solution(paired.base, possible, factor, noise, pull_to, metric, weight), paired.measured

    return _iterate(experiment, solve, first, tolerance, max_iterations)


def _instrumental(paired: Paired, noise: Array) -> tuple[Array, Array, float]:
    """Base values whose errors no instrument sees, the root of their covariance, and the condition number."""
    return solve_factor(paired.projected(1.0 / noise), paired.base)


def _iterate(
    experiment: Experiment,
    solve: Callable[[tuple[Simulation, ...], Array], tuple[Solution, Observation]],
    start: Start,
    tolerance: float,
    max_iterations: int,
) -> tuple[Solution, Observation]:
    """Simulate and solve until base values and residual settle.

    A base value has converged when it moves by less than `tolerance` of itself, of four deviations (by less than a tenth
    of one nothing is learnt) or of a thousandth of the torque, whichever is largest.
    """
    if max_iterations < 1 or not tolerance > 0:
        raise DataError(
            f"at least one iteration and a positive tolerance are needed, got {max_iterations} and {tolerance}"
        )
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
        if not simulations[-1].finished:
            rows = rows or experiment.measured
            return aborted(solution, beta, rows, history, simulations[-1].outcome), rows
        solution, rows = solve(simulations, beta)
        pi = base.standard(solution.beta, pi) if solution.parameters is None else solution.parameters
        step = float(np.max(np.abs(solution.beta - beta) / _sizes(solution, rows)))
        left = float(np.linalg.norm(rows.residual_norms(solution.beta)) / np.linalg.norm(rows.torque_norms()))
        converged = step <= tolerance and abs(left - residual) <= tolerance * left + _NOTHING
        beta, residual = solution.beta, left
        seconds = simulated - started, time.perf_counter() - simulated
        history.append(Iteration(beta, step, left, possible.slack(pi), *seconds))
        report_iteration(history, max_iterations)
        if converged or max_iterations == 1:
            return with_history(solution, "converged" if converged else "one iteration", history), rows
    assert solution is not None and rows is not None
    return with_history(solution, f"not converged in {max_iterations} iterations", history), rows


def _sizes(solution: Solution, rows: Observation) -> Array:
    """What the steps of base values are compared with (b,)."""
    factor = rows.stacked(1.0 / solution.noise)
    columns = np.linalg.norm(factor[:, :-1], axis=0)
    floor = _NOTICED * np.linalg.norm(factor[:, -1]) / np.where(columns > 0, columns, np.inf)
    deviations = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))  # rounding of a value held by constraints
    return np.asarray(np.maximum.reduce([np.abs(solution.beta), _DEVIATIONS * deviations, floor]))


def with_history(solution: Solution, status: str, history: list[Iteration]) -> Solution:
    return replace(solution, status=status, iterations=len(history), history=tuple(history))


def aborted(
    solution: Solution | None, beta: Array, rows: Observation, history: list[Iteration], outcome: str
) -> Solution:
    """The last iterate, marked as one that could not be simulated."""
    if solution is None:
        unknown = np.full((len(beta), len(beta)), np.nan)
        solution = Solution(beta, unknown, np.full(len(rows.factors), np.nan), np.nan)
    return with_history(solution, f"aborted in round {len(history) + 1}: {outcome}", history)


def starting_parameters(experiment: Experiment, start: Start) -> Array:
    """Standard parameters (p,) of the first simulation."""
    robot = experiment.robot
    if isinstance(start, str):
        if start == "prior":
            return robot.parameters
        if start == "feasible":
            found = feasible(experiment.measured).parameters
            assert found is not None
            return found
        raise DataError(f"start '{start}' is unknown: use prior, feasible or standard parameters")
    return checked(start, (len(robot.layout),), "start", DataError)
