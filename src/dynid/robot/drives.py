"""Drive models: friction, rotor inertia, offset, springs and the transmission between motors and joints.

Every term acts on a shaft. The shaft velocity is s = d . v and the joint torques of the term are tau = d * f(s), where
the direction d is a unit vector for a joint and a column of the coupling matrix for a motor. Joint-side and motor-side
terms share this form, so differentials and coupled wrists are not special cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ModelError, did_you_mean, named
from dynid.robot.parts import checked, frozen

__all__ = [
    *("DRIVE_LAWS", "FRICTION_SYMBOLS", "FRICTION_TERMS", "LAW_OF_KIND", "DriveLaw", "DriveTerm", "FileDrives"),
    *("ShaftEffort", "TermKind", "Transmission", "drive_kinds", "drive_symbols", "file_keys", "parse_friction"),
]

Array = NDArray[np.float64]


class TermKind(IntEnum):
    """The function of the shaft motion that a drive parameter multiplies (the codes of the kernels)."""

    INERTIA = 0  # acceleration
    VISCOUS = 1  # velocity
    VISCOUS_POSITIVE = 2  # max(velocity, 0)
    VISCOUS_NEGATIVE = 3  # min(velocity, 0)
    COULOMB = 4  # sign(velocity)
    COULOMB_POSITIVE = 5  # 1 where velocity > 0
    COULOMB_NEGATIVE = 6  # -1 where velocity < 0
    STRIBECK = 7  # sign(velocity) exp(-(velocity / Stribeck velocity)^2)
    OFFSET = 8  # 1
    SPRING = 9  # position - rest
    CUSTOM = 10  # a user-defined column


class ShaftEffort(Protocol):
    """What the effort of a drive term is made of: numbers, symbols or tensors of the motion of its shaft.

    `s` is the motion: its position less its rest, its velocity or its acceleration. `one` is 1 in its shape.
    """

    @property
    def s(self) -> Any:
        """The motion."""

    @property
    def one(self) -> Any:
        """1."""

    def positive(self) -> Any:
        """The motion where it is positive, else 0."""

    def negative(self) -> Any:
        """The motion where it is negative, else 0."""

    def step(self, low: float, high: float) -> Any:
        """A step from `low` to `high` at zero, as smooth as the slope of the term says."""

    def fading(self) -> Any:
        """exp(-(motion / velocity of the term)^2)."""


Family = Literal["inertia", "viscous", "coulomb", "stribeck", "offset", "spring"]


@dataclass(frozen=True, kw_only=True)
class DriveLaw:
    """A kind of drive parameter: all that a program needs to know of it but the kernels that compute its torque.

    Attributes
    ----------
    symbol : str
        Symbol of the parameter.
    kind : TermKind
        Its code in the kernels.
    torque : str
        Torque per unit of the parameter, for a table; s is the velocity of the shaft.
    words : str
        Its name in words.
    key : str
        Its name in parameter files of ROS.
    units : tuple of str
        Its unit on a shaft that rotates, and on one that translates.
    family : str
        What it is a part of.
    effort : callable
        Function (ShaftEffort) that returns the effort of a unit parameter. Compiled kernels have their own.
    text : str
        The same as Python text over an array s: {side}, {positive} and {negative} are steps, {name}_velocity and
        {name}_rest the constants of the term.
    motion : {"q", "v", "a"}
        The motion of the shaft that it depends on.
    linear : bool
        Whether it is linear in the motion.
    signed : bool
        Whether it may be negative: it need not dissipate or store energy.
    option : str
        Word of a friction model that has it; "" where none has.
    setting : {"", "rest", "velocity"}
        What a term has beside its value.
    parts : tuple of float, optional
        Its torque as a combination of 1, s, |s| and sign(s); None where it is none.
    prior : float, optional
        Scale of its prior, over the value with which it would explain the torque of its joint alone.
    files : mapping of str to str
        Name of the joint's value in model files that can express it.
    """

    symbol: str
    kind: TermKind
    torque: str
    words: str
    key: str
    units: tuple[str, str]
    family: Family
    effort: Callable[[ShaftEffort], Any]
    text: str
    motion: Literal["q", "v", "a"] = "v"
    linear: bool = False
    signed: bool = False
    option: str = ""
    setting: Literal["", "rest", "velocity"] = ""
    parts: tuple[float, float, float, float] | None = None
    prior: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)


_TORQUE, _DAMPING = ("N m", "N"), ("N m s/rad", "N s/m")
# All laws by their symbols, in the order of the terms of a shaft in the parameter vector.
DRIVE_LAWS: Mapping[str, DriveLaw] = {
    law.symbol: law
    for law in (
        DriveLaw(
            symbol="Ia", kind=TermKind.INERTIA, torque="acceleration",
            words="rotor inertia", key="rotor_inertia", units=("kg m2", "kg"),
            family="inertia", effort=lambda x: x.s, text="s", motion="a", linear=True, parts=(0.0, 0.0, 0.0, 0.0),
            prior=1.0, files={"mjcf": "armature"},
        ),
        DriveLaw(
            symbol="fv", kind=TermKind.VISCOUS, torque="velocity",
            words="viscous friction", key="viscous_friction", units=_DAMPING,
            family="viscous", effort=lambda x: x.s, text="s", linear=True, option="viscous",
            parts=(0.0, 1.0, 0.0, 0.0), prior=0.5,
            files={"mjcf": "damping", "sdf": "damping", "urdf": "damping"},
        ),
        DriveLaw(
            symbol="fvp", kind=TermKind.VISCOUS_POSITIVE, torque="velocity where it is positive, else 0",
            words="viscous friction at positive velocity",
            key="viscous_friction_positive", units=_DAMPING, family="viscous", effort=lambda x: x.positive(),
            text="0.5 * (s + np.abs(s))", option="viscous-asymmetric", parts=(0.0, 0.5, 0.5, 0.0),
        ),
        DriveLaw(
            symbol="fvn", kind=TermKind.VISCOUS_NEGATIVE, torque="velocity where it is negative, else 0",
            words="viscous friction at negative velocity",
            key="viscous_friction_negative", units=_DAMPING, family="viscous", effort=lambda x: x.negative(),
            text="0.5 * (s - np.abs(s))", option="viscous-asymmetric", parts=(0.0, 0.5, -0.5, 0.0),
        ),
        DriveLaw(
            symbol="fc", kind=TermKind.COULOMB, torque="sign of the velocity",
            words="Coulomb friction", key="coulomb_friction", units=_TORQUE,
            family="coulomb", effort=lambda x: x.step(-1.0, 1.0), text="{side}", option="coulomb",
            parts=(0.0, 0.0, 0.0, 1.0), prior=0.5,
            files={"mjcf": "frictionloss", "sdf": "friction", "urdf": "friction"},
        ),
        DriveLaw(
            symbol="fcp", kind=TermKind.COULOMB_POSITIVE, torque="1 where the velocity is positive, else 0",
            words="Coulomb friction at positive velocity",
            key="coulomb_friction_positive", units=_TORQUE, family="coulomb", effort=lambda x: x.step(0.0, 1.0),
            text="{positive}", option="coulomb-asymmetric", parts=(0.5, 0.0, 0.0, 0.5), prior=0.5,
        ),
        DriveLaw(
            symbol="fcn", kind=TermKind.COULOMB_NEGATIVE, torque="-1 where the velocity is negative, else 0",
            words="Coulomb friction at negative velocity",
            key="coulomb_friction_negative", units=_TORQUE, family="coulomb", effort=lambda x: x.step(-1.0, 0.0),
            text="{negative}", option="coulomb-asymmetric", parts=(-0.5, 0.0, 0.0, 0.5), prior=0.5,
        ),
        DriveLaw(
            symbol="fs", kind=TermKind.STRIBECK, torque="sign of the velocity, times exp(-(s / `velocity`)²)",
            words="Stribeck friction", key="stribeck_friction", units=_TORQUE,
            family="stribeck", effort=lambda x: x.step(-1.0, 1.0) * x.fading(),
            text='{side} * np.exp(-((s / _constant("{name}_velocity", q)) ** 2))', setting="velocity", prior=0.5,
        ),
        DriveLaw(
            symbol="off", kind=TermKind.OFFSET, torque="1",
            words="offset", key="torque_offset", units=_TORQUE, family="offset",
            effort=lambda x: x.one, text="np.ones_like(s)", signed=True, option="offset", parts=(1.0, 0.0, 0.0, 0.0),
        ),
        DriveLaw(
            symbol="k", kind=TermKind.SPRING, torque="position - `rest`",
            words="spring", key="spring_stiffness", units=("N m/rad", "N/m"),
            family="spring", effort=lambda x: x.s, text='s - _constant("{name}_rest", q)', motion="q", linear=True,
            signed=True, setting="rest", parts=(0.0, 0.0, 0.0, 0.0),
            files={"mjcf": "stiffness", "sdf": "spring_stiffness"},
        ),
    )
}  # fmt: skip
# The same by the code of the kernels.
LAW_OF_KIND = {law.kind: law for law in DRIVE_LAWS.values()}
# Units of a shaft that translates, and the same for one that rotates.
ROTATING_UNITS = {translating: rotating for rotating, translating in (law.units for law in DRIVE_LAWS.values())}
DRIVE_SYMBOLS = tuple(DRIVE_LAWS)

# Words of friction models, with the symbols that each stands for.
FRICTION_TERMS: dict[str, tuple[str, ...]] = {
    word: tuple(law.symbol for law in DRIVE_LAWS.values() if law.option == word)
    for word in dict.fromkeys(law.option for law in DRIVE_LAWS.values() if law.option)
}


def drive_kinds(*families: Family) -> frozenset[TermKind]:
    """Codes of all laws of some families."""
    return frozenset(law.kind for law in DRIVE_LAWS.values() if law.family in families)


def drive_symbols(*families: Family) -> tuple[str, ...]:
    """Symbols of all laws of some families."""
    return tuple(law.symbol for law in DRIVE_LAWS.values() if law.family in families)


_COULOMB, _DRY = drive_kinds("coulomb"), drive_kinds("coulomb", "stribeck")


def file_keys(model: str) -> dict[TermKind, str]:
    """Names of the values of a joint in a kind of model file, by the code of the law."""
    return {law.kind: law.files[model] for law in DRIVE_LAWS.values() if model in law.files}


# Friction, which a friction model replaces.
FRICTION_SYMBOLS = drive_symbols("viscous", "coulomb", "stribeck", "offset")

# Symmetric parameters and the asymmetric pairs that replace them when the friction model is changed.
_STAND_INS = {"fv": ("fvp", "fvn"), "fc": ("fcp", "fcn")}

# Drive values of a robot file: joint -> symbol -> value, for "Ia", "fv" and "fc".
FileDrives = dict[str, dict[str, float]]

# A velocity that no motion has, but of which every function still knows the sign.
BARELY = 1e-200

CustomColumn = Callable[[Array, Array, Array], ArrayLike]


@dataclass(frozen=True)
class DriveTerm:
    """One drive parameter and the torque column that it multiplies.

    Make terms with `Robot.joint_term`, `Robot.motor_term` or `Robot.custom_term`, and add them with
    `Robot.with_terms`.

    Attributes
    ----------
    symbol : str
        "Ia" (rotor inertia), "fv", "fvp", "fvn" (viscous friction: both directions, positive, negative), "fc", "fcp",
        "fcn" (Coulomb friction, likewise), "fs" (Stribeck friction), "off" (offset), "k" (spring), or the name of a
        custom term.
    shaft : str
        Name of the joint or motor.
    direction : ndarray, shape (n,)
        Shaft velocity per joint velocity: s = direction . v.
    owner : int
        Index of the joint in whose block of the parameter vector the parameter is listed.
    value : float
        A-priori value.
    motor : bool
        Whether the shaft is on the motor side of the transmission.
    rest : float
        Rest position of a spring (rad or m).
    cross_only : bool
        Terms that are linear in the motion keep only their coupling between different joints. The part of each joint
        itself is then counted in the parameter of that joint, as is usual for coupled wrists: row 5 contains the
        velocity of joint 6 and row 6 that of joint 5.
    function : callable, optional
        Custom term: function(q, v, a) -> column, all of shape (N, n). It must be affine in a.
    unit : str
        Unit of the parameter. Given for a custom term only; other units follow from symbol and shaft: N m s/rad on a
        shaft that rotates, N s/m on one that translates, for example.
    slope : float
        Coulomb and Stribeck terms: 0 for sign(s), otherwise tanh(slope * s), in s/rad or s/m. A custom term that jumps
        where the velocity of its joint changes sign goes through the jump by the same function.
    velocity : float
        Stribeck velocity (rad/s or m/s) of symbol "fs", whose friction fades as exp(-(s / velocity)^2).
    linear : bool
        Whether the shaft translates: it moves with prismatic joints only. Set by `Robot`.
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
    linear: bool = False
    velocity: float = 0.0

    def __post_init__(self) -> None:
        try:
            d = frozen(self.direction)
        except (TypeError, ValueError):
            d = frozen(np.nan)
        object.__setattr__(self, "direction", d)
        if self.function is None and self.symbol not in DRIVE_LAWS:
            raise ModelError(
                f"drive term '{self.symbol}' of {self.shaft} is unknown: use one of "
                f"{', '.join(DRIVE_LAWS)}, or give it a function",
                "symbol",
                code="unknown_name",
            )
        if self.function is None:
            object.__setattr__(self, "unit", DRIVE_LAWS[self.symbol].units[self.linear])
        for what in ("value", "rest", "slope", "velocity"):
            number = checked(getattr(self, what), (), f"drive term '{self.name}': {what}")
            object.__setattr__(self, what, float(number))
        if d.ndim != 1 or not np.all(np.isfinite(d)) or (self.function is None and not np.any(d)):
            raise ModelError(
                f"drive term '{self.name}' needs a finite, non-zero direction over the joints",
                "direction",
                code="invalid_value",
            )
        if self.slope < 0 or (self.slope and not self.jumps):
            raise ModelError(
                f"drive term '{self.name}' cannot have a slope of {self.slope:g}", "slope", code="invalid_value"
            )
        if self.velocity < 0 or (self.velocity > 0) != (self.kind == TermKind.STRIBECK):
            raise ModelError(
                f"drive term '{self.name}' cannot have a velocity of {self.velocity:g}: Stribeck friction (fs) needs a "
                "positive one, other terms have none",
                "velocity",
                code="invalid_value",
            )

    @property
    def kind(self) -> TermKind:
        """The function of the shaft motion that the parameter multiplies."""
        return TermKind.CUSTOM if self.function is not None else DRIVE_LAWS[self.symbol].kind

    @property
    def dissipates(self) -> bool:
        """Whether the coefficient of this term alone is not negative, since it dissipates or stores energy."""
        own = getattr(self.function, "dissipates", False)
        signed = self.function is not None or DRIVE_LAWS[self.symbol].signed
        return bool(own) or not (signed or self.cross_only)

    @property
    def is_coulomb(self) -> bool:
        """Whether this is a Coulomb friction term, symmetric or of one direction."""
        return self.kind in _COULOMB

    @cached_property
    def jumps(self) -> bool:
        """Whether the column jumps where the velocity changes sign.

        Coulomb and Stribeck terms do, and custom terms with such a column. Only these can have a slope.
        """
        if self.function is None:
            return self.kind in _DRY
        q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 8, len(self.direction)))
        up, down = self._sides(q, v, a)
        return bool(np.abs(up - down).max() > 1e-9 * (1 + np.abs(up).max()))

    def column(self, q: Array, v: Array, a: Array) -> Array:
        """Column of a custom term, smooth where it has a slope.

        Parameters
        ----------
        q, v, a : ndarray, shape (N, n)
            Positions (rad or m), velocities and accelerations of the joints.

        Returns
        -------
        ndarray, shape (N, n)
        """
        assert self.function is not None
        if not self.slope:
            return np.asarray(self.function(q, v, a), dtype=float)
        s = np.where(v[:, self.owner] == 0, BARELY, v[:, self.owner])
        up, down = self._sides(q, v, a)
        rest = np.tanh(self.slope * s) - np.sign(s)
        return np.asarray(self.function(q, self._at(v, s), a), dtype=float) + 0.5 * rest[:, None] * (up - down)

    def _sides(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Columns just above and just below zero velocity of the joint of a custom term."""
        assert self.function is not None
        up, down = (np.asarray(self.function(q, self._at(v, s), a), dtype=float) for s in (BARELY, -BARELY))
        return up, down

    def _at(self, v: Array, s: ArrayLike) -> Array:
        """Velocities with s for the joint of the term."""
        out = np.array(v, dtype=float)
        out[:, self.owner] = s
        return out

    @property
    def name(self) -> str:
        """Name of the parameter: symbol and shaft, such as fv_joint1."""
        return f"{self.symbol}_{self.shaft}"

    def sort_key(self) -> tuple[int, bool, int]:
        """Order of the terms in the parameter vector: by joint, joint side first, then by symbol."""
        rank = DRIVE_SYMBOLS.index(self.symbol) if self.symbol in DRIVE_LAWS else len(DRIVE_LAWS)
        return (self.owner, self.motor, rank)


@dataclass(frozen=True)
class Transmission:
    """Kinematic coupling between motors and joints.

    With T = coupling * ratios: tau_joint = T tau_motor and v_motor = T' v_joint. Motor-side parameters are expressed
    behind the gears, through `coupling` alone, which keeps the regressor well scaled.

    Attributes
    ----------
    motors : tuple of str
        Names of the motors.
    coupling : ndarray, shape (joint, motor)
        Coupling matrix without the gear ratios.
    ratios : ndarray, shape (motor,)
        Gear ratios, motor velocity over joint velocity. Negative ratios are allowed.

    Raises
    ------
    ModelError
        For repeated names, wrong shapes, entries that are not finite, or a gear ratio of zero.

    Examples
    --------
    A wrist in which motor 2 also moves joint 1:

    >>> from dynid.robot import Transmission
    >>> Transmission(("m1", "m2"), [[1.0, 1.0], [0.0, 1.0]], [100.0, 80.0]).matrix
    array([[100.,  80.],
           [  0.,  80.]])
    """

    motors: tuple[str, ...]
    coupling: Array
    ratios: Array

    def __post_init__(self) -> None:
        try:
            coupling, ratios = frozen(self.coupling), frozen(self.ratios)
        except (TypeError, ValueError):
            raise ModelError(
                "transmission needs a coupling matrix and gear ratios made of numbers", "coupling", code="invalid_type"
            ) from None
        count = len(self.motors)
        if len(set(self.motors)) != count:
            raise ModelError(
                f"transmission has two motors with the same name: {', '.join(self.motors)}", "motors", code="duplicate"
            )
        if coupling.ndim != 2 or coupling.shape[1] != count or ratios.shape != (count,):
            raise ModelError(
                f"transmission of {count} motors needs a (joint, motor) coupling matrix and one ratio per "
                f"motor, got shapes {coupling.shape} and {ratios.shape}",
                "coupling",
                code="invalid_shape",
            )
        if not np.all(np.isfinite(coupling)) or not np.all(np.isfinite(ratios)) or np.any(ratios == 0):
            raise ModelError(
                "transmission has an entry that is not finite, or a gear ratio of zero", code="invalid_value"
            )
        object.__setattr__(self, "coupling", coupling)
        object.__setattr__(self, "ratios", ratios)

    @property
    def matrix(self) -> Array:
        """Transmission matrix T (joint, motor): tau_joint = T tau_motor."""
        return self.coupling * self.ratios


def parse_friction(friction: str) -> tuple[str, ...]:
    """Parameter symbols of a friction model such as "viscous+coulomb+offset" ("none" for no friction)."""
    if not isinstance(friction, str):
        raise ModelError(
            f"{named('friction')} must be a string such as 'viscous+coulomb', got {friction!r:.60}", code="invalid_type"
        )
    if friction == "none":
        return ()
    symbols: list[str] = []
    for word in friction.split("+"):
        if word.strip() not in FRICTION_TERMS:
            raise ModelError(
                f"unknown friction term '{word.strip()}': use {', '.join(FRICTION_TERMS)} joined by '+', or none"
                f"{did_you_mean(word.strip(), FRICTION_TERMS)}",
                "friction",
                code="unknown_name",
            )
        symbols.extend(FRICTION_TERMS[word.strip()])
    if len(set(symbols)) != len(symbols):
        raise ModelError(f"friction '{friction}' names a term twice", "friction", code="duplicate")
    return tuple(symbols)


def joint_symbols(
    joints: Sequence[str],
    friction: str | Mapping[str, str],
    rotor_inertia: bool | Sequence[str],
) -> list[tuple[str, ...]]:
    """Drive symbols of every joint, from options given for all joints or per joint."""
    laws = friction if isinstance(friction, Mapping) else dict.fromkeys(joints, friction)
    if isinstance(rotor_inertia, bool | np.bool_):
        rotors = set(joints) if rotor_inertia else set()
    elif isinstance(rotor_inertia, Iterable):
        rotors = {rotor_inertia} if isinstance(rotor_inertia, str) else set(rotor_inertia)
    else:
        raise ModelError(
            f"{named('rotor_inertia')} must be True, False or names of joints, got {rotor_inertia!r:.60}",
            code="invalid_type",
        )
    unknown = (set(laws) | rotors) - set(joints)
    if unknown:
        raise ModelError(
            f"no joint named '{min(unknown, key=str)}', the joints are {', '.join(joints)}", code="unknown_name"
        )
    return [(("Ia",) if j in rotors else ()) + parse_friction(laws.get(j, "none")) for j in joints]


def carried_value(known: Mapping[str, float], symbol: str) -> float:
    """A-priori value of `symbol` from the values of the joint under another friction model."""
    if symbol in known:
        return known[symbol]
    for symmetric, sides in _STAND_INS.items():
        if symbol == symmetric and all(s in known for s in sides):
            return float(np.mean([known[s] for s in sides]))
        if symbol in sides and symmetric in known:
            return known[symmetric]
    return 0.0
