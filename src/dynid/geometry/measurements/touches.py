"""A tip of the robot that touches planes, lines or edges, and points, known or not.

    plane:  n . (t - a) - d = 0,    line:  E (t - a) = 0,    point:  t - a = 0,    with the tip  t = p_F(q) + R_F(q) c

in the base of the robot. A plane moves by two small turns of its normal n and by its offset d, a line by two turns and
by two shifts across it (the rows of E): as many numbers as each has freedoms, around a start from the robot's file.

Source: Ikits and Hollerbach, Kinematic calibration using a plane constraint (1997); Hollerbach, Khalil and Gautier,
Model Identification, Springer Handbook of Robotics (2016), chapter 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, TooFew, UnknownName, did_you_mean, named, one_of
from dynid.geometry.measurements.measurement import Labels, Measurement, Part, Space, free_point, labels, three
from dynid.geometry.tangents import Placed, Tangent, components, cross, dot, nearby, perpendiculars, unit

__all__ = ["Surface", "Touches"]

Array = NDArray[np.float64]
Kind = Literal["plane", "line", "point"]

# Residuals of each kind, and touches that a start of an unknown one needs.
_SIZES = {"plane": 1, "line": 2, "point": 3}
_NEEDED = {"plane": 3, "line": 2, "point": 1}
# Steps of the search for a start, and how far the robot's file is off then (m).
_STEPS, _FILE = 100, 2e-3


@dataclass(frozen=True, eq=False)
class Surface:
    """What a tip touches.

    Attributes
    ----------
    kind : {"plane", "line", "point"}
        What it is.
    position : array_like, shape (3,), optional
        A point of it in the robot's base (m); unknown if not given.
    direction : array_like, shape (3,), optional
        Normal of the plane, or direction of the line, of any length; unknown if not given.
    position_std : float
        Standard deviation of a given position (m), across what it is a point of.
    direction_std : float
        Standard deviation of a given direction about each axis across (rad).
    """

    kind: Kind
    position: Array | None = None
    direction: Array | None = None
    position_std: float = 1e-4
    direction_std: float = 1e-3

    def __post_init__(self) -> None:
        if self.kind not in _SIZES:
            raise UnknownName(
                f"a surface is a {one_of(_SIZES)}, not '{self.kind}'{did_you_mean(self.kind, _SIZES)}", "kind"
            )
        for name in ("position_std", "direction_std"):
            if not getattr(self, name) > 0:
                raise InvalidValue(f"{named(name)} must be positive, got {getattr(self, name)}")
        if self.position is not None:
            object.__setattr__(self, "position", three(self.position, "position"))
        if self.direction is not None:
            direction = three(self.direction, "direction")
            if not np.linalg.norm(direction) > 0:
                raise InvalidValue(f"{named('direction')} of a {self.kind} has no length")
            object.__setattr__(self, "direction", direction / np.linalg.norm(direction))

    def part(self, name: str, place: str) -> Part:
        """Its unknowns."""
        at = np.inf if self.position is None else self.position_std
        turn = np.inf if self.direction is None else self.direction_std
        if self.kind == "point":
            return free_point(name, (0, 0, 0), at, place)
        shifts = ("offset",) if self.kind == "plane" else ("offset1", "offset2")
        count = len(shifts)
        units = ("rad",) * 2 + ("m",) * count
        std = np.array([turn, turn, *[at] * count])
        return Part(name, np.zeros(2 + count), std, ("turn1", "turn2", *shifts), units, place)

    def fitted(self, points: Array) -> Surface:
        """With position and direction through points (N, 3), where they are not given."""
        position = points.mean(0) if self.position is None else self.position
        direction = self.direction
        if direction is None and self.kind != "point":
            axes = np.linalg.svd(points - position, full_matrices=True)[2]
            direction = axes[2] if self.kind == "plane" else axes[0]
        return replace(self, position=position, direction=direction)

    def across(self) -> Array:
        """Directions (r, 3) in which a tip that touches it cannot move."""
        if self.kind == "point":
            return np.eye(3)
        assert self.direction is not None
        return self.direction[None] if self.kind == "plane" else perpendiculars(self.direction)

    def away(self, tip: Tangent, x: Tangent) -> list[Tangent]:
        """Residuals of tips (n, 3), moved by its unknowns x (1, k)."""
        assert self.position is not None
        offset = tip - self.position
        if self.kind == "point":
            return [offset[:, k] - x[:, k] for k in range(3)]
        assert self.direction is not None
        direction = nearby(self.direction, x[:, :2])
        if self.kind == "plane":
            return [dot(offset, direction) - x[:, 2]]
        axes = perpendiculars(self.direction)
        # Two axes across the turned line.
        first = unit(cross(direction, Tangent(axes[1:], np.zeros((1, 3, x.slope.shape[-1])))))
        return [dot(offset, e) - x[:, 2 + k] for k, e in enumerate((first, cross(direction, first)))]


@dataclass(frozen=True, eq=False)
class Touches(Measurement):
    """A tip of the robot that touches surfaces.

    Attributes
    ----------
    surface : sequence of str
        What is touched at each posture.
    surfaces : mapping of str to Surface or str
        Each of them; a kind alone, such as "plane", stands for an unknown one.
    tip : ndarray, shape (3,)
        Tip in the frame (m).
    tip_std : float
        Standard deviation of each of its coordinates (m).
    noise : float
        Standard deviation of a touch in each direction (m).
    starts : mapping
        Start of each surface; found by itself.
    """

    surface: Labels = ()  # type: ignore[assignment]
    surfaces: Mapping[str, Surface | Kind] = ()  # type: ignore[assignment]
    tip: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    tip_std: float = 5e-3
    noise: float = 2e-4
    starts: Mapping[str, Surface] = ()  # type: ignore[assignment]

    kind: ClassVar[str] = "touches"
    about: ClassVar[str] = "a tip of the robot touches planes, lines, edges or points, known or not"
    rows: ClassVar[tuple[str, ...]] = ("surface",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "surface", labels(self.surface, len(self.q), "surface"))
        object.__setattr__(self, "tip", three(self.tip, "tip"))
        known = {n: s if isinstance(s, Surface) else Surface(s) for n, s in dict(self.surfaces).items()}
        object.__setattr__(self, "surfaces", known)
        object.__setattr__(self, "starts", dict(self.starts))
        for name in self.touched:
            if name not in known:
                raise UnknownName(
                    f"a posture touches '{name}', which is no surface{did_you_mean(name, known)}", "surfaces"
                )

    @property
    def touched(self) -> list[str]:
        """Names of the surfaces that a posture touches."""
        return sorted(set(self.surface.tolist()))

    @property
    def std(self) -> Array:
        """The noise of a touch in three directions."""
        return np.full(3, self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The tip, and every surface that is touched."""
        found = [free_point("tip", self.tip, self.tip_std)]
        for name in self.touched:
            found.append(self._given(name).part(name, str(self.place[self.surface == name][0])))
        return tuple(found)

    def residual(self, space: Space) -> Tangent:
        """Distance to the plane, two across the line, or three from the point; the others are not numbers."""
        tip = space.frames[self.frame].point(space.values("tip"))
        value, slope = np.full(tip.value.shape, np.nan), np.zeros(tip.slope.shape)
        for name in self.touched:
            mine = np.flatnonzero(self.surface == name)
            away = components(self.starts[name].away(tip[mine], space.values(name)))
            size = away.value.shape[1]
            value[mine, :size], slope[mine, :size] = away.value, away.slope
        return Tangent(value, slope)

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Surfaces, and a tip, that are unknown, found in turn."""
        frame, tip = frames[self.frame], self.tip
        mine = {name: np.flatnonzero(self.surface == name) for name in self.touched}
        for name, rows in mine.items():
            kind = self._given(name).kind
            if self._given(name).direction is None and len(rows) < _NEEDED[kind]:
                raise TooFew(
                    f"{kind} '{name}' is touched in {len(rows)} postures: an unknown one needs {_NEEDED[kind]}"
                )
        starts: dict[str, Surface] = {}
        for _ in range(_STEPS):
            at = frame.point(tip).value
            starts = {n: self._given(n).fitted(at[rows]) for n, rows in mine.items()}
            new = self._tip(frame, mine, starts)
            close = np.abs(new - tip).max() < 1e-3 * self.noise
            tip = new
            if close:
                break
        # What is not known at all starts where it was found, what is known to a standard deviation where it is given.
        moved = tip if np.isinf(self.tip_std) else self.tip
        at = frame.point(moved).value
        return replace(self, tip=moved, starts={n: self._given(n).fitted(at[rows]) for n, rows in mine.items()})

    def _given(self, name: str) -> Surface:
        found = self.surfaces[name]
        assert isinstance(found, Surface)
        return found

    def _tip(self, frame: Placed, mine: Mapping[str, NDArray[np.intp]], starts: Mapping[str, Surface]) -> Array:
        """The tip that fits surfaces of these directions best, whatever their offsets."""
        blocks, right = [np.eye(3) * _FILE / self.tip_std], [self.tip * _FILE / self.tip_std]
        for name, rows in mine.items():
            axes, at = starts[name].across(), np.asarray(starts[name].position)
            column = axes @ frame.rotation[rows]
            value = (at - frame.origin[rows]) @ axes.T
            if self._given(name).position is None:
                column, value = column - column.mean(0), (frame.origin[rows].mean(0) - frame.origin[rows]) @ axes.T
            blocks.append(column.reshape(-1, 3))
            right.append(value.ravel())
        return np.asarray(np.linalg.lstsq(np.concatenate(blocks), np.concatenate(right), rcond=None)[0], dtype=float)
