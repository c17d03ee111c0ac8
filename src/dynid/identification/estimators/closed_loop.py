"""Estimators that simulate the closed loop: DIDIM, instrumental variables, output error and input error.

DIDIM and instrumental variables, each with and without constraints, repeat the same iteration: simulate with the
current parameters, build the regressor of the simulated states, solve. DIDIM regresses the measured torques on the
simulated regressor; instrumental variables use it as instruments for the measured one. The methods PC-DIDIM and PC-IV
solve over physically consistent robots only.

Closed-loop output error compares positions, input error torques: simulated signals are fitted to measured ones by
Levenberg-Marquardt. Sensitivities come from finite differences, one simulation per base parameter, so they include the
effect of a parameter on the whole loop, where DIDIM uses the regressor alone.

With the measured regressor X, the simulated one Z at the parameters before, measured torques y and the noise of the
joints divided out, and with the errors e(beta) of simulated positions or torques and their sensitivities S:

    didim         beta <- argmin |y - Z beta|^2
    iv            beta <- (Z'X)^-1 Z'y,    covariance (X' P X)^-1, with P the projection onto the columns of Z
    pc-didim      pi <- argmin |y - Z K pi|^2 over physically consistent pi
    pc-iv         pi <- argmin |P (y - X K pi)|^2 over physically consistent pi
    cloe, clie    beta <- beta + argmin |e - S d|^2 + damping |diag(|S_i|) d|^2 over d

Sources: Gautier, Janot and Vandanjon, A New Closed-Loop Output Error Method for Parameter Identification of Robot
Dynamics (2013), for DIDIM; Janot, Vandanjon and Gautier, A Generic Instrumental Variable Approach for Industrial Robot
Identification (2014), for IV; Janot and Wensing, Sequential Semidefinite Optimization for Physically and Statistically
Consistent Robot Identification (2021), equations 45 to 49, for PC-DIDIM; Landau and Karimi, Recursive Algorithms for
Identification in Closed Loop (1997), for output error in closed loop; Marquardt, An Algorithm for Least-Squares
Estimation of Nonlinear Parameters (1963), for the damping. The projected residual of pc-iv is that of two-stage least
squares, under constraints of our own choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import thread_count
from dynid.errors import DataError, NotApplicable, TooFew
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
from dynid.identification.estimators.least_squares import joint_noise, wls
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import MethodOptions, Start, check_choice, check_iteration
from dynid.identification.estimators.solution import (
    Iteration,
    Outcome,
    Solution,
    report_iteration,
    solve_factor,
)
from dynid.identification.experiment import Experiment, Paired
from dynid.identification.observation import Observation, WeightedRows, fold
from dynid.progress import ProgressCallback
from dynid.robot.parts import checked
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, prepare
from dynid.simulation.integrators import Integrator
from dynid.simulation.plant import friction_rate
from dynid.simulation.simulation import Simulation

__all__ = [
    "CLIE",
    "CLOE",
    "DIDIM",
    "IV",
    "PC_DIDIM",
    "PC_IV",
    "ClieOptions",
    "CloeOptions",
    "DidimOptions",
    "IvOptions",
    "PcDidimOptions",
    "PcIvOptions",
    "aborted",
    "clie",
    "cloe",
    "didim",
    "friction_decay",
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


DIDIM = Method(
    name="didim",
    sentence="Weighted least squares on the regressor of simulated motion (DIDIM).",
    options=DidimOptions,
    function=didim,
    takes="experiment",
    uses_controller=True,
    feedback_free=True,
    alternating=True,
)


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


PC_DIDIM = Method(
    name="pc-didim",
    sentence="DIDIM over physically consistent robots.",
    options=PcDidimOptions,
    function=pc_didim,
    takes="experiment",
    uses_controller=True,
    has_prior=True,
    consistent=True,
    feedback_free=True,
    alternating=True,
)


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


IV = Method(
    name="iv",
    sentence="Instrumental variables: simulated regressors are instruments for the measured ones.",
    options=IvOptions,
    function=iv,
    takes="experiment",
    uses_controller=True,
    feedback_free=True,
)


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


PC_IV = Method(
    name="pc-iv",
    sentence="Instrumental variables over physically consistent robots.",
    options=PcIvOptions,
    function=pc_iv,
    takes="experiment",
    uses_controller=True,
    consistent=True,
    feedback_free=True,
    alternating=True,
)


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


Signal = Literal["q", "torque"]

_MAX_OUTPUT_ERROR = 20
# A finite difference changes the torques by this share: far above rounding, and small enough to be linear.
_DIFFERENCE = 1e-4
_DAMPING, _LEAST_DAMPING, _LARGEST_DAMPING = 1e-3, 1e-12, 1e6


@dataclass(frozen=True, eq=False, kw_only=True)
class CloeOptions(MethodOptions):
    """Options of method "cloe".

    Attributes
    ----------
    start : {"prior", "feasible"} or array_like, shape (p,), default "prior"
        Standard parameters of the first simulation, as for method "didim".
    tolerance : float, default 0.025
        The method has converged when the undamped step changes no base parameter by more than this share of its size.
    max_iterations : int, default 20
        Largest number of iterations.
    """

    start: Start = "prior"
    tolerance: float = _TOLERANCE
    max_iterations: int = _MAX_OUTPUT_ERROR

    def __post_init__(self) -> None:
        check_iteration(self.start, self.tolerance, self.max_iterations)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClieOptions(CloeOptions):
    """Options of method "clie": those of "cloe"."""


def cloe(
    experiment: Experiment, options: CloeOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Closed-loop output error: the base parameters whose simulated positions are closest to the measured ones."""
    return _fit(experiment, "q", options or CloeOptions(), progress)


