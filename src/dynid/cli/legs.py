"""Robots on their legs: identification with unknown contact forces."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, write, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import headline, show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs
from dynid.errors import MissingArgument, UnknownName
from dynid.saved import envelope, json_text, plain_data

if TYPE_CHECKING:
    from dynid.legs.contacts import Contact
    from dynid.legs.result import LegsEstimate


@app.command()
@with_logs(cleaning=())
def legs(
    inputs: Inputs,
    data: options.Data = None,
    feet: Annotated[
        str | None,
        typer.Option(metavar="FRAMES", help="Frames of the feet: FL_foot,FR_foot; left_sole:surface for flat feet."),
    ] = None,
    imu: Annotated[str | None, typer.Option(metavar="FRAME", help="Frame of the inertial unit. [base link]")] = None,
    radius: Annotated[float, typer.Option(help="Radius of ball feet whose frames are the centres, m.")] = 0.0,
    mass: options.Mass = None,
    method: Annotated[str, typer.Option(help="feasible (physically consistent) or wls.")] = "feasible",
    validate: options.Validate = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the result (.json) or the identified robot (.urdf, .xml, ...)."),
    ] = None,
    table: options.ParameterTable = False,
    as_json: Json = False,
) -> None:
    """Identify a robot on its legs from torques, encoders and an inertial unit; contact forces are unknown.

    The logs need the columns of an inertial unit (imu) and may have a contact schedule (contact:FRAME).

    Example: dynid legs dog.xml stand.csv --feet FL_foot,FR_foot,RL_foot,RR_foot --imu imu -o dog.urdf
    """
    from dynid.legs import identify_legs

    check_outputs(output)
    contacts = _contacts(feet, radius)
    recording = inputs.read()
    others = validate or inputs.validation_logs()
    unseen = inputs.read(others) if others else None
    with working(f"identifying {inputs.robot.name} on its legs"):
        found = identify_legs(
            inputs.robot,
            recording,
            contacts,
            method,  # type: ignore[arg-type]
            imu=imu,
            mass=_mass(inputs, method, mass),
        )
        validation = found.validate(unseen if unseen is not None else recording)
    if output is not None:
        _save(found, output, inputs.robot_file)
    if as_json:
        print(json.dumps(found.to_dict() | {"validation": validation.to_dict()}, indent=2))
    else:
        show(found.summary() if table else "\n".join([headline(found.estimate), *found.lines()]))
        show("\n".join(validation.lines(unseen is not None)))


def _mass(inputs: Inputs, method: str, given: str | None) -> float | None:
    """Mass of the robot from the option, or from the project file for a method that takes it."""
    from dynid.identification.estimators.registry import find_method

    if given is not None:
        return values.kilograms(given, "--mass")
    if inputs.project is None or "mass" not in find_method(method).option_names:
        return None
    return inputs.project.robot.mass


def _save(found: LegsEstimate, output: Path, robot_file: str) -> None:
    """Save what was found (.json), or write the identified robot in the format of the ending."""
    if output.suffix.lower() == ".json":
        write(output, json_text(plain_data(envelope("legs") | found.to_dict())) + "\n")
        return
    from dynid.export.model_file import write as write_model

    template = robot_file if robot_file.endswith(output.suffix) and output.suffix != ".toml" else None
    for warning in write_model(found.estimate, output, template=template):
        print(f"dynid: {warning}", file=sys.stderr)
    wrote(output)


def _contacts(feet: str | None, radius: float) -> list[Contact]:
    """Contacts from FRAME or FRAME:KIND, separated by commas."""
    from dynid.legs.contacts import Contact, ContactKind

    if not feet:
        raise MissingArgument("the feet are not known: give their frames, --feet FL_foot,FR_foot", "feet")
    out = []
    for part in feet.split(","):
        frame, _, kind = part.strip().partition(":")
        if kind and kind not in list(ContactKind):
            raise UnknownName(f"--feet {part}: a contact is {', '.join(ContactKind)}, got '{kind}'", "feet")
        what = ContactKind(kind or "point")
        out.append(Contact(frame=frame, kind=what, radius=radius if what is ContactKind.POINT else 0.0))
    return out
