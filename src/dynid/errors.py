"""What dynid raises when the input, not the program, is at fault."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["DataError", "DynidError", "ModelError", "writing"]


class DynidError(Exception):
    """Base of all errors a user can cause; the message says what, where and what to do, on one line."""

    def __init__(self, message: str) -> None:
        # Names in files may hold line breaks; they must not break the line of the message.
        super().__init__(" ".join(message.split()))


class ModelError(DynidError):
    """A robot description that cannot be used."""


class DataError(DynidError):
    """Arrays or files of the wrong shape or with unusable values."""


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Around every file that is written: a path that cannot be is a plain error that names it."""
    try:
        yield
    except OSError as error:
        raise DynidError(f"cannot write '{path}': {error.strerror or error}") from None
