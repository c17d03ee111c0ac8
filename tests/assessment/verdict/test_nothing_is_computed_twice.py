"""An assessment takes what was computed before: each run is cleaned once for each distinct setting."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from pathlib import Path

import polars
import pytest
from typer.testing import CliRunner

import dynid
import dynid.signals.settings
from dynid.cli.demo import synthetic_recording
from dynid.cli.main import app
from dynid.errors import Mismatch
from dynid.identification.observing import observe
from tests.support.errors import expect_error

Calls = Counter[str]


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """How often each run was cleaned with each setting."""
    calls: Calls = Counter()
    real = dynid.signals.settings.prepare

    def counted(run: dynid.Run, settings: dynid.Signals) -> object:
        calls[f"{run.name} {settings}"] += 1
        return real(run, settings)

    for part in ("identification", "assessment", "report"):
        package = importlib.import_module(f"dynid.{part}")
        for found in pkgutil.walk_packages(package.__path__, f"dynid.{part}."):
            if found.name == "dynid.identification.torch_rows":
                continue  # of an extra
            module = importlib.import_module(found.name)
            if getattr(module, "prepare", None) is real:
                monkeypatch.setattr(module, "prepare", counted)
    return calls


@pytest.fixture(scope="module")
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous+coulomb")


@pytest.fixture(scope="module")
def recordings(robot: dynid.Robot) -> tuple[dynid.Recording, dynid.Recording]:
    return synthetic_recording(robot, 0, 10.0), synthetic_recording(robot, 1, 10.0)


def figures(assessment: dynid.Assessment) -> list[tuple[str, str, float | None]]:
    return [(c.code, c.result, c.figure) for c in assessment.checks]


def test_observations_are_passed_on(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording], cleaned: Calls
) -> None:
    """Identification, tests and verdict of two observations clean each run once, and the fitted one
    once more with twice the cut-off; the verdict is that of recordings."""
    fitted, unseen = recordings
    observation = observe(robot, fitted)
    estimate = dynid.identify(robot, observation, "wls")
    diagnosis = dynid.stats.diagnose(estimate, observation)
    findings = (*dynid.check(robot, fitted), *dynid.check(robot, unseen))
    held_out = observe(robot, unseen, signals=estimate.signals, base=estimate.base)
    given = dynid.assess(
        estimate, held_out, recording=fitted, observation=observation, findings=findings, diagnosis=diagnosis
    )
    assert set(cleaned.values()) == {1} and len(cleaned) == 3
    assert figures(given) == figures(dynid.assess(estimate, unseen, recording=fitted))


def test_an_observation_alone_is_enough_for_most_checks(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """Only the checks of data and cut-off need the recording itself; base parameters have no bodies to check."""
    observation = observe(robot, recordings[0])
    estimate = dynid.identify(robot, observation, "wls")
    assessment = dynid.assess(estimate, recordings[1], observation=observation)
    unchecked = {c.code for c in assessment.checks if c.result == "not checked"}
    assert unchecked == {"cutoff", "data", "feedback", "instruments", "plausible_bodies"}
    assert assessment.verdict == "use with care"  # the data themselves were not checked


def test_an_observation_of_something_else_is_refused(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    estimate = dynid.identify(robot, recordings[0], "wls")
    other = observe(robot, recordings[0], signals=dynid.Signals(cutoff=3.0))
    with expect_error(Mismatch):
        dynid.assess(estimate, observation=other)
    fewer = observe(robot.without("fc_joint2"), recordings[0])
    with expect_error(Mismatch):
        dynid.stats.diagnose(estimate, fewer)


@pytest.mark.parametrize("tests", [(), ("--tests",)])
def test_the_command_cleans_each_run_once(
    recordings: tuple[dynid.Recording, dynid.Recording], cleaned: Calls, tmp_path: Path, tests: tuple[str, ...]
) -> None:
    """`dynid identify` with validation, tests, verdict and report; the fitted run was cleaned three times before, or
    four with --tests, and the unseen one twice. The check of the cut-off cleans it with another setting."""
    for name, recording in zip(("fitted", "unseen"), recordings, strict=True):
        run = recording.runs[0]
        assert run.torque is not None
        columns = {"t": run.t}
        for j, joint in enumerate(recording.joints):
            columns |= {f"q_{joint}": run.q[:, j], f"torque_{joint}": run.torque[:, j]}
        polars.DataFrame(columns).write_csv(tmp_path / f"{name}.csv")
    command = ["identify", "twolink", str(tmp_path / "fitted.csv"), "--validate", str(tmp_path / "unseen.csv")]
    command += ["--friction", "viscous+coulomb", "--method", "wls", "-o", str(tmp_path / "estimate.json"), *tests]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "estimate.report.html").exists()
    assert set(cleaned.values()) == {1} and len(cleaned) == 3
