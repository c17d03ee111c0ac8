"""Residual torques learned on top of an estimate."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, write, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_estimate
from dynid.errors import TooFew

if TYPE_CHECKING:
    from dynid.recording.recording import Recording
    from dynid.residual.residual import Residual


@app.command()
@with_estimate
def compensate(
    inputs: Inputs,
    data: options.Data = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A predictor (.npz), or a folder for its C code (no suffix)."),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            help="se, ard, matern32, matern52, exponential, rational-quadratic (the last four also with -iso), "
            "friction, own, load, joined by +; auto chooses."
        ),
    ] = "auto",
    gp_method: Annotated[str, typer.Option(help="auto, exact, subset, sparse or local.")] = "auto",
    points: Annotated[
        int | None, typer.Option(help="Points of a subset, sparse or local model. [1000, 200, 200]")
    ] = None,
    noise_model: Annotated[
        str, typer.Option(help="even, or reversal: larger noise where a joint changes direction.")
    ] = "even",
    rigid: Annotated[str, typer.Option(help="fixed, prior (estimated together) or none (no rigid model).")] = "fixed",
    bound: Annotated[
        float | None, typer.Option(help="Largest learned torque in N m or N. [largest error seen]")
    ] = None,
    seed: options.Seed = 0,
    untrusted: options.Untrusted = False,
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Learn the residual torques of an estimate, show the gain on other motion, and write a predictor.

    Without validation logs the last of several logs is held out to measure the gain, and then learned from too.

    Example: dynid compensate estimate.json run1.csv --validate run3.csv -o p.npz
    """
    from dynid.export.label import label_of
    from dynid.residual.fit import fit_residual
    from dynid.residual.training import Training

    check_outputs(output, figure)
    estimate = inputs.estimate
    assert estimate is not None
    label = None if output is None else label_of(estimate, untrusted)
    training = Training(method=gp_method, points=points, seed=seed)

    def fit(part: Recording) -> Residual:
        setting: dict[str, Any] = {"kernel": kernel, "noise": noise_model, "rigid": rigid, "bound": bound}
        with working("learning the residual torques") as work:
            return fit_residual(estimate, part, training=training, progress=work.report, **setting)

    recording, unseen = inputs.read_split(validate, validate_share, validate_rows)
    if unseen is not None:
        residual = fit(recording)
        held_out, comparison = "held-out motion", residual.evaluate(unseen)
    elif len(recording.runs) > 1:
        shown, hidden = (replace(recording, runs=runs) for runs in (recording.runs[:-1], recording.runs[-1:]))
        held_out, comparison = f"'{recording.runs[-1].name}', held out", fit(shown).evaluate(hidden)
        residual = fit(recording)
    else:
        raise TooFew(
            "one log leaves no motion to validate on: give more logs, --validate or --validate-share", "validate"
        )
    if output is not None:
        predictor = residual.predictor(notes=() if label is None else label.lines())
        if output.suffix == ".npz":
            predictor.save(output)
        else:
            predictor.to_c(output)
        wrote(output)
        for warning in () if label is None else label.warnings:
            print(f"dynid: {warning}", file=sys.stderr)
    if figure is not None:
        from dynid.report.torques import torque_figure

        write(figure, torque_figure(comparison.compensated, f"{inputs.robot.name}, compensated, {held_out}"))
    if as_json:
        print(json.dumps({"joints": comparison.to_dict(), "notes": list(residual.notes)}, indent=2))
    else:
        show(residual.summary())
        show(f"torque errors on {held_out}:")
        show(comparison.summary())
