"""Closed-loop output error and input error: the simulated signals themselves are fitted, by Levenberg-Marquardt.

Output error compares positions, input error torques. Sensitivities come from one more simulation a base parameter, so
they carry what a parameter does to the whole loop, where DIDIM takes the regressor alone.
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
from dynid.identification.estimators.closed_loop import Start, aborted, starting_parameters, with_history
from dynid.identification.estimators.solution import Iteration, Solution, report_iteration, solve_factor
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, fold
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, prepare
from dynid.simulation.engine import Simulation
from dynid.simulation.integrators import Integrator
from dynid.simulation.plant import friction_rate

__all__ = ["clie", "cloe", "friction_decay"]

Array = NDArray[np.float64]
Signal = Literal["q", "torque"]

_MAX_ITERATIONS = 20
_TOLERANCE = 0.025
# A difference moves the torques by this share of themselves: far above rounding, far below what bends.
_DIFFERENCE = 1e-4
_DAMPING, _LEAST_DAMPING, _LARGEST_DAMPING = 1e-3, 1e-12, 1e6


def cloe(
    experiment: Experiment, start: Start = "prior", tolerance: float = _TOLERANCE, max_iterations: int = _MAX_ITERATIONS
) -> tuple[Solution, Observation]:
    """Closed-loop output error: the base parameters whose simulated positions come closest to the measured ones."""
    return _fit(experiment, "q", start, tolerance, max_iterations)


def clie(
    experiment: Experiment, start: Start = "prior", tolerance: float = _TOLERANCE, max_iterations: int = _MAX_ITERATIONS
) -> tuple[Solution, Observation]:
    """Closed-loop input error: the base parameters whose simulated torques come closest to the measured ones."""
    return _fit(experiment, "torque", start, tolerance, max_iterations)


def friction_decay(experiment: Experiment, parameters: Array, period: float) -> float:
    """How much friction at its steepest slows a joint in a period, as an exponent: what an integrator must bear."""
    return max(friction_rate(experiment.robot, parameters, run.q) for run in experiment.recording.runs) * period


@dataclass(frozen=True, eq=False)
class _Point:
    """Base values, what was simulated with them, and measured less simulated (K, channel), empty if it stopped."""

    beta: Array
    simulations: tuple[Simulation, ...]
    errors: Array

    @property
    def finished(self) -> bool:
        return self.simulations[-1].finished


@dataclass(frozen=True, eq=False)
class _Comparison:
    """One signal of an experiment, measured and simulated, cleaned alike."""

    experiment: Experiment
    signal: Signal
    start: Array  # standard parameters (p,)

    def standard(self, beta: Array) -> Array:
        return self.experiment.base.standard(beta, self.start)

    @cached_property
    def fixed(self) -> Experiment:
        """The experiment with the steps a period that the start needs, so that differences do not see them change."""
        loop = self.experiment.loop
        if loop.integrator != "dopri5" and loop.substeps is None:
            method = loop.method(friction_decay(self.experiment, self.start, 1.0 / self.experiment.law.rate))
            chosen: Integrator = "implicit" if method.implicit else "rk4"
            name = chosen if loop.integrator == "auto" else loop.integrator
            loop = replace(loop, integrator=name, substeps=method.substeps)
        return replace(self.experiment, loop=loop)

    def at(self, beta: Array) -> _Point:
        simulations = self.fixed.simulate(self.standard(beta))
        if not simulations[-1].finished:
            return _Point(beta, simulations, np.zeros((0, len(self.experiment.base.channels))))
        parts = []
        for motion, simulation in zip(self.experiment.motions, simulations, strict=True):
            # The delay is one of the record alone; what "auto" found in the measurement holds for both.
            settings = replace(
                self.experiment.signals,
                cutoff=motion.cutoff,
                decimate=motion.decimate,
                delay=0.0,
                measured_velocity=False,
            )
            parts.append(self._thinned(prepare(simulation.run(motion.name), settings)))
        simulated = np.vstack(parts)
        if simulated.shape != self.measured.shape:
            raise DataError("a run is unevenly sampled; resample it to the controller's clock first")
        return _Point(beta, simulations, self.measured - simulated)

    def around(self, point: _Point) -> list[_Point]:
        """The point with each base value moved by its difference."""
        moved = point.beta + np.diag(self.differences)
        with ThreadPoolExecutor(thread_count()) as pool:
            return list(pool.map(self.at, moved))

    @cached_property
    def measured(self) -> Array:
        return np.vstack([self._thinned(motion) for motion in self.experiment.motions])

    @cached_property
    def differences(self) -> Array:
        """Change of each base value (b,) that moves the torques by a small share of themselves."""
        observation = self.experiment.measured
        size = observation.torque_norms()
        effect = np.linalg.norm(observation.stacked(1.0 / np.where(size > 0, size, np.inf))[:, :-1], axis=0)
        return np.asarray(_DIFFERENCE / np.where(effect > 0, effect, 1.0))

    def deviations(self, errors: Array) -> Array:
        """Deviation of each channel's errors (channel,), not below what rounding leaves of the signal."""
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
    experiment: Experiment, signal: Signal, start: Start, tolerance: float, max_iterations: int
) -> tuple[Solution, Observation]:
    """Levenberg-Marquardt with channels weighted by the deviations of their errors, taken anew every round.

    A step counts where it lowers the weighted errors, which lowers the sum of log deviations too; one whose simulation
    stops early is refused. It has converged where the undamped step moves no base value by more than `tolerance` of
    the largest of itself, its deviation, and what moves the torques by 1e-4 of themselves.
    """
    if max_iterations < 1 or not tolerance > 0:
        raise DataError(
            f"at least one iteration and a positive tolerance are needed, got {max_iterations} and {tolerance}"
        )
    base = experiment.base
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    comparison = _Comparison(experiment, signal, starting_parameters(experiment, start))
    point, damping, stopped = comparison.at(base.values(comparison.start)), _DAMPING, 0
    rows, solution = experiment.measured, None
    history: list[Iteration] = []
    if not point.finished:
        return aborted(None, point.beta, rows, history, point.simulations[-1].outcome), rows
    status = f"not converged in {max_iterations} iterations"
    while len(history) < max_iterations:
        started = time.perf_counter()
        around = comparison.around(point)
        lost = [x.simulations[-1].outcome for x in around if not x.finished]
        if lost:
            return aborted(solution, point.beta, rows, history, lost[0]), rows
        simulated = time.perf_counter()
        deviation = comparison.deviations(point.errors)
        slopes, errors = _weighted(point, around, comparison.differences, deviation)
        factor = fold(np.asfortranarray(np.column_stack([slopes.reshape(-1, base.count), errors.ravel()])))
        move, inverse, condition = solve_factor(factor, base)
        size = np.maximum(np.abs(point.beta), np.linalg.norm(inverse, axis=1))
        step = float(np.max(np.abs(move) / np.maximum(size, comparison.differences)))
        solved = time.perf_counter()
        better, damping, refused = _better(comparison, point, factor, deviation, damping)
        point, stopped = better or point, stopped + refused
        rows = experiment.observe(point.simulations)
        covariance = _covariance(slopes, (point.errors / deviation).T, inverse)
        solution = Solution(point.beta, covariance, joint_noise(rows, point.beta), condition)
        seconds = simulated - started + time.perf_counter() - solved, solved - simulated
        left = float(np.mean((point.errors / deviation) ** 2))
        history.append(Iteration(point.beta, step, left, possible.slack(comparison.standard(point.beta)), *seconds))
        report_iteration(history, max_iterations)
        if step <= tolerance or better is None:
            status = "converged" if step <= tolerance else f"stalled in round {len(history)}: no step lowers the errors"
            break
    assert solution is not None
    names = {"q": "positions", "torque": "torques"}
    notes = [f"deviation of {names[signal]}: " + ", ".join(f"{x:.3g}" for x in comparison.deviations(point.errors))]
    if stopped:
        notes.append(f"{stopped} trial steps were refused because their simulation stopped early")
    return with_history(replace(solution, notes=tuple(notes)), status, history), rows


