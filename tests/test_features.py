"""The tables of features in the documentation: every line leads to a name or command that exists, and to a test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dynid.cli.main import app
from studies.reproduce.registry import studies
from tests.support.commands import leaves
from tests.support.public import exists, public_names

ROOT = Path(__file__).parents[1]
COMMANDS: dict[str, Any] = leaves(app.built)
# Features of each document, in the order of the page.
COUNTS = {
    "Sousa 2014": 58,
    "Nguyen 2021": 56,
    "Halper 2024": 46,
    "Janot and Wensing 2021": 45,
    "Krishnamoorthi 2018": 60,
}
NOT_BUILT = "not built: "
MOST_NOT_BUILT = 10


class Row(NamedTuple):
    """A line of a table: the document, the number of the feature, its words, names or commands, and the test."""

    document: str
    number: str
    words: str
    names: str
    test: str

    @property
    def label(self) -> str:
        return f"{self.document}, {self.number}"


def rows_of(text: str) -> list[Row]:
    """All lines of the tables, heading by heading; a heading ends with its document in brackets."""
    found = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = re.fullmatch(r".*\((.+)\)", section.splitlines()[0])
        assert heading, section.splitlines()[0]
        for line in re.findall(r"^\| (F\d.*?) \|$", section, re.MULTILINE):
            cells = line.split(" | ")
            assert len(cells) == 4, line
            found.append(Row(heading[1], *cells))
    return found


ROWS = rows_of((ROOT / "docs" / "features.md").read_text(encoding="utf-8"))
BUILT = [row for row in ROWS if not row.names.startswith(NOT_BUILT)]


def quoted(cell: str) -> list[str]:
    """What stands between backticks, and nothing else but commas beside it."""
    found = re.findall(r"`([^`]+)`", cell)
    assert found and cell == ", ".join(f"`{x}`" for x in found), cell
    return found


@cache
def public() -> frozenset[str]:
    """Full names of all public functions and classes."""
    return frozenset(f"{module}.{name}" for module, name, _ in public_names())


def is_public(name: str) -> bool:
    """Whether a dotted name is public, or an attribute of something public."""
    parts = name.split(".")
    heads = {".".join(parts[: i + 1]) for i in range(1, len(parts))}
    return bool(heads & public()) and exists(name)


def is_command(line: str) -> bool:
    """Whether a line is a command with options it has; after `dynid reproduce` stands a study."""
    words = line.split()[1:]
    options = [word for word in words if word.startswith("--")]
    name = " ".join(words[: len(words) - len(options)])
    if name.startswith("reproduce ") and not options:
        return name.removeprefix("reproduce ") in studies()
    known = {x for p in COMMANDS[name].params for x in (*p.opts, *p.secondary_opts)} if name in COMMANDS else set()
    return name in COMMANDS and words == [*name.split(), *options] and set(options) <= known


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file; none if there is no file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return frozenset(x.name for x in body if isinstance(x, ast.FunctionDef) and x.name.startswith("test_"))


def is_test(name: str) -> bool:
    """Whether `tests/path/test_file.py::test_name` exists."""
    path, _, function = name.partition("::")
    return path.startswith("tests/") and function in functions_of(path)


def test_every_feature_of_every_document_has_its_line() -> None:
    """F1 to the last one, in order, none twice."""
    numbers: dict[str, list[str]] = {}
    for row in ROWS:
        numbers.setdefault(row.document, []).append(row.number)
    assert numbers == {document: [f"F{k + 1}" for k in range(count)] for document, count in COUNTS.items()}


def test_names_and_commands_exist() -> None:
    """Public names can be imported, commands have their options."""
    wrong = [
        (row.label, name)
        for row in BUILT
        for name in quoted(row.names)
        if not (is_public(name) if name.startswith("dynid.") else is_command(name))
    ]
    assert wrong == []


def test_tests_exist() -> None:
    """One per line, by file and function."""
    wrong = [(row.label, row.test) for row in BUILT if len(quoted(row.test)) != 1 or not is_test(quoted(row.test)[0])]
    assert wrong == []


def test_few_features_are_not_built_and_each_says_why() -> None:
    """A reason follows the two words; there is no test then."""
    missing = [row for row in ROWS if row.names.startswith(NOT_BUILT)]
    assert len(missing) <= MOST_NOT_BUILT
    assert all(len(row.names.removeprefix(NOT_BUILT).split()) > 3 and row.test == "—" for row in missing)


@pytest.mark.parametrize(
    "name", ["dynid.Robot.nothing", "dynid.identify_all", "dynid.excitation.basis.fourier", "dynid.no.thing"]
)
def test_a_name_that_is_not_public_is_found(name: str) -> None:
    """Missing attributes, missing functions, and functions of modules that are not public."""
    assert not is_public(name)


@pytest.mark.parametrize(
    "line", ["dynid nothing", "dynid check --counts", "dynid reproduce nothing", "dynid identify wls", "dynid human"]
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    """Unknown commands, options of other commands, unknown studies, values, groups."""
    assert not is_command(line)


@pytest.mark.parametrize("name", ["tests/test_features.py::test_no_such", "tests/none.py::test_x", "src/a.py::test_x"])
def test_a_test_that_does_not_exist_is_found(name: str) -> None:
    assert not is_test(name)
