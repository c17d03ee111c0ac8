"""Recordings: checked, predicted by estimates, and learned from."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.progress import working
from dynid.errors import DataError
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
    from dynid.assessment.data.battery import check as find
    from dynid.report.findings import findings_data, print_findings

    recording = read(data)
    with working("checking"):
        findings = find(machine, recording)
    if as_json:
        print(json.dumps(findings_data(findings), indent=2))
    else:
        print_findings(findings)
    if any(f.severity == "error" for f in findings):
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

    Example: dynid validate arm.urdf run3.csv -e estimate.json --friction viscous+coulomb+offset
    """
    from dynid.identification.estimate import Estimate

    check_outputs(figure)
    recording = read(data)
    with working("predicting torques"):
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
    estimate: Annotated[Path, typer.Argument(metavar="ESTIMATE", help="Saved estimate of `dynid identify`.")],
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

    Example: dynid compensate arm.urdf estimate.json run1.csv --validate run3.csv -o p.npz
    --friction viscous+coulomb+offset
    """
    from dynid.identification.estimate import Estimate
    from dynid.residual.fit import fit_residual
    from dynid.residual.training import Training

    check_outputs(output, figure)
    known = Estimate.load(estimate, machine)
    recording = read(data)
    training = Training(method=method, points=points, seed=seed)

    def fit(part: Recording) -> Residual:
        setting: dict[str, Any] = {"kernel": kernel, "noise": noise, "rigid": rigid, "bound": bound}
        with working("learning what the estimate misses") as work:
            return fit_residual(known, part, training=training, progress=work.say, **setting)

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
