"""Families of trajectories: basis functions of time, the same for every joint.

A joint moves as q(t) = B(t) x with its own coefficients x, so positions and all derivatives are linear in them: limits
on position, velocity, acceleration and jerk become linear inequalities, and conditions at the ends (start at rest at a
given posture) restrict the family to a subspace.

Sources: Swevers, Ganseman, Tukel, De Schutter and Van Brussel, Optimal Robot Excitation and Identification (1997), for
Fourier series; Wu, Zhu, Wang and Liu, Closed-Loop Dynamic Parameter Identification of Robot Manipulators Using Modified
Fourier Series (2012), for those with a polynomial of fifth order; de Boor, A Practical Guide to Splines (1978).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, NotApplicable, UnknownName

__all__ = [
    "PROFILES",
    "BSpline",
    "Basis",
    "CubicSpline",
    "Fourier",
    "FourierQuintic",
    "Narrowed",
    "PointToPoint",
    "Quintic",
    "Stretched",
    "at_rest",
    "fourier",
    "random_fourier",
    "sample_times",
]

Array = NDArray[np.float64]


# Motion profiles from 0 to 1 over unit time, from rest to rest, with their derivatives.
#
# These have fixed proportions, so that a motion through waypoints is linear in its waypoints. Moves in minimum time are
# in `dynid.excitation.planners`.
#
#     quintic: 10 s^3 - 15 s^4 + 6 s^5,    trapezoid: acceleration 9/2, 0, -9/2,    double-s: seven pieces of jerk
#
# Source: Biagiotti and Melchiorri, Trajectory Planning for Automatic Machines and Robots (2008), chapters 2 and 3.


def _quintic(s: Array, order: int) -> Array:
    """10 s^3 - 15 s^4 + 6 s^5."""
    polynomial = np.polynomial.Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
    return np.asarray(polynomial.deriv(order)(s) if order else polynomial(s))


def _trapezoid(s: Array, order: int) -> Array:
    """One third each of constant acceleration, constant velocity and constant deceleration."""
    top = 1.5
    a = 3 * top
    up, down = s < 1 / 3, s > 2 / 3
    if order == 0:
        return np.where(up, a * s**2 / 2, np.where(down, 1 - a * (1 - s) ** 2 / 2, top * (s - 1 / 6)))
    if order == 1:
        return np.where(up, a * s, np.where(down, a * (1 - s), top))
    return np.where(up, a, np.where(down, -a, 0.0)) if order == 2 else np.zeros_like(s)


def _double_s(s: Array, order: int) -> Array:
    """Seven phases of constant jerk: 2/5 acceleration, a third of that at its maximum, and 2/5 deceleration."""
    T, rise = 0.4, 0.4 / 3
    velocity = 1 / (1 - T)
    acceleration = velocity / (T - rise)
    jerk = acceleration / rise

    def half(u: Array, order: int) -> Array:
        """From rest to the middle of the segment."""
        first, second, third = u < rise, u < T - rise, u < T
        if order == 0:
            return np.where(
                first,
                jerk * u**3 / 6,
                np.where(
                    second,
                    acceleration * (3 * u**2 - 3 * rise * u + rise**2) / 6,
                    np.where(
                        third, velocity * T / 2 - velocity * (T - u) + jerk * (T - u) ** 3 / 6, velocity * (u - T / 2)
                    ),
                ),
            )
        if order == 1:
            late = np.where(third, velocity - jerk * (T - u) ** 2 / 2, velocity)
            return np.where(first, jerk * u**2 / 2, np.where(second, acceleration * (u - rise / 2), late))
        if order == 2:
            late = np.where(third, jerk * (T - u), 0.0)
            return np.where(first, jerk * u, np.where(second, acceleration, late))
        return np.where(first, jerk, np.where(second, 0.0, np.where(third, -jerk, 0.0)))

    mirrored = half(1 - s, order)
    sign = -1.0 if order % 2 == 0 else 1.0
    return np.where(s <= 0.5, half(s, order), (1.0 if order == 0 else 0.0) + sign * mirrored)


# Function of a profile, and where in (0, 1) its derivatives up to the jerk jump.
PROFILES: dict[str, tuple[Callable[[Array, int], Array], Array]] = {
    "quintic": (_quintic, np.zeros(0)),
    "trapezoid": (_trapezoid, np.array([1 / 3, 2 / 3])),
    "double-s": (_double_s, np.array([0.4 / 3, 0.8 / 3, 0.4, 0.6, 1 - 0.8 / 3, 1 - 0.4 / 3])),
}


Profile = Literal["quintic", "trapezoid", "double-s"]


class Basis(Protocol):
    """Basis functions of time on [0, duration]; `periodic` if the motion may be repeated without a stop."""

    @property
    def duration(self) -> float: ...

    @property
    def periodic(self) -> bool: ...

    @property
    def size(self) -> int:
        """Number of coefficients per joint."""
        ...

    @property
    def breakpoints(self) -> list[float]:
        """Times where a derivative up to the jerk jumps, and the ends."""
        ...

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        """The functions or their derivatives of the given order (0 to 3) at times (N,): (N, size)."""
        ...


def _times(t: ArrayLike) -> Array:
    return np.atleast_1d(np.asarray(t, dtype=float))


def _duration(duration: float) -> None:
    if not (np.isfinite(duration) and duration > 0):
        raise InvalidValue(f"the duration of a motion must be positive, got {duration}", "duration")


@dataclass(frozen=True)
class Fourier:
    """A constant and harmonics of 1/period: coefficients (offset, a_1 ... a_L, b_1 ... b_L).

    q = offset + sum a_l/(l w) sin(l w t) - b_l/(l w) cos(l w t): a and b are velocity amplitudes. `harmonics`
    is their number, or a tuple of the harmonics themselves, for a second series of high frequencies only.
    """

    duration: float
    harmonics: int | tuple[int, ...] = 5
    periodic: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _duration(self.duration)
        if not self.numbers.size or np.any(self.numbers < 1) or len(set(self.numbers)) != self.numbers.size:
            raise InvalidValue(f"harmonics must be different whole numbers from 1, got {self.harmonics}", "harmonics")

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The harmonics l."""
        given = np.asarray(self.harmonics)
        if given.ndim > 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
            raise InvalidValue(f"harmonics must be different whole numbers from 1, got {self.harmonics}", "harmonics")
        return np.arange(1, int(given) + 1) if given.ndim == 0 else given.astype(int)

    @property
    def size(self) -> int:
        return 1 + 2 * len(self.numbers)

    @property
    def breakpoints(self) -> list[float]:
        return [0.0, self.duration]

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        t = _times(t)
        w = 2 * np.pi / self.duration * self.numbers
        phase = np.outer(t, w) + (order - 1) * np.pi / 2
        power = w ** (order - 1)
        # The velocity is a cos + b sin; each derivative adds a phase of 90 degrees and a factor w.
        constant = np.full((len(t), 1), 1.0 if order == 0 else 0.0)
        return np.hstack([constant, power * np.cos(phase), power * np.sin(phase)])


