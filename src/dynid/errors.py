"""Exceptions for errors in the input."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["DataError", "DynidError", "MissingJoints", "ModelError", "NoJointsError", "did_you_mean", "one_of"]


class DynidError(Exception):
    """Base class of all errors that a user can cause.

    The message is one line: what is wrong, where, and what to do about it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_plain(message))


# Characters of a word and of a whole message.
_LONGEST_WORD, _LONGEST = 400, 2000


def _plain(message: str) -> str:
    """The message on one line: what files contain is cut where it is long, and escaped where it cannot be printed."""
    words = (
        w if len(w) <= _LONGEST_WORD else f"{w[:100]}...({len(w)} characters)...{w[-20:]}" for w in message.split()
    )
    text = " ".join(words)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 300]} ... {text[-200:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class ModelError(DynidError):
    """An invalid or unsupported robot description."""


class NoJointsError(ModelError):
    """A robot description in which nothing moves."""


class DataError(DynidError):
    """Arrays, files or settings with a wrong shape or invalid values."""


class MissingJoints(DataError):
    """Joints of the robot that have no column of positions.

    Attributes
    ----------
    joints : tuple of str
        Their names.
    """

    def __init__(self, message: str, joints: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.joints = tuple(joints)


def did_you_mean(word: str, choices: Iterable[str], closeness: float = 0.6) -> str:
    """Suggestion to append to an error message, such as "; did you mean wls?"; empty if no choice is similar."""
    names, word = list(choices), str(word).lower()
    near = difflib.get_close_matches(word, names, n=3, cutoff=closeness)
    near = near or [name for name in names if word and name.startswith(word)][:3]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def one_of(words: Iterable[str]) -> str:
    """Words as alternatives in a sentence: "a, b or c"."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
