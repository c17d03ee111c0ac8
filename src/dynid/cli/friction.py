"""Friction of joints: several models fitted, one selected, drawn over velocity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs
from dynid.errors import DataError
from dynid.progress import Progress


@app.command()
@with_logs
def friction(
    inputs: Inputs,
    data: options.Data = None,
    joint: Annotated[str | None, typer.Option(help="Name of the joint. [all of them, one after the other]")] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Models separated by commas, each of words joined by +: coulomb, viscous, asymmetric, stribeck, "
            "stribeck-shaped, load, load-directional, temperature, temperature-exponential, tanh, sigmoid, power, "
            "quadratic. [coulomb+viscous, asymmetric, stribeck, power, load, stribeck+load]"
        ),
    ] = None,
    selection: Annotated[str, typer.Option(help="How the model is selected: f-test, aic or bic.")] = "f-test",
    load: Annotated[str, typer.Option(help="Load that friction grows with: rigid (bodies) or gravity.")] = "rigid",
    temperature: Annotated[
        Path | None, typer.Option(help="CSV file with a header and one temperature in deg C per row of the log.")
    ] = None,
    level: Annotated[float, typer.Option(help="Significance level of the F tests.")] = 0.05,
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Fit friction models to a joint beside all base parameters, select one, and draw it over velocity.

    Example: dynid friction arm.urdf run.csv --joint joint2 --models coulomb+viscous,stribeck,load --figure friction.svg
    """
    from dynid.friction.fit import fit_friction
    from dynid.report.friction import friction_figure

    check_outputs(figure)
    recording = inputs.read()
    joints = [joint] if joint is not None else list(inputs.robot.coordinates)
    if figure is not None and len(joints) > 1:
        raise DataError("a figure shows one joint: name it with --joint")
    given: dict[str, Any] = {
        "models": None if models is None else [m.strip() for m in models.split(",")],
        "criterion": selection,
        "load": load,
        "level": level,
        "temperature": None if temperature is None else _column(temperature),
        "signals": inputs.signals(),
    }
    fits = []
    with working("fitting friction") as work:
        for k, name in enumerate(joints):
            work.report(Progress(f"friction of {name}", k / len(joints)))
            fits.append(fit_friction(inputs.robot, recording, name, **given))
    if as_json:
        print(json.dumps([f.to_dict() for f in fits], indent=2))
    else:
        show("\n\n".join(f.summary() for f in fits))
    if figure is not None:
        write(figure, friction_figure(fits[0], f"{inputs.robot.name}, friction of {fits[0].joint}"))


def _column(path: Path) -> Any:
    """The last column of a CSV file."""
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except (OSError, ValueError) as error:
        raise DataError(f"the temperatures of '{path}' cannot be read: {error}") from None
    return table[:, -1]
