"""Samples of which nothing can be learned: joints that press against a mechanical stop, and joints that stand still.

A stop takes torque that no parameter of the robot explains, always in the direction of the stop, and only at the end of
the range that a joint moves in. A model of the torque of the joint is fitted without the ends of its range and predicts
the torque there. It is a stop if the torque beyond the prediction, averaged over all samples at one end, is half as
large again as what may be expected: the largest error elsewhere, larger where the prediction extrapolates, and the
Coulomb friction, whose sign is not known while a joint reverses.

Hysteresis of friction, elastic gears and cables act at the turning points of a motion too. So a joint whose position
limits are known has a stop only where its motion reaches a limit.

The torque of a joint at rest contains an unknown part of its stiction, so its rows are left out. If a joint moves in no
run, its friction, its rotor inertia and some combinations of the inertias beyond it have no effect on the rows that are
left. Noise of a sensor must not decide them: they keep their a-priori values, and their standard deviation is infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.functions import regressor
from dynid.identification.loads import measured, state
from dynid.parameters.base import BaseParameters, random_states
from dynid.robot.drives import drive_symbols
from dynid.robot.model import Robot
from dynid.robot.parts import Limits
from dynid.signals.filters import lowpass
from dynid.signals.motion_band import SMALLEST_ANGLE, SMALLEST_LENGTH
from dynid.signals.settings import Motion, Signals

__all__ = [
    "JointRows",
    "Rest",
    "Standstill",
    "Stop",
    "find_stop",
    "moving_joints",
    "smallest_motions",
    "standstill",
    "standstill_of",
    "stop_notes",
    "stops_of_rows",
    "without_stops",
]

Array = NDArray[np.float64]

# Random states per run that show which combinations of parameters have an effect, and singular values of those without
# one, relative to the largest, of columns with unit norm.
_STATES, _NO_EFFECT = 200, 1e-9
# Part of a base parameter in a combination without effect from which it counts as unknown.
_PART = 1e-6
# Weight of the a-priori values of unknown combinations, relative to that of the data of a channel. It does not matter
# for the estimate, because the data say nothing about them, but both should have similar sizes.
_WEIGHT = 0.1


@dataclass(frozen=True, eq=False)
class Standstill:
    """What the joints that stand still leave unknown.

    Attributes
    ----------
    joints : tuple of str
        Joints that move in no run.
    unknown : ndarray of bool, shape (b,)
        Base parameters that depend on their motion.
    rows : ndarray, shape (k, b + 1)
        Equations that give unknown combinations of base parameters their a-priori values.
    """

    joints: tuple[str, ...]
    unknown: NDArray[np.bool_]
    rows: Array

    @property
    def note(self) -> str:
        """What to know about an estimate from such motion."""
        plural = len(self.joints) > 1
        return (
            f"{', '.join(self.joints)} {'stand' if plural else 'stands'} still: {int(self.unknown.sum())} base "
            "parameters are unknown and keep their a-priori values"
        )


@dataclass(frozen=True, eq=False)
class Rest:
    """Which joints (joint,) move in a run, and the mean positions (joint,) in rad or m."""

    moving: NDArray[np.bool_]
    position: Array


def smallest_motions(robot: Robot) -> Array:
    """Range (joint,) in rad or m below which a joint stands still."""
    kinds = [j.kind for j in robot.joints if j.name in robot.coordinates]
    return np.array([SMALLEST_ANGLE if kind == "revolute" else SMALLEST_LENGTH for kind in kinds])


def moving_joints(robot: Robot, motion: Motion, settings: Signals) -> NDArray[np.bool_]:
    """Joints (joint,) that move in a run by more than the smallest motion and by more than the noise of their sensor.

    All joints count as moving where no row is left out for a low velocity, and on a floating base, whose motion moves
    them too.
    """
    if robot.base == "floating" or not motion.v.shape[1] or not settings.drops_slow_rows:
        return np.ones(motion.v.shape[1], dtype=bool)
    span = np.ptp(motion.q, axis=0)
    return np.asarray((span > smallest_motions(robot)) & (span > motion.q_noise))


def standstill(base: BaseParameters, motions: Sequence[Motion], settings: Signals) -> Standstill | None:
    """What is unknown because joints stand still in all runs; None if each joint moves in some run."""
    return standstill_of(base, [Rest(moving_joints(base.robot, m, settings), m.q.mean(axis=0)) for m in motions])


def standstill_of(base: BaseParameters, rests: Sequence[Rest]) -> Standstill | None:
    """The same from which joints move in every run."""
    robot = base.robot
    moving = [rest.moving for rest in rests]
    if not moving or np.all(np.any(moving, axis=0)):
        return None
    still = [name for name, moved in zip(robot.coordinates, np.any(moving, axis=0), strict=True) if not moved]
    stacks = []
    for k, rest in enumerate(rests):
        moves = rest.moving
        q, v, a = random_states(robot, _STATES, seed=k)
        q[:, ~moves] = rest.position[~moves]
        v[:, ~moves] = a[:, ~moves] = 0.0
        free = dict(zip(robot.coordinates, moves, strict=True))
        seen = [i for i, channel in enumerate(base.channels) if free.get(channel, True)]
        stacks.append(base.regressor(q, v, a)[:, seen].reshape(-1, base.count))
    W = np.vstack(stacks)
    size = np.sqrt(np.mean(W**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    _, s, vt = np.linalg.svd(W / size, full_matrices=False)
    hidden = vt[s <= _NO_EFFECT * s[0]]
    rows = hidden * size
    prior = base.values()
    return Standstill(
        tuple(still),
        np.asarray(np.abs(hidden).max(axis=0, initial=0.0) > _PART),
        _WEIGHT * np.column_stack([rows, rows @ prior]),
    )


Mask = NDArray[np.bool_]

# Shares of the range of a joint: the end at which a stop is looked for, the end that the model is fitted without, and
# the part in which samples of a stop are left out.
_END, _UNFITTED, _REACH = 0.01, 0.02, 0.1
# Rows on either side of these ends that filters mix with them.
_NEIGHBOURS = 3
# Mean torque beyond the prediction over what may be expected, and the fewest rows that it is the mean of.
_BEYOND, _FEWEST = 1.5, 3
# Smaller errors of the model, as a share of the torque, are of no interest: filters cause them without any noise.
_SMALLEST = 0.03
# Rows per column that a model needs: with fewer, an estimate depends on single samples.
_ROWS_PER_COLUMN = 10
# Rows that are searched: of a longer recording one in so many, because more cost time and tell no more.
_MOST_ROWS = 20_000
# Unit columns that are dependent to this are not distinguished.
_RIDGE = 1e-6
_COULOMB = drive_symbols("coulomb", "stribeck")
# A motion reaches a limit if it comes as near as this share of the range between the limits.
_REACHED = 0.02


@dataclass(frozen=True)
class Stop:
    """A mechanical stop.

    Attributes
    ----------
    joint : str
        Name of the joint.
    side : {-1, 1}
        Lower or upper end of its range.
    position : float
        Position (rad or m) from which the torque is not explained.
    torque : float
        Mean torque (N m or N) that is not explained at the stop.
    share : float
        Share of the samples that are left out.
    """

    joint: str
    side: int
    position: float
    torque: float
    share: float


@dataclass(frozen=True, eq=False)
class JointRows:
    """Samples of a joint in the order of time: regressor columns, torque, position, velocity.

    `coulomb` are the columns of Coulomb friction, `run` numbers the run of every sample, `slowest` is the velocity
    below which a joint counts as standing.
    """

    W: Array
    y: Array
    q: Array
    v: Array
    run: NDArray[np.int64]
    coulomb: list[int]
    slowest: float


def find_stop(rows: JointRows) -> Iterator[tuple[int, float, float, Mask]]:
    """Side, position, mean unexplained torque and samples of every stop of a joint."""
    q, span = rows.q, float(np.ptp(rows.q))
    if span == 0.0 or not rows.y.any():
        return
    inward = {1: q.max() - q, -1: q - q.min()}
    ends = _widened(np.minimum(inward[1], inward[-1]) <= _UNFITTED * span, rows.run)
    fitted = ~ends & (np.abs(rows.v) >= rows.slowest)
    W = np.column_stack([rows.W, np.sign(rows.v)])
    if fitted.sum() < _ROWS_PER_COLUMN * W.shape[1]:
        return
    norms = np.linalg.norm(W[fitted], axis=0)
    W = W[:, norms > 0] / norms[norms > 0]
    coulomb = [k for k, j in enumerate(np.flatnonzero(norms > 0)) if j in rows.coulomb or j == len(norms) - 1]
    factor = scipy.linalg.qr(np.vstack([W[fitted], _RIDGE * np.eye(W.shape[1])]), mode="r")[0][: W.shape[1]]
    half = scipy.linalg.solve_triangular(factor, W[fitted].T @ rows.y[fitted], trans=1)
    x = scipy.linalg.solve_triangular(factor, half)
    error = rows.y - W @ x
    largest = max(float(np.abs(error[fitted]).max()), _SMALLEST * float(np.sqrt(np.mean(rows.y**2))))
    friction = float(np.abs(W[fitted][:, coulomb] @ x[coulomb]).max())
    for side, distance in inward.items():
        near = distance <= _REACH * span
        leverage = np.zeros(len(q))
        leverage[near] = np.sum(scipy.linalg.solve_triangular(factor, W[near].T, trans=1) ** 2, axis=0)
        expected = largest * np.sqrt(1.0 + leverage)
        end = distance <= _END * span
        if end.sum() < _FEWEST or np.mean(side * error[end] / (expected[end] + friction)) < _BEYOND:
            continue
        hit = near & (side * error > expected)
        depth = float(np.median(distance[hit])) if hit.any() else _END * span
        pressed = hit | (distance <= depth)
        position = float(q[distance <= depth].min() if side > 0 else q[distance <= depth].max())
        yield side, position, float(np.mean(side * error[end])), _widened(pressed, rows.run)


def without_stops(
    base: BaseParameters, motions: Sequence[Motion], settings: Signals
) -> tuple[list[Motion], tuple[Stop, ...]]:
    """Filtered runs whose samples at mechanical stops are marked, and the stops."""
    joints = any(name in base.channels for name in base.robot.coordinates)
    if not settings.stops or not motions or not joints or any(m.torque is None for m in motions):
        return list(motions), ()
    # Where no joint reaches a limit there is nothing to look for.
    reached = np.concatenate([m.q for m in motions])
    if not any(_may_stop(base, j, reached[:, j]) for j in range(len(base.robot.coordinates))):
        return list(motions), ()
    steps = [max(1, int(np.prod(m.decimate))) for m in motions]
    more = -(-sum(len(m.q) // step for m, step in zip(motions, steps, strict=True)) // _MOST_ROWS)
    steps = [max(more, 1) * step for step in steps]
    thinned = [_thinned(base, motion, step) for motion, step in zip(motions, steps, strict=True)]
    run = np.concatenate([np.full(len(Y), k) for k, (Y, _, _, _) in enumerate(thinned)])
    Y, y, q, v = (np.concatenate(x) for x in zip(*thinned, strict=True))
    marks = [np.zeros(m.q.shape, dtype=bool) for m in motions]
    found: list[Stop] = []
    for stop, pressed in stops_of_rows(base, Y, y, q, v, run, settings.velocity_limits(v)):
        found.append(stop)
        j = base.robot.coordinates.index(stop.joint)
        for k, step in enumerate(steps):
            marks[k][:, j] |= np.repeat(pressed[run == k], step)[: len(marks[k])]
    return [replace(m, stopped=x) if x.any() else m for m, x in zip(motions, marks, strict=True)], tuple(found)


def stops_of_rows(
    base: BaseParameters, Y: Array, y: Array, q: Array, v: Array, run: NDArray[np.int64], slowest: Array
) -> Iterator[tuple[Stop, Mask]]:
    """Stops and their samples, from the regressor (N, channel, b), torques (N, channel), q and v (N, joint)."""
    effect = np.abs(base.regressor(*random_states(base.robot, 8, seed=0))).max(axis=0) > 0
    for j, name in enumerate(base.robot.coordinates):
        if not _may_stop(base, j, q[:, j]):
            continue
        channel = base.channels.index(name)
        columns = np.flatnonzero(effect[channel])
        coulomb = [k for k, c in enumerate(columns) if base.robot.layout[base.kept[c]].symbol in _COULOMB]
        rows = JointRows(Y[:, channel][:, columns], y[:, channel], q[:, j], v[:, j], run, coulomb, float(slowest[j]))
        limits = base.robot.limits[name]
        for side, position, torque, pressed in find_stop(rows):
            if not _reaches(limits, side, rows.q):
                continue
            yield Stop(name, side, position, torque, float(pressed.mean())), pressed


def _may_stop(base: BaseParameters, joint: int, q: Array) -> bool:
    """Whether the torque of a joint is known and its motion reaches a limit on any side."""
    name = base.robot.coordinates[joint]
    return name in base.channels and any(_reaches(base.robot.limits[name], side, q) for side in (1, -1))


def _reaches(limits: Limits, side: int, q: Array) -> bool:
    """Whether a motion reaches the position limit of its joint on one side; true where there is no limit."""
    room = limits.upper - float(q.max()) if side > 0 else float(q.min()) - limits.lower
    span = limits.upper - limits.lower
    return not np.isfinite(room) or room <= _REACHED * (span if np.isfinite(span) else float(np.ptp(q)))


def stop_notes(stops: Sequence[Stop]) -> tuple[str, ...]:
    """One sentence per stop."""
    return tuple(
        f"{s.joint} presses against a stop at {s.position:.4g}: {100 * s.share:.2g} % of its samples are left out"
        for s in stops
    )


def _thinned(base: BaseParameters, motion: Motion, step: int) -> tuple[Array, Array, Array, Array]:
    """Regressor (N, channel, b), torques, positions and velocities of one sample per row, all filtered alike."""
    assert motion.torque is not None
    robot, rows = base.robot, slice(None, None, step)
    torque = motion.torque
    if motion.cutoff is not None:
        torque = lowpass(torque, motion.cutoff, motion.rate)
    q, v, a = state(robot, motion, rows)
    channels = [robot.channels.index(c) for c in base.channels]
    Y = regressor(robot, q, v, a)[:, channels][:, :, list(base.kept)]
    y = measured(robot, replace(motion, torque=torque), q, rows)[:, channels]
    return Y, y, motion.q[rows], motion.v[rows]


def _widened(chosen: Mask, run: NDArray[np.int64]) -> Mask:
    """The chosen samples with their neighbours in the same run."""
    out = chosen.copy()
    for k in range(1, _NEIGHBOURS + 1):
        same = run[k:] == run[:-k]
        out[k:] |= chosen[:-k] & same
        out[:-k] |= chosen[k:] & same
    return out
