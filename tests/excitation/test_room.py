"""Room for motion: joints without stops, and middle postures that a limit does not allow."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynid
from dynid.errors import DynidError, InvalidValue, MissingData
from tests.support.errors import expect_error


def limited(**rows: tuple[float, float, float, float]) -> dynid.Robot:
    """The two-link arm in a vertical plane, with a position range, a velocity and a torque limit per joint."""
    return dynid.load_robot("twolink", gravity=(0.0, -9.81, 0.0)).with_limits(
        {name: {"position": row[:2], "velocity": row[2], "effort": row[3]} for name, row in rows.items()}
    )


def test_joints_without_stops_turn_half_a_revolution() -> None:
    """Continuous joints of a URDF have no range; a given one replaces the half revolution."""
    robot = limited(joint1=(-np.inf, np.inf, 2.0, 80.0), joint2=(-2.0, 2.0, 2.0, 60.0))
    held = dynid.excitation.motion_limits(robot)
    assert held.lower.tolist() == [-np.pi, -2.0] and held.upper.tolist() == [np.pi, 2.0]
    motion = dynid.design_excitation(robot, 5.0, budget=60)
    assert any("joint1" in note for note in motion.notes)
    given = dynid.excitation.motion_limits(robot, {"joint1": {"lower": -9.0, "upper": 9.0}})
    assert given.upper.tolist() == [9.0, 2.0]


def test_a_middle_posture_that_is_too_heavy_is_left() -> None:
    """A horizontal arm exceeds the torque limit at rest; the motion goes about another posture, and says so."""
    robot = limited()
    level = np.zeros((1, 2))
    weak = 0.7 * float(np.abs(dynid.inverse_dynamics(robot, level, 0 * level, 0 * level)).max())
    arm = limited(joint1=(-2.0, 2.0, 4.0, weak), joint2=(-2.5, 2.5, 4.0, weak))
    motion = dynid.design_excitation(arm, 6.0, budget=60)
    _, q, v, a = motion.sample(1000.0)
    # Friction steps at a reversal: the torque there is known to the motion within a millisecond.
    assert np.abs(dynid.inverse_dynamics(robot, q, v, a)).max() < 1.002 * weak
    assert np.abs(dynid.inverse_dynamics(robot, q[:1], 0 * q[:1], 0 * q[:1])).max() < weak
    assert any("another posture" in note for note in motion.notes) and np.ptp(q, axis=0).min() > 0.1
    none = limited(joint1=(-0.1, 0.1, 4.0, 0.1 * weak), joint2=(-0.1, 0.1, 4.0, weak))
    with expect_error(DynidError, code="infeasible"):
        dynid.design_excitation(none, 6.0, budget=60)
    with expect_error(DynidError, "start", code="infeasible"):
        dynid.design_excitation(arm, 6.0, budget=60, start=[0.0, 0.0])


def test_joints_without_a_velocity_limit_are_named_together() -> None:
    """MJCF files have none: one sentence for all joints, with a text that --limits takes."""
    free = limited(joint1=(-2.0, 2.0, np.inf, 80.0), joint2=(-2.0, 2.0, np.inf, 60.0))
    with expect_error(MissingData, "limits") as refused:
        dynid.excitation.motion_limits(free)
    text = str(refused.value).split("'")[-2]
    assert dynid.excitation.motion_limits(free, json.loads(text)).velocity == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("value", [10**400, "fast", None, float("nan"), float("inf")])
def test_a_limit_that_is_no_number_is_refused(value: object) -> None:
    robot = dynid.load_robot("twolink")
    for key in ("velocity", "lower"):
        with expect_error(InvalidValue, "limits"):
            dynid.excitation.motion_limits(robot, {"joint*": {key: value}})  # type: ignore[dict-item]
