"""Closed-loop output error and input error: simulated signals are fitted to measured ones by Levenberg-Marquardt.

Output error compares positions, input error torques. Sensitivities come from finite differences, one simulation per
base parameter, so they include the effect of a parameter on the whole loop, where DIDIM uses the regressor alone.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.batch import thread_count
from dynid.errors import DataError
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.closed_loop import aborted, starting_parameters, with_history
from dynid.identification.estimators.options import MethodOptions, Start, check_iteration
from dynid.identification.estimators.solution import Iteration, Outcome, Solution, report_iteration, solve_factor
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, fold
from dynid.progress import ProgressCallback
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, prepare
from dynid.simulation.integrators import Integrator
from dynid.simulation.plant import friction_rate
from dynid.simulation.simulation import Simulation

__all__ = ["ClieOptions", "CloeOptions", "clie", "cloe", "friction_decay"]

Array = NDArray[np.float64]
Signal = Literal["q", "torque"]

_MAX_ITERATIONS = 20
_TOLERANCE = 0.025
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
    max_iterations: int = _MAX_ITERATIONS

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


def clie(
    experiment: Experiment, options: ClieOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Closed-loop input error: the base parameters whose simulated torques are closest to the measured ones."""
    return _fit(experiment, "torque", options or ClieOptions(), progress)


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
            raise DataError("a run is unevenly sampled; resample it to the controller's clock first")
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
            raise DataError(f"{rows} samples are left for {self.experiment.base.count} base parameters; record longer")
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
