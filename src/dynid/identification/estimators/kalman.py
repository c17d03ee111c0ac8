"""Extended and unscented Kalman filters for the state and the base parameters together.

The measured torques are the input and the measured positions the output. Noise that feedback brings into the torques
has moved the robot, so it causes no bias here. Neither the controller nor derivatives of the positions are needed.

With the state x = (beta, q, v), torques tau and noise w of the torques, noise n of the positions:

    beta' = drift,    q' = v,    M(q) v' = tau + w - bias(q, v; beta),    y = q + n.

Sources: Gautier and Poignet, Extended Kalman Filtering and Weighted Least Squares Dynamic Identification of Robot
(2001); Julier and Uhlmann, A New Extension of the Kalman Filter to Nonlinear Systems (1997), for the unscented filter.
The kernels are those of `dynid.dynamics.kernels.kalman`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use, for_kernel
from dynid.errors import DataError, InvalidValue, NotApplicable
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimators.closed_loop import aborted, friction_decay, starting_parameters, with_history
from dynid.identification.estimators.least_squares import joint_noise
from dynid.identification.estimators.maximum_likelihood import check_positive, joint_values, position_std
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import MethodOptions, Start, check_iteration
from dynid.identification.estimators.solution import Iteration, Outcome, Solution, report_iteration
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.progress import ProgressCallback
from dynid.robot.parts import checked
from dynid.signals.settings import prepare
from dynid.simulation.plant import plant_arrays
from dynid.simulation.reference import whole_ratio

__all__ = ["EKF", "UKF", "EkfOptions", "UkfOptions", "ekf", "ukf"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 5
_TOLERANCE = 0.1
_STD = 0.1
_CARRIED = 0.01  # share of its information that a pass hands to the next
_TORQUE_SHARE, _VELOCITY_SHARE = 0.01, 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class EkfOptions(MethodOptions):
    """Options of method "ekf".

    Attributes
    ----------
    start : {"prior", "feasible"} or array_like, shape (p,), default "prior"
        Standard parameters at the beginning of the first pass, as for method "didim".
    tolerance : float, default 0.1
        The method has converged when a pass changes no base parameter by more than this share of the larger of its
        value and its standard deviation.
    max_iterations : int, default 5
        Largest number of passes over all runs.
    std : array_like, default 0.1
        Standard deviation of the starting values: one number relative to the typical size of every standard parameter,
        one value per base parameter (b,), or a covariance (b, b).
    position_noise : array_like, optional
        Standard deviation of the measured positions in rad or m, one number or one per joint. By default it is
        estimated from the fourth differences of the positions.
    torque_noise : array_like, optional
        Standard deviation in N m (N) of the torque that acts beside the measured one at every sample, one number or one
        per joint. By default 1 % of the RMS torque.
    drift : array_like, default 0
        Standard deviation of the random walk of a parameter in one second, in units of `std`: one number or one per
        base parameter.
    rate : float, optional
        Rate in Hz at which positions are used, by default that of the recording. Torques act sample by sample anyway.
    """

    start: Start = "prior"
    tolerance: float = _TOLERANCE
    max_iterations: int = _MAX_ITERATIONS
    std: ArrayLike = _STD
    position_noise: ArrayLike | None = None
    torque_noise: ArrayLike | None = None
    drift: ArrayLike = 0.0
    rate: float | None = None

    def __post_init__(self) -> None:
        check_iteration(self.start, self.tolerance, self.max_iterations)
        std, drift = (np.asarray(x, dtype=float) for x in (self.std, self.drift))
        if std.ndim < 2 and not np.all((std > 0) & np.isfinite(std)):
            raise InvalidValue("the standard deviations of the starting values must be positive", "std")
        if not np.all((drift >= 0) & np.isfinite(drift)):
            raise InvalidValue("drift needs one number that is not negative, or one per base parameter", "drift")
        check_positive("position_noise", self.position_noise)
        check_positive("torque_noise", self.torque_noise)
        if self.rate is not None and not self.rate > 0:
            raise InvalidValue(f"the rate of the filter must be positive, got {self.rate}", "rate")


@dataclass(frozen=True, eq=False, kw_only=True)
class UkfOptions(EkfOptions):
    """Options of method "ukf": those of "ekf", and the following.

    Attributes
    ----------
    alpha : float, default 0.1
        Distance of the sigma points from the mean (alpha of the scaled unscented transform), in (0, 1]. A sigma point
        that is not physically consistent ends the pass; a smaller `alpha` or `std` keeps them closer to the mean.
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        EkfOptions.__post_init__(self)
        if not 0 < self.alpha <= 1:
            raise InvalidValue(f"alpha of the sigma points lies in (0, 1], got {self.alpha}", "alpha")


