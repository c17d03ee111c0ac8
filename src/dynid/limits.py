"""Limits on what a file may ask for, so that a wrong or hostile file costs one sentence and no more."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import cache
from typing import NoReturn

from dynid.errors import DataError, DynidError

__all__ = ["FileLimits", "exceeded", "file_limits"]

_PREFIX = "DYNID_MAX_"
_MIB = 1 << 20


@dataclass(frozen=True)
class FileLimits:
    """What a file may ask for. Each limit can be raised by an environment variable, DYNID_MAX_ and its name.

    Attributes
    ----------
    text_bytes : int
        Size of a file that describes a robot, settings or a saved result (XML, TOML, JSON, YAML).
    unpacked_bytes : int
        Size of the content of a compressed file or of a member of one.
    unpacked_ratio : int
        Ratio of that size to the size of the file. It counts from 256 MiB on: small files may be packed better.
    xml_depth : int
        Elements inside each other in an XML file.
    xml_elements : int
        Elements of an XML file.
    nesting : int
        Tables and lists inside each other in a TOML, JSON or YAML file, and structs in a MATLAB file.
    links : int
        Links or bodies of a robot.
    includes : int
        Files that an MJCF file includes, those of included files counted.
    name_length : int
        Characters of the name of a link, a joint or a column.
    columns : int
        Columns of a recording.
    whole_bytes : int
        Size of a text table or Parquet file that is read whole; longer ones are read in pieces where that can be done.
    reader_megabytes : int
        Memory (MiB) of the separate process that reads a binary file, besides 100 times the size of the file.
    reader_seconds : int
        Processor time (s) of that process, besides one second per MiB of the file.
    """

    text_bytes: int = 512 * _MIB
    unpacked_bytes: int = 16384 * _MIB
    unpacked_ratio: int = 100
    xml_depth: int = 400
    xml_elements: int = 2_000_000
    nesting: int = 100
    links: int = 10_000
    includes: int = 1000
    name_length: int = 1000
    columns: int = 20_000
    whole_bytes: int = 256 * _MIB
    reader_megabytes: int = 768
    reader_seconds: int = 15


@cache
def _from(variables: tuple[tuple[str, str], ...]) -> FileLimits:
    known = {_PREFIX + field.name.upper(): field.name for field in fields(FileLimits)}
    given = {}
    for name, text in variables:
        if name not in known:
            raise DynidError(f"the environment variable {name} is unknown: use {', '.join(known)}", code="unknown_name")
        if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 18 or int(text) < 1:
            raise DynidError(
                f"the environment variable {name} must be a whole number above zero, got '{text:.40}'",
                code="invalid_value",
            )
        given[known[name]] = int(text)
    return FileLimits(**given)


def file_limits() -> FileLimits:
    """The limits in force: the defaults and what environment variables say.

    Returns
    -------
    FileLimits

    Raises
    ------
    DynidError
        If a variable that starts with DYNID_MAX_ has an unknown name or is no whole number above zero.

    Examples
    --------
    >>> from dynid.limits import file_limits
    >>> file_limits().links
    10000
    """
    return _from(tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(_PREFIX))))


def exceeded(where: str, what: str, limit: str, error: type[DynidError] = DataError) -> NoReturn:
    """Refuse a file in one sentence that names the limit and the variable that raises it.

    Parameters
    ----------
    where : str
        The file.
    what : str
        What it has too much of, such as "100000 links".
    limit : str
        Name of the limit, a field of `FileLimits`.
    error : type
        Type of the error.
    """
    most = getattr(file_limits(), limit)
    raise error(f"{where} has {what}, the limit is {most}: set {_PREFIX}{limit.upper()} to a larger number to read it")
