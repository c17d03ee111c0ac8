"""Exceptions for errors in the input."""

import difflib
from collections.abc import Iterable

__all__ = ["DataError", "DynidError", "ModelError", "NoJointsError", "did_you_mean"]


class DynidError(Exception):
    """Base class of all errors that a user can cause.

    The message is one line: what is wrong, where, and what to do about it.
    """

    def __init__(self, message: str) -> None:
        # Names in files may contain line breaks; the message stays on one line.
        super().__init__(" ".join(message.split()))


class ModelError(DynidError):
    """An invalid or unsupported robot description."""


class NoJointsError(ModelError):
    """A robot description in which nothing moves."""


class DataError(DynidError):
    """Arrays, files or settings with a wrong shape or invalid values."""


def did_you_mean(word: str, choices: Iterable[str], closeness: float = 0.6) -> str:
    """Suggestion to append to an error message, such as "; did you mean wls?"; empty if no choice is similar."""
    names, word = list(choices), str(word).lower()
    near = difflib.get_close_matches(word, names, n=3, cutoff=closeness)
    near = near or [name for name in names if word and name.startswith(word)][:3]
    return f"; did you mean {' or '.join(near)}?" if near else ""
