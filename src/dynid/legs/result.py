"""`LegsEstimate`: what was identified of a robot on its legs, its trunk, and what happened at its feet.

The torque of a joint can be predicted without contact forces only while no foot beyond it touches. What can always be
checked is the balance of the whole robot: the forces of the feet follow from the torques of the standing legs, and
together with weight and inertia they must cancel, in six equations per sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import NotIdentifiable
from dynid.feasibility.constraints import link_scales
from dynid.identification.estimate import Estimate
from dynid.legs.contacts import Contact, shows, total_mass_row
from dynid.legs.fold import sample_rows
from dynid.legs.runs import LegBase, in_mode, longest_stretch, prepare_legs, used_modes
from dynid.markup import HtmlFrame, html_table
from dynid.recording.recording import Recording
from dynid.recording.run import PARTS
from dynid.robot.model import Robot
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

    from dynid.legs.runs import LegNoise
    from dynid.recording.recording import Recording

__all__ = ["LegsEstimate", "LegsValidation", "Trunk", "trunk_of", "validate_legs"]

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
            raise NotIdentifiable("the total mass is not identifiable: every foot stands all the time")
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
        return validate_legs(self, recording)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What happened at the feet and with the inertial unit, in sentences."""
        lines = []
        for masks, what, so in (
            (
                self.contradicted,
                "the schedule of '{}' contradicts its torques at {} of {} samples",
                "the torques decide",
            ),
            (self.slips, "'{}' slips at {} of {} samples", "its velocity is not used there"),
        ):
            for run, foot, mask in ((r, f, m) for r, feet in masks.items() for f, m in feet.items()):
                if mask.mean() > _MENTIONED:
                    first, last = longest_stretch(mask)
                    where = what.format(foot, int(mask.sum()), mask.size)
                    lines.append(f"run '{run}': {where}, longest from sample {first} to {last}; {so}")
        if self.rejected:
            lines.append(f"{self.rejected} of {self.samples} samples are left out: their residual is not noise")
        return tuple(lines)

    def lines(self) -> list[str]:
        """The result in a few lines."""
        out = []
        if shows(self.estimate.base, total_mass_row(self.robot)):
            mass, std = self.total_mass
            given = self.estimate.known_masses.words()
            out.append(f"total mass {mass:.4g} kg, standard deviation {std:.2g} kg{', ' if given else ''}{given}")
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


# An entry of a contact Jacobian below this does not load the joint (m).
_UNLOADED = 1e-9


