"""Where a report comes from: date, hashes of its inputs, and how the estimate is computed again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from dynid.errors import MissingFile
from dynid.recording.recording import Recording
from dynid.recording.run import SIGNALS, Run

__all__ = ["Provenance", "file_hash", "samples_hash", "written"]

# Larger files and folders take minutes to read.
_MOST_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Provenance:
    """How an estimate was computed.

    Attributes
    ----------
    command : str
        Command that computes the estimate again; "" where it is not known.
    seed : int or None
        Random seed.
    files : sequence of str or Path
        Files of the robot and of the logs.
    project : str
        Text of the project file that computes the estimate again; "" where it is not known.
    """

    command: str = ""
    seed: int | None = None
    files: Sequence[str | Path] = ()
    project: str = ""


def written() -> str:
    """The date and time in UTC; SOURCE_DATE_EPOCH sets it where the same page is to be written twice."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%d %H:%M UTC")


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, or of the names and hashes of the files in a folder; in words where it is too large.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    path = Path(path)
    parts = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    try:
        if sum(p.stat().st_size for p in parts) > _MOST_BYTES:
            return "not computed: larger than 2 GB"
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise MissingFile(f"cannot read '{path}': {error.strerror or error}") from None
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{part.relative_to(path).as_posix()} {file_hash(part)}\n".encode())
    return total.hexdigest()


def samples_hash(recording: Recording) -> str:
    """SHA-256 of all samples of a recording: time and the signals that it has, in their order."""
    total = hashlib.sha256()
    for run in recording.runs:
        _add(total, run)
    return total.hexdigest()


def _add(total: hashlib._Hash, run: Run) -> None:
    named = {name: getattr(run, name) for name in ("t", *SIGNALS)} | dict(run.wrenches) | dict(run.contacts)
    for name, values in named.items():
        if values is not None:
            total.update(name.encode())
            total.update(np.ascontiguousarray(values).tobytes())
