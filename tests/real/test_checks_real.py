"""The checks on real recordings, each with the trap that its authors fell into or documented."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from dynid import Recording, Robot
from dynid.assessment import Finding

FRICTION = "viscous+coulomb+offset"
UR10E_GAINS = [10.0, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232]

pytestmark = pytest.mark.real


def joints(findings: tuple[Finding, ...], code: str, severity: str) -> list[str]:
    return [f.joint for f in findings if f.code == code and f.severity == severity]


def med7(data: Path) -> Robot:
    return dynid.load_robot(data / "kuka-lbr-med7" / "med7dock.urdf", friction=FRICTION)


def med7_states(data: Path, robot: Robot, numbers: tuple[int, ...]) -> Recording:
    """The joint_states files with these of their columns taken for joints A1 to A7."""
    files = {"q": "positions", "v": "velocities", "torque": "efforts"}
    source = {s: data / "kuka-lbr-med7" / f"joint_states_{x}.csv.xz" for s, x in files.items()}
    return dynid.load_recording(source, robot, joints=[f"lbr_joint_{k}" for k in numbers])


def kinova(data: Path, robot: Robot, torque: str) -> Recording:
    columns = {"q": "Position{i}", "v": "Velocity{i}", "torque": torque + "{i}"}
    file = data / "kinova-gen3-dynamapp" / "opti_traj_testing1.csv.gz"
    return dynid.load_recording(file, robot, columns=columns, time=None, rate=1000)


@pytest.mark.parametrize(
    ("file", "loaded"),
    [
        ("measurements", {"A2", "A4", "A6"}),
        ("measurements_with_ext_tau_1_dgr", {"A2", "A3", "A4", "A5", "A6"}),
    ],
)
def test_med7_torques_are_reversed(data: Path, file: str, loaded: set[str]) -> None:
    """All joints that gravity loads carry the sign of the sensor, which is the opposite of the URDF's."""
    robot = med7(data)
    path = data / "kuka-lbr-med7" / f"{file}.csv.xz"
    columns = {"q": "q_{k}", "torque": "tau_{k}"}
    wrong = dynid.load_recording(path, robot, columns=columns, time=None, rate=100)
    assert loaded <= set(joints(dynid.check(robot, wrong), "torque_sign", "error"))
    right = dynid.load_recording(path, robot, columns=columns, time=None, rate=100, sign={"torque": -1})
    assert not [f for f in dynid.check(robot, right) if f.code in ("torque_sign", "friction_sign")]


def test_med7_columns_taken_by_position_are_found(data: Path) -> None:
    """The files hold joints 2, 3, 4, 1, 5, 6, 7; taken as 1 to 7 they are sorted out, taken by name they are right."""
    robot = med7(data)
    findings = dynid.check(robot, med7_states(data, robot, (1, 2, 3, 0, 4, 5, 6)))
    assert joints(findings, "joint_order", "error") == ["A1", "A2", "A3", "A4"]
    assert "A2, A3, A4, A1, A5, A6, A7" in findings[0].what_to_do
    findings = dynid.check(robot, med7_states(data, robot, (0, 1, 2, 3, 4, 5, 6)))
    assert not joints(findings, "joint_order", "error")
    assert {"A2", "A3", "A4", "A5"} <= set(joints(findings, "torque_sign", "error"))
    # 100 Hz of source in 400 Hz of log.
    repeated = next(f for f in findings if f.code == "rows_repeated")
    assert abs(float(repeated.how_much.split()[0]) - 75) < 1


def test_ur10e_clock_is_uneven_and_currents_are_no_torques(data: Path) -> None:
    """Steps of 10 and 12 ms; with the published drive gains nothing else is wrong, without them the gain is told."""
    place = data / "ur10e-mamedov"
    robot = dynid.load_robot(place / "ur10e.urdf", friction=FRICTION, rotor_inertia=True)
    file = place / "identification" / "ur-20_02_10-30sec_12harm.csv.gz"
    for gain, wrong in ((UR10E_GAINS, []), ([1.0] * 6, ["shoulder_lift_joint", "elbow_joint", "wrist_1_joint"])):
        columns = {"q": "1:7", "v": "7:13", "current": "13:19"}
        findings = dynid.check(
            robot, dynid.load_recording(file, robot, columns=columns, time=0, rows=(634, 3510), gain=gain)
        )
        uneven = next(f for f in findings if f.code == "sampling_uneven")
        assert uneven.severity == "warning" and abs(float(uneven.how_much.split()[0]) - 20) < 1
        found = set(joints(findings, "torque_unit", "warning"))
        assert set(wrong) <= found if wrong else findings == (uneven,)


def test_tiago_velocity_lags_and_efforts_are_no_torques(data: Path) -> None:
    """Velocities 0.14 to 0.19 s late, dead channels, currents of either sign, and a torso without its weight."""
    place = data / "tiago-figaroh"
    whole = dynid.load_robot(place / "tiago_48_schunk.urdf")
    arm = ["torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))]
    robot = whole.locked({name: 0.0 for name in whole.coordinates if name not in arm})
    files = {"q": "position", "v": "velocity", "torque": "effort"}
    recording = dynid.load_recording({s: place / f"tiago_{x}.csv.gz" for s, x in files.items()}, robot)
    findings = dynid.check(robot, recording)
    lags = [f for f in findings if f.code == "velocity_delay"]
    assert [f.joint for f in lags] == arm
    assert all(0.13 < float(f.how_much.split()[0]) < 0.2 for f in lags)
    assert joints(findings, "torque_zero", "warning") == ["arm_5_joint", "arm_6_joint", "arm_7_joint"]
    assert joints(findings, "torque_sign", "error") == ["arm_3_joint", "arm_4_joint"]
    assert joints(findings, "torque_gravity_compensated", "warning") == ["torso_lift_joint"]
    assert "arm_2_joint" in joints(findings, "torque_too_small", "warning")


def test_kinova_torques_are_told_from_measured_ones(data: Path) -> None:
    """`Torque` is computed; the sensor and the current are not."""
    robot = dynid.load_robot(data / "kinova-gen3-dynamapp" / "gen3.urdf", friction=FRICTION)
    assert joints(dynid.check(robot, kinova(data, robot, "Torque")), "torque_computed", "warning") == [""]
    for measured in ("TorqueSm", "TorqueCur"):
        assert not joints(dynid.check(robot, kinova(data, robot, measured)), "torque_computed", "warning")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_lwr4_recordings_are_sound(data: Path, number: int) -> None:
    """Jitter aside, nothing is wrong with these: no false alarm on real data."""
    place = data / "kuka-lwr4-flobaroid"
    robot = dynid.load_robot(place / "kuka_lwr4.urdf", friction=FRICTION)
    columns = {"q": "positions", "v": "velocities", "torque": "torques"}
    recording = dynid.load_recording(place / f"measurements_{number}.npz", robot, columns=columns, time="times")
    assert not [f for f in dynid.check(robot, recording) if f.severity == "error"]
    assert not [f for f in dynid.check(robot, recording) if f.joint and f.severity == "warning"]
