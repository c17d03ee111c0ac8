"""The command that learns what an estimate misses, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dynid
from dynid.cli.main import app
from dynid.residual.layout import Shape
from tests.support import hidden_effects as made
from tests.support.compare import difference


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three logs and an estimate from them."""
    place = tmp_path_factory.mktemp("compensate")
    for seed in (0, 1, 7):
        run = made.recording(seed).runs[0]
        assert run.torque is not None
        table = np.column_stack([run.t, run.q, run.torque])
        names = "t,q_joint1,q_joint2,torque_joint1,torque_joint2"
        np.savetxt(place / f"run{seed}.csv", table, "%.17g", ",", header=names, comments="")
    made.estimate().save(place / "estimate.json")
    return place


def compensate(folder: Path, *arguments: str, kernel: str = "own") -> Result:
    where = [str(folder / a) if a.endswith((".csv", ".json", ".npz", "code")) else a for a in arguments]
    return CliRunner().invoke(app, ["compensate", *where, "--kernel", kernel])


def test_it_shows_the_gain_and_writes_a_predictor(folder: Path) -> None:
    logs = "run0.csv", "run1.csv", "--validate", "run7.csv"
    done = compensate(folder, "estimate.json", *logs, "-o", "p.npz", "--json")
    assert done.exit_code == 0, done.output
    joints = json.loads(done.stdout)["joints"]
    assert all(joints[name]["ratio"] < 0.4 for name in ("joint1", "joint2"))
    predictor = dynid.residual.Predictor.load(folder / "p.npz")
    _, q, v, a = made.states(7)
    truth = dynid.inverse_dynamics(made.robot(), q, v, a) + made.hidden(q, v)
    assert np.sqrt(np.mean((predictor.torques(q, v, a) - truth) ** 2)) < 0.3
    assert difference(predictor(q[5], v[5], a[5]), predictor.torques(q[5:6], v[5:6], a[5:6])[0]) < 1e-12


def test_kernels_are_named_on_the_command_line(folder: Path) -> None:
    """A kinked kernel of one length scale reaches the predictor; a word that is none is refused."""
    given = (
        "estimate.json",
        "run0.csv",
        "run1.csv",
        "--validate",
        "run7.csv",
        "--gp-method",
        "subset",
        "--points",
        "40",
    )
    done = compensate(folder, *given, "-o", "kinked.npz", kernel="exponential-iso")
    assert done.exit_code == 0, done.output
    assert set(dynid.residual.Predictor.load(folder / "kinked.npz").fields["shape"]) == {Shape.EXPONENTIAL}
    assert "rational-quadratic-iso" in str(compensate(folder, *given, kernel="cubic").exception)


@pytest.mark.slow
def test_without_other_logs_the_last_one_judges(folder: Path) -> None:
    picture = str(folder / "torques.svg")
    done = compensate(folder, "estimate.json", "run0.csv", "run7.csv", "-o", "code", "--figure", picture)
    assert done.exit_code == 0, done.output
    assert "held out" in done.stdout and "joint2" in done.stdout
    assert (folder / "torques.svg").read_text().count('class="line') == 6
    assert (folder / "code" / "predictor.c").exists() and (folder / "code" / "predictor.h").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("estimate.json", "run0.csv"), "no motion to validate on"),
        (("none.json", "run0.csv", "run1.csv"), "there is no file"),
        (("run0.csv", "run0.csv", "run1.csv"), "not a saved estimate"),
        (("estimate.json", "run0.csv", "run1.csv", "--gp-method", "magic"), "unknown method"),
    ],
)
def test_mistakes_are_told_in_a_line(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = compensate(folder, *arguments)
    assert done.exit_code != 0
    assert said in str(done.exception)
