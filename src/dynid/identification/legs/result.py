"""`LegsEstimate`: what was identified of a robot on its legs, its trunk, and what happened at its feet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.feasibility.constraints import link_scales
from dynid.identification.estimate import Estimate
from dynid.identification.legs.contacts import Contact
from dynid.identification.legs.imu_base import LegBase, longest_stretch
from dynid.identification.legs.structure import shows, total_mass_row
from dynid.markup import html_table
from dynid.robot.model import Robot
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

    from dynid.identification.legs.runs import LegNoise
    from dynid.identification.legs.validation import LegsValidation
    from dynid.recording.recording import Recording

__all__ = ["LegsEstimate", "Trunk", "trunk_of"]

Array = NDArray[np.float64]
Masks = Mapping[str, Mapping[str, NDArray[np.bool_]]]

# Standard deviation of the a-priori parameters of a link of a leg, in shares of its mass and size.
_LEGS_SHARE = 0.05
# Contradictions and slips of fewer samples than this share happen whenever a foot is set down.
_MENTIONED = 0.01


@dataclass(frozen=True, eq=False)
class Trunk:
    """Mass and centre of mass of the trunk, if the a-priori parameters of the legs are right within 5 %.

    Attributes
    ----------
    mass, mass_std : float
        Mass in kg and its standard deviation.
    center, center_std : ndarray (3,)
        Centre of mass in the frame of the trunk, m, and its standard deviation.
    """

    mass: float
    mass_std: float
    center: Array
    center_std: Array


@dataclass(frozen=True, eq=False)
class LegsEstimate:
    """Identified parameters of a robot on its legs.

    Attributes
    ----------
    estimate : Estimate
        Base parameters with their covariance; its channels are the contact modes, and its rows are whitened, in units
        of their noise.
    contacts : tuple of Contact
        The feet.
    imu : str or None
        Frame of the inertial unit; None for the base link.
    noise : LegNoise
        Noise of torques and accelerations after the low-pass.
    bases : tuple of LegBase
        Motion of the base and biases of the inertial unit, per run.
    contradicted : mapping of str to mapping of str to ndarray of bool (N,)
        Per run and foot, samples at which the given schedule contradicts the torques.
    slips : mapping of str to mapping of str to ndarray of bool (N,)
        Per run and foot, samples at which a foot that stands moves.
    rejected : int
        Samples that are left out because their residual is too large for noise.
    samples : int
        Samples that gave rows, before outliers were left out.
    foot_std : float
        Standard deviation (m/s) of the velocity of a foot at rest that was assumed.
    foot_forces : bool
        Whether the forces of the feet were measured.
    """

    estimate: Estimate
    contacts: tuple[Contact, ...]
    imu: str | None
    noise: LegNoise
    bases: tuple[LegBase, ...]
    contradicted: Masks
    slips: Masks
    rejected: int
    samples: int
    foot_std: float
    foot_forces: bool

    @property
    def robot(self) -> Robot:
        """The robot with its a-priori parameters."""
        return self.estimate.robot

    @property
    def identified_robot(self) -> Robot:
        """The robot with the identified standard parameters."""
        return self.estimate.identified_robot

    @cached_property
    def total_mass(self) -> tuple[float, float]:
        """Mass of the whole robot in kg and its standard deviation; a DataError if the contacts hide it."""
        row = total_mass_row(self.robot)
        base = self.estimate.base
        if not shows(base, row):
            raise DataError("the total mass is not identifiable: every foot stands all the time")
        weights = np.linalg.lstsq(base.matrix.T, row, rcond=None)[0]
        variance = float(weights @ self.estimate.covariance @ weights)
        return float(weights @ self.estimate.beta), float(np.sqrt(max(variance, 0.0)))

    @cached_property
    def trunk(self) -> Trunk:
        """Mass and centre of mass of the trunk.

        Masses of the legs are identifiable only in combinations, some of them with the trunk. What the data leave open
        is taken from the a-priori legs, whose links are assumed to be right within 5 % of their mass and size; the
        trunk and all drives are free.
        """
        return trunk_of(self.estimate, _LEGS_SHARE)

    def validate(self, recording: Recording) -> LegsValidation:
        """Errors on a recording: torques of legs in the air, and the balance of forces and moments of all bodies.

        Parameters
        ----------
        recording : Recording
            Runs with torques and inertial unit, if possible not those that were identified from.

        Returns
        -------
        LegsValidation
        """
        from dynid.identification.legs.validation import validate_legs

        return validate_legs(self, recording)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What happened at the feet and with the inertial unit, in sentences."""
        lines = []
        for run, feet in self.contradicted.items():
            for foot, mask in feet.items():
                if mask.mean() > _MENTIONED:
                    first, last = longest_stretch(mask)
                    lines.append(
                        f"run '{run}': the schedule of '{foot}' contradicts its torques at {int(mask.sum())} of "
                        f"{mask.size} samples, longest from sample {first} to {last}; the torques decide"
                    )
        for run, feet in self.slips.items():
            for foot, mask in feet.items():
                if mask.mean() > _MENTIONED:
                    first, last = longest_stretch(mask)
                    lines.append(
                        f"run '{run}': '{foot}' slips at {int(mask.sum())} samples of its stance, longest from sample "
                        f"{first} to {last}; its velocity is not used there"
                    )
        if self.rejected:
            lines.append(f"{self.rejected} of {self.samples} samples are left out: their residual is not noise")
        return tuple(lines)

    def lines(self) -> list[str]:
        """The result in a few lines."""
        out = []
        if shows(self.estimate.base, total_mass_row(self.robot)):
            mass, std = self.total_mass
            out.append(f"total mass {mass:.4g} kg, standard deviation {std:.2g} kg")
        trunk = self.trunk
        where = ", ".join(f"{1e3 * x:.1f}" for x in trunk.center)
        stds = ", ".join(f"{1e3 * x:.1f}" for x in trunk.center_std)
        out.append(
            f"trunk '{self.robot.links[0].name}' {trunk.mass:.4g} kg (standard deviation {trunk.mass_std:.2g}), centre "
            f"of mass at {where} mm ({stds}), if the a-priori legs are right within {100 * _LEGS_SHARE:.0f} %"
        )
        for base in self.bases:
            accelerometer = ", ".join(f"{x:.3f}" for x in base.bias[:3])
            gyroscope = ", ".join(f"{x:.4f}" for x in base.bias[3:])
            out.append(f"bias of the inertial unit: {accelerometer} m/s2, {gyroscope} rad/s")
        return [*out, *self.remarks]

    def to_frame(self) -> pl.DataFrame:
        """The base parameters as a table, as `Estimate.to_frame`.

        Returns
        -------
        polars.DataFrame
            One row per base parameter.
        """
        return self.estimate.to_frame()

    def summary(self) -> str:
        """Base parameters with their standard deviations, rows per contact mode, and the result in a few lines.

        Returns
        -------
        str
        """
        base, found = self.estimate.base, self.estimate
        title = f"{self.robot.name}: {base.count} base parameters by {found.method}"
        table = table_of(title, "combination", "unit", "a priori", "estimate", "sigma", text=("combination", "unit"))
        for row in zip(base.expressions, base.units, base.values(), found.beta, found.std, strict=True):
            table.add_row(row[0], row[1], *(f"{x:.5g}" for x in row[2:4]), f"{row[4]:.2g}")
        modes = table_of("contact modes", "mode", "rows", "residual", text=("mode",))
        for name, count, rms in zip(base.channels, found.rows, found.rms, strict=True):
            modes.add_row(name, str(count), f"{rms:.3g}")
        return rendered(table, modes, *self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Values ready for JSON.

        Returns
        -------
        dict
        """
        found, trunk = self.estimate, self.trunk
        return {
            "robot": self.robot.name,
            "method": found.method,
            "names": list(found.base.names),
            "expressions": list(found.base.expressions),
            "beta": found.beta.tolist(),
            "std": found.std.tolist(),
            "parameters": dict(zip(self.robot.parameter_names, found.parameters.tolist(), strict=True)),
            "modes": dict(zip(found.base.channels, found.rows, strict=True)),
            "condition_number": found.condition_number,
            "trunk": {
                "mass": trunk.mass,
                "mass_std": trunk.mass_std,
                "center": trunk.center.tolist(),
                "center_std": trunk.center_std.tolist(),
            },
            "total_mass": list(self.total_mass) if shows(found.base, total_mass_row(self.robot)) else None,
            "bias": [base.bias.tolist() for base in self.bases],
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        return f"LegsEstimate('{self.robot.name}', {self.estimate.method}, {self.estimate.beta.size} base parameters)"

    def _repr_html_(self) -> str:
        base, found = self.estimate.base, self.estimate
        rows = [
            (e, u, f"{p:.5g}", f"{x:.5g}", f"{s:.2g}")
            for e, u, p, x, s in zip(base.expressions, base.units, base.values(), found.beta, found.std, strict=True)
        ]
        return html_table(repr(self), ("combination", "unit", "a priori", "estimate", "sigma"), rows)


def trunk_of(estimate: Estimate, legs_share: float) -> Trunk:
    """The trunk if the a-priori links of the legs are right within a share of their mass and size."""
    base, robot = estimate.base, estimate.robot
    size = np.full(len(robot.layout), np.inf)
    scales = link_scales(robot)
    for i, parameter in enumerate(robot.layout):
        if parameter.inertial and parameter.owner != robot.links[0].name:
            mass, length = scales[parameter.owner]
            size[i] = legs_share * mass * length ** {"m": 0, "mx": 1, "my": 1, "mz": 1}.get(parameter.symbol, 2)
    std = np.sqrt(np.maximum(np.diag(estimate.covariance), 0.0))
    unit = np.where(std > 0, std, np.abs(estimate.beta) + 1e-9)
    scaled = estimate.covariance / np.outer(unit, unit) + 1e-9 * np.eye(len(unit))
    rows = np.linalg.inv(np.linalg.cholesky(scaled)) / unit
    stack = np.vstack([rows @ base.matrix, np.diag(1.0 / size)])
    right = np.concatenate([rows @ estimate.beta, robot.parameters / size])
    norms = np.linalg.norm(stack, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    inverse = np.linalg.pinv(stack / norms) / norms[:, None]
    pi, covariance = inverse @ right, (inverse @ inverse.T)[:4, :4]
    mass, center = float(pi[0]), pi[1:4] / pi[0]
    slopes = np.hstack([-center[:, None] / mass, np.eye(3) / mass])
    return Trunk(
        mass,
        float(np.sqrt(covariance[0, 0])),
        center,
        np.sqrt(np.maximum(np.diag(slopes @ covariance @ slopes.T), 0.0)),
    )
