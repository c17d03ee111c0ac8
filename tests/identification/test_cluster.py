"""A cluster of processes: the recipe of the documentation, a worker that is killed, a scheduler that is gone."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import DynidError
from dynid.identification.observing import observe
from dynid.progress import Progress
from dynid.recording import connect, open_dataset
from dynid.signals.settings import Signals
from tests.support.documented_files import arm as documented_arm
from tests.support.errors import expect_error
from tests.support.partitions import runs, write_data_set
from tests.support.synthetic import arm

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "large-logs.md"
SIGNALS = Signals(cutoff=10.0)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def recipe() -> list[list[str]]:
    """Commands of the page, in the order in which it gives them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block.replace("\\\n", " ").split() for block in blocks]


@contextmanager
def processes(port: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Scheduler and workers of the page, on another port."""
    words = [line for line in recipe() if line[0] == "dask"]
    assert [line[1] for line in words] == ["scheduler", "worker", "worker"]
    dask = Path(sys.executable).with_name("dask")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = []
    try:
        for line in words:
            started.append(subprocess.Popen([dask, *(x.replace("8786", str(port)) for x in line[1:])], **quiet))
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(timeout=60)


def test_the_recipe_of_the_page_runs(tmp_path: Path) -> None:
    from dynid.cli.demo import synthetic_recording
    from dynid.export.urdf import write_urdf
    from dynid.recording import write_partition

    robot = documented_arm()
    write_urdf(robot, tmp_path / "arm.urdf")
    for seed in range(3):
        write_partition(synthetic_recording(robot, seed, duration=5.0), tmp_path / "logs", {"date": f"2025-01-{seed}"})
    (command,) = (line for line in recipe() if line[0] == "dynid")
    port = free_port()
    found = []
    with processes(port):
        for words in (command, command[: command.index("--cluster")]):
            given = [x.replace("8786", str(port)) for x in words[1:]]
            full = [sys.executable, "-m", "dynid", *given, "--report", "none", "-o", "estimate.json"]
            done = subprocess.run(full, cwd=tmp_path, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            found.append(dynid.Estimate.load(tmp_path / "estimate.json"))
    assert np.array_equal(found[0].beta, found[1].beta) and found[0].rows == found[1].rows


def test_a_killed_worker_changes_no_bit(tmp_path: Path) -> None:
    """Its partitions are done again; no sample is lost or counted twice."""
    robot = arm()
    dataset = write_data_set(robot, tmp_path, runs(robot, 24, samples=12000))
    here = observe(robot, dataset, signals=SIGNALS)
    port = free_port()
    with processes(port) as started:
        client = connect(f"tcp://127.0.0.1:{port}")
        client.wait_for_workers(2, timeout=120)
        pids = list(client.run(os.getpid).values())
        killed = []

        def kill(progress: Progress) -> None:
            if not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        there = observe(robot, dataset, signals=SIGNALS, client=client, progress=kill)
        assert killed and started[0].poll() is None
        client.close()
    assert here.rows == there.rows
    assert all(np.array_equal(a, b) for a, b in zip(here.factors, there.factors, strict=True))


def test_a_scheduler_that_is_gone_is_named(tmp_path: Path) -> None:
    robot = arm()
    write_data_set(robot, tmp_path, runs(robot, 24, samples=12000))
    dataset = open_dataset(tmp_path, robot)
    port = free_port()
    with processes(port) as started:
        client = connect(f"tcp://127.0.0.1:{port}")
        client.wait_for_workers(2, timeout=120)
        with expect_error(DynidError, code="interrupted"):
            observe(robot, dataset, signals=SIGNALS, client=client, progress=lambda _: started[0].kill())
        client.close(timeout=5)
    began = time.monotonic()
    with expect_error(DynidError, code="file_missing"):
        connect(f"tcp://127.0.0.1:{port}")
    assert time.monotonic() - began < 30
