"""Point-to-point moves in minimum time: trapezoidal velocity and double-S profiles, for one joint and for all together.

A move has phases of acceleration, constant velocity and deceleration. Its jerk (double-S) or its acceleration
(trapezoid) is piecewise constant; the durations of the pieces determine the profile. With limits v, a, j and rest at
both ends of a distance h that reaches them all,

    trapezoid: Ta = Td = v / a, Tv = h / v - Ta,    double-S: Tj = a / j, Ta = Td = v / a + a / j, Tv = h / v - Ta.

Source: Biagiotti and Melchiorri, Trajectory Planning for Automatic Machines and Robots (2008), sections 3.2 and 3.4.

Own code instead of the library ruckig: none of its 22 releases on PyPI has a wheel for Linux on aarch64 (checked for
Python 3.11 and 3.12), and 0.19.4 has none for macOS on x86-64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import Infeasible, InvalidShape, InvalidValue, MissingData, UnknownName
from dynid.excitation.basis import sample_times
from dynid.excitation.limits import MotionLimits

__all__ = ["Path", "Profile", "double_s", "point_to_point", "trapezoid"]

Array = NDArray[np.float64]

# Factor by which the acceleration is lowered until a double-S can reach it.
_LOWER = 0.99


@dataclass(frozen=True, eq=False)
class Profile:
    """The move of one joint as a function of time.

    Attributes
    ----------
    starts : array, shape (k,)
        Times at which the pieces begin, s.
    states : array, shape (k, 4)
        Position, velocity, acceleration and jerk there.
    Ta, Tv, Td : float
        Durations of acceleration, constant velocity and deceleration, s.
    Tj1, Tj2 : float
        Durations of constant jerk within acceleration and deceleration, s.
    """

    starts: Array
    states: Array
    Ta: float
    Tv: float
    Td: float
    Tj1: float = 0.0
    Tj2: float = 0.0

    @property
    def duration(self) -> float:
        """Duration of the move, s."""
        return self.Ta + self.Tv + self.Td

    def at(self, t: ArrayLike, order: int = 0) -> Array:
        """Position or its derivative of the given order (0 to 3) at times (N,), clipped to the duration."""
        times = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)
        piece = np.searchsorted(self.starts, times, side="right") - 1
        s = times - self.starts[piece]
        out = np.zeros_like(s)
        # Horner: state + s (next + s/2 (next + s/3 ...)).
        for k in range(3, order - 1, -1):
            out = self.states[piece, k] + out * s / (k - order + 1)
        return out

    def stretched(self, duration: float) -> Profile:
        """The same path in another duration; rest if the path has no length."""
        if self.duration == 0:
            return Profile(np.zeros(1), np.array([[self.states[-1, 0], 0.0, 0.0, 0.0]]), 0.0, duration, 0.0)
        k = self.duration / duration
        times = (x / k for x in (self.Ta, self.Tv, self.Td, self.Tj1, self.Tj2))
        return Profile(self.starts / k, self.states * k ** np.arange(4), *times)


def double_s(q0: float, q1: float, v0: float, v1: float, velocity: float, acceleration: float, jerk: float) -> Profile:
    """Double-S move from q0 at velocity v0 to q1 at velocity v1, in seven pieces of constant jerk.

    The acceleration is zero at both ends. If the move is too short to reach the acceleration limit, the acceleration is
    lowered by 1 % at a time until it fits.

    Parameters
    ----------
    q0, q1 : float
        Start and end position, rad or m.
    v0, v1 : float
        Start and end velocity, rad/s or m/s.
    velocity, acceleration, jerk : float
        Limits, positive.

    Returns
    -------
    Profile

    Raises
    ------
    DataError
        If a limit is not positive, or the distance is too short for the change of velocity.

    Examples
    --------
    >>> move = double_s(0.0, 10.0, 1.0, 0.0, 5.0, 10.0, 30.0)
    >>> round(move.Ta, 4), round(move.Tv, 4), round(move.Td, 4)
    (0.7333, 1.1433, 0.8333)
    """
    _check({"velocity": velocity, "acceleration": acceleration, "jerk": jerk}, q0, q1, v0, v1)
    sign = -1.0 if q1 < q0 else 1.0
    Ta, Tv, Td, Tj1, Tj2 = _double_s_times(sign * (q1 - q0), sign * v0, sign * v1, velocity, acceleration, jerk)
    lengths = [Tj1, Ta - 2 * Tj1, Tj1, Tv, Tj2, Td - 2 * Tj2, Tj2]
    jerks = sign * jerk * np.array([1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0])
    rise, fall = sign * jerk * Tj1, -sign * jerk * Tj2
    # Accelerations at the pieces' starts are set exactly, so that rounding errors do not accumulate.
    accelerations = np.array([0.0, rise, rise, 0.0, 0.0, fall, fall])
    starts, states = _pieces(q0, v0, lengths, accelerations, jerks)
    return Profile(starts, states, Ta, Tv, Td, Tj1, Tj2)


def _double_s_times(h: float, v0: float, v1: float, v: float, a: float, j: float) -> tuple[float, ...]:
    """Ta, Tv, Td, Tj1, Tj2 of a move over h >= 0."""
    if h == 0 and v0 == v1 == 0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    change = abs(v1 - v0)
    rise = min(np.sqrt(change / j), a / j)
    needed = rise * (v0 + v1) if rise < a / j else 0.5 * (v0 + v1) * (a / j + change / a)
    _check_distance(h, needed, v0, v1)

    def velocity_change(dv: float) -> tuple[float, float]:
        """Duration of a change of velocity, and of its constant jerk."""
        if dv * j >= a**2:
            return a / j + dv / a, a / j
        return 2 * float(np.sqrt(dv / j)), float(np.sqrt(dv / j))

    Ta, Tj1 = velocity_change(v - v0)
    Td, Tj2 = velocity_change(v - v1)
    Tv = h / v - Ta / 2 * (1 + v0 / v) - Td / 2 * (1 + v1 / v)
    if Tv > 0:
        return Ta, Tv, Td, Tj1, Tj2
    while True:
        Tj = a / j
        rest = a**4 / j**2 + a * (4 * h - 2 * Tj * (v0 + v1))
        root = float(np.sqrt(max(rest + 2 * (v0**2 + v1**2), 0.0)))
        Ta, Td = ((a * Tj + _difference(root, x, rest + 2 * (y**2 - x**2))) / (2 * a) for x, y in ((v0, v1), (v1, v0)))
        if Ta < 0 or Td < 0:
            # A single change of velocity over the whole distance.
            T = 2 * h / (v0 + v1)
            Tj = 2 * change / j / (T + float(np.sqrt(max(T**2 - 4 * change / j, 0.0))))
            return (0.0, 0.0, T, 0.0, Tj) if Ta < 0 else (T, 0.0, 0.0, Tj, 0.0)
        if min(Ta, Td) >= 2 * Tj * (1 - 1e-14):
            return Ta, 0.0, Td, Tj, Tj
        a *= _LOWER


def _difference(root: float, v: float, squares: float) -> float:
    """root - 2 v, from root^2 - 4 v^2 where the two are close."""
    return squares / (root + 2 * v) if v > 0 else root - 2 * v


def trapezoid(q0: float, q1: float, v0: float, v1: float, velocity: float, acceleration: float) -> Profile:
    """Trapezoidal move from q0 at velocity v0 to q1 at velocity v1; parameters as for `double_s`."""
    _check({"velocity": velocity, "acceleration": acceleration}, q0, q1, v0, v1)
    sign = -1.0 if q1 < q0 else 1.0
    h, start, end, a = sign * (q1 - q0), sign * v0, sign * v1, acceleration
    if h == 0 and v0 == v1 == 0:
        return Profile(np.zeros(1), np.array([[q0, 0.0, 0.0, 0.0]]), 0.0, 0.0, 0.0)
    _check_distance(h, 0.5 * (start + end) * abs(end - start) / a, start, end)
    peak = min(velocity, float(np.sqrt(max(h * a + 0.5 * (start**2 + end**2), 0.0))))
    Ta, Td = max(peak - start, 0.0) / a, max(peak - end, 0.0) / a
    Tv = max(h - 0.5 * (start + peak) * Ta - 0.5 * (end + peak) * Td, 0.0) / peak if peak == velocity else 0.0
    starts, states = _pieces(q0, v0, [Ta, Tv, Td], sign * a * np.array([1.0, 0.0, -1.0]), np.zeros(3))
    return Profile(starts, states, Ta, Tv, Td)


def _pieces(q: float, v: float, lengths: Sequence[float], accelerations: Array, jerks: Array) -> tuple[Array, Array]:
    """Start times (k,) of pieces with these durations, and the states there (k, 4)."""
    lengths = [max(x, 0.0) for x in lengths]
    states = []
    for T, a, j in zip(lengths, accelerations, jerks, strict=True):
        states.append([q, v, a, j])
        q, v = q + T * (v + T / 2 * (a + T / 3 * j)), v + T * (a + T / 2 * j)
    return np.concatenate([[0.0], np.cumsum(lengths)[:-1]]), np.array(states)


def _check(limits: dict[str, float], q0: float, q1: float, v0: float, v1: float) -> None:
    for name, value in limits.items():
        if not (np.isfinite(value) and value > 0):
            raise InvalidValue(f"the {name} limit of a move must be a positive number, got {value}", name)
    if not np.all(np.isfinite([q0, q1, v0, v1])):
        raise InvalidValue(f"a move needs finite positions and velocities at its ends, got {[q0, q1, v0, v1]}")
    if max(abs(v0), abs(v1)) > limits["velocity"]:
        raise Infeasible(
            f"the velocities {v0:g} and {v1:g} at the ends exceed the velocity limit {limits['velocity']:g}"
        )


def _check_distance(h: float, needed: float, v0: float, v1: float) -> None:
    if h < needed:
        raise Infeasible(
            f"a move over {h:g} is too short: the change of velocity from {v0:g} to {v1:g} needs {needed:g}; "
            "give a longer distance, closer velocities or wider limits"
        )


@dataclass(frozen=True, eq=False)
class Path:
    """All joints through waypoints (m, n), with a stop at each; `moves` holds one profile per joint and segment."""

    waypoints: Array
    moves: tuple[tuple[Profile, ...], ...]

    @cached_property
    def times(self) -> Array:
        """When each waypoint is reached (m,)."""
        return np.concatenate([[0.0], np.cumsum([move[0].duration for move in self.moves])])

    @property
    def duration(self) -> float:
        """Duration of the whole path, s."""
        return float(self.times[-1])

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v and a (N, n) at times (N,)."""
        times = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)
        move = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.moves) - 1)
        out = np.zeros((3, len(times), self.waypoints.shape[1]))
        for k in np.unique(move):
            here = move == k
            for i, profile in enumerate(self.moves[k]):
                for order in range(3):
                    out[order, here, i] = profile.at(times[here] - self.times[k], order)
        return out[0], out[1], out[2]

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """t (N,), q, v and a (N, n) over the whole motion at a rate (Hz), both ends included."""
        t = sample_times(self.duration, rate)
        return t, *self.at(t)


