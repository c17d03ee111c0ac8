"""The record of a simulator: its places for the quantities of an actuator, and the text of its file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dynid.export.simulators.properties import ActuatorProperty, Losses, loss_sentences
from dynid.export.simulators.values import Actuators, JointActuator
from dynid.export.xmltext import XmlText, comment_text
from dynid.quoting import one_line

__all__ = [
    *("SimulatorTarget", "Written", "brake_limit", "expression", "grouped", "head", "literal", "python_comment"),
    *("utf8_text", "whole_steps", "xml_comment"),
]

_WIDTH = 110
_UNITS = "Units: rad, s, N m, N m/rad, N m s/rad, kg m2; for joints that translate m, s, N, N/m, N s/m, kg."
# How each number follows from those of the law and the drive terms of dynid.
_EXPLAINED = {
    ActuatorProperty.KP: "kp times the gain of the law",
    ActuatorProperty.KD: "kd times the gain of the law; no friction, which is passive and apart",
    ActuatorProperty.BIAS: "measured minus true position; measured position = simulated position + bias",
    ActuatorProperty.DELAY: "time from a command to its effect",
    ActuatorProperty.TORQUE_LIMIT: "largest torque of the law",
    ActuatorProperty.MOTOR_LINE: "torque at rest, which decreases in a line to zero at the velocity without load",
    ActuatorProperty.BACK_EMF: "torque per velocity behind the torque limit, which acts as viscous friction does",
    ActuatorProperty.ARMATURE: "Ia, the inertia of the rotor times the gear ratio squared, felt at the joint",
    ActuatorProperty.VISCOUS: "fv, friction torque per velocity of the joint",
    ActuatorProperty.COULOMB: "fc, friction torque that does not depend on velocity",
    ActuatorProperty.STRIBECK: "fs, friction torque at rest beyond Coulomb friction",
    ActuatorProperty.SPRING: "k, torque per angle",
}


class Written(NamedTuple):
    """Text of a file, what it does not hold, and warnings about the rest of its model.

    Attributes
    ----------
    text : str
        The text.
    lost : tuple of Loss
        What it does not hold.
    warnings : tuple of str
        Warnings about the rest of the model.
    """

    text: str
    lost: Losses
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SimulatorTarget:
    """A simulator that actuators are written for.

    Attributes
    ----------
    name : str
        Name by which it is chosen: that of its module, or of its entry point in the group `dynid.simulators`.
    words : str
        Name in words.
    about : str
        What its file is, in one sentence.
    ending : str
        Ending of its file.
    places : mapping of ActuatorProperty to str
        Where a property is written; properties without a place are lost.
    write : callable
        Function (Actuators) that returns a `Written`.
    template : str, default ""
        Format of a model file that it may change ("MJCF", "URDF"); "" where its file is no model.
    missing : callable, optional
        Function (text, path, template) that returns warnings about files that the written one needs.
    """

    name: str
    words: str
    about: str
    ending: str
    places: Mapping[ActuatorProperty, str]
    write: Callable[[Actuators], Written]
    template: str = ""
    missing: Callable[[str, str | Path, str | Path | None], Iterable[str]] | None = None


def head(
    actuators: Actuators, words: str, places: Mapping[ActuatorProperty, str], lost: Losses, notes: Sequence[str] = ()
) -> list[str]:
    """Lines at the top of a file: the label of its estimate, units, what each number is, what is lost."""
    parts = [f"Actuators of '{actuators.robot.name}' for {words}, written by dynid."]
    parts += ["", *actuators.label.lines(), ""] if actuators.label is not None else []
    parts += [_UNITS]
    parts += [f"Physics step: {actuators.step:g} s.", "", "Numbers of the actuators:"]
    parts += [f"- {k.what} ({_EXPLAINED[k.what]}): {k.place}" for k in actuators.kept(places)]
    parts += ["", *notes] if notes else []
    parts += ["", f"What {words} cannot hold:"]
    parts += [f"- {sentence}" for sentence in loss_sentences(lost)] or ["- nothing is lost"]
    return [one_line(line) for part in parts for line in _wrapped(part)]


def _wrapped(text: str) -> list[str]:
    """Lines of a paragraph; those of an item of a list are indented."""
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  " if text.startswith("- ") else "") or [""]


def python_comment(lines: Sequence[str]) -> str:
    return "\n".join(f"# {line}".rstrip() for line in lines) + "\n"


def xml_comment(lines: Sequence[str]) -> str:
    """A comment of several lines."""
    text = comment_text("\n".join(lines))
    return f"<!--\n{text}\n-->\n"


def utf8_text(file: XmlText) -> str:
    """The changed file as text that is written in UTF-8, whatever encoding it declared before."""
    return re.sub(r"""^(<\?xml[^>]*?encoding\s*=\s*["'])[^"']*""", r"\1utf-8", file.text())


def literal(value: object) -> str:
    """A value as Python source."""
    if isinstance(value, float):
        return 'float("inf")' if value == float("inf") else repr(value + 0.0)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(literal, value)) + ("," if isinstance(value, tuple) and len(value) == 1 else "")
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return '"' + repr(value)[1:-1].replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def expression(name: str) -> str:
    """A regular expression that a name alone matches."""
    return name if re.fullmatch(r"\w+", name) else re.escape(name)


def grouped(
    joints: Sequence[JointActuator], key: Callable[[JointActuator], tuple[object, ...]]
) -> list[list[JointActuator]]:
    """Joints with the same key, in the order of the first of each group."""
    groups: dict[tuple[object, ...], list[JointActuator]] = {}
    for joint in joints:
        groups.setdefault(key(joint), []).append(joint)
    return list(groups.values())


def brake_limit(joint: JointActuator) -> float:
    """Torque limit of a DC motor beside its line: where there is none, what it brakes with at its no-load velocity."""
    return min(joint.limit, 2.0 * joint.stall_torque) if joint.has_line else joint.limit


def whole_steps(joint: JointActuator, step: float) -> int:
    """Delay of a joint in whole steps of the simulation."""
    return round(joint.delay / step)
