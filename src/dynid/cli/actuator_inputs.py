"""Robot, law and unknowns of actuators, from options over the section [actuators] of the project file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dynid.cli import values
from dynid.cli.inputs import Inputs
from dynid.cli.resolve import locked
from dynid.errors import MissingArgument

if TYPE_CHECKING:
    from dynid.robot.actuator_law import ActuatorLaw
    from dynid.robot.model import Robot

__all__ = ["actuated_robot", "stated_law"]

# Quantities that are unknown unless the user names others; the law without gains, and what is unknown with it.
_UNKNOWN = "armature,damping,friction,delay"
_NO_GAINS, _GAINS = "pd", ",kp,kd"


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
    inputs: Inputs, robot: Robot, law: str | None, control_rate: float | None, hold: str | None, unknown: str | None
) -> tuple[ActuatorLaw, dict[str, str | list[str]]]:
    """The law and what is unknown, by options over the project file; a TOML file of the law lies beside that.

    Unknown quantities come with who shares them, from NAME, NAME=joint, NAME=shared or NAME=PATTERN;PATTERN.
    """
    from dynid.actuators.law_file import law_of_file, load_law
    from dynid.actuators.start_law import law_of_inertia

    if inputs.project is not None:
        chosen = inputs.project.actuators
        if law is None and chosen.law is not None:
            law = str(inputs.project.folder / chosen.law) if chosen.law.endswith(".toml") else chosen.law
        control_rate = chosen.control_rate if control_rate is None else control_rate
        hold = hold or chosen.hold
        unknown = unknown or ",".join(chosen.unknown or ())
    if not law:
        raise MissingArgument(
            "--law is missing: pd:20,1.5 for known gains, file for those of the MJCF file, pd for unknown ones"
        )
    if law == "file":
        stated = law_of_file(inputs.robot_file, robot.coordinates)
    else:
        stated = law_of_inertia(robot) if law == _NO_GAINS else load_law(law, robot.coordinates)
    changes = {"rate": control_rate, "hold": hold}
    stated = stated.changed(**{name: x for name, x in changes.items() if x is not None})
    quantities: dict[str, str | list[str]] = {}
    for part in values.names(unknown or _UNKNOWN + (_GAINS if law == _NO_GAINS else "")):
        name, _, sharing = part.partition("=")
        quantities[name] = sharing.split(";") if sharing not in ("", "joint", "shared") else sharing
    return stated, quantities
