"""A command never replaces a file that it reads, and never writes two results into one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dynid.cli.main import app
from dynid.errors import DynidError
from dynid.files import write_text
from dynid.identification import Estimate
from tests.support.commands import dynid
from tests.support.documented_files import LAW, write_arm_files
from tests.support.errors import expect_error

COMMANDS = [
    "identify arm.urdf run1.csv -o run1.csv",
    "identify arm.urdf run1.csv --validate run2.csv --figure run2.csv",
    "identify arm.urdf run1.csv -o arm.urdf",
    "identify arm.urdf ./run1.csv -o ../arm/run1.csv",
    "calibrate arm.urdf run1.csv -o run1.csv",
    "friction arm.urdf run1.csv -o run1.csv",
    "export arm.urdf -o arm.urdf",
    "excite robot.toml -o robot.toml",
    "simulate arm.urdf --reference run1.csv -o run1.csv",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("outputs") / "arm"
    place.mkdir()
    write_arm_files(place)
    shutil.copy(resources.files("dynid.robot.builtin") / "twolink.toml", place / "robot.toml")
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_is_not_overwritten(command: str, folder: Path) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    done = dynid(*command.split(), folder=folder)
    assert done.returncode == 1
    assert "is read by this command and would be overwritten" in done.stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


def test_files_of_the_project_file_are_inputs_too(folder: Path) -> None:
    project = '[robot]\nfile = "arm.urdf"\n[runs]\nidentify = ["run1.csv"]\n'
    (folder / "dynid.toml").write_text(project)
    before = (folder / "run1.csv").read_bytes()
    for output in ("run1.csv", "arm.urdf", "dynid.toml"):
        done = dynid("identify", "-o", output, folder=folder)
        assert done.returncode == 1 and "would be overwritten" in done.stderr
    (folder / "dynid.toml").unlink()
    assert (folder / "run1.csv").read_bytes() == before


def test_two_outputs_have_two_names(folder: Path) -> None:
    done = dynid("identify", "arm.urdf", "run1.csv", "-o", "out.json", "--figure", "out.json", folder=folder)
    assert done.returncode == 1 and "two outputs have the name 'out.json'" in done.stderr
    assert not (folder / "out.json").exists()


def test_verdict_and_report_are_outputs_too(folder: Path) -> None:
    """A report that cannot be written is refused before the work, and so is one that would replace a log."""
    command = ("identify", "arm.urdf", "run1.csv", "-o", "out.json")
    done = dynid(*command, "--report", "nowhere/page.html", folder=folder)
    assert done.returncode == 1 and "cannot write 'nowhere/page.html'" in done.stderr
    (folder / "run1.html").write_text("a page of someone else")
    done = dynid("identify", "arm.urdf", "run1.html", "-o", "out.json", "--report", "run1.html", folder=folder)
    assert done.returncode == 1 and "would be overwritten" in done.stderr
    assert not (folder / "out.json").exists()


def test_the_estimate_is_saved_before_anything_else_can_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("the terminal is gone")

    monkeypatch.setattr("dynid.cli.identify._print", broken)
    monkeypatch.chdir(folder)
    for place, broken_part in (("printed.json", "_print"), ("assessed.json", "assess_and_report")):
        monkeypatch.setattr(f"dynid.cli.identify.{broken_part}", broken)
        result = CliRunner().invoke(app, ["identify", "arm.urdf", "run1.csv", "--method", "wls", "-o", place])
        assert isinstance(result.exception, OSError)
        assert Estimate.load(folder / place).method == "wls"


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
def test_the_name_of_a_log_may_be_any_bytes(folder: Path) -> None:
    """The estimate, the report and what is printed survive a name that is no text."""
    odd = os.fsdecode(b"run\xff.csv")
    (folder / odd).write_bytes((folder / "run1.csv").read_bytes())
    command = [sys.executable, "-m", "dynid", "identify", "arm.urdf", odd, "--method", "wls", "-o", "odd.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    assert Estimate.load(folder / "odd.json").method == "wls" and (folder / "odd.report.html").exists()


def test_files_beside_the_output_are_outputs_too(folder: Path) -> None:
    """Files for simulators and ranges of draws replace nothing that is read, and are checked before the work."""
    shutil.copy(folder / "dog.xml", folder / "servo_mujoco.xml")
    shutil.copy(folder / "encoders1.csv", folder / "servo_ranges.json")
    before = (folder / "servo_mujoco.xml").read_bytes(), (folder / "servo_ranges.json").read_bytes()
    law = ("--law", "pd:400,25", "-o", "servo.toml")
    done = dynid("actuators", "servo_mujoco.xml", "encoders1.csv", *law, "--export", "mujoco", folder=folder)
    assert done.returncode == 1 and "'servo_mujoco.xml' is read by this command" in done.stderr
    done = dynid("actuators", "arm.urdf", "servo_ranges.json", *law, "--draws", "5", folder=folder)
    assert done.returncode == 1 and "'servo_ranges.json' is read by this command" in done.stderr
    assert before == ((folder / "servo_mujoco.xml").read_bytes(), (folder / "servo_ranges.json").read_bytes())
    for count in ("1", "-1", "1000001"):
        done = dynid("actuators", "arm.urdf", "encoders1.csv", *law, "--draws", count, folder=folder)
        assert done.returncode == 1 and "--draws takes 2 to 1000000 draws" in done.stderr
    assert not (folder / "servo.toml").exists()


def test_recordings_of_a_fleet_are_inputs(folder: Path) -> None:
    """They are in the folder that the command names, and a table of estimates is a CSV file as they are."""
    log = "fleet/robot=A/date=2026-03-02/run=1/log.csv"
    before = (folder / log).read_bytes()
    for option, words in (("-o", "would be overwritten"), ("--report", "takes an .html file")):
        done = dynid("fleet", "arm.urdf", "fleet", option, log, folder=folder)
        assert done.returncode == 1 and words in done.stderr
    assert (folder / log).read_bytes() == before
    done = dynid("fleet", "arm.urdf", "fleet", "-o", ".", folder=folder)
    assert done.returncode == 1 and "is .parquet or .csv, not '.'" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_circle_of_links_is_a_sentence(folder: Path) -> None:
    (folder / "circle.xml").symlink_to("circle.xml")
    done = dynid("export", "arm.urdf", "--to", "mjcf", "-o", "circle.xml", folder=folder)
    assert done.returncode == 1 and "circle.xml cannot be read or written: Too many levels" in done.stderr
    with expect_error(DynidError, code="not_writable"):
        write_text(folder / "circle.xml", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
def test_tables_have_names_of_any_bytes(folder: Path) -> None:
    odd = os.fsdecode(b"set\xff")
    done = dynid("convert", "arm.urdf", "run1.csv", "-o", odd, folder=folder)
    assert done.returncode == 0, done.stderr
    assert list((folder / odd).rglob("*.parquet"))
    done = dynid("fleet", "arm.urdf", "fleet", "--friction", LAW, "-o", f"{odd}.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / f"{odd}.csv").read_text().startswith("unit,date")


@pytest.mark.parametrize(
    "options",
    [
        "chirp arm.urdf --law pd:400,25 --position-noise 1e-308 -o c.csv",
        "chirp arm.urdf --law pd:400,25 --control-rate 1e308 -o c.csv",
        "excite arm.urdf --output-rate 1e308 -o m.csv",
        "excite arm.urdf --torque-noise 1e-308 -o m.csv",
        "simulate arm.urdf --reference run.csv --controller loop.toml --duration 1e308 -o s.csv",
        "live arm.urdf run1.csv --every 1e-308",
        "watch arm.urdf run1.csv --window 1e308",
        "identify arm.urdf run1.csv --gravity 0 0 1e308",
    ],
)
def test_numbers_that_overflow_are_refused_by_name(options: str, folder: Path) -> None:
    done = dynid(*options.split(), folder=folder)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("dynid: --") and "between 1e-15 and 1e+15" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("excite arm.urdf --output-rate 1e15 -o m.csv", "gives more than 10000000 rows"),
        ("chirp arm.urdf --law pd:400,25 --control-rate 1e15 -o c.csv", "an actuator law is computed at"),
    ],
)
def test_rates_that_ask_for_too_much_are_refused_before_the_work(options: str, said: str, folder: Path) -> None:
    done = dynid(*options.split(), folder=folder)
    assert done.returncode == 1 and said in done.stderr


@pytest.mark.parametrize("digits", ["\u00b2", "\u0663", "9" * 5000])
def test_digits_are_those_from_0_to_9(digits: str, folder: Path) -> None:
    """Superscripts are digits to Python but no numbers; 5000 digits are more than it reads."""
    for option in ("--rows", "--validate-rows"):
        done = dynid("identify", "arm.urdf", "run1.csv", option, f"{digits}:{digits}", folder=folder)
        assert done.returncode == 1 and f"{option} takes START:STOP" in done.stderr
    for option in ("--time", "--joints"):
        done = dynid("check", "arm.urdf", "run1.csv", option, digits, folder=folder)
        assert done.returncode == 1 and "unexpected" not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--decimate 0", "--decimate"),
        ("--decimate 2.5", "--decimate"),
        ("--trim nan", "--trim takes a finite number"),
        ("--trim -1", "trim must be zero or a positive number"),
        ("--cutoff nan", "--cutoff takes a finite number"),
        ("--cutoff -5", "cutoff must be a positive number"),
        ("--min-velocity -1", "min-velocity must be zero or positive"),
        ("--min-velocity 500%", "between 0 and 100 %"),
        ("--delay inf", "--delay takes a finite number"),
        ("--rate nan", "--rate takes a finite number"),
        ("--rate 1e308", "rate"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(options: str, said: str, folder: Path) -> None:
    arguments = ["identify", str(folder / "arm.urdf"), str(folder / "run1.csv"), *options.split()]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, DynidError)
    assert said in str(result.exception)
