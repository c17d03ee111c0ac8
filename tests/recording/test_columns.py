"""Which column belongs to which joint of which signal: recognised by its name, or given."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import (
    Duplicate,
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingJoints,
    NotApplicable,
    UnknownName,
)
from tests.support.errors import expect_error
from tests.support.log_files import motion, names, refused, robot, same, table, text, write

RUN = motion()
ROBOT = robot("shoulder", "elbow", "wrist_1")
NUMBERED = robot("joint_1", "joint_2", "joint_3")


def log(folder: Path, header: list[str] | None, *signals: str, name: str = "run.csv") -> Path:
    return write(folder / name, text(table(RUN, *signals), header))


@pytest.mark.parametrize(
    ("q", "v", "torque"),
    [
        ("q{i}", "qd{i}", "tau{i}"),
        ("q_{k}", "dq_{k}", "tau_{k}"),
        ("q[{k}]", "v[{k}]", "torque[{k}]"),
        ("pos{i}", "vel{i}", "eff{i}"),
        ("Position{i}", "Velocity{i}", "Torque{i}"),
        ("joint{i}_position", "joint{i}_velocity", "joint{i}_effort"),
        ("J{i} angle", "J{i} speed", "J{i} torque"),
        ("actual_q_{k}", "actual_qd_{k}", "actual_torque_{k}"),
        ("pos_meas{i}", "vel_meas{i}", "tau_meas{i}"),
        ("/joint_states/joint_{i}/position", "/joint_states/joint_{i}/velocity", "/joint_states/joint_{i}/effort"),
        ("q{i} [rad]", "qdot{i} [rad/s]", "tau{i} (Nm)"),
        ("axis {i:02d} pos", "axis {i:02d} vel", "axis {i:02d} tau"),
        ("jointPos{i}", "jointVel{i}", "jointTorque{i}"),
        ("A{i}_pos_rad", "A{i}_vel", "A{i}_torque_nm"),
        ("MeasPos_{i}", "MeasVel_{i}", "MeasTrq_{i}"),
        ("q_pos_{k}", "q_vel_{k}", "actual_moment_{k}"),
        ("q_{joint}", "v_{joint}", "torque_{joint}"),
        ("{joint}_pos", "{joint}_vel", "{joint}_effort"),
        ("- {joint}_position", "- {joint}_velocity", "- {joint}_effort"),
        ("pos.{joint}.meas", "vel.{joint}.meas", "eff.{joint}.meas"),
        ("Shoulder Position", None, None),
    ],
)
def test_usual_names_are_known(tmp_path: Path, q: str, v: str | None, torque: str | None) -> None:
    """Numbers from 0 or 1 and names of joints, before and after the word, with units and punctuation."""
    if v is None or torque is None:
        header = ["Time [s]", "Shoulder Position", "Elbow Position", "Wrist 1 Position"]
        assert same(dynid.load_recording(log(tmp_path, header, "q"), ROBOT).runs[0], RUN, "q")
        return
    header = ["t"]
    for pattern in (q, v, torque):
        header += [pattern.format(i=k + 1, k=k, joint=joint) for k, joint in enumerate(ROBOT.coordinates)]
    file = log(tmp_path, header)
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)
    given = dynid.load_recording(file, ROBOT, columns={"q": q, "v": v, "torque": torque}, time="t")
    assert same(given.runs[0], RUN)


@pytest.mark.parametrize("clock", ["t", "time", "Time", "times", "timestamp", "Time (s)", "time_s", "stamp", "seconds"])
def test_usual_names_of_the_clock_are_known(tmp_path: Path, clock: str) -> None:
    file = log(tmp_path, [clock, "q1", "q2", "q3"], "q")
    assert np.array_equal(dynid.load_recording(file, ROBOT).runs[0].t, RUN.t)


def test_numbers_not_order_decide(tmp_path: Path) -> None:
    """Columns q3, q1, q2 are joints 3, 1, 2."""
    order = [2, 0, 1]
    rows = np.column_stack([RUN.t, RUN.q[:, order], RUN.torque[:, ::-1]])
    file = write(tmp_path / "run.csv", text(rows, ["t", "q3", "q1", "q2", "tau_2", "tau_1", "tau_0"]))
    assert same(dynid.load_recording(file, NUMBERED).runs[0], RUN, "q", "torque")


def test_names_not_numbers_decide_where_there_are_names(tmp_path: Path) -> None:
    """The header joint_3, joint_1, joint_2 is that of the robot, whatever the order of the columns."""
    order = [2, 0, 1]
    for signal, words in (("q", "position"), ("torque", "effort")):
        rows = np.column_stack([RUN.t, getattr(RUN, signal)[:, order]])
        write(tmp_path / f"{words}.csv", text(rows, ["time", "joint_3", "joint_1", "joint_2"]))
    files = {"q": tmp_path / "position.csv", "torque": tmp_path / "effort.csv"}
    assert same(dynid.load_recording(files, NUMBERED).runs[0], RUN, "q", "torque")
    # Zero-based names in the file against one-based names of the robot: an error, not a guess.
    rows = np.column_stack([RUN.t, RUN.q])
    file = write(tmp_path / "run.csv", text(rows, ["t", "joint_0_pos", "joint_1_pos", "joint_2_pos"]))
    with expect_error(MissingJoints, "lock"):
        dynid.load_recording(file, NUMBERED)
    given = dynid.load_recording(file, NUMBERED, joints=["joint_0", "joint_1", "joint_2"])
    assert same(given.runs[0], RUN, "q") and given.joints == NUMBERED.coordinates


def test_longer_joint_names_are_not_taken_for_shorter_ones(tmp_path: Path) -> None:
    arm = robot("arm", "arm_2", "arm_22")
    rows = np.column_stack([RUN.t, RUN.q[:, ::-1]])
    file = write(tmp_path / "run.csv", text(rows, ["t", "arm_22_pos", "arm_2_pos", "arm_pos"]))
    assert same(dynid.load_recording(file, arm).runs[0], RUN, "q")


def test_joints_named_as_signals(tmp_path: Path) -> None:
    """A robot whose joints are called q1, q2, q3: q1 is its position, tau_q1 its torque."""
    mine = robot("q1", "q2", "q3")
    header = ["t", "q1", "q2", "q3", "tau_q3", "tau_q2", "tau_q1"]
    rows = np.column_stack([RUN.t, RUN.q, RUN.torque[:, ::-1]])
    file = write(tmp_path / "run.csv", text(rows, header))
    assert same(dynid.load_recording(file, mine).runs[0], RUN, "q", "torque")


def test_planned_external_and_filtered_columns_are_skipped(tmp_path: Path) -> None:
    """Only measured quantities are recognised, and a flag is not a torque."""
    header = [
        "t",
        "q1",
        "q2",
        "q3",
        *(f"tau{k}" for k in (1, 2, 3)),
        *(f"{x}{k}" for x in ("q_des", "tau_ext", "tau_J_d") for k in (1, 2, 3)),
    ]
    rows = np.column_stack([RUN.t, RUN.q, RUN.torque, RUN.q + 1, RUN.torque + 1, RUN.torque + 2])
    file = write(tmp_path / "run.csv", text(rows, header))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN, "q", "torque")
    one = write(tmp_path / "one.csv", text(rows[:, :3], ["time", "position", "torque_enable"]))
    assert dynid.load_recording(one).runs[0].torque is None


def test_two_candidates_are_an_error(tmp_path: Path) -> None:
    """Torque and TorqueSm may both be meant: nothing is guessed."""
    file = log(tmp_path, names("Position", "Torque", "TorqueSm"))
    with expect_error(MissingArgument, "columns"):
        dynid.load_recording(file, ROBOT)
    columns = {"q": "Position{i}", "torque": "TorqueSm{i}"}
    assert np.array_equal(dynid.load_recording(file, ROBOT, columns=columns).runs[0].torque, RUN.torque)
    file = log(tmp_path, ["time", "timestamp", "q1", "q2"], "q")
    with expect_error(MissingArgument, "time"):
        dynid.load_recording(file)
    file = log(tmp_path, ["t", "pos_elbow", "elbow_pos", "pos_shoulder"], "q")
    with expect_error(Duplicate):
        dynid.load_recording(file, robot("shoulder", "elbow"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([*names("q", joints=2), "x"], r"q has 2 columns \(q1 ... q2\), expected 3 joints: choose with joints="),
        (["t", "q1", "q2", "q4"], "q is numbered 1, 2, 4: list its columns"),
        (["t", "q2", "q3", "q4"], "q is numbered 2, 3, 4"),
        (["t", "a", "b", "c"], "no column is named as a position: give columns=, it has t, a, b, c"),
        (["x", "q1", "q2", "q3"], r"has no column for the time: give time= \(a column\) or rate= \(Hz\), it has x, q1"),
        (None, 'has 4 columns and no header: say which are which, such as columns={"q": "1:7"'),
    ],
)
def test_names_that_do_not_fit_are_an_error(tmp_path: Path, header: list[str] | None, message: str) -> None:
    options: dict[str, Any] = {"time": 0} if header is None else {}
    with refused("run.csv", message):
        dynid.load_recording(log(tmp_path, header, "q"), ROBOT, **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"q": "pos{i}"}, "run.csv has no column 'pos1' for q, it has t, q1, q2, q3"),
        ({"q": "q{n}"}, r"q: the pattern 'q{n}' may contain {i}, {k} or {joint} only"),
        ({"q": "q"}, "run.csv has no column 'q' for q"),
        ({"q": ["q1", "q2", "angle"]}, "run.csv has no column 'angle' for q"),
        ({"q": ["q1", "q2"]}, r"run.csv: q has 2 columns \(q1, q2\), expected 3 joints"),
        ({"q": "1:5"}, "run.csv: q has 4 columns"),
        ({"q": "1:99"}, "run.csv: q needs columns 1:99, the file has 10"),
        ({"q": [1, 2, 30]}, "run.csv: q needs column 30, the file has 10"),
        ({"v": "v{i}"}, "columns names v, but not q: positions are needed"),
        ({"q": "q{i}", "tau": "tau{i}"}, "columns: signal 'tau' is unknown, use q, v, "),
        ({"q": "q{i}", "t": "t"}, "the clock is given with time="),
    ],
)
def test_wrong_columns_are_an_error_that_lists_the_columns_of_the_file(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    with refused(message):
        dynid.load_recording(log(tmp_path, names("q", "v", "tau")), ROBOT, columns=columns)


def test_joints_of_a_larger_file_are_picked(tmp_path: Path) -> None:
    """By index for numbers, arrays, ranges and patterns; by name where the file has names."""
    two = robot("wrist_1", "shoulder")
    file = log(tmp_path, names("q", "v", "tau"))
    with expect_error(Mismatch, "joints"):
        dynid.load_recording(file, two)
    for columns in (
        None,
        {"q": "q{i}", "torque": "tau{i}"},
        {"q": "1:4", "torque": "7:10"},
        {"q": np.array([3, 1]), "torque": [9, 7]},
    ):
        run = dynid.load_recording(file, two, joints=[2, 0], columns=columns).runs[0]
        assert np.array_equal(run.q, RUN.q[:, [2, 0]]) and np.array_equal(run.torque, RUN.torque[:, [2, 0]])
    assert dynid.load_recording(file, joints=[2, 0]).joints == ("joint3", "joint1")
    header = ["t", *(f"{s}_{j}" for s in ("q", "v", "torque") for j in ROBOT.coordinates)]
    run = dynid.load_recording(log(tmp_path, header, name="named.csv"), two).runs[0]
    assert np.array_equal(run.q, RUN.q[:, [2, 0]])
    with expect_error(Mismatch, "joints"):
        dynid.load_recording(file, joints=[0, 3])
    with expect_error(Mismatch, "joints"):
        dynid.load_recording(file, two, joints=[0])
    with expect_error(InvalidValue, "joints"):
        dynid.load_recording(file, joints="q1")
    with expect_error(MissingArgument, "joints"):
        dynid.load_recording(file, columns={"q": "q_{joint}"})


def test_signals_in_files_of_their_own(tmp_path: Path) -> None:
    """With headers, without, with one clock for all, with a clock each, with a file for the clock."""
    files = {}
    for signal in ("q", "v", "torque"):
        rows = getattr(RUN, signal)
        files[signal] = write(tmp_path / f"{signal}.csv.gz", text(rows, ["Joint_1", "Joint_2", "Joint_3"]))
    run = dynid.load_recording(files, NUMBERED, rate=100).runs[0]
    assert np.array_equal(run.q, RUN.q) and np.array_equal(run.torque, RUN.torque) and run.name == "q"
    clock = write(tmp_path / "clock.txt", text(RUN.t[:, None]))
    assert same(dynid.load_recording({**files, "t": clock}, NUMBERED).runs[0], RUN)
    for signal in ("q", "v", "torque"):
        write(tmp_path / f"{signal}.csv.gz", text(getattr(RUN, signal)))
    assert same(dynid.load_recording({**files, "t": clock}, ROBOT).runs[0], RUN)
    for signal in ("q", "v", "torque"):
        write(tmp_path / f"{signal}.csv.gz", text(table(RUN, signal), ["time", "x1", "x2", "x3"]))
    assert same(dynid.load_recording(files, ROBOT).runs[0], RUN)
    given = dynid.load_recording(files, ROBOT, columns={"q": ["x1", "x2", "x3"], "torque": "1:4"})
    assert same(given.runs[0], RUN)
    two = dynid.load_recording([files, files], ROBOT)
    assert len(two.runs) == 2 and same(two.runs[1], RUN)


def test_files_of_one_run_must_fit_together(tmp_path: Path) -> None:
    q = log(tmp_path, ["t", "x1", "x2", "x3"], "q", name="pos.csv")
    rows = table(RUN, "torque")
    short = write(tmp_path / "cur.csv", text(rows[:-1], ["t", "x1", "x2", "x3"]))
    with expect_error(InvalidShape):
        dynid.load_recording({"q": q, "torque": short}, ROBOT)
    rows[30:, 0] += 0.004
    late = write(tmp_path / "late.csv", text(rows, ["t", "x1", "x2", "x3"]))
    with expect_error(Mismatch):
        dynid.load_recording({"q": q, "torque": late}, ROBOT)
    two = write(tmp_path / "two.csv", text(np.column_stack([rows, rows[:, 1:]]), names("x", "y")))
    with expect_error(MissingArgument, "columns"):
        dynid.load_recording({"q": q, "torque": two}, ROBOT)
    with expect_error(UnknownName, "source"):
        dynid.load_recording({"q": q, "tau": q}, ROBOT)
    with expect_error(UnknownName, "source"):
        dynid.load_recording({"torque": q}, ROBOT)
    with expect_error(NotApplicable, "columns"):
        dynid.load_recording({"q": q}, ROBOT, columns={"v": "1:4"})
    with expect_error(MissingArgument, "columns"):
        dynid.load_recording({"q": q, "torque": write(tmp_path / "cur.csv", text(rows, names("v")))}, ROBOT)


def test_several_files_are_several_runs_in_the_given_order(tmp_path: Path) -> None:
    files = [log(tmp_path, names("q", "v", "tau"), name=f"run{k}.csv") for k in (10, 2, 1)]
    loaded = dynid.load_recording(files, ROBOT)
    assert [run.name for run in loaded.runs] == ["run10", "run2", "run1"] and loaded.samples == 180
    other = log(tmp_path, [*names("q", joints=2), "x"], "q", name="other.csv")
    with expect_error(Mismatch, "joints"):
        dynid.load_recording([files[0], other])
    with expect_error(MissingArgument, "source"):
        dynid.load_recording([])


def test_base_and_wrench_of_a_floating_robot(tmp_path: Path) -> None:
    """Position and quaternion of the base and the wrench on it, by range."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 7 + 3 + 6))
    half = 0.1 * np.arange(30)
    rows[:, 3:7] = np.column_stack([np.sin(half), 0 * half, 0 * half, np.cos(half)])
    file = write(tmp_path / "run.csv", text(rows, [*(f"q_{k}" for k in range(10)), "Fx", "Fy", "Fz", "Mx", "My", "Mz"]))
    columns = {"base": "0:7", "q": "7:10", "wrench": ["Fx", "Fy", "Fz", "Mx", "My", "Mz"]}
    run = dynid.load_recording(file, ROBOT.with_base("floating"), columns=columns, rate=30).runs[0]
    assert np.array_equal(np.column_stack([run.base, run.q, run.wrench]), rows)
    with expect_error(Mismatch, "columns"):
        dynid.load_recording(file, ROBOT, columns={"q": "7:10", "wrench": "10:15"}, rate=30)


