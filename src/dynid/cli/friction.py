"""Friction of joints: several models fitted, one selected per joint, saved, validated and drawn over velocity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, write, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import required
from dynid.cli.progress import working
from dynid.cli.report import conclude, judged, result_page
from dynid.cli.wrap import with_friction
from dynid.errors import DamagedFile, MissingArgument, NotApplicable, WrongFormat

if TYPE_CHECKING:
    from dynid.recording.recording import Recording


@app.command()
@with_friction
def friction(
    inputs: Inputs,
    data: options.Data = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the selection into this file (.json).")
    ] = None,
    joint: Annotated[str | None, typer.Option(help="Name of the joint. [all of them, one after the other]")] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Models separated by commas, each of words joined by +: coulomb, viscous, asymmetric, stribeck, "
            "stribeck-shaped, load, load-directional, temperature, temperature-exponential, tanh, sigmoid, power, "
            "quadratic. [coulomb+viscous, asymmetric, tanh, sigmoid, stribeck, power, load, stribeck+load]"
        ),
    ] = None,
    selection: Annotated[
        str | None, typer.Option(help="How the model is selected: f-test, aic, bic or cross-validation. [f-test]")
    ] = None,
    load: Annotated[
        str | None, typer.Option(help="Load that friction grows with: rigid (bodies) or gravity. [rigid]")
    ] = None,
    temperature: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with a header and one temperature in deg C per row of the log that is fitted, or validated "
            "with a saved selection."
        ),
    ] = None,
    level: Annotated[float | None, typer.Option(help="Significance level of the F tests. [0.05]")] = None,
    figure: options.Figure = None,
    report: options.ResultReport = None,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Fit friction models to joints beside all base parameters, and select one per joint.

    Friction terms are not negative. With validation logs the torques of other motion are predicted, also with a
    selection that was saved before (MODEL is its file).

    Example: dynid friction arm.urdf run.csv --joint joint2 --models coulomb+viscous,stribeck,load --figure friction.svg

    Example: dynid friction arm.urdf run1.csv --validate run3.csv -o friction.json

    Example: dynid friction friction.json --validate run3.csv
    """
    from dynid.friction.selection import select_friction

    wanted, page = required(require), result_page(report)
    check_outputs(output, figure, page)
    if output is not None and output.suffix != ".json":
        raise WrongFormat(
            f"a friction selection is written as JSON: name --output '{output.with_suffix('.json')}'", "output"
        )
    warmth = None if temperature is None else _column(temperature)
    saved = inputs.selection
    fitting: dict[str, Any] = {
        "models": None if models is None else [m.strip() for m in models.split(",")],
        "criterion": selection,
        "load": load,
        "level": level,
    }
    fitting = {name: value for name, value in fitting.items() if value is not None}
    if figure is not None and joint is None and (inputs.robot.n if saved is None else len(saved.fits)) > 1:
        raise MissingArgument("a figure shows one joint: name it with --joint", "joint")
    if saved is not None:
        if inputs.given or fitting or inputs.modelling:
            raise NotApplicable(
                "a saved selection is not fitted again: name other logs with --validate, and leave out the options of "
                "the robot and of the fit"
            )
        found = saved if joint is None else replace(saved, fits=(saved[joint],))
        unseen = _unseen(inputs, validate, validate_share, validate_rows)
    else:
        recording, unseen = inputs.read_split(validate, validate_share, validate_rows)
        if unseen is not None and warmth is not None:
            raise NotApplicable(
                "--temperature is that of the fitted log: write the selection with -o, then validate the file with the "
                "--temperature of the other log",
                "temperature",
            )
        fitting |= {"temperature": warmth, "signals": inputs.signals()}
        with working("fitting friction") as work:
            joints = None if joint is None else [joint]
            found = select_friction(inputs.robot, recording, joints, progress=work.report, **fitting)
    validation = None
    if unseen is not None:
        signals = inputs.signals() if inputs.cleaning or saved is None else None
        with working("validating"):
            validation = found.validate(unseen, signals=signals, temperature=warmth)
    if output is not None:
        found.save(output)
        wrote(output)
    if figure is not None:
        from dynid.report.friction import friction_figure

        write(figure, friction_figure(found.fits[0], f"{inputs.robot.name}, friction of {found.fits[0].joint}"))
    words = [] if saved is not None and validation is not None else [found.summary()]
    words += [] if validation is None else ["torque errors on held-out motion:", validation.summary()]
    shown = {"friction": found.to_dict(), "validation": None if validation is None else validation.to_dict()}
    conclude("\n".join(words), shown, judged(found, page, validation), page, wanted, as_json)


def _unseen(inputs: Inputs, validate: list[str] | None, share: float | None, rows: str | None) -> Recording | None:
    """The logs that a saved selection is validated on."""
    if share is not None:
        raise NotApplicable(
            "--validate-share holds out a part of the logs that friction is fitted to: give --validate",
            "validate_share",
        )
    logs = validate or inputs.validation_logs()
    if not logs and rows is not None:
        raise MissingArgument(
            "--validate-rows needs a log to validate the saved selection on: give --validate", "validate"
        )
    between = "format" if rows is None else values.row_range(rows, "--validate-rows")
    return inputs.read(logs, rows=between) if logs else None


def _column(path: Path) -> Any:
    """The last column of a CSV file."""
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except (OSError, ValueError) as error:
        raise DamagedFile(f"the temperatures of '{path}' cannot be read: {error}", "temperature") from None
    return table[:, -1]
