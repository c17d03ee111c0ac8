"""Excitation: a designed motion with its limits and criterion, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.excitation.basis import Basis, sample_times
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.problem import AnyClearance, Problem
from dynid.excitation.room import has_torque_model
from dynid.markup import html_table
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from dynid.excitation.information import Earlier
    from dynid.excitation.plan import Plan

__all__ = ["Excitation"]

Array = NDArray[np.float64]

# Samples of the grid on which slacks are computed.
_GRID = 2000
# A limit with less slack than this is active.
_CLOSE = 0.02


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion: coefficients of a basis, with the limits and the criterion of the design.

    Attributes
    ----------
    robot : Robot
    basis : Basis
        Family of motions, with its duration.
    coefficients : array, shape (n, k)
        Coefficients of every joint.
    limits : MotionLimits
    criterion : Criterion
    clearances : tuple of clearances
    seconds : float
        Duration of the search, s.
    notes : tuple of str
        Remarks of the design.
    samples : int
        Samples of the grid on which the criterion was computed.
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
        """Duration of the motion, s."""
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
        """The design problem on a grid of so many samples, for slacks and criteria."""
        return Problem(self.basis, self.criterion, self.limits, samples, self.clearances)

    @cached_property
    def value(self) -> float:
        """Value of the criterion; smaller is better."""
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
        """Largest share (n,) of each kind of limit that each joint uses; NaN where there is no limit."""
        out: dict[str, Array] = {}
        for kind in ("position", "velocity", "acceleration", "jerk", "torque", "power"):
            bound = self.limits.upper if kind == "position" else getattr(self.limits, kind)
            known = kind not in ("torque", "power") or has_torque_model(self.robot)
            if known and kind in self._smallest and np.any(np.isfinite(bound)):
                out[kind] = np.where(np.isfinite(bound), 1.0 - self._smallest[kind], np.nan)
        return out

    @property
    def active_limits(self) -> tuple[str, ...]:
        """Limits that the motion reaches, such as "velocity of 'joint1'", or the name of a clearance."""
        names = self.robot.coordinates
        touched = [
            f"{kind} of '{names[j]}'"
            for kind, share in self.use.items()
            for j in np.flatnonzero(np.nan_to_num(share) > 1.0 - _CLOSE)
        ]
        return (*touched, *(c.label for c in self.clearances if self.slacks[c.label] < _CLOSE))

    def base_regressor(self, rate: float = 100.0) -> Array:
        """Base regressor W (N, channel, b) along the motion at a rate (Hz)."""
        _, q, v, a = self.sample(rate)
        # Rounding errors at rest have a sign, which friction columns would treat as motion.
        v = np.where(np.abs(v) < 1e-12 * self.limits.velocity, 0.0, v)
        return self.criterion.base.regressor(q, v, a)

    @cached_property
    def condition_number(self) -> float:
        """Condition number of the stacked base regressor at 100 Hz, without scaling."""
        W = self.base_regressor()
        return float(np.linalg.cond(W.reshape(-1, W.shape[-1])))

    def predicted_std(self, noise: ArrayLike, *, periods: int = 1, rate: float = 100.0) -> Array:
        """Predicted standard deviation (b,) of each base parameter after `periods` runs at a rate (Hz)."""
        return self.plan(noise, rate=rate).std_after(periods)

    def plan(
        self,
        noise: ArrayLike,
        *,
        rate: float = 100.0,
        target: float = 0.02,
        previous: Earlier | Sequence[Earlier] = (),
    ) -> Plan:
        """Predict the accuracy of each base parameter, and the number of periods until it reaches `target`.

        Parameters
        ----------
        noise : float or array, shape (channel,)
            The standard deviation of white torque noise, N m (N for prismatic joints).
        rate : float
            Sampling rate, Hz.
        target : float
            Relative standard deviation to be reached, such as 0.02.
        previous : Recording, DataSet, Observation, Estimate, Information, or a sequence of them
            What is known already, see `dynid.excitation.earlier_information`.

        Returns
        -------
        Plan
        """
        found: Plan = attached(self, "plan")(self, noise, rate=rate, target=target, previous=previous)
        return found

    def summary(self) -> str:
        """Use of every limit by joint, active limits, and the parameters with the largest relative error."""
        return str(attached(self, "summary")(self))

    def to_dict(self) -> dict[str, Any]:
        """Criterion, condition number and use of limits as plain data."""
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
            "active_limits": list(self.active_limits),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def to_frame(self, rate: float = 100.0) -> pl.DataFrame:
        """The motion as a table.

        Parameters
        ----------
        rate : float
            Rows per second, Hz.

        Returns
        -------
        polars.DataFrame
            t in s, then q, v and a of every joint (q_joint1, ...), in SI units.
        """
        import polars as pl

        t, *motion = self.sample(rate)
        names = self.robot.coordinates
        columns = {f"{s}_{n}": x[:, j] for s, x in zip("qva", motion, strict=True) for j, n in enumerate(names)}
        return pl.DataFrame({"t": t, **columns})

    def plot(
        self, *, joints: str | Sequence[str] | None = None, ax: Axes | Sequence[Axes] | None = None
    ) -> NDArray[Any]:
        """Draw positions, velocities, accelerations and a-priori torques, with the limits that are near as dashes.

        Parameters
        ----------
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; all by default.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (panel,)
            One per signal and unit, from the top.

        Raises
        ------
        DataError
            If no joint matches.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, joints, ax)
        return axes

    def to_csv(self, path: str | Path, rate: float = 100.0) -> None:
        """Write t, q, v and a of every joint at a rate (Hz); `load_recording` reads it."""
        attached(self, "to_csv")(self, path, rate)

    def to_joint_trajectory(self, path: str | Path, rate: float = 100.0) -> None:
        """Write a ROS 2 trajectory_msgs/JointTrajectory, as YAML or JSON by the suffix of the path, at a rate (Hz)."""
        attached(self, "to_joint_trajectory")(self, path, rate)

    def to_toml(self, path: str | Path) -> None:
        """Save the design: family, coefficients, limits and criterion; `from_toml` reads it back exactly."""
        attached(self, "to_toml")(self, path)

    @staticmethod
    def from_toml(path: str | Path, robot: Robot, clearances: Sequence[AnyClearance] = ()) -> Excitation:
        """Load a design saved by `to_toml`.

        Parameters
        ----------
        path : str or Path
        robot : Robot
            Robot with the same joints.
        clearances : sequence of clearances
            The file does not store clearances; give those of the design to check them.

        Returns
        -------
        Excitation

        Raises
        ------
        DataError
            If the file is not a saved motion, or the robot has other joints.
        """
        found: Excitation = attached(Excitation, "from_toml")(path, robot, tuple(clearances))
        return found

    def __repr__(self) -> str:
        return f"Excitation('{self.robot.name}', {self.duration:g} s, condition number {self.condition_number:.4g})"

    def _repr_html_(self) -> str:
        """Use of limits as an HTML table."""
        rows = [
            (joint, *(f"{share[j]:.0%}" if np.isfinite(share[j]) else "-" for share in self.use.values()))
            for j, joint in enumerate(self.robot.coordinates)
        ]
        title = f"{self.robot.name}: motion of {self.duration:g} s, condition number {self.condition_number:.4g}"
        return html_table(
            title, ("use of limits", *self.use), rows, f"active limits: {', '.join(self.active_limits) or 'none'}"
        )
