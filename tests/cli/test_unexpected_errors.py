"""Whatever happens inside a command ends in one line on standard error and an exit code, never in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynid.cli import main as module
from dynid.cli.main import TRACEBACK, UNEXPECTED, main
from dynid.errors import DataError


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> tuple[int, list[str]]:
    """Exit code and standard error of a command that raises."""

    def command(**_: object) -> None:
        raise error

    monkeypatch.setattr(module, "app", command)
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0), capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DataError("no such log"), 1, "dynid: no such log"),
        (KeyboardInterrupt(), 130, "dynid: interrupted"),
        (MemoryError(), UNEXPECTED, "dynid: this command needs more computer memory than there is"),
        (RecursionError(), UNEXPECTED, "dynid: something in the input is nested too deeply"),
        (
            ZeroDivisionError("division by zero\nsecond line"),
            UNEXPECTED,
            "unexpected ZeroDivisionError: division by zero",
        ),
        (KeyError("x"), UNEXPECTED, "unexpected KeyError: 'x'"),
    ],
)
def test_one_line_for_every_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
) -> None:
    found, lines = ended(monkeypatch, capsys, error)
    assert found == code and len(lines) == 1 and words in lines[0]
    assert (TRACEBACK in lines[0]) == (code == UNEXPECTED)


def test_the_traceback_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    code, lines = ended(monkeypatch, capsys, ZeroDivisionError("division by zero"))
    assert code == UNEXPECTED and lines[0].startswith("Traceback") and lines[-1].startswith("dynid: unexpected")


def test_output_that_nobody_reads_is_no_traceback(tmp_path: Path) -> None:
    """`dynid robots | head -0`: the pipe is closed before the first line."""
    script = f"{sys.executable} -m dynid robots 2> err.txt | true; cat err.txt"
    found = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in found.stdout + found.stderr and "Exception ignored" not in found.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_output_that_does_not_arrive_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dynid", "robots"]
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.splitlines() == ["dynid: the output cannot be read or written: No space left on device"]


def test_a_terminal_without_letters_gets_question_marks(tmp_path: Path) -> None:
    robot = tmp_path / "arm.urdf"
    body = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
    robot.write_text(
        f"<robot name='é'><link name='a'/><link name='b'>{body}</link><joint name='ü' type='continuous'>"
        "<parent link='a'/><child link='b'/></joint></robot>",
        encoding="utf-8",
    )
    command, settings = (
        [sys.executable, "-m", "dynid", "inspect", str(robot)],
        {**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    found = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and found.stdout.startswith("?: 1 joint")
