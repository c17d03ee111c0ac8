"""Extended and unscented Kalman filters for the state and the base parameters together.

The measured torques drive the robot, the measured positions say where it went. Noise that feedback brings into the
torques has really moved the robot, so it does no harm here; no controller and no derivative of the positions is needed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use, for_kernel
from dynid.errors import DataError
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimators.closed_loop import Start, aborted, starting_parameters, with_history
from dynid.identification.estimators.maximum_likelihood import joint_values, position_deviations
from dynid.identification.estimators.output_error import friction_decay
from dynid.identification.estimators.solution import Iteration, Solution
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.robot.parts import checked
from dynid.signals.settings import prepare
from dynid.simulation.plant import plant_arrays
from dynid.simulation.reference import whole_ratio

__all__ = ["ekf", "ukf"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 5
_TOLERANCE = 0.1
_DEVIATION = 0.1
_MEMORY = 0.01  # what a pass tells the next of its own precision
_TORQUE_SHARE, _SPEED_SHARE = 0.01, 0.05


def ekf(
    experiment: Experiment,
    start: Start = "prior",
    tolerance: float = _TOLERANCE,
    max_iterations: int = _MAX_ITERATIONS,
    deviation: ArrayLike = _DEVIATION,
    position_noise: ArrayLike | None = None,
    torque_noise: ArrayLike | None = None,
    drift: ArrayLike = 0.0,
    rate: float | None = None,
) -> tuple[Solution, Observation]:
    """Extended Kalman filter: the dynamics linearised about the mean, exactly in the parameters.

    A round is a pass over all runs; every pass begins with the values the one before ended with and with a hundredth of
    its precision, so that next to nothing counts twice. `deviation` of the starting values: one number, a share of the
    typical size of every standard parameter; one a base parameter (b,); or a covariance (b, b). `position_noise` (rad
    or m) is that of the encoders, found from the fastest changes of the positions if not given; `torque_noise` (N m)
    that of what acts beside the measured torques at every sample, 1 % of their size if not given; one number or one a
    joint. `drift`: deviation of a parameter's walk in one second, in units of `deviation`. `rate` (Hz) at which
    positions are used, by default the recording's; torques act sample by sample in any case.
    """
    noises = position_noise, torque_noise
    return _passes(experiment, start, tolerance, max_iterations, deviation, noises, drift, rate, 0.0)


def ukf(
    experiment: Experiment,
    start: Start = "prior",
    tolerance: float = _TOLERANCE,
    max_iterations: int = _MAX_ITERATIONS,
    deviation: ArrayLike = _DEVIATION,
    position_noise: ArrayLike | None = None,
    torque_noise: ArrayLike | None = None,
    drift: ArrayLike = 0.0,
    rate: float | None = None,
    spread: float = 0.1,
) -> tuple[Solution, Observation]:
    """Unscented Kalman filter: no linearisation, two simulated steps for every state, parameter and torque.

    Options as for `ekf`; `spread` is the alpha of the scaled unscented transform. Sigma points that no robot can have
    end the pass: a smaller spread or deviation keeps them closer.
    """
    if not 0 < spread <= 1:
        raise DataError(f"the spread of sigma points lies in (0, 1], got {spread}")
    noises = position_noise, torque_noise
    return _passes(experiment, start, tolerance, max_iterations, deviation, noises, drift, rate, float(spread))


def _passes(
    experiment: Experiment,
    start: Start,
    tolerance: float,
    max_iterations: int,
    deviation: ArrayLike,
    noises: tuple[ArrayLike | None, ArrayLike | None],
    drift: ArrayLike,
    rate: float | None,
    spread: float,
) -> tuple[Solution, Observation]:
    if max_iterations < 1 or not tolerance > 0:
        raise DataError(
            f"at least one iteration and a positive tolerance are needed, got {max_iterations} and {tolerance}"
        )
    if experiment.robot.base != "fixed":
        raise DataError(f"robot '{experiment.robot.name}' has no fixed base, which the filters need")
    base, rows = experiment.base, experiment.measured
    pi = starting_parameters(experiment, start)
    beta = base.values(pi)
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    prior = root = _root(base, _sizes(possible, pi), deviation)
    filtering = _Filter(experiment, pi, noises, _drift(drift, root), rate, spread)
    history: list[Iteration] = []
    solution: Solution | None = None
    for _ in range(max_iterations):
        started = time.perf_counter()
        found, factor, surprise, outcome = filtering.run(beta, root)
        if outcome:
            return aborted(solution, beta, rows, history, outcome), rows
        covariance = factor @ factor.T
        step = float(np.max(np.abs(found - beta) / np.maximum(np.abs(found), np.sqrt(np.diag(covariance)))))
        beta, root = found, _faded(factor, prior)
        noise, condition = joint_noise(rows, beta), float(np.linalg.cond(rows.stacked()[:, :-1]))
        solution = Solution(beta, covariance, noise, condition, notes=filtering.notes)
        seconds = time.perf_counter() - started
        history.append(Iteration(beta, step, surprise, possible.slack(filtering.standard(beta)), seconds, 0.0))
        if step <= tolerance:
            return with_history(solution, "converged", history), rows
    assert solution is not None
    status = f"not converged in {max_iterations} iterations" if max_iterations > 1 else "one iteration"
    return with_history(solution, status, history), rows


@dataclass(frozen=True, eq=False)
class _Run:
    """Positions and torques (N, n) at `rate`, samples in a step of the filter, and the first speeds (n,)."""

    rate: float
    every: int
    q: Array
    torque: Array
    v: Array


@dataclass(frozen=True, eq=False)
class _Filter:
    """All that a pass needs: runs at the filter's rate and what is known of noise."""

    experiment: Experiment
    start: Array
    noises: tuple[ArrayLike | None, ArrayLike | None]
    drift: Array
    rate: float | None
    spread: float

    def standard(self, beta: Array) -> Array:
        return self.experiment.base.standard(beta, self.start)

    @cached_property
    def runs(self) -> list[_Run]:
        raw = replace(self.experiment.signals, cutoff=None, torque_cutoff=None, decimate=(), measured_velocity=False)
        out = []
        for run, clean in zip(self.experiment.recording.runs, self.experiment.motions, strict=True):
            motion = prepare(run, raw)
            assert motion.torque is not None
            what = f"run '{run.name}': record and filter"
            every = 1 if self.rate is None else whole_ratio(motion.rate, self.rate, what)
            out.append(_Run(motion.rate, every, for_kernel(motion.q), for_kernel(motion.torque), clean.v[clean.lead]))
        return out

    @cached_property
    def position_noise(self) -> Array:
        return position_deviations(self.experiment, self.noises[0])

    @cached_property
    def torque_noise(self) -> Array:
        size = np.sqrt(np.mean(np.vstack([run.torque for run in self.runs]) ** 2, axis=0))
        given = self.noises[1]
        if given is not None:
            return joint_values(given, len(size), "torque_noise")
        return np.asarray(_TORQUE_SHARE * np.where(size > 0, size, size.max()))

    @property
    def notes(self) -> tuple[str, ...]:
        rates = ", ".join(f"{x:g}" for x in sorted({round(run.rate / run.every, 3) for run in self.runs}))
        return (
            f"filtered at {rates} Hz",
            "position noise " + ", ".join(f"{x:.3g}" for x in self.position_noise),
            "torque noise " + ", ".join(f"{x:.3g}" for x in self.torque_noise),
        )

    def run(self, beta: Array, root: Array) -> tuple[Array, Array, float, str]:
        """One pass from these values and this factor of their covariance.

        New values, their factor, mean squared innovation in its variance, and why it ended early.
        """
        from dynid.dynamics.kernels.integrate import make_work
        from dynid.dynamics.kernels.kalman import Model, extended_filter, unscented_filter

        b, n, loop, robot = len(beta), self.experiment.robot.n, self.experiment.loop, self.experiment.robot
        kernel = unscented_filter if self.spread else extended_filter
        offset, matrix = self._linear
        kept = np.array(self.experiment.base.kept)
        fastest = np.max([np.abs(motion.v).max(axis=0) for motion in self.experiment.motions], axis=0)
        total, count = 0.0, 0
        for run in self.runs:
            tree, inertia, drives, values = plant_arrays(robot, self.standard(beta), run.q)
            method = loop.method(friction_decay(self.experiment, self.start, 1.0 / run.rate))
            # White noise of single torques, as one torque that acts all through a step of the filter.
            torque_noise = self.torque_noise / np.sqrt(run.every)
            model = Model(offset, matrix, kept, self.drift, torque_noise, self.position_noise, self.spread)
            mean = np.concatenate([beta, run.q[0], run.v])
            S = np.zeros((b + 2 * n, b + 2 * n))
            S[:b, :b] = root
            S[b:, b:] = np.diag(np.append(self.position_noise, _SPEED_SHARE * np.where(fastest > 0, fastest, 1.0)))
            w = make_work(len(tree.parent), n, drives, values, len(method.b))
            with first_use(kernel):
                done, end, squares = kernel(
                    tree, inertia, drives, values, method, model, 1 / run.rate, run.every, run.torque, run.q, mean, S, w
                )
            if end:
                return beta, root, np.nan, f"the filter stopped at {done / run.rate:.4g} s: {_WHY[end]}"
            beta, root = mean[:b].copy(), S[:b, :b].copy()
            total, count = total + squares, count + len(run.q) // run.every * n
        return beta, root, total / count, ""

    @cached_property
    def _linear(self) -> tuple[Array, Array]:
        """Standard parameters as offset (p,) + matrix (p, b) beta."""
        count = self.experiment.base.count
        offset = self.standard(np.zeros(count))
        matrix = np.column_stack([self.standard(unit) - offset for unit in np.eye(count)])
        return for_kernel(offset), for_kernel(matrix)


