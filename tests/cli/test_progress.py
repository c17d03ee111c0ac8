"""Progress on standard error: lines where nobody watches, a bar on a terminal, and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli import progress
from dynid.cli.main import app
from dynid.cli.progress import working
from dynid.excitation.basis import random_fourier
from dynid.progress import Progress
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.controller_files import load_controller
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference

LIMITS = '{"*": {"lower": -1, "upper": 1, "velocity": 2, "acceleration": 10}}'
DESIGN = ("excite", "wam7", "-o", "motion.toml", "--limits", LIMITS)
# A minute and more: a signal arrives long before the end, on a busy computer too.
LONG = (*DESIGN, "--duration", "4000", "--budget", "1000000")


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_quick_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors of quick commands stay one line: what is over at once is not announced."""
    with working("thinking"):
        pass
    assert capsys.readouterr() == ("", "")


def test_work_that_takes_long_is_announced(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, once, on standard error."""
    monkeypatch.setattr(progress, "_QUIET", 0.01)
    before = set(threading.enumerate())
    with working("thinking"):
        for thread in set(threading.enumerate()) - before:
            thread.join()
    assert capsys.readouterr() == ("", "thinking ...\n")


def test_shares_come_with_the_time_left(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    """At most one line per second, the last always; without an estimate the rest is expected to take as long."""
    with working("simulating") as work:
        for share in (0.1, 0.2, 0.25, 0.5, 1.0):
            clock.now += 0.75
            work.report(Progress("simulated", share))
    # 1.5 s for 20 %, 3 s for 50 %: 6 s and 3 s for the rest.
    assert capsys.readouterr().err.splitlines() == [
        "simulated: 20%, 6 s left",
        "simulated: 50%, 3 s left",
        "simulated: 100%",
    ]


def test_reported_times_are_shown(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    """An estimate of the time left goes before the share; without either the message stands alone."""
    with working("learning") as work:
        for progress in (
            Progress("start 3 of 20, best 1.2", 0.15, 7.0),
            Progress("a closer look"),
            Progress("half", 0.5, 1020.0),
        ):
            clock.now += 10.0
            work.report(progress)
    assert capsys.readouterr().err.splitlines() == [
        "start 3 of 20, best 1.2: 15%, 7 s left",
        "a closer look",
        "half: 50%, 17 min left",
    ]


def test_a_program_gets_lines_of_json(
    capsys: pytest.CaptureFixture[str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most ten per second, the last always, with the values; other lines are no reports."""
    monkeypatch.setenv("DYNID_PROGRESS", "json")
    with working("searching") as work:
        for k in range(4):
            clock.now += 0.06
            work.report(Progress(f"step {k}", 0.1 * k, 3.0, {"criterion": 2.0 - k, "best": float("nan")}))
        work.report(Progress("done", 1.0))
    found = [Progress.from_line(line) for line in capsys.readouterr().err.splitlines()]
    assert found == [
        Progress("searching"),
        Progress("step 1", 0.1, 3.0, {"criterion": 1.0}),
        Progress("step 3", pytest.approx(0.3), 3.0, {"criterion": -1.0}),
        Progress("done", 1.0),
    ]
    for line in ("wrote a.csv", '{"progress": 1}', '{"progress": {"what": 1}}', '{"progress": {'):
        assert Progress.from_line(line) is None


def test_a_closed_loop_reports_its_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dynid identify --method didim` prints each iteration, and its JSON stays JSON."""
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    (tmp_path / "loop.toml").write_text('kind = "cascade"\nrate = 1000\nbandwidth = 8\n')
    robot, ones = dynid.load_robot("twolink"), np.ones(2)
    path = random_fourier(-1.5 * ones, 1.5 * ones, 2 * ones, 5.0, np.arange(5000) / 1000, 0)
    truth = robot.with_parameters(1.2 * robot.parameters)
    made = simulate(
        truth, ClosedLoop(controller=load_controller(tmp_path / "loop.toml", robot)), Reference(1000.0, *path), seed=1
    )
    made.recording().to_csv(tmp_path / "run.csv")
    given = ["identify", "twolink", str(tmp_path / "run.csv"), "--method", "didim"]
    loop = ["--controller", str(tmp_path / "loop.toml"), "--json"]
    done = CliRunner().invoke(app, [*given, *loop])
    assert done.exit_code == 0, done.output
    told = [line for line in done.stderr.splitlines() if line.startswith("iteration ")]
    assert len(told) == len(json.loads(done.stdout)["history"]) > 1
    assert told[0].startswith("iteration 1 of at most ") and told[0].endswith(" s left")


# -- on a terminal -------------------------------------------------------------------------------------


def on_terminal(*arguments: str, folder: Path, interrupt_at: str | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and what a terminal got; Ctrl-C once it shows `interrupt_at`."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-m", "dynid", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    # Our own end of the other side stays open: the kernel may drop the last line when that side is closed at once.
    shown = b""
    while True:
        running = process.poll() is None
        if not select.select([ours], [], [], 0.2)[0]:
            if running:
                continue
            break
        shown += os.read(ours, 65536)
        if interrupt_at is not None and interrupt_at.encode() in shown:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(theirs)
    os.close(ours)
    out, _ = process.communicate()
    return process.returncode, out, shown.decode()


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    """Drawn again in place, gone at the end, nothing of it in the JSON."""
    code, out, shown = on_terminal(*DESIGN, "--duration", "200", "--budget", "2", "--json", folder=tmp_path)
    assert code == 0, shown
    assert json.loads(out)["robot"] == "wam7"
    assert "designing a motion" in shown and "criterion" in shown and "━" in shown and "\r\x1b[2K" in shown
    # The last thing that stands there is what was written.
    assert shown.replace("\r", "").endswith("\x1b[2Kwrote motion.toml\n")


def test_a_terminal_shows_shares_and_time_left(tmp_path: Path) -> None:
    """What a bar shows follows what it is told."""
    code = (
        "import time\nfrom dynid.cli.progress import working\nfrom dynid.progress import Progress\n"
        "with working('simulating') as work:\n"
        "    time.sleep(0.2); work.report(Progress('simulated 1%', 0.01)); time.sleep(0.3)\n"
        "    work.report(Progress('then [this]')); time.sleep(0.3)\n"
    )
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-c", code], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "simulated 1%" in shown and "s left" in shown and "then [this]" in shown


def test_ctrl_c_on_a_terminal(tmp_path: Path) -> None:
    """The bar goes, one line stays, no file is written."""
    code, out, shown = on_terminal(*LONG, folder=tmp_path, interrupt_at="designing")
    assert code == 130 and out == ""
    assert shown.replace("\r", "").endswith("\x1b[2Kdynid: interrupted\n") and "Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


# -- without one ---------------------------------------------------------------------------------------


def interrupted(*arguments: str, folder: Path, at: Sequence[str], group: bool = False) -> tuple[int, list[str]]:
    """Exit code and lines of a command that gets Ctrl-C after a line with one of `at`; `group` for its children too.

    Which line comes first depends on how busy the computer is: what is done, or how far it is.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "dynid", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line.rstrip())
        if any(x in line for x in at):
            (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
            at = ()
    process.communicate()
    return process.returncode, lines


def test_ctrl_c_ends_in_one_line(tmp_path: Path) -> None:
    """Exit code 130 and what was there before is still there, whole."""
    (tmp_path / "motion.toml").write_text("before")
    code, lines = interrupted(*LONG, folder=tmp_path, at=("designing a motion", "criterion"))
    assert code == 130
    assert lines[-1] == "dynid: interrupted" and not any("Traceback" in line for line in lines)
    assert [p.name for p in tmp_path.iterdir()] == ["motion.toml"]
    assert (tmp_path / "motion.toml").read_text() == "before"


@pytest.mark.slow
def test_ctrl_c_ends_worker_processes_too(tmp_path: Path) -> None:
    """A terminal sends it to all of them; none speaks of it."""
    given = ("--robots", "twolink", "--methods", "wls", "--runs", "200", "--counts", "32000", "--workers", "2")
    code, lines = interrupted("benchmark", *given, "-o", "table.csv", folder=tmp_path, at=("recordings",), group=True)
    assert code == 130
    assert lines[-1] == "dynid: interrupted" and not any("Traceback" in line for line in lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("report", [True, False])
def test_ctrl_c_that_python_drops_ends_the_work(report: bool) -> None:
    """As inside a callback of compiled code: the next report ends the work, or its end does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    done = False
    try:
        with pytest.raises(KeyboardInterrupt), working("working") as work:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            if report:
                work.report(Progress("working", 0.5))
            done = True
        assert done is not report
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_a_destructor_ends_the_work_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other errors of destructors are told as ever."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: told.append(error.exc_type))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    class Struck:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    class Wrong:
        def __del__(self) -> None:
            raise OSError

    try:
        with pytest.raises(KeyboardInterrupt), working("working"):
            Struck()
            Wrong()
        assert told == [OSError]
        Wrong()
        assert told == [OSError, OSError]
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_anywhere_in_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it strikes outside of the long work."""

    def strike() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynid.cli.examine.examine", strike)
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 130 and done.stdout == "" and done.stderr == "dynid: interrupted\n"
