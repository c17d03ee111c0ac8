"""Identified geometry: how far each joint is from where the file has it, and what the measurements say about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.geometry.kinematics import Geometry
from dynid.geometry.unknowns import GeometryModel, Unknown, UnknownKind
from dynid.identification.judgement import Judgement
from dynid.results import Column, Result, SavedResult, Table, about, decimals
from dynid.robot.model import Robot
from dynid.robot.serialize import ROBOT

__all__ = ["GeometryEstimate", "HeldOut", "Sensor"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sensor(Result):
    """What one sensor measured, and how well it is explained."""

    name: str = field(metadata=about("Name of the sensor."))
    kind: str = field(metadata=about("Kind of measurement."))
    postures: int = field(metadata=about("Number of postures."))
    frame: str = field(metadata=about("Link or frame of the robot that was measured."))
    before: float = field(metadata=about("Error with the geometry of the file, root mean square.", unit="m"))
    after: float = field(metadata=about("Error of the fit, root mean square, all postures.", unit="m"))
    noise: float = field(metadata=about("Scatter of the sensor over the expected one."))
    position: float = field(metadata=about("Scatter of the robot's position, zero where not told apart.", unit="m"))
    direction: float = field(metadata=about("Scatter of the robot's direction, zero where not told apart.", unit="rad"))
    set_aside: tuple[int, ...] = field(metadata=about("Postures that chance does not explain, from zero."))


@dataclass(frozen=True, eq=False)
class HeldOut(Result):
    """Errors at postures of places that were left out of the fit."""

    sizes = MappingProxyType({"posture": ("before", "postures")})

    by: str = field(metadata=about('How postures were left out: "places", or "parts" of five.'))
    sensor: tuple[str, ...] = field(metadata=about("Sensor of each posture.", size=("posture",)))
    number: NDArray[np.int64] = field(metadata=about("Number of each posture at its sensor.", size=("posture",)))
    part: tuple[str, ...] = field(metadata=about("Place or part that was left out with it.", size=("posture",)))
    before: Array = field(metadata=about("Error with the geometry of the file.", unit="m", size=("posture",)))
    after: Array = field(metadata=about("Error with the geometry of the others.", unit="m", size=("posture",)))

    @property
    def mean(self) -> tuple[float, float]:
        """Mean error (m) before and after."""
        return float(np.nanmean(self.before)), float(np.nanmean(self.after))

    @property
    def rms(self) -> tuple[float, float]:
        """Root mean square of the error (m) before and after."""
        return float(np.sqrt(np.nanmean(self.before**2))), float(np.sqrt(np.nanmean(self.after**2)))

    @property
    def largest(self) -> tuple[float, float]:
        """Error (m) that 95 % of the postures stay below, before and after."""
        return float(np.nanquantile(self.before, 0.95)), float(np.nanquantile(self.after, 0.95))


@dataclass(frozen=True, eq=False)
class GeometryEstimate(SavedResult):
    """A robot's identified geometry."""

    kind = "geometry"
    sizes = MappingProxyType({"unknown": ("unknowns", "unknowns")})
    tables = (
        Table(
            "geometry",
            "unknown",
            (
                Column(lambda e: [u.name for u in e.unknowns], "unknown", "unknown"),
                Column("values", "value", "value", decimals),
                Column("std", "std", "std", decimals),
                Column(lambda e: [u.unit for u in e.unknowns], "unit", "unit"),
                Column("shown", "shown", "shown", ".0%"),
            ),
        ),
    )

    robot: Robot = field(metadata=about("The robot of the file.", codec=ROBOT))
    frames: tuple[str, ...] = field(metadata=about("Links and frames that were measured."))
    model: GeometryModel = field(metadata=about("What may differ from the file."))
    unknowns: tuple[Unknown, ...] = field(metadata=about("All unknowns: those of joints, then those of sensors."))
    values: Array = field(metadata=about("Their values.", size=("unknown",), finite=True))
    covariance: Array = field(metadata=about("Their covariance.", size=("unknown", "unknown")))
    prior_std: Array = field(metadata=about("Standard deviations expected of them, after learning.", size=("unknown",)))
    sensors: tuple[Sensor, ...] = field(metadata=about("What was measured."))
    rank: int = field(metadata=about("Number of combinations of the joints' unknowns that the measurements show."))
    hidden: tuple[str, ...] = field(
        metadata=about("Unknowns of joints that change no measurement, or act as one of a sensor does.")
    )
    heavy_tails: bool = field(metadata=about("Whether residuals have heavy tails and no posture is set aside."))
    converged: bool = field(metadata=about("Whether the solver ended at a minimum."))
    iterations: int = field(metadata=about("Steps of the solver."))
    held_out: HeldOut | None = field(default=None, metadata=about("Errors at postures left out of the fit."))
    bodies: Robot | None = field(
        default=None, metadata=about("Robot whose bodies load the joints, where it is another one.", codec=ROBOT)
    )
    notes: tuple[str, ...] = field(default=(), metadata=about("What a reader should know."))
    judgement: Judgement | None = field(default=None, metadata=about("The verdict in short, None if not assessed."))

    def summary(self) -> str:
        """The identified geometry as text."""
        return str(attached(self, "summary")(self))

    @cached_property
    def std(self) -> Array:
        """Standard deviations of the values."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def shown(self) -> Array:
        """How much of each unknown the measurements show, from 0 (only what was expected) to 1."""
        return np.clip(1 - (self.std / self.prior_std) ** 2, 0.0, 1.0)

    @property
    def joint_count(self) -> int:
        """Number of unknowns of joints; they are the first."""
        return sum(u.kind is not UnknownKind.SENSOR for u in self.unknowns)

    @property
    def geometry(self) -> Geometry:
        """Kinematics with errors."""
        return Geometry(self.robot, self.frames, self.model, self.bodies)

    def place(self, q: ArrayLike, frame: str | None = None) -> tuple[Array, Array]:
        """Placement of a measured frame with the identified geometry, and its covariance.

        Parameters
        ----------
        q : array_like, shape (N, n)
            Positions of the independent joints (rad or m).
        frame : str, optional
            The frame; the first measured one by default.

        Returns
        -------
        placements : ndarray, shape (N, 4, 4)
            In the base of the robot.
        covariance : ndarray, shape (N, 6, 6)
            Of the position and of the direction in axes of the base, gauge freedoms included.
        """
        width, x = self.joint_count, self.values[: self.joint_count]
        geometry, q = self.geometry, np.atleast_2d(np.asarray(q, dtype=float))
        found = geometry.place(geometry.postures(q, x), x, width)[frame or self.frames[0]]
        out = np.tile(np.eye(4), (len(q), 1, 1))
        out[:, :3, :3], out[:, :3, 3] = found.rotation, found.origin
        slope = np.concatenate([found.shift, found.turn], axis=1)
        return out, slope @ self.covariance[:width, :width] @ np.swapaxes(slope, 1, 2)

    def tool_std(self, q: ArrayLike, frame: str | None = None) -> Array:
        """Standard deviation (N,) of the tool's position (m) over postures, but for where the base stands.

        A common motion of all positions, which is a motion of the base, is left out: sensors that do not see the base
        cannot show it, and whoever sets the robot up measures it.

        Parameters
        ----------
        q : array_like, shape (N, n)
            Postures over the workspace, three or more.
        frame : str, optional
            The frame; the first measured one by default.
        """
        width, x = self.joint_count, self.values[: self.joint_count]
        geometry, q = self.geometry, np.atleast_2d(np.asarray(q, dtype=float))
        found = geometry.place(geometry.postures(q, x), x, width)[frame or self.frames[0]]
        return np.sqrt(aligned_variance(found.origin, found.shift, self.covariance[:width, :width]))


def rigid_columns(points: Array) -> Array:
    """Motions (3 N, 6) of points (N, 3) with a rigid body."""
    x, y, z = points.T
    out = np.zeros((len(points), 3, 6))
    out[:, :, :3] = np.eye(3)
    out[:, 0, 4], out[:, 0, 5], out[:, 1, 3] = z, -y, -z
    out[:, 1, 5], out[:, 2, 3], out[:, 2, 4] = x, y, -x
    return out.reshape(-1, 6)


def aligned_variance(points: Array, slope: Array, covariance: Array) -> Array:
    """Variance (N,) of the distance of points (N, 3) with derivatives (N, 3, K), without their common rigid motion."""
    basis = np.linalg.qr(rigid_columns(points - points.mean(0)))[0]
    flat = slope.reshape(len(basis), -1)
    left = (flat - basis @ (basis.T @ flat)).reshape(slope.shape)
    return np.asarray(np.maximum(np.einsum("nik,kl,nil->n", left, covariance, left, optimize=True), 0.0))