@dataclass(frozen=True)
class Quintic:
    """A fifth-order polynomial over the whole duration."""

    duration: float
    periodic: bool = field(default=False, init=False)
    size: int = field(default=6, init=False)

    def __post_init__(self) -> None:
        _duration(self.duration)

    @property
    def breakpoints(self) -> list[float]:
        return [0.0, self.duration]

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        s = _times(t) / self.duration
        out = np.zeros((len(s), 6))
        for k in range(order, 6):
            out[:, k] = np.prod(np.arange(k, k - order, -1)) * s ** (k - order)
        return out / self.duration**order


@dataclass(frozen=True)
class FourierQuintic:
    """Harmonics plus a fifth-order polynomial, which can satisfy any conditions at both ends."""

    duration: float
    harmonics: int | tuple[int, ...] = 5
    periodic: bool = field(default=False, init=False)

    @cached_property
    def _parts(self) -> tuple[Fourier, Quintic]:
        return Fourier(self.duration, self.harmonics), Quintic(self.duration)

    def __post_init__(self) -> None:
        assert self._parts

    @property
    def size(self) -> int:
        return self._parts[0].size - 1 + 6

    @property
    def breakpoints(self) -> list[float]:
        return [0.0, self.duration]

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        series, polynomial = self._parts
        return np.hstack([series.values(t, order)[:, 1:], polynomial.values(t, order)])


