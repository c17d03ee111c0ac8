"""No name leads out of the workspace, and uploads are whole or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dynid.errors import DataError, InvalidValue, MissingArgument, MissingData, MissingFile, NotApplicable, TooLarge
from dynid.studio import workspace as module
from dynid.studio.runs import LogRuns
from dynid.studio.session import Session
from dynid.studio.workspace import Workspace
from tests.support.errors import expect_error


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "..",
        ".",
        "",
        "/etc/passwd",
        "a/b.csv",
        "a\\b.csv",
        ".hidden",
        "x\x00.csv",
        "a..b/..",
        "n" * 200,
        "%2e%2e",
    ],
)
def test_names_that_are_no_plain_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError):
        Workspace(tmp_path).write(name, b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    """Neither read nor written through."""
    inside, secret = tmp_path / "inside", tmp_path / "secret.txt"
    inside.mkdir()
    secret.write_text("secret")
    (inside / "link.csv").symlink_to(secret)
    with expect_error(InvalidValue, "name"):
        Workspace(inside).existing("link.csv")
    with expect_error(InvalidValue, "name"):
        Workspace(inside).write("link.csv", b"x")
    assert secret.read_text() == "secret"


def test_uploads_are_bounded_and_replace_whole_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Workspace(tmp_path)
    monkeypatch.setattr(module, "UPLOAD_LIMIT", 2**20)
    with expect_error(TooLarge):
        place.write("big.csv", b"x" * (2**20 + 1))
    with expect_error(MissingData):
        place.write("empty.csv", b"")
    place.write("run.csv", b"one")
    place.write("run.csv", b"two")
    assert place.names() == ["run.csv"] and place.existing("run.csv").read_bytes() == b"two"


def test_uploads_at_once_do_not_meet(tmp_path: Path) -> None:
    """Two of one name: the second is told; a name that is arriving is not offered; one that fails leaves nothing."""
    place = Workspace(tmp_path)
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(part: Path) -> None:
        part.write_bytes(b"first")
        started.set()
        await go_on.wait()

    async def at_once(part: Path) -> None:
        part.write_bytes(b"other")

    async def failing(part: Path) -> None:
        part.write_bytes(b"half")
        raise ValueError

    async def story() -> None:
        first = asyncio.create_task(place.keep("run.csv", 5, slowly))
        await started.wait()
        with expect_error(NotApplicable, "name"):
            await place.keep("run.csv", 5, at_once)
        assert place.taken("run.csv") and place.free_name("run.csv") == "run-2.csv"
        await place.keep(place.free_name("run.csv"), 5, at_once)
        go_on.set()
        await first
        with pytest.raises(ValueError):
            await place.keep("run.csv", 4, failing)

    asyncio.run(story())
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"run.csv": b"first", "run-2.csv": b"other"}
    assert not place.arriving


def test_malformed_robots_leave_the_old_one(tmp_path: Path) -> None:
    """A file that is no robot is told in a sentence."""
    session = Session(Workspace(tmp_path))
    session.choose("twolink")
    for name, content in (("bad.urdf", b"<robot"), ("none.toml", b"= ="), ("zip.urdf", b"PK\x03\x04\x00")):
        session.workspace.write(name, content)
        with pytest.raises(Exception) as caught:
            session.choose(name)
        assert type(caught.value).__module__ == "dynid.errors"
    assert session.name == "twolink" and session.robot is not None


def test_only_files_of_the_workspace_reach_commands(tmp_path: Path) -> None:
    """A recording elsewhere, or an option in place of one, is refused before any command runs."""
    session = Session(Workspace(tmp_path))
    session.choose("twolink")
    for name in ("/etc/passwd", "--output=x.csv", "missing.csv"):
        with pytest.raises(DataError):
            session.use(LogRuns((name,)))
        session.project.put("runs", {"identify": [name]})
        with pytest.raises(DataError):
            asyncio.run(session.check())
        session.project.put("runs", {})
    with expect_error(MissingArgument):
        asyncio.run(session.check())
    with pytest.raises(DataError):
        asyncio.run(session.identify(name="../out"))
    assert session.jobs.history == []


def test_a_robot_of_the_command_line_is_copied(tmp_path: Path) -> None:
    import dynid
    from dynid.export.urdf import write_urdf

    write_urdf(dynid.load_robot("twolink"), tmp_path / "arm.urdf")
    (tmp_path / "work").mkdir()
    session = Session(Workspace(tmp_path / "work"))
    assert session.adopt(tmp_path / "arm.urdf").n == 2
    assert session.choices()[0] == "arm.urdf" and "dynid.toml" not in session.choices()
    with expect_error(MissingFile, "source"):
        session.adopt("nowhere.urdf")


def test_a_second_file_of_a_name_gets_a_number(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert workspace.free_name("run.csv") == "run.csv"
    for name in ("run.csv", "run-2.csv"):
        workspace.write(name, b"x")
    assert workspace.free_name("run.csv") == "run-3.csv"
