"""A project file from a robot and its logs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.recordings import reading_lines
from dynid.cli.routes import next_command, words_of
from dynid.cli.values import Source
from dynid.cli.wrap import with_new_project
from dynid.errors import ConflictingArguments, DamagedFile, DynidError, MissingJoints, NotWritable

if TYPE_CHECKING:
    from dynid.assessment.data.route import Route
    from dynid.recording.recording import Recording

# Joints of hands, which logs of arms often leave out.
_HAND = re.compile("finger|gripper|hand|jaw|knuckle|thumb", re.IGNORECASE)


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
    from dynid.cli.project_text import project_text
    from dynid.cli.values import HeldOut

    if output.exists() and not force:
        raise NotWritable(f"'{output}' is there already: overwrite it with --force, or write another with -o", "output")
    check_outputs(output)
    if validate and validate_share is not None:
        raise ConflictingArguments(
            "--validate names other logs and --validate-share holds out a part of these: give one", "validate"
        )
    held_out = HeldOut([values.source(x) for x in validate or ()], validate_share, validate_rows)
    sources = [*inputs.data, *held_out.logs]
    inputs, recordings, problem = _read(inputs, sources)
    found, gains = (None, None) if problem is not None or not recordings else _route(inputs, recordings)
    write(output, project_text(inputs, recordings, problem, held_out, output.parent, found, gains))
    project = load_project(output)
    step = None if found is None else next_command(found, inputs, sources, in_project=True)
    if as_json:
        page = {
            "project": str(output),
            "log_format": project.log.to_dict(),
            "unread_columns": sorted({name for r in recordings for name in r.unread_columns}),
            "problem": None if problem is None else str(problem),
            "good_for": None if found is None else found.goal,
            "reason": None if found is None else found.reason,
            "next": step,
        }
        print(json.dumps(page, indent=2))
    else:
        for source, recording in zip(sources, recordings, strict=False):
            show("\n".join([f"{words_of(source)}: " + reading_lines(recording)[0], *reading_lines(recording)[1:]]))
    if problem is not None:
        raise type(problem)(f"{problem}. Complete [log] in {output}, then run dynid check")
    if not as_json:
        show("\n".join(_next_lines(found, step)))


def _read(inputs: Inputs, sources: Sequence[Source]) -> tuple[Inputs, list[Recording], DynidError | None]:
    """The logs up to one that cannot be read, with its error; joints that the first has no column for are locked."""
    recordings: list[Recording] = []
    for source in sources:
        try:
            recordings.append(inputs.read([source]))
        except DynidError as error:
            reading = None if recordings or inputs.modelling.get("lock") else _read_locked(inputs, source, error)
            if reading is None:
                return inputs, recordings, DamagedFile(str(error))
            inputs, recording = reading
            recordings.append(recording)
    return inputs, recordings, None


def _read_locked(inputs: Inputs, source: Source, error: DynidError) -> tuple[Inputs, Recording] | None:
    """A log with columns for some joints, and the robot without the others: those not named, or those of a hand."""
    absent = error.joints if isinstance(error, MissingJoints) else tuple(filter(_HAND.search, inputs.robot.coordinates))
    if not 0 < len(absent) < inputs.robot.n:
        return None
    held = inputs.with_locked(absent)
    try:
        return held, held.read([source])
    except DynidError:
        return None


def _route(inputs: Inputs, recordings: Sequence[Recording]) -> tuple[Route, tuple[float, ...] | None]:
    """What the logs are good for, and the gains that the masses of the robot file give currents."""
    from dynid.assessment.data.battery import check
    from dynid.assessment.data.gains import gains_by_bodies
    from dynid.assessment.data.route import route

    robot = inputs.robot
    with working("looking at the logs"):
        findings = [x for recording in recordings for x in check(robot, recording)]
        found = route(robot, recordings, findings)
        gains = None
        if found.goal == "gains":
            gains = gains_by_bodies(robot, recordings[0])
            found = found if gains is None else replace(found, goal="bodies")
    return found, gains


def _next_lines(found: Route | None, step: str | None) -> list[str]:
    """What the logs are good for, and what comes next."""
    if found is None or step is None:
        return ["next: dynid check, dynid identify, dynid report"]
    return [found.reason, f"next: {step}" + (", dynid report" if step == "dynid identify" else "")]
