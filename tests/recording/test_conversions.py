"""Units, scale, sign, gain, transmission and offset: each against a formula, and in their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import Mismatch, MissingArgument, NotApplicable, UnknownName
from dynid.robot import Transmission
from tests.support.errors import expect_error
from tests.support.log_files import Array, motion, names, refused, robot, table, text, write

RUN = motion()
ROBOT = robot("a1", "a2", "a3")
HEADER = names("q", "v", "a", "tau", "i", "qref")
RAW: dict[str, Any] = {
    "q": RUN.q,
    "v": RUN.v,
    "a": 10 * RUN.q,
    "torque": RUN.torque,
    "current": -RUN.torque,
    "reference": RUN.q,
}
ROWS = np.column_stack([RUN.t, *RAW.values()])
DEG = np.pi / 180


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "run.csv", text(ROWS, HEADER))


@pytest.mark.parametrize(
    ("signal", "unit", "factor"),
    [
        ("q", "rad", 1.0),
        ("q", "deg", DEG),
        ("q", "rev", 2 * np.pi),
        ("q", "counts:4096", 2 * np.pi / 4096),
        ("reference", "deg", DEG),
        ("v", "rad/s", 1.0),
        ("v", "deg/s", DEG),
        ("v", "rev/s", 2 * np.pi),
        ("v", "rpm", 2 * np.pi / 60),
        ("v", "counts:100", 2 * np.pi / 100),
        ("a", "rad/s2", 1.0),
        ("a", "deg/s2", DEG),
        ("torque", "Nm", 1.0),
        ("torque", "mNm", 1e-3),
        ("torque", "kNm", 1e3),
        ("current", "A", 1.0),
        ("current", "mA", 1e-3),
    ],
)
def test_units(file: Path, signal: str, unit: str, factor: float) -> None:
    """Only the named signal changes, by the factor of its unit."""
    run = dynid.load_recording(file, ROBOT, units={signal: unit}).runs[0]
    for name, raw in RAW.items():
        wanted = raw * factor if name == signal else raw
        np.testing.assert_allclose(getattr(run, name), wanted, rtol=1e-15)


def test_prismatic_joints_have_their_own_units(file: Path) -> None:
    """A lift in mm beside joints in degrees: one unit per joint, and an angle is not a unit of a prismatic joint."""
    lift = robot("lift", "a2", "a3", kinds="prr")
    units = {"q": ["mm", "deg", "deg"], "v": ["mm/s", "rpm", "rad/s"], "torque": ["kN", "Nm", "mNm"]}
    run = dynid.load_recording(file, lift, units=units).runs[0]
    np.testing.assert_allclose(run.q, RUN.q * [1e-3, DEG, DEG], rtol=1e-15)
    np.testing.assert_allclose(run.v, RUN.v * [1e-3, 2 * np.pi / 60, 1], rtol=1e-15)
    np.testing.assert_allclose(run.torque, RUN.torque * [1e3, 1, 1e-3], rtol=1e-15)
    with expect_error(UnknownName, "units"):
        dynid.load_recording(file, lift, units={"q": "deg"})
    with expect_error(UnknownName, "units"):
        dynid.load_recording(file, ROBOT, units={"q": "mm"})
    run = dynid.load_recording(file, units={"q": "mm"}).runs[0]
    np.testing.assert_allclose(run.q, RUN.q * 1e-3, rtol=1e-15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": {"q": "grad"}}, "unit 'grad' of q is unknown: use rad, deg, rev, m, mm, counts:4096"),
        ({"units": {"q": "counts:many"}}, "unit 'counts:many' of q needs the counts per revolution"),
        ({"units": {"v": "deg"}}, "unit 'deg' of v is unknown: use rad/s, deg/s"),
        ({"units": {"t": "min"}}, "unit 'min' of t is unknown: use s, ms, us, ns"),
        ({"units": {"tau": "Nm"}}, "units: signal 'tau' is unknown, use t, q, "),
        ({"units": {"q": ["deg", "deg"]}}, "units of q has 2 entries, the signal 3 columns"),
        ({"units": "deg"}, "units must name its signals"),
        ({"sign": {"torque": 0}}, "sign of torque must be 1 or -1"),
        ({"sign": {"torque": [1, -1]}}, "sign of torque has 2 entries, expected one number or 3"),
        ({"scale": {"q": "double"}}, "scale of q must be a finite number or one per joint"),
        ({"scale": {"t": 2}}, "scale: signal 't' is unknown, use q, v, "),
        ({"offset": {"q": float("nan")}}, "offset of q must be a finite number"),
        ({"gain": 1.0}, "gain turns currents into torques: the recording must have currents and no torques"),
        ({"motor_side": True}, "motor_side needs a robot with a transmission"),
        ({"motor_side": {"tau"}}, "motor_side: signal 'tau' is unknown, use q, v, a, reference, torque"),
    ],
)
def test_bad_conversions_are_an_error(file: Path, options: dict[str, Any], message: str) -> None:
    with refused(message):
        dynid.load_recording(file, ROBOT, **options)


@pytest.mark.parametrize("option", ["units", "scale", "sign", "offset"])
def test_a_setting_for_a_missing_signal_is_an_error(file: Path, option: str) -> None:
    """A setting without effect is a mistake."""
    value: Any = "rad/s" if option == "units" else 1
    with refused(f"{option} is given for v, which the recording does not have"):
        dynid.load_recording(file, ROBOT, columns={"q": "q{i}"}, **{option: {"v": value}})


def test_sign_scale_and_offset(file: Path) -> None:
    """One number for all joints or one each; the offset comes last, in SI units."""
    run = dynid.load_recording(
        file,
        ROBOT,
        units={"q": "deg"},
        scale={"torque": [2.0, 3.0, 4.0], "q": 2.0},
        sign={"torque": -1, "q": [1, -1, 1]},
        offset={"q": [0.0, -np.pi / 2, np.pi / 2], "torque": 0.5},
    ).runs[0]
    np.testing.assert_allclose(run.q, RUN.q * DEG * 2 * [1, -1, 1] + [0, -np.pi / 2, np.pi / 2], rtol=1e-14)
    np.testing.assert_allclose(run.torque, -RUN.torque * [2, 3, 4] + 0.5, rtol=1e-14)


def test_gain_makes_torques_of_currents(file: Path) -> None:
    columns = {"q": "q{i}", "current": "i{i}"}
    run = dynid.load_recording(
        file, ROBOT, columns=columns, sign={"current": -1}, gain=[10.0, 11.0, 12.0], offset={"torque": 1.0}
    ).runs[0]
    np.testing.assert_allclose(run.torque, RUN.torque * [10, 11, 12] + 1, rtol=1e-14)
    np.testing.assert_allclose(run.current, RUN.torque, rtol=1e-15)
    with expect_error(NotApplicable, "gain"):
        dynid.load_recording(file, ROBOT, columns={"q": "q{i}"}, gain=1.0)


# Motor 3 also turns joint 2, as in a coupled wrist; one ratio is negative.
WRIST = Transmission(("m1", "m2", "m3"), np.array([[1.0, 0, 0], [0, 1, 1], [0, 0, 1]]), np.array([32.0, 45, -48]))


def motor_log(folder: Path) -> Path:
    """The motion on the motor side: v_motor = T' v, tau = T tau_motor."""
    T = WRIST.matrix
    q, v = RUN.q @ T, RUN.v @ T
    tau = np.linalg.solve(T, RUN.torque.T).T
    return write(folder / "motors.csv", text(np.column_stack([RUN.t, q, v, tau]), names("q", "v", "tau")))


