"""Files that are written: whole or not at all, and what cannot be written is named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynid.errors import DynidError

__all__ = ["check_output", "make_folder", "write_text", "writing"]


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """A path that cannot be written is a plain error that names it."""
    try:
        yield
    except OSError as error:
        raise DynidError(f"cannot write '{path}': {error.strerror or error}") from None


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Gives a path to write to, which takes the place of `path` at the end; an error or Ctrl-C leaves what was there.

    The given path has the same ending. Devices and pipes are written directly, links are followed.
    """
    with _named(path):
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            yield Path(path)
            return
        with _beside(target) as part:
            yield part
            if target.exists():
                shutil.copymode(target, part)
            part.replace(target)


def write_text(path: str | Path, text: str) -> None:
    """Write a file of text, whole or not at all."""
    with writing(path) as part:
        part.write_text(text, encoding="utf-8")


def check_output(path: str | Path) -> None:
    """Refuse a path that cannot be written, before the work is done."""
    with _named(path):
        target = Path(path).resolve()
        if target.exists():
            with target.open("a"):
                pass
        if target.is_file() or not target.exists():
            with _beside(target) as part:
                part.touch()


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A file beside another, with the same ending, gone afterwards."""
    part = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def make_folder(path: str | Path) -> Path:
    """The folder, made with those above it if it is not there."""
    with _named(path):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)
