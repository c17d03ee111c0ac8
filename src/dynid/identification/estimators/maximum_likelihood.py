"""Maximum likelihood with noise in positions and torques (Olsen, Swevers and Verdonck 2002).

Least squares takes the motion as exact. Here every sample's torque error is e = torque noise - J n, with n the noise of
position, speed and acceleration after filtering and J the slopes of inverse dynamics; it has its own covariance, which
depends on the parameters.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.errors import DataError
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.closed_loop import Start, starting_parameters, with_history
from dynid.identification.estimators.solution import Iteration, Solution, report_iteration, solve_factor
from dynid.identification.estimators.wls import joint_noise, wls
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, channel_rows, fold, speed_limits
from dynid.signals.filters import decimate, derivative, lowpass
from dynid.signals.settings import Motion, Signals

__all__ = ["joint_values", "ml", "position_deviations"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 50
_TOLERANCE = 0.01
_DIFFERENCE = 1e-6
_HALVINGS = 20
_SWEEPS = 50  # of the torque covariance a round
# Differences of this order leave white noise and next to nothing of a motion sampled many times a swing.
_ORDER, _GAIN = 4, 70.0
_LEAST_SHARE = 1e-7
# The response of filters and decimation is followed for this many decimated samples and cut-off periods.
_MEMORY, _PERIODS = 20, 5


def ml(
    experiment: Experiment,
    start: Start | Literal["wls"] = "wls",
    tolerance: float = _TOLERANCE,
    max_iterations: int = _MAX_ITERATIONS,
    position_noise: ArrayLike | None = None,
) -> tuple[Solution, Observation]:
    """Parameters and the full covariance of the torques' noise, with the positions' noise known.

    `position_noise` (rad or m; one number or one a joint) is that of the encoders, found from the fastest changes of
    the positions if not given. Each round takes a Gauss-Newton step on the weighted squares sum e' Sigma(beta)^-1 e,
    shortened until they fall, then raises the likelihood of the torque covariance (EM). The noise must not come back
    through feedback within the band that the filters keep; a filter or a closed-loop method is for that.
    """
    if max_iterations < 1 or not tolerance > 0:
        raise DataError(
            f"at least one iteration and a positive tolerance are needed, got {max_iterations} and {tolerance}"
        )
    base, observed = experiment.base, experiment.measured
    first = (
        base.standard(wls(observed).beta)
        if isinstance(start, str) and start == "wls"
        else starting_parameters(experiment, start)
    )
    samples = _Samples(experiment, position_deviations(experiment, position_noise))
    possible = feasible_set(experiment.robot, [Inertia(margin=0.0), Signs()])
    beta, before = base.values(first), np.inf
    torque = np.diag(joint_noise(observed, beta) ** 2)
    status, history = f"not converged in {max_iterations} iterations", []
    for _ in range(max_iterations):
        started = time.perf_counter()
        weighed = samples.weighed(base.standard(beta, first), beta, torque)
        move, inverse, condition = solve_factor(samples.factor(weighed), base)
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
        report_iteration(history, max_iterations)
        if step <= tolerance and abs(left - before) <= tolerance * left:
            status = "converged"
            break
        before = left
    noise = np.sqrt(np.diag(torque))
    notes = (
        "position noise " + ", ".join(f"{x:.3g}" for x in samples.deviation),
        "torque noise of decimated rows " + ", ".join(f"{x:.3g}" for x in noise),
    )
    solution = Solution(beta, inverse @ inverse.T, joint_noise(observed, beta), condition, notes=notes)
    return with_history(solution, status, history), observed


def joint_values(given: ArrayLike, n: int, name: str) -> Array:
    """Positive numbers (n,) from one for all joints or one a joint."""
    value = np.asarray(given, dtype=float)
    if value.shape not in ((), (n,)) or not np.all((value > 0) & np.isfinite(value)):
        raise DataError(f"{name} needs one positive number or one a joint ({n})")
    return np.broadcast_to(value, (n,)).copy()


def position_deviations(experiment: Experiment, given: ArrayLike | None = None) -> Array:
    """Deviations (n,) of measured positions: as given, or what their fourth differences show.

    Fourth differences of white noise are sqrt(70) times as large. Not below 1e-7 of a joint's range.
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
    """Covariance (3, 3) of position, speed and acceleration at a decimated sample for unit white noise of positions.

    Impulses at every place between two decimated samples go through the filters; their responses, seen at all
    samples, are the weights of all noise in one sample.
    """
    step = int(np.prod(motion.decimate)) if motion.decimate else 1
    periods = 0 if motion.cutoff is None else int(_PERIODS * motion.rate / motion.cutoff)
    half = -(-max(_MEMORY * step, periods, 30) // step) * step
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
    """Errors (K, c), slopes J (K, c, n, 3), their part of the covariance, its inverse with torque noise, and e' L e."""

    errors: Array
    slopes: Array
    motion: Array
    inverse: Array
    squares: float


class _Samples:
    """Decimated samples with every channel's rows; rows that do not count are zero and unrelated to the others."""

    def __init__(self, experiment: Experiment, deviation: Array) -> None:
        signals = experiment.signals
        if signals.measured_velocity or signals.median:
            raise DataError(
                "ml follows the positions' noise through filter and derivatives; leave measured_velocity and median off"
            )
        self.base, self.deviation = experiment.base, deviation
        self.channels = [experiment.robot.coordinates.index(c) for c in self.base.channels]
        W, y, counts, state, gains = [], [], [], [], []
        for motion in experiment.centred_motions:
            limits = speed_limits(self.base, motion, signals)
            rows: list[list[tuple[Array, Array, Array]]] = [[] for _ in self.channels]
            for block, speed in channel_rows(self.base, motion):
                rows[block.channel].append((block.W, block.y, np.abs(speed) >= limits[block.channel]))
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
        """Errors of these parameters and their covariances."""
        slopes = self._slopes(pi) * self.here[..., None, None]
        motion = np.einsum("kcif,i,kfg,kdig->kcd", slopes, self.deviation**2, self.gains, slopes, optimize=True)
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
        """Factor of whitened [Y e], with Y at the states that the errors make likely: x + C J' L e.

        That makes Y' L e the exact gradient of half the squares, what the covariance owes to the parameters included.
        """
        pull = np.einsum("kcd,kd->kc", weighed.inverse, weighed.errors)
        gains = self.gains[:, None] * self.deviation[:, None, None] ** 2
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
        """One EM step for the covariance of the torques' noise: the likelihood does not fall."""
        inverse = weighed.inverse * (self.here[:, :, None] & self.here[:, None, :])
        share = np.einsum("ab,kbc,kc->ka", torque, inverse, weighed.errors)
        kept = torque - torque @ inverse.mean(axis=0) @ torque + share.T @ share / len(share)
        return 0.5 * (kept + kept.T)

    def _slopes(self, pi: Array) -> Array:
        """Derivatives of the torques (K, channel, joint, 3) by position, speed and acceleration of each joint."""
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
