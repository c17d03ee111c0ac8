"""Closed loops that are simulated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_robot
from dynid.errors import DataError, MissingArgument

if TYPE_CHECKING:
    from dynid.robot.model import Robot


@app.command()
@with_robot
def simulate(
    inputs: Inputs,
    reference: Annotated[
        Path, typer.Option(help="Motion to follow: .toml from dynid excite, or a table with reference or positions.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Recording to write: .csv or .parquet.")],
    controller: options.Controller = None,
    duration: Annotated[float | None, typer.Option(help="Seconds of the motion. [all of it]")] = None,
    output_rate: options.OutputRate = None,
    position_noise: options.PositionNoise = "0",
    counts: Annotated[
        str | None, typer.Option(help="Encoder counts per revolution, one or one per joint. [no quantisation]")
    ] = None,
    velocity_cutoff: options.VelocityCutoff = None,
    torque_noise: options.TorqueNoise = None,
    control_delay: Annotated[int, typer.Option(min=0, help="Control periods between measuring and acting.")] = 0,
    integrator: options.Integrator = None,
    coulomb_slope: options.CoulombSlope = None,
    saturate: Annotated[bool, typer.Option("--saturate", help="Keep torques within the robot's limits.")] = False,
    stop_at_limits: Annotated[
        bool, typer.Option("--stop-at-limits", help="End where a position or velocity limit is passed.")
    ] = False,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Simulate a robot under its controller along a reference and write the log; exit code 1 if it stops early.

    The log has the controller's rate unless --output-rate is given.

    Example: dynid simulate tx40 --controller loop.toml --reference motion.csv --position-noise 1e-5 -o tx40.csv

    where loop.toml holds the controller:

    \b
    kind = "cascade"
    rate = 5000
    bandwidth = [10, 10, 10, 20, 20, 20]
    """
    from dynid.excitation.files import check_suffix
    from dynid.simulation.engine import simulate as run

    robot = inputs.robot
    check_suffix(output, (".csv", ".parquet"))
    check_outputs(output)
    sensors = {
        "noise": values.number_or_per_joint(position_noise, "--position-noise"),
        "counts": values.number_or_per_joint(counts, "--counts"),
        "torque_noise": values.number_or_per_joint(torque_noise, "--torque-noise"),
        "delay": control_delay,
    }
    loop = inputs.closed_loop(controller, velocity_cutoff, coulomb_slope, integrator, sensors=sensors)
    if loop is None or loop.controller is None:
        raise MissingArgument(
            "no controller is given: name its file with --controller, or in loop.controller of dynid.toml", "controller"
        )
    motion = _reference(reference, robot)
    with working("simulating") as work:
        done = run(
            robot,
            loop,
            motion,
            duration=duration,
            rate=output_rate,
            torque_limits="robot" if saturate else None,
            stop_at_limits=stop_at_limits,
            seed=seed,
            progress=work.report,
        )
    if len(done.t) > 1:
        recording = done.recording()
        (recording.to_csv if output.suffix == ".csv" else recording.to_parquet)(output)
        wrote(output)
    if as_json:
        print(json.dumps(done.to_dict(), indent=2))
    else:
        show(done.summary())
    if not done.completed:
        raise typer.Exit(1)


def _reference(path: Path, robot: Robot) -> Any:
    """The motion to follow: a saved motion, a log's reference, or the positions of a table that is not a log."""
    if path.suffix == ".toml":
        from dynid.excitation.excitation import Excitation

        return Excitation.from_toml(path, robot)
    from dynid.recording.load import load_recording

    try:
        recording = load_recording(path, robot)
    except DataError as error:  # positions that are planned are a signal of their own, not a log
        try:
            recording = load_recording({"q": path}, robot)
        except DataError:
            raise error from None
    run = recording.runs[0]
    if len(recording.runs) == 1 and run.reference is None and run.torque is None and run.current is None:
        return replace(run, reference=run.q)
    return recording
