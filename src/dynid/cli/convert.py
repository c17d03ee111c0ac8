"""Log files of any format to a data set of Parquet partitions, once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs
from dynid.errors import DamagedFile, DynidError, MissingArgument, MissingFile
from dynid.progress import Progress

if TYPE_CHECKING:
    from dynid.cli.values import Source
    from dynid.recording.recording import Recording


@app.command()
@with_logs(cleaning=())
def convert(
    inputs: Inputs,
    data: options.Data = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder of the data set.")] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Value of robot= in the folder names. [that of the log's folders, or the robot's name]"),
    ] = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Store signals with seven digits, which halves the size; times keep all.")
    ] = False,
    skip_bad_logs: Annotated[
        bool, typer.Option("--skip-bad-logs", help="Leave out logs that cannot be read, and say which.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write logs of any format, or folders of them, as a data set of Parquet partitions in joint-side SI units.

    Each run becomes FOLDER/robot=ROBOT/date=DATE/run=NAME/part-0.parquet. Keys in the folders of a log, such as
    robot=B/date=2026-03-02, are kept; otherwise the date is that of the log file. Logs of one name from several folders
    have the folder in the name of their run.

    Example: dynid convert arm.urdf run1.csv run2.csv -o logs
    """
    from dynid.recording.dataset_files import write_partition
    from dynid.recording.partitions import hive_keys

    if output is None:
        raise MissingArgument("name the folder of the data set: -o FOLDER", "output")
    sources = _files(list(inputs.data))
    folders = _folders(sources)
    written: list[str] = []
    left_out: list[tuple[str, str]] = []
    with working("converting") as work:
        for k, source in enumerate(sources, 1):
            read = _recordings(inputs, source)
            while True:
                try:
                    recording = next(read, None)
                except DynidError as error:
                    if not skip_bad_logs:
                        raise
                    left_out.append((str(source), str(error)))
                    break
                if recording is None:
                    break
                day = datetime.fromtimestamp(Path(_first(source)).stat().st_mtime, UTC).date().isoformat()
                keys = {"robot": inputs.robot.name, "date": day} | hive_keys(Path(_first(source)).parent.as_posix())
                keys |= {} if unit is None else {"robot": unit}
                if above := "-".join(filter(None, (keys.pop("run", ""), folders[k - 1]))):
                    runs = tuple(replace(run, name=f"{above}-{run.name}") for run in recording.runs)
                    recording = replace(recording, runs=runs)
                paths = write_partition(recording, output, keys, float32=float32)
                written += [str(path.relative_to(output)) for path in paths]
            work.report(Progress(f"{k} of {len(sources)} logs", k / len(sources)))
    if not written:
        raise DamagedFile(f"none of {len(sources)} logs could be read: {left_out[0][1]}")
    if as_json:
        page: dict[str, Any] = {"data_set": str(output), "partitions": written}
        page["left_out"] = [{"log": log, "reason": reason} for log, reason in left_out]
        print(json.dumps(page, indent=2))
    else:
        show(f"{len(written)} partitions of {len(sources) - len(left_out)} logs")
        for log, reason in left_out:
            show(f"left out: {log}: {reason}")
    wrote(output)


def _recordings(inputs: Inputs, source: Source) -> Iterator[Recording]:
    """The recording of a log; of a long file, those of its pieces one after another."""
    from dynid.recording.dataset import is_long

    data_set = inputs.data_set([source]) if is_long(source) else None
    if data_set is None:
        yield inputs.read([source])
        return
    for partition in data_set.partitions:
        for _, recording in data_set.chunks(partition):
            yield recording


def _files(sources: list[Source]) -> list[Source]:
    """The logs, with folders replaced by the files in them that have a known ending."""
    from dynid.recording.formats import folder_reader, is_log, known_endings

    out: list[Source] = []
    for source in sources:
        if not isinstance(source, str) or not Path(source).is_dir() or folder_reader(Path(source)):
            out.append(source)
            continue
        found = sorted(p for p in Path(source).rglob("*") if p.is_file() and is_log(p))
        if not found:
            raise MissingFile(f"{source} contains no log of a known format: {', '.join(known_endings())}")
        out += [str(p) for p in found]
    if not out:
        raise MissingArgument("no log is given: name DATA, or list the logs in runs.identify of dynid.toml")
    return out


def _folders(sources: list[Source]) -> list[str]:
    """For each log, the folders that tell it from others of its name and keys; empty where there are none."""
    from dynid.recording.partitions import hive_keys

    places = [Path(_first(source)).absolute() for source in sources]
    alike: dict[Any, list[Path]] = {}
    for place in places:
        key = (place.anchor, place.stem, frozenset(hive_keys(place.parent.as_posix()).items()))
        alike.setdefault(key, []).append(place.parent)
    out: dict[Path, str] = {}
    for (_, stem, _), parents in alike.items():
        common = os.path.commonpath(parents)
        out |= {parent / stem: "-".join(parent.relative_to(common).parts) for parent in parents}
    return [out[place.with_name(place.stem)] for place in places]


def _first(source: Source) -> str | Path:
    return source if isinstance(source, str) else next(iter(source.values()))
