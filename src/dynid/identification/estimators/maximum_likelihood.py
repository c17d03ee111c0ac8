"""Maximum likelihood with noise in positions and torques.

Least squares assumes that the motion is exact. Here the torque error of every sample is e = torque noise - J n, where n
is the noise of position, velocity and acceleration after filtering and J the derivative of the inverse dynamics. Its
covariance depends on the sample and on the parameters.

With the errors e_k = y_k - W_k beta of sample k, the covariance D = diag(std^2) of the positions and G of position,
velocity and acceleration for unit noise of the positions:

    Sigma_k = C + sum over joints of J_k (D x G) J_k',    minimise sum of e_k' Sigma_k^-1 e_k over beta,
    C <- C - C mean(Sigma_k^-1) C + mean(u_k u_k'),    u_k = C Sigma_k^-1 e_k.

Sources: Olsen, Swevers and Verdonck, Maximum Likelihood Identification of a Dynamic Robot Model: Implementation Issues
(2002), for noise of the motion carried into the torques; Dempster, Laird and Rubin, Maximum Likelihood from Incomplete
Data via the EM Algorithm (1977), for the covariance C of the torque noise. The exact gradient of the sum of squares,
with Sigma_k depending on beta, is our own derivation, see `_Samples.factor`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.errors import InvalidValue, NotApplicable
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.closed_loop import starting_parameters, with_history
from dynid.identification.estimators.least_squares import joint_noise, wls
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import MethodOptions, Start, check_iteration
from dynid.identification.estimators.solution import Iteration, Outcome, Solution, report_iteration, solve_factor
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, fold
from dynid.identification.row_stream import channel_rows, velocity_limits
from dynid.progress import ProgressCallback
from dynid.signals.filters import decimate, derivative, lowpass
from dynid.signals.settings import Motion, Signals

__all__ = ["ML", "MlOptions", "check_positive", "joint_values", "ml", "position_std"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 50
_TOLERANCE = 0.01
_DIFFERENCE = 1e-6
_HALVINGS = 20
_SWEEPS = 50  # EM steps of the torque covariance per iteration
# Differences of this order keep white noise and remove nearly all of a motion that is sampled densely.
_ORDER, _GAIN = 4, 70.0
_LEAST_SHARE = 1e-7
# The impulse response of filters and decimation is computed over this many decimated samples and cut-off periods.
_RESPONSE, _PERIODS = 20, 5


@dataclass(frozen=True, eq=False, kw_only=True)
class MlOptions(MethodOptions):
    """Options of method "ml".

    Attributes
    ----------
    start : {"wls", "prior", "feasible"} or array_like, shape (p,), default "wls"
        First parameters: those of weighted least squares, of the robot, of method "feasible", or given standard
        parameters.
    tolerance : float, default 0.01
        The method has converged when no base parameter moves by more than this share of its size.
    max_iterations : int, default 50
        Largest number of iterations.
    position_noise : array_like, optional
        Standard deviation of the measured positions in rad or m, one number or one per joint. By default it is
        estimated from the fourth differences of the positions.
    """

    start: Start | Literal["wls"] = "wls"
    tolerance: float = _TOLERANCE
    max_iterations: int = _MAX_ITERATIONS
    position_noise: ArrayLike | None = None

    def __post_init__(self) -> None:
        check_iteration(self.start, self.tolerance, self.max_iterations, ("wls", "prior", "feasible"))
        check_positive("position_noise", self.position_noise)


def ml(
    experiment: Experiment, options: MlOptions | None = None, progress: ProgressCallback | None = None
) -> tuple[Solution, Observation]:
    """Base parameters and the full covariance of the torque noise, with known noise of the positions.

    Each iteration takes a Gauss-Newton step on the weighted squares sum e' Sigma(beta)^-1 e, shortened until they
    decrease, then increases the likelihood over the torque covariance (EM). The method assumes that feedback does not
    bring the position noise into the torques within the pass band of the filters; use a Kalman filter or a closed-loop
    method otherwise.
    """
    options = options or MlOptions()
    start, tolerance, max_iterations = options.start, options.tolerance, options.max_iterations
    base, observed = experiment.base, experiment.measured
    first = (
        base.standard(wls(observed).beta)
        if isinstance(start, str) and start == "wls"
        else starting_parameters(experiment, start)
    )
    samples = _Samples(experiment, position_std(experiment, options.position_noise))
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    beta, before = base.values(first), np.inf
    torque = np.diag(joint_noise(observed, beta) ** 2)
    status, outcome = f"not converged in {max_iterations} iterations", Outcome.NOT_CONVERGED
    history: list[Iteration] = []
    for _ in range(max_iterations):
        started = time.perf_counter()
        weighed = samples.weighed(base.standard(beta, first), beta, torque)
        move, inverse = solve_factor(samples.factor(weighed), base)
        size = np.maximum(np.abs(beta), np.linalg.norm(inverse, axis=1))
        step = float(np.max(np.abs(move) / size))
        for halving in range(_HALVINGS):
            candidate = beta + 0.5**halving * move
            new = samples.weighed(base.standard(candidate, first), candidate, torque)
            if new.squares <= weighed.squares:
                beta, weighed = candidate, new
                break
        for _ in range(_SWEEPS):
            torque = samples.torque_covariance(weighed, torque)
            weighed = samples.again(weighed, torque)
        left = weighed.squares / observed.total_rows
        seconds = time.perf_counter() - started
        history.append(Iteration(beta, step, left, possible.slack(base.standard(beta, first)), 0.0, seconds))
        report_iteration(progress, history, max_iterations)
        if step <= tolerance and abs(left - before) <= tolerance * left:
            status, outcome = "converged", Outcome.CONVERGED
            break
        before = left
    noise = np.sqrt(np.diag(torque))
    notes = (
        "position noise " + ", ".join(f"{x:.3g}" for x in samples.std),
        "torque noise of decimated rows " + ", ".join(f"{x:.3g}" for x in noise),
    )
    solution = Solution(beta, inverse @ inverse.T, joint_noise(observed, beta), notes=notes)
    return with_history(solution, status, history, outcome), observed


ML = Method(
    name="ml",
    sentence="Maximum likelihood with noise in positions and torques.",
    options=MlOptions,
    function=ml,
    takes="experiment",
    fits_torques=False,
)


def check_positive(name: str, given: ArrayLike | None) -> None:
    """Raise a DataError if an option holds numbers that are not positive and finite."""
    value = np.asarray(1.0 if given is None else given, dtype=float)
    if not np.all((value > 0) & np.isfinite(value)):
        raise InvalidValue(f"{name} needs one positive number, or one per joint", name)


def joint_values(given: ArrayLike, n: int, name: str) -> Array:
    """Positive numbers (n,) from one number for all joints or one per joint."""
    value = np.asarray(given, dtype=float)
    if value.shape not in ((), (n,)) or not np.all((value > 0) & np.isfinite(value)):
        raise InvalidValue(f"{name} needs one positive number, or one per joint ({n})", name)
    return np.broadcast_to(value, (n,)).copy()


def position_std(experiment: Experiment, given: ArrayLike | None = None) -> Array:
    """Standard deviations (n,) of measured positions: as given, or from their fourth differences.

    Fourth differences of white noise are sqrt(70) times as large. Not below 1e-7 of the range of motion of a joint.
    """
    n = experiment.robot.n
    if given is not None:
        return joint_values(given, n, "position_noise")
    q = [run.q for run in experiment.recording.runs]
    fast = np.vstack([np.diff(x, _ORDER, axis=0) for x in q])
    span = np.ptp(np.vstack(q), axis=0)
    least = _LEAST_SHARE * np.where(span > 0, span, 1.0)
    return np.maximum(np.sqrt(np.mean(fast**2, axis=0) / _GAIN), least)


def noise_gains(signals: Signals, motion: Motion) -> Array:
    """Covariance (3, 3) of position, velocity and acceleration of a decimated sample for unit white position noise.

    Impulses at every sample between two decimated samples pass through the filters; their responses at all decimated
    samples are the weights with which the noise enters one sample.
    """
    step = int(np.prod(motion.decimate)) if motion.decimate else 1
    periods = 0 if motion.cutoff is None else int(_PERIODS * motion.rate / motion.cutoff)
    half = -(-max(_RESPONSE * step, periods, 30) // step) * step
    q = np.zeros((2 * half, step))
    q[half + np.arange(step), np.arange(step)] = 1.0
    if motion.cutoff is not None:
        q = lowpass(q, motion.cutoff, motion.rate, signals.order)
    v = derivative(q, motion.rate, signals.derivative)
    seen = np.array(
        [decimate(x, motion.decimate).ravel() for x in (q, v, derivative(v, motion.rate, signals.derivative))]
    )
    return seen @ seen.T


@dataclass(frozen=True, eq=False)
class _Weighed:
    """Errors e (K, c), derivatives J (K, c, n, 3), covariance by the motion, inverse covariance L, and sum e' L e."""

    errors: Array
    slopes: Array
    motion: Array
    inverse: Array
    squares: float