def test_motor_side_goes_through_the_transmission(tmp_path: Path) -> None:
    """q = inv(T') q_motor and tau = T tau_motor, the offset added on the joint side."""
    driven = ROBOT.with_transmission(WRIST)
    file = motor_log(tmp_path)
    run = dynid.load_recording(file, driven, motor_side=True, offset={"q": [0.0, 0.1, 0.2]}).runs[0]
    # The inverse of T costs a few digits of the 16.
    np.testing.assert_allclose(run.q, RUN.q + np.array([0, 0.1, 0.2]), rtol=1e-12)
    np.testing.assert_allclose(run.v, RUN.v, atol=1e-12)
    np.testing.assert_allclose(run.torque, RUN.torque, rtol=1e-12)
    raw = dynid.load_recording(file, driven).runs[0]
    part = dynid.load_recording(file, driven, motor_side={"torque"}).runs[0]
    assert np.array_equal(part.q, raw.q) and np.allclose(part.torque, RUN.torque, rtol=1e-12)
    with expect_error(NotApplicable, "motor_side"):
        dynid.load_recording(file, driven, motor_side={"a"})


def test_currents_of_motors_become_torques_of_joints(tmp_path: Path) -> None:
    """Gain first (motor torque), then the transmission; motor currents do not stay beside joint torques."""
    driven = ROBOT.with_transmission(WRIST)
    rows: Array = np.column_stack([RUN.t, RUN.q, RUN.torque])
    file = write(tmp_path / "run.csv", text(rows, names("q", "i")))
    run = dynid.load_recording(file, driven, gain=[0.1, 0.2, 0.3], motor_side={"torque"}).runs[0]
    np.testing.assert_allclose(run.torque, (RUN.torque * [0.1, 0.2, 0.3]) @ WRIST.matrix.T, rtol=1e-14)
    assert run.current is None


def test_more_motors_than_joints(tmp_path: Path) -> None:
    """Two motors on one joint: torques add, positions agree in the least-squares sense; columns go by motor."""
    both = Transmission(("left", "right", "m2"), np.array([[1.0, -1, 0], [0, 0, 1]]), np.array([10.0, 10, 20]))
    pair = robot("a1", "a2").with_transmission(both)
    q = RUN.q[:, :2] @ both.matrix
    rows = np.column_stack([RUN.t, q[:, [1, 0, 2]], np.ones((60, 3))])
    header = ["t", "right_pos", "left_pos", "m2_pos", "tau_left", "tau_right", "tau_m2"]
    run = dynid.load_recording(write(tmp_path / "run.csv", text(rows, header)), pair, motor_side=True).runs[0]
    np.testing.assert_allclose(run.q, RUN.q[:, :2], rtol=1e-13)
    np.testing.assert_allclose(run.torque, np.tile([0.0, 20.0], (60, 1)), atol=1e-13)
    with expect_error(Mismatch, "joints"):
        file = write(tmp_path / "short.csv", text(rows[:, :3], names("q", joints=2)))
        dynid.load_recording(file, pair, motor_side=True)


def test_units_in_names_must_be_given(tmp_path: Path) -> None:
    """A column named in degrees is not read as radians: the unit is given, also against the name."""
    file = write(tmp_path / "run.csv", text(table(RUN, "q", "v"), names("pos_deg_", "vel_deg_s_")))
    with expect_error(MissingArgument, "units"):
        dynid.load_recording(file, ROBOT)
    with expect_error(MissingArgument, "units"):
        dynid.load_recording(file, ROBOT, units={"q": "deg"})
    run = dynid.load_recording(file, ROBOT, units={"q": "deg", "v": "rad/s"}).runs[0]
    np.testing.assert_allclose(run.q, RUN.q * DEG, rtol=1e-15)
    assert np.array_equal(run.v, RUN.v)