def test_commands_with_the_name_of_velocities(tmp_path: Path) -> None:
    """`qd` may be desired positions: what the positions follow is a command, what they integrate is a velocity."""
    t = np.arange(0.0, 5.0, 0.01)
    q = np.column_stack([np.sin(t + k) + 0.3 * k for k in range(3)])
    late = np.column_stack([np.sin(t + 0.05 + k) + 0.3 * k for k in range(3)])
    speed = np.column_stack([np.cos(t + k) for k in range(3)])
    header = "t," + ",".join([f"q{k}" for k in (1, 2, 3)] + [f"qd{k}" for k in (1, 2, 3)])
    for name, values in (("commands.csv", late), ("velocities.csv", speed)):
        np.savetxt(tmp_path / name, np.column_stack([t, q, values]), delimiter=",", header=header, comments="")
    run = dynid.load_recording(tmp_path / "commands.csv", NUMBERED).runs[0]
    assert run.v is None and run.reference is not None and np.allclose(run.reference, late)
    run = dynid.load_recording(tmp_path / "velocities.csv", NUMBERED).runs[0]
    assert run.reference is None and run.v is not None and np.allclose(run.v, speed)


def test_joints_without_columns_are_named(tmp_path: Path) -> None:
    """The error holds the joints, for those who want to lock them."""
    file = log(tmp_path, ["t", "shoulder_pos", "elbow_pos", "lamp"], "q")
    with pytest.raises(dynid.errors.MissingJoints) as caught:
        dynid.load_recording(file, ROBOT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert caught.value.joints == again.joints == ("wrist_1",) and str(again) == str(caught.value)
