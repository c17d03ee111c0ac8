"""What every measurement is: postures, its own unknowns, and residuals with exact derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, NotApplicable, NotFinite, TooFew, named
from dynid.geometry.tangents import Placed, Tangent, left_jacobian, rotations

__all__ = ["Measurement", "Part", "Space", "free_placement", "free_point", "labels", "placement_of", "proper", "three"]

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

_LETTERS = ("x", "y", "z")
_TURNS = ("rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class Part:
    """Something of a sensor that is not known exactly: a point, a placement, a number.

    Attributes
    ----------
    name : str
        What it is: "marker 2", "camera".
    start : ndarray
        Where it is expected: values (k,), or a placement (4, 4).
    std : ndarray, shape (k,) or (6,)
        Standard deviation of the expectation; infinite where nothing is known.
    symbols, units : tuple of str
        Of each entry; a placement has three translations and three rotations.
    place : str
        Place at which it is; "" for what goes along to every place.
    """

    name: str
    start: Array
    std: Array
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    place: str = ""

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.std)


def free_point(name: str, start: ArrayLike = (0, 0, 0), std: float = np.inf, place: str = "") -> Part:
    """A point (m) that is known to a standard deviation in each direction."""
    return Part(name, np.array(start, dtype=float), np.full(3, std), _LETTERS, ("m",) * 3, place)


def free_placement(name: str, start: ArrayLike, std: ArrayLike = np.inf, place: str = "") -> Part:
    """A placement (4, 4) that is known to standard deviations of position (m) and direction (rad)."""
    spread = np.broadcast_to(np.asarray(std, dtype=float), (6,)).copy()
    units = ("m",) * 3 + ("rad",) * 3
    return Part(name, np.array(start, dtype=float), spread, _LETTERS + _TURNS, units, place)


class Space:
    """Where everything is for one set of unknowns: frames of the robot, and the parts of one measurement.

    Parameters
    ----------
    frames : mapping of str to Placed
        Measured frames in the base of the robot.
    parts : mapping of str to (Part, slice)
        The parts and where their unknowns stand in x.
    x : ndarray, shape (X,)
        All unknowns.
    width : int
        Number of derivatives, those in unknowns first.
    """

    def __init__(
        self, frames: Mapping[str, Placed], parts: Mapping[str, tuple[Part, slice]], x: Array, width: int
    ) -> None:
        self.frames, self._parts, self._x, self._width = frames, parts, x, width

    def values(self, name: str) -> Tangent:
        """Value (1, k) of a part."""
        part, where = self._parts[name]
        slope = np.zeros((1, part.size, self._width))
        slope[0, :, where] = np.eye(part.size)
        return Tangent((part.start + self._x[where])[None], slope)

    def placement(self, name: str) -> Placed:
        """Placement (1, ...) of a part."""
        part, where = self._parts[name]
        x = self._x[where]
        turn, shift = np.zeros((2, 1, 3, self._width))
        columns = np.arange(len(self._x))[where]
        shift[0][:, columns[:3]] = np.eye(3)
        turn[0][:, columns[3:]] = left_jacobian(x[3:])
        return Placed((rotations(x[3:]) @ part.start[:3, :3])[None], (part.start[:3, 3] + x[:3])[None], turn, shift)


@dataclass(frozen=True, eq=False)
class Measurement(ABC):
    """Measurements of one sensor at N postures.

    Attributes
    ----------
    q : ndarray, shape (N, n)
        Positions of the robot's independent joints as their encoders read (rad or m).
    frame : str
        Link or frame of the robot that is measured.
    name : str
        Name of the sensor.
    place : sequence of str
        Where in the workspace each posture belongs; whole places are left out in validation. "" if not told.
    """

    q: Array
    frame: str = ""
    name: str = ""
    place: Labels = ()  # type: ignore[assignment]

    kind: ClassVar[str] = ""
    about: ClassVar[str] = ""
    # Fields with one entry per posture.
    rows: ClassVar[tuple[str, ...]] = ()
    # Whether the robot touches something at every posture: its residual is zero but for errors.
    contact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        q = np.array(self.q, dtype=float)
        if q.ndim != 2:
            raise InvalidShape(f"joint positions must be a table of postures and joints, got shape {q.shape}", "q")
        if not len(q):
            raise TooFew("there is no posture", "q")
        if not np.isfinite(q).all():
            raise NotFinite(f"posture {int(np.argmin(np.isfinite(q).all(1)))} has a joint position that is no number")
        for name in (f.name for f in fields(self) if f.name.endswith(("noise", "_std"))):
            value = getattr(self, name)
            sizes = list(value.values()) if isinstance(value, Mapping) else value
            if value is not None and not np.all(np.asarray(sizes, dtype=float) > 0):
                raise InvalidValue(f"{named(name)} must be positive, got {value}")
        object.__setattr__(self, "q", q)
        object.__setattr__(self, "name", self.name or self.kind)
        object.__setattr__(self, "place", labels(self.place if len(self.place) else [""] * len(q), len(q), "place"))

    @property
    def frames(self) -> tuple[str, ...]:
        """Frames of the robot that the residual needs."""
        return (self.frame,)

    @property
    @abstractmethod
    def std(self) -> Array:
        """Standard deviation (r,) that is expected of each residual of a posture; its common factor is estimated."""

    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """What of the sensor is not known exactly."""

    @abstractmethod
    def residual(self, space: Space) -> Tangent:
        """Residuals (N, r): predicted less measured, not a number where nothing was measured."""

    def point(self, space: Space) -> Tangent:
        """The point (N, 3) of the robot that is measured, in its base (m): the origin of the frame."""
        return space.frames[self.frame].point(np.zeros(3))

    def expected(self, space: Space) -> Self:
        """The measurement with what would be measured there without any error: postures are planned with it.

        Raises
        ------
        NotApplicable
            For kinds of sensors that do not say it.
        """
        raise NotApplicable(f"postures cannot be planned for sensors of the kind {self.kind}", "measurements")

    def ties(self, space: Space) -> tuple[Tangent, Array] | None:
        """Residuals that belong to no posture, such as a known distance, and their standard deviations."""
        return None

    @abstractmethod
    def started(self, frames: Mapping[str, Placed]) -> Self:
        """The measurement with starts of its parts from frames as the robot's file places them."""

    def distances(self, residual: Array) -> Array:
        """Distance (N,) between measured and predicted points (m), not a number where nothing was measured."""
        return np.asarray(np.sqrt(np.where(np.isfinite(residual).any(1), np.nansum(residual**2, axis=1), np.nan)))

    def some(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """The measurement at some of its postures."""
        names = {"q", "place", *self.rows}
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name in names})

    def at(self, q: Array, like: NDArray[np.intp]) -> Self:
        """The measurement at other postures, each with the labels of the posture `like` of this one."""
        return replace(self.some(like), q=q)


