"""Partitions: the Parquet files of a data set, found below a folder or an address."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dynid.errors import MissingData, MissingFile, WrongFormat
from dynid.recording.files import damage, optional_package
from dynid.recording.tables import PARQUET, TextPiece

__all__ = ["LeftOut", "Partition", "hive_keys", "listed", "opened"]


@dataclass(frozen=True)
class Partition:
    """One file of a data set, or some rows of a long file.

    Attributes
    ----------
    name : str
        Path within the data set, by which messages name the partition.
    address : str
        Path or address of the file.
    keys : mapping of str to str
        Values of the hive layout, such as {"robot": "unit3", "date": "2025-03-01"}.
    rows : tuple of int or None
        First row and row after the last in a long file; None for all rows of the file.
    text : TextPiece or None
        Where these rows are in a text file.
    """

    name: str
    address: str
    keys: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[int, int] | None = None
    text: TextPiece | None = None


@dataclass(frozen=True)
class LeftOut:
    """A partition that was left out, and why.

    Attributes
    ----------
    partition : str
        Name of the partition.
    reason : str
        What is wrong with it, in one sentence.
    """

    partition: str
    reason: str


def listed(source: str) -> tuple[Partition, ...]:
    """The Parquet files below a folder or an address."""
    if "://" in source:
        fsspec = optional_package("fsspec", "cluster", "addresses of data sets")
        try:
            system, root = fsspec.core.url_to_fs(source)
            files = [f for f in system.find(root) if f.endswith(PARQUET.endings)]
        except Exception as error:  # every file system has errors of its own
            raise MissingFile(f"{source} cannot be listed: {damage(error)}") from None
        found = [(f.removeprefix(root).lstrip("/"), system.unstrip_protocol(f)) for f in files]
    else:
        folder = Path(source).resolve()  # a worker may run in another folder
        if not folder.is_dir():
            raise WrongFormat(f"{source} is not a folder of Parquet partitions")
        files = [f for f in folder.rglob("*") if f.suffix in PARQUET.endings and f.is_file()]
        found = [(f.relative_to(folder).as_posix(), str(f)) for f in files]
    if not found:
        raise MissingData(f"{source} contains no Parquet file: dynid convert makes a data set of other logs")
    found.sort(key=lambda one: [int(x) if k % 2 else x for k, x in enumerate(re.split(r"(\d+)", one[0]))])
    return tuple(Partition(name, address, hive_keys(name)) for name, address in found)


def hive_keys(name: str) -> dict[str, str]:
    """Values of the hive layout in the path of a partition, whose special characters are written as %XX."""
    pairs = [part.partition("=") for part in name.split("/")]
    ending = "|".join(map(re.escape, PARQUET.endings))
    return {key: re.sub(f"(?:{ending})$", "", unquote(value)) for key, equals, value in pairs if equals}


def opened(address: str) -> Any:
    """What polars scans: a local path, or the content of a file at an address."""
    if "://" not in address:
        if not Path(address).is_file():
            raise FileNotFoundError(address)
        return address
    fsspec = optional_package("fsspec", "cluster", "addresses of data sets")
    with fsspec.open(address, "rb") as file:
        return io.BytesIO(file.read())
