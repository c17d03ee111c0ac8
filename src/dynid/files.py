"""Atomic writing of files, with errors that name the path."""

from __future__ import annotations

import errno
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import BinaryIO

from dynid.errors import DynidError

__all__ = [
    "check_output",
    "make_folder",
    "on_disk",
    "real_path",
    "remove_left_over",
    "write_text",
    "writing",
    "writing_bytes",
]

_LONGEST = 160  # bytes of a name that leave room for those of the computer, the process and the thread


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Turn an OSError into a DynidError that names the path."""
    try:
        yield
    except OSError as error:
        raise DynidError(f"cannot write '{path}': {error.strerror or error}", code="not_writable") from None


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Context manager that yields a temporary path, which replaces `path` on success.

    After an error or Ctrl-C, the old file is unchanged. The temporary path has the same suffix. Devices and pipes are
    written directly; symbolic links are followed.
    """
    with _named(path):
        target = real_path(path)
        if target.exists() and not target.is_file():
            yield Path(path)
            return
        with _beside(target) as part:
            yield part
            if target.exists():
                shutil.copymode(target, part)
            on_disk(part)
            part.replace(target)


@contextmanager
def writing_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """As `writing`, with an open file: Polars takes no names that are not UTF-8."""
    with writing(path) as part, part.open("wb") as file:
        yield file


def real_path(path: str | Path) -> Path:
    """The absolute path with symbolic links followed; OSError where they go in a circle."""
    found = os.path.realpath(path)
    if os.path.islink(found):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return Path(found)


def on_disk(path: Path) -> None:
    """Wait until the content is on the disk: a name that is renamed before may survive a loss of power without it."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically, in UTF-8; of file names that are no text, odd bytes are written as "?"."""
    with writing(path) as part:
        part.write_text(text, encoding="utf-8", errors="replace")


def check_output(path: str | Path) -> None:
    """Raise an error if a path cannot be written, before a long computation."""
    with _named(path):
        target = real_path(path)
        if target.exists():
            with target.open("a"):
                pass
        if target.is_file() or not target.exists():
            with _beside(target) as part:
                part.touch()


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A temporary path in the folder of `target`, with the same suffix, deleted at the end.

    Those that killed processes of this computer have left for the same target are deleted too.
    """
    name = _short(target)
    remove_left_over(target.parent, f"*-{escape(name)}")
    part = target.with_name(f".{_computer()}-{os.getpid()}-{get_ident()}-{name}")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _short(path: Path) -> str:
    """The name of a file, or of a long one its digest and suffix: file systems take 255 bytes, ours adds some."""
    name = os.fsencode(path.name)
    if len(name) <= _LONGEST:
        return path.name
    return sha256(name).hexdigest() + (path.suffix if len(os.fsencode(path.suffix)) <= _LONGEST // 2 else "")


def remove_left_over(folder: Path, pattern: str = "*") -> None:
    """Delete the temporary files in a folder that killed processes of this computer have left."""
    computer = f".{_computer()}-"
    for left in folder.glob(f"{escape(computer)}{pattern}"):
        process, _, rest = left.name.removeprefix(computer).partition("-")
        if process.isdigit() and rest.partition("-")[0].isdigit() and not _runs(int(process)):
            with suppress(OSError):  # of a folder that cannot be written
                left.unlink()


def _computer() -> str:
    """The name of this computer, for names of files: several may write into one shared folder."""
    return "".join(c for c in platform.node()[:16] if c.isalnum()) or "computer"


def _runs(process: int) -> bool:
    """Whether there is a process of this number; where that cannot be asked, there is."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to someone else
        return True
    return True


def make_folder(path: str | Path) -> Path:
    """Create a folder and its parents where they do not exist, and return its path."""
    with _named(path):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)
