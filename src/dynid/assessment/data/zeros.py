"""Check for joints with another zero than the robot, by quarter turns, or that count in the opposite direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import basis
from dynid.assessment.data.order import joint_order, torque_order
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["POSITION_ZERO", "ZEROS", "joint_zeros"]

Array = NDArray[np.float64]

POSITION_ZERO = FindingCode(
    "position_zero",
    "the zero of a joint is a quarter or half turn away, or it counts in the opposite direction",
    "error",
    signal="q",
)
# Quarter turns to add to a position that was multiplied by the sign, and the sign.
Zero = tuple[int, int]

_RIGHT: Zero = (0, 1)
# Below this unexplained share a fit is good: better fits are no evidence against the zeros of the log. Among other
# zeros, fits are compared down to the second share.
_GOOD, _BEST = 0.005, 0.0005
# Decrease of the sum over joints of the logarithm of the unexplained variance that another zero must achieve in one
# joint, and the mean unexplained share of the joints that carry most, above which nothing is explained.
_SAVING, _EXPLAINED, _CARRY = 3.0, 0.3, 0.2
# Zeros whose costs differ by less than this explain the torques alike, and are as far beyond the limits of the joints
# if they differ by less than this (rad or m).
_ALIKE, _NEAR = 1.0, 0.1
# What a torque with the opposite sign of the model's costs in the same measure, if it explains this share of what is
# left: it is another fault. The signs of all torques together are one.
_REVERSED, _CLEARLY = 1.0, 0.5
# Rows that the search uses. Of robots with many joints, only neighbours are turned together.
_ROWS, _MANY_JOINTS, _NEIGHBOURS = 300, 10, 2


def check_zeros(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find joints whose position has another zero or direction than in the robot description."""
    for j, options in enumerate(joint_zeros(run, context)):
        if _RIGHT in options:
            continue
        alike = "" if len(options) == 1 else " Several do so alike."
        doing = ", or ".join(_remedy(*zero) for zero in options)
        yield context.found(
            POSITION_ZERO,
            run,
            j,
            "The position of this joint is not that of the robot description: with another zero or direction, the "
            f"bodies explain the torques.{alike}",
            " or ".join(_size(*zero) for zero in options),
            f"When loading, {doing}; or correct the joint in the description.",
        )


def _size(quarters: int, sign: int) -> str:
    """How far a position is off."""
    return " and ".join([f"{90 * quarters} degrees"] * bool(quarters) + ["-1 times"] * (sign < 0))


def _remedy(quarters: int, sign: int) -> str:
    """What to do about it."""
    add = [f"add {90 * quarters:+d} degrees to it (offset of q)"] * bool(quarters)
    return " and ".join(["reverse q, v and torque (sign)"] * (sign < 0) + add)


def joint_zeros(run: Run, context: Context) -> tuple[tuple[Zero, ...], ...]:
    """Quarter turns to add and sign of the position of each joint: all that explain the torques alike.

    ((0, 1),) where they are right or not known.
    """
    return context.once("zeros", run, lambda r: _find(r, context))


def _find(run: Run, context: Context) -> tuple[tuple[Zero, ...], ...]:
    """Zeros that explain the torques best, if they explain far more than those of the log."""
    n = context.robot.n
    right, known = (_RIGHT,) * n, ((_RIGHT,),) * n
    cleaned, same = context.cleaned(run), tuple(range(n))
    if cleaned is None or cleaned.torque is None or cleaned.model is None:
        return known
    if joint_order(run, context) != same or torque_order(run, context) != same:
        return known  # the columns must be in the right order first
    search = _Search(context, cleaned)
    found, left = right, search.cost(right)
    for _ in range(n):
        if left < _SAVING:
            break
        best = min(_changed(found, context.angular, 1), key=search.fine, default=found)
        if left - search.cost(best) < _SAVING or not search.explains(best):
            # Wrong zeros of two joints may hide each other.
            best = min(_changed(found, context.angular, 2), key=search.fine, default=found)
        if left - search.cost(best) < _SAVING:
            break
        found, left = best, search.cost(best)
    if found == right or not search.explains(found):
        return known
    changed = [j for j in range(n) if found[j] != _RIGHT]
    others = (x for k in (1, 2) for x in _changed(right, context.angular, k))
    most = search.fine(found) + _ALIKE
    alike = [x for x in others if search.fine(x) < most and all(x[j] != _RIGHT for j in changed)]
    # Of those that explain alike, a log within the limits of the joints is more likely.
    beyond = {x: _beyond(cleaned.q, x, context.robot) for x in (found, *alike)}
    kept = [x for x, far in beyond.items() if far <= min(beyond.values()) + _NEAR]
    return tuple(tuple(sorted({x[j] if j in changed else _RIGHT for x in kept})) for j in range(n))


