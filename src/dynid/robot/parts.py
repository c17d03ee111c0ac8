"""The pieces a robot is made of: links, joints, limits, frames, and entries of its parameter vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DynidError, ModelError

__all__ = [
    "Frame",
    "Joint",
    "Limits",
    "Link",
    "Merge",
    "Mimic",
    "Parameter",
    "checked",
    "checked_placement",
    "fold_mimics",
    "frozen",
    "read_limits",
]

Array = NDArray[np.float64]


def frozen(a: ArrayLike) -> Array:
    """A copy that cannot be written to."""
    out = np.array(a, dtype=float)
    out.flags.writeable = False
    return out


def checked(a: ArrayLike, shape: tuple[int, ...], what: str, error: type[DynidError] = ModelError) -> Array:
    """A frozen copy of finite numbers of this shape, or an error that names `what`."""
    try:
        out = frozen(a)
    except (TypeError, ValueError):
        raise error(f"{what} must be numbers, got {a!r:.60}") from None
    if out.shape != shape:
        raise error(f"{what} must have shape {shape}, got {out.shape}")
    if not np.all(np.isfinite(out)):
        raise error(f"{what}: a value is not finite")
    return out


def checked_placement(h: ArrayLike, what: str, error: type[DynidError] = ModelError) -> Array:
    """A frozen copy of a 4x4 matrix that turns and shifts, and does nothing else."""
    out = checked(h, (4, 4), what, error)
    # Six decimals: a rotation copied from a printed page passes, a scaled or mirrored one does not.
    rigid = np.allclose(out[:3, :3] @ out[:3, :3].T, np.eye(3), atol=1e-6) and np.linalg.det(out[:3, :3]) > 0
    if not rigid or not np.array_equal(out[3], [0, 0, 0, 1]):
        raise error(f"{what} must be a rotation and a translation")
    return out


@dataclass(frozen=True)
class Limits:
    """Position range (rad or m), speed and effort bounds of a joint; infinite where unknown."""

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper and self.velocity >= 0 and self.effort >= 0):
            raise ModelError(
                f"limits are inconsistent: position [{self.lower}, {self.upper}], "
                f"velocity {self.velocity}, effort {self.effort}"
            )


UNLIMITED = Limits()


@dataclass(frozen=True)
class Mimic:
    """q = ratio * q[leader] + offset: a joint without a coordinate of its own."""

    leader: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and np.isfinite(self.offset)):
            raise ModelError(f"a joint that follows '{self.leader}' needs a finite ratio and offset")


@dataclass(frozen=True, eq=False)
class Joint:
    """A one-degree-of-freedom joint and where its link sits on it.

    Link frame in the parent link frame: placement * motion(axis, q) * mount. URDF joints have an
    identity `mount`; standard Denavit-Hartenberg frames sit at the far end of the link.
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
            raise ModelError(f"joint '{self.name}' is of kind '{self.kind}': use revolute or prismatic")
        axis = checked(self.axis, (3,), f"joint '{self.name}': axis")
        norm = np.linalg.norm(axis)
        if norm < 1e-9:
            raise ModelError(f"joint '{self.name}' has a zero axis")
        object.__setattr__(self, "axis", frozen(axis / norm))
        for what in ("placement", "mount"):
            object.__setattr__(self, what, checked_placement(getattr(self, what), f"joint '{self.name}': {what}"))


@dataclass(frozen=True, eq=False)
class Link:
    """A body: name and its ten inertial numbers in its own frame.

    A `virtual` link only separates two joints of one body; it has no mass and no parameters.
    """

    name: str
    inertia: Array
    virtual: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "inertia", checked(self.inertia, (10,), f"link '{self.name}': inertia"))


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a link: placement in the link frame."""

    name: str
    link: int
    placement: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", checked_placement(self.placement, f"frame '{self.name}': placement"))


@dataclass(frozen=True)
class Merge:
    """A link that hangs on a fixed joint and was added to the body that carries it."""

    link: str
    joint: str
    into: str
    mass: float


@dataclass(frozen=True)
class Parameter:
    """One entry of the standard vector: full name, short label, symbol, unit and owner."""

    name: str
    label: str
    symbol: str
    unit: str
    owner: str
    inertial: bool


def fold_mimics(direct: Mapping[str, Mimic]) -> dict[str, Mimic]:
    """Every mimic joint on its independent joint: chains of them followed to the end."""
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
    """Limits from {"position": (lower, upper), "velocity": x, "effort": x}, the rest from `start`."""
    if not isinstance(given, Mapping):
        raise ModelError(
            f"limits of joint '{joint}' must be a table of position, velocity and effort, got {given!r:.60}"
        )
    unknown = set(given) - {"position", "velocity", "effort"}
    if unknown:
        raise ModelError(f"limits of joint '{joint}' know position, velocity and effort, not '{min(unknown, key=str)}'")
    try:
        lower, upper = given.get("position", (start.lower, start.upper))
        velocity, effort = given.get("velocity", start.velocity), given.get("effort", start.effort)
        return Limits(float(lower), float(upper), float(velocity), float(effort))
    except (TypeError, ValueError):
        raise ModelError(f"limits of joint '{joint}' are not numbers: {dict(given)}") from None
    except ModelError as error:
        raise ModelError(f"joint '{joint}': {error}") from None
