"""Writing the partitions of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from dynid.errors import NotWritable
from dynid.files import make_folder, writing_bytes
from dynid.recording.dataset import LONGEST
from dynid.recording.recording import Recording

__all__ = ["write_partition"]


def write_partition(
    recording: Recording, folder: str | Path, keys: Mapping[str, str] | None = None, *, float32: bool = False
) -> list[Path]:
    """Write every run of a recording as a partition of a data set.

    Parameters
    ----------
    recording : Recording
        Runs in joint-side SI units.
    folder : path
        Folder of the data set, which is created where it does not exist.
    keys : mapping of str to str, optional
        Keys of the hive layout above run=NAME, such as {"robot": "unit3", "date": "2025-03-01"}.
    float32 : bool, default False
        Store the signals with seven digits; the times keep all.

    Returns
    -------
    list of Path
        One file per run, FOLDER/KEY=VALUE/.../run=NAME/part-0.parquet.

    Raises
    ------
    DataError
        If a partition is there already.
    """
    import polars

    out = []
    place = Path(folder)
    for key, value in (keys or {}).items():
        place /= f"{key}={quote(str(value), safe=' ')}"
    for k, run in enumerate(recording.runs):
        path = place / f"run={quote(run.name or str(k), safe=' ')}" / "part-0.parquet"
        if path.exists():
            raise NotWritable(f"partition {path} is there already: choose another folder, or remove it")
        table = replace(recording, runs=(run,)).columns()
        frame = polars.DataFrame(table)
        if float32:
            frame = frame.with_columns(polars.exclude("run", "t").cast(polars.Float32))
        make_folder(path.parent)
        with writing_bytes(path) as file:
            frame.with_columns(polars.col("run").cast(polars.Int32)).write_parquet(file, row_group_size=LONGEST)
        out.append(path)
    return out
