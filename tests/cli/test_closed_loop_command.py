"""Methods that simulate the closed loop, their tests, and long reproductions, on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dynid
from dynid.cli.main import app
from dynid.excitation.basis import random_fourier
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.controller_files import load_controller
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from studies.reproduce import pc_didim, structure
from studies.reproduce.study import Figure, number

LOOP = 'kind = "cascade"\nrate = 1000\nbandwidth = 8\n'
SIGNALS = ("--cutoff", "60", "--decimate", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A controller, one that is unstable, and a log of a two-link arm that is a fifth heavier than the built-in one."""
    folder = tmp_path_factory.mktemp("loop")
    (folder / "loop.toml").write_text(LOOP)
    (folder / "wild.toml").write_text('kind = "pd"\nrate = 1000\nkp = -4000\nkd = -200\n')
    t = np.arange(5000) / 1000
    ones = np.ones(2)
    reference = Reference(1000.0, *random_fourier(-1.5 * ones, 1.5 * ones, 2 * ones, 5.0, t, 0))
    law = load_controller(folder / "loop.toml", dynid.load_robot("twolink"))
    sensors = Sensors(noise=1e-5, velocity_cutoff=40.0, torque_noise=0.02)
    made = simulate(truth(), ClosedLoop(controller=law, sensors=sensors), reference, seed=1)
    assert made.completed
    made.recording().to_csv(folder / "run.csv")
    return folder


def truth() -> dynid.Robot:
    robot = dynid.load_robot("twolink")
    return robot.with_parameters(1.2 * robot.parameters)


def identify(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["identify", "twolink", str(folder / "run.csv"), *SIGNALS, *arguments])


def loop(folder: Path, name: str = "loop") -> tuple[str, ...]:
    return ("--controller", str(folder / f"{name}.toml"), "--velocity-cutoff", "40")


def test_pc_didim_with_its_tests(folder: Path, tmp_path: Path) -> None:
    """One command: estimate, rounds and diagnosis as data, and a file that keeps the rounds."""
    out = tmp_path / "estimate.json"
    done = identify(folder, "--method", "pc-didim", *loop(folder), "--tests", "--json", "-o", str(out))
    assert done.exit_code == 0, done.output
    page = json.loads(done.stdout)
    expected = dynid.base_parameters(truth()).values()
    found = np.array([p["value"] for p in page["base_parameters"]])
    sigma = np.array([p["std"] for p in page["base_parameters"]])
    assert np.all(np.abs(found - expected) < 4 * sigma)
    assert page["status"] == "converged" and len(page["history"]) > 1
    tests = page["diagnosis"]["tests"]
    assert len(tests) == 6 and "instruments" in tests[0]["name"] and not tests[0]["rejected"]
    assert page["diagnosis"]["missing"]["effects"] == []
    saved = dynid.Estimate.load(out, dynid.load_robot("twolink"))
    assert len(saved.history) == len(page["history"])


def test_tests_in_words(folder: Path) -> None:
    """After the estimate, each with null hypothesis and advice; without --tests nothing of it."""
    said = identify(folder, "--method", "didim", *loop(folder), "--tests")
    assert said.exit_code == 0, said.output
    for words in ("validity of the instruments", "exogeneity", "Ljung-Box", "Jarque-Bera", "null:", "advice:"):
        assert words in said.stdout
    assert "Ljung-Box" not in identify(folder, "--method", "didim", *loop(folder)).stdout


def test_least_squares_are_tested_for_bias(folder: Path) -> None:
    """The controller is for the tests then; without a controller they are those of the residual."""
    wls = ("--method", "wls")
    page = json.loads(identify(folder, *wls, *loop(folder), "--tests", "--json").stdout)
    assert page["method"] == "wls" and page["history"] == []
    assert any("exogeneity" in t["name"] for t in page["diagnosis"]["tests"])
    page = json.loads(identify(folder, *wls, "--tests", "--json").stdout)
    assert len(page["diagnosis"]["tests"]) == 4
    assert "diagnosis" not in json.loads(identify(folder, *wls, "--json").stdout)


