"""Components of a robot: links, joints, limits, frames, and entries of the parameter vector."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DynidError, ModelError, named
from dynid.limits import exceeded, file_limits

__all__ = [
    "Frame",
    "Joint",
    "Limits",
    "Link",
    "Merge",
    "Mimic",
    "Parameter",
    "check_names",
    "checked",
    "checked_placement",
    "fold_mimics",
    "frozen",
    "read_limits",
]

Array = NDArray[np.float64]

# No length, mass, inertia or coefficient in SI units is larger; products of larger numbers overflow.
_LARGEST = 1e100
_UNIT = np.eye(3)


def frozen(a: ArrayLike) -> Array:
    """A read-only copy as floats."""
    out = np.array(a, dtype=float)
    out.flags.writeable = False
    return out


# What no XML file can hold.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_names(what: str, names: Sequence[str]) -> None:
    """Refuse names with characters that no model file can hold, such as NUL, and names that are longer than the limit.

    Parameters
    ----------
    what : str
        What they name, for the message.
    names : sequence of str
        The names.
    """
    if _UNWRITABLE.search("".join(names)):
        wrong = next(c for c in "".join(names) if _UNWRITABLE.match(c))
        raise ModelError(
            f"the name of a {what} contains the character U+{ord(wrong):04X}, which model files cannot hold",
            "name",
            code="invalid_value",
        )
    longest = max(map(len, names), default=0)
    if longest > file_limits().name_length:
        exceeded(f"the name of a {what}", f"{longest} characters", "name_length", ModelError)


def checked(a: ArrayLike, shape: tuple[int, ...], what: str, error: type[DynidError] = ModelError) -> Array:
    """A read-only copy, checked for shape and finite values; errors name `what`."""
    try:
        out = frozen(a)
    except (TypeError, ValueError):
        raise error(f"{what} must be numbers, got {a!r:.60}") from None
    if out.shape != shape:
        raise error(f"{what} must have shape {shape}, got {out.shape}")
    if not np.all(np.isfinite(out)):
        raise error(f"{what}: a value is not finite")
    if out.size and np.abs(out).max() > _LARGEST:
        raise error(f"{what}: a value of {np.abs(out).max():.3g} is too large")
    return out


def checked_placement(h: ArrayLike, what: str, error: type[DynidError] = ModelError) -> Array:
    """A read-only copy of a 4x4 homogeneous matrix, checked to be a rotation and a translation."""
    out = checked(h, (4, 4), what, error)
    # Six decimals: a rotation copied from a printed page passes, a scaled or mirrored one does not.
    skew = np.abs(out[:3, :3] @ out[:3, :3].T - _UNIT).max()
    rigid = skew < 1e-6 and np.linalg.det(out[:3, :3]) > 0
    if not rigid or not np.array_equal(out[3], [0, 0, 0, 1]):
        raise error(f"{what} must be a rotation and a translation")
    return out


@dataclass(frozen=True)
class Limits:
    """Limits of a joint, infinite where unknown.

    Attributes
    ----------
    lower, upper : float
        Position range (rad or m).
    velocity : float
        Largest magnitude of the velocity (rad/s or m/s).
    effort : float
        Largest magnitude of the torque or force (N m or N).

    Raises
    ------
    ModelError
        If lower is above upper, or a magnitude is negative.
    """

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper and self.velocity >= 0 and self.effort >= 0):
            raise ModelError(
                f"limits are inconsistent: position [{self.lower}, {self.upper}], "
                f"velocity {self.velocity}, effort {self.effort}",
                "limits",
                code="invalid_value",
            )


UNLIMITED = Limits()


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another one: q = ratio * q[leader] + offset.

    Attributes
    ----------
    leader : str
        Name of the independent joint.
    ratio : float
        Position of the joint per position of the leader.
    offset : float
        Position of the joint where the leader is at zero (rad or m).
    """

    leader: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and np.isfinite(self.offset)):
            raise ModelError(
                f"a joint that follows '{self.leader}' needs a finite ratio and offset", "ratio", code="invalid_value"
            )


