"""Check for columns under the wrong joint: velocities, torques or all signals in another order than the joints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import find_delay
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["JOINT_ORDER", "ORDER", "TORQUE_ORDER", "joint_order", "torque_order", "velocity_order"]

Array = NDArray[np.float64]

VELOCITY_ORDER = FindingCode("velocity_order", "the velocity belongs to another joint", "error", signal="v")
TORQUE_ORDER = FindingCode("torque_order", "the torque belongs to another joint", "error", signal="torque")
JOINT_ORDER = FindingCode("joint_order", "all signals belong to another joint", "error", signal="q")
JOINT_NAME_ORDER = FindingCode(
    "joint_name_order", "recording and robot list the same joints in another order", "error", signal="q"
)
Order = tuple[int, ...]  # for every joint of the robot, the column that holds its signal

# A velocity belongs to another joint if its own position explains less than half of it, and the other nearly all.
_NOT_ITS_OWN = 0.5
_CLEARLY_ANOTHERS = 0.1
# Below this unexplained share a fit is good; better fits are no evidence for another order.
_GOOD = 0.02
# Decrease of the sum over joints of the logarithm of the unexplained variance that another order must achieve. Chance
# matches in lightly loaded joints of correctly ordered recordings reach about 1, real mistakes 5 and more.
_SAVING = 3.0
# Rows that the search over orders uses, and the least share of a direction that their columns span.
_ROWS, _WEAKEST = 400, 1e-12
_LONGEST_DELAY = 0.5


def check_order(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find signals that belong to another joint than their column."""
    names = context.recording.joints
    if names != robot.coordinates and sorted(names) == sorted(robot.coordinates):
        yield context.found(
            JOINT_NAME_ORDER,
            run,
            None,
            "The joints of the recording are those of the robot in another order.",
            f"{sum(a != b for a, b in zip(names, robot.coordinates, strict=True))} joints are at another place",
            f"Load the recording with the robot, so that the columns have its order: {', '.join(robot.coordinates)}.",
        )
        return
    for code, signal, order in (
        (VELOCITY_ORDER, "velocity", velocity_order(run, context)),
        (TORQUE_ORDER, "torque", torque_order(run, context)),
        (JOINT_ORDER, "position, velocity and torque", joint_order(run, context)),
    ):
        # Column k holds what belongs to the joint at place k of the inverse order.
        inverse = np.argsort(order)
        for k, owner in enumerate(inverse):
            if owner != k:
                yield context.found(
                    code,
                    run,
                    k,
                    f"The columns of {signal} under this joint's name belong to joint '{names[owner]}'.",
                    f"{int(np.count_nonzero(inverse != np.arange(len(order))))} columns are under the wrong joint",
                    f"Name the columns in this order when loading: {', '.join(names[i] for i in inverse)}.",
                )


def velocity_order(run: Run, context: Context) -> Order:
    """Column of the velocity that belongs to each joint."""
    return context.once("velocity order", run, lambda r: _velocity_order(context.cleaned(r), context.robot.n))


def torque_order(run: Run, context: Context) -> Order:
    """Column of the torque that belongs to each joint, if only torques are permuted."""
    return _orders(run, context)[0]


def joint_order(run: Run, context: Context) -> Order:
    """Column that belongs to each joint, if all signals are permuted alike."""
    return _orders(run, context)[1]


def _velocity_order(cleaned: Cleaned | None, joints: int) -> Order:
    """Assignment of velocity columns to joints that explains them best, if it is certain."""
    same = tuple(range(joints))
    if cleaned is None or cleaned.measured_v is None:
        return same
    rest = np.ones((joints, joints))

    def unexplained(j: int, i: int) -> float:
        assert cleaned is not None and cleaned.measured_v is not None
        if np.ptp(cleaned.measured_v[:, i]) == 0 or not cleaned.moving[j]:
            return 1.0
        v = cleaned.v[:, j : j + 1]
        return find_delay(v, cleaned.measured_v[:, i], cleaned.step, _LONGEST_DELAY, centered=False).rest

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
    """Orders of the torques alone and of all signals, computed once per run."""
    return context.once("torque order", run, lambda r: _find_orders(context.cleaned(r), context))


