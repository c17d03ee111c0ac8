"""Studies that continue after an interruption: sections and rows that are kept in a folder, and damaged files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dynid.cli.main import app
from dynid.errors import DataError
from studies.reproduce import coverage, excitation, extrapolation, flexible, legs
from studies.reproduce.registry import studies
from studies.reproduce.study import Figure, finished_rows, kept_figures
from tests.support.errors import expect_error

# Without cases or runs to divide, or done in less than a minute.
WHOLE = {
    *("structure", "dynamics", "toolbox-2dof", "wam", "codegen", "iiwa-feasibility", "human-regressor", "tx40"),
    "kr300-flexible",
}

Section = Callable[[], Iterator[Figure]]


def _section(calls: list[str], name: str, count: int) -> Iterator[Figure]:
    """Figures that are not whole in decimal digits, with an infinite tolerance among them."""
    for k in range(count):
        calls.append(name)
        yield Figure(name, f"Größe {k}", "1/3", f"{k / 3}", k / 3, math.inf if k else 0.1, "for the record")


def _sections(calls: list[str]) -> dict[str, Section]:
    return {name: partial(_section, calls, name, 3) for name in ("first", "second", "third")}


def _stopped(calls: list[str]) -> Iterator[Figure]:
    yield from _section(calls, "second", 2)
    raise KeyboardInterrupt


def test_an_interrupted_study_continues_to_the_same_figures(tmp_path: Path) -> None:
    """Nothing of the section that was stopped is kept, and nothing that was finished is computed again."""
    calls: list[str] = []
    expected = list(kept_figures("fake", _sections(calls), None))
    with pytest.raises(KeyboardInterrupt):
        list(kept_figures("fake", {**_sections(calls), "second": partial(_stopped, calls)}, tmp_path))
    calls.clear()
    assert list(kept_figures("fake", _sections(calls), tmp_path)) == expected
    assert calls == ["second"] * 3 + ["third"] * 3
    calls.clear()
    assert list(kept_figures("fake", _sections(calls), tmp_path)) == expected and not calls


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_half_a_line_at_the_end_is_written_again(cut: int, tmp_path: Path) -> None:
    """Whether its end or all but its beginning is missing; the lines before stay, and the file is whole again."""
    calls: list[str] = []
    expected = list(kept_figures("fake", _sections(calls), tmp_path))
    file = tmp_path / "fake.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    calls.clear()
    assert list(kept_figures("fake", _sections(calls), tmp_path)) == expected
    assert set(calls) == {"third"} and file.read_bytes() == whole


def test_rows_after_half_a_line_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    tasks = {"two": (2,), "three": (3,)}
    first = finished_rows("squares", _square, tasks, path, 1)
    path.write_bytes(path.read_bytes()[:-4])
    assert finished_rows("squares", _square, tasks, path, 1) == first
    assert path.read_bytes().count(b"\n") == 2


def _square(x: int) -> dict[str, tuple[float, float]]:
    return {"pair": (x * x / 7, math.inf)}


def test_rows_are_the_same_whether_they_were_read_or_made(tmp_path: Path) -> None:
    made, read = (finished_rows("squares", _square, {"two": (2,)}, tmp_path / "rows.jsonl", 1) for _ in range(2))
    assert made == read == finished_rows("squares", _square, {"two": (2,)}, None, 1)


@pytest.mark.parametrize("text", ["not JSON\n", "[1, 2]\n", '{"other": 1}\n'])
def test_a_file_that_is_none_of_ours_is_refused_and_stays(text: str, tmp_path: Path) -> None:
    file = tmp_path / "fake.jsonl"
    file.write_text(text, encoding="utf-8")
    with expect_error(DataError):
        list(kept_figures("fake", _sections([]), tmp_path))
    assert file.read_text(encoding="utf-8") == text


def test_the_time_left_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of the sections that are missing, not of those that are there."""
    list(kept_figures("fake", dict(list(_sections([]).items())[:1]), tmp_path))
    capsys.readouterr()
    list(kept_figures("fake", _sections([]), tmp_path))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0].split(" (")[0] for line in lines] == ["dynid: fake: 1/2", "dynid: fake: 2/2"]


def test_every_long_study_keeps_its_parts() -> None:
    assert {study.name for study in studies().values() if not study.takes("folder")} == WHOLE
    assert {s.name for s in studies().values() if s.takes("half")} == {
        "verdicts",
        "fleet",
        "bodies",
        "regret",
        "geometry-faults",
    }


@pytest.mark.parametrize("study", [coverage, extrapolation, flexible, legs])
def test_equal_names_in_both_forms_are_equal_work(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may hold sections of the short form when the longer one is begun."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(study, "kept_figures", lambda _, sections, folder: asked.append(sections) or iter(()))
    for full in (False, True):
        assert not list(study.figures(full=full))
    short, long = asked
    assert all(repr(long[name]) == repr(work) for name, work in short.items() if name in long)
    assert set(long) - set(short)


def test_the_command_continues_a_real_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed tables of the motions; the designs are replaced, and stopped the first time."""

    def stop() -> Iterator[Figure]:
        raise KeyboardInterrupt

    monkeypatch.setattr(excitation, "_DESIGNS", ())
    monkeypatch.setattr(excitation, "corner_figures", stop)
    command = ["reproduce", "excitation", "--json", "--folder", str(tmp_path)]
    assert CliRunner().invoke(app, command).exit_code != 0
    monkeypatch.setattr(excitation, "corner_figures", partial(_section, [], "corner", 1))
    fresh = CliRunner().invoke(app, command[:-2])
    monkeypatch.setattr(excitation, "table_figures", stop)
    kept = CliRunner().invoke(app, command)
    assert fresh.exit_code == kept.exit_code == 0 and kept.stdout == fresh.stdout and "WAM" in kept.stdout
