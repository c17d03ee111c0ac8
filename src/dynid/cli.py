"""The command line: thin, each command a call of the public functions."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.errors import DynidError

app = typer.Typer(
    name="dynid",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Robot dynamic identification: what a robot's parameters are, and what a recording can tell of them.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
RobotArgument = Annotated[str, typer.Argument(metavar="ROBOT", help="URDF, MJCF or TOML file, or a built-in name.")]


def main() -> None:
    """Run the command line; bad input ends with one line on standard error and exit code 1."""
    logging.basicConfig(format="dynid: %(message)s", level=logging.WARNING, stream=sys.stderr)
    try:
        app(standalone_mode=True)
    except DynidError as error:
        print(f"dynid: {error}", file=sys.stderr)
        sys.exit(1)


@app.command()
def robots(as_json: Json = False) -> None:
    """List the built-in robots.

    Example: dynid robots
    """
    from dynid.robot.load import builtin_robots

    found = builtin_robots()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    width = max(map(len, found))
    for name, description in found.items():
        print(f"{name:<{width}}  {description}")


@app.command()
def inspect(
    robot: RobotArgument,
    base: Annotated[bool, typer.Option("--base", help="Also the base parameters, expression by expression.")] = False,
    as_json: Json = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the robot and its parameters into this SVG file.")] = None,
    friction: Annotated[
        str | None, typer.Option(help="Joint friction, e.g. viscous+coulomb+offset, or none. [file's own]")
    ] = None,
    rotor_inertia: Annotated[
        bool | None, typer.Option("--rotor-inertia/--no-rotor-inertia", help="Model rotor inertias. [file's own]")
    ] = None,
    base_kind: Annotated[
        str | None, typer.Option(help="fixed, floating, or instrumented (base wrench measured). [file's own]")
    ] = None,
    gravity: Annotated[
        tuple[float, float, float] | None, typer.Option(help="Gravity vector in the base frame, m/s2.")
    ] = None,
    channels: Annotated[
        str | None, typer.Option(help="Measured channels: torque, wrench, or names separated by commas. [all]")
    ] = None,
    method: Annotated[str, typer.Option(help="left-to-right, pivoted or recursive.")] = "left-to-right",
) -> None:
    """Show what a robot is: tree, parameters, limits, base parameters, and which inertias are impossible.

    Example: dynid inspect tx40 --base --figure tx40.svg
    """
    from dynid.identify.base import base_parameters
    from dynid.report.inspection import inspection_data, print_inspection
    from dynid.robot.load import load_robot

    machine = load_robot(
        robot,
        friction=friction,
        rotor_inertia=rotor_inertia,
        base=base_kind,  # type: ignore[arg-type]
        gravity=gravity,
    )
    names = channels.split(",") if channels and "," in channels else channels
    groups = base_parameters(machine, channels=names, method=method)  # type: ignore[arg-type]
    if as_json:
        print(json.dumps(inspection_data(machine, groups), indent=2))
    else:
        print_inspection(machine, groups, expressions=base)
    if figure is not None:
        from dynid.report.figure import robot_figure

        _write(figure, robot_figure(machine, groups))


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which study; all of them if left out.")] = None,
    as_json: Json = False,
    failed_only: Annotated[bool, typer.Option("--failed-only", help="Print only figures out of tolerance.")] = False,
) -> None:
    """Recompute published figures and print each beside ours; fails if one is out of its tolerance.

    Example: dynid reproduce structure
    """
    from dynid.report.reproduction import print_study
    from dynid.reproduce.study import find_study, studies

    chosen = [find_study(name)] if name else list(studies().values())
    out: list[dict[str, Any]] = []
    failures = 0
    for study in chosen:
        figures = list(study.run())
        failures += sum(not f.ok for f in figures)
        if as_json:
            out += [{"study": study.name, **vars(f), "ok": f.ok} for f in figures]
        else:
            print_study(study, figures, failed_only)
    if as_json:
        print(json.dumps(out, indent=2))
    if failures:
        raise typer.Exit(1)


def _write(path: Path, text: str) -> None:
    """Write a file, or say in one line why it cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DynidError(f"cannot write '{path}': {error.strerror}") from None
    print(f"wrote {path}", file=sys.stderr)
