"""Opening files: compression by ending, errors on missing and damaged files, optional packages."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from dynid.errors import DynidError, MissingData, MissingFile
from dynid.reading import PACKED, check_regular, read_regular, unpacked

__all__ = [
    "check_file",
    "check_package",
    "damage",
    "kind_of",
    "optional_package",
    "read_bytes",
    "stem_of",
    "unpacked_file",
]


def kind_of(path: Path) -> str:
    """Ending of a file without its compression, in lower case: ".csv" for run.CSV.gz."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def stem_of(path: Path) -> str:
    """Name of a file without its endings: "run" for run.csv.gz."""
    name = path.name
    for suffix in (path.suffix if path.suffix.lower() in PACKED else "", kind_of(path)):
        if suffix and name.lower().endswith(suffix.lower()):
            name = name[: -len(suffix)]
    return name


def check_file(path: Path) -> int:
    """Size of a regular file in bytes; a DataError for anything else."""
    try:
        return check_regular(path)
    except (OSError, ValueError) as error:
        raise MissingFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_bytes(path: Path) -> bytes:
    """Content of a file, decompressed according to its ending."""
    check_file(path)
    try:
        raw = read_regular(path)
    except OSError as error:
        raise MissingFile(f"{path} cannot be read: {error.strerror}") from None
    if not raw:
        raise MissingData(f"{path.name} is empty")
    ending = path.suffix.lower()
    return unpacked(raw, ending, path.name) if ending in PACKED else raw


@contextmanager
def unpacked_file(path: Path) -> Iterator[Path]:
    """The path of a file, or of a temporary one with its content if it is compressed."""
    if not check_file(path):
        raise MissingData(f"{path.name} is empty")
    if path.suffix.lower() not in PACKED:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="dynid-") as folder:
        plain = Path(folder) / path.stem
        plain.write_bytes(read_bytes(path))
        yield plain


def damage(error: BaseException) -> str:
    """The message of an error on a damaged file, in one short line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0]:.120}"


def check_package(package: str, extra: str, what: str) -> None:
    """Refuse to go on without an optional package, which a child process will import; the error names the extra."""
    if importlib.util.find_spec(package) is None:
        raise DynidError(f"{what} need the package '{package}': pip install 'dynid[{extra}]'", code="missing_package")


def optional_package(name: str, extra: str, what: str) -> ModuleType:
    """An optional package, imported on first use; the error names the extra to install."""
    check_package(name.split(".")[0], extra, what)
    return importlib.import_module(name)
