"""Faults of the velocity, each planted in one joint and found there."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from tests.support.check_data import late, number, only, recorded, serious, spoiled, times
from tests.support.synthetic import arm

ROBOT = arm()
SOUND = recorded(ROBOT)


@pytest.mark.parametrize(
    ("factor", "code", "words"),
    [
        (180 / np.pi, "velocity_unit", "degrees per second"),
        (np.pi / 180, "velocity_unit", "positions are in degrees"),
        (60 / 2 / np.pi, "velocity_unit", "revolutions per minute"),
        (1 / 2 / np.pi, "velocity_unit", "revolutions per second"),
        (101.0, "velocity_gain", "gear ratio"),
    ],
)
def test_units_and_gears(factor: float, code: str, words: str) -> None:
    """The factor is told, and its name where it has one."""
    finding = only(dynid.check(ROBOT, spoiled(SOUND, v=times(1, factor))), "joint2", code)
    assert words in finding.what and abs(number(finding) / factor - 1) < 0.01


def test_reversed_sign() -> None:
    """Only the joint that is reversed."""
    only(dynid.check(ROBOT, spoiled(SOUND, v=times(2, -1.0))), "joint3", "velocity_sign")


@pytest.mark.parametrize("samples", [6, 36, -20])
def test_delay(samples: int) -> None:
    """Found to a millisecond, 5 ms a sample; ahead as well as behind."""
    finding = only(dynid.check(ROBOT, spoiled(SOUND, v=late(0, samples))), "joint1", "velocity_delay", "warning")
    assert abs(number(finding) - 0.005 * abs(samples)) < 1e-3
    assert ("lags" in finding.what) == (samples > 0)


def test_noise() -> None:
    """Half the speed again as noise, in percent of the speed."""

    def noisy(v: np.ndarray) -> np.ndarray:
        v[:, 1] += 0.5 * np.std(v[:, 1]) * np.random.default_rng(0).normal(size=len(v))
        return v

    finding = only(dynid.check(ROBOT, spoiled(SOUND, v=noisy)), "joint2", "velocity_noise", "warning")
    assert abs(number(finding) - 50) < 3


def test_something_else_in_its_place() -> None:
    """Noise instead of a velocity."""
    other = SOUND.runs[0].v.copy()
    other[:, 1] = np.random.default_rng(0).normal(size=len(other))
    only(dynid.check(ROBOT, spoiled(SOUND, v=other)), "joint2", "velocity_unrelated", "warning")


def test_swapped_columns() -> None:
    """Velocities of joints 1 and 3 exchanged: both are named, nothing else is said of them."""
    findings = serious(dynid.check(ROBOT, spoiled(SOUND, v=lambda v: v[:, [2, 1, 0]])))
    assert [(f.joint, f.code) for f in findings] == [("joint1", "velocity_order"), ("joint3", "velocity_order")]
    assert "to joint 'joint3'" in findings[0].what
    assert "joint3, joint2, joint1" in findings[0].what_to_do


@pytest.mark.parametrize("ahead", [0, 8])
def test_a_commanded_position_is_no_velocity(ahead: int) -> None:
    """Columns named qd may be desired positions: all joints follow them, and none moves with such a velocity."""
    run = SOUND.runs[0]
    findings = serious(dynid.check(ROBOT, spoiled(SOUND, v=np.roll(run.q, -ahead, axis=0))))
    assert [(f.joint, f.code) for f in findings] == [(f"joint{j}", "velocity_is_position") for j in (1, 2, 3)]
    assert all("reference" in f.what_to_do for f in findings)