def _find_orders(cleaned: Cleaned | None, context: Context) -> tuple[Order, Order]:
    """Orders of the torques alone and of all signals that explain the torques best."""
    n = context.robot.n
    same = tuple(range(n))
    if cleaned is None or cleaned.torque is None or cleaned.model is None or n < 2:
        return same, same
    thin = slice(None, None, max(1, len(cleaned.q) // _ROWS))
    motion = tuple(x[thin] for x in (cleaned.q, cleaned.v, cleaned.a, cleaned.direction))
    torque = cleaned.torque[thin]
    cost = _costs(context, motion, torque, same)
    now = float(np.trace(cost))
    if now - n * np.log(_GOOD) < _SAVING:  # no other order can save enough
        return same, same
    chosen = tuple(int(i) for i in linear_sum_assignment(cost)[1])
    torque_cost = float(cost[np.arange(n), chosen].sum())
    everything, everything_cost = same, now
    # Greedy search over moves of one column and swaps of two.
    for _ in range(n):
        candidates = {order: _own_cost(context, motion, torque, order) for order in _moves(everything)}
        best = min(candidates, key=candidates.__getitem__)
        if candidates[best] > everything_cost - 0.3 * _SAVING:
            break
        everything, everything_cost = best, candidates[best]
    if now - min(torque_cost, everything_cost) < _SAVING:
        return same, same
    # A permutation of the torques alone fits more easily by chance, so it must be clearly better.
    return (chosen, same) if torque_cost < everything_cost - _SAVING else (same, everything)


def _moves(order: Order) -> Iterator[Order]:
    """Orders with one column moved to another place, or two swapped."""
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


def _products(context: Context, motion: tuple[Array, ...], torque: Array, order: Order) -> tuple[Array, Array]:
    """Products of unit columns that can explain the torque of each joint, if the columns have this order.

    The first result (joint, k, k) is that of the columns with each other, the second (joint, k, torque column) that
    with the torques.
    """
    q, v, a, direction = (x[:, order] for x in motion)
    model = context.model_torque(q, v, a)
    assert model is not None
    columns = np.stack([np.ones_like(model), model, v, a, direction], axis=-1).transpose(1, 0, 2)
    norms = np.linalg.norm(columns, axis=1, keepdims=True)
    columns = columns / np.where(norms > 0, norms, 1.0)
    turned = columns.transpose(0, 2, 1)
    return turned @ columns, turned @ torque


def _own_cost(context: Context, motion: tuple[Array, ...], torque: Array, order: Order) -> float:
    """Sum over joints of the logarithm of the unexplained share, if all signals have this order."""
    gram, product = _products(context, motion, torque, order)
    own = np.take_along_axis(product, np.array(order)[:, None, None], axis=2)
    return float(_log_rest(gram, own, torque[:, order].T[:, :, None]).sum())


def _costs(context: Context, motion: tuple[Array, ...], torque: Array, order: Order) -> Array:
    """Logarithm of the unexplained share (joint, torque column)."""
    return _log_rest(*_products(context, motion, torque, order), torque)


def _log_rest(gram: Array, product: Array, torque: Array) -> Array:
    """Logarithm of the share of each torque (..., N, m) that the columns of each joint do not explain, (joint, m)."""
    squares, directions = np.linalg.eigh(gram)
    seen = squares > _WEAKEST * squares[:, -1:]
    along = directions.transpose(0, 2, 1) @ product
    explained = (along**2 * (seen / np.where(seen, squares, 1.0))[:, :, None]).sum(axis=1)
    power = np.var(torque, axis=-2) * torque.shape[-2]
    left = (torque**2).sum(axis=-2) - explained
    share = np.maximum(left / np.where(power > 0, power, 1.0), _GOOD)
    return np.asarray(np.where(power > 0, np.log(share), 0.0))


ORDER = RecordingCheck(
    name="order",
    finds="velocities, torques, or all signals under the name of the wrong joint, with the order that fits",
    advice="name the columns in that order",
    codes=(
        JOINT_NAME_ORDER,
        VELOCITY_ORDER,
        TORQUE_ORDER,
        JOINT_ORDER,
    ),
    of_run=check_order,
)
