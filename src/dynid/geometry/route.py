"""A short path through postures, with straight moves in the joints.

    minimise  sum over moves of  max over joints of  |q_b - q_a| / v

The nearest posture comes next; then parts of the path are reversed as long as that makes it shorter. Moves that violate
a clearance are counted as longer and the search is repeated; those that remain get a posture in between from which both
sides can be reached.

Source: Croes, A Method for Solving Traveling-Salesman Problems (1958).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.problem import Clearance

__all__ = ["Route", "nearest_order", "route", "straight", "travel"]

Array = NDArray[np.float64]

# Largest step of a joint (rad or m) at which clearances are looked at along a move.
_STEP = 0.05
_ROUNDS, _PASSES = 15, 100
# A move that violates a clearance counts as so many of the longest.
_DETOUR = 3.0
# Postures that are tried in between.
_BETWEEN = 100


@dataclass(frozen=True, eq=False)
class Route:
    """A path: order of the postures, all stops (m, n), which posture each is (-1 in between), and unsafe moves."""

    order: tuple[int, ...]
    stops: Array
    posture: NDArray[np.intp]
    unsafe: tuple[tuple[int, int], ...]


def travel(q: Array, velocity: Array) -> Array:
    """Times (N, N) of straight moves between postures."""
    return np.asarray((np.abs(q[:, None] - q[None]) / velocity).max(-1))


def straight(clearances: Sequence[Clearance]) -> Callable[[Array, Array], bool]:
    """Whether a straight move satisfies all clearances."""

    def free(start: Array, end: Array) -> bool:
        steps = max(int(np.ceil(np.abs(end - start).max() / _STEP)), 1)
        share = np.linspace(0, 1, steps + 1)[:, None]
        q = start + share * (end - start)
        return all(bool(c.values(q).min() >= 0) for c in clearances)

    return free


def nearest_order(times: Array) -> list[int]:
    """Order from posture 0 in which the nearest one left is always next."""
    left, out = list(range(1, len(times))), [0]
    while left:
        out.append(min(left, key=lambda k: float(times[out[-1], k])))
        left.remove(out[-1])
    return out


def route(start: Array, q: Array, velocity: Array, clearances: Sequence[Clearance], others: Array) -> Route:
    """The path from a start through all postures.

    Parameters
    ----------
    start : ndarray, shape (n,)
        Where the robot is at first.
    q : ndarray, shape (N, n)
        The postures.
    velocity : ndarray, shape (n,)
        Of the joints.
    clearances : sequence of Clearance
        What moves keep.
    others : ndarray, shape (M, n)
        Postures that may stand in between, the start among them.
    """
    nodes = np.vstack([start, q])
    free, cost = straight(clearances), travel(nodes, velocity)
    times, known = cost.copy(), dict[tuple[int, int], bool]()
    order = _reversed_parts(nearest_order(cost), cost)
    for _ in range(_ROUNDS if clearances else 0):
        for a, b in pairwise(order):
            if (min(a, b), max(a, b)) not in known:
                known[min(a, b), max(a, b)] = free(nodes[a], nodes[b])
        barred = [pair for pair in pairwise(order) if not known[min(pair), max(pair)] and cost[pair] == times[pair]]
        if not barred:
            break
        for a, b in barred:
            cost[a, b] = cost[b, a] = times[a, b] + _DETOUR * times.max()
        order = _reversed_parts(order, cost)
    return _between(nodes, order, velocity, free if clearances else None, others)


def _reversed_parts(order: list[int], cost: Array) -> list[int]:
    """The order with parts reversed until none makes the path shorter; its first stays."""
    out = np.array(order)
    for _ in range(_PASSES):
        changed = False
        for i in range(1, len(out) - 1):
            ends = np.arange(i + 1, len(out))
            after = np.append(out[i + 2 :], -1)
            last = after < 0
            old = cost[out[i - 1], out[i]] + np.where(last, 0.0, cost[out[ends], after])
            new = cost[out[i - 1], out[ends]] + np.where(last, 0.0, cost[out[i], after])
            best = int(np.argmax(old - new))
            if old[best] - new[best] > 1e-12:
                end = ends[best] + 1
                out[i:end] = out[i:end][::-1].copy()
                changed = True
        if not changed:
            break
    return [int(k) for k in out]


def _between(
    nodes: Array, order: list[int], velocity: Array, free: Callable[[Array, Array], bool] | None, others: Array
) -> Route:
    """The route with postures in between where a straight move is not free."""
    stops, posture, unsafe = [nodes[0]], [-1], list[tuple[int, int]]()
    for a, b in pairwise(order):
        if free is not None and not free(nodes[a], nodes[b]):
            apart = [(np.abs(others - nodes[k]) / velocity).max(1) for k in (a, b)]
            tried = np.argsort(apart[0] + apart[1], kind="stable")[:_BETWEEN]
            over = next((others[k] for k in tried if free(nodes[a], others[k]) and free(others[k], nodes[b])), None)
            if over is None:
                unsafe.append((a - 1, b - 1))
            else:
                stops.append(over)
                posture.append(-1)
        stops.append(nodes[b])
        posture.append(b - 1)
    return Route(tuple(k - 1 for k in order[1:]), np.array(stops), np.array(posture), tuple(unsafe))
