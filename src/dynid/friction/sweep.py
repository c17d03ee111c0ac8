"""Motion for a friction map: one joint at constant velocities in both directions, the others at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import Infeasible, InvalidShape, InvalidValue, keyword, named
from dynid.friction.rows import joint_index
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["VelocitySweep", "velocity_sweep"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VelocitySweep:
    """Motion of one joint between two positions at constant velocities, with smooth reversals.

    During a reversal the velocity follows half a cosine, so that the acceleration starts and ends at zero.

    Attributes
    ----------
    robot : Robot
    joint : int
        Index of the moving joint.
    velocities : array of shape (m,)
        Velocity magnitudes (rad/s or m/s), each held forwards and backwards.
    low, high : float
        Ends of the strokes at constant velocity (rad or m).
    acceleration : float
        Largest acceleration of the reversals (rad/s2 or m/s2).
    posture : array of shape (n,)
        Positions of the other joints.
    """

    robot: Robot
    joint: int
    velocities: Array
    low: float
    high: float
    acceleration: float
    posture: Array

    @property
    def duration(self) -> float:
        """Length of the motion (s)."""
        return float(self._knots()[-1][0])

    def _knots(self) -> list[tuple[float, float, float]]:
        """End times of the phases with their initial and final velocities: a reversal, a stroke, and so on."""
        out, now, before, where = [(0.0, 0.0, 0.0)], 0.0, 0.0, self.low
        for s in self.velocities:
            for to, end in ((s, self.high), (-s, self.low)):
                turn = _turn(before, to, self.acceleration)
                now, where = now + turn, where + 0.5 * turn * (before + to)
                out.append((now, before, to))
                now, where, before = now + max((end - where) / to, 0.0), end, to
                out.append((now, to, to))
        out.append((now + _turn(before, 0.0, self.acceleration), before, 0.0))
        return out

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """Sample the motion.

        Parameters
        ----------
        rate : float
            Sampling rate (Hz).

        Returns
        -------
        t : array of shape (N,)
        q, v, a : array of shape (N, n)

        Raises
        ------
        DataError
            If the rate is not positive.
        """
        if not rate > 0:
            raise InvalidValue(f"a rate is positive, got {rate:g} Hz", "rate")
        knots = self._knots()
        t = np.arange(0.0, knots[-1][0], 1.0 / rate)
        q, v, a = np.zeros((3, len(t)))
        where = self.low
        for (start, _, _), (stop, first, last) in pairwise(knots):
            if stop <= start:
                continue
            inside = (t >= start) & (t < stop)
            x = (t[inside] - start) / (stop - start)
            length, change = stop - start, last - first
            # Velocity from first to last along (1 - cos) / 2.
            v[inside] = first + 0.5 * change * (1 - np.cos(np.pi * x))
            a[inside] = 0.5 * change * np.pi / length * np.sin(np.pi * x) if change else 0.0
            q[inside] = where + length * (first * x + 0.5 * change * (x - np.sin(np.pi * x) / np.pi))
            where += length * 0.5 * (first + last)
        full = np.tile(self.posture, (len(t), 1)), np.zeros((len(t), self.robot.n)), np.zeros((len(t), self.robot.n))
        for whole, own in zip(full, (q, v, a), strict=True):
            whole[:, self.joint] = own
        return t, *full

    def to_csv(self, path: str | Path, rate: float) -> None:
        """Write the motion as a CSV table for a controller, which `load_recording` also reads.

        Parameters
        ----------
        path : str or Path
            File to write.
        rate : float
            Sampling rate (Hz).
        """
        t, q, v, a = self.sample(rate)
        Recording(self.robot.coordinates, (Run(t, q, v=v, a=a, reference=q, name="sweep"),)).to_csv(path)


def velocity_sweep(
    robot: Robot,
    joint: str | int | None,
    velocities: Sequence[float] | ArrayLike,
    *,
    between: tuple[float, float] | None = None,
    acceleration: float | None = None,
    posture: ArrayLike | None = None,
) -> VelocitySweep:
    """Motion of one joint at constant velocities in both directions, for `friction_map`.

    Parameters
    ----------
    robot : Robot
    joint : str, int or None
        Name or index of the joint; None for a robot with one joint.
    velocities : array of shape (m,)
        Velocity magnitudes (rad/s or m/s), at least two.
    between : tuple of two floats, optional
        Ends of the strokes (rad or m), by default the middle half of the position limits. Reversals need additional
        range, about the velocity squared over the acceleration.
    acceleration : float, optional
        Largest acceleration of the reversals (rad/s2 or m/s2), by default five times the largest velocity per second.
    posture : array of shape (n,), optional
        Positions of the other joints; zero by default, those of the assembled posture for a robot with closed loops.

    Returns
    -------
    VelocitySweep

    Raises
    ------
    DataError
        If a velocity or the resulting position range exceeds the limits of the joint.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> sweep = dynid.friction.velocity_sweep(robot, 1, [0.2, 0.5], between=(-0.5, 0.5))
    >>> t, q, v, a = sweep.sample(100.0)
    >>> q.shape[1]
    2
    """
    place = joint_index(robot, joint)
    name = robot.coordinates[place]
    values = np.asarray(velocities, dtype=float)
    if values.ndim != 1 or values.size < 2 or not np.all(np.isfinite(values)) or not np.all(values > 0):
        raise InvalidValue("a velocity sweep needs at least two velocities, finite and positive", "velocities")
    limits = robot.limits[name]
    if values.max() > limits.velocity:
        raise InvalidValue(
            f"a velocity of {values.max():g} exceeds the limit of joint '{name}', {limits.velocity:g}", "velocities"
        )
    if between is None:
        if not np.isfinite([limits.lower, limits.upper]).all():
            between = (robot.home[place] - 1.0, robot.home[place] + 1.0)
        else:
            quarter = 0.25 * (limits.upper - limits.lower)
            between = (limits.lower + quarter, limits.upper - quarter)
    low, high = map(float, between)
    if not low < high:
        raise InvalidValue(f"{named('between')} must be two positions, the lower one first, got {low:g} and {high:g}")
    most = float(acceleration) if acceleration is not None else 5.0 * values.max()
    if not most > 0:
        raise InvalidValue(f"the acceleration of reversals is positive, got {most:g}", "acceleration")
    rest = robot.home if posture is None else np.asarray(posture, dtype=float)
    if rest.shape != (robot.n,):
        raise InvalidShape(f"posture needs {robot.n} positions, got shape {rest.shape}", "posture")
    sweep = VelocitySweep(robot, place, values, low, high, most, rest)
    _, q, _, _ = sweep.sample(200.0)
    reached = q[:, place].min(), q[:, place].max()
    if reached[0] < limits.lower or reached[1] > limits.upper:
        raise Infeasible(
            f"the sweep of joint '{name}' reaches from {reached[0]:.3g} to {reached[1]:.3g}, beyond its limits: bring "
            f"the ends closer with {keyword('between')}, or allow more acceleration"
        )
    return sweep


def _turn(before: float, to: float, acceleration: float) -> float:
    """Duration (s) of a velocity change; its largest acceleration is pi / 2 times the mean one."""
    return max(0.5 * np.pi * abs(to - before) / acceleration, 1e-9)
