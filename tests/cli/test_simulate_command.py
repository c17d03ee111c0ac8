"""The command that runs a closed loop, as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dynid
from dynid.cli.main import app

LOOP = 'kind = "cascade"\nrate = 1000\nbandwidth = 8\n'
WAVE = 0.4 * np.sin(2 * np.pi * np.arange(500)[:, None] / 500 * [1, 2])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A controller, and a motion as a table of time and positions at 500 Hz."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.toml").write_text(LOOP)
    table = np.column_stack([np.arange(500) / 500, WAVE])
    np.savetxt(tmp_path / "motion.csv", table, "%.17g", ",", header="t,q_joint1,q_joint2", comments="")
    return tmp_path


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(
        app,
        [
            "simulate",
            "twolink",
            "--controller",
            "loop.toml",
            "--reference",
            "motion.csv",
            "-o",
            "run.csv",
            *arguments,
        ],
    )


def test_help_has_an_example_and_numba_stays_out() -> None:
    """The page shows a controller file; neither it nor the package loads the compiler."""
    done = CliRunner().invoke(app, ["simulate", "--help"])
    assert "Example: dynid simulate tx40" in " ".join(done.stdout.split()) and 'kind = "cascade"' in done.stdout
    code = "import sys, dynid.cli, dynid.simulation.engine; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_table_of_references_alone_is_a_motion(folder: Path) -> None:
    """As dynid chirp writes it; a file of neither is refused with what it has."""
    text = (folder / "motion.csv").read_text()
    (folder / "motion.csv").write_text(text.replace("q_joint", "reference_joint"))
    done = simulate()
    assert done.exit_code == 0, done.output
    found = dynid.load_recording(folder / "run.csv", dynid.load_robot("twolink")).runs[0].reference
    assert found is not None
    np.testing.assert_allclose(found[0], WAVE[0], atol=1e-12)
    (folder / "motion.csv").write_text(text.replace("q_joint", "current_"))
    done = simulate()
    assert done.exit_code == 1 and "no column is named as a position" in str(done.exception)


def test_a_run_becomes_a_recording(folder: Path) -> None:
    """Noise, rate and seed reach the loop; progress goes to standard error; the file is read back."""
    done = simulate(
        "--position-noise", "1e-4", "--counts", "0,4096", "--torque-noise", "0.1", "--output-rate", "250", "--seed", "3"
    )
    assert done.exit_code == 0, done.output
    assert "completed" in done.stdout and "joint2" in done.stdout and ": 100%" in done.stderr
    run = dynid.load_recording("run.csv", dynid.load_robot("twolink")).runs[0]
    assert run.step == pytest.approx(1 / 250) and run.torque is not None and run.reference is not None
    counts = run.q[:, 1] * 4096 / (2 * np.pi)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-8)
    np.testing.assert_allclose(run.reference, WAVE[::2], atol=1e-9)
    first = run.q
    simulate(
        "--position-noise", "1e-4", "--counts", "0,4096", "--torque-noise", "0.1", "--output-rate", "250", "--seed", "4"
    )
    assert np.abs(dynid.load_recording("run.csv", dynid.load_robot("twolink")).runs[0].q - first).max() > 0


def test_json_and_a_recording_as_reference(folder: Path) -> None:
    """The page for machines; a recording with its reference may be followed again, with other friction."""
    page = json.loads(simulate("--json", "--integrator", "implicit", "--coulomb-slope", "exact").stdout)
    assert page["completed"] and set(page["joints"]) == {"joint1", "joint2"} and page["samples"] == 999
    again = simulate("--reference", "run.csv", "--duration", "0.5", "-o", "again.parquet", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["samples"] == 500 and (folder / "again.parquet").exists()


def test_slopes_of_coulomb_friction(folder: Path) -> None:
    """The default is auto; one number stands for all joints; a number per joint reaches each."""
    files = []
    for option in ((), ("auto",), ("50",), ("50,50",), ("50,200",)):
        assert simulate(*(("--coulomb-slope", *option) if option else ())).exit_code == 0
        files.append((folder / "run.csv").read_text())
    assert files[0] == files[1] != files[2] == files[3] != files[4]


def test_a_loop_that_stops_early_fails(folder: Path) -> None:
    """Exit code 1, the reason, and what was done until then."""
    (folder / "loop.toml").write_text('kind = "pd"\nrate = 1000\nkp = -4000\nkd = -200\n')
    done = simulate()
    assert done.exit_code == 1 and "unstable" in done.stdout and (folder / "run.csv").exists()


@pytest.mark.parametrize(
    ("loop", "arguments", "words"),
    [
        ("", ("--output-rate", "300"), "300 Hz"),
        ("", ("--controller", "none.toml"), "none.toml"),
        ("", ("--reference", "none.csv"), "none.csv"),
        ("", ("-o", "run.bag"), "run.bag"),
        ("", ("--position-noise", "much"), "--position-noise"),
        ("", ("--integrator", "euler"), "euler"),
        ("", ("--coulomb-slope", "exact"), "implicit"),
        ("", ("--coulomb-slope", "steep"), "--coulomb-slope"),
        ("", ("--coulomb-slope", "1,2,3"), "3 numbers"),
        (LOOP.replace("1000", "750"), (), "750 Hz"),
        (LOOP.replace("cascade", "magic"), (), "magic"),
    ],
)
def test_bad_input_is_one_line(folder: Path, loop: str, arguments: tuple[str, ...], words: str) -> None:
    """A dynid error that names the culprit, and no file."""
    (folder / "loop.toml").write_text(loop or LOOP)
    done = simulate(*arguments)
    assert isinstance(done.exception, dynid.DynidError), done.exception
    assert words in str(done.exception) and "\n" not in str(done.exception)
    assert not (folder / "run.csv").exists()


def test_a_log_without_reference_is_refused(folder: Path) -> None:
    """A log that has torques but no reference is no motion to follow."""
    text = (folder / "motion.csv").read_text().splitlines()
    rows = [text[0] + ",torque_joint1,torque_joint2", *(line + ",0,0" for line in text[1:])]
    (folder / "log.csv").write_text("\n".join(rows))
    done = simulate("--reference", "log.csv")
    assert isinstance(done.exception, dynid.DataError) and "no reference" in str(done.exception)
