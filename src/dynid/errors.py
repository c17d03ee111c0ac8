"""What dynid raises when the input, not the program, is at fault."""

import difflib
from collections.abc import Iterable

__all__ = ["DataError", "DynidError", "ModelError", "did_you_mean"]


class DynidError(Exception):
    """Base of all errors a user can cause; the message says what, where and what to do, on one line."""

    def __init__(self, message: str) -> None:
        # Names in files may hold line breaks; they must not break the line of the message.
        super().__init__(" ".join(message.split()))


class ModelError(DynidError):
    """A robot description that cannot be used."""


class DataError(DynidError):
    """Arrays or files of the wrong shape or with unusable values."""


def did_you_mean(word: str, choices: Iterable[str], closeness: float = 0.6) -> str:
    """The end of a message on an unknown word: "; did you mean wls?", or nothing where no choice is close to it."""
    names, word = list(choices), str(word).lower()
    near = difflib.get_close_matches(word, names, n=3, cutoff=closeness)
    near = near or [name for name in names if word and name.startswith(word)][:3]
    return f"; did you mean {' or '.join(near)}?" if near else ""
