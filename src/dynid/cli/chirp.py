"""Commands that are designed for logs of encoders alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from dynid.cli import options, values
from dynid.cli.actuator_inputs import actuated_robot, stated_law
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_robot
from dynid.errors import UnknownName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynid.robot.model import Robot


@app.command()
@with_robot
def chirp(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("-o", "--output", help="Time and commanded positions: .csv.")],
    law: options.Law = None,
    control_rate: options.ControlRate = None,
    hold: options.Hold = None,
    unknown: options.Unknown = None,
    amplitude: Annotated[
        str, typer.Option(help="Largest amplitude of the command, rad or m, one or one per joint.")
    ] = "0.3",
    duration: Annotated[float, typer.Option(help="Seconds of the command.")] = 20.0,
    start_posture: options.StartPosture = None,
    limits: options.LimitsOption = None,
    output_rate: options.OutputRate = None,
    position_noise: options.PositionNoise = "0.001",
    as_json: Json = False,
) -> None:
    """Design commands that show armature, friction and delay of actuators: no torques are measured.

    All joints follow chirps about a posture within their limits. Several frequencies and amplitudes are simulated with
    the law and the robot file; the one whose log would give the smallest standard deviations is written, with 200 rows
    per second unless --output-rate is given. Log the measured positions while it runs, then: dynid actuators ROBOT
    q=log.csv,reference=command.csv. In a folder with dynid.toml, its section [actuators] has the law and the unknowns.

    Example: dynid chirp arm.urdf --law pd:400,25 --amplitude 0.2 --duration 5 -o command.csv
    """
    from dynid.actuators.design import design_chirps
    from dynid.excitation.files import check_suffix

    check_suffix(output, (".csv",))
    check_outputs(output)
    robot, acceleration = _limited(actuated_robot(inputs), limits)
    given, quantities = stated_law(inputs, robot, law, control_rate, hold, unknown)
    start, rate = values.numbers(start_posture, "--start-posture"), 200.0 if output_rate is None else output_rate
    sizes = values.number_or_per_joint(amplitude, "--amplitude")
    noise = values.number_or_per_joint(position_noise, "--position-noise")
    for sentence in _remarks(robot):
        print(f"dynid: {sentence}", file=sys.stderr)
    with working("designing chirps") as work:
        design = design_chirps(
            robot,
            given,
            sizes,
            seconds=duration,
            rate=rate,
            unknown=quantities,
            noise=noise,
            start=start,
            acceleration=acceleration,
            progress=work.report,
        )
    design.to_csv(output)
    wrote(output)
    if as_json:
        print(json.dumps(design.to_dict(), indent=2))
    else:
        show(design.summary())


def _limited(robot: Robot, limits: str | None) -> tuple[Robot, NDArray[np.float64]]:
    """The robot with the given limits over its own, and the accelerations (n,) that commands may have."""
    from dynid.excitation.files import read_limits
    from dynid.excitation.limits import stated_limits

    within = stated_limits(robot, None if limits is None else read_limits(limits))
    for name in ("jerk", "power"):
        if np.isfinite(getattr(within, name)).any():
            raise UnknownName(
                f"--limits: chirps keep to lower, upper, velocity, acceleration and torque, not to {name}", "limits"
            )
    rows = zip(robot.coordinates, within.lower, within.upper, within.velocity, within.torque, strict=True)
    own = {name: {"position": (low, high), "velocity": v, "effort": torque} for name, low, high, v, torque in rows}
    return robot.with_limits(own), within.acceleration


def _remarks(robot: Robot) -> list[str]:
    """What the design assumes and its user may not."""
    out = []
    if robot.base != "fixed":
        out.append("the base is held fixed: hang the robot up so that nothing touches the ground")
    if not any(x.value for x in robot.drives if x.symbol in ("fv", "fc")):
        out.append("the robot file has no friction; friction hides small motion, so expect larger standard deviations")
    return out
