"""Options that commands share: how robots are modelled, how logs are read, how signals are cleaned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete
from dynid.cli.progress import working
from dynid.errors import DataError

if TYPE_CHECKING:
    from dynid.recording.recording import Recording
    from dynid.robot.model import Robot
    from dynid.signals.settings import Signals

RobotArgument = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT", autocompletion=complete.robots, help="URDF, MJCF, SDF or TOML file, or a built-in name."
    ),
]
DataArgument = Annotated[
    list[str],
    typer.Argument(metavar="DATA", help="Log files, one run each; q=POS.csv,torque=CUR.csv for one file a signal."),
]
Friction = Annotated[
    str | None,
    typer.Option(
        autocompletion=complete.friction, help="Joint friction, e.g. viscous+coulomb+offset, or none. [file's own]"
    ),
]
RotorInertia = Annotated[
    bool | None, typer.Option("--rotor-inertia/--no-rotor-inertia", help="Model rotor inertias. [file's own]")
]
Gravity = Annotated[
    tuple[float, float, float] | None, typer.Option(help="Gravity vector in the base frame, m/s2. [file's own]")
]
Columns = Annotated[
    list[str] | None, typer.Option(help="Columns of a signal: q=pos_{i}, torque=7:14; may be repeated. [guessed]")
]
Units = Annotated[list[str] | None, typer.Option(help="Unit of a signal: q=deg, t=ms; may be repeated.")]
Scale = Annotated[list[str] | None, typer.Option(help="Factor of a signal: torque=2, or one a joint; may be repeated.")]
Sign = Annotated[list[str] | None, typer.Option(help="Sign of a signal: torque=-1, or one a joint; may be repeated.")]
Offset = Annotated[list[str] | None, typer.Option(help="Added to a signal: q=0,-1.57,0; SI units; may be repeated.")]
Joints = Annotated[str | None, typer.Option(help="Joints as the file names or numbers (from 0) them, in robot order.")]
Gain = Annotated[str | None, typer.Option(help="Drive gains in N m/A, one or one a joint: 10,10.7,8.5.")]
Rate = Annotated[float | None, typer.Option(help="Sampling rate in Hz of files without a time column.")]
MotorSide = Annotated[bool, typer.Option("--motor-side", help="Signals are on the motor side of the transmission.")]
Rows = Annotated[str | None, typer.Option(help="Rows of each file to use, START:STOP, counted from 0.")]
BadRows = Annotated[str, typer.Option(help="error, or split: drop unusable rows and cut the run there.")]
Cutoff = Annotated[str | None, typer.Option(help="Low-pass of positions in Hz, or none. [found from the data]")]
Decimate = Annotated[str | None, typer.Option(help="Parallel decimation in stages: 10,10, or none. [from the cut-off]")]
MinSpeed = Annotated[str | None, typer.Option(help="Rows of slower joints are left out: 0.05, or a share as 1%. [1%]")]
Figure = Annotated[Path | None, typer.Option(help="Draw measured against predicted torques into this SVG file.")]
LimitsOption = Annotated[
    str | None,
    typer.Option("--limits", help="Limits a joint pattern: a TOML or JSON file, or JSON itself. [the robot's own]"),
]
Trim = Annotated[float | None, typer.Option(help="Seconds left out at both ends of a run. [0.2]")]


_MODELLING = {"friction": (Friction, None), "rotor_inertia": (RotorInertia, None), "gravity": (Gravity, None)}
_READING = {
    "columns": (Columns, None),
    "units": (Units, None),
    "scale": (Scale, None),
    "sign": (Sign, None),
    "offset": (Offset, None),
    "gain": (Gain, None),
    "rate": (Rate, None),
    "motor_side": (MotorSide, False),
    "joints": (Joints, None),
    "rows": (Rows, None),
    "bad_rows": (BadRows, "error"),
}


def with_logs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its ROBOT argument and the options of how it is modelled and how logs are read.

    Instead of them it gets `machine`, the robot, `read`, a function from file names to a recording, and, if it asks
    for it, `robot`, the argument itself.
    """
    wanted = signature(command, eval_str=True).parameters
    own = [p for p in wanted.values() if p.name not in ("machine", "read", "robot")]
    shared = {"robot": (RobotArgument, Parameter.empty), **_MODELLING, **_READING}
    added = [Parameter(n, Parameter.KEYWORD_ONLY, default=d, annotation=a) for n, (a, d) in shared.items()]

    @wraps(command)
    def run(**given: Any) -> None:
        from dynid.robot.load import load_robot

        robot = given.pop("robot")
        machine = load_robot(robot, **{name: given.pop(name) for name in _MODELLING})
        reading = {name: given.pop(name) for name in _READING}
        if "robot" in wanted:
            given["robot"] = robot
        command(machine=machine, read=partial(read_recording, robot=machine, **reading), **given)

    parameters = [added[0], *(p.replace(kind=Parameter.KEYWORD_ONLY) for p in own), *added[1:]]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def read_recording(
    data: Sequence[str],
    robot: Robot,
    *,
    columns: Sequence[str] | None,
    units: Sequence[str] | None,
    scale: Sequence[str] | None,
    sign: Sequence[str] | None,
    offset: Sequence[str] | None,
    gain: str | None,
    rate: float | None,
    motor_side: bool,
    joints: str | None,
    rows: str | None,
    bad_rows: str,
) -> Recording:
    """The recording that the shared reading options describe."""
    from dynid.recording.load import load_recording

    def numbers(items: Sequence[str] | None, where: str) -> dict[str, Any] | None:
        return {k: _one_or_each(v, f"{where} {k}") for k, v in _pairs(items, where).items()} or None

    options: dict[str, Any] = {
        "columns": _pairs(columns, "--columns") or None,
        "units": _pairs(units, "--units") or None,
        "scale": numbers(scale, "--scale"),
        "sign": numbers(sign, "--sign"),
        "offset": numbers(offset, "--offset"),
        "gain": None if gain is None else _one_or_each(gain, "--gain"),
        "rate": rate,
        "motor_side": motor_side,
        "joints": None if joints is None else [int(x) if x.isdigit() else x for x in joints.split(",")],
        "bad_rows": bad_rows,
    }
    if rate is not None:
        options["time"] = None
    if rows is not None:
        options["rows"] = _range(rows)
    with working("reading"):
        return load_recording([_source(d) for d in data], robot, **options)