# Ends of an integration in words (kernels.integrate).
_WHY = {
    1: "the mass matrix is not positive definite; the parameters are impossible",
    2: "the state runs away from the measurements",
    3: "the motion is too stiff for steps of any size; use the implicit integrator",
}


def _sizes(possible: FeasibleSet, parameters: Array) -> Array:
    """Typical size of every standard parameter (p,): a link's by its mass and length, a drive's its own value."""
    drive = np.array([not p.inertial for p in possible.robot.layout])
    return np.where(drive & (parameters != 0), np.abs(parameters), possible.scale[: len(parameters)])


def _root(base: BaseParameters, sizes: Array, deviation: ArrayLike) -> Array:
    """Lower triangular factor (b, b) of the starting covariance."""
    given = np.asarray(deviation, dtype=float)
    if given.ndim == 2:
        covariance = checked(given, (base.count, base.count), "deviation", DataError)
        try:
            return np.asarray(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError:
            raise DataError("the starting covariance is not positive definite") from None
    if given.ndim:
        given = checked(given, (base.count,), "deviation", DataError)
    if not np.all((given > 0) & np.isfinite(given)):
        raise DataError("starting deviations must be positive")
    return fold((base.matrix * given * sizes).T).T.copy() if given.ndim == 0 else np.diag(given)


def _faded(factor: Array, prior: Array) -> Array:
    """Factor of a covariance with a small share of the precision of `factor` beside that of `prior`."""
    relative = np.linalg.inv(scipy.linalg.solve_triangular(prior, factor, lower=True))
    information = _MEMORY * relative.T @ relative + np.eye(len(prior))
    return np.asarray(prior @ np.linalg.cholesky(np.linalg.inv(information)))


def _drift(given: ArrayLike, root: Array) -> Array:
    share = np.asarray(given, dtype=float)
    if share.shape not in ((), (len(root),)) or not np.all((share >= 0) & np.isfinite(share)):
        raise DataError(f"drift needs one number that is not negative, or one a base parameter ({len(root)})")
    return np.asarray(share * np.sqrt(np.sum(root**2, axis=1)))
