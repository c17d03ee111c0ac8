"""The formats of log files: the records of dynid's own files and those of other packages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from dynid.errors import MissingFile, NotApplicable, WrongFormat, keyword, one_of
from dynid.reading import PACKED
from dynid.recording import arrays, bags, tables
from dynid.recording.files import kind_of
from dynid.recording.reader import PLUGINS, Reader
from dynid.recording.table import Table

__all__ = [
    "MODULES",
    "folder_reader",
    "has_topics",
    "is_log",
    "known_endings",
    "own_readers",
    "read_log",
    "reader_of",
    "readers",
]

# Modules with records, in the order in which formats are listed.
MODULES = (tables, arrays, bags)


@cache
def own_readers() -> dict[str, Reader]:
    """The formats of dynid by name."""
    declared = (value for module in MODULES for value in vars(module).values() if isinstance(value, Reader))
    return {reader.name: reader for reader in declared}


def readers() -> dict[str, Reader]:
    """All formats of log files by name: those of dynid, and those of other packages that can be loaded.

    Returns
    -------
    dict of str to Reader
        A warning names each package whose reader cannot be loaded.

    Examples
    --------
    >>> from dynid.recording import readers
    >>> readers()["hdf5"].endings
    ('.h5', '.hdf5')
    """
    return own_readers() | PLUGINS.all(own_readers())


def known_endings() -> tuple[str, ...]:
    """Endings of all formats; where two have the same, that of dynid is meant, or the first."""
    return tuple(dict.fromkeys(ending for reader in readers().values() for ending in reader.endings))


def is_log(path: Path) -> bool:
    """Whether a file, compressed or not, has the ending of a log."""
    return kind_of(path) in known_endings()


def has_topics(name: str) -> bool:
    """Whether a file of this name has several topics."""
    return any(kind_of(Path(name)) in reader.endings for reader in readers().values() if reader.topics)


def folder_reader(path: Path) -> Reader | None:
    """The format of a folder, None where it is none of a known format."""
    if not path.is_dir():
        return None
    return next((r for r in readers().values() if any(next(path.glob(mark), None) for mark in r.marks)), None)


def reader_of(path: Path) -> Reader:
    """The format of a file or folder, which need not exist.

    Raises a DataError where it is unknown, or where files of this format are not read compressed.
    """
    if os.path.isdir(path):
        found = folder_reader(path)
        if found is None:
            known = one_of(f"{r.title} ({', '.join(r.marks)})" for r in readers().values() if r.marks)
            raise WrongFormat(f"{path} is a folder of no known format: logs in folders are {known}")
        return found
    ending = kind_of(path)
    # Those of other packages are loaded where they may be needed.
    for group in (own_readers, readers):
        for reader in group().values():
            if ending in reader.endings:
                if path.suffix.lower() in PACKED and not reader.compressed:
                    raise WrongFormat(f"{reader.title} are not read compressed, unpack it first", where=path.name)
                return reader
    raise WrongFormat(f"ending '{ending}' is unknown, known are {', '.join(known_endings())}", where=path.name)


def read_log(path: Path, topic: str | None = None, joints: Sequence[str] | None = None) -> Table:
    """The table of a file or folder of any format; `joints` are those that are needed, where they are known."""
    reader = reader_of(path)
    if reader.topics:
        if not os.path.exists(path):
            raise MissingFile(f"{path} cannot be read: No such file or directory")
        return reader.function(path, topic, joints)
    if topic is not None:
        raise NotApplicable(f"{keyword('topic')} selects a topic of a bag, {path.name} is not a bag")
    return reader.function(path)
