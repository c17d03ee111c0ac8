"""Friction of joints: fitted with several models, one chosen, drawn against speed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.progress import working
from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.robot.model import Robot


@app.command()
@options.with_logs
def friction(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    data: options.DataArgument,
    joint: Annotated[str | None, typer.Option(help="Name of the joint. [all of them, one after the other]")] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Models separated by commas, each of words joined by +: coulomb, viscous, asymmetric, stribeck, "
            "stribeck-shaped, load, load-directional, temperature, temperature-exponential, tanh, sigmoid, power, "
            "quadratic. [coulomb+viscous, asymmetric, stribeck, power, load, stribeck+load]"
        ),
    ] = None,
    criterion: Annotated[str, typer.Option(help="How the model is chosen: f-test, aic or bic.")] = "f-test",
    load: Annotated[str, typer.Option(help="Load that friction grows with: rigid (bodies) or gravity.")] = "rigid",
    temperature: Annotated[
        Path | None, typer.Option(help="CSV file of one temperature in deg C a row of the one log, with a header.")
    ] = None,
    level: Annotated[float, typer.Option(help="Significance level of the F tests.")] = 0.05,
    figure: Annotated[Path | None, typer.Option(help="Draw friction against speed into this SVG file.")] = None,
    cutoff: options.Cutoff = None,
    decimate: options.Decimate = None,
    min_velocity: options.MinSpeed = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Fit friction models to a joint beside all base parameters, choose one, and draw it against speed.

    Example: dynid friction arm.urdf run.csv --joint joint2 --models coulomb+viscous,stribeck,load --figure friction.svg
    """
    from dynid.friction.fit import fit_friction
    from dynid.report.friction import friction_figure

    check_outputs(figure)
    recording = read(data)
    joints = [joint] if joint is not None else list(machine.coordinates)
    if figure is not None and len(joints) > 1:
        raise DataError("a figure shows one joint: say which with --joint")
    given: dict[str, Any] = {
        "models": None if models is None else [m.strip() for m in models.split(",")],
        "criterion": criterion,
        "load": load,
        "level": level,
        "temperature": None if temperature is None else _column(temperature),
        "signals": options.read_signals(cutoff, decimate, min_velocity, trim),
    }
    fits = []
    with working("fitting friction") as work:
        for k, name in enumerate(joints):
            work.say(f"friction of {name} ...", k / len(joints), every=1.0)
            fits.append(fit_friction(machine, recording, name, **given))
    if as_json:
        print(json.dumps([f.to_dict() for f in fits], indent=2))
    else:
        print("\n\n".join(f.summary() for f in fits))
    if figure is not None:
        write(figure, friction_figure(fits[0], f"{machine.name}, friction of {fits[0].joint}"))


def _column(path: Path) -> Any:
    """The last column of a CSV file."""
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except (OSError, ValueError) as error:
        raise DataError(f"the temperatures of '{path}' cannot be read: {error}") from None
    return table[:, -1]
