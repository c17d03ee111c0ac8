"""`dynid watch`: a log that grows, a socket, faults, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid as package
from dynid.cli.main import app
from dynid.identification.estimate import Estimate
from dynid.online.follower import FollowerState
from tests.support.commands import dynid
from tests.support.synthetic import arm, record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved estimate of an arm and a log of it."""
    folder = tmp_path_factory.mktemp("watch")
    robot = arm()
    recording = record(robot, (0, 1), noise=0.1)
    package.identify(robot, recording, "wls").save(folder / "estimate.json")
    recording.between(0.0, 10.0).to_csv(folder / "run.csv")
    lines = (folder / "run.csv").read_text().splitlines()
    (folder / "bad.csv").write_text("\n".join([*lines[:500], "oops", "1,2", *lines[500:1000]]) + "\n")
    return folder


def test_a_log_is_followed_and_saved(folder: Path) -> None:
    """With its payload; the saved estimate is like the one it was given."""
    words = ("--for", "0", "-o", "watched.json", "--link", "link3")
    done = dynid("watch", "estimate.json", "run.csv", *words, folder=folder)
    assert done.returncode == 0 and "payload" in done.stdout and "wrote watched.json" in done.stderr
    known, found = (Estimate.load(folder / name) for name in ("estimate.json", "watched.json"))
    assert np.all(np.abs(known.beta - found.beta) < 6 * np.hypot(known.std, found.std))


def test_bad_lines_are_counted_and_named(folder: Path) -> None:
    done = dynid("watch", "estimate.json", "bad.csv", "--for", "0", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["bad_lines"] == {"number of cells": 2} and page["samples"] == 999
    assert (
        "2 bad lines (line 502: 2 cells, not 8)"
        in dynid("watch", "estimate.json", "bad.csv", "--for", "0", folder=folder).stdout
    )


def test_a_socket_is_followed_to_its_end(folder: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall((folder / "run.csv").read_bytes())

    thread = threading.Thread(target=serve)
    thread.start()
    done = dynid("watch", "estimate.json", f"localhost:{server.getsockname()[1]}", "--json", folder=folder)
    thread.join()
    server.close()
    assert done.returncode == 0 and json.loads(done.stdout)["samples"] > 900


def test_a_terminal_shows_tables(folder: Path) -> None:
    """As many base parameters as there is room for, errors per joint and the events."""
    from dynid.cli.watch import _page
    from dynid.online.follower import Follower
    from dynid.online.lines import LineReader
    from dynid.terminal import rendered

    robot = arm()
    follower = Follower(robot, LineReader(robot), link="link3")
    follower.feed((folder / "run.csv").read_text().splitlines(), last=True)
    text = rendered(_page("run.csv", follower.state(), 30))
    assert "torque errors" in text and "joint3" in text and "more base parameters" in text
    assert len(text.splitlines()) < 45


def test_wrong_words_end_with_a_sentence(folder: Path) -> None:
    for words, reason in (
        (("run.csv", "--forgetting", "1", "--window", "1"), "not both"),
        (("run.csv", "--every", "0"), "--every"),
        (("run.csv", "--for", "-1"), "--for"),
        (("robot.example:99",), "no address of this computer"),
    ):
        done = (
            dynid("watch", "estimate.json", *words, "--for", "0", folder=folder)
            if "--for" not in words
            else dynid("watch", "estimate.json", *words, folder=folder)
        )
        assert done.returncode == 1 and reason in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_no_file_is_refused_at_once(folder: Path) -> None:
    """A pipe waited for its writer whatever time was given; a device never ends."""
    os.mkfifo(folder / "pipe")
    for source, reason in (("pipe", "it is a pipe"), ("/dev/zero", "it is a device"), (".", "it is a folder")):
        done = dynid("watch", "estimate.json", source, "--for", "0", folder=folder)
        assert done.returncode == 1 and reason in done.stderr


def test_the_estimate_is_saved_when_nobody_reads_the_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`2>&1 | head -1` closes standard error while the log is followed."""

    @contextlib.contextmanager
    def closed(*_: object) -> Iterator[Callable[[FollowerState], None]]:
        def shown(state: FollowerState) -> None:
            if state.estimate is not None:
                raise BrokenPipeError

        yield shown

    monkeypatch.setattr("dynid.cli.watch._display", closed)
    monkeypatch.chdir(folder)
    words = ["watch", "estimate.json", "run.csv", "--for", "0", "--every", "0.1", "-o", "broken.json"]
    assert isinstance(CliRunner().invoke(app, words).exception, BrokenPipeError)
    assert Estimate.load(folder / "broken.json").method == "wls"


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly_while_the_log_grows(folder: Path) -> None:
    """In a process of its own: the file grows, then the signal; what was found is printed and saved."""
    lines = (folder / "run.csv").read_text().splitlines(keepends=True)
    log = folder / "growing.csv"
    log.write_text("".join(lines[:400]))
    words = [sys.executable, "-m", "dynid", "watch", "estimate.json", "growing.csv", "-o", "last.json"]
    process = subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stderr is not None
    while " samples" not in process.stderr.readline():  # the first lines are read; then the log grows
        assert process.poll() is None
    with log.open("a") as file:
        file.writelines(lines[400:])
    while " samples" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    (count,) = re.findall(r"(\d+) samples", out)
    assert int(count) > 400
    assert Estimate.load(folder / "last.json").method == "wls"
