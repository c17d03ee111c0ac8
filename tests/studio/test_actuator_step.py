"""Actuators in the page: the choice, what was found, and the files to take away."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dynid.cli.project import load_project
from dynid.errors import MissingArgument, MissingFile
from dynid.studio.actuator_step import ActuatorChoice, ActuatorStep, ErrorRow, ValueRow, error_rows, value_rows
from dynid.studio.actuators_panel import error_bars
from dynid.studio.runs import LogRuns
from dynid.studio.session import Session
from dynid.studio.workspace import Workspace
from tests.support.encoder_logs import encoder_log
from tests.support.errors import expect_error

FOUND: dict[str, Any] = {
    "unknowns": [
        {"label": "armature of a", "value": 0.0123456, "std": 0.00012, "unit": "kg m2"},
        {"label": "delay of all joints", "value": 0.0051, "std": None, "unit": "s"},
        {"label": "damping of b", "value": 0.0, "std": 0.5, "unit": "N m s/rad", "at_bound": True},
    ],
    "joints": ["a", "b"],
    "position_units": ["rad", "m"],
    "rms": [0.001, 0.002],
    "prior_rms": [0.01, None],
    "unseen": None,
    "unseen_prior": None,
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    found = Session(Workspace(tmp_path))
    found.choose("twolink")
    return found


def test_the_choice_is_kept_for_the_command(session: Session, tmp_path: Path) -> None:
    assert ActuatorStep(session).choice == ActuatorChoice()
    choice = ActuatorChoice("law.toml", 1000.0, ("friction=shared", "delay"), ("isaaclab",), 50)
    session.project.put("actuators", choice.to_section())
    assert ActuatorStep(Session(Workspace(tmp_path))).choice == choice
    section = load_project(tmp_path / "dynid.toml").actuators
    assert section.law == "law.toml" and section.unknown == ["friction=shared", "delay"] and section.draws == 50


def test_what_is_missing_is_one_sentence(session: Session, tmp_path: Path) -> None:
    step = ActuatorStep(session)
    with expect_error(MissingArgument):
        asyncio.run(step.identify(ActuatorChoice("pd:1,1")))
    (tmp_path / "log.csv").write_text("x")
    session.use(LogRuns(("log.csv",)))
    for choice, error in (
        (ActuatorChoice(), (MissingArgument, "")),
        (ActuatorChoice("gone.toml"), (MissingFile, "name")),
        (ActuatorChoice("pd:1,1", unknown=()), (MissingArgument, "unknown")),
    ):
        with expect_error(*error):
            asyncio.run(step.identify(choice))
    assert session.project.section("actuators") == {}


def test_values_and_errors_are_shown_in_readable_units() -> None:
    assert value_rows(FOUND) == [
        ValueRow("armature of a", "0.01235", "0.00012", "kg m2"),
        ValueRow("delay of all joints", "5.1", "not shown by the log", "ms"),
        ValueRow("damping of b", "0", "0.5 (value at its bound)", "N m s/rad"),
    ]
    rows, unseen = error_rows(FOUND)
    assert not unseen and rows == [ErrorRow("a", "rad", 0.001, 0.01), ErrorRow("b", "m", 0.002, None)]
    other = FOUND | {"unseen": {"rms": [0.003, 0.004]}, "unseen_prior": {"rms": [0.03, float("inf")]}}
    rows, unseen = error_rows(other)
    assert unseen and rows[0].identified == 0.003 and rows[1].given is None
    bars = error_bars(ErrorRow("a", "rad", 0.001, 0.01), 0.01)
    assert 'width="15.0"' in bars and 'width="150.0"' in bars and "10 times smaller" in bars


def test_what_was_found_belongs_to_its_file(session: Session, tmp_path: Path) -> None:
    step = ActuatorStep(session)
    (tmp_path / "actuators.found.json").write_text(json.dumps(FOUND))
    assert step.found() is None
    for name in ("actuators.toml", "actuators_mujoco.xml"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, ns=(0, 0))
    assert step.found() == FOUND and step.files() == ["actuators.toml", "actuators_mujoco.xml"]
    assert not {"actuators.toml", "actuators_mujoco.xml"} & set(session.choices()) and step.laws() == []
    assert session.recordings() == []


@pytest.mark.slow
def test_from_an_encoder_log_to_the_file_of_a_simulator(session: Session, tmp_path: Path) -> None:
    """As the button does it; afterwards the command repeats it without options."""
    encoder_log(tmp_path / "encoders.csv")
    session.use(LogRuns(("encoders.csv",), share=0.3))
    step = ActuatorStep(session)
    done = asyncio.run(step.identify(ActuatorChoice("pd:60,4", unknown=("armature", "friction"))))
    assert done.ok, done.err
    found = step.found()
    assert found is not None and found["joints"] == ["joint1", "joint2"] and found["position_units"] == ["rad", "rad"]
    assert session.jobs.history == ["dynid actuators --json"]
    rows, unseen = error_rows(found)
    assert unseen and all(r.identified is not None and r.given is not None for r in rows)
    assert any("mujoco" in line for line in found["said"]) and not any("wrote" in line for line in found["said"])
    assert rows[0].identified < 0.2 * rows[0].given  # type: ignore[operator]
    assert step.files() == ["actuators.toml", "actuators_mujoco.xml"]
