"""Joints that stand still: which they are, and which base parameters nothing can be said about without their motion.

The torque of a joint at rest contains an unknown part of its stiction, so its rows are left out. If a joint moves in no
run, its friction, its rotor inertia and some combinations of the inertias beyond it have no effect on the rows that are
left. Noise of a sensor must not decide them: they keep their a-priori values, and their standard deviation is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.base import BaseParameters, random_states
from dynid.robot.model import Robot
from dynid.signals.motion_band import SMALLEST_ANGLE, SMALLEST_LENGTH
from dynid.signals.settings import Motion, Signals

__all__ = ["Rest", "Standstill", "moving_joints", "smallest_motions", "standstill", "standstill_of"]

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
