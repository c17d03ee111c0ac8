"""What is unknown about actuators: quantities per joint, shared by groups of joints, or of the bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.rollouts import Directions
from dynid.errors import (
    ConflictingArguments,
    Duplicate,
    InvalidValue,
    MissingArgument,
    NotApplicable,
    UnknownName,
    did_you_mean,
)
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.patterns import matching_expression
from dynid.results import about
from dynid.robot.actuator_law import EARLY, ActuatorLaw
from dynid.robot.model import Robot

__all__ = [
    "DEFAULT_UNKNOWN",
    "ParameterSpace",
    "Quantity",
    "Unknown",
    "base_of",
    "parameter_space",
    "with_soft_friction",
]

Array = NDArray[np.float64]


class Quantity(StrEnum):
    """A quantity of actuators that can be identified."""

    ARMATURE = "armature"
    DAMPING = "damping"
    FRICTION = "friction"
    STRIBECK = "stribeck"
    OFFSET = "offset"
    BODIES = "bodies"
    KP = "kp"
    KD = "kd"
    GAIN = "gain"
    DELAY = "delay"
    TORQUE_LIMIT = "torque_limit"
    BACK_EMF = "back_emf"
    STALL_TORQUE = "stall_torque"
    NO_LOAD_VELOCITY = "no_load_velocity"
    BACKLASH = "backlash"
    LOAD_FRICTION = "load_friction"
    BIAS = "bias"
    FRICTION_LEAD = "friction_lead"
    FRICTION_WIDTH = "friction_width"


DEFAULT_UNKNOWN = ("armature", "damping", "friction", "delay")
# Quantities that are drive terms of the robot.
SYMBOLS = {
    Quantity.ARMATURE: "Ia",
    Quantity.DAMPING: "fv",
    Quantity.FRICTION: "fc",
    Quantity.STRIBECK: "fs",
    Quantity.OFFSET: "off",
}
_SIGNED = (Quantity.OFFSET, Quantity.BIAS, Quantity.BODIES)
# Units on a joint that rotates and on one that translates; drive terms and bodies have those of the robot.
_UNITS = {
    Quantity.KP: ("N m/rad", "N/m"),
    Quantity.KD: ("N m s/rad", "N s/m"),
    Quantity.GAIN: ("", ""),
    Quantity.DELAY: ("s", "s"),
    Quantity.TORQUE_LIMIT: ("N m", "N"),
    Quantity.BACK_EMF: ("N m s/rad", "N s/m"),
    Quantity.STALL_TORQUE: ("N m", "N"),
    Quantity.NO_LOAD_VELOCITY: ("rad/s", "m/s"),
    Quantity.BACKLASH: ("rad", "m"),
    Quantity.LOAD_FRICTION: ("", ""),
    Quantity.BIAS: ("rad", "m"),
    Quantity.FRICTION_LEAD: ("s", "s"),
    Quantity.FRICTION_WIDTH: ("rad/s", "m/s"),
}
# Stribeck friction fades at this share of the velocity that a joint exceeds during 5 % of the time.
_STRIBECK_SHARE = 0.1
# Standard deviations of soft friction that is not asked for: its lead (s), and its width as a share of the velocity
# that a joint exceeds during 5 % of the time.
_LEAD, _WIDTH_SHARE = 0.01, 0.01
_SLOWEST = 1e-3  # rad/s or m/s, least no-load velocity: zero has no meaning
_SHARED = "shared"
_JOINT = "joint"

Spec = Sequence[str] | Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Unknown:
    """One unknown number.

    Attributes
    ----------
    quantity : Quantity
    joints : tuple of str
        The joints that share it; empty for a parameter of the bodies.
    parameters : tuple of str
        Standard parameters of the robot that have this value; empty for a quantity of the law.
    unit : str
    group : str
        The pattern that joints share it by; empty for a single joint.
    expression : str
        The combination of standard parameters that the value is, where motion does not show one alone; or empty.
    scale : float
        Standard deviation about zero that is expected before the log is seen; infinite where nothing is known.
    """

    quantity: Quantity
    joints: tuple[str, ...]
    parameters: tuple[str, ...]
    unit: str
    group: str = ""
    expression: str = ""
    scale: float = field(default=np.inf, metadata=about("", stored=False))

    def __post_init__(self) -> None:
        if not (self.joints or self.parameters):
            raise InvalidValue("an unknown has joints or parameters", "joints")

    @property
    def label(self) -> str:
        """Name in tables: quantity and joint, the group, or the parameter, with an R where others are regrouped."""
        if self.quantity is Quantity.BODIES or self.expression:
            return f"{self.parameters[0]}{'R' if self.expression else ''}"
        if len(self.joints) == 1:
            return f"{self.quantity} of {self.joints[0]}"
        return f"{self.quantity} of {self.group}" if self.group else f"{self.quantity} of all joints"

    @property
    def least(self) -> float:
        """Least value that has a meaning."""
        if self.quantity is Quantity.NO_LOAD_VELOCITY:
            return _SLOWEST
        return -np.inf if self.expression or self.quantity in _SIGNED else 0.0


@dataclass(frozen=True, eq=False)
class ParameterSpace:
    """The unknown numbers of a robot and its law, and the map from their values to both.

    Attributes
    ----------
    robot : Robot
        With a drive term for every unknown that is one.
    law : ActuatorLaw
    unknowns : tuple of Unknown
    base : BaseParameters or None
        The combinations that unknown bodies stand for; None where the bodies are known.
    """

    robot: Robot
    law: ActuatorLaw
    unknowns: tuple[Unknown, ...]
    base: BaseParameters | None = None

    @cached_property
    def _columns(self) -> list[list[int]]:
        """Standard parameters of each unknown."""
        names = {name: k for k, name in enumerate(self.robot.parameter_names)}
        return [[names[p] for p in x.parameters] for x in self.unknowns]

    @cached_property
    def _joints(self) -> list[list[int]]:
        """Joints of each unknown."""
        return [[self.law.joints.index(j) for j in x.joints] for x in self.unknowns]

    @property
    def least(self) -> Array:
        """Least values; the lead of friction counts from the end of a step of a simulator."""
        return np.array(
            [
                -EARLY * (self.law.timestep or 0.0) if x.quantity is Quantity.FRICTION_LEAD else x.least
                for x in self.unknowns
            ]
        )

    @property
    def precision(self) -> Array:
        """Inverse of the standard deviations that are expected before the log is seen."""
        return np.array([1.0 / x.scale for x in self.unknowns])

    @property
    def values(self) -> Array:
        """Values in robot and law: the mean over the joints that share an unknown."""
        out = []
        for x, columns, joints in zip(self.unknowns, self._columns, self._joints, strict=True):
            at = self.robot.parameters[columns] if columns else getattr(self.law, x.quantity)[joints]
            out.append(float(np.mean(at)))
        return np.array(out)

    def applied(self, values: Array) -> tuple[Robot, ActuatorLaw]:
        """Robot and law with these values."""
        parameters, fields = self.at(values)
        return self.robot.with_parameters(parameters), self.law.changed(**fields)

    def at(self, values: Array) -> tuple[Array, dict[str, Array]]:
        """Standard parameters and the fields of the law that change, with these values."""
        parameters = np.array(self.robot.parameters)
        fields: dict[str, Array] = {}
        for x, columns, joints, value in zip(self.unknowns, self._columns, self._joints, values, strict=True):
            if columns:
                parameters[columns] = value
            else:
                fields.setdefault(str(x.quantity), np.array(getattr(self.law, x.quantity)))[joints] = value
        return parameters, fields

    @cached_property
    def rest(self) -> Array:
        """What the parameters that stay contribute to each unknown that is a combination, shape (C,)."""
        out = np.zeros(len(self.unknowns))
        if self.base is None:
            return out
        row = dict(zip(self.base.kept, self.base.matrix, strict=True))
        for i, (x, columns) in enumerate(zip(self.unknowns, self._columns, strict=True)):
            if x.expression:
                out[i] = row[columns[0]] @ self.robot.parameters - self.robot.parameters[columns[0]]
        return out

    @cached_property
    def directions(self) -> Directions:
        """Changes of the standard parameters and of the law per unit of every unknown."""
        count = len(self.unknowns)
        parameters = np.zeros((count, len(self.robot.parameters)))
        law: dict[str, Array] = {}
        for k, (x, columns, joints) in enumerate(zip(self.unknowns, self._columns, self._joints, strict=True)):
            if columns:
                parameters[k, columns] = 1.0
            else:
                law.setdefault(str(x.quantity), np.zeros((count, self.law.n)))[k, joints] = 1.0
        return Directions(parameters, law)


def parameter_space(robot: Robot, law: ActuatorLaw, unknown: Spec, velocity: Array) -> ParameterSpace:
    """The unknown numbers that a user names.

    Parameters
    ----------
    robot : Robot
    law : ActuatorLaw
    unknown : sequence of str, or mapping of str to str or sequence of str
        Quantities. A mapping says who shares them: "joint" (nobody), "shared" (all joints), or regular expressions
        that select groups of joints. Without it, delays are shared and everything else is per joint.
    velocity : array of shape (K, n)
        Velocities of the motion, which set the velocity at which Stribeck friction fades.

    Returns
    -------
    ParameterSpace
    """
    chosen = dict(unknown) if isinstance(unknown, Mapping) else dict.fromkeys(unknown, "")
    if isinstance(unknown, str) or not chosen:
        raise MissingArgument(
            "unknown names at least one quantity, such as ['armature', 'friction', 'delay']", "unknown"
        )
    unknowns: list[Unknown] = []
    for name, sharing in chosen.items():
        if name not in list(Quantity):
            raise UnknownName(
                f"unknown quantity '{name}'{did_you_mean(name, list(Quantity))}: use {', '.join(Quantity)}", "unknown"
            )
        quantity = Quantity(name)
        if quantity is not Quantity.BODIES:
            robot = _with_terms(robot, quantity, velocity)
            groups = _groups(robot, sharing or (_SHARED if quantity is Quantity.DELAY else _JOINT), name)
            unknowns += [_unknown(robot, quantity, joints, group) for group, joints in groups]
    base = None
    if Quantity.BODIES in chosen:
        base = base_of(robot, unknowns)
        unknowns = [*(_with_bodies(x, base) for x in unknowns), *_bodies(base)]
    return ParameterSpace(robot, _finite(law, robot, unknowns, velocity), tuple(unknowns), base)


def with_soft_friction(space: ParameterSpace, velocity: Array) -> ParameterSpace:
    """The unknowns, and last the softness of the friction that is unknown.

    A simulator with soft constraints inverts friction before the velocity changes its sign. Whoever takes that for hard
    friction finds it as armature: 3 to 7 % with the defaults of MuJoCo. Hard friction has a lead and a width of zero.
    """
    rubbing = {j for x in space.unknowns if x.quantity is Quantity.FRICTION for j in x.joints}
    widths = np.maximum(_WIDTH_SHARE * np.quantile(np.abs(velocity), 0.95, axis=0), 1e-6)
    scale = {j: float(w) for j, w in zip(space.law.joints, widths, strict=True)}
    lead, width = (_without(space, rubbing, q) for q in (Quantity.FRICTION_LEAD, Quantity.FRICTION_WIDTH))
    soft = [replace(_unknown(space.robot, Quantity.FRICTION_WIDTH, (j,), ""), scale=scale[j]) for j in width]
    if lead:  # over the motion of one joint, a lead has plateaus: in the steps of a simulator friction changes at once
        soft.append(replace(_unknown(space.robot, Quantity.FRICTION_LEAD, lead, ""), scale=_LEAD))
    return replace(space, unknowns=(*space.unknowns, *soft))


def _without(space: ParameterSpace, joints: set[str], quantity: Quantity) -> tuple[str, ...]:
    """Those of some joints whose quantity is not among the unknowns, in the order of the robot."""
    given = {j for x in space.unknowns if x.quantity is quantity for j in x.joints}
    return tuple(j for j in space.law.joints if j in joints - given)


def _with_terms(robot: Robot, quantity: Quantity, velocity: Array) -> Robot:
    """The robot with a term of this quantity on every joint."""
    if quantity not in SYMBOLS:
        return robot
    symbol, have = SYMBOLS[quantity], {(t.symbol, t.shaft) for t in robot.drives}
    added = []
    for k, joint in enumerate(robot.coordinates):
        if (symbol, joint) in have:
            continue
        twins = [t for t in robot.drives if t.shaft == joint and t.symbol in (f"{symbol}p", f"{symbol}n")]
        if twins:
            raise NotApplicable(
                f"joint '{joint}' has '{twins[0].symbol}': {quantity} is unknown for symmetric terms only", "unknown"
            )
        fast = float(np.quantile(np.abs(velocity[:, k]), 0.95))
        options = {"velocity": max(_STRIBECK_SHARE * fast, 1e-3)} if symbol == "fs" else {}
        added.append(robot.joint_term(k, symbol, 0.0, **options))
    return robot.with_terms(*added)


def _groups(robot: Robot, sharing: str | Sequence[str], name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Names and joints of the groups that share a quantity."""
    joints = robot.coordinates
    if sharing == _JOINT:
        return [("", (joint,)) for joint in joints]
    if sharing == _SHARED:
        return [("", tuple(joints))]
    groups: list[tuple[str, tuple[str, ...]]] = []
    seen: set[str] = set()
    for pattern in [sharing] if isinstance(sharing, str) else sharing:
        try:
            found = tuple(matching_expression(pattern, joints))
        except ValueError as error:
            raise InvalidValue(f"'{pattern}' for {name} is not a regular expression: {error}", name) from None
        if not found:
            raise UnknownName(f"no joint matches '{pattern}' for {name}; the joints are {', '.join(joints)}", name)
        twice = seen.intersection(found)
        if twice:
            raise Duplicate(f"joint '{min(twice)}' is in two groups of {name}", name)
        seen.update(found)
        groups.append((pattern, found))
    return groups


