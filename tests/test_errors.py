"""Errors have a code, an argument and a place, and survive what errors go through."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dynid
from dynid import errors
from dynid.errors import (
    DataError,
    DynidError,
    ErrorCode,
    InvalidValue,
    MissingJoints,
    ModelError,
    Sentence,
    UnknownName,
    keyword,
    named,
)

SOURCE = Path(dynid.__path__[0])
CLASSES = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, DynidError)]


def test_an_error_has_a_code_an_argument_and_a_place() -> None:
    error = InvalidValue("the rate must be positive", "rate", where="run.csv")
    assert str(error) == "run.csv: the rate must be positive"
    assert (error.code, error.argument, error.where) == ("invalid_value", "rate", "run.csv")
    assert isinstance(error, DataError) and error.code is ErrorCode.INVALID_VALUE
    assert ModelError("no link").code == "invalid_model"
    assert ModelError("a helix", code="unsupported").code == "unsupported"
    with pytest.raises(ValueError, match="hopeless"):
        DataError("x", code="hopeless")


def test_every_class_has_one_code_and_every_code_a_use() -> None:
    own = [x for x in CLASSES if DataError in x.__mro__ and x not in (DataError, MissingJoints, InvalidValue)]
    codes = [x.usual_code for x in own]
    assert len(set(codes)) == len(codes)
    raised = {x.usual_code for x in CLASSES} | {code for _, code in explicit_codes()}
    assert raised == set(ErrorCode)


def test_the_argument_is_the_first_that_the_sentence_marks() -> None:
    error = UnknownName(f"{named('method')} 'x' is unknown, or give {keyword('options')}")
    assert str(error) == "method 'x' is unknown, or give options="
    assert error.argument == "method"
    assert [x.name for x in error.sentence.keywords()] == ["method", "options"]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_other_processes_keep_everything(again: object) -> None:
    assert callable(again)
    error = again(MissingJoints(f"give {keyword('lock', 'j1')}", ["j1"], where="a.csv"))
    assert type(error) is MissingJoints and error.joints == ("j1",)
    assert str(error) == 'a.csv: give lock="j1"' and error.argument == "lock"
    assert error.in_words(lambda x: f"<{x.name}>").sentence == "a.csv: give <lock>"
    sentence = again(Sentence(f"give {keyword('rate')}"))
    assert sentence == "give rate=" and sentence.in_words(lambda x: "--rate") == "give --rate"


def test_a_place_is_put_before() -> None:
    error = UnknownName(f"{named('unit')} 'x' is unknown", where="column 3")
    found = error.at("run.csv")
    assert type(found) is UnknownName and found.code == error.code
    assert str(found) == "run.csv: column 3: unit 'x' is unknown" and str(error) == "column 3: unit 'x' is unknown"
    assert found.in_words(lambda x: "--unit").args == ("run.csv: column 3: --unit 'x' is unknown",)


@pytest.mark.parametrize("text", ["\ue000", "\ue000[1", "\ue001 \ue000{}\ue001", '\ue000["a"', "a\x1b[31m\u202e"])
def test_what_files_contain_is_no_mark(text: str) -> None:
    """Nothing that cannot be printed is printed."""
    error = DataError(f"column '{text}' is unknown")
    assert str(error).isprintable() and error.argument == ""


def calls() -> Iterator[tuple[Path, ast.Call, str]]:
    """Every call of an error class in the package."""
    names = {x.__name__ for x in CLASSES}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield path, node, node.func.id


def explicit_codes() -> Iterator[tuple[Path, str]]:
    """Codes that are given where an error is made."""
    for path, node, _ in calls():
        for word in node.keywords:
            if word.arg == "code" and isinstance(word.value, ast.Constant):
                yield path, word.value.value


def test_no_error_of_data_is_without_a_kind() -> None:
    """`DataError` itself says nothing: the class of its kind is raised, or a code is given."""
    plain = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, node, name in calls()
        if name in ("DataError", "DynidError") and "code" not in {x.arg for x in node.keywords}
    ]
    assert not plain, plain


def test_arguments_are_marked_in_errors() -> None:
    """A message with `rate=` marks it, so that each face can name it in its own words."""
    found = []
    for path, node, _ in calls():
        for part in ast.walk(node.args[0]) if node.args else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for word in re.findall(r"(?<![-\w.\"'</(])([a-z_]{2,})=(?![=\w{.])", part.value):
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {word}=")
    assert not found, found


def test_arguments_are_names_that_somebody_can_give() -> None:
    """Parameters of functions and fields of classes: an argument that nothing has would send a user looking for it."""
    known: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            known |= {node.arg} if isinstance(node, ast.arg) else set()
            known |= (
                {node.target.id} if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else set()
            )
    given = {
        (node.args[1].value, f"{path.relative_to(SOURCE)}:{node.lineno}")
        for path, node, _ in calls()
        if len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
    }
    assert len(given) > 300
    assert not sorted(f"{where} {name}" for name, where in given if name not in known)
