"""Exceptions for errors in the input: a sentence, a code for programs, the argument and the place that it is about."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

__all__ = [
    "ConflictingArguments",
    "DamagedFile",
    "DataError",
    "Duplicate",
    "DynidError",
    "ErrorCode",
    "Infeasible",
    "InvalidShape",
    "InvalidType",
    "InvalidValue",
    "Keyword",
    "Mismatch",
    "MissingArgument",
    "MissingData",
    "MissingFile",
    "MissingJoints",
    "MissingPackage",
    "ModelError",
    "NoJointsError",
    "NotApplicable",
    "NotFinite",
    "NotIdentifiable",
    "NotWritable",
    "Sentence",
    "SimulationFailed",
    "TooFew",
    "TooLarge",
    "UnknownName",
    "Unsupported",
    "WrongFormat",
    "WrongVersion",
    "did_you_mean",
    "keyword",
    "named",
    "one_of",
]


class ErrorCode(StrEnum):
    """What kind of error it is, whatever its words."""

    UNKNOWN_NAME = "unknown_name"
    INVALID_TYPE = "invalid_type"
    INVALID_VALUE = "invalid_value"
    INVALID_SHAPE = "invalid_shape"
    NOT_FINITE = "not_finite"
    MISSING_ARGUMENT = "missing_argument"
    MISSING_DATA = "missing_data"
    CONFLICTING = "conflicting"
    NOT_APPLICABLE = "not_applicable"
    MISMATCH = "mismatch"
    DUPLICATE = "duplicate"
    FILE_MISSING = "file_missing"
    FILE_DAMAGED = "file_damaged"
    FILE_FORMAT = "file_format"
    FILE_VERSION = "file_version"
    NOT_WRITABLE = "not_writable"
    TOO_LARGE = "too_large"
    TOO_FEW = "too_few"
    NOT_IDENTIFIABLE = "not_identifiable"
    INFEASIBLE = "infeasible"
    SIMULATION_FAILED = "simulation_failed"
    UNSUPPORTED = "unsupported"
    MISSING_PACKAGE = "missing_package"
    NOT_CONVERGED = "not_converged"
    INVALID_MODEL = "invalid_model"
    UNTRUSTED = "untrusted"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True)
class Keyword:
    """An argument that a sentence names, with the value to give if there is one.

    Attributes
    ----------
    name : str
        Its name in Python.
    values : tuple
        One value, such as True in "allow_infeasible=True", or none.
    bare : bool
        True where only its name is meant, such as "rate must be positive".
    """

    name: str
    values: tuple[Any, ...] = ()
    bare: bool = False

    def __str__(self) -> str:
        return self.name if self.bare else f"{self.name}={''.join(map(_python, self.values))}"


def _python(value: Any) -> str:
    """A value as it is written in Python."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_python(k)}: {_python(v)}" for k, v in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


# Around the name of an argument inside a text that becomes a sentence; neither can be printed.
_BEGIN, _END = "\ue000", "\ue001"


def keyword(name: str, *value: Any) -> str:
    """The argument `name`, to be written into the text of an error or a :class:`Sentence`.

    It reads "name=" or "name=value" in Python, and as the option that sets it on the command line.
    """
    return f"{_BEGIN}{json.dumps([name, *value])}{_END}"


def named(name: str) -> str:
    """The name of an argument as the subject of a sentence: "name" in Python, the option on the command line."""
    return f"{_BEGIN}{json.dumps(name)}{_END}"


class Sentence(str):
    """A text whose arguments can be named in other words.

    Attributes
    ----------
    text : str
        The text with its arguments marked by :func:`keyword`.
    """

    text: str

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, "".join(map(str, _pieces(text))))
        self.text = text
        return self

    def __getnewargs__(self) -> tuple[str]:
        return (self.text,)

    def in_words(self, words: Callable[[Keyword], str]) -> str:
        """The text with `words` of each argument."""
        return "".join(words(x) if isinstance(x, Keyword) else x for x in _pieces(self.text))

    def keywords(self) -> list[Keyword]:
        """The arguments that it names."""
        return [x for x in _pieces(self.text) if isinstance(x, Keyword)]


def _pieces(text: str) -> Iterator[str | Keyword]:
    """The text in parts, with its marks as keywords."""
    first, *rest = text.split(_BEGIN)
    yield first
    for piece in rest:
        marked, end, after = piece.partition(_END)
        try:
            found = json.loads(marked) if end else None
        except ValueError:
            found = None
        if isinstance(found, str):
            yield Keyword(found, bare=True)
        elif isinstance(found, list):
            yield Keyword(found[0], tuple(found[1:]))
        else:  # no mark of ours: what a file contains
            after = _BEGIN + piece
        yield after


