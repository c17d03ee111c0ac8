"""Column names are matched against the robot's joint names first, whatever else their words may mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import MissingArgument
from tests.support.errors import expect_error
from tests.support.log_files import motion, robot, same, table, text, write

FORMS = [
    ("q_{j}", "v_{j}", "tau_{j}"),
    ("{j}_q", "{j}_v", "{j}_tau"),
    ("{j}.position", "{j}.velocity", "{j}.effort"),
    ("position[{j}]", "velocity[{j}]", "effort[{j}]"),
    ("pos {j} [rad]", "vel {j} [rad/s]", "torque {j} [Nm]"),
    ("/states/{j}/pos", "/states/{j}/vel", "/states/{j}/torque"),
    ("actual_q_{j}", "actual_qd_{j}", "actual_tau_{j}"),
    ("{J}_POS", "{J}_VEL", "{J}_TAU"),
    ("Q_{J}", "DQ_{J}", "TAU_{J}"),
]
ROBOTS = [
    ("x",),
    ("t",),
    ("q",),
    ("e",),
    ("tau", "shoulder"),
    ("x", "y", "z"),
    ("q", "x"),
    ("a", "v", "e"),
    ("roll", "pitch", "yaw"),
    ("i", "t", "s"),
    ("shoulder", "shoulder_tau"),
    ("arm", "arm_2", "arm_22"),
    ("joint1", "joint10", "joint2"),
    ("J1", "J2", "J3"),
    ("time", "ref", "max"),
    ("m", "rad", "deg_a"),
    ("elbow", "elbow_joint"),
]


@pytest.mark.parametrize("joints", ROBOTS, ids="-".join)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
def test_every_signal_of_every_joint_is_found(tmp_path: Path, joints: tuple[str, ...], form: tuple[str, ...]) -> None:
    """In reverse order of the joints, so that only names can decide."""
    run = motion(joints=len(joints))
    header = ["time"] + [pattern.format(j=j, J=j.upper()) for pattern in form for j in reversed(joints)]
    rows = np.column_stack([run.t, run.q[:, ::-1], run.v[:, ::-1], run.torque[:, ::-1]])
    file = write(tmp_path / "run.csv", text(rows, header))
    recording = dynid.load_recording(file, robot(*joints), units={"t": "s", "q": "rad", "v": "rad/s"})
    assert same(recording.runs[0], run) and recording.unread_columns == ()


def test_position_columns_in_our_own_names_do_not_hide_the_others(tmp_path: Path) -> None:
    """q_x is the name that `to_csv` writes, tau_x is not: the torque is read all the same."""
    run = motion(joints=1)
    file = write(tmp_path / "run.csv", text(table(run), ["t", "q_x", "vel_x", "tau_x"]))
    assert same(dynid.load_recording(file, robot("x")).runs[0], run)


def test_a_joint_named_as_the_clock(tmp_path: Path) -> None:
    """With a column t, q_t and tau_t: t is the clock. In files of one signal, t beside another clock is the joint."""
    run = motion(joints=2)
    file = write(tmp_path / "run.csv", text(table(run), ["t", "q_t", "q_u", "v_t", "v_u", "tau_t", "tau_u"]))
    assert same(dynid.load_recording(file, robot("t", "u")).runs[0], run)
    for signal in ("q", "torque"):
        write(tmp_path / f"{signal}.csv", text(table(run, signal), ["time", "t", "u"]))
        write(tmp_path / f"bare_{signal}.csv", text(getattr(run, signal), ["t", "u"]))
    files = {s: tmp_path / f"{s}.csv" for s in ("q", "torque")}
    assert same(dynid.load_recording(files, robot("t", "u")).runs[0], run, "q", "torque")
    files = {s: tmp_path / f"bare_{s}.csv" for s in ("q", "torque")}
    assert same(dynid.load_recording(files, robot("t", "u"), rate=100).runs[0], run, "q", "torque")


def test_names_with_two_readings_follow_the_rest_of_the_log(tmp_path: Path) -> None:
    """q_v is the position of joint v beside tau_q, and the velocity of joint q beside q_tau."""
    run = motion(joints=2)
    after = ["t", "q_q", "q_v", "v_q", "v_v", "tau_q", "tau_v"]
    before = ["t", "q_q", "v_q", "q_v", "v_v", "q_tau", "v_tau"]
    for header in (after, before):
        file = write(tmp_path / "run.csv", text(table(run), header))
        assert same(dynid.load_recording(file, robot("q", "v")).runs[0], run)


def test_names_with_two_readings_are_not_guessed(tmp_path: Path) -> None:
    """Joints q and tau: q_tau and tau_q do not show which word is the joint."""
    run = motion(joints=2)
    header = ["t", "q_q", "q_tau", "tau_q", "tau_tau"]
    file = write(tmp_path / "run.csv", text(table(run, "q", "torque"), header))
    with expect_error(MissingArgument, "columns"):
        dynid.load_recording(file, robot("q", "tau"))
    columns = {"q": ["q_q", "q_tau"], "torque": ["tau_q", "tau_tau"]}
    assert same(dynid.load_recording(file, robot("q", "tau"), columns=columns).runs[0], run, "q", "torque")


@pytest.mark.parametrize("form", ["cmd_{j}", "{j} command [rad]", "q_des_{j}", "target_{j}_pos", "{j}_setpoint"])
def test_commands_are_the_reference(tmp_path: Path, form: str) -> None:
    run = motion(joints=2)
    names = ("left_knee_joint", "right_knee_joint")
    short = [n.removesuffix("_joint") for n in names]  # logs leave the word out
    header = ["t", *(f"q_{j}" for j in short), *(form.format(j=j) for j in short)]
    rows = np.column_stack([run.t, run.q, run.q + 0.1])
    found = dynid.load_recording(write(tmp_path / "run.csv", text(rows, header)), robot(*names)).runs[0]
    np.testing.assert_allclose(found.q, run.q)
    assert found.reference is not None
    np.testing.assert_allclose(found.reference, run.q + 0.1)


def test_of_several_commands_the_one_that_says_position_is_the_reference(tmp_path: Path) -> None:
    run = motion(joints=1)
    rows = np.column_stack([run.t, run.q, run.q + 1.0, run.q + 2.0, run.q + 3.0])
    file = write(tmp_path / "a.csv", text(rows, ["t", "q_x", "cmd_x", "q_des_x", "tau_cmd_x"]))
    found = dynid.load_recording(file, robot("x")).runs[0]
    assert found.reference is not None
    np.testing.assert_allclose(found.reference, run.q + 2.0)
    file = write(tmp_path / "b.csv", text(rows, ["t", "q_x", "cmd_x", "target_x", "vel_cmd_x"]))
    assert dynid.load_recording(file, robot("x")).runs[0].reference is None


def test_the_word_joint_may_stand_inside_a_name(tmp_path: Path) -> None:
    """Named in another order than their numbers, the columns go to the joints of their names."""
    run = motion(joints=2)
    file = write(tmp_path / "run.csv", text(table(run, "q"), ["t", "q_lbr_joint_1", "q_lbr_joint_0"]))
    found = dynid.load_recording(file, robot("lbr_joint_0", "lbr_joint_1")).runs[0]
    np.testing.assert_allclose(found.q, run.q[:, ::-1])
