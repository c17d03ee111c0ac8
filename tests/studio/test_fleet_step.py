"""The folder of a fleet, made from logs of the workspace or found in it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from dynid.cli.project import load_project
from dynid.errors import DataError, InvalidValue, MissingArgument, MissingFile, NotWritable
from dynid.studio.fleet_panel import fleet_rows
from dynid.studio.fleet_step import FLEET_LOGS, FleetChoice, FleetRun, FleetStep, guessed_run
from dynid.studio.session import Session
from dynid.studio.workspace import Workspace
from tests.support.errors import expect_error


@pytest.fixture
def step(tmp_path: Path) -> FleetStep:
    session = Session(Workspace(tmp_path))
    session.choose("twolink")
    for name in ("A_2026-03-02.csv", "A_2026-03-09.csv", "B.csv"):
        (tmp_path / name).write_text(name)
    return FleetStep(session)


def test_names_of_files_say_unit_and_date() -> None:
    assert guessed_run("arm3_2026-03-02.csv") == ("arm3", "2026-03-02")
    assert guessed_run("20260309-cell-2.csv") == ("cell-2", "2026-03-09")
    assert guessed_run("left_2026_03_02_run.parquet") == ("left-run", "2026-03-02")
    assert guessed_run("log1234567890.csv") == ("log1234567890", "")


def test_a_folder_is_made_from_logs_and_made_anew(step: FleetStep, tmp_path: Path) -> None:
    runs = [FleetRun("A_2026-03-02.csv", "A", "2026-03-02"), FleetRun("B.csv", "B", "2026-03-03")]
    assert step.folders() == [] and set(step.logs()) == {"A_2026-03-02.csv", "A_2026-03-09.csv", "B.csv"}
    assert step.arrange(runs) == FLEET_LOGS and step.folders() == [FLEET_LOGS]
    placed = tmp_path / FLEET_LOGS / "robot=A" / "date=2026-03-02" / "A_2026-03-02.csv"
    assert placed.read_text() == "A_2026-03-02.csv" and step.runs(FLEET_LOGS) == runs
    step.arrange(runs[1:])
    assert step.runs(FLEET_LOGS) == runs[1:] and (tmp_path / "A_2026-03-02.csv").exists()


def test_a_folder_of_somebody_else_stays(step: FleetStep, tmp_path: Path) -> None:
    (tmp_path / FLEET_LOGS / "robot=A").mkdir(parents=True)
    with expect_error(NotWritable):
        step.arrange([FleetRun("B.csv", "B", "2026-03-03")])
    assert (tmp_path / FLEET_LOGS / "robot=A").is_dir()


def test_wrong_choices_are_one_sentence(step: FleetStep) -> None:
    for unit, day in (("../x", "2026-03-02"), ("", "2026-03-02"), ("A", "yesterday"), ("A", "2026-13-01")):
        with pytest.raises(DataError):
            FleetRun("B.csv", unit, day)
    with expect_error(MissingArgument, "logs"):
        step.arrange([])
    for choice, error in (
        (FleetChoice(), (MissingArgument, "folder")),
        (FleetChoice("../elsewhere"), (InvalidValue, "name")),
        (FleetChoice("gone"), (MissingFile, "folder")),
    ):
        with expect_error(*error):
            asyncio.run(step.identify(choice))


def test_the_choice_is_kept_for_the_command(step: FleetStep, tmp_path: Path) -> None:
    choice = FleetChoice("lab", 0.01, skip_bad=True)
    step.session.project.put("fleet", choice.to_section())
    assert FleetStep(Session(Workspace(tmp_path))).choice == choice
    section = load_project(tmp_path / "dynid.toml").fleet
    assert (section.folder, section.false_alarms, section.skip_bad, section.unit_gains) == ("lab", 0.01, True, None)


def test_what_was_found_belongs_to_its_page(step: FleetStep, tmp_path: Path) -> None:
    changed = {"unit": "B", "code": "changed", "dates": 6, "words": "drifts; steps"}
    found = {"units": [changed, {"unit": "A", "code": "steady", "dates": 6, "words": "no change"}]}
    (tmp_path / "fleet.found.json").write_text(json.dumps(found))
    assert step.found() is None
    (tmp_path / "fleet.html").write_text("page")
    os.utime(tmp_path / "fleet.html", ns=(0, 0))
    assert step.found() == found and "fleet.found.json" not in step.session.recordings()
    assert [row["unit"] for row in fleet_rows(found)] == ["B", "A"]
    assert fleet_rows(found)[0]["found"] == "drifts; steps" and fleet_rows(found)[1]["found"] == "no change"
