"""Masses and first moments from postures at rest, inertias from motions: the two parts of an identification.

At rest only gravity counts. What it shows are combinations of masses and first moments: those of the centre of mass,
which a force plate, or a centre of pressure and a weight, tell in every posture. They are the base parameters of the
robot at rest, and each of them is a combination of its base parameters in motion. So an estimate from postures becomes
information about those: as it is known, which is the same as all rows in one least squares, or held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import joint_noise, wls
from dynid.identification.loads import check_run, default_channels
from dynid.identification.observation import Block, Observation, channel_rows, fold, observe
from dynid.identification.pipeline import estimate_of
from dynid.parameters.base import BaseParameters, base_parameters, left_to_right, random_states
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["StaticParameters", "identify_in_steps", "pressure_wrench", "static_parameters"]

Array = NDArray[np.float64]

# A static combination is one of those in motion where no more than this of it is left over.
_SAME = 1e-7
# Share of a channel's size that its noise is taken to be before there is a residual.
_FIRST_NOISE = 0.01
# Postures in which the typical size of a column is looked at, and weights that are rounding.
_STATES = 200
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class StaticParameters:
    """Combinations of masses and first moments (s,) with covariance (s, s), found at rest.

    `base` is the structure at rest, `noise` (channel,) the residual deviation, `postures` the number of still stretches
    and `seconds` how long they lasted. `observation` are the rows. `unseen` names combinations that other postures
    would have shown and these do not, such as heights in a foot that always stands flat.
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
        return self.base.robot

    @property
    def std(self) -> Array:
        """Standard deviation of each combination (s,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def in_motion(self, base: BaseParameters) -> Array:
        """T (s, b): the static combinations as combinations of the base parameters of the robot in motion."""
        if base.robot.parameter_names != self.robot.parameter_names:
            raise DataError(f"the static part is of another robot or other drive terms than '{base.robot.name}'")
        T = self.base.matrix[:, list(base.kept)]
        left = np.abs(T @ base.matrix - self.base.matrix).max(axis=1)
        lost = np.flatnonzero(left > _SAME * np.abs(self.base.matrix).max(axis=1))
        if lost.size:
            raise DataError(
                f"'{self.base.names[lost[0]]}' was found at rest but does not show in the channels "
                f"{', '.join(base.channels)}; identify the motion from the same channels or more"
            )
        return np.asarray(T)

    def __repr__(self) -> str:
        return f"StaticParameters('{self.robot.name}', {self.beta.size} combinations, {self.postures} postures)"


def pressure_wrench(point: ArrayLike, weight: float, height: float = 0.0) -> Array:
    """Wrench (N, 6) of the ground on a body at rest from its centre of pressure (N, 2), m, and its weight, N.

    It is in the axes and about the origin in which the points are given, z upwards; they lie at z = `height`. No other
    forces act at rest, so the height does not matter then. As a run's wrench it goes with `WrenchSensor("world")`.
    """
    points = np.atleast_2d(np.asarray(point, dtype=float))
    points = checked(points, (len(points), 2), "centres of pressure", DataError)
    if not weight > 0:
        raise DataError(f"the weight must be a positive number of newtons, got {weight}")
    if not np.isfinite(height):
        raise DataError("the height of the ground is not finite")
    out = np.zeros((len(points), 6))
    out[:, 2], out[:, 3], out[:, 4] = weight, weight * points[:, 1], -weight * points[:, 0]
    return out


def static_parameters(
    robot: Robot,
    recording: Recording,
    signals: Signals | None = None,
    *,
    channels: str | Sequence[str] | None = None,
    speed: float = 0.02,
    hold: float = 0.3,
    iterations: int = 1,
) -> StaticParameters:
    """Combinations of masses and first moments from the still samples of a recording, by weighted least squares.

    Still is where no joint, nor the base, moves faster than `speed` (rad/s or m/s) for at least `hold` seconds. Joint
    torques at rest hold whatever friction keeps back, which no posture tells from load: the base wrench is free of it.
    """
    if not speed > 0 or not hold >= 0:
        raise DataError("speed must be positive and hold not negative")
    settings = signals or Signals()
    chosen = channels if channels is not None else default_channels(robot, recording)
    base = base_parameters(robot, channels=chosen, still=True)
    stretches = []
    for run in recording.runs:
        check_run(robot, run, base.channels)
        stretches += _still(prepare(run, settings), speed, hold)
    if not stretches:
        raise DataError(f"the recording never stands still: no {hold:g} s below {speed:g} rad/s or m/s")
    with threadpool_limits(1, "blas"):
        observation = _observe_at_rest(base, stretches, settings)
        shown = _shown(observation)
        if shown is not base:
            observation = _observe_at_rest(shown, stretches, settings)
        found = wls(observation, iterations)
    seconds = sum(len(m.t) / m.rate for m in stretches)
    return StaticParameters(
        shown,
        found.beta,
        found.covariance,
        found.noise,
        found.condition_number,
        len(stretches),
        seconds,
        observation,
        tuple(n for j, n in zip(base.kept, base.names, strict=True) if j not in shown.kept),
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
    """Base parameters from motions, with what postures told about masses and first moments.

    The static combinations count as they are known, which is one least squares over the rows of both, or with `held`
    are not moved at all: their covariance then goes into that of the others. Channels are those of the static part
    unless others are given.
    """
    started = time.perf_counter()
    if isinstance(motion, Observation):
        if signals is not None or channels is not None:
            raise DataError("an observation has its signals and channels already; give them to observe")
        if motion.robot.parameter_names != robot.parameter_names:
            raise DataError(f"the observation is of another robot or other drive terms than '{robot.name}'")
        observation = motion
    else:
        observation = observe(robot, motion, signals, channels=channels or static.base.channels)
    if iterations < 1:
        raise DataError(f"at least one iteration is needed, got {iterations}")
    T = static.in_motion(observation.base)
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    noise = np.where(size > 0, _FIRST_NOISE * size, 1.0)
    with threadpool_limits(1, "blas"):
        solve = _held if held else _as_known
        beta, covariance, condition = solve(observation.stacked(1.0 / noise), T, static, observation.base)
        for _ in range(iterations):
            noise = joint_noise(observation, beta)
            beta, covariance, condition = solve(observation.stacked(1.0 / noise), T, static, observation.base)
    solution = Solution(beta, covariance, noise, condition, iterations=iterations)
    return estimate_of(observation, solution, "static, held + wls" if held else "static + wls", started)


def _as_known(factor: Array, T: Array, static: StaticParameters, base: BaseParameters) -> tuple[Array, Array, float]:
    """Least squares over the rows of motion and those at rest, each over its noise."""
    known = static.observation.stacked(1.0 / static.noise)
    rows = np.column_stack([known[:, :-1] @ T, known[:, -1]])
    beta, inverse, condition = solve_factor(fold(np.vstack([factor, rows])), base)
    return beta, inverse @ inverse.T, condition


def _held(factor: Array, T: Array, static: StaticParameters, base: BaseParameters) -> tuple[Array, Array, float]:
    """Least squares over what the static combinations leave free."""
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
        raise DataError(f"this motion does not show all that postures leave open, among it {', '.join(names)}")
    solve = np.linalg.pinv(rows[:, :-1])
    beta = pinned @ static.beta + free @ (solve @ rows[:, -1])
    carry = pinned - free @ (solve @ (R @ pinned))
    spread = free @ solve
    condition = float(np.linalg.cond(rows[:, :-1])) if free.shape[1] else 1.0
    return beta, carry @ static.covariance @ carry.T + spread @ spread.T, condition


def _still(motion: Motion, speed: float, hold: float) -> list[Motion]:
    """Stretches of a cleaned run in which nothing moves, with velocities and accelerations of zero."""
    fast = np.abs(motion.v).max(axis=1, initial=0.0)
    if motion.base is not None:
        fast = np.maximum(fast, np.abs(motion.base.v).max(axis=1))
    inside = fast <= speed
    inside[: motion.lead] = False
    inside[len(inside) - motion.lead :] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]])))
    out = []
    for start, stop in edges.reshape(-1, 2):
        if stop - start >= max(hold * motion.rate, 1):
            out.append(_at_rest(motion, slice(int(start), int(stop))))
    return out


def _at_rest(motion: Motion, rows: slice) -> Motion:
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


def _shown(observation: Observation) -> BaseParameters:
    """The combinations that these postures show: the structure itself, or fewer."""
    base = observation.base
    q, v, a = random_states(base.robot, _STATES, seed=0)
    typical = np.sqrt(np.mean(np.sum(base.regressor(q, 0 * v, 0 * a) ** 2, axis=1), axis=0))
    samples = max(observation.rows)
    W = observation.stacked()[:, :-1] / (typical * np.sqrt(samples))
    kept = left_to_right(W, range(base.count))
    if len(kept) == base.count:
        return base
    if not kept:
        raise DataError("the postures show nothing: the chosen channels feel no weight")
    rest = [i for i in range(base.count) if i not in kept]
    weights = np.linalg.lstsq(W[:, kept], W[:, rest], rcond=None)[0]
    weights[np.abs(weights) < _ROUNDING] = 0.0
    C = np.zeros((len(kept), base.count))
    C[np.arange(len(kept)), kept] = 1.0
    C[:, rest] = weights * typical[rest] / typical[kept][:, None]
    columns = tuple(base.kept[i] for i in kept)
    others = tuple(j for j in range(base.matrix.shape[1]) if j not in columns)
    return replace(base, matrix=C @ base.matrix, kept=columns, dependent=others)


def _observe_at_rest(base: BaseParameters, stretches: Sequence[Motion], settings: Signals) -> Observation:
    """All rows of still stretches, folded; no row is left out for its joint's speed."""

    def blocks() -> Iterator[Block]:
        first = 0
        for motion in stretches:
            for block, _ in channel_rows(base, motion, first):
                yield block
            first += len(motion.t)

    factors = [np.zeros((0, base.count + 1)) for _ in base.channels]
    rows = [0] * len(base.channels)
    for block in blocks():
        stack = np.vstack([factors[block.channel], np.column_stack([block.W, block.y])])
        factors[block.channel] = fold(np.asfortranarray(stack))
        rows[block.channel] += len(block.y)
    return Observation(base, tuple(factors), tuple(rows), blocks, settings, tuple(m.cutoff for m in stretches))
