"""Figures in README and docs are those of stored outputs of studies."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dynid.cli.main import app
from dynid.errors import DataError
from studies.reproduce.registry import studies
from studies.reproduce.stored import STORED, differences, read_output, store_output, stored_count
from studies.reproduce.study import Figure
from tests.support.errors import expect_error

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIGURES = [
    Figure("Coverage", "two joints", "95 %", "96.24 %, RMS z 0.93", 1.2, 2.0, "band"),
    Figure("Coverage", "time", "-", "0.00123 s", 0.0, math.inf, "for the record"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_state_the_stored_figures(page: Path) -> None:
    assert list(differences(page.read_text(encoding="utf-8"), STORED)) == []


def test_every_stored_output_belongs_to_a_study() -> None:
    paths = list(STORED.glob("*.json"))
    assert {path.stem.removesuffix("-full") for path in paths} <= set(studies())
    assert stored_count("structure", full=False) == len(read_output(STORED, "structure"))
    assert stored_count("structure", full=True) == 0


def test_an_output_is_read_back_as_it_was_stored(tmp_path: Path) -> None:
    assert store_output(tmp_path, "coverage", True, FIGURES).name == "coverage-full.json"
    assert read_output(tmp_path, "coverage", full=True) == FIGURES
    with expect_error(DataError):
        read_output(tmp_path, "coverage")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Covered are 96.2 %, with an RMS z of 0.93.", 0),
        ("Covered are 96 %, with an RMS z of 0.9.", 0),
        ("| two | 96.24 | 0.93 |", 0),
        ("Covered are 96.3 %, with an RMS z of 0.93.", 1),
        ("Covered are 96.2 %, with an RMS z of 1.93.", 1),
        ("Covered are 96.2 %.", 1),
        ("Nothing is said here.\n\nCovered are 96.2 %, with an RMS z of 0.93.", 1),
    ],
)
def test_a_text_that_differs_from_the_output_is_found(tmp_path: Path, text: str, found: int) -> None:
    store_output(tmp_path, "coverage", False, FIGURES)
    sentences = list(differences(f"Before.\n\n<!-- coverage: two joints -->\n{text}\n", tmp_path))
    assert len(sentences) == found
    assert all("96.24 %, RMS z 0.93" in x for x in sentences)


def test_several_figures_of_one_block(tmp_path: Path) -> None:
    store_output(tmp_path, "coverage", False, FIGURES)
    page = "<!-- coverage: two joints | time -->\n| share | RMS z | time |\n|---|---|---|\n| 96.2 | 0.93 | 0.0012 s |\n"
    assert list(differences(page, tmp_path)) == []
    assert len(list(differences(page.replace("0.0012", "0.0013"), tmp_path))) == 1
    assert list(differences(page.replace("| time -->", "| tame -->"), tmp_path)) == ["coverage has no figure 'tame'"]


def test_the_command_stores_what_it_prints(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "iiwa-feasibility", "--store", str(tmp_path)])
    assert result.exit_code == 0
    assert read_output(tmp_path, "iiwa-feasibility") == list(studies()["iiwa-feasibility"].run())


def test_half_of_the_cases_is_not_stored(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "bodies", "--half", "development", "--store", str(tmp_path)])
    assert result.exit_code != 0
    assert not list(tmp_path.iterdir())
