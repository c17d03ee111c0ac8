"""What a robot is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.progress import working


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
    robot: options.RobotArgument,
    base: Annotated[bool, typer.Option("--base", help="Also the base parameters, expression by expression.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Also whether the model is usable: mass matrix, drives, a free fall.")
    ] = False,
    as_json: Json = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the robot and its parameters into this SVG file.")] = None,
    friction: options.Friction = None,
    rotor_inertia: options.RotorInertia = None,
    base_kind: Annotated[
        str | None, typer.Option(help="fixed, floating, or instrumented (base wrench measured). [file's own]")
    ] = None,
    gravity: options.Gravity = None,
    channels: Annotated[
        str | None, typer.Option(help="Measured channels: torque, wrench, or names separated by commas. [all]")
    ] = None,
    method: Annotated[str, typer.Option(help="left-to-right, pivoted or recursive.")] = "left-to-right",
) -> None:
    """Show what a robot is: tree, parameters, limits, base parameters, and which inertias are impossible.

    Example: dynid inspect tx40 --base --figure tx40.svg
    """
    from dynid.parameters.base import base_parameters
    from dynid.report.inspection import inspection_data, print_inspection
    from dynid.robot.load import load_robot

    check_outputs(figure)
    machine = load_robot(
        robot,
        friction=friction,
        rotor_inertia=rotor_inertia,
        base=base_kind,  # type: ignore[arg-type]
        gravity=gravity,
    )
    names = channels.split(",") if channels and "," in channels else channels
    with working("finding the base parameters"):
        groups = base_parameters(machine, channels=names, method=method)  # type: ignore[arg-type]
    found = None
    if audit:
        from dynid.assessment.model.physical import audit as examine

        with working("trying the model at 10000 poses and letting it fall"):
            found = examine(machine)
    if as_json:
        print(json.dumps(inspection_data(machine, groups, found), indent=2))
    else:
        print_inspection(machine, groups, expressions=base, audit=found)
    if figure is not None:
        from dynid.report.figure import robot_figure

        write(figure, robot_figure(machine, groups))


@app.command()
def human(
    sex: Annotated[str, typer.Option(help="male or female.")] = "male",
    height: Annotated[float, typer.Option(help="Height of the body, m.")] = 1.75,
    weight: Annotated[float, typer.Option(help="Weight of the body, kg.")] = 75.0,
    table: Annotated[str, typer.Option(help="Anthropometric table: de-leva, or a TOML file.")] = "de-leva",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the model into this URDF file.")] = None,
    as_json: Json = False,
) -> None:
    """Make a human model from sex, height and weight: sixteen segments on a floating base.

    Example: dynid human --sex male --height 1.8 --weight 94 -o human.urdf
    """
    from dynid.human.build import human_model
    from dynid.human.summary import human_data, human_text
    from dynid.human.table import anthropometric_table

    check_outputs(output)
    numbers = anthropometric_table(table, sex)
    model = human_model(sex, height, weight, table=numbers)
    if output is not None:
        from dynid.export.urdf import write_urdf

        for warning in write_urdf(model, output):
            print(f"warning: {warning}", file=sys.stderr)
        print(f"wrote {output}", file=sys.stderr)
    data = human_data(model, numbers)
    print(json.dumps(data, indent=2) if as_json else human_text(data))