@dataclass(frozen=True, eq=False)
class Joint:
    """A revolute or prismatic joint.

    The placement of the child link in the parent link is placement * motion(axis, q) * mount.

    Attributes
    ----------
    name : str
        Name of the joint.
    kind : {"revolute", "prismatic"}
        Type of the joint.
    parent : int
        Index of the parent link in `Robot.links`.
    placement : ndarray, shape (4, 4)
        Joint frame in the frame of the parent link.
    axis : ndarray, shape (3,)
        Unit axis in the joint frame. A given axis is normalised.
    mount : ndarray, shape (4, 4)
        Frame of the child link in the moved joint frame: the identity for URDF, not so for standard
        Denavit-Hartenberg tables, which place the link frame at the distal end of the link.
    limits : Limits
        Position, velocity and effort limits.
    mimic : Mimic or None
        Joint that this one follows, None for an independent joint.

    Raises
    ------
    ModelError
        For an unknown kind, a zero axis, or matrices that are not placements.
    """

    name: str
    kind: Literal["revolute", "prismatic"]
    parent: int
    placement: Array
    axis: Array
    mount: Array = field(default_factory=lambda: np.eye(4))
    limits: Limits = UNLIMITED
    mimic: Mimic | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("revolute", "prismatic"):
            raise ModelError(
                f"joint '{self.name}' is of kind '{self.kind}': use revolute or prismatic", "kind", code="unknown_name"
            )
        axis = checked(self.axis, (3,), f"joint '{self.name}': axis")
        norm = np.linalg.norm(axis)
        if norm < 1e-9:
            raise ModelError(f"joint '{self.name}' has a zero axis", "axis")
        object.__setattr__(self, "axis", frozen(axis / norm))
        for what in ("placement", "mount"):
            object.__setattr__(self, what, checked_placement(getattr(self, what), f"joint '{self.name}': {what}"))


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body.

    Attributes
    ----------
    name : str
        Name of the link.
    inertia : ndarray, shape (10,)
        Inertial parameters in the link frame: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz (kg, kg m, kg m2), the
        tensor about the frame origin.
    virtual : bool
        A massless link between two joints of one body. It has no inertial parameters.
    extent : ndarray, shape (2, 3), or None
        Lower and upper corner (m) of the box around the shapes of the link, in the link frame; None where the source
        has no shapes or a mesh of it cannot be read.
    """

    name: str
    inertia: Array
    virtual: bool = False
    extent: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inertia", checked(self.inertia, (10,), f"link '{self.name}': inertia"))
        if self.extent is not None:
            object.__setattr__(self, "extent", checked(self.extent, (2, 3), f"link '{self.name}': extent"))


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a link.

    Attributes
    ----------
    name : str
        Name of the frame.
    link : int
        Index of the link in `Robot.links`.
    placement : ndarray, shape (4, 4)
        Placement in the link frame.
    """

    name: str
    link: int
    placement: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", checked_placement(self.placement, f"frame '{self.name}': placement"))


@dataclass(frozen=True)
class Merge:
    """A link on a fixed joint, whose inertia was added to the link that carries it.

    Attributes
    ----------
    link, joint : str
        Names of the link and of its fixed joint in the source.
    into : str
        Name of the link that carries it.
    mass : float
        Mass of the merged link (kg).
    """

    link: str
    joint: str
    into: str
    mass: float


@dataclass(frozen=True)
class Parameter:
    """One entry of the standard parameter vector.

    Attributes
    ----------
    name : str
        Full name: symbol and link, joint or motor, such as Izz_link1.
    label : str
        Short name: symbol and number, such as Izz_1.
    symbol : str
        Symbol, such as Izz or fv.
    unit : str
        SI unit. Drive parameters of prismatic joints are in kg, N s/m, N and N/m.
    owner : str
        Name of the link, joint or motor.
    inertial : bool
        Whether it is one of the ten inertial parameters of a link, not a drive parameter.
    group : str
        Unit that the parameter has on a revolute joint: values of one group are comparable in size.
    """

    name: str
    label: str
    symbol: str
    unit: str
    owner: str
    inertial: bool
    group: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", self.group or self.unit)


def fold_mimics(direct: Mapping[str, Mimic]) -> dict[str, Mimic]:
    """Mimic joints with chains resolved: every leader is an independent joint."""
    out = {}
    for name, first in direct.items():
        mimic, seen = first, {name}
        while mimic.leader in direct:
            if mimic.leader in seen:
                raise ModelError(f"joint '{name}' mimics itself through '{mimic.leader}'")
            seen.add(mimic.leader)
            up = direct[mimic.leader]
            mimic = Mimic(up.leader, mimic.ratio * up.ratio, mimic.ratio * up.offset + mimic.offset)
        out[name] = mimic
    return out


def read_limits(joint: str, given: Mapping[str, Any], start: Limits = UNLIMITED) -> Limits:
    """Limits from {"position": (lower, upper), "velocity": x, "effort": x}; missing keys are taken from `start`."""
    if not isinstance(given, Mapping):
        raise ModelError(
            f"{named('limits')} of joint '{joint}' must be a table of position, velocity and effort, got {given!r:.60}",
            code="invalid_type",
        )
    unknown = set(given) - {"position", "velocity", "effort"}
    if unknown:
        raise ModelError(
            f"{named('limits')} of joint '{joint}': unknown key '{min(unknown, key=str)}', "
            "use position, velocity, effort",
            code="unknown_name",
        )
    try:
        lower, upper = given.get("position", (start.lower, start.upper))
        velocity, effort = given.get("velocity", start.velocity), given.get("effort", start.effort)
        return Limits(float(lower), float(upper), float(velocity), float(effort))
    except (TypeError, ValueError):
        raise ModelError(
            f"{named('limits')} of joint '{joint}' are not numbers: {dict(given)}", code="invalid_type"
        ) from None
    except ModelError as error:
        raise error.at(f"joint '{joint}'") from None
