"""Retimed motions, ramps into and out of motions, and sequences of motions.

    q(t) -> q(t / k),    v / k,    a / k^2,    rigid torque g + (M a + C v) / k^2

Source: Hollerbach, Dynamic Scaling of Manipulator Trajectories (1984).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import Infeasible, InvalidShape, InvalidValue, Mismatch, MissingArgument, NotApplicable
from dynid.excitation.basis import PointToPoint, Quintic, Stretched, sample_times
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.linkage import PassiveJoints
from dynid.excitation.planners import point_to_point

__all__ = ["Joined", "Motion", "retimed", "sequence", "shortest_duration", "with_ramps"]

Array = NDArray[np.float64]

# Number of steps on which limits are checked, a multiple of those of Excitation.slacks.
_STEPS = {True: 8000, False: 7996}
# Limits that another duration changes.
_TIMED = ("velocity", "acceleration", "jerk", "torque", "power")
# Step of a first check, which rejects most durations that are too short.
_COARSE = 20
_LONGER = 1.02
_LONGEST = 1e4
# Positions and velocities closer than this (rad, rad/s) are equal, and velocities below are rest.
_CLOSE = 1e-6


class Motion(Protocol):
    """A motion of a robot: a designed motion, a path through waypoints, or a sequence of motions."""

    @property
    def duration(self) -> float:
        """Duration, s."""
        ...

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v and a (N, n) at times (N,)."""
        ...

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """t (N,), q, v and a (N, n) at a rate (Hz), both ends included."""
        ...


def retimed(excitation: Excitation, duration: float) -> Excitation:
    """The same path with another duration: velocities scale with its inverse, accelerations with the inverse square.

    Parameters
    ----------
    excitation : Excitation
    duration : float
        New duration, s.

    Returns
    -------
    Excitation
    """
    basis = excitation.basis
    family = basis.family if isinstance(basis, Stretched) else basis
    note = f"retimed from {excitation.duration:g} s to {duration:g} s"
    return replace(excitation, basis=Stretched(family, float(duration)), notes=(*excitation.notes, note))


def shortest_duration(excitation: Excitation) -> float:
    """The smallest duration (s) for which the motion satisfies all its limits; may be shorter or longer than its own.

    Parameters
    ----------
    excitation : Excitation

    Returns
    -------
    float
        For `retimed`.

    Raises
    ------
    DataError
        If no duration satisfies the limits, or there is none that bounds it.
    """
    steps = _STEPS[excitation.basis.periodic]
    problem = excitation.problem(steps if excitation.basis.periodic else steps + 1)
    X, limits, robot = excitation.coefficients, excitation.limits, excitation.robot
    for limit in problem.slacks(X):
        if limit.kind not in _TIMED and limit.slack.min(initial=1.0) < -1e-9:
            raise Infeasible(f"the motion exceeds its {limit.kind} limit, which does not depend on the duration")
    q, v, a, j = problem.motion(X)
    # Peaks of splines and profiles are at their breakpoints.
    corners = [excitation.basis.values(excitation.basis.breakpoints, order) @ X.T for order in range(4)]
    q, v, a, j = (np.vstack(pair) for pair in zip((q, v, a, j), corners, strict=True))
    shares = (np.abs(v) / limits.velocity, np.sqrt(np.abs(a) / limits.acceleration), np.cbrt(np.abs(j) / limits.jerk))
    least = float(max(share.max() for share in shares)) * (1 + 1e-9)
    if not least > 0:
        raise NotApplicable("the motion is at rest, or has no limits: it has no shortest duration")

    def held(ratio: float) -> bool:
        """Whether torques and powers are within their limits in `ratio` times the duration."""
        for step in (_COARSE, 1):
            velocity = v[::step] / ratio
            torque = inverse_dynamics(robot, q[::step], velocity, a[::step] / ratio**2)[:, -robot.n :]
            if np.any((np.abs(torque) > limits.torque) | (np.abs(torque * velocity) > limits.power)):
                return False
            if any(np.any(c.values_in_motion(q[::step], velocity, 0 * velocity) < 0) for c in passive):
                return False
        return True

    passive = [c for c in excitation.clearances if isinstance(c, PassiveJoints)]
    loaded = bool(np.any(np.isfinite(limits.torque)) or np.any(np.isfinite(limits.power)) or passive)
    if not loaded or held(least):
        return least * excitation.duration
    # Torque is not monotonic in the duration: durations are tried from below.
    high = least
    while not held(high):
        high *= _LONGER
        if high > _LONGEST * least:
            raise Infeasible("the motion exceeds its torque limits at any duration; use other postures")
    low = high / _LONGER
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if held(middle) else (middle, high)
    return high * excitation.duration


