"""Logs and laws as users have them: gaps, joints at rest, late commands, columns and gains that are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.actuators import ActuatorEstimate, Commands, Segments, identify_actuators, position_errors, rollout
from dynid.actuators.following import check_followed
from dynid.actuators.logs import read_logs
from dynid.actuators.verdict import assess_actuators
from dynid.errors import Mismatch, NotIdentifiable
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error

Array = NDArray[np.float64]

RATE, DELAY = 200.0, 0.004
DRIVES = {"Ia": (0.4, 0.1), "fv": (1.0, 0.4), "fc": (0.8, 0.3)}
ENCODER = 2 * np.pi / 65536


def given() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)


def law(**changes: Any) -> ActuatorLaw:
    fields: dict[str, Any] = {"kp": [600.0, 250.0], "kd": [40.0, 14.0], "rate": 1000.0}
    return ActuatorLaw(given().coordinates, **(fields | changes))


def chirp(seconds: float = 8.0) -> Array:
    t = np.arange(int(seconds * RATE))[:, None] / RATE
    return np.asarray(np.minimum(t, 1.0) * 0.5 * np.sin(2 * np.pi * (0.2 * t + 0.15 * t**2) * [1.0, 1.3] + [0.0, 1.6]))


def moved(command: Array, real: ActuatorLaw) -> Array:
    """Measured positions of the real robot, from rest, by an encoder."""
    robot = given()
    values = {f"{name}_{j}": x for name, pair in DRIVES.items() for j, x in zip(robot.coordinates, pair, strict=True)}
    robot = robot.with_parameters(
        [values.get(n, x) for n, x in zip(robot.parameter_names, robot.parameters, strict=True)]
    )
    hold = np.vstack([np.repeat(command[:1], 400, axis=0), command])
    start = Segments(np.array([0]), len(hold) - 1, command[:1], np.zeros((1, 2)))
    q = rollout(robot, real, Commands(RATE, hold), start).q[0, 400:]
    return np.asarray(ENCODER * np.round(q / ENCODER))


def log(q: Array, command: Array, t: Array | None = None) -> Recording:
    t = np.arange(len(q)) / RATE if t is None else t
    return Recording(given().coordinates, (Run(t, q, reference=command),))


@pytest.fixture(scope="module")
def command() -> Array:
    return chirp()


@pytest.fixture(scope="module")
def measured(command: Array) -> Array:
    return moved(command, law(delay=DELAY))


def check_values(found: ActuatorEstimate, joints: tuple[int, ...] = (0, 1)) -> None:
    """Friction and armature within 2 %: an encoder of 65536 steps shows them to less than a percent."""
    for k, quantity in enumerate(("armature", "damping", "friction")):
        for i in joints:
            value, _ = found.value(f"{quantity} of {found.law.joints[i]}")
            assert value == pytest.approx(list(DRIVES.values())[k][i], rel=0.02), (quantity, i)
    assert found.law.delay[0] == pytest.approx(DELAY, abs=1e-4)


def test_a_gap_is_not_bridged(command: Array, measured: Array) -> None:
    """Nobody knows what was commanded in 0.5 s without rows; before, friction became zero without a word."""
    kept = np.r_[0:600, 700 : len(command)]
    found = identify_actuators(given(), log(measured[kept], command[kept], kept / RATE), law())
    check_values(found)
    assert any("gaps: its 2 stretches" in x for x in found.notes)
    errors = position_errors(found.robot, found.law, log(measured[kept], command[kept], kept / RATE))
    assert np.all(errors.rms < 0.01) and len(errors.horizons) == 3


def test_a_joint_at_rest_leaves_the_others_alone() -> None:
    """What the log does not show keeps the given value; before, it was 1e40 and spoiled the other joints."""
    command = chirp() * [0.0, 1.0]
    stiff = {"kp": [2e4, 250.0], "kd": [600.0, 14.0]}  # moves by less than a milliradian
    q = moved(command, law(delay=DELAY, **stiff))
    q[:, 0] = np.round(q[0, 0], 2)
    found = identify_actuators(given(), log(q, command), law(**stiff))
    check_values(found, (1,))
    own = given().parameters[given().parameter_names.index("fc_joint1")]
    assert found.value("friction of joint1") == (own, np.inf)
    assert any("'joint1' does not move" in x for x in found.notes)
    assert np.isfinite(dynid.actuators.draw_actuators(found, 10).values).all()


def test_a_robot_at_rest_is_told(command: Array) -> None:
    with expect_error(NotIdentifiable):
        identify_actuators(given(), log(0.0 * command + 0.3, 0.0 * command + 0.3), law())


def test_commands_that_run_along_the_joints_are_in_order() -> None:
    """A wave: every joint follows its command so late that it fits the command of the next joint better."""
    robot = dynid.load_robot("iiwa14")
    known = ActuatorLaw(robot.coordinates, kp=600.0, kd=40.0)
    t = np.arange(int(16 * RATE))[:, None] / RATE
    later = 0.12 * np.arange(robot.n)
    command, measured = (np.sin(2 * np.pi * 0.4 * (t - later - lag)) for lag in (0.0, 0.12 + 40.0 / 600.0))
    run = Recording(robot.coordinates, (Run(t[:, 0], measured, reference=command),))
    check_followed(robot, known, read_logs(robot, known, run))


def test_columns_that_do_not_belong_together_are_named(command: Array, measured: Array) -> None:
    robot, turned = given(), measured * [1.0, -1.0]
    with expect_error(Mismatch, "sign"):
        identify_actuators(robot, log(turned, command), law())
    with expect_error(Mismatch, "units"):
        identify_actuators(robot, log(np.rad2deg(measured), command), law())
    with expect_error(Mismatch):
        identify_actuators(robot, log(measured[:, ::-1], command), law())


def test_commands_that_are_logged_late_are_told(command: Array) -> None:
    """By a row of 5 ms, while the robot is late by 1 ms: the delay would be -4 ms."""
    q = moved(command, law(delay=0.001))
    late = np.vstack([command[:1], command[:-1]])
    found = identify_actuators(given(), log(q, late), law())
    check = assess_actuators(found).check("delay")
    assert found.law.delay[0] == 0.0 and -0.006 < found.negative_delay < -0.001
    assert check.result == "warned" and "before they are logged" in check.words
    on_time = identify_actuators(given(), log(q, command), law())
    assert assess_actuators(on_time).check("delay").result == "passed"
    given_delay = identify_actuators(given(), log(q, command), law(delay=0.001), unknown=["damping", "friction"])
    assert assess_actuators(given_delay).check("delay").result == "not checked"


def test_a_derivative_gain_that_is_too_large_is_named(command: Array, measured: Array) -> None:
    """Before, damping, friction and delay were zero, and the gains of the law 'agreed with the motion'."""
    found = identify_actuators(given(), log(measured, command), law(kd=[80.0, 28.0]))
    assert np.all(found.kd_change < -0.3)
    check = assess_actuators(found).check("law")
    assert check.result == "failed" and "derivative gain" in check.words and "below" in check.words


def test_a_law_that_follows_the_velocity_of_the_command(command: Array) -> None:
    real = law(delay=DELAY, velocity_target="command")
    q = moved(command, real)
    found = identify_actuators(given(), log(q, command), law(velocity_target="command"))
    check_values(found)
    assert assess_actuators(found).check("law").result == "passed"
    without = assess_actuators(identify_actuators(given(), log(q, command), law())).check("law")
    assert without.result != "passed" and "velocity_target" in without.advice


def test_a_gain_that_is_off_by_a_tenth_is_named(command: Array, measured: Array) -> None:
    """It costs more than half of the armature; the motion fits 1/1.1, 9 % below."""
    found = identify_actuators(given(), log(measured, command), law(kp=[660.0, 275.0]))
    check = assess_actuators(found).check("law")
    assert check.result == "warned" and "proportional gain 9 % below" in check.words


def test_one_wrong_gain_of_many_is_named(command: Array, measured: Array) -> None:
    found = identify_actuators(given(), log(measured, command), law(), unknown=["armature", "damping", "friction"])
    odd = replace(found, kp_change=np.array([0.01, -0.4]), kp_change_std=np.array([0.02, 0.02]))
    check = assess_actuators(odd).check("law")
    assert check.result == "warned" and "'joint2'" in check.words and "'joint1'" not in check.words


@pytest.mark.parametrize("unknown", ["delay", "backlash"])
def test_a_quantity_that_has_no_start_may_be_unknown_alone(command: Array, measured: Array, unknown: str) -> None:
    found = identify_actuators(given(), log(measured, command), law(), unknown=[unknown])
    assert np.all(np.isfinite(found.values))


def test_motion_that_diverges_has_no_infinite_figures(command: Array, measured: Array) -> None:
    found = identify_actuators(given(), log(measured, command), law(), unknown=["delay"])
    errors = position_errors(given(), law(kp=1e7, kd=0.0), log(measured, command))
    checks = assess_actuators(found, errors)
    assert not np.isfinite(errors.rms).all() and checks.check("validation_error").result == "failed"
    assert "inf" not in checks.check("validation_error").words + checks.check("error_growth").words


def test_growth_is_told_against_what_it_was_measured(command: Array, measured: Array) -> None:
    """An error below half a percent of the range is no growth, however small that of the fit was."""
    found = identify_actuators(given(), log(measured, command), law())
    errors = position_errors(found.robot, found.law, log(measured[700:], command[700:]))
    check = assess_actuators(found, errors).check("error_growth")
    assert check.result == "passed" and "exceeds 0.5 % of the range" in check.words
