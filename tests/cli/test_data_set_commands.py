"""Commands on data sets: convert, check, identify and validate, with options of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dynid as package
from dynid.cli.demo import synthetic_recording
from tests.support.commands import dynid

FRICTION = ("--friction", "viscous+coulomb")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four logs in a folder, and the data set that `dynid convert` makes of them."""
    folder = tmp_path_factory.mktemp("logs")
    robot = package.load_robot("twolink", friction="viscous+coulomb")
    (folder / "csv").mkdir()
    for seed in range(4):
        synthetic_recording(robot, seed, duration=5.0).to_csv(folder / "csv" / f"run{seed}.csv")
    done = dynid("convert", "twolink", "csv", "-o", "set", "--unit", "unit3", "--float32", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert [p.split("/")[0] for p in json.loads(done.stdout)["partitions"]] == ["robot=unit3"] * 4
    return folder


def test_the_commands_read_a_data_set_as_they_read_logs(logs: Path) -> None:
    done = dynid("check", "twolink", "set", "--json", *FRICTION, folder=logs)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["log_format"]["columns"]["q"] == ["q_joint1", "q_joint2"]
    words = ("--method", "wls", "--report", "none", *FRICTION, "--json")
    files = [f"csv/run{k}.csv" for k in range(4)]
    pages = [json.loads(dynid("identify", "twolink", *data, *words, folder=logs).stdout) for data in (["set"], files)]
    for a, b in zip(*(page["base_parameters"] for page in pages), strict=True):
        assert abs(a["value"] - b["value"]) < 0.1 * b["std"]  # float32
    assert any("20000 samples of 4 partitions" in note for note in pages[0]["notes"])


def test_a_share_of_the_partitions_is_held_out(logs: Path) -> None:
    words = ("--method", "wls", "--validate-share", "0.25", "--report", "none", *FRICTION, "-o", "estimate.json")
    done = dynid("identify", "twolink", "set", *words, folder=logs)
    assert done.returncode == 0, done.stderr
    assert "15000 samples of 3 partitions" in done.stdout and "not used for the fit" in done.stdout
    done = dynid("validate", "estimate.json", "set", "--json", folder=logs)
    page = json.loads(done.stdout)
    assert done.returncode == 0 and page["left_out"] == [] and page["validation"]["joint1"]["relative"] < 0.05


def test_a_report_streams_over_a_data_set(logs: Path) -> None:
    words = ("--method", "wls", "--validate-share", "0.25", "--report", "none", *FRICTION, "-o", "shared.json")
    assert dynid("identify", "twolink", "set", *words, folder=logs).returncode == 0
    done = dynid("report", "shared.json", "set", "--validate-share", "0.25", "-o", "page.html", "--json", folder=logs)
    assert done.returncode == 0, done.stderr
    checks = {c["code"]: c["result"] for c in json.loads(done.stdout)["checks"]}
    assert checks["evidence"] == checks["unseen_motion"] == "passed"
    page = (logs / "page.html").read_text()
    assert len(page) < 3e6 and "15000 samples of 3 partitions" in page
    # The fitted partitions are no unseen motion, whatever way they are named.
    done = dynid("report", "shared.json", "--validate", "set", "-o", "own.html", "--json", folder=logs)
    assert done.returncode == 0, done.stderr
    checks = {c["code"]: c["result"] for c in json.loads(done.stdout)["checks"]}
    assert checks["evidence"] == checks["unseen_motion"] == "warned"
    for words, told in (
        (("set", "--compare", "shared.json"), "--compare is for log files"),
        (("csv/run0.csv", "--skip-bad-partitions"), "folder of Parquet partitions"),
        (("--validate", "set", "--validate-share", "0.2"), "hold out a part"),
    ):
        done = dynid("report", "shared.json", *words, folder=logs)
        assert done.returncode == 1 and told in done.stderr


def test_bad_partitions_are_named_or_left_out(logs: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(logs / "set", tmp_path / "set")
    (tmp_path / "set" / "robot=unit3" / "broken.parquet").write_bytes(b"PAR1")
    words = ("--method", "wls", "--report", "none", *FRICTION)
    done = dynid("identify", "twolink", "set", *words, folder=tmp_path)
    assert done.returncode == 1
    assert "robot=unit3/broken.parquet" in done.stderr and "--skip-bad-partitions" in done.stderr
    done = dynid("identify", "twolink", "set", *words, "--skip-bad-partitions", folder=tmp_path)
    assert done.returncode == 0 and "1 of 5 partitions are left out" in " ".join(done.stdout.split())
    done = dynid("check", "twolink", "set", *FRICTION, folder=tmp_path)
    assert done.returncode == 1 and "broken" in done.stdout


def test_options_of_data_sets_are_refused_for_files(logs: Path) -> None:
    for option in (["--skip-bad-partitions"], ["--cluster", "tcp://127.0.0.1:9"]):
        done = dynid("identify", "twolink", "csv/run0.csv", *option, folder=logs)
        assert done.returncode == 1 and "folder of Parquet partitions" in done.stderr
    for words in (("--validate-rows", "0:10"), ("--method", "pc-didim", "--controller", "none.toml"), ("--tests",)):
        assert dynid("identify", "twolink", "set", *words, folder=logs).returncode == 1
    done = dynid("friction", "twolink", "set", folder=logs)
    assert done.returncode == 1 and "data sets are for dynid identify, check, validate and report" in done.stderr


def test_a_device_folds_files_and_data_sets(logs: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed (it comes with the gpu extra)")
    words = ("--method", "wls", "--report", "none", *FRICTION, "--json")
    for data in ("set", "csv/run0.csv"):
        done = [dynid("identify", "twolink", data, *words, *more, folder=logs) for more in ((), ("--device", "cpu"))]
        theirs, ours = (json.loads(one.stdout)["base_parameters"] for one in done)
        for a, b in zip(ours, theirs, strict=True):
            assert abs(a["value"] - b["value"]) < 1e-6 * b["std"]


def test_what_a_device_does_not_support_is_said_in_the_words_of_the_command(logs: Path) -> None:
    for words, told in (
        (("--cluster", "tcp://127.0.0.1:9"), "--device folds in this process and --cluster on the workers"),
        (("--method", "irls"), "needs the samples again, which --device does not make"),
        (("--base", "floating"), "a base that is floating, which --device does not support"),
    ):
        done = dynid("identify", "twolink", "set", "--device", "cuda", *words, folder=logs)
        assert done.returncode == 1 and told in " ".join(done.stderr.split()), done.stderr


def test_keys_of_folders_are_kept(logs: Path, tmp_path: Path) -> None:
    """Logs of one name in folders of units and dates collided under the date of the files."""
    text = (logs / "csv" / "run0.csv").read_text()
    for place in ("robot=A/date=2026-03-02/run=1", "robot=A/date=2026-03-02/run=2", "robot=B/date=2026-03-03"):
        (tmp_path / "raw" / place).mkdir(parents=True)
        (tmp_path / "raw" / place / "log.csv").write_text(text)
    done = dynid("convert", "twolink", "raw", "-o", "set", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = sorted(p.relative_to(tmp_path / "set").parent.as_posix() for p in (tmp_path / "set").rglob("*.parquet"))
    assert [x.rpartition("/")[0] for x in found] == ["robot=A/date=2026-03-02"] * 2 + ["robot=B/date=2026-03-03"]


def test_logs_of_one_name_in_plain_folders(logs: Path, tmp_path: Path) -> None:
    """They were one partition, which was there already for the second."""
    for place in ("monday/left", "monday/right", "tuesday"):
        (tmp_path / "raw" / place).mkdir(parents=True)
        (tmp_path / "raw" / place / "log.csv").write_text((logs / "csv" / "run0.csv").read_text())
    (tmp_path / "raw" / "other.csv").write_text((logs / "csv" / "run1.csv").read_text())
    done = dynid("convert", "twolink", "raw", "-o", "set", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [Path(p).parent.name for p in json.loads(done.stdout)["partitions"]]
    assert names == ["run=monday-left-log", "run=monday-right-log", "run=other", "run=tuesday-log"]
    done = dynid("convert", "twolink", "raw/tuesday/log.csv", "-o", "one", "--json", folder=tmp_path)
    assert [Path(p).parent.name for p in json.loads(done.stdout)["partitions"]] == ["run=log"]


def test_logs_that_cannot_be_converted(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text((logs / "csv" / "run0.csv").read_text())
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    done = dynid("convert", "twolink", ".", "-o", "set", folder=tmp_path)
    assert done.returncode == 1 and "bad.csv" in done.stderr
    done = dynid("convert", "twolink", ".", "-o", "set", "--skip-bad-logs", folder=tmp_path)
    assert done.returncode == 0 and "left out: bad.csv" in done.stdout and "1 partitions of 1 logs" in done.stdout
    assert dynid("convert", "twolink", "good.csv", "-o", "set", folder=tmp_path).returncode == 1  # there already
    assert dynid("convert", "twolink", "good.csv", folder=tmp_path).returncode == 1


def test_one_long_file_is_read_in_pieces(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By identify, check, validate, report and convert; what needs all samples at once reads it whole."""
    lines = (logs / "csv" / "run0.csv").read_text().splitlines()
    (tmp_path / "run.csv").write_text("\n".join(lines) + "\n")
    words = ("--method", "wls", "--report", "none", *FRICTION, "--json")
    whole = json.loads(dynid("identify", "twolink", "run.csv", *words, folder=tmp_path).stdout)
    monkeypatch.setenv("DYNID_MAX_WHOLE_BYTES", "100000")
    done = dynid("identify", "twolink", "run.csv", *words, "-o", "estimate.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert any("5000 samples of 1 partitions" in note for note in page["notes"])
    for a, b in zip(page["base_parameters"], whole["base_parameters"], strict=True):
        assert abs(a["value"] - b["value"]) < 1e-6 * abs(b["value"]) + 1e-9
    for method in ("irls", "gls"):
        done = dynid("identify", "twolink", "run.csv", "--method", method, *words[2:], folder=tmp_path)
        assert done.returncode == 0 and "5000 samples of 1 partitions" in str(json.loads(done.stdout)["notes"])
    done = dynid("identify", "twolink", "run.csv", *words, "--validate-rows", "4000:", folder=tmp_path)
    assert done.returncode == 0 and "partitions" not in str(json.loads(done.stdout)["notes"])
    done = dynid("validate", "estimate.json", "run.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ((), ("--compare", "estimate.json")):  # a comparison reads it whole
        done = dynid("report", "estimate.json", "--validate", "run.csv", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    done = dynid("check", "twolink", "run.csv", *FRICTION, folder=tmp_path)
    assert done.returncode == 0 and "1 partitions, a sample every 0.001 s" in done.stdout
    done = dynid("convert", "twolink", "run.csv", "-o", "set", "--unit", "a", "--json", folder=tmp_path)
    assert done.returncode == 0
    (partition,) = json.loads(done.stdout)["partitions"]
    assert partition.endswith("run=run.csv rows 0%3A5000/part-0.parquet")


# A long CSV file: rows of 15 columns, and what a command may take of computer memory, in MiB.
LONG_ROWS, LONG_MEMORY = 3_000_000, 900
PEAK = """
import os, sys
process = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-m", "dynid", *sys.argv[2:]])
_, status, used = os.wait4(process, 0)
open(sys.argv[1], "w").write(f"{used.ru_maxrss >> 10} {used.ru_utime + used.ru_stime:.0f}")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def write_long_log(path: Path, rows: int) -> None:
    """A seven-joint arm at 1 kHz, the same 100 s of motion again and again with other noise, as text."""
    import numpy as np
    import polars

    from tests.support.synthetic import motion

    robot = package.load_robot("wam7")
    names = [f"{s}_{j}" for s in ("q", "torque") for j in robot.coordinates]
    t, q, v, a = motion(robot, 0, 100_000, 100.0)
    with path.open("wb") as file:
        for k in range(rows // 100_000):
            torque = package.inverse_dynamics(robot, q, v, a) + np.random.default_rng(k).normal(0, 0.1, q.shape)
            frame = polars.DataFrame(np.column_stack([t + 100.0 * k, q, torque]), schema=["t", *names])
            frame.write_csv(file, include_header=not k, float_precision=7)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are counted in KiB on Linux")
def test_a_long_file_takes_little_memory(tmp_path: Path) -> None:
    """Read whole, three million rows take gigabytes; `pytest -s` prints the figures."""
    write_long_log(tmp_path / "long.csv", LONG_ROWS)
    import polars

    polars.scan_csv(tmp_path / "long.csv").sink_parquet(tmp_path / "long.parquet")
    for command in (
        "identify wam7 long.csv --method wls --report none -o estimate.json",
        "identify wam7 long.parquet --method wls --report none",
        "validate estimate.json long.csv",
        "check wam7 long.csv",
    ):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, "peak.txt", *command.split()], cwd=tmp_path, capture_output=True, text=True
        )
        peak, seconds = (tmp_path / "peak.txt").read_text().split()
        print(f"{command}: peak {peak} MiB, {seconds} s of processor time, exit code {done.returncode}")
        assert done.returncode == 0, done.stderr
        assert int(peak) < LONG_MEMORY
