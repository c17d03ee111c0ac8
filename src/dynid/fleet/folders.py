"""A folder of recordings in hive layout as the entries of a fleet: robot=NAME/date=YYYY-MM-DD/run=.../*.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.errors import DynidError, MissingFile
from dynid.fleet.entries import FleetEntry
from dynid.recording.load import load_recording
from dynid.recording.partitions import hive_keys
from dynid.recording.tables import SCANNED
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import polars as pl

    from dynid.recording.log_format import LogFormat

__all__ = ["fleet_entries"]

# Tables of which a few columns are read alone.


def fleet_entries(robot: Robot, folder: str | Path, *, log: LogFormat | None = None) -> list[FleetEntry]:
    """List the recordings of a folder by unit and date.

    Files lie in folders robot=NAME/date=YYYY-MM-DD, with more levels such as run=3 below if need be. A column
    temperature_JOINT, or temperature_1 and so on by the number of the joint, or temperature for all joints, gives the
    temperature of joints in deg C. A torque column that is absent or empty in a file, but not in the others, is a joint
    whose torque was not measured.

    Parameters
    ----------
    robot : Robot
        The robot that all units are built as.
    folder : str or Path
        The folder.
    log : LogFormat, optional
        How the files are read.

    Returns
    -------
    list of FleetEntry
        In order of units and dates. Files are opened for their columns only; a file that cannot be opened is listed,
        and found faulty when it is identified.

    Raises
    ------
    DataError
        If the folder does not exist or has no file in this layout.
    """
    root = Path(folder).resolve()  # a worker of a cluster may run in another folder
    if not root.is_dir():
        raise MissingFile(f"no folder '{folder}'", "folder")
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.suffix.lower() in SCANNED)
    placed = [(path, hive_keys(path.relative_to(root).parent.as_posix())) for path in files]
    placed = [(path, keys) for path, keys in placed if "robot" in keys and "date" in keys]
    if not placed:
        raise MissingFile(f"'{folder}' has no file as robot=NAME/date=YYYY-MM-DD/*.parquet or *.csv", "folder")
    usual = _usual_columns(robot, [path for path, _ in placed], log)
    return [_entry(robot, path, keys, log, usual) for path, keys in placed]


def _usual_columns(robot: Robot, files: Sequence[Path], log: LogFormat | None) -> dict[str, tuple[str, ...]]:
    """Names of the columns of every signal, from the first file that has torques."""
    for path in files:
        try:
            found = load_recording(path, robot, log=log)
        except (DynidError, OSError):
            continue
        columns = {} if found.log_format is None else dict(found.log_format.columns or {})
        named = {k: tuple(str(x) for x in v) for k, v in columns.items() if isinstance(v, tuple)}
        if "torque" in named and found.runs[0].torque is not None:
            return named
    return {}


def _entry(
    robot: Robot, path: Path, keys: dict[str, str], log: LogFormat | None, usual: dict[str, tuple[str, ...]]
) -> FleetEntry:
    name = "/".join(f"{k}={v}" for k, v in keys.items() if k not in ("robot", "date"))
    missing: tuple[str, ...] = ()
    temperature: dict[str, float] = {}
    own = log
    torques = usual.get("torque", ())
    table = _read(path, {*torques, *_temperature_columns(robot)})
    if table is not None:
        empty = [c for c in torques if c not in table.columns or _all_empty(table[c])]
        there = [c for c in torques if c not in empty]
        if empty and there:
            missing = tuple(j for j, c in zip(robot.coordinates, torques, strict=True) if c in empty)
            # Any other column stands in: the rows of the joint are left out.
            own = _with_columns(log, usual | {"torque": tuple(there[0] if c in empty else c for c in torques)})
        temperature = _temperatures(robot, table)
    return FleetEntry(keys["robot"], keys["date"], path, temperature, missing, own, name or path.name)


def _with_columns(log: LogFormat | None, columns: dict[str, tuple[str, ...]]) -> LogFormat:
    from dynid.recording.log_format import LogFormat

    return (log or LogFormat()).replaced({"columns": columns})


def _read(path: Path, wanted: set[str]) -> pl.DataFrame | None:
    """The wanted columns of a file, of those that it has.

    None for a damaged file: its reader says what is wrong with it when it is identified.
    """
    import polars as pl

    try:
        lazy = _scan_text(path) if path.suffix.lower() == ".csv" else pl.scan_parquet(path)
        return lazy.select([name for name in lazy.collect_schema().names() if name in wanted]).collect()
    except (Exception, pl.exceptions.PanicException):  # a panic is no Exception
        return None


def _scan_text(path: Path) -> pl.LazyFrame:
    """A text table whose cells are separated by commas, semicolons or tabs; with semicolons a comma is decimal."""
    import polars as pl

    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.readline()
        comma = "," in file.readline()
    mark = max(",;\t", key=head.count)
    return pl.scan_csv(path, separator=mark, decimal_comma=mark != "," and comma, infer_schema_length=None)


def _all_empty(column: pl.Series) -> bool:
    values = np.asarray(column.to_numpy(), dtype=object)
    return all(x is None or (isinstance(x, float) and np.isnan(x)) for x in values)


def _temperature_columns(robot: Robot) -> list[str]:
    return ["temperature", *(f"temperature_{x}" for k, j in enumerate(robot.coordinates, start=1) for x in (j, k))]


def _temperatures(robot: Robot, table: pl.DataFrame) -> dict[str, float]:
    """Mean temperature of the joints that have a column."""
    out = {}
    for k, joint in enumerate(robot.coordinates, start=1):
        for column in (f"temperature_{joint}", f"temperature_{k}", "temperature"):
            if column in table.columns and table[column].dtype.is_numeric():
                mean = table[column].drop_nulls().mean()
                if isinstance(mean, float) and np.isfinite(mean):
                    out[joint] = mean
                break
    return out
