"""Fleets: many units of one robot over many dates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, remember_inputs, wrote
from dynid.cli.data_sets import client_of
from dynid.cli.inputs import Inputs
from dynid.cli.output import required
from dynid.cli.progress import working
from dynid.cli.report import conclude, judged, result_page
from dynid.cli.wrap import with_logs
from dynid.errors import ConflictingArguments, MissingArgument, WrongFormat

_RATE = 0.05


@app.command()
@with_logs(cleaning=tuple(options.CLEANING))
def fleet(
    inputs: Inputs,
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of recordings as robot=NAME/date=YYYY-MM-DD/run=.../*.parquet or *.csv.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the table of all estimates into this file (.parquet or .csv)."),
    ] = None,
    report: options.ResultReport = None,
    shared: Annotated[
        list[str] | None,
        typer.Option(
            "--shared-parameters",
            metavar="PARAMETERS",
            help="Parameters common to all units: links, drives, or names with wildcards; may be repeated. [links]",
        ),
    ] = None,
    per_date: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARAMETERS",
            help="Parameters that differ from date to date in the common model: fc_*; may be repeated. [none]",
        ),
    ] = None,
    unit_gains: Annotated[
        bool, typer.Option("--unit-gains", help="Identify the gain of the torque measurement of every unit.")
    ] = False,
    false_alarms: Annotated[
        float | None, typer.Option(help="Probability of any false alarm in the whole fleet. [0.05]")
    ] = None,
    tool_link: Annotated[
        str | None, typer.Option(metavar="LINK", help="Link whose payload is watched. [the last one]")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out recordings that cannot be used, and list them.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Processes that share the work. [one per core]")] = None,
    cluster: options.Cluster = None,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Identify many units of one robot over many dates, and find what changed.

    Estimates of every recording, of all units together, and of every unit pooled with the others; drift, steps and
    payloads with a stated probability of any false alarm. Columns temperature_JOINT separate wear from warmth. In a
    folder with dynid.toml, its section [fleet] has the folder and the files to write; options override it.

    Example: dynid fleet arm.urdf fleet --friction viscous+coulomb+offset -o fleet.parquet --report fleet.html
    """
    from dynid.dynamics.batch import core_count
    from dynid.fleet.folders import fleet_entries
    from dynid.fleet.identify import identify_fleet

    project = inputs.project
    if project is not None:
        chosen = project.fleet
        folder = folder or _text(project.beside(chosen.folder))
        output, report = output or project.beside(chosen.output), report or project.beside(chosen.report)
        false_alarms = chosen.false_alarms if false_alarms is None else false_alarms
        unit_gains, skip_bad = unit_gains or bool(chosen.unit_gains), skip_bad or bool(chosen.skip_bad)
    wanted, page = required(require), result_page(report)
    if folder is None:
        raise MissingArgument("name ROBOT and then FOLDER, the folder of the recordings", "folder")
    if output is not None and output.suffix.lower() not in (".parquet", ".csv"):
        better = f"{output.stem or 'fleet'}.parquet"
        raise WrongFormat(
            f"the table of a fleet is .parquet or .csv, not '{output}': name --output '{better}'", "output"
        )
    if workers is not None and cluster is not None:
        raise ConflictingArguments(
            "--workers are processes of this computer and --cluster names others: give one", "workers"
        )
    entries = fleet_entries(inputs.robot, folder, log=inputs.log)
    remember_inputs(*(str(entry.data) for entry in entries))
    check_outputs(output, page)
    with client_of(cluster) as client, working("identifying the fleet") as work:
        found = identify_fleet(
            inputs.robot,
            entries,
            shared=tuple(shared) if shared else "links",
            per_date=tuple(per_date or ()),
            gains=unit_gains,
            signals=inputs.signals(),
            rate=_RATE if false_alarms is None else false_alarms,
            link=tool_link,
            skip_bad=skip_bad,
            workers=core_count() if workers is None else workers,
            client=client,
            progress=work.report,
        )
    if output is not None:
        found.write(output)
        wrote(output)
    conclude(found.summary(), found.to_dict(), judged(found, page), page, wanted, as_json)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
