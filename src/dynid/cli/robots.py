"""Robots: those that are built in, and what a robot file holds."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs
from dynid.cli.progress import working
from dynid.cli.wrap import with_robot


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
    size = max(map(len, found))
    for name, description in found.items():
        print(f"{name:<{size}}  {description}")


@app.command()
@with_robot
def inspect(
    inputs: Inputs,
    table: options.ParameterTable = False,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit", help="Also check the model: mass matrix, drives, plausible bodies, a simulated free fall."
        ),
    ] = False,
    as_json: Json = False,
    figure: options.Figure = None,
    channels: options.Channels = None,
    grouping: Annotated[
        str, typer.Option(help="How base parameters are grouped: left-to-right, pivoted or recursive.")
    ] = "left-to-right",
) -> None:
    """Show a robot: tree, parameters, limits, base parameters, and links that are not physically consistent.

    Example: dynid inspect tx40 --table --figure tx40.svg
    """
    from dynid.parameters.base import base_parameters
    from dynid.report.inspection import inspection_data, print_inspection

    check_outputs(figure)
    robot = inputs.robot
    measured = values.names(channels) if channels and "," in channels else channels
    with working("computing the base parameters"):
        groups = base_parameters(robot, channels=measured, method=grouping)  # type: ignore[arg-type]
    found = None
    if audit:
        from dynid.assessment.model.physical import audit as examine

        with working("evaluating the model at 10000 postures and in free fall"):
            found = examine(robot)
    if as_json:
        print(json.dumps(inspection_data(robot, groups, found), indent=2))
    else:
        print_inspection(robot, groups, expressions=table, audit=found)
    if figure is not None:
        from dynid.report.figure import robot_figure

        write(figure, robot_figure(robot, groups))
