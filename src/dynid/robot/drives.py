"""What a drive adds to the rigid bodies: friction, rotor inertia, offset, springs, transmission.

Every term acts on a shaft. A shaft turns with the joints as s = d . v and hands its torque back
as tau = d * f(s), where d is its direction: a unit vector for a joint, a column of the
transmission matrix for a motor. Joint-side and motor-side terms are therefore one thing, and a
differential or a coupled wrist needs no case of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ModelError, did_you_mean
from dynid.robot.parts import checked, frozen

__all__ = ["FRICTION_TERMS", "NOT_NEGATIVE", "DriveTerm", "FileDrives", "TermKind", "Transmission", "parse_friction"]

Array = NDArray[np.float64]


class TermKind(IntEnum):
    """The function of a shaft's motion that a drive parameter multiplies (codes for the kernels)."""

    INERTIA = 0  # acceleration
    VISCOUS = 1  # speed
    VISCOUS_POSITIVE = 2  # max(speed, 0)
    VISCOUS_NEGATIVE = 3  # min(speed, 0)
    COULOMB = 4  # sign(speed)
    COULOMB_POSITIVE = 5  # 1 where speed > 0
    COULOMB_NEGATIVE = 6  # -1 where speed < 0
    OFFSET = 7  # 1
    SPRING = 8  # position - rest
    CUSTOM = 9  # the user's own column


# Terms that take energy or store it, never give it; offsets and springs may have either sign.
NOT_NEGATIVE = frozenset(TermKind) - {TermKind.OFFSET, TermKind.SPRING, TermKind.CUSTOM}

_SYMBOLS = {
    "Ia": (TermKind.INERTIA, "kg m2"),
    "fv": (TermKind.VISCOUS, "N m s/rad"),
    "fvp": (TermKind.VISCOUS_POSITIVE, "N m s/rad"),
    "fvn": (TermKind.VISCOUS_NEGATIVE, "N m s/rad"),
    "fc": (TermKind.COULOMB, "N m"),
    "fcp": (TermKind.COULOMB_POSITIVE, "N m"),
    "fcn": (TermKind.COULOMB_NEGATIVE, "N m"),
    "off": (TermKind.OFFSET, "N m"),
    "k": (TermKind.SPRING, "N m/rad"),
}
DRIVE_SYMBOLS = tuple(_SYMBOLS)

FRICTION_TERMS = {
    "viscous": ("fv",),
    "viscous-asymmetric": ("fvp", "fvn"),
    "coulomb": ("fc",),
    "coulomb-asymmetric": ("fcp", "fcn"),
    "offset": ("off",),
}

# Parameters that can stand in for one another when a robot's friction law is changed.
_STAND_INS = {"fv": ("fvp", "fvn"), "fc": ("fcp", "fcn")}

# What a robot file says of its drives: joint -> symbol -> value, for "Ia", "fv" and "fc".
FileDrives = dict[str, dict[str, float]]

CustomColumn = Callable[[Array, Array, Array], ArrayLike]


@dataclass(frozen=True)
class DriveTerm:
    """One drive parameter and the torque column it multiplies.

    `direction` (n,) tells how the shaft turns with the joints. `owner` is the joint whose block the
    parameter stands in, `motor` whether the shaft is on the motor side. With `cross_only`, terms
    linear in the motion keep only their coupling between different joints: the own part of each
    joint is then counted in that joint's own parameter, as is usual for coupled wrists
    (row 5 gets the speed of joint 6 and the other way round). A custom term has `function`, which
    gives the column (N, n) from q, v, a (each (N, n)); it may be at most affine in a. A Coulomb term with a
    `slope` is tanh(slope s) instead of a sharp step.
    """

    symbol: str
    shaft: str
    direction: Array
    owner: int
    value: float = 0.0
    motor: bool = False
    rest: float = 0.0
    cross_only: bool = False
    function: CustomColumn | None = None
    unit: str = ""
    slope: float = 0.0

    def __post_init__(self) -> None:
        try:
            d = frozen(self.direction)
        except (TypeError, ValueError):
            d = frozen(np.nan)
        object.__setattr__(self, "direction", d)
        if self.function is None and self.symbol not in _SYMBOLS:
            raise ModelError(
                f"drive term '{self.symbol}' of {self.shaft} is unknown: use one of "
                f"{', '.join(_SYMBOLS)}, or give it a function"
            )
        for what in ("value", "rest", "slope"):
            number = checked(getattr(self, what), (), f"drive term '{self.name}': {what}")
            object.__setattr__(self, what, float(number))
        if self.slope < 0 or (self.slope and not self.is_coulomb):
            raise ModelError(f"drive term '{self.name}' cannot have a slope of {self.slope:g}")
        if d.ndim != 1 or not np.all(np.isfinite(d)) or (self.function is None and not np.any(d)):
            raise ModelError(f"drive term '{self.name}' needs a finite, non-zero direction over the joints")

    @property
    def kind(self) -> TermKind:
        return TermKind.CUSTOM if self.function is not None else _SYMBOLS[self.symbol][0]

    @property
    def is_coulomb(self) -> bool:
        return self.kind in (TermKind.COULOMB, TermKind.COULOMB_POSITIVE, TermKind.COULOMB_NEGATIVE)

    @property
    def name(self) -> str:
        return f"{self.symbol}_{self.shaft}"

    @property
    def units(self) -> str:
        return self.unit or ("" if self.function is not None else _SYMBOLS[self.symbol][1])

    def sort_key(self) -> tuple[int, bool, int]:
        rank = DRIVE_SYMBOLS.index(self.symbol) if self.symbol in _SYMBOLS else len(_SYMBOLS)
        return (self.owner, self.motor, rank)


