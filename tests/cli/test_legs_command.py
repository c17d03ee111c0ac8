"""`dynid legs`: a quadruped on its feet from a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import walkers
from tests.support.commands import dynid


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("legs")
    walkers.write_walker(where)
    walkers.recording(walkers.standing()).to_csv(where / "stand.csv")
    return where


@pytest.mark.slow
def test_result_and_errors(folder: Path) -> None:
    """Trunk, errors per joint and of the balance, and a file."""
    words = ("legs", "dog.xml", "stand.csv", "--feet", ",".join(walkers.FEET), "--imu", "imu", "--method", "wls")
    drives = ("--friction", "viscous+coulomb", "--rotor-inertia", "-o", "found.json")
    done = dynid(*words, *drives, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "130 base parameters by wls" in done.stdout and "balance fz" in done.stdout
    found = json.loads((folder / "found.json").read_text())
    assert found["trunk"]["mass"] == pytest.approx(9.2, rel=0.02)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("legs", "dog.xml", "stand.csv"), "--feet"),
        (("legs", "dog.xml", "stand.csv", "--feet", "paw"), "no link or frame 'paw'"),
        (("legs", "dog.xml", "stand.csv", "--feet", "FL_foot:ball"), "got 'ball'"),
        (("legs", "dog.xml", "stand.csv", "--feet", "FL_foot", "--mass", "heavy"), "--mass takes a mass in kg"),
        (("legs", "dog.xml", "stand.csv", "--feet", "FL_foot", "--mass", "0"), "--mass must be a positive number"),
    ],
)
def test_wrong_feet(folder: Path, words: tuple[str, ...], message: str) -> None:
    """One sentence each."""
    done = dynid(*words, folder=folder)
    assert done.returncode == 1 and message in done.stderr
    assert len(done.stderr.strip().splitlines()[-1]) < 300