@dataclass(frozen=True, eq=False)
class Joined:
    """Motions in sequence without a pause.

    Attributes
    ----------
    parts : tuple of Motion
    """

    parts: tuple[Motion, ...]

    @cached_property
    def starts(self) -> Array:
        """When each part begins (k,)."""
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])[:-1]])

    @property
    def duration(self) -> float:
        """Duration of all parts together, s."""
        return float(self.starts[-1]) + self.parts[-1].duration

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v and a (N, n) at times (N,)."""
        times = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)
        part = np.searchsorted(self.starts, times, side="right") - 1
        out = np.zeros((3, len(times), self.parts[0].at(0.0)[0].shape[1]))
        for k in np.unique(part):
            here = part == k
            out[:, here] = self.parts[k].at(times[here] - self.starts[k])
        return out[0], out[1], out[2]

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """t (N,), q, v and a (N, n) over the whole motion at a rate (Hz), both ends included."""
        t = sample_times(self.duration, rate)
        return t, *self.at(t)


def with_ramps(
    excitation: Excitation, seconds: float, *, start: ArrayLike | None = None, end: ArrayLike | None = None
) -> Joined:
    """Add ramps from rest into a motion and out of it, if it is not at rest at its ends.

    Parameters
    ----------
    excitation : Excitation
    seconds : float
        Duration of each ramp, s.
    start, end : array, shape (n,), optional
        Postures at rest before and after the motion. Default: those with the smoothest ramp, within the ranges.

    Returns
    -------
    Joined
        Ramps and motion; all satisfy the limits of the motion.

    Raises
    ------
    DataError
        If a ramp exceeds a limit.
    """
    if not (np.isfinite(seconds) and seconds > 0):
        raise InvalidValue(f"ramps take a positive number of seconds, got {seconds}", "seconds")
    rest = [_posture(x, len(excitation.coefficients)) for x in (start, end)]
    q, v, a = excitation.at([0.0, excitation.duration])
    parts: list[Motion] = [excitation]
    if _moving(v[0], a[0]) or rest[0] is not None:
        parts.insert(0, _ramp(excitation, seconds, (q[0], v[0], a[0]), rest[0], False))
    if _moving(v[1], a[1]) or rest[1] is not None:
        parts.append(_ramp(excitation, seconds, (q[1], v[1], a[1]), rest[1], True))
    return Joined(tuple(parts))


def _posture(given: ArrayLike | None, n: int) -> Array | None:
    if given is None:
        return None
    posture = np.asarray(given, dtype=float)
    if posture.shape != (n,) or not np.all(np.isfinite(posture)):
        raise InvalidShape(f"a posture needs {n} finite numbers, got shape {posture.shape}", "posture")
    return posture


def _moving(v: Array, a: Array) -> bool:
    return bool(np.any(np.abs(v) > _CLOSE) or np.any(np.abs(a) > _CLOSE))


def _ramp(
    excitation: Excitation, T: float, state: tuple[Array, Array, Array], posture: Array | None, out: bool
) -> Excitation:
    """A quintic from rest into a state, or out of it to rest, checked against the limits of the motion."""
    q, v, a = state
    limits = excitation.limits
    if posture is None:
        # Distance of the quartic with the velocities and accelerations of both ends.
        path = v * T / 2 + (1 if out else -1) * a * T**2 / 12
        posture = np.clip(q + path if out else q - path, limits.lower, limits.upper)
    basis = Quintic(T)
    rest = (posture, np.zeros_like(v), np.zeros_like(a))
    ends = np.vstack([basis.values([0.0, T], order) for order in range(3)])
    first, last = (state, rest) if out else (rest, state)
    conditions = np.stack([x for order in range(3) for x in (first[order], last[order])])
    coefficients = np.asarray(np.linalg.solve(ends, conditions).T, dtype=float)
    ramp = replace(excitation, basis=basis, coefficients=coefficients, notes=())
    kind, slack = min(ramp.slacks.items(), key=lambda entry: entry[1])
    if slack < -1e-6:
        raise Infeasible(
            f"the ramp {'out of' if out else 'into'} the motion exceeds its {kind} limit by {-100 * slack:.3g} %; "
            "give it more or fewer seconds, or another posture at rest",
            "seconds",
        )
    return ramp


def sequence(motions: Sequence[Motion], *, limits: MotionLimits | None = None) -> Joined:
    """Join motions, with a move from the end of each to the start of the next if these differ.

    Parameters
    ----------
    motions : sequence of Motion
        They must be at rest where a move begins or ends.
    limits : MotionLimits, optional
        Limits of minimum-time moves, torques not checked. Default: all limits of the first designed motion, its
        torque limits and clearances included.

    Returns
    -------
    Joined

    Raises
    ------
    DataError
        If motions have different joints, are not at rest, or there are no limits for the moves.
    """
    if not motions:
        raise MissingArgument("a sequence needs a motion", "motions")
    widths = {motion.at(0.0)[0].shape[1] for motion in motions}
    if len(widths) > 1:
        raise Mismatch(f"the motions of a sequence need the same joints, got {sorted(widths)} of them", "motions")
    model = next(_designed(motions), None)
    parts: list[Motion] = [motions[0]]
    for k, (before, after) in enumerate(pairwise(motions), start=1):
        (qe, ve, _), (qs, vs, _) = ([x[0] for x in m.at(t)] for m, t in ((before, before.duration), (after, 0.0)))
        if np.abs(qe - qs).max() > _CLOSE or np.abs(ve - vs).max() > _CLOSE:
            for number, word, velocity in ((k, "end", ve), (k + 1, "start", vs)):
                if np.abs(velocity).max() > _CLOSE:
                    raise NotApplicable(
                        f"motion {number} is not at rest at its {word}; add ramps with with_ramps", "motions"
                    )
            if limits is not None:
                parts.append(point_to_point([qe, qs], limits))
            elif model is not None:
                parts.append(_move(model, qe, qs))
            else:
                raise MissingArgument(
                    "no motion of the sequence has limits for the moves between them; give limits", "limits"
                )
        parts.append(after)
    return Joined(tuple(parts))


def _designed(motions: Iterable[Motion]) -> Iterator[Excitation]:
    for motion in motions:
        if isinstance(motion, Excitation):
            yield motion
        elif isinstance(motion, Joined):
            yield from _designed(motion.parts)


def _move(model: Excitation, start: Array, end: Array) -> Excitation:
    """The shortest double-S move within all limits of a designed motion."""
    move = replace(model, basis=PointToPoint(1.0, 2, "double-s"), coefficients=np.column_stack([start, end]), notes=())
    return replace(retimed(move, shortest_duration(move)), notes=())