def _beyond(q: Array, zeros: Sequence[Zero], robot: Robot) -> float:
    """How far positions (N, joint) with these zeros go beyond the limits, in rad or m, summed over the joints."""
    limits = [robot.limits[name] for name in robot.coordinates]
    quarters, sign = np.array(zeros, dtype=float).T
    moved = sign * q + 0.5 * np.pi * quarters
    low, high = (np.array([getattr(x, side) for x in limits]) for side in ("lower", "upper"))
    return float(np.sum(np.maximum(moved.max(axis=0) - high, 0.0) + np.maximum(low - moved.min(axis=0), 0.0)))


def _changed(zeros: Sequence[Zero], angular: Sequence[bool], joints: int) -> Iterator[tuple[Zero, ...]]:
    """The zeros with those of one joint changed, or those of two by quarter turns."""
    turns = [(k, 1) for k in (-1, 1, 2)]
    mirrored = [(k, -1) for k in (-1, 0, 1, 2)]
    for chosen in combinations(range(len(zeros)), joints):
        if len(zeros) > _MANY_JOINTS and chosen[-1] - chosen[0] > _NEIGHBOURS:
            continue
        options = [(turns + (mirrored if joints == 1 else [])) if angular[j] else [(0, -1)] for j in chosen]
        for option in product(*options):
            out = list(zeros)
            for j, zero in zip(chosen, option, strict=True):
                out[j] = zero
            if tuple(out) != tuple(zeros):
                yield tuple(out)


class _Search:
    """How well the a-priori bodies explain the torques with given zeros."""

    def __init__(self, context: Context, cleaned: Cleaned) -> None:
        assert cleaned.torque is not None and cleaned.model is not None
        thin = slice(None, None, max(1, len(cleaned.q) // _ROWS))
        self._context = context
        self._motion = tuple(x[thin] for x in (cleaned.q, cleaned.v, cleaned.a))
        torque, direction = cleaned.torque[thin], cleaned.direction[thin]
        self._moving = cleaned.moving & (np.ptp(torque, axis=0) > 0)
        self._carried = cleaned.model.std(axis=0)
        one = np.ones(len(torque))
        _, v, a = self._motion
        # A joint is explained by its friction, offset and rotor inertia in any case.
        self._own = [
            basis(np.column_stack([one, v[:, j], direction[:, j], a[:, j]])) for j in range(self._context.robot.n)
        ]
        self._left = [torque[:, j] - u @ (u.T @ torque[:, j]) for j, u in enumerate(self._own)]
        self._size = [max(float(np.var(torque[:, j])) * len(torque), 1e-300) for j in range(torque.shape[1])]
        self._known: dict[tuple[Zero, ...], tuple[Array, float]] = {}

    def cost(self, zeros: Sequence[Zero], good: float = _GOOD) -> float:
        """Sum over joints of the logarithm of the unexplained share over that of a good fit, and of wrong signs."""
        shares, reversed_ = self._fitted(zeros)
        return float(np.log(np.maximum(shares, good) / good).sum()) + _REVERSED * reversed_

    def fine(self, zeros: Sequence[Zero]) -> float:
        """The same for comparing zeros that explain the torques well."""
        return self.cost(zeros, _BEST)

    def explains(self, zeros: Sequence[Zero]) -> bool:
        """Whether the joints that carry most are explained."""
        carry = self._moving & (self._carried > _CARRY * self._carried.max())
        return bool(np.mean(self._fitted(zeros)[0][carry]) < _EXPLAINED) if carry.any() else False

    def _fitted(self, zeros: Sequence[Zero]) -> tuple[Array, float]:
        """Unexplained share of the torque of each joint (joint,), and the number of faults of signs."""
        key = tuple(zeros)
        if key not in self._known:
            self._known[key] = self._fit(key)
        return self._known[key]

    def _fit(self, zeros: tuple[Zero, ...]) -> tuple[Array, float]:
        quarters, sign = (np.array(x, dtype=float) for x in zip(*zeros, strict=True))
        q, v, a = self._motion
        model = self._context.model_torque(sign * q + 0.5 * np.pi * quarters, sign * v, sign * a)
        assert model is not None
        shares, reversed_, clear = np.zeros(len(zeros)), 0, 0
        for j in np.flatnonzero(self._moving):
            u, left, size = self._own[j], self._left[j], self._size[j]
            column = sign[j] * (model[:, j] - u @ (u.T @ model[:, j]))
            power, along = float(column @ column), float(column @ left)
            explained, whole = (along**2 / power if power > 0 else 0.0), float(left @ left)
            shares[j] = (whole - explained) / size
            if explained > _CLEARLY * whole:
                clear, reversed_ = clear + 1, reversed_ + (along < 0)
        return shares, float(min(reversed_, 1 + clear - reversed_))


ZEROS = RecordingCheck(
    name="zeros",
    finds="positions whose zero is a quarter or half turn from that of the robot description, or that count in the "
    "opposite direction",
    advice="add the angle (`offset`), reverse the joint (`sign`), or correct the description",
    codes=(POSITION_ZERO,),
    of_run=check_zeros,
)
