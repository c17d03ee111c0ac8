"""What a recording leaves to learn, as the studio shows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.errors import MissingArgument
from dynid.studio.runs import LogRuns
from dynid.studio.session import POSTURE, Session
from dynid.studio.workspace import Workspace
from tests.support.errors import expect_error


def test_the_drawing_and_the_advice_come_from_the_recording(tmp_path: Path) -> None:
    """The command is shown, its drawing lies in the workspace with every body, and the score names the next one."""
    session = Session(Workspace(tmp_path))
    session.choose("twolink")
    with expect_error(MissingArgument):
        asyncio.run(session.left_to_learn())
    synthetic_recording(dynid.load_robot("twolink"), 0, duration=4.0).to_csv(tmp_path / "run.csv")
    session.use(LogRuns(("run.csv",)))
    done = asyncio.run(session.left_to_learn())
    assert done.ok, done.err
    assert session.jobs.history == [f"dynid live --figure {POSTURE} --json"]
    drawing = (tmp_path / POSTURE).read_text(encoding="utf-8")
    for name, score in done.data["segments"].items():
        assert f"{name}: {score['relative_std']:.0f} % of the uncertainty left" in drawing
    assert done.data["advice"]["text"].startswith("move ")
