"""Robot, law and unknowns of actuators, from options over the section [actuators] of the project file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dynid.cli import values
from dynid.cli.inputs import Inputs
from dynid.cli.resolve import locked
from dynid.errors import DataError

if TYPE_CHECKING:
    from dynid.actuators.law import ActuatorLaw
    from dynid.robot.model import Robot

__all__ = ["actuated_robot", "stated_law", "unknown_quantities"]

_UNKNOWN = "armature,damping,friction,delay"


def actuated_robot(inputs: Inputs) -> Robot:
    """The robot with armature, damping and friction of its file, unless options say otherwise; its notes are told."""
    robot = _robot(inputs)
    for note in robot.notes:
        print(f"note: {note}", file=sys.stderr)
    return robot


def _robot(inputs: Inputs) -> Robot:
    from dynid.robot.load import load_robot

    chosen = dict(inputs.modelling)
    if inputs.project is not None:
        section = inputs.project.robot.model_dump(exclude={"file"}, exclude_none=True)
        chosen = {name: value for name, value in section.items() if value not in ("auto", [], {})} | chosen
    if "friction" in chosen or "rotor_inertia" in chosen or not inputs.robot_file:
        return inputs.robot
    held = chosen.pop("lock", None)
    robot = load_robot(inputs.robot_file, **(chosen | {"friction": "viscous+coulomb", "rotor_inertia": True}))
    return robot if held is None else locked(robot, held)


def stated_law(
    inputs: Inputs, robot: Robot, law: str | None, control_rate: float | None, hold: str | None
) -> ActuatorLaw:
    """The law of the options, or that of the project file; a TOML file lies beside that."""
    from dynid.actuators.law_file import load_law

    if inputs.project is not None:
        chosen = inputs.project.actuators
        if law is None and chosen.law is not None:
            law = str(inputs.project.folder / chosen.law) if chosen.law.endswith(".toml") else chosen.law
        control_rate = chosen.control_rate if control_rate is None else control_rate
        hold = hold or chosen.hold
    if not law:
        raise DataError("--law is missing: the torques are not measured, so the law must be known, such as pd:20,1.5")
    changes = {"rate": control_rate, "hold": hold}
    return load_law(law, robot.coordinates).changed(**{name: x for name, x in changes.items() if x is not None})


def unknown_quantities(inputs: Inputs, text: str | None) -> dict[str, str | list[str]]:
    """Quantities and who shares them, from NAME, NAME=joint, NAME=shared or NAME=PATTERN;PATTERN."""
    if not text and inputs.project is not None:
        text = ",".join(inputs.project.actuators.unknown or ())
    out: dict[str, str | list[str]] = {}
    for part in values.names(text or _UNKNOWN):
        name, _, sharing = part.partition("=")
        out[name] = sharing.split(";") if sharing not in ("", "joint", "shared") else sharing
    return out
