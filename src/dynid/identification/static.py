"""Masses and first moments from postures at rest, then the other parameters from motion.

At rest only gravity acts. Combinations of masses and first moments are identifiable from it, for example with a force
plate or from the centre of pressure and the weight. They are the base parameters of the robot at rest, and each of them
is a combination of the base parameters in motion. An estimate from postures is therefore information about those: it is
added with its covariance, which equals one least squares over all rows, or it is held fixed.

With the base parameters beta_s = K_s pi at rest and beta = K pi in motion, beta_s = T beta, where T are the columns of
K_s that represent beta. Then

    added: argmin |W beta - y|^2 + |W_s T beta - y_s|^2,    held: argmin |W beta - y|^2 subject to T beta = beta_s

with rows in units of their noise; the covariance of held values S is carried on by (T^+ - F (W F)^+ W T^+), where F
spans the null space of T.

Sources: Gautier and Khalil (1990), for base parameters and their parts by gravity; Golub and Van Loan, Matrix
Computations (4th edition 2013), chapter 6, for least squares with equalities.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ConflictingArguments, DataError, InvalidValue, Mismatch, MissingData, NotIdentifiable
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.least_squares import WlsOptions, joint_noise, wls
from dynid.identification.estimators.options import check_at_least_one
from dynid.identification.estimators.solution import Solution, condition_number, solve_factor
from dynid.identification.loads import check_run, default_channels
from dynid.identification.observation import Block, Observation, fold
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_of
from dynid.identification.row_stream import channel_rows
from dynid.parameters.base import BaseParameters, base_parameters, random_states
from dynid.parameters.rank import left_to_right
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Motion, Signals, prepare
from dynid.threads import one_blas_thread

__all__ = ["StaticParameters", "identify_in_steps", "pressure_wrench", "static_parameters"]

Array = NDArray[np.float64]

# A combination at rest is one of those in motion if the remainder is not larger than this.
_SAME = 1e-7
# First guess of the noise of a channel, relative to its RMS torque.
_FIRST_NOISE = 0.01
# Number of postures for the typical size of a column, and weights that count as rounding.
_STATES = 200
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class StaticParameters:
    """Combinations of masses and first moments, identified at rest.

    Attributes
    ----------
    base : BaseParameters
        The combinations that are identifiable from these postures.
    beta : ndarray, shape (s,)
        Their values.
    covariance : ndarray, shape (s, s)
        Their covariance.
    noise : ndarray, shape (channel,)
        Standard deviation of the residual per channel, in N m or N.
    condition_number : float
        Condition number of the regressor over its noise, with unit columns.
    postures : int
        Number of intervals at rest.
    seconds : float
        Their total duration in s.
    observation : Observation
        The rows.
    unseen : tuple of str
        Combinations that are identifiable from other postures but not from these, such as heights in a foot that always
        stands flat.
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    noise: Array
    condition_number: float
    postures: int
    seconds: float
    observation: Observation
    unseen: tuple[str, ...] = ()

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def std(self) -> Array:
        """Standard deviation of each combination (s,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def in_motion(self, base: BaseParameters) -> Array:
        """The combinations at rest as combinations of the base parameters in motion.

        Parameters
        ----------
        base : BaseParameters
            Base parameters of the same robot in motion.

        Returns
        -------
        ndarray, shape (s, b)
            T, with combinations at rest = T beta.

        Raises
        ------
        DataError
            If the robots differ, or if a combination is not identifiable from the channels of `base`.
        """
        if base.robot.parameter_names != self.robot.parameter_names:
            raise Mismatch(
                f"the static parameters are of another robot or other drive terms than '{base.robot.name}'", "static"
            )
        T = self.base.matrix[:, list(base.kept)]
        left = np.abs(T @ base.matrix - self.base.matrix).max(axis=1)
        lost = np.flatnonzero(left > _SAME * np.abs(self.base.matrix).max(axis=1))
        if lost.size:
            raise Mismatch(
                f"'{self.base.names[lost[0]]}' was identified at rest but is not identifiable from the channels "
                f"{', '.join(base.channels)}; identify the motion from the same channels or more",
                "channels",
            )
        return np.asarray(T)

    def __repr__(self) -> str:
        return f"StaticParameters('{self.robot.name}', {self.beta.size} combinations, {self.postures} postures)"


def pressure_wrench(point: ArrayLike, weight: float, height: float = 0.0) -> Array:
    """Wrench of the ground on a body at rest, from its centre of pressure and its weight.

    Parameters
    ----------
    point : array_like, shape (N, 2)
        Centres of pressure in m, in axes with z upwards.
    weight : float
        Weight in N.
    height : float, default 0
        Height of the ground in m. It has no influence, since no horizontal force acts at rest.

    Returns
    -------
    ndarray, shape (N, 6)
        Force (N) and moment (N m) about the origin of these axes. As the wrench of a run it belongs to
        `WrenchSensor("world")`.

    Raises
    ------
    DataError
        If a value is not finite or the weight is not positive.
    """
    points = np.atleast_2d(np.asarray(point, dtype=float))
    points = checked(points, (len(points), 2), "centres of pressure", DataError)
    if not weight > 0:
        raise InvalidValue(f"the weight must be a positive number of newtons, got {weight}", "weight")
    if not np.isfinite(height):
        raise InvalidValue("the height of the ground is not finite", "height")
    out = np.zeros((len(points), 6))
    out[:, 2], out[:, 3], out[:, 4] = weight, weight * points[:, 1], -weight * points[:, 0]
    return out


def static_parameters(
    robot: Robot,
    recording: Recording,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    max_velocity: float = 0.02,
    hold: float = 0.3,
    iterations: int = 1,
) -> StaticParameters:
    """Combinations of masses and first moments from the samples at rest of a recording, by weighted least squares.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    recording : Recording
        Runs with intervals at rest. Joint torques at rest contain static friction, which cannot be separated from the
        load; the base wrench does not.
    signals : Signals, optional
        How the runs are filtered and differentiated.
    channels : str or sequence of str, optional
        Measured quantities that are fitted, as for `identify`; by default what all runs have.
    max_velocity : float, default 0.02
        Largest velocity of a joint or of the base at rest, in rad/s or m/s.
    hold : float, default 0.3
        Shortest interval at rest in s.
    iterations : int, default 1
        As for method "wls".

    Returns
    -------
    StaticParameters

    Raises
    ------
    DataError
        If the recording has no interval at rest, or if nothing is identifiable from it.
    """
    if not max_velocity > 0 or not hold >= 0:
        raise InvalidValue("max_velocity must be positive and hold not negative", "max_velocity")
    options = WlsOptions(iterations=iterations)
    settings = signals or Signals()
    chosen = channels if channels is not None else default_channels(robot, recording)
    base = base_parameters(robot, channels=chosen, still=True)
    intervals = []
    for run in recording.runs:
        check_run(robot, run, base.channels)
        intervals += _at_rest(prepare(run, settings), max_velocity, hold)
    if not intervals:
        raise MissingData(
            f"the recording is never at rest: no {hold:g} s below {max_velocity:g} rad/s or m/s", "max_velocity"
        )
    with one_blas_thread():
        observation = _observe_at_rest(base, intervals, settings)
        identifiable = _identifiable(observation)
        if identifiable is not base:
            observation = _observe_at_rest(identifiable, intervals, settings)
        found = wls(observation, options)
    return StaticParameters(
        base=identifiable,
        beta=found.beta,
        covariance=found.covariance,
        noise=found.noise,
        condition_number=condition_number(observation.stacked(1.0 / found.noise)[:, :-1]),
        postures=len(intervals),
        seconds=sum(len(m.t) / m.rate for m in intervals),
        observation=observation,
        unseen=tuple(n for j, n in zip(base.kept, base.names, strict=True) if j not in identifiable.kept),
    )


def identify_in_steps(
    robot: Robot,
    static: StaticParameters,
    motion: Recording | Observation,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    held: bool = False,
    iterations: int = 2,
) -> Estimate:
    """Base parameters from motion, with masses and first moments that were identified at rest.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    static : StaticParameters
        What `static_parameters` returned.
    motion : Recording or Observation
        Measured motion and torques.
    signals : Signals, optional
        How the runs are filtered and differentiated.
    channels : str or sequence of str, optional
        Measured quantities that are fitted; by default those of the static parameters.
    held : bool, default False
        Whether the static parameters are held fixed, and their covariance carried to the others. By default they are
        information with their covariance, which equals one least squares over the rows of both.
    iterations : int, default 2
        How often the noise is estimated from the residuals and the fit repeated.

    Returns
    -------
    Estimate

    Raises
    ------
    DataError
        If the static parameters belong to another robot, or if the motion does not excite the other parameters.
    """
    started = time.perf_counter()
    check_at_least_one("iterations", iterations)
    if isinstance(motion, Observation):
        if signals is not None or channels is not None:
            raise ConflictingArguments(
                "an observation has its signals and channels already; give them to observe", "signals"
            )
        if motion.robot.parameter_names != robot.parameter_names:
            raise Mismatch(f"the observation is of another robot or other drive terms than '{robot.name}'")
        observation = motion
    else:
        observation = observe(robot, motion, signals=signals, channels=channels or static.base.channels)
    T = static.in_motion(observation.base)
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    noise = np.where(size > 0, _FIRST_NOISE * size, 1.0)
    with one_blas_thread():
        solve = _held if held else _as_known
        beta, covariance, condition = solve(observation.stacked(1.0 / noise), T, static, observation.base)
        for _ in range(iterations):
            noise = joint_noise(observation, beta)
            beta, covariance, condition = solve(observation.stacked(1.0 / noise), T, static, observation.base)
    solution = Solution(beta, covariance, noise, iterations=iterations)
    method = "static, held + wls" if held else "static + wls"
    return estimate_of(observation, solution, method, started, condition)


def _as_known(factor: Array, T: Array, static: StaticParameters, base: BaseParameters) -> tuple[Array, Array, float]:
    """Least squares over the rows in motion and at rest, each over its noise; also their condition number."""
    known = static.observation.stacked(1.0 / static.noise)
    rows = np.column_stack([known[:, :-1] @ T, known[:, -1]])
    both = fold(np.vstack([factor, rows]))
    beta, inverse = solve_factor(both, base)
    return beta, inverse @ inverse.T, condition_number(both[:, :-1])


def _held(factor: Array, T: Array, static: StaticParameters, base: BaseParameters) -> tuple[Array, Array, float]:
    """Least squares over what the static parameters leave free; also the condition number of those columns."""
    R, y = factor[:, :-1], factor[:, -1]
    size = np.linalg.norm(R, axis=0)
    size = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 1.0)
    free = size[:, None] * scipy.linalg.null_space(T * size)
    pinned = size[:, None] * np.linalg.pinv(T * size)
    rows = np.column_stack([R @ free, y - R @ (pinned @ static.beta)])
    norms = np.linalg.norm(rows[:, :-1], axis=0)
    singular = np.linalg.svd(rows[:, :-1] / np.where(norms > 0, norms, 1.0), compute_uv=False)
    if free.shape[1] and (len(singular) < free.shape[1] or singular[-1] <= 1e-12 * singular[0]):
        names = [base.names[i] for i in np.argsort(-np.abs(free / size[:, None]).max(axis=1))[:6]]
        raise NotIdentifiable(
            f"this motion does not excite all that the postures leave free, such as {', '.join(names)}"
        )
    solve = np.linalg.pinv(rows[:, :-1])
    beta = pinned @ static.beta + free @ (solve @ rows[:, -1])
    carry = pinned - free @ (solve @ (R @ pinned))
    root = free @ solve
    condition = condition_number(rows[:, :-1]) if free.shape[1] else 1.0
    return beta, carry @ static.covariance @ carry.T + root @ root.T, condition


def _at_rest(motion: Motion, max_velocity: float, hold: float) -> list[Motion]:
    """Intervals at rest of a filtered run, with velocities and accelerations of zero."""
    fast = np.abs(motion.v).max(axis=1, initial=0.0)
    if motion.base is not None:
        fast = np.maximum(fast, np.abs(motion.base.v).max(axis=1))
    inside = fast <= max_velocity
    inside[: motion.lead] = False
    inside[len(inside) - motion.lead :] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]])))
    out = []
    for start, stop in edges.reshape(-1, 2):
        if stop - start >= max(hold * motion.rate, 1):
            out.append(_interval(motion, slice(int(start), int(stop))))
    return out


def _interval(motion: Motion, rows: slice) -> Motion:
    """Some samples of a run, with velocities and accelerations of zero."""
    zero = np.zeros_like(motion.q[rows])
    base = motion.base
    if base is not None:
        nothing = np.zeros((len(zero), 6))
        base = replace(base, pose=base.pose[rows], v=nothing, a=nothing)
    return replace(
        motion,
        t=motion.t[rows],
        q=motion.q[rows],
        v=zero,
        a=zero,
        torque=None if motion.torque is None else motion.torque[rows],
        decimate=(),
        lead=0,
        base=base,
        wrench=None if motion.wrench is None else motion.wrench[rows],
        wrenches={name: x[rows] for name, x in motion.wrenches.items()},
    )


def _identifiable(observation: Observation) -> BaseParameters:
    """The combinations that are identifiable from these postures: all of the base parameters at rest, or fewer."""
    base = observation.base
    q, v, a = random_states(base.robot, _STATES, seed=0)
    typical = np.sqrt(np.mean(np.sum(base.regressor(q, 0 * v, 0 * a) ** 2, axis=1), axis=0))
    samples = max(observation.rows)
    W = observation.stacked()[:, :-1] / (typical * np.sqrt(samples))
    kept = left_to_right(W, range(base.count))
    if len(kept) == base.count:
        return base
    if not kept:
        raise NotIdentifiable(
            "nothing is identifiable from these postures: no weight acts on the chosen channels", "channels"
        )
    rest = [i for i in range(base.count) if i not in kept]
    weights = np.linalg.lstsq(W[:, kept], W[:, rest], rcond=None)[0]
    weights[np.abs(weights) < _ROUNDING] = 0.0
    C = np.zeros((len(kept), base.count))
    C[np.arange(len(kept)), kept] = 1.0
    C[:, rest] = weights * typical[rest] / typical[kept][:, None]
    columns = tuple(base.kept[i] for i in kept)
    others = tuple(j for j in range(base.matrix.shape[1]) if j not in columns)
    return replace(base, matrix=C @ base.matrix, kept=columns, dependent=others)


def _observe_at_rest(base: BaseParameters, intervals: Sequence[Motion], settings: Signals) -> Observation:
    """All rows of the intervals at rest, folded; none is left out because its joint stands still."""

    def blocks() -> Iterator[Block]:
        first = 0
        for motion in intervals:
            for block, _ in channel_rows(base, motion, first):
                yield block
            first += len(motion.t)

    factors = [np.zeros((0, base.count + 1)) for _ in base.channels]
    rows = [0] * len(base.channels)
    for block in blocks():
        stack = np.vstack([factors[block.channel], np.column_stack([block.W, block.y])])
        factors[block.channel] = fold(np.asfortranarray(stack))
        rows[block.channel] += len(block.y)
    return Observation(base, tuple(factors), tuple(rows), blocks, settings, tuple(m.cutoff for m in intervals))
