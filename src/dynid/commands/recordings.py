"""Recordings: checked, identified from, validated on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.commands import human_body, options
from dynid.commands.app import Json, app, write
from dynid.commands.report import headline, judged
from dynid.errors import DataError, DynidError
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.residual.residual import Residual


@app.command()
@options.with_logs
def check(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    data: options.DataArgument,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a recording; fails if something makes it unusable.

    Example: dynid check arm.urdf run.csv
    """
    from dynid.checks import check as find
    from dynid.report.findings import findings_data, print_findings

    recording = read(data)
    findings = find(recording, machine)
    if as_json:
        print(json.dumps(findings_data(findings), indent=2))
    else:
        print_findings(findings)
    if any(f.severity == "error" for f in findings):
        raise typer.Exit(1)


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
            help="ols, wls, gls, irls, tls, ridge or feasible; ml, ekf or ukf; with --controller iv, didim, pc-iv, "
            "pc-didim, cloe or clie. [wls; feasible for a person]"
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
    speed_cutoff: Annotated[
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
    allow_impossible: Annotated[
        bool,
        typer.Option("--allow-impossible", help="With -o: also write a robot that breaks the laws of physics."),
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
    min_speed: options.MinSpeed = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Identify a robot's parameters from recordings, with their uncertainty, and validate them on others.

    Example: dynid identify arm.urdf run1.csv run2.csv --method feasible --validate run3.csv -o identified.urdf

    Example: dynid identify arm.urdf run1.csv --method pc-didim --controller loop.toml --tests

    Example: dynid identify human.urdf motion.csv --wrench plate.csv --prior anthropometric --height 1.8 --weight 94
    """
    from dynid.identify.estimators import CLOSED_LOOP
    from dynid.identify.identify import identify as run

    plates, unseen_plates = list(wrench or ()), list(validate_wrench or ())
    zeros = human_body.plate_zeros(plates + unseen_plates, zero_plate)
    machine, recording = human_body.on_plates(machine, read, data, plates, zeros[: len(plates)])
    others = zeros[len(plates) :]
    unseen = human_body.on_plates(machine, read, validate, unseen_plates, others)[1] if validate else None
    machine, known = human_body.with_prior(machine, recording, prior, sex, height, weight)
    signals = options.read_signals(cutoff, decimate, min_speed, trim)
    given = options.read_feasible(constraints, prior_weight) | ({} if start is None else {"start": start})
    method, given = human_body.feasible_options(machine, method, given, metric, known, symmetry)
    loop = options.read_loop(controller, speed_cutoff, machine)
    # Other methods do not simulate, but their tests may.
    simulated = loop if method in CLOSED_LOOP or not tests else {}
    estimate = run(machine, recording, method, signals=signals, **simulated, **given)
    validation = estimate.validate(unseen) if unseen is not None else None
    diagnosis = None
    if tests and estimate.settled:
        from dynid.statistics.diagnosis import diagnose

        diagnosis = diagnose(estimate, recording, **loop)
    judgement = judged(estimate, report, output, unseen, recording, diagnosis)
    if as_json:
        page = estimate.to_dict()
        if judgement is not None:
            page["verdict"] = judgement.to_dict()
        if validation is not None:
            page["validation"] = validation.to_dict()
        if diagnosis is not None:
            page["diagnosis"] = diagnosis.to_dict()
        print(json.dumps(page, indent=2))
    else:
        print(estimate.summary())
        if validation is not None:
            print(validation.summary())
        if diagnosis is not None:
            print(diagnosis.summary())
        if judgement is not None:
            print(headline(judgement))
    if output is not None:
        writers = {
            ".urdf": estimate.to_urdf,
            ".xml": estimate.to_mjcf,
            ".mjcf": estimate.to_mjcf,
            ".sdf": estimate.to_sdf,
        }
        if output.suffix in writers:
            template = robot if robot.endswith(output.suffix) else None
            try:
                warnings = writers[output.suffix](output, template, allow_impossible)
            except DynidError as error:
                raise DynidError(str(error).replace("allow_impossible=True", "--allow-impossible")) from None
            for warning in warnings:
                print(f"dynid: {warning}", file=sys.stderr)
        else:
            estimate.save(output)
        print(f"wrote {output}", file=sys.stderr)
    if figure is not None:
        from dynid.report.torques import torque_figure

        shown = validation if validation is not None else estimate.validate(recording)
        write(figure, torque_figure(shown, f"{machine.name}, {method}"))
    if not estimate.settled:
        print(f"dynid: {estimate.status}", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
@options.with_logs
def validate(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    estimate: Annotated[list[Path], typer.Option("--estimate", "-e", help="Saved estimate; repeat to compare two.")],
    data: options.DataArgument,
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Predict the torques of recordings with saved estimates and show the errors.

    Example: dynid validate arm.urdf run3.csv -e estimate.json
    """
    from dynid.identify.estimate import Estimate

    recording = read(data)
    results = {str(path): Estimate.load(path, machine).validate(recording) for path in estimate}
    if figure is not None:
        from dynid.report.torques import torque_figure

        write(figure, torque_figure(results[str(estimate[0])], f"{machine.name}, {estimate[0].name}"))
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results.items()}, indent=2))
        return
    for name, result in results.items():
        print(name)
        print(result.summary())


