"""The pieces a robot is made of: links, joints, limits, frames, and entries of its parameter vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ModelError

__all__ = ["Frame", "Joint", "Limits", "Link", "Merge", "Mimic", "Parameter", "frozen", "read_limits"]

Array = NDArray[np.float64]


def frozen(a: ArrayLike) -> Array:
    """A copy that cannot be written to."""
    out = np.array(a, dtype=float)
    out.flags.writeable = False
    return out


@dataclass(frozen=True)
class Limits:
    """Position range (rad or m), speed and effort bounds of a joint; infinite where unknown."""

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf

    def __post_init__(self) -> None:
        if self.lower > self.upper or self.velocity < 0 or self.effort < 0:
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
        axis = np.asarray(self.axis, dtype=float)
        norm = np.linalg.norm(axis)
        if axis.shape != (3,) or not np.isfinite(norm) or norm < 1e-9:
            raise ModelError(f"joint '{self.name}' has no usable axis: {np.asarray(self.axis).tolist()}")
        object.__setattr__(self, "axis", frozen(axis / norm))
        for what in ("placement", "mount"):
            h = np.asarray(getattr(self, what), dtype=float)
            if h.shape != (4, 4) or not np.all(np.isfinite(h)):
                raise ModelError(f"joint '{self.name}' has no usable {what}: it must be a finite 4x4 matrix")
            object.__setattr__(self, what, frozen(h))


@dataclass(frozen=True, eq=False)
class Link:
    """A body: name and its ten inertial numbers in its own frame.

    A `virtual` link only separates two joints of one body; it has no mass and no parameters.
    """

    name: str
    inertia: Array
    virtual: bool = False

    def __post_init__(self) -> None:
        pi = np.asarray(self.inertia, dtype=float)
        if pi.shape != (10,) or not np.all(np.isfinite(pi)):
            raise ModelError(f"link '{self.name}' has no usable inertia: ten finite numbers are needed")
        object.__setattr__(self, "inertia", frozen(pi))


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a link: placement in the link frame."""

    name: str
    link: int
    placement: Array


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


def read_limits(joint: str, given: Mapping[str, Any], start: Limits = UNLIMITED) -> Limits:
    """Limits from {"position": (lower, upper), "velocity": x, "effort": x}, the rest from `start`."""
    unknown = set(given) - {"position", "velocity", "effort"}
    if unknown:
        raise ModelError(f"limits of joint '{joint}' know position, velocity and effort, not '{min(unknown)}'")
    try:
        lower, upper = given.get("position", (start.lower, start.upper))
        velocity, effort = given.get("velocity", start.velocity), given.get("effort", start.effort)
        return Limits(float(lower), float(upper), float(velocity), float(effort))
    except (TypeError, ValueError):
        raise ModelError(f"limits of joint '{joint}' are not numbers: {dict(given)}") from None
    except ModelError as error:
        raise ModelError(f"joint '{joint}': {error}") from None
