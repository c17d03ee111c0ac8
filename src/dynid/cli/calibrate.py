"""Sensors calibrated from recordings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs
from dynid.errors import ConflictingArguments, WrongFormat


@app.command()
@with_logs(cleaning=("cutoff", "decimate", "min_velocity", "trim"))
def calibrate(
    inputs: Inputs,
    data: options.Data = None,
    estimate: Annotated[
        str,
        typer.Option(
            help="What is unknown, separated by commas: delay, torque-gain, torque-offset, encoder-offset, tilt, "
            "velocity-gain, velocity-offset, wrench-delay, wrench-offset."
        ),
    ] = "delay",
    common: Annotated[
        str | None, typer.Option(help="Of these, one value for all joints: delay, torque-gain. [one per joint]")
    ] = None,
    reference_joints: Annotated[
        str | None, typer.Option(help="Joints whose torque gain is known to be one, separated by commas.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the corrected recording here, .csv or .parquet."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the estimate that goes with the corrected recording here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Calibrate delays, gains and offsets of the sensors together with the robot's parameters.

    Exit code 1 if the calibration does not converge. --min-velocity is 10% where it is left out.

    Example: dynid calibrate arm.urdf run.csv --estimate delay,torque-gain --reference-joints joint1 -o corrected.csv
    """
    from dynid.calibration.sensors.calibrate import calibrate_sensors

    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise WrongFormat(f"a corrected recording is written as .csv or .parquet, not '{output.suffix}'", "output")
    unknown = [x.replace("-", "_") for x in values.names(estimate)]
    once = [x.replace("-", "_") for x in values.names(common)]
    missing = [x for x in once if x not in unknown]
    if missing:
        raise ConflictingArguments(f"--common names '{missing[0]}', which --estimate does not", "common")
    check_outputs(output, save)
    recording = inputs.read()
    print(f"dynid: {recording.samples} samples of {len(recording.runs)} runs", file=sys.stderr)
    with working("calibrating"):
        found = calibrate_sensors(
            inputs.robot,
            recording,
            {x: "common" if x in once else "all" for x in unknown},
            reference=None if reference_joints is None else values.names(reference_joints),
            signals=inputs.signals(min_velocity="10%"),
        )
    if output is not None and found.converged:  # a log is not corrected by what was not found
        corrected = found.corrected(recording)
        corrected.to_parquet(output) if output.suffix == ".parquet" else corrected.to_csv(output)
        wrote(output)
    if save is not None:
        found.estimate.save(save)
        wrote(save)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        show(found.summary())
    if not found.converged:
        print("dynid: the calibration did not converge", file=sys.stderr)
        raise typer.Exit(1)