def ekf(
    experiment: Experiment, options: EkfOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Extended Kalman filter: the dynamics are linearised about the mean; they are linear in the parameters.

    An iteration is a pass over all runs. Every pass starts from the values of the one before with a hundredth of its
    information, so that almost nothing is counted twice.
    """
    return _passes(experiment, options or EkfOptions(), 0.0, progress)


EKF = Method(
    name="ekf",
    sentence="Extended Kalman filter of the state and the base parameters.",
    options=EkfOptions,
    function=ekf,
    takes="experiment",
    fits_torques=False,
)


def ukf(
    experiment: Experiment, options: UkfOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Unscented Kalman filter: no linearisation, two simulated steps per state, parameter and torque."""
    options = options or UkfOptions()
    return _passes(experiment, options, float(options.alpha), progress)


UKF = Method(
    name="ukf",
    sentence="Unscented Kalman filter of the state and the base parameters.",
    options=UkfOptions,
    function=ukf,
    takes="experiment",
    fits_torques=False,
)


def _passes(
    experiment: Experiment, options: EkfOptions, alpha: float, progress: ProgressCallback | None
) -> tuple[Solution, Observation]:
    """Filter all runs again and again until the base parameters converge; alpha is 0 for the extended filter."""
    tolerance, max_iterations = options.tolerance, options.max_iterations
    if experiment.robot.loops:
        raise NotApplicable("Kalman filters are not available for robots with closed loops", "method")
    if experiment.robot.base != "fixed":
        raise NotApplicable(
            f"the Kalman filters need a fixed base; that of robot '{experiment.robot.name}' is {experiment.robot.base}",
            "method",
        )
    base, rows = experiment.base, experiment.measured
    pi = starting_parameters(experiment, options.start)
    beta = base.values(pi)
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    prior = root = _root(base, _sizes(possible, pi), options.std)
    noises = options.position_noise, options.torque_noise
    filtering = _Filter(experiment, pi, noises, _drift(options.drift, root), options.rate, alpha)
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
        solution = Solution(beta, covariance, joint_noise(rows, beta), notes=filtering.notes)
        seconds = time.perf_counter() - started
        history.append(Iteration(beta, step, surprise, possible.slack(filtering.standard(beta)), seconds, 0.0))
        report_iteration(progress, history, max_iterations)
        if step <= tolerance:
            return with_history(solution, "converged", history), rows
    assert solution is not None
    if max_iterations == 1:
        return with_history(solution, "one iteration", history), rows
    status = f"not converged in {max_iterations} iterations"
    return with_history(solution, status, history, Outcome.NOT_CONVERGED), rows


@dataclass(frozen=True, eq=False)
class _Run:
    """Positions and torques (N, n) at `rate`, samples per step of the filter, and the first velocities (n,)."""

    rate: float
    every: int
    q: Array
    torque: Array
    v: Array


@dataclass(frozen=True, eq=False)
class _Filter:
    """What a pass needs: the runs, the start and the noise; alpha is 0 for the extended filter."""

    experiment: Experiment
    start: Array
    noises: tuple[ArrayLike | None, ArrayLike | None]
    drift: Array
    rate: float | None
    alpha: float

    def standard(self, beta: Array) -> Array:
        return self.experiment.base.standard(beta, self.start)

    @cached_property
    def runs(self) -> list[_Run]:
        raw = replace(
            self.experiment.signals,
            cutoff=None,
            torque_cutoff=None,
            decimate=(),
            measured_velocity=False,
            measured_acceleration=False,
        )
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
        return position_std(self.experiment, self.noises[0])

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
        """One pass from these base parameters and this factor of their covariance.

        Returns the new base parameters, their factor, the mean squared innovation in units of its variance, and why the
        pass ended early (empty if it did not).
        """
        from dynid.dynamics.kernels.integrate import make_work
        from dynid.dynamics.kernels.kalman import Model, extended_filter, unscented_filter

        b, n, loop, robot = len(beta), self.experiment.robot.n, self.experiment.loop, self.experiment.robot
        kernel = unscented_filter if self.alpha else extended_filter
        offset, matrix = self._linear
        kept = np.array(self.experiment.base.kept)
        fastest = np.max([np.abs(motion.v).max(axis=0) for motion in self.experiment.motions], axis=0)
        total, count = 0.0, 0
        for run in self.runs:
            tree, inertia, drives, values = plant_arrays(robot, self.standard(beta), run.q)
            method = loop.integration(friction_decay(self.experiment, self.start, 1.0 / run.rate))
            # White noise of single torques, as one torque that acts during a whole step of the filter.
            torque_noise = self.torque_noise / np.sqrt(run.every)
            model = Model(offset, matrix, kept, self.drift, torque_noise, self.position_noise, self.alpha)
            mean = np.concatenate([beta, run.q[0], run.v])
            S = np.zeros((b + 2 * n, b + 2 * n))
            S[:b, :b] = root
            S[b:, b:] = np.diag(np.append(self.position_noise, _VELOCITY_SHARE * np.where(fastest > 0, fastest, 1.0)))
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


# Why an integration ended early, by the codes of kernels.integrate.
_WHY = {
    1: "the mass matrix is not positive definite; the parameters are not physically consistent",
    2: "the state diverges from the measurements",
    3: "the motion is too stiff for steps of any size; use the implicit integrator",
}


def _sizes(possible: FeasibleSet, parameters: Array) -> Array:
    """Typical size of every standard parameter (p,): from mass and length of a link, the value itself for a drive."""
    drive = np.array([not p.inertial for p in possible.robot.layout])
    return np.where(drive & (parameters != 0), np.abs(parameters), possible.scale[: len(parameters)])


def _root(base: BaseParameters, sizes: Array, std: ArrayLike) -> Array:
    """Lower triangular factor (b, b) of the starting covariance."""
    given = np.asarray(std, dtype=float)
    if given.ndim == 2:
        covariance = checked(given, (base.count, base.count), "std", DataError)
        try:
            return np.asarray(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError:
            raise InvalidValue("the starting covariance is not positive definite", "std") from None
    if given.ndim:
        given = checked(given, (base.count,), "std", DataError)
    return fold((base.matrix * given * sizes).T).T.copy() if given.ndim == 0 else np.diag(given)


def _faded(factor: Array, prior: Array) -> Array:
    """Factor of a covariance with a small share of the information of `factor` added to that of `prior`."""
    relative = np.linalg.inv(scipy.linalg.solve_triangular(prior, factor, lower=True))
    information = _CARRIED * relative.T @ relative + np.eye(len(prior))
    return np.asarray(prior @ np.linalg.cholesky(np.linalg.inv(information)))


def _drift(given: ArrayLike, root: Array) -> Array:
    """Standard deviation of the random walk of each base parameter in one second (b,)."""
    share = np.asarray(given, dtype=float)
    if share.shape not in ((), (len(root),)):
        raise InvalidValue(
            f"drift needs one number that is not negative, or one per base parameter ({len(root)})", "drift"
        )
    return np.asarray(share * np.sqrt(np.sum(root**2, axis=1)))