def point_to_point(
    waypoints: ArrayLike, limits: MotionLimits, *, profile: Literal["double-s", "trapezoid"] = "double-s"
) -> Path:
    """Minimum-time path through waypoints with a stop at each; all joints arrive together.

    Parameters
    ----------
    waypoints : array, shape (m, n)
        Postures, rad or m.
    limits : MotionLimits
        Position, velocity, acceleration and, for "double-s", jerk limits are satisfied; torques are not checked.
    profile : {"double-s", "trapezoid"}
        Velocity profile of every move.

    Returns
    -------
    Path

    Raises
    ------
    DataError
        If a waypoint is out of range or a limit is missing.
    """
    points = np.asarray(waypoints, dtype=float)
    n = len(limits.lower)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] != n or not np.all(np.isfinite(points)):
        raise InvalidShape(
            f"waypoints need shape (m, {n}) with m from 2 and finite numbers, got {points.shape}", "waypoints"
        )
    if profile not in ("double-s", "trapezoid"):
        raise UnknownName(f"profile '{profile}' is unknown: use double-s or trapezoid", "profile")
    for name in ("velocity", "acceleration") + (("jerk",) if profile == "double-s" else ()):
        if not np.all(np.isfinite(getattr(limits, name))):
            i = int(np.argmin(np.isfinite(getattr(limits, name))))
            raise MissingData(
                f"a {profile} move needs {name} limits, and joint number {i + 1} has none; give one", "limits"
            )
    outside = np.argwhere((points < limits.lower) | (points > limits.upper))
    if len(outside):
        k, i = outside[0]
        raise InvalidValue(
            f"waypoint {k + 1} has joint number {i + 1} at {points[k, i]:g}, outside its range "
            f"[{limits.lower[i]:g}, {limits.upper[i]:g}]",
            "waypoints",
        )
    moves = []
    for start, end in pairwise(points):
        alone = [_from_rest(start[i], end[i], limits, i, profile) for i in range(n)]
        together = max(move.duration for move in alone)
        moves.append(tuple(move if move.duration == together else move.stretched(together) for move in alone))
    return Path(points, tuple(moves))


def _from_rest(q0: float, q1: float, limits: MotionLimits, i: int, profile: str) -> Profile:
    """The fastest move of joint i between stops."""
    v, a, j = (float(x[i]) for x in (limits.velocity, limits.acceleration, limits.jerk))
    if profile == "trapezoid":
        return trapezoid(float(q0), float(q1), 0.0, 0.0, v, a)
    # The largest acceleration that can be reached between stops, so that no iteration is needed.
    most = float(np.cbrt(0.5 * abs(q1 - q0) * j**2))
    return double_s(float(q0), float(q1), 0.0, 0.0, v, min(a, most) or a, j)
