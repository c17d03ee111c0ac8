"""All measurements of a calibration as one vector of residuals, with its exact derivative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Duplicate, InvalidShape, MissingData
from dynid.geometry.kinematics import Geometry, Postures
from dynid.geometry.measurements.measurement import Measurement, Part, Space
from dynid.geometry.unknowns import GeometryModel, Unknown, UnknownKind
from dynid.robot.model import Robot

__all__ = ["Problem", "Rows"]

Array = NDArray[np.float64]

# Change of unknowns, in expected standard deviations, that changes deflections by less than a micrometre.
_SAME_LOAD = 1e-2


@dataclass(frozen=True, eq=False)
class Rows:
    """Linearised residuals of one measurement, in units of their expected standard deviations.

    Attributes
    ----------
    residual : ndarray, shape (N, r)
        Zero where nothing was measured.
    slope : ndarray, shape (N, r, X)
        Its derivative.
    seen : ndarray of bool, shape (N, r)
        What was measured.
    pose : ndarray, shape (N, r, 6)
        Derivative in a motion of the measured frame: translation and rotation about its origin, in axes of the base.
    """

    residual: Array
    slope: Array
    seen: NDArray[np.bool_]
    pose: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Measurements of a robot and all their unknowns.

    Attributes
    ----------
    geometry : Geometry
        The robot with its errors.
    measurements : tuple of Measurement
        What was measured, with starts of their parts.
    errors : ndarray, shape (X,), optional
        Unknowns with which gravity loads the joints; zero by default.
    """

    geometry: Geometry
    measurements: tuple[Measurement, ...]
    errors: Array | None = None

    @classmethod
    def of(
        cls, robot: Robot, measurements: Sequence[Measurement], model: GeometryModel, bodies: Robot | None = None
    ) -> Problem:
        """The problem with starts of sensors found from the robot's file.

        Raises
        ------
        MissingData
            If nothing was measured.
        InvalidShape
            If postures have another number of joints than the robot.
        Duplicate
            If two sensors have one name.
        """
        if not measurements:
            raise MissingData("there is no measurement", "measurements")
        names = [m.name for m in measurements]
        if len(set(names)) != len(names):
            raise Duplicate(f"two sensors are named '{max(names, key=names.count)}'", "measurements")
        for m in measurements:
            if m.q.shape[1] != robot.n:
                raise InvalidShape(
                    f"the postures of {m.name} have {m.q.shape[1]} joints, the robot has {robot.n}: "
                    f"{', '.join(robot.coordinates)}",
                    "q",
                )
        frames = tuple(dict.fromkeys(f for m in measurements for f in m.frames))
        geometry = Geometry(robot, frames, model, bodies)
        nothing = np.zeros(len(geometry.unknowns))
        placed = (geometry.place(geometry.postures(m.q), nothing, len(nothing)) for m in measurements)
        started = tuple(m.started(frames) for m, frames in zip(measurements, placed, strict=True))
        return cls(geometry, started)

    @cached_property
    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """Parts of each measurement."""
        return tuple(m.parts() for m in self.measurements)

    @cached_property
    def unknowns(self) -> tuple[Unknown, ...]:
        """All unknowns: those of joints, then those of sensors."""
        own = [
            Unknown(UnknownKind.SENSOR, f"{m.name}: {p.name}", s, u, float(d))
            for m, parts in zip(self.measurements, self.parts, strict=True)
            for p in parts
            for s, u, d in zip(p.symbols, p.units, p.std, strict=True)
        ]
        return (*self.geometry.unknowns, *own)

    @cached_property
    def places(self) -> tuple[dict[str, tuple[Part, slice]], ...]:
        """Parts of each measurement by name, with where their unknowns stand."""
        out, at = [], len(self.geometry.unknowns)
        for parts in self.parts:
            mine = {}
            for part in parts:
                mine[part.name] = (part, slice(at, at + part.size))
                at += part.size
            out.append(mine)
        return tuple(out)

    @cached_property
    def postures(self) -> tuple[Postures, ...]:
        """Postures of each measurement."""
        return tuple(self.geometry.postures(m.q, self.errors) for m in self.measurements)

    def loaded(self, x: Array) -> Problem:
        """The problem with loads of the robot with errors x; the same where they differ by less than matters."""
        unknowns = self.geometry.unknowns
        if not any(u.kind in (UnknownKind.COMPLIANCE, UnknownKind.BENDING) for u in unknowns):
            return self
        x, expected = x[: len(unknowns)], np.array([u.std for u in unknowns])
        last = np.zeros(len(unknowns)) if self.errors is None else self.errors
        if np.abs((x - last) / expected).max() < _SAME_LOAD:
            return self
        return replace(self, errors=x)

    def space(self, k: int, x: Array) -> Space:
        """Where everything of measurement `k` is; six columns behind the unknowns move its frame."""
        width, m = len(self.unknowns), self.measurements[k]
        frames = self.geometry.place(self.postures[k], x, width + 6)
        frames[m.frames[0]].shift[..., width : width + 3] += np.eye(3)
        frames[m.frames[0]].turn[..., width + 3 :] += np.eye(3)
        return Space(frames, self.places[k], x, width + 6)

    def rows(self, x: Array) -> tuple[Rows, ...]:
        """Residuals of every measurement; what is known about sensors follows in `ties`."""
        return tuple(self._rows(k, m, x) for k, m in enumerate(self.measurements))

    def _rows(self, k: int, m: Measurement, x: Array) -> Rows:
        found = m.residual(self.space(k, x))
        seen = np.isfinite(found.value)
        whole = bool(seen.all())
        residual = (found.value if whole else np.where(seen, found.value, 0.0)) / m.std
        slope = (found.slope if whole else np.where(seen[..., None], found.slope, 0.0)) / m.std[:, None]
        return Rows(residual, slope[..., :-6], seen, slope[..., -6:])

    def ties(self, x: Array) -> tuple[Array, Array]:
        """Residuals (m,) of what is known about sensors, over their standard deviations, and derivatives (m, X)."""
        values, slopes = [np.zeros(0)], [np.zeros((0, len(self.unknowns)))]
        for k, m in enumerate(self.measurements):
            found = m.ties(Space({}, self.places[k], x, len(self.unknowns)))
            if found is not None:
                values.append(found[0].value / found[1])
                slopes.append(found[0].slope / found[1][:, None])
        return np.concatenate(values), np.concatenate(slopes)