def _better(
    comparison: _Comparison, point: _Point, factor: Array, deviation: Array, damping: float
) -> tuple[_Point | None, float, int]:
    """A point with smaller weighted errors, the next damping, and how many trials stopped early on the way."""
    refused = 0
    while damping <= _LARGEST_DAMPING:
        trial = comparison.at(point.beta + _damped(factor, damping))
        if trial.finished and np.sum((trial.errors / deviation) ** 2) <= np.sum((point.errors / deviation) ** 2):
            return trial, max(damping / 10.0, _LEAST_DAMPING), refused
        refused += not trial.finished
        damping *= 10.0
    return None, damping, refused


def _weighted(point: _Point, around: list[_Point], differences: Array, deviation: Array) -> tuple[Array, Array]:
    """Effect of each base value (channel, K, b) and errors (channel, K), both in deviations of the channel's errors."""
    columns = [(point.errors - x.errors) / (h * deviation) for x, h in zip(around, differences, strict=True)]
    return np.stack(columns, axis=-1).swapaxes(0, 1), (point.errors / deviation).T


def _covariance(slopes: Array, errors: Array, inverse: Array) -> Array:
    """Covariance of least squares under errors that are correlated in time, channel by channel.

    The loop colours its noise. The correlation is that of the errors themselves up to the square root of their number,
    tapered (Newey and West 1987).
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
    """Marquardt's step: least squares with each base value held back in units of its own effect."""
    slopes = factor[:, :-1]
    hold = np.sqrt(damping) * np.diag(np.linalg.norm(slopes, axis=0))
    target = np.append(factor[:, -1], np.zeros(len(hold)))
    return np.asarray(np.linalg.lstsq(np.vstack([slopes, hold]), target, rcond=None)[0])