class _Samples:
    """Decimated samples with the rows of every channel; rows that are left out are zero and uncorrelated."""

    def __init__(self, experiment: Experiment, std: Array) -> None:
        signals = experiment.signals
        if signals.measured_velocity or signals.measured_acceleration or signals.median:
            raise NotApplicable(
                "method 'ml' needs velocities and accelerations that are derivatives of filtered positions: leave the "
                "signal settings measured_velocity, measured_acceleration and median off",
                "measured_velocity",
            )
        self.base, self.std = experiment.base, std
        self.channels = [experiment.robot.coordinates.index(c) for c in self.base.channels]
        W, y, counts, state, gains = [], [], [], [], []
        for motion in experiment.centred_motions:
            limits = velocity_limits(self.base, motion, signals)
            rows: list[list[tuple[Array, Array, Array]]] = [[] for _ in self.channels]
            for block, velocity in channel_rows(self.base, motion):
                rows[block.channel].append((block.W, block.y, np.abs(velocity) >= limits[block.channel]))
            parts = [[np.concatenate(x) for x in zip(*channel, strict=True)] for channel in rows]
            w, t, here = (np.stack(x, axis=1) for x in zip(*parts, strict=True))
            step = int(np.prod(motion.decimate)) if motion.decimate else 1
            W.append(w * here[..., None])
            y.append(t * here)
            counts.append(here)
            kept = slice(motion.lead, len(motion.t) - motion.lead, step)
            state.append(np.stack([motion.q[kept], motion.v[kept], motion.a[kept]]))
            gains.append(np.broadcast_to(noise_gains(signals, motion), (len(t), 3, 3)))
        self.W, self.y, self.here = np.concatenate(W), np.concatenate(y), np.concatenate(counts)
        self.q, self.v, self.a = np.concatenate(state, axis=1)
        self.gains = np.concatenate(gains)

    def weighed(self, pi: Array, beta: Array, torque: Array) -> _Weighed:
        """Errors of these parameters and their covariance."""
        slopes = self._slopes(pi) * self.here[..., None, None]
        motion = np.einsum("kcif,i,kfg,kdig->kcd", slopes, self.std**2, self.gains, slopes, optimize=True)
        errors = self.y - self.W @ beta
        return self._with(errors, slopes, motion, torque)

    def again(self, weighed: _Weighed, torque: Array) -> _Weighed:
        return self._with(weighed.errors, weighed.slopes, weighed.motion, torque)

    def _with(self, errors: Array, slopes: Array, motion: Array, torque: Array) -> _Weighed:
        inverse = np.asarray(np.linalg.inv(self._covariance(motion, torque)), dtype=float)
        squares = float(np.einsum("kc,kcd,kd->", errors, inverse, errors))
        return _Weighed(errors, slopes, motion, inverse, squares)

    def _covariance(self, motion: Array, torque: Array) -> Array:
        both = self.here[:, :, None] & self.here[:, None, :]
        return np.where(both, motion + torque, np.eye(len(torque)))

    def likelihood(self, weighed: _Weighed, torque: Array) -> float:
        """Gaussian log-likelihood of the errors, up to a constant."""
        return -0.5 * (weighed.squares + float(np.linalg.slogdet(self._covariance(weighed.motion, torque))[1].sum()))

    def factor(self, weighed: _Weighed) -> Array:
        """Factor of whitened [Y e], with Y at the most likely states given the errors: x + C J' L e.

        Y' L e is then the exact gradient of half the sum of squares, including the dependence of L on the parameters.
        """
        pull = np.einsum("kcd,kd->kc", weighed.inverse, weighed.errors)
        gains = self.gains[:, None] * self.std[:, None, None] ** 2
        change = np.einsum("kifg,kcig,kc->fki", gains, weighed.slopes, pull, optimize=True)
        size = np.abs(change).max()
        h = 1e-4 / size if size > 0 else 1.0
        ahead = self.base.regressor(self.q + h * change[0], self.v + h * change[1], self.a + h * change[2])
        behind = self.base.regressor(self.q - h * change[0], self.v - h * change[1], self.a - h * change[2])
        Y = self.W + (ahead - behind) / (2 * h) * self.here[..., None]
        root = np.linalg.cholesky(weighed.inverse).swapaxes(1, 2)
        rows = root @ np.concatenate([Y, weighed.errors[..., None]], axis=2)
        return fold(np.asfortranarray(rows.reshape(-1, rows.shape[2])))

    def torque_covariance(self, weighed: _Weighed, torque: Array) -> Array:
        """One EM step for the covariance of the torque noise: the likelihood does not decrease."""
        inverse = weighed.inverse * (self.here[:, :, None] & self.here[:, None, :])
        share = np.einsum("ab,kbc,kc->ka", torque, inverse, weighed.errors)
        kept = torque - torque @ inverse.mean(axis=0) @ torque + share.T @ share / len(share)
        return 0.5 * (kept + kept.T)

    def _slopes(self, pi: Array) -> Array:
        """Derivatives of the torques (K, channel, joint, 3) by position, velocity and acceleration of each joint."""
        robot, n, h = self.base.robot, self.q.shape[1], _DIFFERENCE
        out = np.empty((len(self.q), len(self.channels), n, 3))
        for i in range(n):
            d = h * np.eye(n)[i]
            for f, (dq, dv) in enumerate(((d, 0.0), (0.0, d))):
                ahead = inverse_dynamics(robot, self.q + dq, self.v + dv, self.a, pi)
                behind = inverse_dynamics(robot, self.q - dq, self.v - dv, self.a, pi)
                out[:, :, i, f] = (ahead - behind)[:, self.channels] / (2 * h)
        out[..., 2] = mass_matrix(robot, self.q, pi)[:, self.channels]
        return out
