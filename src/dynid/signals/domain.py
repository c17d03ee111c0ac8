"""Domain of validity: positions, velocities, accelerations and loads of recorded motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.results import Result, about
from dynid.robot.model import Robot
from dynid.signals.settings import Motion

__all__ = ["Domain"]

Array = NDArray[np.float64]

# Percentile of magnitudes, so that single outliers do not widen the domain. The check of limits uses it, too.
_PERCENTILE = 99.5
# Joints that a sentence names before it sums up the others.
_NAMED = 3


@dataclass(frozen=True, eq=False)
class Domain(Result):
    """Positions, velocities, accelerations and loads of the motion that an estimate was identified from."""

    sizes = MappingProxyType({"joint": ("joints", "joints")})

    joints: tuple[str, ...] = field(metadata=about("Names of the joints."))
    units: tuple[str, ...] = field(
        metadata=about("Unit of each joint's position: rad, or m for a prismatic joint.", size=("joint",))
    )
    low: Array = field(metadata=about("Smallest position.", unit="`units`", size=("joint",)))
    high: Array = field(metadata=about("Largest position.", unit="`units`", size=("joint",)))
    velocity: Array = field(
        metadata=about(
            "Magnitude that 99.5 % of the samples of a run do not exceed; that of the fastest run.",
            unit="`units` per s",
            size=("joint",),
        )
    )
    acceleration: Array = field(metadata=about("The same of the acceleration.", unit="`units` per s2", size=("joint",)))
    square: Array = field(metadata=about("Mean of the square of the velocity.", size=("joint",)))
    cube: Array = field(metadata=about("Mean of the cube of the magnitude of the velocity.", size=("joint",)))
    load: Array = field(
        metadata=about(
            "Magnitude of the torque, in N m or N, that 99.5 % of the samples of a run do not exceed; NaN without "
            "torques.",
            size=("joint",),
        )
    )
    velocity_limit: Array = field(
        metadata=about("Limit of the velocity of the robot, infinite where it has none.", size=("joint",))
    )
    effort: Array = field(
        metadata=about("Limit of the torque of the robot, infinite where it has none.", size=("joint",))
    )
    seconds: float = field(metadata=about("Duration of the motion.", unit="s"))

    @staticmethod
    def of_motions(robot: Robot, motions: Sequence[Motion]) -> Domain:
        """The domain of filtered runs, at least one.

        Parameters
        ----------
        robot : Robot
            The robot that moved.
        motions : sequence of Motion
            Its filtered runs.

        Returns
        -------
        Domain
        """
        return reduce(Domain.joined, [_of_motion(robot, motion) for motion in motions])

    def joined(self, other: Domain) -> Domain:
        """The domain of the motion of both; they must be of the same robot."""
        largest = ("high", "velocity", "acceleration", "load")
        seconds = self.seconds + other.seconds
        share = self.seconds / seconds
        return Domain(
            joints=self.joints,
            units=self.units,
            low=np.minimum(self.low, other.low),
            **{name: np.fmax(getattr(self, name), getattr(other, name)) for name in largest},
            square=share * self.square + (1.0 - share) * other.square,
            cube=share * self.cube + (1.0 - share) * other.cube,
            velocity_limit=self.velocity_limit,
            effort=self.effort,
            seconds=seconds,
        )

    @property
    def crossing(self) -> Array:
        """Share of the recorded velocity (joint,) at which a line fitted to a quadratic law crosses it.

        The line goes through zero. Its slope is the third moment of the magnitude of the velocity over its second.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.cube / self.square / self.velocity
        return np.where(share < 1.0, share, 1.0)

    def beyond(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> NDArray[np.bool_]:
        """Which joints are outside of the domain, in position, velocity or acceleration.

        Parameters
        ----------
        q, v, a : array_like, shapes (N, nq), (N, nv), (N, nv)
            Motion in SI units; a floating base comes first and is not judged.

        Returns
        -------
        ndarray of bool, shape (N, joint)
        """
        at, moving, speeding = (self._of_joints(x) for x in (q, v, a))
        fast = (np.abs(moving) > self.velocity) | (np.abs(speeding) > self.acceleration)
        return np.asarray((at < self.low) | (at > self.high) | fast)

    def excess(self, v: ArrayLike) -> Array:
        """How far velocities (N, nv) exceed the recorded one, as a share of it (N, joint); infinite if none was."""
        over = np.maximum(np.abs(self._of_joints(v)) - self.velocity, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(over > 0, over / self.velocity, 0.0)

    def _of_joints(self, x: ArrayLike) -> Array:
        """The columns of the joints, which follow those of a floating base."""
        x = np.atleast_2d(np.asarray(x, dtype=float))
        return x[:, x.shape[1] - len(self.joints) :]

    def sentences(self) -> tuple[str, ...]:
        """For which velocity, load and range the model holds, in at most three sentences.

        Joints that were recorded at the smallest share of their limits come first.
        """
        rates = tuple(f"{unit}/s" for unit in self.units)
        forces = tuple("N" if unit == "m" else "N m" for unit in self.units)
        spans = sorted(range(len(self.joints)), key=lambda j: self.high[j] - self.low[j])
        ranges = [f"{self.low[j]:.3g} to {self.high[j]:.3g} {self.units[j]} ({self.joints[j]})" for j in spans]
        said = [
            ("velocities up to", self._reached(self.velocity, self.velocity_limit, rates)),
            ("loads up to", self._reached(self.load, self.effort, forces)),
            ("positions from", ranges),
        ]
        return tuple(f"Valid for {what} {_listed(parts)}." for what, parts in said if parts)

    def _reached(self, reached: Array, limits: Array, units: Sequence[str]) -> list[str]:
        """Value, joint and share of the limit of each joint that is known, the smallest share first."""
        known = [j for j in range(len(self.joints)) if np.isfinite(reached[j])]
        share = {j: reached[j] / limits[j] if 0 < limits[j] < np.inf else np.inf for j in known}
        out = []
        for j in sorted(known, key=lambda j: (share[j], reached[j])):
            part = f", {100 * share[j]:.0f} % of its limit" if np.isfinite(share[j]) else ""
            out.append(f"{reached[j]:.3g} {units[j]} ({self.joints[j]}{part})")
        return out


def _of_motion(robot: Robot, motion: Motion) -> Domain:
    """The domain of one run."""
    limits = [robot.limits[name] for name in robot.coordinates]

    def reached(x: Array) -> Array:
        return np.asarray(np.percentile(np.abs(x), _PERCENTILE, axis=0))

    return Domain(
        joints=robot.coordinates,
        units=tuple("m" if robot.channel_units[name] == "N" else "rad" for name in robot.coordinates),
        low=motion.q.min(axis=0),
        high=motion.q.max(axis=0),
        velocity=reached(motion.v),
        acceleration=reached(motion.a),
        square=np.mean(motion.v**2, axis=0),
        cube=np.mean(np.abs(motion.v) ** 3, axis=0),
        load=np.full(robot.n, np.nan) if motion.torque is None else reached(motion.torque),
        velocity_limit=np.array([limit.velocity for limit in limits]),
        effort=np.array([limit.effort for limit in limits]),
        seconds=len(motion.t) / motion.rate,
    )


def _listed(parts: Sequence[str]) -> str:
    """The first few parts of a list, and how many follow."""
    more = len(parts) - _NAMED
    named = list(parts[:_NAMED]) + ([f"more in {more} other joint{'s' if more > 1 else ''}"] if more > 0 else [])
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
