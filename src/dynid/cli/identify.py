"""From recordings to an estimate: the main road."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete, human_body, options
from dynid.cli.app import Json, app, check_outputs, option_named, write
from dynid.cli.progress import working
from dynid.cli.report import headline, judged
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.assessment.tests.diagnosis import Diagnosis
    from dynid.assessment.verdict.assessment import Assessment
    from dynid.identification.estimate import Estimate
    from dynid.identification.validation import Validation
    from dynid.signals.settings import Signals


@app.command()
@options.with_logs
def identify(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    robot: options.RobotArgument,
    data: options.DataArgument,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", help="Log of other motion to validate on; may be repeated.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete.methods,
            help="ols, wls, gls, irls, tls, ridge or feasible; ml, ekf or ukf; with --controller iv, didim, pc-iv, "
            "pc-didim, cloe or clie. [wls; feasible for a person]",
        ),
    ] = None,
    constraints: Annotated[
        str | None, typer.Option(help="With --method feasible: full or semi (no triangle inequality). [full]")
    ] = None,
    prior_weight: Annotated[
        str | None, typer.Option(help="With --method feasible: pull of the a-priori model, a number or cv. [ties only]")
    ] = None,
    controller: Annotated[
        Path | None, typer.Option(help="TOML file of the controller, for methods that simulate and for --tests.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="First parameters to simulate with: prior (the file's) or feasible. [prior]")
    ] = None,
    velocity_cutoff: Annotated[
        float | None, typer.Option(help="With --controller: its low-pass in Hz of measured speeds. [none]")
    ] = None,
    tests: Annotated[
        bool,
        typer.Option("--tests", help="Also test the residual, the terms and, with --controller, bias."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Save the estimate here; as .urdf, .xml (MJCF) or .sdf, its robot."),
    ] = None,
    allow_infeasible: Annotated[
        bool,
        typer.Option("--allow-infeasible", help="With -o: also write a robot that breaks the laws of physics."),
    ] = False,
    wrench: human_body.Wrench = None,
    validate_wrench: human_body.ValidateWrench = None,
    zero_plate: human_body.ZeroPlate = None,
    prior: human_body.Prior = None,
    sex: human_body.Sex = "male",
    height: human_body.Height = None,
    weight: human_body.Weight = None,
    metric: human_body.Metric = None,
    symmetry: human_body.Symmetric = False,
    report: Annotated[
        str | None,
        typer.Option(
            help="Where the HTML report and, beside it, the verdict go, or none to do without. [beside --output]"
        ),
    ] = None,
    figure: options.Figure = None,
    cutoff: options.Cutoff = None,
    decimate: options.Decimate = None,
    min_velocity: options.MinSpeed = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Identify a robot's parameters from recordings, with their uncertainty, and validate them on others.

    Example: dynid identify arm.urdf run1.csv run2.csv --method feasible --validate run3.csv -o identified.urdf

    Example: dynid identify arm.urdf run.csv --method pc-didim --controller loop.toml --velocity-cutoff 100 --tests

    Example: dynid identify human.urdf motion.csv --wrench plate.csv --prior anthropometric --height 1.8 --weight 94
    """
    check_outputs(output, figure)
    if method is not None:
        from dynid.identification.pipeline import check_method

        check_method(method)
    plates, unseen_plates = list(wrench or ()), list(validate_wrench or ())
    zeros = human_body.plate_zeros(plates + unseen_plates, zero_plate)
    machine, recording = human_body.on_plates(machine, read, data, plates, zeros[: len(plates)])
    others = zeros[len(plates) :]
    unseen = human_body.on_plates(machine, read, validate, unseen_plates, others)[1] if validate else None
    machine, known = human_body.with_prior(machine, recording, prior, sex, height, weight)
    given = options.read_feasible(constraints, prior_weight) | ({} if start is None else {"start": start})
    method, given = human_body.feasible_options(machine, method, given, metric, known, symmetry)
    loop = options.read_loop(controller, velocity_cutoff, machine)
    signals = options.read_signals(cutoff, decimate, min_velocity, trim)
    estimate = _estimate(machine, recording, method, signals, loop, tests, given)
    validation = estimate.validate(unseen) if unseen is not None else None
    diagnosis = _diagnosis(estimate, recording, loop) if tests and estimate.converged else None
    with working("judging"):
        assessment = judged(estimate, report, output, unseen, recording, diagnosis)
    _print(as_json, estimate, assessment, validation, diagnosis)
    if output is not None:
        _save(estimate, output, robot, allow_infeasible)
    if figure is not None:
        from dynid.report.torques import torque_figure

        shown = validation if validation is not None else estimate.validate(recording)
        write(figure, torque_figure(shown, f"{machine.name}, {method}"))
    if not estimate.converged:
        print(f"dynid: {estimate.status}", file=sys.stderr)
        raise typer.Exit(1)


def _estimate(
    machine: Robot,
    recording: Recording,
    method: str,
    signals: Signals,
    loop: dict[str, Any],
    tests: bool,
    given: dict[str, Any],
) -> Estimate:
    from dynid.identification.estimators.registry import CLOSED_LOOP
    from dynid.identification.pipeline import identify as run

    # Other methods do not simulate, but their tests may.
    simulated = loop if method in CLOSED_LOOP or not tests else {}
    with working(f"identifying {machine.name} with {method}", rounds=True):
        return run(machine, recording, method, signals=signals, **simulated, **given)


def _diagnosis(estimate: Estimate, recording: Recording, loop: dict[str, Any]) -> Diagnosis:
    from dynid.assessment.tests.diagnosis import diagnose

    with working("testing the residual and the terms"):
        return diagnose(estimate, recording, **loop)


def _print(
    as_json: bool,
    estimate: Estimate,
    assessment: Assessment | None,
    validation: Validation | None,
    diagnosis: Diagnosis | None,
) -> None:
    """The estimate and what is known of it, for people or as one JSON object."""
    if as_json:
        more = {"verdict": assessment, "validation": validation, "diagnosis": diagnosis}
        parts = {name: part.to_dict() for name, part in more.items() if part is not None}
        print(json.dumps(estimate.to_dict() | parts, indent=2))
        return
    print(estimate.summary())
    if validation is not None:
        print(validation.summary())
    if diagnosis is not None:
        print(diagnosis.summary())
    if assessment is not None:
        print(headline(assessment))


def _save(estimate: Estimate, output: Path, robot: str, allow_infeasible: bool) -> None:
    """Save the estimate (.json), or write the identified robot in the format that the ending names.

    A file of the robot's own format is patched in place; infeasible parameters are refused unless allowed.
    """
    if output.suffix.lower() == ".json":
        estimate.save(output)
    else:
        from dynid.export.model_file import write

        template = robot if robot.endswith(output.suffix) and output.suffix != ".toml" else None
        with option_named():
            warnings = write(estimate, output, template=template, allow_infeasible=allow_infeasible)
        for warning in warnings:
            print(f"dynid: {warning}", file=sys.stderr)
    print(f"wrote {output}", file=sys.stderr)
