"""Kernels, estimators and base parameters open with the equation that they compute, and say where it stands.

A module's docstring has an indented line with the equation (an equality or an update), and a paragraph that begins with
"Source:" or "Sources:". That names a work with its year, the place in this package where the source is named, or says
that the derivation is our own.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "dynid"
FOLDERS = ("dynamics/kernels", "identification/estimators", "parameters")
# Modules without mathematics, with the reason.
NO_EQUATION = {
    "dynamics/kernels/cache.py": "files of compiled kernels",
    "dynamics/kernels/compiler.py": "settings of the compiler",
    "identification/estimators/options.py": "options of the methods",
    "identification/estimators/registry.py": "names of the methods",
    "identification/estimators/method.py": "the record of a method, without mathematics",
}
MODULES = sorted(
    name
    for folder in FOLDERS
    for path in (PACKAGE / folder).glob("*.py")
    if path.name != "__init__.py" and (name := path.relative_to(PACKAGE).as_posix()) not in NO_EQUATION
)
NAMED = re.compile(r"\((?:[^()]* )?(?:1[89]|20)\d\d\)|\bown\b|`\w+(?:\.\w+)*`")


def docstring(path: Path) -> str:
    """Docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def sources(text: str) -> list[str]:
    """Paragraphs of a docstring that name sources."""
    return [" ".join(part.split()) for part in text.split("\n\n") if re.match(r"Sources?:", part)]


def faults(text: str) -> list[str]:
    """What a docstring does not have, or has in another form."""
    found = []
    if not re.search(r"^ {4}.*(?: = | <- |: ?arg(?:min|max) )", text, re.MULTILINE):
        found.append("no equation")
    if not sources(text):
        found.append("no source")
    return found + unnamed(text)


def unnamed(text: str) -> list[str]:
    """Sources without a year, a place in the package or the word "own"."""
    return [f"names no work: {each}" for each in sources(text) if not NAMED.search(each)]


@pytest.mark.parametrize("name", MODULES)
def test_equation_and_source_open_the_module(name: str) -> None:
    assert faults(docstring(PACKAGE / name)) == []


def test_modules_without_equations_exist() -> None:
    """A module that is gone, or that got an equation, leaves the list."""
    assert [name for name in NO_EQUATION if not (PACKAGE / name).is_file()] == []
    assert [name for name in NO_EQUATION if sources(docstring(PACKAGE / name))] == []


def test_every_source_of_the_package_names_a_work() -> None:
    wrong = {p.relative_to(PACKAGE).as_posix(): unnamed(docstring(p)) for p in sorted(PACKAGE.rglob("*.py"))}
    assert {name: each for name, each in wrong.items() if each} == {}


def test_missing_equations_and_sources_are_found() -> None:
    assert faults("Mass matrix.") == ["no equation", "no source"]
    assert faults("Mass matrix.\n\nWith M = 1.\n\nSource: a book (1990).") == ["no equation"]
    assert faults("Mass matrix.\n\n    M = 1\n\nThe source: a book (1990).") == ["no source"]
    assert faults("Mass matrix.\n\n    M = 1\n\nSource: a book.") == ["names no work: Source: a book."]
    assert faults("Mass matrix.\n\n    M <- 1\n\nSources: a book\n(4th edition 2013).") == []
    assert faults("Mass matrix.\n\n    M = 1\n\nSource: own derivation.") == []
