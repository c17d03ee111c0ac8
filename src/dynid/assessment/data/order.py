"""Columns under the wrong joint: velocities, torques, or all signals in another order than the robot's joints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import basis, find_delay
from dynid.assessment.finding import Finding
from dynid.recording.recording import Run
from dynid.robot.model import Robot

__all__ = ["check_order", "joint_order", "torque_order", "velocity_order"]

Array = NDArray[np.float64]
Order = tuple[int, ...]  # for every joint of the robot, the column that holds its signal

# A velocity of which its own joint's position explains less than half, and another's nearly all, is that other's.
_NOT_ITS_OWN = 0.5
_CLEARLY_ANOTHERS = 0.1
# Below this unexplained share a model is good; fits better than that do not argue for another order.
_GOOD = 0.02
# Sum over joints of the logarithm of unexplained variance that another order must save: chance matches in lightly
# loaded joints of rightly ordered recordings save about 1, real mistakes 5 and more.
_SAVING = 3.0
# The search over orders looks at no more rows than this.
_ROWS = 400
_LONGEST_DELAY = 0.5


def check_order(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Signals that belong to another joint than their column says."""
    names = context.recording.joints
    if names != robot.coordinates and sorted(names) == sorted(robot.coordinates):
        yield context.found(
            "error",
            run,
            None,
            "The joints of the recording are those of the robot in another order.",
            f"{sum(a != b for a, b in zip(names, robot.coordinates, strict=True))} joints stand elsewhere",
            f"Load the recording with the robot, so that columns come in its order: {', '.join(robot.coordinates)}.",
        )
        return
    for signal, order in (
        ("velocity of this joint is", velocity_order(run, context)),
        ("torque of this joint is", torque_order(run, context)),
        ("position, velocity and torque of this joint are", joint_order(run, context)),
    ):
        # Column k holds what belongs to the joint at place k of the inverse order.
        inverse = np.argsort(order)
        for k, owner in enumerate(inverse):
            if owner != k:
                yield context.found(
                    "error",
                    run,
                    k,
                    f"The {signal} in truth of joint '{names[owner]}'.",
                    f"{int(np.count_nonzero(inverse != np.arange(len(order))))} columns stand under a wrong joint",
                    f"Name the columns in this order when loading: {', '.join(names[i] for i in inverse)}.",
                )


def velocity_order(run: Run, context: Context) -> Order:
    """Column of the velocity that belongs to each joint."""
    return context.once("velocity order", run, lambda r: _velocity_order(context.cleaned(r), context.robot.n))


def torque_order(run: Run, context: Context) -> Order:
    """Column of the torque that belongs to each joint, where only torques are mixed up."""
    return _orders(run, context)[0]


def joint_order(run: Run, context: Context) -> Order:
    """Column that belongs to each joint, where all signals are mixed up alike."""
    return _orders(run, context)[1]


def _velocity_order(cleaned: Cleaned | None, joints: int) -> Order:
    same = tuple(range(joints))
    if cleaned is None or cleaned.measured_v is None:
        return same
    rest = np.ones((joints, joints))

    def unexplained(j: int, i: int) -> float:
        assert cleaned is not None and cleaned.measured_v is not None
        if np.ptp(cleaned.measured_v[:, i]) == 0 or not cleaned.moving[j]:
            return 1.0
        v = cleaned.v[:, j : j + 1]
        return find_delay(v, cleaned.measured_v[:, i], cleaned.step, _LONGEST_DELAY, centred=False).rest

    for j in same:
        rest[j, j] = unexplained(j, j)
    doubtful = [j for j in same if rest[j, j] > _NOT_ITS_OWN and cleaned.moving[j]]
    if len(doubtful) < 2:
        return same
    for j in doubtful:
        for i in same:
            rest[j, i] = unexplained(j, i)
    order = linear_sum_assignment(rest)[1]
    sure = [order[j] == j or rest[j, order[j]] < _CLEARLY_ANOTHERS for j in same]
    return tuple(int(i) for i in order) if all(sure) else same


def _orders(run: Run, context: Context) -> tuple[Order, Order]:
    return context.once("torque order", run, lambda r: _find_orders(context.cleaned(r), context))


def _find_orders(cleaned: Cleaned | None, context: Context) -> tuple[Order, Order]:
    n = context.robot.n
    same = tuple(range(n))
    if cleaned is None or cleaned.torque is None or cleaned.model is None or n < 2:
        return same, same
    thin = slice(None, None, max(1, len(cleaned.q) // _ROWS))
    motion = tuple(x[thin] for x in (cleaned.q, cleaned.v, cleaned.a, cleaned.direction))
    torque = cleaned.torque[thin]
    cost = _costs(context, motion, torque, same)
    now = float(np.trace(cost))
    chosen = tuple(int(i) for i in linear_sum_assignment(cost)[1])
    torque_cost = float(cost[np.arange(n), chosen].sum())
    everything, everything_cost = same, now
    # Single moves of a column to another place, and swaps of two, again and again as long as they help.
    for _ in range(n):
        candidates = {order: _own_cost(context, motion, torque, order) for order in _moves(everything)}
        best = min(candidates, key=candidates.__getitem__)
        if candidates[best] > everything_cost - 0.3 * _SAVING:
            break
        everything, everything_cost = best, candidates[best]
    if now - min(torque_cost, everything_cost) < _SAVING:
        return same, same
    # Torques alone find chance partners more easily than whole joints do, so they must be the clearly better story.
    return (chosen, same) if torque_cost < everything_cost - _SAVING else (same, everything)


def _moves(order: Order) -> Iterator[Order]:
    n = len(order)
    for i in range(n):
        for j in range(n):
            if i != j:
                rest = [*order[:i], *order[i + 1 :]]
                yield (*rest[:j], order[i], *rest[j:])
            if i < j:
                swapped = list(order)
                swapped[i], swapped[j] = order[j], order[i]
                yield tuple(swapped)


def _bases(context: Context, motion: tuple[Array, ...], order: Order) -> list[Array]:
    """What can be in the torque of each joint if the columns belong to the joints in this order."""
    q, v, a, direction = (x[:, order] for x in motion)
    model = context.model_torque(q, v, a)
    assert model is not None
    one = np.ones(len(q))
    return [
        basis(np.column_stack([one, model[:, j], v[:, j], a[:, j], direction[:, j]])) for j in range(context.robot.n)
    ]


def _own_cost(context: Context, motion: tuple[Array, ...], torque: Array, order: Order) -> float:
    bases = _bases(context, motion, order)
    return sum(_log_rest(b, torque[:, i]) for b, i in zip(bases, order, strict=True))


def _costs(context: Context, motion: tuple[Array, ...], torque: Array, order: Order) -> Array:
    """Logarithm of the unexplained share (joint, torque column)."""
    bases = _bases(context, motion, order)
    return np.array([[_log_rest(b, y) for y in torque.T] for b in bases])


def _log_rest(explained: Array, y: Array) -> float:
    power = float(np.var(y)) * len(y)
    left = y - explained @ (explained.T @ y)
    return float(np.log(max(float(left @ left) / power, _GOOD))) if power > 0 else 0.0