@dataclass(frozen=True, eq=False)
class LegsValidation(HtmlFrame):
    """Errors on a recording.

    Attributes
    ----------
    joints : tuple of str
        The joints.
    units : tuple of str
        Unit of each joint's torque.
    rmse, relative : ndarray (n,)
        Root mean square torque error while no foot beyond the joint touches, and relative to that of the torque; NaN
        for joints that always carry load.
    samples : ndarray of int (n,)
        How many samples these are.
    balance : ndarray (6,)
        Root mean square error of the balance of forces (N) and moments (N m) of the whole robot, in base axes.
    weight : float
        Weight of the robot in N, for comparison.
    """

    joints: tuple[str, ...]
    units: tuple[str, ...]
    rmse: Array
    relative: Array
    samples: NDArray[np.int_]
    balance: Array
    weight: float

    def lines(self, unseen: bool = True) -> list[str]:
        """Errors per joint and of the balance, on motion that was not used for the fit or on that of the fit."""
        size = max(map(len, (*self.joints, *(f"balance {p}" for p in PARTS["wrench"]))))
        where = "on motion that was not used for the fit" if unseen else "of the fit itself"
        out = [f"errors {where}, torques of legs in the air and balance of the whole robot:"]
        for name, unit, rmse, relative in zip(self.joints, self.units, self.rmse, self.relative, strict=True):
            text = f"{rmse:10.4g} {unit:<4} {100 * relative:7.2f} %" if rmse == rmse else "always carries load"
            out.append(f"  {name:<{size}}  {text}")
        for part, error in zip(PARTS["wrench"], self.balance, strict=True):
            label = f"balance {part}"
            share = f" {100 * error / self.weight:7.2f} % of the weight" if part.startswith("f") else ""
            out.append(f"  {label:<{size}}  {error:10.4g} {'N' if share else 'N m':<4}{share}")
        return out

    def to_frame(self) -> pl.DataFrame:
        """The errors as a table.

        Returns
        -------
        polars.DataFrame
            One row per joint: joint, unit, samples, rmse and relative; NaN for joints that always carry load.
        """
        import polars as pl

        columns = {"samples": self.samples, "rmse": self.rmse, "relative": self.relative}
        return pl.DataFrame({"joint": self.joints, "unit": self.units, **columns})

    def summary(self) -> str:
        """Tables of the errors.

        Returns
        -------
        str
        """
        table = table_of("legs in the air", "joint", "samples", "RMSE", "unit", "relative %", text=("joint", "unit"))
        for name, unit, rmse, relative, count in zip(
            self.joints, self.units, self.rmse, self.relative, self.samples, strict=True
        ):
            table.add_row(name, str(count), f"{rmse:.4g}", unit, f"{100 * relative:.2f}")
        return rendered(table, *self.lines()[-6:])

    def to_dict(self) -> dict[str, Any]:
        """Values ready for JSON.

        Returns
        -------
        dict
        """
        return {
            "joints": list(self.joints),
            "rmse": [None if x != x else float(x) for x in self.rmse],
            "relative": [None if x != x else float(x) for x in self.relative],
            "samples": self.samples.tolist(),
            "balance": self.balance.tolist(),
            "weight": self.weight,
        }


def validate_legs(found: LegsEstimate, recording: Recording) -> LegsValidation:
    """Errors of an estimate on a recording, see `LegsEstimate.validate`."""
    robot = found.identified_robot
    runs = prepare_legs(
        robot,
        recording,
        found.contacts,
        imu=found.imu,
        signals=found.estimate.signals,
        foot_std=found.foot_std,
        every=None,
        foot_forces=found.foot_forces,
    )
    kept, n = list(found.estimate.base.kept), robot.n
    error, torque, count = np.zeros(n), np.zeros(n), np.zeros(n, dtype=int)
    balance, total = np.zeros(6), 0
    for run in runs:
        for mode in used_modes([run], found.contacts):
            mine = run.used[in_mode(run, mode, found.contacts)[run.used]]
            if not len(mine):
                continue
            J, Y, y, _ = sample_rows(robot, run, mine, mode)
            rest = y - Y[:, :, kept] @ found.estimate.beta
            free = np.abs(J[:, :, 6:]).max(axis=1, initial=0.0) < _UNLOADED
            error += np.sum(rest[:, 6:] ** 2 * free, axis=0)
            torque += np.sum(y[:, 6:] ** 2 * free, axis=0)
            count += free.sum(axis=0)
            legs = np.linalg.pinv(np.swapaxes(J[:, :, 6:], 1, 2), rcond=1e-3)
            force = np.einsum("nij,nj->ni", legs, rest[:, 6:])
            left = rest[:, :6] - np.einsum("nij,ni->nj", J[:, :, :6], force)
            balance += np.sum(left**2, axis=0)
            total += len(mine)
    with np.errstate(invalid="ignore", divide="ignore"):
        rmse, relative = np.sqrt(error / count), np.sqrt(error / torque)
    mass = float(sum(v for v, p in zip(robot.parameters, robot.layout, strict=True) if p.inertial and p.symbol == "m"))
    return LegsValidation(
        joints=robot.coordinates,
        units=tuple(robot.channel_units[c] for c in robot.coordinates),
        rmse=rmse,
        relative=relative,
        samples=count,
        balance=np.sqrt(balance / max(total, 1)),
        weight=mass * float(np.linalg.norm(robot.gravity)),
    )
