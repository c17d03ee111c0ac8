"""Commands that run beside the page."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.errors import DataError, Mismatch, NotApplicable
from dynid.progress import Progress
from dynid.studio import jobs as jobs_module
from dynid.studio.jobs import Done, Jobs
from dynid.studio.session import Session
from dynid.studio.workspace import Workspace
from tests.support.errors import expect_error


def test_a_command_gives_its_data_and_its_line(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    done = asyncio.run(jobs.run("robots", "--json"))
    assert done.ok and "tx40" in done.data
    assert jobs.history == ["dynid robots --json"] and not jobs.busy


def test_a_failure_is_its_last_words(tmp_path: Path) -> None:
    done = asyncio.run(Jobs(tmp_path).run("inspect", "nowhere.urdf"))
    assert not done.ok and "nowhere.urdf" in done.reason and "Traceback" not in done.err
    with expect_error(DataError, code="interrupted"):
        _ = done.data


def test_a_command_can_be_cancelled_and_another_one_waits(tmp_path: Path) -> None:
    """Cancelling leaves no half-written motion. The search for a long motion would take a minute."""
    session = Session(Workspace(tmp_path))
    session.choose("tx40")

    async def story() -> None:
        heard: list[Progress] = []
        first = asyncio.create_task(session.design(5000, 100_000, 0.8, 0, heard.append))
        while not any(one.values for one in heard):  # the criterion of the search, while it runs
            await asyncio.sleep(0.05)
        with expect_error(NotApplicable):
            await session.jobs.run("robots")
        session.jobs.cancel()
        done = await first
        assert done.cancelled and not done.ok and done.reason == "cancelled" and "progress" not in done.err

    asyncio.run(story())
    assert not (tmp_path / "motion.csv").exists() and not session.jobs.busy


def test_a_command_that_does_not_hear_the_interrupt_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt inside a callback of compiled code is lost."""
    send = Jobs._send
    monkeypatch.setattr(Jobs, "_send", lambda self, sign: None if sign == signal.SIGINT else send(self, sign))
    monkeypatch.setattr(jobs_module, "_PATIENCE", 0.2)
    session = Session(Workspace(tmp_path))
    session.choose("twolink")

    async def story() -> None:
        heard: list[Progress] = []
        design = asyncio.create_task(session.design(5000, 100_000, 0.8, 0, heard.append))
        while not heard:
            await asyncio.sleep(0.05)
        session.jobs.cancel()
        assert (await design).reason == "cancelled"

    asyncio.run(story())
    assert not (tmp_path / "motion.csv").exists() and not session.jobs.busy


@pytest.mark.slow
def test_the_steps_from_robot_to_recording(tmp_path: Path) -> None:
    """Design, simulated experiment, check: each leaves its file, each shows its command."""
    session = Session(Workspace(tmp_path))
    session.choose("rv2sq")

    async def story() -> None:
        designed = await session.design(4, 2, 0.8, 0)
        assert designed.ok, designed.err
        assert designed.data["condition_number"] > 1
        ran = await session.experiment(5.0, 1e-5, 0.2)
        assert ran.ok, ran.err
        with pytest.raises(DataError, match="another name"):
            await session.experiment(5.0, 1e-5, 0.2, "motion.csv")
        checked = await session.check()
        assert checked.out.strip().startswith(("{", "["))

    asyncio.run(story())
    t, q = session.motion("simulated.csv")
    assert q.shape == (len(t), 6) and 500 < len(t) < 1300 and t[0] == 0
    assert all(line.startswith("dynid ") for line in session.jobs.history)


def test_of_two_commands_at_once_one_is_refused(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)

    async def both() -> list[object]:
        return list(await asyncio.gather(jobs.run("robots"), jobs.run("robots"), return_exceptions=True))

    first, second = asyncio.run(both())
    assert isinstance(first, Done) and first.ok
    assert isinstance(second, DataError) and len(jobs.history) == 1 and not jobs.busy


def test_an_estimate_is_played_with_the_drive_terms_that_it_has(tmp_path: Path) -> None:
    """The method may choose other ones than the robot's file has."""
    robot = dynid.load_robot("twolink")
    recording = synthetic_recording(robot, 0, duration=5.0)
    bare = dynid.load_robot("twolink", friction="none", rotor_inertia=False)
    recording.to_csv(tmp_path / "run.csv")
    dynid.identify(robot, recording, "wls").save(tmp_path / "estimate.json")
    session = Session(Workspace(tmp_path))
    session.choose("twolink", "none", False)
    assert session.robot is not None and session.robot.parameter_names == bare.parameter_names
    t, q = session.replay(5.0, "run.csv")
    assert q.shape == (len(t), 2) and abs(t[-1] - 5.0) < 0.1
    session.choose("tx40")
    with expect_error(Mismatch):
        session.replay(5.0, "run.csv")


def test_a_verdict_of_an_older_estimate_is_not_shown(tmp_path: Path) -> None:
    """A command that is killed leaves its estimate beside the verdict of the one before."""
    session = Session(Workspace(tmp_path))
    for age, name in ((20, "verdict.json"), (10, "estimate.json")):
        (tmp_path / name).write_text('{"verdict": "trusted"}')
        os.utime(tmp_path / name, ns=(10**18 - age * 10**9,) * 2)
    assert session.verdict() is None
    os.utime(tmp_path / "verdict.json", ns=(10**18,) * 2)
    assert session.verdict() == {"verdict": "trusted"}
