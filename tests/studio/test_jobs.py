"""Commands that run beside the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dynid.errors import DataError
from dynid.studio.jobs import Jobs
from dynid.studio.session import Session
from dynid.studio.workspace import Workspace


def test_a_command_gives_its_data_and_its_line(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    done = asyncio.run(jobs.run("robots", "--json"))
    assert done.ok and "tx40" in done.data
    assert jobs.history == ["dynid robots --json"] and not jobs.busy


def test_a_failure_is_its_last_words(tmp_path: Path) -> None:
    done = asyncio.run(Jobs(tmp_path).run("inspect", "nowhere.urdf"))
    assert not done.ok and "nowhere.urdf" in done.reason and "Traceback" not in done.err
    with pytest.raises(DataError, match="no JSON"):
        _ = done.data


def test_a_command_can_be_cancelled_and_another_one_waits(tmp_path: Path) -> None:
    """Cancelling leaves no half-written motion."""
    session = Session(Workspace(tmp_path))
    session.choose("tx40")

    async def story() -> None:
        heard: list[str] = []
        first = asyncio.create_task(session.design(10, 300, 0.8, 0, heard.append))
        while not heard:
            await asyncio.sleep(0.05)
        with pytest.raises(DataError, match="still running"):
            await session.jobs.run("robots")
        session.jobs.cancel()
        done = await first
        assert done.cancelled and not done.ok and done.reason == "cancelled"

    asyncio.run(story())
    assert not (tmp_path / "motion.csv").exists() and not session.jobs.busy


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
        checked = await session.check(["simulated.csv"])
        assert checked.out.strip().startswith(("{", "["))

    asyncio.run(story())
    t, q = session.motion("simulated.csv")
    assert q.shape == (len(t), 6) and 500 < len(t) < 1300 and t[0] == 0
    assert all(line.startswith("dynid ") for line in session.jobs.history)
