"""The SO-101 arm: its model and logs, signs, play, and motion that is not fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.actuators import SignResult
from studies.reproduce.registry import find_study
from studies.reproduce.so101 import CANDIDATES, CHOSEN, joint_signs
from studies.reproduce.so101_backlash import away
from studies.reproduce.so101_data import FITTED, JOINTS, file_law, fitted_recording, so101_recording, so101_robot


def test_play_is_movement_away_from_the_command() -> None:
    assert away(np.array([3.0, 2.0, 1.0, 0.0])) == 0.0  # friction that gives way
    assert away(np.array([3.0, 2.0, 7.0, 6.0])) == 5.0
    assert away(np.array([-1.0, -4.0, 0.0, 2.0])) == 3.0


@pytest.mark.real
def test_the_arm_has_the_mass_and_the_drives_of_its_file(data: Path) -> None:
    robot = so101_robot()
    assert robot.coordinates == JOINTS
    # Links of the file that move, with the jaw and the 12 g of the camera mount.
    moving = sum(float(link.inertia[0]) for link in robot.links[1:])
    assert moving == pytest.approx(0.100006 + 0.103 + 0.104 + 0.079 + 0.087 + 0.012 + 0.012, abs=1e-6)
    assert {(t.symbol, t.value) for t in robot.drives} == {("Ia", 0.028), ("fv", 0.60), ("fc", 0.052)}
    assert set(file_law().kp) == {998.22}


@pytest.mark.real
def test_the_chirp_ends_where_the_servo_limits_it(data: Path) -> None:
    cut, whole = fitted_recording(), so101_recording(FITTED)
    assert [len(x) for x in whole.runs] == [6000, 6000, 6000]
    lengths = [len(x) for x in cut.runs]
    assert lengths[0] == lengths[2] == 6000 and 5000 < lengths[1] < 6000


@pytest.mark.real
def test_its_currents_are_named_as_unsigned(data: Path) -> None:
    columns = {name: [f"{column}{i}" for i in range(1, 6)] for name, column in (("q", "q"), ("torque", "tau"))}
    robot = so101_robot()
    log = dynid.load_recording(data / "so101-arm-sage" / "multisine.csv.xz", robot, columns=columns, time="t")
    assert [f.code for f in dynid.check(robot, log) if f.severity == "error"] == ["torque_unsigned"]


@pytest.mark.real
@pytest.mark.slow
def test_loaded_joints_have_the_signs_of_the_model(data: Path) -> None:
    found = joint_signs()
    assert found.results[1:4] == (SignResult.SAME,) * 3
    assert found.results[0] == SignResult.UNKNOWN  # about the vertical
    assert 5.0 < found.gain * file_law().kp[0] < 20.0  # the file has 998


@pytest.mark.real
@pytest.mark.slow
def test_the_study_meets_its_figures(data: Path) -> None:
    """Every held-out joint is simulated better than by the class of the model file, and play is found."""
    assert CHOSEN in CANDIDATES
    out = [f for f in find_study("so101").run() if not f.ok]
    assert not out, out
