"""Excitation: a designed motion with its limits, what it tells, and the files a controller can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.excitation.basis import Basis, sample_times
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.problem import AnyClearance, Problem
from dynid.excitation.room import has_torque_model
from dynid.markup import html_table
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.excitation.plan import Plan
    from dynid.identification.observation import Observation

__all__ = ["Excitation"]

Array = NDArray[np.float64]

# Peaks are looked for on a grid this fine.
_GRID = 2000
# A limit with less slack than this is in the way.
_CLOSE = 0.02


@dataclass(frozen=True, eq=False)
class Excitation:
    """Coefficients (n, k) of a basis for one robot, with the limits and the criterion they were found under.

    `samples` is the grid on which the criterion was judged.
    """

    robot: Robot
    basis: Basis
    coefficients: Array
    limits: MotionLimits
    criterion: Criterion
    clearances: tuple[AnyClearance, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    samples: int = 100

    @property
    def duration(self) -> float:
        return self.basis.duration

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v and a (N, n) at times (N,)."""
        q, v, a = (self.basis.values(t, order) @ self.coefficients.T for order in range(3))
        return q, v, a

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """t (N,), q, v and a (N, n) over the whole motion at a rate (Hz), both ends included."""
        t = sample_times(self.duration, rate)
        return t, *self.at(t)

    def problem(self, samples: int) -> Problem:
        """The design problem on a grid of so many samples, to look at slacks and criteria."""
        return Problem(self.basis, self.criterion, self.limits, samples, self.clearances)

    @cached_property
    def value(self) -> float:
        """The criterion of this motion; smaller is better."""
        return self.problem(self.samples).value(self.coefficients)

    @cached_property
    def _smallest(self) -> dict[str, Array]:
        """Smallest slack of each kind of limit and each joint, or of each pair of a clearance."""
        found = self.problem(_GRID).slacks(self.coefficients)
        return {limit.kind: limit.slack.min(axis=0, initial=1.0) for limit in found}

    @cached_property
    def slacks(self) -> dict[str, float]:
        """Smallest slack of each kind of limit on a fine grid: 0 on the limit, 1 far from it, negative beyond."""
        return {kind: float(slack.min(initial=1.0)) for kind, slack in self._smallest.items()}

    @cached_property
    def use(self) -> dict[str, Array]:
        """Largest share (n,) of each kind of limit that each joint uses; NaN where it has none."""
        out: dict[str, Array] = {}
        for kind in ("position", "velocity", "acceleration", "jerk", "torque", "power"):
            bound = self.limits.upper if kind == "position" else getattr(self.limits, kind)
            felt = kind not in ("torque", "power") or has_torque_model(self.robot)
            if felt and kind in self._smallest and np.any(np.isfinite(bound)):
                out[kind] = np.where(np.isfinite(bound), 1.0 - self._smallest[kind], np.nan)
        return out

    @property
    def in_the_way(self) -> tuple[str, ...]:
        """Limits that the motion touches: "velocity of 'joint1'", or the name of a clearance."""
        names = self.robot.coordinates
        touched = [
            f"{kind} of '{names[j]}'"
            for kind, share in self.use.items()
            for j in np.flatnonzero(np.nan_to_num(share) > 1.0 - _CLOSE)
        ]
        return (*touched, *(c.label for c in self.clearances if self.slacks[c.label] < _CLOSE))

    def base_regressor(self, rate: float = 100.0) -> Array:
        """W (N, channel, b) along the motion."""
        _, q, v, a = self.sample(rate)
        # Rounding at rest has a sign, which friction columns would take for motion.
        v = np.where(np.abs(v) < 1e-12 * self.limits.velocity, 0.0, v)
        return self.criterion.base.regressor(q, v, a)

    @cached_property
    def condition_number(self) -> float:
        """Of the stacked base regressor at 100 Hz, as it is."""
        W = self.base_regressor()
        return float(np.linalg.cond(W.reshape(-1, W.shape[-1])))

    def predicted_sigma(self, noise: ArrayLike, periods: int = 1, rate: float = 100.0) -> Array:
        """Standard deviation (b,) of each base parameter after `periods` runs at a rate, with white torque noise."""
        return self.plan(noise, rate).std_after(periods)

    def plan(
        self,
        noise: ArrayLike,
        rate: float = 100.0,
        target: float = 0.02,
        previous: Observation | Sequence[Observation] = (),
    ) -> Plan:
        """How well each base parameter will be known, and after how many periods it is known to `target`.

        `noise` is the deviation of the torques, one or one a joint; `previous` are recordings that are there already.
        """
        from dynid.excitation.plan import plan

        return plan(self, noise, rate, target, previous)

    def summary(self) -> str:
        """Use of every limit joint by joint, which are in the way, and what is still known worst."""
        from dynid.excitation.summary import excitation_text

        return excitation_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Figures of merit as plain data."""
        names = self.robot.coordinates
        return {
            "robot": self.robot.name,
            "duration": float(self.duration),
            "periodic": self.basis.periodic,
            "criterion": self.criterion.name,
            "value": self.value,
            "condition_number": self.condition_number,
            "use": {
                name: {kind: float(share[j]) for kind, share in self.use.items() if np.isfinite(share[j])}
                for j, name in enumerate(names)
            },
            "clearances": {c.label: self.slacks[c.label] for c in self.clearances},
            "in_the_way": list(self.in_the_way),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def to_csv(self, path: str | Path, rate: float = 100.0) -> None:
        """Write t, q, v and a of every joint; `load_recording` reads it."""
        from dynid.excitation.files import write_csv

        write_csv(self, path, rate)

    def to_joint_trajectory(self, path: str | Path, rate: float = 100.0) -> None:
        """Write a ROS 2 trajectory_msgs/JointTrajectory, as YAML or JSON by the suffix of the path."""
        from dynid.excitation.files import write_joint_trajectory

        write_joint_trajectory(self, path, rate)

    def to_toml(self, path: str | Path) -> None:
        """Write the motion itself: family, coefficients, limits and criterion; `from_toml` reads it back exactly."""
        from dynid.excitation.files import write_toml

        write_toml(self, path)

    @staticmethod
    def from_toml(path: str | Path, robot: Robot, clearances: Sequence[AnyClearance] = ()) -> Excitation:
        """Read a motion back for a robot with the same joints; clearances are not in the file."""
        from dynid.excitation.files import read_toml

        return read_toml(path, robot, tuple(clearances))

    def __repr__(self) -> str:
        return f"Excitation('{self.robot.name}', {self.duration:g} s, condition number {self.condition_number:.4g})"

    def _repr_html_(self) -> str:
        rows = [
            (joint, *(f"{share[j]:.0%}" if np.isfinite(share[j]) else "-" for share in self.use.values()))
            for j, joint in enumerate(self.robot.coordinates)
        ]
        title = f"{self.robot.name}: motion of {self.duration:g} s, condition number {self.condition_number:.4g}"
        return html_table(
            title, ("use of limits", *self.use), rows, f"in the way: {', '.join(self.in_the_way) or 'nothing'}"
        )