@dataclass(frozen=True)
class BSpline:
    """A spline of `degree` with equal segments; coefficients are its control points, which bound it."""

    duration: float
    segments: int = 10
    degree: int = 5
    periodic: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _duration(self.duration)
        if self.segments < 1 or self.degree < 3:
            raise InvalidValue(
                f"a spline needs a segment and degree 3, got {self.segments} of degree {self.degree}", "segments"
            )

    @cached_property
    def _knots(self) -> Array:
        inner = np.linspace(0.0, self.duration, self.segments + 1)
        return np.concatenate([np.zeros(self.degree), inner, np.full(self.degree, self.duration)])

    @property
    def size(self) -> int:
        return self.segments + self.degree

    @property
    def breakpoints(self) -> list[float]:
        return list(np.linspace(0.0, self.duration, self.segments + 1))

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        spline = scipy.interpolate.BSpline(self._knots, np.eye(self.size), self.degree)
        return np.asarray(spline(np.clip(_times(t), 0.0, self.duration), nu=order))


@dataclass(frozen=True)
class CubicSpline:
    """A twice differentiable cubic spline through equally spaced waypoints, which are its coefficients.

    The velocity is zero at both ends.
    """

    duration: float
    waypoints: int = 10
    periodic: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _duration(self.duration)
        if self.waypoints < 2:
            raise InvalidValue(f"a spline needs two waypoints, got {self.waypoints}", "waypoints")

    @property
    def size(self) -> int:
        return self.waypoints

    @property
    def breakpoints(self) -> list[float]:
        return list(np.linspace(0.0, self.duration, self.waypoints))

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        spline = scipy.interpolate.CubicSpline(self.breakpoints, np.eye(self.size), bc_type="clamped")
        return np.asarray(spline(np.clip(_times(t), 0.0, self.duration), nu=order))


