"""What a file of a simulator may hold of an actuator, and what it loses, as codes with their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ActuatorProperty", "Kept", "Loss", "Losses", "Lost", "loss_sentences", "unit_of"]


class ActuatorProperty(StrEnum):
    """A property of an actuator: of its law, or of the drive of its joint."""

    KP = "proportional gain"
    KD = "derivative gain"
    BIAS = "encoder bias"
    DELAY = "command delay"
    TORQUE_LIMIT = "torque limit"
    MOTOR_LINE = "torque limit over velocity"
    BACK_EMF = "back-EMF"
    ARMATURE = "armature"
    VISCOUS = "viscous friction"
    COULOMB = "Coulomb friction"
    STRIBECK = "Stribeck friction"
    LOAD_FRICTION = "load friction"
    BACKLASH = "backlash"
    OFFSET = "torque offset"
    SPRING = "spring"


class Lost(StrEnum):
    """What a file does not hold. Codes named as a quantity: all of it. Other codes: a part of it."""

    KP = "kp"
    KD = "kd"
    BIAS = "bias"
    DELAY = "delay"
    TORQUE_LIMIT = "torque-limit"
    MOTOR_LINE = "motor-line"
    BACK_EMF = "back-emf"
    ARMATURE = "armature"
    VISCOUS = "viscous"
    COULOMB = "coulomb"
    STRIBECK = "stribeck"
    LOAD_FRICTION = "load-friction"
    BACKLASH = "backlash"
    OFFSET = "offset"
    SPRING = "spring"
    DELAY_PART = "delay-part"
    DELAYED_MEASUREMENT = "delayed-measurement"
    VELOCITY_TARGET = "velocity-target"
    STRIBECK_VELOCITY = "stribeck-velocity"
    VISCOUS_ASYMMETRY = "viscous-asymmetry"
    COULOMB_ASYMMETRY = "coulomb-asymmetry"
    COULOMB_SLOPE = "coulomb-slope"
    LIMIT_ORDER = "limit-order"
    RATE = "rate"
    OTHER_TERM = "other-term"


@dataclass(frozen=True)
class Loss:
    """Something that a file of a simulator does not hold.

    Attributes
    ----------
    code : Lost
        What it is.
    joint : str
        Joint that has it; empty for a property of the whole law.
    value : float
        Its value.
    unit : str
        Unit of the value.
    """

    code: Lost
    joint: str
    value: float
    unit: str


Losses = tuple[Loss, ...]


@dataclass(frozen=True)
class Kept:
    """Something that a file of a simulator holds.

    Attributes
    ----------
    what : ActuatorProperty
        What it is.
    place : str
        Where it is written.
    """

    what: ActuatorProperty
    place: str


_UNITS = {
    ActuatorProperty.KP: ("N m/rad", "N/m"),
    ActuatorProperty.KD: ("N m s/rad", "N s/m"),
    ActuatorProperty.BIAS: ("rad", "m"),
    ActuatorProperty.DELAY: ("s", "s"),
    ActuatorProperty.TORQUE_LIMIT: ("N m", "N"),
    ActuatorProperty.MOTOR_LINE: ("rad/s", "m/s"),
    ActuatorProperty.BACK_EMF: ("N m s/rad", "N s/m"),
    ActuatorProperty.ARMATURE: ("kg m2", "kg"),
    ActuatorProperty.VISCOUS: ("N m s/rad", "N s/m"),
    ActuatorProperty.COULOMB: ("N m", "N"),
    ActuatorProperty.STRIBECK: ("N m", "N"),
    ActuatorProperty.LOAD_FRICTION: ("1", "1"),
    ActuatorProperty.BACKLASH: ("rad", "m"),
    ActuatorProperty.OFFSET: ("N m", "N"),
    ActuatorProperty.SPRING: ("N m/rad", "N/m"),
}

_SENTENCES = {
    Lost.KP: "The proportional gain is left out",
    Lost.KD: "The derivative gain is left out",
    Lost.BIAS: "The encoder bias is left out: subtract it from commands and add it to positions that are measured",
    Lost.DELAY: "The delay of commands is left out: delay the commands where they are made",
    Lost.TORQUE_LIMIT: "The torque limit is left out",
    Lost.MOTOR_LINE: "The torque limit does not decrease with velocity; velocity without load",
    Lost.BACK_EMF: "The torque that is lost with velocity (back-EMF) is left out",
    Lost.ARMATURE: "The inertia of the rotor is left out: the joint accelerates more easily than the real one",
    Lost.VISCOUS: "Viscous friction is left out",
    Lost.COULOMB: "Coulomb friction is left out: the joint does not stick",
    Lost.STRIBECK: "Stribeck friction is left out: friction at rest is Coulomb friction alone",
    Lost.LOAD_FRICTION: "Friction in proportion to the torque is left out",
    Lost.BACKLASH: "Backlash is left out",
    Lost.OFFSET: "The torque offset is left out",
    Lost.SPRING: "The spring is left out",
    Lost.DELAY_PART: "The delay is rounded to steps of the simulation; real minus written delay",
    Lost.DELAYED_MEASUREMENT: "Commands alone are delayed, measurements are not",
    Lost.VELOCITY_TARGET: "The derivative gain acts on the velocity of the command too: command velocities as well",
    Lost.STRIBECK_VELOCITY: "Friction at rest is higher, but does not fade with velocity; Stribeck velocity",
    Lost.VISCOUS_ASYMMETRY: "Viscous friction is the mean of both directions; half of their difference",
    Lost.COULOMB_ASYMMETRY: "Coulomb friction is the mean of both directions; half of their difference",
    Lost.COULOMB_SLOPE: "Coulomb friction is a step at zero velocity, not smooth; slope",
    Lost.LIMIT_ORDER: "Back-EMF acts after the torque limit over velocity, not before it",
    Lost.RATE: "The law is computed in every step of the simulation; its own rate",
    Lost.OTHER_TERM: "A drive term that no joint of a simulator has is left out",
}


def unit_of(quantity: ActuatorProperty, linear: bool) -> str:
    """Unit of a quantity, of a joint that translates where `linear` is true."""
    return _UNITS[quantity][linear]


def loss_sentences(losses: Iterable[Loss]) -> list[str]:
    """One sentence per code, with the joints and their values.

    Parameters
    ----------
    losses : iterable of Loss
        What is lost.

    Returns
    -------
    list of str
    """
    by_code: dict[Lost, dict[str, list[str]]] = {}
    for loss in losses:
        words = f"{loss.value:.4g} {loss.unit}" if loss.unit != "1" else f"{loss.value:.4g}"
        by_code.setdefault(loss.code, {}).setdefault(words, []).append(loss.joint)
    out = []
    for code, values in by_code.items():
        parts = [f"{words} of {', '.join(joints)}" if all(joints) else words for words, joints in values.items()]
        out.append(f"{_SENTENCES[code]} ({'; '.join(parts)}).")
    return out
