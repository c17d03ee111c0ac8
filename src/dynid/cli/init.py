"""A project file from a robot and its logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.recordings import reading_lines
from dynid.cli.wrap import with_new_project
from dynid.errors import DataError, DynidError


@app.command()
@with_new_project
def init(
    inputs: Inputs,
    data: options.Data = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Project file to write.")] = Path("dynid.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a project file that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write dynid.toml for a robot and its logs, with what was guessed; other commands then need no arguments.

    Of several logs the last is kept for validation; of one log, its last quarter. Exit code 1 if a log cannot be
    read yet: the file is written all the same, and says what is missing.

    Example: dynid init arm.urdf run1.csv run2.csv
    """
    from dynid.cli.project import load_project
    from dynid.cli.project_text import HeldOut, project_text

    if output.exists() and not force:
        raise DataError(f"'{output}' is there already: overwrite it with --force, or write another with -o")
    check_outputs(output)
    if validate and validate_share is not None:
        raise DataError("--validate names other logs and --validate-share holds out a part of these: give one")
    held_out = HeldOut([values.source(x) for x in validate or ()], validate_share, validate_rows)
    recordings, problem = [], None
    for source in [*inputs.data, *held_out.logs]:
        try:
            recordings.append(inputs.read([source]))
        except DynidError as error:
            problem = error
            break
    write(output, project_text(inputs, recordings, problem, held_out, output.parent))
    project = load_project(output)
    if as_json:
        page = {
            "project": str(output),
            "log_format": project.log.to_dict(),
            "unread_columns": sorted({name for r in recordings for name in r.unread_columns}),
            "problem": None if problem is None else str(problem),
        }
        print(json.dumps(page, indent=2))
    else:
        for source, recording in zip([*inputs.data, *held_out.logs], recordings, strict=False):
            show("\n".join([f"{source}: " + reading_lines(recording)[0], *reading_lines(recording)[1:]]))
    if problem is not None:
        raise type(problem)(f"{problem}. Complete [log] in {output}, then run dynid check")
    if not as_json:
        print("next: dynid check, dynid identify, dynid report")
