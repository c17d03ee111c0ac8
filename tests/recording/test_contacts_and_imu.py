"""Contacts and the inertial unit of a run: checked, cut, written and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidShape, InvalidValue
from tests.support.errors import Error, expect_error


def run(**more: object) -> dynid.Run:
    t = np.arange(50) * 0.01
    wave = np.sin(t)[:, None]
    return dynid.Run(t, np.hstack([wave, wave]), torque=np.hstack([wave, wave]), **more)  # type: ignore[arg-type]


def test_contacts_and_imu_survive_a_file(tmp_path: Path) -> None:
    """In CSV and in parts of a run."""
    robot = dynid.load_robot("twolink")
    rng = np.random.default_rng(0)
    one = run(imu=rng.normal(size=(50, 6)), contacts={"foot": np.arange(50) % 2, "toe": np.linspace(0, 1, 50)})
    dynid.Recording(robot.coordinates, (one,)).to_csv(tmp_path / "run.csv")
    read = dynid.load_recording(tmp_path / "run.csv", robot).runs[0]
    np.testing.assert_array_equal(read.imu, one.imu)
    assert set(read.contacts) == {"foot", "toe"}
    np.testing.assert_array_equal(read.contacts["toe"], one.contacts["toe"])
    assert len(read.rows(10, 20).contacts["foot"]) == 10


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"imu": np.zeros((50, 5))}, (InvalidShape, "")),
        ({"contacts": {"foot": np.full(50, 2.0)}}, (InvalidValue, "contact")),
        ({"contacts": {"foot": np.zeros(49)}}, (InvalidShape, "")),
    ],
)
def test_wrong_shapes(given: dict[str, object], error: Error) -> None:
    """One sentence each."""
    with expect_error(*error):
        run(**given)
