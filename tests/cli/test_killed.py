"""Commands that are killed in the middle: every file is the old one or a whole new one, and the next run cleans up."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dynid
from dynid.identification import Estimate
from tests.support.documented_files import write_arm_files

# Each with the files that it writes.
COMMANDS = {
    "identify arm.urdf run1.csv --method wls -o out.json": ("out.json", "out.report.html", "out.verdict.json"),
    "identify arm.urdf run1.csv --method wls -o out.urdf --allow-infeasible --report none": ("out.urdf",),
    "excite arm.urdf --duration 4 --budget 1 -o motion.csv": ("motion.csv",),
    "report estimate.json run1.csv -o report.html": ("report.html", "verdict.json"),
    "export estimate.json --to mjcf -o model.xml --allow-infeasible": ("model.xml",),
}
KILLS = 10


def started(command: str, folder: Path) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "dynid", *command.split()], cwd=folder, stdout=silent, stderr=silent)


def whole(path: Path) -> bool:
    """Whether a file of ours is complete."""
    text = path.read_text(encoding="utf-8")
    if path.name == "out.json":
        return Estimate.load(path).method == "wls"
    if path.suffix == ".json":
        return "verdict" in json.loads(text)
    if path.suffix == ".csv":
        return text.endswith("\n") and len(text.splitlines()[-1].split(",")) == len(text.splitlines()[0].split(","))
    if path.suffix == ".html":
        return text.rstrip().endswith("</html>")
    return dynid.load_robot(path).n > 0


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_damaged(command: str, tmp_path: Path) -> None:
    write_arm_files(tmp_path)
    robot = dynid.load_robot(tmp_path / "arm.urdf", friction="viscous+coulomb")
    recording = dynid.load_recording(tmp_path / "run1.csv", robot)
    dynid.identify(robot, recording, "wls").save(tmp_path / "estimate.json")
    begun = time.monotonic()
    assert started(command, tmp_path).wait() in (0, 1)
    seconds = time.monotonic() - begun
    inputs = {p: p.read_bytes() for p in tmp_path.iterdir() if p.name not in COMMANDS[command]}
    chance = random.Random(0)
    for _ in range(KILLS):
        process = started(command, tmp_path)
        time.sleep(chance.uniform(0.2, 1.0) * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert {p: p.read_bytes() for p in inputs} == inputs
        assert all(whole(tmp_path / name) for name in COMMANDS[command])
    assert started(command, tmp_path).wait() in (0, 1)
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in inputs} | set(COMMANDS[command])