def _unknown(robot: Robot, quantity: Quantity, joints: tuple[str, ...], group: str) -> Unknown:
    parameters = tuple(f"{SYMBOLS[quantity]}_{j}" for j in joints) if quantity in SYMBOLS else ()
    if parameters:
        units = dict(zip(robot.parameter_names, (p.unit for p in robot.layout), strict=True))
        return Unknown(quantity, joints, parameters, units[parameters[0]], group)
    slides = {j.name for j in robot.joints if j.kind == "prismatic"}
    return Unknown(quantity, joints, (), _UNITS[quantity][joints[0] in slides], group)


def base_of(robot: Robot, others: Sequence[Unknown]) -> BaseParameters:
    """Base parameters in which unknown drive terms come first, so that the bodies leave them alone."""
    first = [p for x in others for p in x.parameters]
    drives = [p.name for p in robot.layout if not p.inertial and p.name not in first]
    return base_parameters(robot, channels="torque", order=[*first, *drives])


def _with_bodies(unknown: Unknown, base: BaseParameters) -> Unknown:
    """The unknown, with its combination where a base parameter groups it with parameters of bodies."""
    found = {name: text for name, text in _combinations(base).items() if name in unknown.parameters}
    if found and len(unknown.parameters) > 1:
        raise ConflictingArguments(
            f"{unknown.label}: motion shows '{next(iter(found))}' together with the bodies only, so joints cannot "
            f"share it while the bodies are unknown; let {unknown.quantity} be per joint",
            "unknown",
        )
    return replace(unknown, expression=next(iter(found.values()), ""))


