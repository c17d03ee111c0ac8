"""Commands that are killed in the middle, on a full disk and in a read-only folder.

Every file is the old one or a whole new one, the message is one line, and the next run cleans up.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import dynid
from dynid.identification import Estimate
from tests.montecarlo.test_monte_carlo import without_times
from tests.support.documented_files import write_arm_files
from tests.support.fault_programs import result_of, study

# Each with the files that it writes.
COMMANDS = {
    "identify arm.urdf run1.csv --method wls -o out.json": ("out.json", "out.report.html", "out.verdict.json"),
    "identify arm.urdf run1.csv --method wls -o out.urdf --allow-infeasible --report none": ("out.urdf",),
    "excite arm.urdf --duration 4 --budget 60 -o motion.csv": ("motion.csv",),
    "report estimate.json run1.csv -o report.html": ("report.html", "verdict.json"),
    "export estimate.json --to mjcf -o model.xml --allow-infeasible": ("model.xml",),
}
KILLS = 10
# Of studies and of pages with a command, which are killed more often since they are one line of the table each.
MANY_KILLS = 50
ROOT = Path(__file__).parents[2]


def started(command: str, folder: Path, program: tuple[str, ...] = ("dynid",)) -> subprocess.Popen[str]:
    places = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", *program, *command.split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": places},
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and last line of the errors."""
    words = process.communicate()[1]
    assert "Traceback" not in words
    return process.returncode, (words.strip().splitlines() or [""])[-1]


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


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read, in a folder of its own."""
    everything, folder = tmp_path_factory.mktemp("everything"), tmp_path_factory.mktemp("files")
    write_arm_files(everything)
    for name in ("arm.urdf", "run1.csv"):
        shutil.copy(everything / name, folder / name)
    robot = dynid.load_robot(folder / "arm.urdf", friction="viscous+coulomb")
    dynid.identify(robot, dynid.load_recording(folder / "run1.csv", robot), "wls").save(folder / "estimate.json")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_damaged_by_a_kill(command: str, files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    begun = time.monotonic()
    assert ended(started(command, folder))[0] in (0, 1)
    seconds = time.monotonic() - begun
    inputs = {p: text for p, text in contents(folder).items() if p.name not in COMMANDS[command]}
    chance = random.Random(0)
    for _ in range(KILLS):
        process = started(command, folder)
        time.sleep(chance.uniform(0.2, 1.0) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert {p: p.read_bytes() for p in inputs} == inputs
        assert all(whole(folder / name) for name in COMMANDS[command])
    assert ended(started(command, folder))[0] in (0, 1)
    assert {p.name for p in folder.iterdir()} == {p.name for p in inputs} | set(COMMANDS[command])


@pytest.mark.slow
def test_a_killed_study_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Killed at random instants, five times each; the finished recordings stay, the tables are those of one go."""
    expected = without_times(result_of(tmp_path / "whole").to_frame())
    names = {p.name for p in (tmp_path / "whole").iterdir()}
    program = ("tests.support.fault_programs", "study")
    begun = time.monotonic()
    assert ended(started("timed", tmp_path, program)) == (0, "")
    seconds = time.monotonic() - begun
    chance, kept = random.Random(0), []
    for k in range(MANY_KILLS // 5):
        folder = tmp_path / f"study{k}"
        for _ in range(5):
            before = contents(folder)
            process = started(folder.name, tmp_path, program)
            time.sleep(chance.uniform(0.3, 1.0) * seconds)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert {p: p.read_bytes() for p in before if not p.name.startswith(".")} == {
                p: text for p, text in before.items() if not p.name.startswith(".")
            }
        kept.append(len(list(folder.glob("*@*.json"))))
        assert_frame_equal(without_times(result_of(folder).to_frame()), expected, check_exact=True)
        assert {p.name for p in folder.iterdir()} == names
    print(f"{MANY_KILLS} kills of studies of {study().runs * 2} recordings: {kept} were kept")


def children(process: int) -> list[int]:
    try:
        return [int(x) for x in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def runs(process: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up in /proc")
def test_a_command_ends_with_the_page_that_is_killed(files: Path, tmp_path: Path) -> None:
    """The studio is killed at random instants: no process goes on without it, every file is old or whole."""
    command = next(iter(COMMANDS))
    outputs = COMMANDS[command]
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    program = ("tests.support.fault_programs", "page", str(folder))
    begun = time.monotonic()
    assert ended(started(command, folder, program))[0] in (0, 1)
    seconds = time.monotonic() - begun
    inputs = {p: text for p, text in contents(folder).items() if p.name not in outputs}
    chance, jobs, longest = random.Random(0), 0, 0.0
    for _ in range(MANY_KILLS):
        process = started(command, folder, program)
        time.sleep(chance.uniform(0.2, 1.0) * seconds)
        left = children(process.pid)
        jobs += len(left)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed = time.monotonic()
        while any(runs(job) for job in left):
            assert time.monotonic() - killed < 10, "a command goes on without its page"
            time.sleep(0.02)
        longest = max(longest, time.monotonic() - killed)
        assert {p: p.read_bytes() for p in inputs} == inputs
        assert all(whole(folder / name) for name in outputs)
    assert jobs > MANY_KILLS // 3  # the others were killed before or after their command
    assert ended(started(command, folder, program))[0] in (0, 1)
    assert {p.name for p in folder.iterdir()} == {p.name for p in inputs} | set(outputs)
    print(f"{MANY_KILLS} kills of a page, {jobs} with a command, which was gone after {longest:.2f} s at most")


# -- full disks and read-only folders ----------------------------------------------------------------

Mount = Callable[..., Path]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a small file system, or mounts it again with other options; skips where that is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> Path:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=False, stderr=-3)
        if done.returncode:
            pytest.skip("file systems cannot be mounted here")
        return place

    if os.name != "posix" or shutil.which("mount") is None:
        pytest.skip("file systems cannot be mounted here")
    yield mount
    subprocess.run(["umount", str(place)], check=False, stderr=-3)


def fill(disk: Path, free: int) -> Path:
    """Leave so many bytes of a disk free."""
    status = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(status.f_bavail * status.f_bsize - free))
    return filler


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_the_old_files(command: str, files: Path, mounted: Mount) -> None:
    """With no room, with room for a page of memory, and with room for a small file."""
    disk = mounted("size=32m")
    folder = disk / "work"
    shutil.copytree(files, folder)
    assert ended(started(command, folder))[0] in (0, 1)
    names, ends = {p.name for p in folder.iterdir()}, []
    for free in (0, 4096, 65536):
        before = contents(folder)
        filler = fill(disk, free)
        code, words = ended(started(command, folder))
        ends.append((code, words))
        filler.unlink()
        assert {p.name for p in folder.iterdir()} == names
        for path, text in before.items():
            assert path.read_bytes() == text or (path.name in COMMANDS[command] and whole(path))
        if words.startswith("dynid: cannot write"):
            assert "No space left on device" in words and code == 1
    assert "No space left on device" in ends[0][1]
    print(f"{command.split()[0]} with no, 4 KiB, 64 KiB free: {ends}")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_only_folder_stays_as_it_is(command: str, files: Path, mounted: Mount) -> None:
    disk = mounted("size=32m")
    shutil.copytree(files, disk / "work")
    before = contents(disk)
    mounted("remount,ro")
    code, words = ended(started(command, disk / "work"))
    assert code == 1 and "Read-only file system" in words
    assert contents(disk) == before


@pytest.mark.slow
def test_a_study_on_a_full_or_read_only_disk_goes_on_later(tmp_path: Path, mounted: Mount) -> None:
    expected = without_times(result_of(tmp_path / "whole").to_frame())
    disk = mounted("size=4m")
    program = ("tests.support.fault_programs", "study")
    for free in (0, 4096, 16384):
        filler = fill(disk, free)
        code, words = ended(started("disk/study", tmp_path, program))
        assert code == 1 and "No space left on device" in words
        filler.unlink()
        assert not list((disk / "study").rglob(".*"))
    mounted("remount,ro")
    code, words = ended(started("disk/study", tmp_path, program))
    assert code == 1 and "Read-only file system" in words
    mounted("remount,rw")
    assert_frame_equal(without_times(result_of(disk / "study").to_frame()), expected, check_exact=True)