@pytest.mark.slow
def test_start_reaches_the_first_round(folder: Path) -> None:
    """From the feasible estimate the first step is a small one; from the file's robot, a fifth lighter, it is not."""

    def first_step(*arguments: str) -> float:
        done = identify(folder, "--method", "pc-didim", *loop(folder), "--json", *arguments)
        assert done.exit_code == 0, done.output
        return float(json.loads(done.stdout)["history"][0]["step"])

    assert first_step("--start", "feasible") != pytest.approx(first_step(), rel=0.1)
    assert first_step() == pytest.approx(first_step("--start", "prior"))


def test_speed_cutoff_reaches_the_loop(folder: Path) -> None:
    """Other speeds, another simulation, another estimate."""
    controller = ("--method", "didim", "--controller", str(folder / "loop.toml"), "--json")
    a, b = (
        json.loads(identify(folder, *controller, *more).stdout)["base_parameters"][0]["value"]
        for more in ((), ("--velocity-cutoff", "5"))
    )
    assert a != pytest.approx(b, rel=1e-6)


@pytest.mark.parametrize("more", [(), ("--tests",)])
def test_an_aborted_estimate_fails(folder: Path, more: tuple[str, ...]) -> None:
    """Exit code 1 and the reason, after the page itself; there is nothing to test."""
    done = identify(folder, "--method", "pc-didim", *loop(folder, "wild"), "--json", *more)
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
    page = json.loads(done.stdout)
    assert page["status"].startswith("aborted in iteration 1") and "diagnosis" not in page
    assert "dynid: aborted in iteration 1" in done.stderr and "unstable" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "pc-didim"), "give the controller"),
        (("--method", "pc-didim", "--velocity-cutoff", "40"), "give its --controller"),
        (("--method", "pc-didim", "--controller", "none.toml"), "none.toml"),
        (("--method", "pc-didim", "--controller", "LOOP", "--start", "cad"), "start 'cad' is unknown"),
        (("--method", "wls", "--controller", "LOOP"), "does not simulate"),
        (("--method", "wls", "--start", "feasible"), "--start is for methods that simulate"),
    ],
)
def test_bad_input_is_one_line(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    """A dynid error that names the culprit."""
    done = identify(folder, *(str(folder / "loop.toml") if a == "LOOP" else a for a in arguments))
    assert isinstance(done.exception, dynid.DynidError), done.exception
    assert words in str(done.exception) and "\n" not in str(done.exception)


def test_a_missing_controller_in_a_process_of_its_own(folder: Path) -> None:
    """Exit code 1, one line on standard error, no traceback."""
    command = [sys.executable, "-m", "dynid", "identify", "twolink", str(folder / "run.csv"), "--method", "pc-didim"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("dynid: method 'pc-didim' simulates the closed loop")


# -- reproduce --full ----------------------------------------------------------------------------------


def _one(value: float) -> Iterator[Figure]:
    yield number("section", "figure", 1.0, value, 0.0, "exact")


def test_full_runs_the_longer_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form has its own figures; the one that fails makes the command fail. Both may be continued in a folder."""
    kept: list[Path | None] = []

    def figures(full: bool, half: str | None, folder: Path | None) -> Iterator[Figure]:
        kept.append(folder)
        return _one(2.0 if full else 1.0)

    monkeypatch.setattr(pc_didim, "figures", figures)
    short = CliRunner().invoke(app, ["reproduce", "pc-didim", "--json"])
    long = CliRunner().invoke(app, ["reproduce", "pc-didim", "--full", "--json", "--folder", "kept"])
    assert kept == [None, Path("kept")]
    assert short.exit_code == 0 and json.loads(short.stdout)[0]["ok"]
    assert long.exit_code == 1 and json.loads(long.stdout)[0]["ours"] == "2"


def test_full_is_refused_where_there_is_no_longer_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of quietly doing the short one."""
    monkeypatch.setattr(structure, "figures", lambda: _one(1.0))
    done = CliRunner().invoke(app, ["reproduce", "structure", "--full"])
    assert isinstance(done.exception, dynid.DynidError) and "leave --full out" in str(done.exception)


@pytest.mark.parametrize("option", [("--half", "development"), ("--folder", "cases")])
def test_options_of_studies_over_many_cases_are_refused_elsewhere(option: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["reproduce", "structure", *option])
    assert isinstance(done.exception, dynid.DynidError) and "verdicts" in str(done.exception)