def _combinations(base: BaseParameters) -> dict[str, str]:
    """The combination of every representative that does not stand alone, by its name."""
    names = base.robot.parameter_names
    rows = zip(base.kept, base.matrix, base.expressions, strict=True)
    return {names[k]: text for k, row, text in rows if np.count_nonzero(row) > 1}


def _bodies(base: BaseParameters) -> list[Unknown]:
    """Parameters of the bodies that, changed alone, reach every motion that other bodies could have.

    A base parameter changes by as much as the one standard parameter that it is named after, while all parameters that
    are grouped with it stay.
    """
    text, kept = _combinations(base), [base.robot.layout[k] for k in base.kept]
    return [
        Unknown(Quantity.BODIES, (), (p.name,), p.unit, expression=text.get(p.name, "")) for p in kept if p.inertial
    ]


def _finite(law: ActuatorLaw, robot: Robot, unknowns: Sequence[Unknown], velocity: Array) -> ActuatorLaw:
    """The law with finite start values of unknown limits."""
    values = {}
    fast = np.maximum(np.quantile(np.abs(velocity), 0.95, axis=0), 1e-3)
    efforts = np.array([robot.limits[c].effort for c in robot.coordinates])
    for quantity in {x.quantity for x in unknowns}:
        if quantity in (Quantity.TORQUE_LIMIT, Quantity.STALL_TORQUE):
            start = np.where(np.isfinite(efforts), efforts, law.kp * 0.1 + law.kd * fast)
        elif quantity is Quantity.NO_LOAD_VELOCITY:
            start = 3.0 * fast
        else:
            continue
        given = getattr(law, quantity)
        values[str(quantity)] = np.where(np.isfinite(given), given, start)
    return law.changed(**values) if values else law
