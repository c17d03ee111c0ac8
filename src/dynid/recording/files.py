"""Opening files: compression by ending, errors on missing and damaged files, optional packages."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import zlib
from pathlib import Path
from types import ModuleType

from dynid.errors import DataError, DynidError

__all__ = ["damage", "kind_of", "optional_package", "read_bytes", "stem_of"]

_OPENERS = {".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress}


def kind_of(path: Path) -> str:
    """Ending of a file without its compression, in lower case: ".csv" for run.CSV.gz."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def stem_of(path: Path) -> str:
    """Name of a file without its endings: "run" for run.csv.gz."""
    name = path.name
    for suffix in (path.suffix if path.suffix.lower() in _OPENERS else "", kind_of(path)):
        if suffix and name.lower().endswith(suffix.lower()):
            name = name[: -len(suffix)]
    return name


def read_bytes(path: Path) -> bytes:
    """Content of a file, decompressed according to its ending."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    if not raw:
        raise DataError(f"{path.name} is empty")
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        return raw
    try:
        return opener(raw)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path.name} is damaged or cut off: {damage(error)}") from None


def damage(error: Exception) -> str:
    """The message of an error on a damaged file, in one short line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0]:.120}"


def optional_package(name: str, extra: str, what: str) -> ModuleType:
    """An optional package, imported on first use; the error names the extra to install."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.split(".")[0]
        raise DynidError(f"{what} need the package '{package}': pip install 'dynid[{extra}]'") from None
