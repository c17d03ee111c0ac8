"""Recordings: checked, and predicted by estimates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import data_sets, options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs, load_estimate
from dynid.cli.output import check_required, required, show, verdict_lines
from dynid.cli.progress import working
from dynid.cli.report import Compare
from dynid.cli.routes import next_command
from dynid.cli.wrap import with_estimate, with_logs
from dynid.errors import MissingArgument, NotApplicable

if TYPE_CHECKING:
    from dynid.assessment.model.horizon import SimulationError
    from dynid.assessment.verdict.evidence import Evidence
    from dynid.cli.values import Source
    from dynid.recording.dataset import DataSet
    from dynid.recording.recording import Recording
    from dynid.simulation.closed_loop import ClosedLoop

_CLOSED_STARTS = 40  # a closed loop is simulated start by start


@app.command()
@with_logs(cleaning=())
def check(
    inputs: Inputs,
    data: options.Data = None,
    cluster: options.Cluster = None,
    skip_bad_partitions: options.SkipBadPartitions = False,
    as_json: Json = False,
) -> None:
    """Show how logs are read and what is wrong with them; exit code 1 if they cannot be used.

    Example: dynid check arm.urdf run.csv
    """
    from dynid.assessment.data.battery import check as find
    from dynid.assessment.data.route import route
    from dynid.recording.recording import Recording
    from dynid.report.findings import findings_data, print_findings

    logs: list[Source] = list(inputs.data)
    if not inputs.given:
        logs += inputs.validation_logs()
    recording: Recording | DataSet | None = inputs.data_set(logs) if logs else None
    if recording is None:
        data_sets.check_files_only(cluster, skip_bad_partitions)
        recording = inputs.read(logs)
    with data_sets.client_of(cluster) as client, working("checking") as work:
        findings = find(inputs.robot, recording, client=client, skip_bad=skip_bad_partitions, progress=work.report)
    if as_json:
        log = recording.log_format
        page: dict[str, Any] = {"log_format": None if log is None else log.to_dict()}
        page["unread_columns"] = list(recording.unread_columns)
        print(json.dumps(findings_data(findings) | page, indent=2))
    else:
        show("\n".join(reading_lines(recording)))
        print_findings(findings)
        if isinstance(recording, Recording) and inputs.robot.n:
            found = route(inputs.robot, [recording], findings)
            show(f"{found.reason}\nnext: {next_command(found, inputs, logs, in_project=not inputs.given)}")
    if any(f.severity == "error" for f in findings):
        raise typer.Exit(1)


def reading_lines(recording: Recording | DataSet) -> list[str]:
    """How a recording was read: runs, columns of each signal, and columns that were not used."""
    from dynid.recording.recording import Recording

    if isinstance(recording, Recording):
        runs = f"{len(recording.runs)} runs, " if len(recording.runs) > 1 else ""
        lines = [f"{runs}{recording.samples} samples, {recording.duration:.1f} s of {', '.join(recording.joints)}"]
    else:
        lines = [f"{len(recording)} partitions, a sample every {recording.step:.4g} s of {', '.join(recording.joints)}"]
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
    controller: options.Controller = None,
    velocity_cutoff: options.VelocityCutoff = None,
    coulomb_slope: options.CoulombSlope = None,
    integrator: options.Integrator = None,
    figure: options.Figure = None,
    table: options.ParameterTable = False,
    require: options.Require = None,
    cluster: options.Cluster = None,
    skip_bad_partitions: options.SkipBadPartitions = False,
    as_json: Json = False,
) -> None:
    """Predict the torques of other motion with a saved estimate, simulate that motion, and show the errors per joint.

    Example: dynid validate estimate.json run3.csv

    Example: dynid validate estimate.json run3.csv --controller loop.toml
    """
    from dynid.assessment.verdict.assess import assess_evidence, evidence_of

    check_outputs(figure)
    wanted = required(require)
    estimate, file = inputs.estimate, inputs.estimate_file
    assert estimate is not None and file is not None
    loop = inputs.closed_loop(controller, velocity_cutoff, coulomb_slope, integrator)
    # What compares or draws needs all samples at once.
    in_pieces = compare is None and loop is None and figure is None and not table
    data_set = inputs.data_set(long=in_pieces) if inputs.given else None
    if data_set is not None:
        if compare is not None or loop is not None:
            raise NotApplicable("--compare and --controller are for log files, not for a data set", "compare")
        with data_sets.client_of(cluster) as client:
            data_sets.validate(estimate, data_set, data_sets.Work(client, skip_bad_partitions), wanted, as_json)
        return
    data_sets.check_files_only(cluster, skip_bad_partitions)
    fitted, recording = _recordings(inputs)
    others: list[Path] = [] if compare is None else [compare]
    estimates = {str(file): estimate} | {str(path): load_estimate(path) for path in others}
    with working("predicting torques"):
        results = {name: one.validate(recording) for name, one in estimates.items()}
        evidence = {name: evidence_of(one, recording, recording=fitted) for name, one in estimates.items()}
        verdicts = {name: assess_evidence(one) for name, one in evidence.items()}
    with working("simulating the motion"):
        simulations = {name: _simulations(one, recording, loop) for name, one in evidence.items()}
    if figure is not None:
        from dynid.report.torques import torque_figure

        write(figure, torque_figure(results[str(file)], f"{inputs.robot.name}, {file.name}"))
    if as_json:
        pages = {
            "validation": {n: r.to_dict() for n, r in results.items()},
            "simulation": {n: {s.loop: s.to_dict() for s in both} for n, both in simulations.items()},
            "verdict": {n: v.to_dict() for n, v in verdicts.items()},
        }
        print(json.dumps(pages, indent=2))
    else:
        for name, result in results.items():
            if table:
                show(estimates[name].summary())
            show(name)
            show(result.summary())
            for simulation in simulations[name]:
                show(simulation.summary())
            show("\n".join(verdict_lines(verdicts[name])))
    check_required(wanted, *verdicts.values())


def _simulations(evidence: Evidence, recording: Recording, loop: ClosedLoop | None) -> list[SimulationError]:
    """Errors of simulated motion: in open loop and, where the controller is known, in closed loop."""
    from dynid.assessment.model.horizon_simulation import simulation_error

    found = [] if evidence.simulation is None else [evidence.simulation]
    if loop is not None and loop.controller is not None:
        found.append(simulation_error(evidence.estimate, recording, loop=loop, max_starts=_CLOSED_STARTS))
    return found


def _recordings(inputs: Inputs) -> tuple[Recording | None, Recording]:
    """The fitted logs of the project file, if any, and the logs that were given or that it keeps for validation."""
    if inputs.given:
        return None, inputs.read()
    if inputs.project is None:
        raise MissingArgument("no log is given: name DATA, logs of motion that the estimate was not identified from")
    fitted, unseen = inputs.read_split(None, None, None)
    if unseen is None:
        raise MissingArgument(f"{inputs.project.path}: runs.validate and runs.validate_share are missing: name DATA")
    return fitted, unseen