def read_feasible(constraints: str | None, prior_weight: str | None) -> dict[str, Any]:
    """Options of the feasible estimator that were given."""
    given: dict[str, Any] = {}
    if constraints is not None:
        given["constraints"] = constraints
    if prior_weight is not None:
        try:
            given["weight"] = prior_weight if prior_weight == "cv" else float(prior_weight)
        except ValueError:
            raise DataError(f"--prior-weight is a number or cv, got '{prior_weight}'") from None
    return given


def read_loop(controller: Path | None, velocity_cutoff: float | None, robot: Robot) -> dict[str, Any]:
    """The controller of a closed loop and the sensors it reads, as `identify` takes them."""
    if controller is None:
        if velocity_cutoff is not None:
            raise DataError("--velocity-cutoff is for a closed loop; give its --controller")
        return {}
    from dynid.simulation.controller_files import load_controller
    from dynid.simulation.sensors import Sensors

    return {"controller": load_controller(controller, robot), "sensors": Sensors(velocity_cutoff=velocity_cutoff)}


def read_signals(cutoff: str | None, decimate: str | None, min_velocity: str | None, trim: float | None) -> Signals:
    """The settings object that the shared signal options describe."""
    from dynid.signals.settings import Signals

    options: dict[str, Any] = {}
    if cutoff is not None:
        options["cutoff"] = None if cutoff == "none" else _number(cutoff, "--cutoff")
    if decimate is not None:
        stages = () if decimate == "none" else tuple(int(x) for x in _numbers(decimate, "--decimate"))
        options["decimate"] = stages
    if min_velocity is not None:
        options["min_velocity"] = (
            min_velocity if min_velocity.endswith("%") else _one_or_each(min_velocity, "--min-velocity")
        )
    if trim is not None:
        options["trim"] = trim
    return Signals(**options)


def read_numbers(text: str | None, where: str) -> list[float] | None:
    """Numbers separated by commas, where there are any."""
    return None if text is None else _numbers(text, where)


def read_one_or_each(text: str | None, where: str) -> float | tuple[float, ...]:
    """One number for all joints or one a joint; 0 where the option is left out."""
    return 0.0 if text is None else _one_or_each(text, where)


def read_reference(path: Path, robot: Robot) -> Any:
    """What a controller follows: a saved motion, a log's reference, or the positions of a table that is no log."""
    if path.suffix == ".toml":
        from dynid.excitation.excitation import Excitation

        return Excitation.from_toml(path, robot)
    from dynid.recording.load import load_recording

    recording = load_recording(path, robot)
    run = recording.runs[0]
    if len(recording.runs) == 1 and run.reference is None and run.torque is None and run.current is None:
        return replace(run, reference=run.q)
    return recording


def _source(text: str) -> str | dict[str, Path]:
    """A path, or a mapping from signal to path written as q=A,torque=B."""
    if "=" not in text or Path(text).exists():
        return text
    return {k: Path(v) for k, v in _pairs(text.split(","), "DATA").items()}


def _pairs(items: Sequence[str] | None, where: str) -> dict[str, str]:
    out = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise DataError(f"{where} takes SIGNAL=VALUE, got '{item}'")
        out[key] = value
    return out


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{where} takes a number, got '{text}'") from None


def _numbers(text: str, where: str) -> list[float]:
    return [_number(part, where) for part in text.split(",")]


def _one_or_each(text: str, where: str) -> float | tuple[float, ...]:
    """One number for all joints, or one a joint."""
    numbers = _numbers(text, where)
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _range(text: str) -> tuple[int | None, int | None]:
    start, colon, stop = text.partition(":")
    if not colon or not all(x.isdigit() or not x for x in (start, stop)):
        raise DataError(f"--rows takes START:STOP, got '{text}'")
    return (int(start) if start else None, int(stop) if stop else None)