@dataclass(frozen=True)
class Transmission:
    """How motors and joints move each other.

    `coupling` (joint, motor) is the geometry of the coupling with the gear ratios taken out;
    `ratios` are the gear ratios, one a motor (negative ones are legal). With
    T = coupling * ratios: tau_joint = T tau_motor and v_motor = T' v_joint.
    Motor-side parameters are expressed as seen through `coupling` alone, which keeps the
    regressor well scaled.
    """

    motors: tuple[str, ...]
    coupling: Array
    ratios: Array

    def __post_init__(self) -> None:
        try:
            coupling, ratios = frozen(self.coupling), frozen(self.ratios)
        except (TypeError, ValueError):
            raise ModelError("transmission needs a coupling matrix and gear ratios made of numbers") from None
        count = len(self.motors)
        if len(set(self.motors)) != count:
            raise ModelError(f"transmission has two motors of one name: {', '.join(self.motors)}")
        if coupling.ndim != 2 or coupling.shape[1] != count or ratios.shape != (count,):
            raise ModelError(
                f"transmission of {count} motors needs a (joint, motor) coupling matrix and one ratio a "
                f"motor, got shapes {coupling.shape} and {ratios.shape}"
            )
        if not np.all(np.isfinite(coupling)) or not np.all(np.isfinite(ratios)) or np.any(ratios == 0):
            raise ModelError("transmission has an entry that is not finite, or a gear ratio of zero")
        object.__setattr__(self, "coupling", coupling)
        object.__setattr__(self, "ratios", ratios)

    @property
    def matrix(self) -> Array:
        """T (joint, motor): tau_joint = T tau_motor."""
        return self.coupling * self.ratios


def parse_friction(friction: str) -> tuple[str, ...]:
    """Parameter symbols of a friction law such as "viscous+coulomb+offset" ("none" for no friction)."""
    if not isinstance(friction, str):
        raise ModelError(f"friction must be words such as 'viscous+coulomb', got {friction!r:.60}")
    if friction == "none":
        return ()
    symbols: list[str] = []
    for word in friction.split("+"):
        if word.strip() not in FRICTION_TERMS:
            raise ModelError(
                f"unknown friction term '{word.strip()}': use {', '.join(FRICTION_TERMS)} joined by '+', or none"
                f"{did_you_mean(word.strip(), FRICTION_TERMS)}"
            )
        symbols.extend(FRICTION_TERMS[word.strip()])
    if len(set(symbols)) != len(symbols):
        raise ModelError(f"friction '{friction}' names a term twice")
    return tuple(symbols)


def joint_symbols(
    joints: Sequence[str],
    friction: str | Mapping[str, str],
    rotor_inertia: bool | Sequence[str],
) -> list[tuple[str, ...]]:
    """Drive symbols of every joint, from options given for all joints or joint by joint."""
    laws = friction if isinstance(friction, Mapping) else dict.fromkeys(joints, friction)
    if isinstance(rotor_inertia, bool | np.bool_):
        rotors = set(joints) if rotor_inertia else set()
    elif isinstance(rotor_inertia, Iterable):
        rotors = {rotor_inertia} if isinstance(rotor_inertia, str) else set(rotor_inertia)
    else:
        raise ModelError(f"rotor_inertia must be true, false or names of joints, got {rotor_inertia!r:.60}")
    unknown = (set(laws) | rotors) - set(joints)
    if unknown:
        raise ModelError(f"no joint named '{min(unknown, key=str)}', the joints are {', '.join(joints)}")
    return [(("Ia",) if j in rotors else ()) + parse_friction(laws.get(j, "none")) for j in joints]


def carried_value(known: Mapping[str, float], symbol: str) -> float:
    """A-priori value of `symbol` from what is known of the joint under another friction law."""
    if symbol in known:
        return known[symbol]
    for symmetric, sides in _STAND_INS.items():
        if symbol == symmetric and all(s in known for s in sides):
            return float(np.mean([known[s] for s in sides]))
        if symbol in sides and symmetric in known:
            return known[symmetric]
    return 0.0
