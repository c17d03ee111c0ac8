"""People: models of their bodies, and what motion capture and force plates tell of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options, plates
from dynid.cli.app import Application, Commands, Json, app, check_outputs, wrote
from dynid.cli.identify import (
    Constraints,
    Output,
    PriorWeight,
    ReportFile,
    body_options,
    feasible_options,
    finish,
    run_method,
)
from dynid.cli.inputs import Inputs
from dynid.cli.output import required, show
from dynid.cli.report import report_files
from dynid.cli.wrap import with_logs

human = Application(
    name="human",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Model a person's body, and identify it from motion capture and force plates.",
)
app.add_typer(human)


@human.command()
def model(
    sex: Annotated[str, typer.Option(help="male or female.")] = "male",
    height: Annotated[float, typer.Option(help="Height of the body, m.")] = 1.75,
    weight: Annotated[float, typer.Option(help="Mass of the body, kg.")] = 75.0,
    anthropometry: Annotated[str, typer.Option(help="Anthropometric table: de-leva, or a TOML file.")] = "de-leva",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the model into this URDF file.")] = None,
    as_json: Json = False,
) -> None:
    """Make a human model from sex, height and mass: sixteen segments on a floating base.

    Example: dynid human model --sex male --height 1.8 --weight 94 -o human.urdf
    """
    from dynid.human.build import human_model
    from dynid.human.summary import human_data, human_text
    from dynid.human.table import anthropometric_table

    check_outputs(output)
    table = anthropometric_table(anthropometry, sex)
    body = human_model(sex, height, weight, table=table)
    warnings: list[str] = []
    if output is not None:
        from dynid.export.urdf import write_urdf

        warnings = list(write_urdf(body, output))
        wrote(output)
    for warning in warnings:
        print(f"dynid: {warning}", file=sys.stderr)
    data = human_data(body, table)
    if as_json:
        print(json.dumps(data, indent=2))
    else:
        show(human_text(data))


@human.command()
@with_logs
def identify(
    inputs: Inputs,
    data: options.Data = None,
    wrench: plates.Wrench = None,
    validate: options.Validate = None,
    validate_wrench: plates.ValidateWrench = None,
    zero_plate: plates.ZeroPlate = None,
    prior: plates.Prior = None,
    sex: plates.Sex = "male",
    height: plates.Height = None,
    weight: plates.Weight = None,
    metric: plates.Metric = None,
    symmetry: plates.Symmetric = False,
    method: Annotated[str | None, typer.Option(help="Estimation method, as of dynid identify. [feasible]")] = None,
    constraints: Constraints = None,
    prior_weight: PriorWeight = None,
    output: Output = None,
    allow_infeasible: options.AllowInfeasible = False,
    untrusted: options.Untrusted = False,
    report: ReportFile = None,
    figure: options.Figure = None,
    table: options.ParameterTable = False,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Identify a person's segments from motion and force plates, with anthropometric prior, mass and symmetry.

    Example: dynid human identify human.urdf motion.csv --wrench plate.csv --prior anthropometric --height 1.8
    --weight 94
    """
    from dynid.identification.estimators.registry import find_method

    check_outputs(output, figure, *report_files(report, output))
    wanted = required(require)
    if method is not None:
        find_method(method)
    fitted, unseen_plates = list(wrench or ()), list(validate_wrench or ())
    zeros = plates.plate_zeros(fitted + unseen_plates, zero_plate)
    robot, recording = plates.on_plates(inputs, data, fitted, zeros[: len(fitted)])
    others = zeros[len(fitted) :]
    unseen = plates.on_plates(inputs, validate, unseen_plates, others)[1] if validate else None
    robot, mass = plates.with_prior(robot, recording, prior, sex, height, weight)
    how = method or "feasible"
    given = feasible_options(inputs, how, constraints, prior_weight) | body_options(inputs, how)
    method, given = plates.feasible_options(robot, method, given, metric, mass, symmetry)
    estimate, observation = run_method(replace(inputs, robot=robot), recording, method, given)
    finish(
        inputs,
        estimate,
        recording,
        unseen,
        observation=observation,
        output=output,
        allow_infeasible=allow_infeasible,
        untrusted=untrusted,
        report=report,
        figure=figure,
        table=table,
        require=wanted,
        as_json=as_json,
    )