class DynidError(Exception):
    """Base class of all errors that a user can cause.

    The message is one line: what is wrong, where, and what to do about it.

    Parameters
    ----------
    message : str
        What is wrong and what to do, with arguments marked by :func:`keyword`.
    argument : str, optional
        Name of the argument that it is about. Default: the first that is marked in the message.
    code : str, optional
        One of :class:`ErrorCode`, for programs. Default: that of the class.
    where : object, optional
        The file, run or joint that it is about; the message begins with it.

    Attributes
    ----------
    code, argument, where : str
        As given, empty if there is none.
    sentence : Sentence
        The message, whose arguments each face names in its own words.
    """

    usual_code: ClassVar[ErrorCode] = ErrorCode.FAILED

    def __init__(self, message: str, argument: str = "", *, code: str = "", where: object = "") -> None:
        self.code = ErrorCode(code or self.usual_code)
        self.where = str(where)
        text = message.text if isinstance(message, Sentence) else message
        self.sentence = Sentence(f"{where}: {text}" if self.where else text)
        self.argument = argument or next((x.name for x in self.sentence.keywords()), "")
        super().__init__(_plain(self.sentence))

    def in_words(self, words: Callable[[Keyword], str]) -> Self:
        """The same error with `words` of each argument."""
        return self._with(self.sentence.in_words(words))

    def at(self, where: object) -> Self:
        """The same error, with the place before it."""
        found = self._with(f"{where}: {self.sentence.text}")
        found.where = f"{where}: {self.where}" if self.where else str(where)
        return found

    def _with(self, text: str) -> Self:
        found = copy.copy(self)
        found.sentence = Sentence(text)
        found.args = (_plain(found.sentence),)
        return found


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

    usual_code = ErrorCode.INVALID_MODEL


class NoJointsError(ModelError):
    """A robot description in which nothing moves."""

    usual_code = ErrorCode.NOT_APPLICABLE


class DataError(DynidError):
    """Arrays, files or settings with a wrong shape or invalid values."""

    usual_code = ErrorCode.INVALID_VALUE


class UnknownName(DataError):
    """A name that is not among the choices."""

    usual_code = ErrorCode.UNKNOWN_NAME


class InvalidType(DataError):
    """A value of another type."""

    usual_code = ErrorCode.INVALID_TYPE


class InvalidValue(DataError):
    """A setting out of its range."""

    usual_code = ErrorCode.INVALID_VALUE


class InvalidShape(DataError):
    """An array or list of another size."""

    usual_code = ErrorCode.INVALID_SHAPE


class NotFinite(DataError):
    """NaN or inf inside data."""

    usual_code = ErrorCode.NOT_FINITE


class MissingArgument(DataError):
    """Something that must be given."""

    usual_code = ErrorCode.MISSING_ARGUMENT


class MissingData(DataError):
    """The recording or robot does not hold what is needed."""

    usual_code = ErrorCode.MISSING_DATA


class ConflictingArguments(DataError):
    """Arguments that exclude each other."""

    usual_code = ErrorCode.CONFLICTING


class NotApplicable(DataError):
    """Not for this robot, recording, method or case."""

    usual_code = ErrorCode.NOT_APPLICABLE


class Mismatch(DataError):
    """Things that do not belong together."""

    usual_code = ErrorCode.MISMATCH


class Duplicate(DataError):
    """Something that is there twice."""

    usual_code = ErrorCode.DUPLICATE


class MissingFile(DataError):
    """A file that is not there or cannot be opened."""

    usual_code = ErrorCode.FILE_MISSING


class DamagedFile(DataError):
    """A file whose content cannot be read."""

    usual_code = ErrorCode.FILE_DAMAGED


class WrongFormat(DataError):
    """A file of another kind."""

    usual_code = ErrorCode.FILE_FORMAT


class WrongVersion(DataError):
    """A file of another version of dynid."""

    usual_code = ErrorCode.FILE_VERSION


class NotWritable(DataError):
    """An output that cannot be written."""

    usual_code = ErrorCode.NOT_WRITABLE


class TooLarge(DataError):
    """Over a limit of size, number or time."""

    usual_code = ErrorCode.TOO_LARGE


class TooFew(DataError):
    """Too few samples, runs, joints or seconds."""

    usual_code = ErrorCode.TOO_FEW


class NotIdentifiable(DataError):
    """The data do not determine it."""

    usual_code = ErrorCode.NOT_IDENTIFIABLE


class Infeasible(DataError):
    """No physically consistent solution, or no room within limits."""

    usual_code = ErrorCode.INFEASIBLE


class SimulationFailed(DataError):
    """A simulation that diverged."""

    usual_code = ErrorCode.SIMULATION_FAILED


class Unsupported(DataError):
    """What dynid or the format cannot express."""

    usual_code = ErrorCode.UNSUPPORTED


class MissingPackage(DataError):
    """An optional package or program that is not installed."""

    usual_code = ErrorCode.MISSING_PACKAGE


class MissingJoints(MissingData):
    """Joints of the robot that have no column of positions.

    Attributes
    ----------
    joints : tuple of str
        Their names.
    """

    def __init__(self, message: str, joints: Sequence[str] = (), **about: Any) -> None:
        super().__init__(message, **about)
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