@app.command()
@options.with_logs
def compensate(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    estimate: Annotated[Path, typer.Argument(help="Saved estimate of `dynid identify`.")],
    data: options.DataArgument,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", help="Log of other motion to judge by; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to: a predictor (.npz) or a folder for its C code (no suffix)."),
    ] = None,
    kernel: Annotated[
        str, typer.Option(help="se, ard, matern32, matern52, friction, own, load, joined by +; auto chooses.")
    ] = "auto",
    method: Annotated[str, typer.Option(help="auto, exact, subset, sparse or local.")] = "auto",
    points: Annotated[
        int | None, typer.Option(help="Points of a subset, sparse or local model. [1000, 200, 200]")
    ] = None,
    noise: Annotated[str, typer.Option(help="even, or reversal: more of it where a joint turns round.")] = "even",
    rigid: Annotated[str, typer.Option(help="fixed, prior (estimated together) or none (plain model).")] = "fixed",
    bound: Annotated[float | None, typer.Option(help="Largest learned torque in N m. [largest error seen]")] = None,
    seed: Annotated[int, typer.Option(help="Of restarts.")] = 0,
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Learn what an estimate misses, show the gain on motion it has not seen, and write a predictor.

    Without --validate the last of several logs is held out to judge by, and then learned from too.

    Example: dynid compensate arm.urdf estimate.json run1.csv run2.csv --validate run3.csv -o predictor.npz
    """
    from dynid.identify.estimate import Estimate
    from dynid.residual.fit import fit_residual
    from dynid.residual.training import Training

    known = Estimate.load(estimate, machine)
    recording = read(data)
    training = Training(method=method, points=points, seed=seed)

    def fit(part: Recording) -> Residual:
        return fit_residual(
            known, part, kernel=kernel, training=training, noise=noise, rigid=rigid, bound=bound, progress=_say
        )

    residual = None
    if validate:
        residual = fit(recording)
        judged, comparison = "held-out logs", residual.evaluate(read(validate))
    elif len(recording.runs) > 1:
        shown, hidden = (Recording(recording.joints, runs) for runs in (recording.runs[:-1], recording.runs[-1:]))
        judged, comparison = f"'{recording.runs[-1].name}', held out", fit(shown).evaluate(hidden)
    else:
        raise DataError("one log leaves nothing to judge by: give more logs, or others with --validate")
    residual = residual or fit(recording)
    if as_json:
        print(json.dumps({"joints": comparison.to_dict(), "notes": list(residual.notes)}, indent=2))
    else:
        print(residual.summary())
        print(f"torque errors on {judged}:")
        print(comparison.summary())
    if figure is not None:
        from dynid.report.torques import torque_figure

        write(figure, torque_figure(comparison.compensated, f"{machine.name}, compensated, {judged}"))
    if output is not None:
        predictor = residual.predictor()
        if output.suffix == ".npz":
            predictor.save(output)
        else:
            predictor.to_c(output)
        print(f"wrote {output}", file=sys.stderr)


def _say(line: str) -> None:
    print(f"dynid: {line}", file=sys.stderr)
