"""`FlexibleEstimate`: stiffness, damping and motor inertia of joints, with all other parameters of the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.identification.flexible.rows import EncoderError
from dynid.identification.flexible.sides import FlexibleModel
from dynid.identification.flexible.unknowns import Unknowns
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    import polars as pl

    from dynid.identification.flexible.stiffness_tests import StiffnessTest
    from dynid.identification.flexible.validation import FlexibleValidation
    from dynid.parameters.base import BaseParameters
    from dynid.recording.recording import Recording

__all__ = ["FlexibleEstimate", "Sides"]

Array = NDArray[np.float64]


class Sides(StrEnum):
    """Encoders that flexible joints were identified from."""

    BOTH = "both"
    MOTOR = "motor"


@dataclass(frozen=True, eq=False, kw_only=True)
class FlexibleEstimate:
    """Identified flexible joints with all other parameters of the robot.

    Attributes
    ----------
    model : FlexibleModel
        The robot, its flexible joints and the friction of their links.
    sides : Sides
        Encoders that were used: those of motors and links, or of motors only.
    x : ndarray, shape (u,)
        All unknowns: base parameters of the link side, parameters of the motors, compliance and lagging of the
        springs, offsets and other errors of the link encoders.
    covariance : ndarray, shape (u, u)
        Their covariance, from blocks of time.
    freedom : float
        Degrees of freedom of the standard deviations.
    runs : int
        Number of encoder offsets per joint.
    errors : tuple of EncoderError
        Errors of link encoders, beside offsets, that were estimated.
    delays : ndarray, shape (flexible joint,)
        Delay of each link encoder behind the motor encoder in s.
    parameters : ndarray, shape (p,)
        Physically consistent standard parameters of the link side, `model.links`, as close to the data as possible.
    noise : ndarray, shape (channel,)
        Standard deviation of the residual per joint torque (N m or N), then per deflection (rad or m).
    rows : tuple of int
        Number of rows per channel.
    iterations : int
        Gauss-Newton iterations.
    converged : bool
        Whether they converged.
    signals : Signals
        How the runs were filtered.
    tests : tuple of StiffnessTest
        Tests of nonlinear stiffness, where they were asked for.
    notes : tuple of str
        What to know about the estimate.
    """

    model: FlexibleModel
    sides: Sides
    x: Array
    covariance: Array = field(repr=False)
    freedom: float
    runs: int
    errors: tuple[EncoderError, ...]
    delays: Array
    parameters: Array = field(repr=False)
    noise: Array
    rows: tuple[int, ...]
    iterations: int
    converged: bool
    signals: Signals
    tests: tuple[StiffnessTest, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.model.robot

    @property
    def joints(self) -> tuple[str, ...]:
        """The flexible joints."""
        return self.model.joints

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the link side, with their expressions."""
        return self.model.base

    @cached_property
    def unknowns(self) -> Unknowns:
        """Places of the unknowns in `x`."""
        return Unknowns.of(self.model, self.runs, self.errors)

    @property
    def std(self) -> Array:
        """Standard deviations (u,) of the unknowns."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def beta(self) -> Array:
        """Base parameters (b,) of the link side."""
        return self.x[: self.unknowns.links]

    @property
    def beta_std(self) -> Array:
        """Standard deviations (b,) of the base parameters."""
        return self.std[: self.unknowns.links]

    @property
    def compliance(self) -> Array:
        """Compliances (flexible joint,), rad/(N m) or m/N."""
        return self.x[self.unknowns.compliance]

    @property
    def compliance_std(self) -> Array:
        """Standard deviations (flexible joint,) of the compliances."""
        return self.std[self.unknowns.compliance]

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether the compliance of each joint is above zero by more than its 95 % interval."""
        limit = float(scipy.stats.t.ppf(0.975, self.freedom))
        return np.asarray(self.compliance > limit * self.compliance_std)

    @property
    def stiffness(self) -> Array:
        """Stiffness (flexible joint,), N m/rad or N/m; infinite where no elasticity is seen."""
        return np.asarray(np.where(self.seen, 1.0 / np.where(self.seen, self.compliance, 1.0), np.inf))

    @property
    def stiffness_std(self) -> Array:
        """Standard deviations (flexible joint,) of the stiffness; infinite where no elasticity is seen."""
        return np.asarray(np.where(self.seen, self.compliance_std * self.stiffness**2, np.inf))

    @property
    def damping(self) -> Array:
        """Damping (flexible joint,), N m s/rad or N s/m; NaN where no elasticity is seen."""
        k = np.where(self.seen, self.stiffness, np.nan)
        return np.asarray(self.x[self.unknowns.lagging] * k**2)

    @property
    def damping_std(self) -> Array:
        """Standard deviations (flexible joint,) of the damping; NaN where no elasticity is seen."""
        u = self.unknowns
        out = []
        for k in range(u.flexible):
            i, j = u.compliance.start + k, u.lagging.start + k
            c, e = self.x[i], self.x[j]
            slope = np.array([-2 * e / c**3, 1 / c**2])
            part = self.covariance[np.ix_([i, j], [i, j])]
            out.append(float(np.sqrt(max(slope @ part @ slope, 0.0))) if self.seen[k] else np.nan)
        return np.array(out)

    @cached_property
    def motor_parameters(self) -> Mapping[str, float]:
        """Parameters of the motors of flexible joints by name: rotor inertia, friction, offset."""
        b = self.unknowns.links
        return {name: float(x) for name, x in zip(self.model.motor_names, self.x[b:], strict=False)}

    @cached_property
    def motor_std(self) -> Mapping[str, float]:
        """Standard deviations of the parameters of motors by name."""
        b = self.unknowns.links
        return {name: float(x) for name, x in zip(self.model.motor_names, self.std[b:], strict=False)}

    @property
    def motor_inertia(self) -> Array:
        """Rotor inertia (flexible joint,) on the joint side, kg m2 or kg; NaN where the robot has none."""
        return np.array([self.motor_parameters.get(f"Ia_{name}", np.nan) for name in self.joints])

    @property
    def motor_inertia_std(self) -> Array:
        """Standard deviations (flexible joint,) of the rotor inertia."""
        return np.array([self.motor_std.get(f"Ia_{name}", np.nan) for name in self.joints])

    @property
    def offsets(self) -> Array:
        """Offsets (flexible joint, run) between the encoders, motor minus link, rad or m."""
        u = self.unknowns
        return np.array([[self.x[u.offset(k, r)] for r in range(u.runs)] for k in range(u.flexible)])

    @property
    def identified_robot(self) -> Robot:
        """The link side with its physically consistent standard parameters; friction of links included."""
        return self.model.links.with_parameters(self.parameters)

    def interval(self, joint: str) -> tuple[float, float]:
        """The 95 % interval of the stiffness of a joint; the upper end may be infinite."""
        k = self.joints.index(joint)
        limit = float(scipy.stats.t.ppf(0.975, self.freedom)) * self.compliance_std[k]
        low, high = self.compliance[k] - limit, self.compliance[k] + limit
        return (1.0 / high if high > 0 else np.inf, 1.0 / low if low > 0 else np.inf)

    def validate(self, recording: Recording) -> FlexibleValidation:
        """Predict torques and link positions of other motion.

        Parameters
        ----------
        recording : Recording
            Runs with torques and, for errors of link positions, link encoders.

        Returns
        -------
        FlexibleValidation
        """
        from dynid.identification.flexible.validation import validate_flexible

        return validate_flexible(self, recording)

    def to_frame(self) -> pl.DataFrame:
        """Springs and motors as a table.

        Returns
        -------
        polars.DataFrame
            One row per flexible joint: joint, stiffness, damping, motor_inertia and their standard deviations, in
            SI units.
        """
        import polars as pl

        names = ("stiffness", "damping", "motor_inertia")
        columns = {x: getattr(self, x) for name in names for x in (name, f"{name}_std")}
        return pl.DataFrame({"joint": self.joints, **columns})

    def summary(self) -> str:
        """Tables of springs, motors and base parameters, as wide as the terminal.

        Returns
        -------
        str
        """
        from dynid.identification.flexible.summary import flexible_text

        return flexible_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data.

        Returns
        -------
        dict
        """
        from dynid.identification.flexible.file import flexible_to_dict

        return flexible_to_dict(self)

    def save(self, path: str | Path) -> None:
        """Write the estimate: all of it as JSON, or stiffness, damping and motors as TOML.

        Parameters
        ----------
        path : path
            A file that ends in .json or .toml; `load_flexible` reads the JSON file.
        """
        from dynid.identification.flexible.file import save_flexible

        save_flexible(self, path)

    def _repr_html_(self) -> str:
        from dynid.identification.flexible.summary import flexible_html

        return flexible_html(self)
