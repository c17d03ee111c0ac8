"""The numbers of an actuator as simulators have them: gains with their factor, and one friction value per kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.errors import InvalidValue, UnknownName
from dynid.export.label import Label
from dynid.export.simulators.properties import ActuatorProperty, Kept, Loss, Losses, Lost, unit_of
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.model import Robot

__all__ = ["Actuators", "JointActuator", "actuators_of"]

_DEFAULT_STEP = 0.001
_SAME_RATE = 0.01  # relative difference of two rates that are taken for one


@dataclass(frozen=True)
class JointActuator:
    """One joint: its law, whose gain is part of kp and kd, and its drive terms."""

    name: str
    linear: bool
    gain: float
    kp: float
    kd: float
    bias: float
    delay: float
    torque_limit: float
    stall_torque: float
    no_load_velocity: float
    back_emf: float
    backlash: float
    load_friction: float
    armature: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    stribeck: float = 0.0
    stribeck_velocity: float = 0.0
    offset: float = 0.0
    spring: float = 0.0
    viscous_asymmetry: float = 0.0
    coulomb_asymmetry: float = 0.0
    coulomb_slope: float = 0.0
    other_terms: tuple[DriveTerm, ...] = ()

    @property
    def has_line(self) -> bool:
        """Whether the torque limit decreases with velocity."""
        return bool(np.isfinite(self.stall_torque) and np.isfinite(self.no_load_velocity))

    @property
    def limit(self) -> float:
        """Torque limit that does not depend on velocity; infinite where there is none."""
        return self.torque_limit if self.has_line else min(self.torque_limit, self.stall_torque)

    @property
    def constant_limit(self) -> float:
        """Torque limit for a simulator whose limit does not depend on velocity."""
        return min(self.torque_limit, self.stall_torque)

    @property
    def damping(self) -> float:
        """Torque per velocity of the passive joint: viscous friction and back-EMF."""
        return self.viscous + self.back_emf

    def value(self, quantity: ActuatorProperty) -> float:
        """Value of a quantity, zero where the joint has none of it."""
        if quantity is ActuatorProperty.TORQUE_LIMIT:
            return self.limit if np.isfinite(self.limit) else 0.0
        if quantity is ActuatorProperty.MOTOR_LINE:
            return self.no_load_velocity if self.has_line else 0.0
        return float(getattr(self, quantity.name.lower()))

    def unit(self, quantity: ActuatorProperty) -> str:
        """Unit of a quantity."""
        return unit_of(quantity, self.linear)


@dataclass(frozen=True, eq=False)
class Actuators:
    """The actuators of a robot, the physics step (s), a model file to be changed, and the label of an estimate."""

    robot: Robot
    law: ActuatorLaw
    step: float
    joints: tuple[JointActuator, ...]
    template: Path | None = None
    allow_infeasible: bool = False
    label: Label | None = None

    def kept(self, places: Mapping[ActuatorProperty, str]) -> tuple[Kept, ...]:
        """What the file holds of what there is."""
        there = [q for q in ActuatorProperty if any(j.value(q) for j in self.joints)]
        return tuple(Kept(q, places[q]) for q in there if q in places)

    def losses(self, places: Mapping[ActuatorProperty, str], *, follows_velocity: bool = False) -> Losses:
        """What a file with these places does not hold; `follows_velocity` if kd acts on the error of the velocity."""
        out = [
            Loss(Lost[q.name], j.name, j.value(q), j.unit(q))
            for q in ActuatorProperty
            if q not in places
            for j in self.joints
            if j.value(q)
        ]
        for code, quantity in (
            (Lost.VISCOUS_ASYMMETRY, ActuatorProperty.VISCOUS),
            (Lost.COULOMB_ASYMMETRY, ActuatorProperty.COULOMB),
        ):
            if quantity in places:
                halves = [(j, float(getattr(j, code.name.lower()))) for j in self.joints]
                out += [Loss(code, j.name, half, j.unit(quantity)) for j, half in halves if half]
        for j in self.joints:
            if j.coulomb_slope and ActuatorProperty.COULOMB in places:
                out.append(Loss(Lost.COULOMB_SLOPE, j.name, j.coulomb_slope, "s/m" if j.linear else "s/rad"))
            out += [Loss(Lost.OTHER_TERM, t.name, t.value, t.unit) for t in j.other_terms if t.value]
        if ActuatorProperty.DELAY in places and self.law.delayed == "torque":
            late = [j for j in self.joints if j.delay]
            out += [Loss(Lost.DELAYED_MEASUREMENT, j.name, j.delay, "s") for j in late]
        if ActuatorProperty.KD in places and self.law.velocity_target == "command" and not follows_velocity:
            unit = ActuatorProperty.KD
            out += [Loss(Lost.VELOCITY_TARGET, j.name, j.kd, j.unit(unit)) for j in self.joints if j.kd]
        return tuple(out)

    def rate_loss(self, sampled: bool = True) -> Losses:
        """The rate of the law, where the simulator has another one or (not `sampled`) acts continuously."""
        rate = self.law.rate
        if rate is None or (sampled and abs(rate * self.step - 1) < _SAME_RATE):
            return ()
        return (Loss(Lost.RATE, "", rate, "Hz"),)

    def plain_robot(self, symbols: tuple[str, ...] = ("Ia", "fv", "fc")) -> Robot:
        """The robot with the drive terms that joints of a format have; the law alone limits the torque."""
        actuated = {j.name for j in self.joints}
        robot = self.robot
        other = [t for t in robot.drives if not t.motor and (t.shaft not in actuated or t.kind == TermKind.SPRING)]
        own = [
            robot.joint_term(j.name, symbol, value)
            for j in self.joints
            for symbol, value in (("Ia", j.armature), ("fv", j.damping), ("fc", j.coulomb))
            if symbol in symbols
        ]
        limits = {j.name: {"effort": j.limit} for j in self.joints}
        return replace(robot, drives=(*other, *own), transmission=None).with_limits(limits)


def actuators_of(
    robot: Robot,
    law: ActuatorLaw,
    step: float | None,
    template: str | Path | None,
    allow_infeasible: bool,
    label: Label | None = None,
) -> Actuators:
    """The actuators of a robot by its drive terms and its law."""
    if step is None:
        step = _DEFAULT_STEP if law.rate is None else 1.0 / law.rate
    if not (isinstance(step, int | float) and 0 < step < np.inf):
        raise InvalidValue(f"step is the positive time of a physics step (s), got {step!r:.40}", "step")
    unknown = [name for name in law.joints if name not in robot.coordinates]
    if unknown:
        raise UnknownName(
            f"the law has a joint '{unknown[0]}' that the robot does not move; its joints are "
            f"{', '.join(robot.coordinates)}"
        )
    joints = tuple(_joint(robot, law, name) for name in robot.coordinates if name in law.joints)
    path = None if template is None else Path(template)
    return Actuators(robot, law, float(step), joints, path, allow_infeasible, label)


def _joint(robot: Robot, law: ActuatorLaw, name: str) -> JointActuator:
    i = law.joints.index(name)
    gain = float(law.gain[i])
    kind = next(j.kind for j in robot.joints if j.name == name)
    own = [t for t in robot.drives if robot.tree_coordinates[t.owner] == name]
    plain = [t for t in own if _plain(t)]
    total: dict[str, float] = {}
    for term in plain:
        total[term.symbol] = total.get(term.symbol, 0.0) + term.value
    sides = {s: (total.get(f"{s}p", 0.0), total.get(f"{s}n", 0.0)) for s in ("fv", "fc")}
    return JointActuator(
        name=name,
        linear=kind == "prismatic",
        gain=gain,
        kp=gain * float(law.kp[i]),
        kd=gain * float(law.kd[i]),
        bias=float(law.bias[i]),
        delay=float(law.delay[i]),
        torque_limit=float(law.torque_limit[i]),
        stall_torque=float(law.stall_torque[i]),
        no_load_velocity=float(law.no_load_velocity[i]),
        back_emf=float(law.back_emf[i]),
        backlash=float(law.backlash[i]),
        load_friction=float(law.load_friction[i]),
        armature=total.get("Ia", 0.0),
        viscous=total.get("fv", 0.0) + 0.5 * sum(sides["fv"]),
        coulomb=total.get("fc", 0.0) + 0.5 * sum(sides["fc"]),
        stribeck=total.get("fs", 0.0),
        stribeck_velocity=max((t.velocity for t in plain if t.symbol == "fs"), default=0.0),
        offset=total.get("off", 0.0),
        spring=total.get("k", 0.0),
        viscous_asymmetry=0.5 * (sides["fv"][0] - sides["fv"][1]),
        coulomb_asymmetry=0.5 * (sides["fc"][0] - sides["fc"][1]),
        coulomb_slope=max((t.slope for t in plain if t.is_coulomb), default=0.0),
        other_terms=tuple(t for t in own if not _plain(t)),
    )


def _plain(term: DriveTerm) -> bool:
    """Whether a term acts on the joint that owns it alone, by a law that joints of simulators may have."""
    alone = np.array_equal(term.direction, np.eye(len(term.direction))[term.owner])
    return alone and term.function is None and not term.cross_only
