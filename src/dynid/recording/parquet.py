"""Tables of Parquet files, read in a child process: the reader ends its process at a memory limit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from dynid.child import read_in_child
from dynid.errors import DamagedFile, DataError
from dynid.limits import exceeded, file_limits
from dynid.reading import within_ratio
from dynid.recording.files import damage, unpacked_file

__all__ = ["extract", "parquet_frame"]

_TABLE = "table.arrow"


def parquet_frame(path: Path) -> Any:
    """The polars frame of a file."""
    import polars

    with tempfile.TemporaryDirectory(prefix="dynid-") as name, unpacked_file(path) as plain:
        try:
            read_in_child("dynid.recording.parquet:extract", plain, Path(name))
        except DataError as error:
            raise DamagedFile(str(error).replace(plain.name, path.name)) from None
        return polars.read_ipc((Path(name) / _TABLE).read_bytes())


def extract(path: Path, folder: Path, _: Any) -> None:
    """Write the table of a file into a folder as an Arrow file, which is read without decoding."""
    import polars

    try:
        lazy = polars.scan_parquet(path, glob=False)
        columns, rows = len(lazy.collect_schema()), lazy.select(polars.len()).collect().item()
        if columns > file_limits().columns:
            exceeded(path.name, f"{columns} columns", "columns")
        within_ratio(path.name, 8 * columns * rows, path.stat().st_size)
        polars.read_parquet(path, glob=False).rechunk().write_ipc(folder / _TABLE)
    except (DataError, MemoryError):
        raise
    except BaseException as error:  # panics are no Exceptions
        raise DamagedFile(f"{path.name} is not a Parquet file or damaged: {damage(error)}") from None
