"""Sensors calibrated from recordings, on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs
from dynid.cli.progress import working
from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.robot.model import Robot


@app.command()
@options.with_logs
def calibrate(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    data: options.DataArgument,
    estimate: Annotated[
        str,
        typer.Option(
            help="What is unknown, joined by commas: delay, torque-gain, torque-offset, encoder-offset, tilt, "
            "velocity-gain, velocity-offset, wrench-delay, wrench-offset."
        ),
    ] = "delay",
    common: Annotated[
        str | None, typer.Option(help="Of these, one number for all joints: delay, torque-gain. [one a joint]")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Joints whose torque gain is known to be one, joined by commas.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the corrected recording here, .csv or .parquet."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the estimate that goes with the corrected recording here.")
    ] = None,
    cutoff: options.Cutoff = None,
    decimate: options.Decimate = None,
    min_velocity: Annotated[
        str | None, typer.Option(help="Rows of slower joints are left out: 0.05, or a share as 1%. [10%]")
    ] = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Find delays, gains and offsets of the sensors together with the robot's parameters; fails if it does not settle.

    Example: dynid calibrate arm.urdf run.csv --estimate delay,torque-gain --reference joint1 -o corrected.csv
    """
    from dynid.calibration.sensors.calibrate import calibrate_sensors

    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise DataError(f"a corrected recording is written as .csv or .parquet, not '{output.suffix}'")
    words = [w.strip().replace("-", "_") for w in estimate.split(",") if w.strip()]
    once = [w.strip().replace("-", "_") for w in (common or "").split(",") if w.strip()]
    lost = [w for w in once if w not in words]
    if lost:
        raise DataError(f"--common names '{lost[0]}', which --estimate does not")
    check_outputs(output, save)
    recording = read(data)
    print(f"dynid: {recording.samples} samples of {len(recording.runs)} runs", file=sys.stderr)
    with working("calibrating"):
        found = calibrate_sensors(
            machine,
            recording,
            {w: "common" if w in once else "all" for w in words},
            reference=None if reference is None else [x.strip() for x in reference.split(",")],
            signals=options.read_signals(cutoff, decimate, min_velocity or "10%", trim),
        )
    print(json.dumps(found.to_dict(), indent=2) if as_json else found.summary())
    if output is not None:
        mended = found.corrected(recording)
        mended.to_parquet(output) if output.suffix == ".parquet" else mended.to_csv(output)
        print(f"wrote {output}", file=sys.stderr)
    if save is not None:
        found.estimate.save(save)
        print(f"wrote {save}", file=sys.stderr)
    if not found.converged:
        print("dynid: the search did not settle", file=sys.stderr)
        raise typer.Exit(1)
