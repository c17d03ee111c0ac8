"""Flexible joints: stiffness, damping and motor inertia from encoders of motors and links, or of motors alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs
from dynid.errors import WrongFormat
from dynid.export.endings import ENDINGS


@app.command()
@with_logs
def flexible(
    inputs: Inputs,
    data: options.Data = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write the estimate into this file: .json (all of it), .toml, or a model file; MJCF has the springs.",
        ),
    ] = None,
    joints_flexible: Annotated[
        str | None,
        typer.Option(
            "--flexible", metavar="JOINTS", help="Flexible joints, separated by commas. [those with link encoders]"
        ),
    ] = None,
    sides: Annotated[
        str, typer.Option(help="Encoders to use: auto, both (motor and link) or motor (motor alone).")
    ] = "auto",
    link_friction: Annotated[
        str | None, typer.Option(help="Friction of links: viscous, coulomb, joined by +, or none. [viscous+coulomb]")
    ] = None,
    encoder_errors: Annotated[
        str | None,
        typer.Option(
            help="Errors of link encoders beside offsets: delay, eccentricity, joined by commas, or none. [found]"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Identify stiffness, damping and motor inertia of flexible joints, with bodies and frictions of both sides.

    Logs have motor positions (q), torques and link positions (link_q, as in q_link_joint1 or link_position_joint1).
    Without link positions the stiffness is found from the torques alone, where the motion shows it.

    Example: dynid flexible arm.urdf flexible1.csv --rotor-inertia --friction viscous+coulomb+offset
    --validate flexible2.csv -o joints.toml
    """
    from dynid.flexible import identify_flexible, write_flexible

    check_outputs(output)
    if output is not None and output.suffix not in ENDINGS:
        raise WrongFormat(
            f"the ending of --output '{output}' names no format: use one of {', '.join(ENDINGS)}", "output"
        )
    recording, unseen = inputs.read_split(validate, validate_share, validate_rows)
    settings: dict[str, Any] = {"joints": None if joints_flexible is None else _words(joints_flexible)}
    if link_friction is not None:
        settings["link_friction"] = link_friction
    if encoder_errors is not None:
        settings["encoder_errors"] = () if encoder_errors == "none" else _words(encoder_errors)
    with working("identifying flexible joints"):
        found = identify_flexible(inputs.robot, recording, sides=sides, signals=inputs.signals(), **settings)  # type: ignore[arg-type]
    validation = None
    if unseen is not None:
        with working("validating"):
            validation = found.validate(unseen)
    if output is not None:
        for warning in write_flexible(found, output):
            print(f"dynid: {warning}", file=sys.stderr)
        wrote(output)
    if as_json:
        shown = None if validation is None else validation.to_dict()
        print(json.dumps({"flexible": found.to_dict(), "validation": shown}, indent=2))
    else:
        show(found.summary())
        if validation is not None:
            show(validation.summary())


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]