@dataclass(frozen=True)
class PointToPoint:
    """All joints together from waypoint to waypoint, with a stop at each; coefficients are the waypoints.

    `profile` of a segment: "quintic", "trapezoid" (of velocity), or "double-s" with limited jerk. `dwell` is the share
    of a segment spent at rest at its end: with dwell the waypoints are static postures.
    """

    duration: float
    waypoints: int = 6
    profile: Profile = "double-s"
    dwell: float = 0.0
    periodic: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _duration(self.duration)
        if self.waypoints < 2:
            raise InvalidValue(f"a motion needs two waypoints, got {self.waypoints}", "waypoints")
        if self.profile not in PROFILES:
            raise UnknownName(f"profile '{self.profile}' is unknown: use {', '.join(PROFILES)}", "profile")
        if not 0 <= self.dwell < 1:
            raise InvalidValue(f"the share of dwell lies in [0, 1), got {self.dwell}", "dwell")

    @property
    def size(self) -> int:
        return self.waypoints

    @property
    def breakpoints(self) -> list[float]:
        ends = np.linspace(0.0, self.duration, self.waypoints)
        # Without dwell a segment ends where the next one begins.
        inner = np.append(PROFILES[self.profile][1], [1.0] if self.dwell else []) * (1 - self.dwell)
        return sorted({float(x) for x in np.concatenate([ends[:-1, None] + inner * ends[1], ends[:, None]], axis=None)})

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        t = np.clip(_times(t), 0.0, self.duration)
        length = self.duration / (self.waypoints - 1)
        segment = np.minimum((t / length).astype(int), self.waypoints - 2)
        moving = length * (1 - self.dwell)
        s = np.minimum((t - segment * length) / moving, 1.0)
        share = PROFILES[self.profile][0](s, order) / moving**order
        share = np.where((s >= 1.0) & (order > 0), 0.0, share)
        out = np.zeros((len(t), self.waypoints))
        rows = np.arange(len(t))
        out[rows, segment] = (1.0 - share) if order == 0 else -share
        out[rows, segment + 1] = share
        return out


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A subspace of a family: coefficients are directions @ y, for any y."""

    family: Basis
    directions: Array

    @property
    def duration(self) -> float:
        return self.family.duration

    @property
    def periodic(self) -> bool:
        return self.family.periodic

    @property
    def size(self) -> int:
        return self.directions.shape[1]

    @property
    def breakpoints(self) -> list[float]:
        return self.family.breakpoints

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        return self.family.values(t, order) @ self.directions


@dataclass(frozen=True)
class Stretched:
    """A family with another duration: the same paths for the same coefficients."""

    family: Basis
    duration: float

    def __post_init__(self) -> None:
        _duration(self.duration)

    @property
    def periodic(self) -> bool:
        return self.family.periodic

    @property
    def size(self) -> int:
        return self.family.size

    @property
    def breakpoints(self) -> list[float]:
        return [t * self.duration / self.family.duration for t in self.family.breakpoints]

    def values(self, t: ArrayLike, order: int = 0) -> Array:
        rate = self.family.duration / self.duration
        return self.family.values(np.asarray(t, dtype=float) * rate, order) * rate**order


def at_rest(family: Basis, *, orders: Sequence[int] = (1, 2), ends: Sequence[str] = ("start", "end")) -> Narrowed:
    """The motions of a family whose derivatives of these orders vanish at the start and at the end.

    The first coefficient of the restricted family is the posture at the start; the others do not change it.
    """
    where = {"start": 0.0, "end": family.duration}
    if not ends or not orders or set(ends) - set(where):
        raise InvalidValue(
            f"a motion rests in derivatives of some orders at 'start', 'end' or both, got {ends}, {orders}", "ends"
        )
    times = [where[end] for end in ends]
    rows = [family.values(t, k)[0] for k in orders for t in times]
    there = family.values(0.0, 0)[0]
    null = _null_space(np.array([*rows, there]))
    start = np.linalg.lstsq(np.array([*rows, there]), np.array([0.0] * len(rows) + [1.0]), rcond=None)[0]
    if np.linalg.norm(np.array(rows) @ start) > 1e-9 or abs(there @ start - 1) > 1e-9:
        raise NotApplicable("this family cannot be at rest there", "ends")
    return Narrowed(family, np.column_stack([start, null]))


def _null_space(rows: Array) -> Array:
    _, s, vt = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-300))
    return np.asarray(vt[int(np.count_nonzero(s > 1e-10 * s[0])) :].T)


def sample_times(duration: float, rate: float) -> Array:
    """Equally spaced times (N,) from 0 to the duration at about a rate (Hz), both ends included."""
    if not (np.isfinite(rate) and rate > 0):
        raise InvalidValue(f"the rate must be positive, got {rate}", "rate")
    return np.linspace(0.0, duration, max(1, round(duration * rate)) + 1)


# Truncated Fourier series with exact derivatives.
#
#     q_i(t) = offset_i + sum over l of a_il / (l w) sin(l w t) - b_il / (l w) cos(l w t),    w = 2 pi f
#
# Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel, Optimal Robot Excitation and Identification (1997).


def fourier(a: ArrayLike, b: ArrayLike, offset: ArrayLike, frequency: float, t: Array) -> tuple[Array, Array, Array]:
    """q, v, a (N, n) of q = offset + sum a/(lw) sin(lwt) - b/(lw) cos(lwt), with a, b (joint, harmonic), w = 2 pi f."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    w = 2 * np.pi * frequency * np.arange(1, a.shape[1] + 1)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = np.asarray(offset) + s @ (a / w).T - c @ (b / w).T
    return q, c @ a.T + s @ b.T, c @ (b * w).T - s @ (a * w).T


def random_fourier(
    lower: Array, upper: Array, velocity: Array, period: float, t: Array, seed: int, harmonics: int = 5
) -> tuple[Array, Array, Array]:
    """A random periodic motion (q, v, a) that uses 90 % of the position ranges or 60 % of the velocity limits."""
    rng = np.random.default_rng(seed)
    n = len(lower)
    a, b = rng.normal(size=(2, n, harmonics))
    fine = np.linspace(0.0, period, 500)
    q, v, _ = fourier(a, b, 0.0, 1.0 / period, fine)
    scale = np.minimum(0.9 * (upper - lower) / np.ptp(q, axis=0), 0.6 * velocity / np.abs(v).max(axis=0))
    center = 0.5 * (lower + upper) - 0.5 * scale * (q.max(axis=0) + q.min(axis=0))
    return fourier(a * scale[:, None], b * scale[:, None], center, 1.0 / period, t)