CLOE = Method(
    name="cloe",
    sentence="Closed-loop output error: simulated positions are closest to the measured ones.",
    options=CloeOptions,
    function=cloe,
    takes="experiment",
    uses_controller=True,
    fits_torques=False,
)


def clie(
    experiment: Experiment, options: ClieOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Closed-loop input error: the base parameters whose simulated torques are closest to the measured ones."""
    return _fit(experiment, "torque", options or ClieOptions(), progress)


CLIE = Method(
    name="clie",
    sentence="Closed-loop input error: simulated torques are closest to the measured ones.",
    options=ClieOptions,
    function=clie,
    takes="experiment",
    uses_controller=True,
    fits_torques=False,
)


def friction_decay(experiment: Experiment, parameters: Array, period: float) -> float:
    """Largest decay exponent of a joint velocity by friction in one period: the stiffness that an integrator meets."""
    return max(friction_rate(experiment.robot, parameters, run.q) for run in experiment.recording.runs) * period


@dataclass(frozen=True, eq=False)
class _Point:
    """Base parameters, their simulations, and measured minus simulated (K, channel), empty if a simulation stopped."""

    beta: Array
    simulations: tuple[Simulation, ...]
    errors: Array

    @property
    def completed(self) -> bool:
        return self.simulations[-1].completed


@dataclass(frozen=True, eq=False)
class _Comparison:
    """One signal of an experiment, measured and simulated, with the same filters."""

    experiment: Experiment
    signal: Signal
    start: Array  # standard parameters (p,)

    def standard(self, beta: Array) -> Array:
        return self.experiment.base.standard(beta, self.start)

    @cached_property
    def fixed(self) -> Experiment:
        """The experiment with a fixed number of integrator steps per period, so that finite differences are smooth."""
        loop = self.experiment.loop
        if loop.integrator != "dopri5" and loop.substeps is None:
            method = loop.integration(friction_decay(self.experiment, self.start, 1.0 / self.experiment.law.rate))
            chosen: Integrator = "implicit" if method.implicit else "rk4"
            name = chosen if loop.integrator == "auto" else loop.integrator
            loop = replace(loop, integrator=name, substeps=method.substeps)
        return replace(self.experiment, loop=loop)

    def at(self, beta: Array) -> _Point:
        simulations = self.fixed.simulate(self.standard(beta))
        if not simulations[-1].completed:
            return _Point(beta, simulations, np.zeros((0, len(self.experiment.base.channels))))
        parts = []
        for motion, simulation in zip(self.experiment.motions, simulations, strict=True):
            # Only the recording is delayed; a cut-off that "auto" found in the measurement is used for both.
            settings = replace(
                self.experiment.signals,
                cutoff=motion.cutoff,
                decimate=motion.decimate,
                delay=0.0,
                measured_velocity=False,
                measured_acceleration=False,
            )
            parts.append(self._thinned(prepare(simulation.run(motion.name), settings)))
        simulated = np.vstack(parts)
        if simulated.shape != self.measured.shape:
            raise NotApplicable("a run is unevenly sampled; resample it to the controller's clock first")
        return _Point(beta, simulations, self.measured - simulated)

    def around(self, point: _Point) -> list[_Point]:
        """The point with each base parameter changed by its finite difference."""
        moved = point.beta + np.diag(self.differences)
        with ThreadPoolExecutor(thread_count()) as pool:
            return list(pool.map(self.at, moved))

    @cached_property
    def measured(self) -> Array:
        return np.vstack([self._thinned(motion) for motion in self.experiment.motions])

    @cached_property
    def differences(self) -> Array:
        """Change of each base parameter (b,) that changes the torques by a small share."""
        observation = self.experiment.measured
        size = observation.torque_norms()
        effect = np.linalg.norm(observation.stacked(1.0 / np.where(size > 0, size, np.inf))[:, :-1], axis=0)
        return np.asarray(_DIFFERENCE / np.where(effect > 0, effect, 1.0))

    def std(self, errors: Array) -> Array:
        """Standard deviation of the errors of each channel (channel,), not below the rounding error of the signal."""
        rows, channels = errors.shape
        freedom = rows - self.experiment.base.count / channels
        if freedom < 1:
            raise TooFew(f"{rows} samples are left for {self.experiment.base.count} base parameters; record longer")
        least = 1e-12 * np.linalg.norm(self.measured, axis=0) / np.sqrt(rows)
        return np.maximum(np.linalg.norm(errors, axis=0) / np.sqrt(freedom), np.where(least > 0, least, 1.0))

    def _thinned(self, motion: Motion) -> Array:
        columns = [self.experiment.robot.coordinates.index(c) for c in self.experiment.base.channels]
        thin = decimate(getattr(motion, self.signal)[:, columns], motion.decimate)
        lead = motion.lead // int(np.prod(motion.decimate)) if motion.decimate else 0
        return thin[lead : len(thin) - lead]


def _fit(
    experiment: Experiment, signal: Signal, options: CloeOptions, progress: ProgressCallback | None
) -> tuple[Solution, Observation]:
    """Levenberg-Marquardt with channels weighted by the standard deviation of their errors, updated every iteration.

    A step is accepted if it lowers the weighted errors, which lowers the sum of log standard deviations too; it is
    rejected if its simulation stops early. The method has converged when the undamped step changes no base parameter by
    more than `tolerance` times the largest of its value, its standard deviation and its finite difference.
    """
    tolerance, max_iterations = options.tolerance, options.max_iterations
    base = experiment.base
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    comparison = _Comparison(experiment, signal, starting_parameters(experiment, options.start))
    point, damping, stopped = comparison.at(base.values(comparison.start)), _DAMPING, 0
    rows, solution = experiment.measured, None
    history: list[Iteration] = []
    if not point.completed:
        return aborted(None, point.beta, rows, history, point.simulations[-1].outcome), rows
    status, outcome = f"not converged in {max_iterations} iterations", Outcome.NOT_CONVERGED
    while len(history) < max_iterations:
        started = time.perf_counter()
        around = comparison.around(point)
        lost = [x.simulations[-1].outcome for x in around if not x.completed]
        if lost:
            return aborted(solution, point.beta, rows, history, lost[0]), rows
        simulated = time.perf_counter()
        std = comparison.std(point.errors)
        slopes, errors = _weighted(point, around, comparison.differences, std)
        factor = fold(np.asfortranarray(np.column_stack([slopes.reshape(-1, base.count), errors.ravel()])))
        move, inverse = solve_factor(factor, base)
        size = np.maximum(np.abs(point.beta), np.linalg.norm(inverse, axis=1))
        step = float(np.max(np.abs(move) / np.maximum(size, comparison.differences)))
        solved = time.perf_counter()
        better, damping, refused = _better(comparison, point, factor, std, damping)
        point, stopped = better or point, stopped + refused
        rows = experiment.observe(point.simulations)
        covariance = _covariance(slopes, (point.errors / std).T, inverse)
        solution = Solution(point.beta, covariance, joint_noise(rows, point.beta))
        seconds = simulated - started + time.perf_counter() - solved, solved - simulated
        left = float(np.mean((point.errors / std) ** 2))
        history.append(Iteration(point.beta, step, left, possible.slack(comparison.standard(point.beta)), *seconds))
        report_iteration(progress, history, max_iterations)
        if step <= tolerance:
            status, outcome = "converged", Outcome.CONVERGED
            break
        if better is None:
            status, outcome = f"stalled in iteration {len(history)}: no step lowers the errors", Outcome.STALLED
            break
    assert solution is not None
    names = {"q": "positions", "torque": "torques"}
    notes = [f"standard deviation of {names[signal]}: " + ", ".join(f"{x:.3g}" for x in comparison.std(point.errors))]
    if stopped:
        notes.append(f"{stopped} trial steps were rejected because their simulation stopped early")
    return with_history(replace(solution, notes=tuple(notes)), status, history, outcome), rows


def _better(
    comparison: _Comparison, point: _Point, factor: Array, std: Array, damping: float
) -> tuple[_Point | None, float, int]:
    """A point with smaller weighted errors, the next damping, and how many trial simulations stopped early."""
    refused = 0
    while damping <= _LARGEST_DAMPING:
        trial = comparison.at(point.beta + _damped(factor, damping))
        if trial.completed and np.sum((trial.errors / std) ** 2) <= np.sum((point.errors / std) ** 2):
            return trial, max(damping / 10.0, _LEAST_DAMPING), refused
        refused += not trial.completed
        damping *= 10.0
    return None, damping, refused


def _weighted(point: _Point, around: list[_Point], differences: Array, std: Array) -> tuple[Array, Array]:
    """Effect of each base parameter (channel, K, b) and errors (channel, K), over the standard deviation of errors."""
    columns = [(point.errors - x.errors) / (h * std) for x, h in zip(around, differences, strict=True)]
    return np.stack(columns, axis=-1).swapaxes(0, 1), (point.errors / std).T


def _covariance(slopes: Array, errors: Array, inverse: Array) -> Array:
    """Covariance of least squares under errors that are correlated in time, channel by channel.

    Noise in a closed loop is autocorrelated. The correlation is that of the errors, up to a lag of the square root of
    their number, tapered (Newey and West 1987).
    """
    rows = errors.shape[1]
    lags = int(np.sqrt(rows))
    middle = np.zeros((slopes.shape[2], slopes.shape[2]))
    for J, e in zip(slopes, errors, strict=True):
        correlation = np.zeros(rows)
        for lag in range(lags):
            correlation[lag] = (1.0 - lag / lags) * float(e[lag:] @ e[: rows - lag]) / rows
        middle += J.T @ scipy.linalg.matmul_toeplitz(correlation, J)
    bread = inverse @ inverse.T
    return np.asarray(bread @ middle @ bread)


def _damped(factor: Array, damping: float) -> Array:
    """Marquardt's step: least squares with damping in units of the effect of each base parameter."""
    slopes = factor[:, :-1]
    hold = np.sqrt(damping) * np.diag(np.linalg.norm(slopes, axis=0))
    target = np.append(factor[:, -1], np.zeros(len(hold)))
    return np.asarray(np.linalg.lstsq(np.vstack([slopes, hold]), target, rcond=None)[0])