def placement_of(given: ArrayLike | None, what: str) -> Array | None:
    """A placement (4, 4) that may be given.

    Raises
    ------
    InvalidShape, InvalidValue
        If it is no placement.
    """
    if given is None:
        return None
    out = np.array(given, dtype=float)
    if out.shape != (4, 4):
        raise InvalidShape(f"{named(what)} must be a 4x4 matrix, got shape {out.shape}")
    if not proper(out):
        raise InvalidValue(f"{named(what)} is no placement: its upper left part is no rotation")
    return out


# How far a rotation that was written with few digits is from an orthonormal matrix.
_ROUNDED = 1e-2


def proper(placements: Array) -> NDArray[np.bool_]:
    """Whether placements (..., 4, 4) hold rotations."""
    r = placements[..., :3, :3]
    square = np.abs(np.swapaxes(r, -1, -2) @ r - np.eye(3)).max((-1, -2)) < _ROUNDED
    return np.asarray(square & (np.linalg.det(r) > 0))


def three(given: ArrayLike, what: str) -> Array:
    """A vector of three coordinates.

    Raises
    ------
    InvalidShape
        If it is none.
    """
    out = np.array(given, dtype=float)
    if out.shape != (3,):
        raise InvalidShape(f"{named(what)} must have three coordinates, got shape {out.shape}")
    return out


def labels(given: ArrayLike, count: int, what: str) -> Labels:
    """Labels of postures as an array of text.

    Raises
    ------
    InvalidShape
        If their number is another one.
    """
    out = np.array([str(x) for x in np.atleast_1d(np.asarray(given, dtype=object))])
    if len(out) != count:
        raise InvalidShape(f"{what} has {len(out)} entries for {count} postures", what)
    return out
