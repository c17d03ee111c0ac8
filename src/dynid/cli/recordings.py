"""Recordings: checked, and predicted by estimates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs, load_estimate
from dynid.cli.output import check_required, required, show, verdict_lines
from dynid.cli.progress import working
from dynid.cli.report import Compare
from dynid.cli.wrap import with_estimate, with_logs
from dynid.errors import DataError

if TYPE_CHECKING:
    from dynid.cli.values import Source
    from dynid.recording.recording import Recording


@app.command()
@with_logs(cleaning=())
def check(inputs: Inputs, data: options.Data = None, as_json: Json = False) -> None:
    """Show how logs are read and what is wrong with them; exit code 1 if they cannot be used.

    Example: dynid check arm.urdf run.csv
    """
    from dynid.assessment.data.battery import check as find
    from dynid.report.findings import findings_data, print_findings

    logs: list[Source] = list(inputs.data)
    if not inputs.given:
        logs += inputs.validation_logs()
    recording = inputs.read(logs)
    with working("checking"):
        findings = find(inputs.robot, recording)
    if as_json:
        log = recording.log_format
        page: dict[str, Any] = {"log_format": None if log is None else log.to_dict()}
        page["unread_columns"] = list(recording.unread_columns)
        print(json.dumps(findings_data(findings) | page, indent=2))
    else:
        show("\n".join(reading_lines(recording)))
        print_findings(findings)
    if any(f.severity == "error" for f in findings):
        raise typer.Exit(1)


def reading_lines(recording: Recording) -> list[str]:
    """How a recording was read: runs, columns of each signal, and columns that were not used."""
    runs = f"{len(recording.runs)} runs, " if len(recording.runs) > 1 else ""
    lines = [f"{runs}{recording.samples} samples, {recording.duration:.1f} s of {', '.join(recording.joints)}"]
    log = recording.log_format
    if log is not None:
        lines.append(f"  time from {log.time}" if log.time is not None else f"  no time column, rate {log.rate:g} Hz")
        lines += [f"  {signal} from {_columns(names)}" for signal, names in (log.columns or {}).items()]
    if recording.unread_columns:
        lines.append(f"  not used: {', '.join(recording.unread_columns)}")
    return lines


def _columns(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list | tuple) else str(names)


@app.command()
@with_estimate
def validate(
    inputs: Inputs,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Logs of motion that the estimate was not identified from. [dynid.toml]"),
    ] = None,
    compare: Compare = None,
    figure: options.Figure = None,
    table: options.ParameterTable = False,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Predict the torques of other motion with a saved estimate and show the errors per joint.

    Example: dynid validate estimate.json run3.csv
    """
    from dynid.assessment.verdict.assess import assess

    check_outputs(figure)
    wanted = required(require)
    estimate, file = inputs.estimate, inputs.estimate_file
    assert estimate is not None and file is not None
    recording = _unseen(inputs)
    others: list[Path] = [] if compare is None else [compare]
    estimates = {str(file): estimate} | {str(path): load_estimate(path) for path in others}
    with working("predicting torques"):
        results = {name: one.validate(recording) for name, one in estimates.items()}
        verdicts = {name: assess(one, recording) for name, one in estimates.items()}
    if as_json:
        pages = {n: r.to_dict() for n, r in results.items()}
        print(json.dumps({"validation": pages, "verdict": {n: v.to_dict() for n, v in verdicts.items()}}, indent=2))
    else:
        for name, result in results.items():
            if table:
                show(estimates[name].summary())
            show(name)
            show(result.summary())
            show("\n".join(verdict_lines(verdicts[name])))
    if figure is not None:
        from dynid.report.torques import torque_figure

        write(figure, torque_figure(results[str(file)], f"{inputs.robot.name}, {file.name}"))
    check_required(wanted, *verdicts.values())


def _unseen(inputs: Inputs) -> Recording:
    """The logs that were given, or the motion that the project file keeps for validation."""
    if inputs.given:
        return inputs.read()
    if inputs.project is None:
        raise DataError("no log is given: name DATA, logs of motion that the estimate was not identified from")
    unseen = inputs.read_split(None, None, None)[1]
    if unseen is None:
        raise DataError(f"{inputs.project.path}: runs.validate and runs.validate_share are missing: name DATA")
    return unseen
