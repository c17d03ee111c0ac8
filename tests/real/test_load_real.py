"""Real recordings of every robot, loaded with what their descriptions call for, and one physical fact of each.

Tolerances are those of the data (quantised encoders, filtered velocities, unknown loads), not of the reader: a wrong
column, unit, sign or rate fails by far more.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Run, Signals
from dynid.errors import MissingArgument, MissingJoints
from dynid.robot import Transmission
from dynid.signals.settings import prepare
from tests.support.errors import expect_error

pytestmark = pytest.mark.real

Array = NDArray[np.float64]


def mismatch(run: Run, blocks: int = 100) -> Array:
    """How far the integral of v is from the way travelled, relative to that way, for every joint."""
    assert run.v is not None
    area = np.zeros_like(run.q)
    area[1:] = np.cumsum((run.v[1:] + run.v[:-1]) / 2 * np.diff(run.t)[:, None], axis=0)
    edges = np.linspace(0, len(run) - 1, blocks + 1).astype(int)
    way, integral = np.diff(run.q[edges], axis=0), np.diff(area[edges], axis=0)
    return np.asarray(np.linalg.norm(integral - way, axis=0) / np.linalg.norm(way, axis=0))


def likeness(ours: Array, theirs: Array) -> Array:
    """Correlation, joint by joint."""
    a, b = ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)
    return np.asarray(np.sum(a * b, axis=0) / np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0)))


UR_GAINS = [10.0, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232]
UR_COLUMNS = {"q": "1:7", "v": "7:13", "current": "13:19"}


def test_ur10e(data: Path) -> None:
    """Currents times published gains are the torques that carry the arm."""
    folder = data / "ur10e-mamedov"
    robot = dynid.load_robot(folder / "ur10e.urdf")
    rec = dynid.load_recording(
        folder / "identification/ur-20_02_10-30sec_12harm.csv.gz",
        robot,
        columns=UR_COLUMNS,
        time=0,
        gain=UR_GAINS,
        rows=(634, 3510),
    )
    (run,) = rec.runs
    assert run.q.shape == (2876, 6) and rec.joints == robot.coordinates
    assert 1 / np.mean(np.diff(run.t)) == pytest.approx(94, rel=0.02)
    assert mismatch(run).max() < 0.02
    assert run.torque is not None
    assert likeness(run.torque, dynid.dynamics.gravity_torque(robot, run.q))[1:3].min() > 0.9


@pytest.mark.parametrize(
    ("name", "line", "rows"),
    [("ur-19_09_27-11_32_02", 3, 1119), ("ur-20_02_19_15harm50secLoad", 3, 6096)],
)
def test_ur10e_with_garbage(data: Path, name: str, line: int, rows: int) -> None:
    """The garbage of the first rows and the short last line are named, or cut out; the rest is sound."""
    file = data / f"ur10e-mamedov/identification/{name}.csv.gz"
    with pytest.raises(dynid.DataError, match=f"{name}.csv.gz, line {line}, column '[12]': .* is not plausible"):
        dynid.load_recording(file, columns=UR_COLUMNS, time=0)
    (run,) = dynid.load_recording(file, columns=UR_COLUMNS, time=0, bad_rows="split").runs
    assert len(run) == rows and np.abs(run.q).max() < 2 * np.pi
    assert np.diff(run.t).min() > 0 and np.diff(run.t).max() < 0.05
    assert mismatch(run).max() < 0.05


def test_tx40(data: Path) -> None:
    """Motor angles and torques through the coupled wrist: the arm starts stretched upwards and stays in its limits."""
    folder = data / "staubli-tx40-figaroh"
    robot = dynid.load_robot("tx40")
    rec = dynid.load_recording(
        {"q": folder / "pos_read_data.csv.gz", "torque": folder / "curr_data.csv.gz"},
        robot,
        rate=5000,
        motor_side=True,
        offset={"q": [0, -np.pi / 2, np.pi / 2, 0, 0, 0]},
    )
    (run,) = rec.runs
    assert run.q.shape == (45000, 6) and run.t[-1] == pytest.approx(9.0, abs=1e-3)
    assert np.abs(run.q[0]).max() < 1e-3
    limits = list(robot.limits.values())
    assert np.all(run.q > [x.lower for x in limits]) and np.all(run.q < [x.upper for x in limits])
    # Friction pushes against the motion: over a run it takes power from every joint.
    speed = np.gradient(run.q, run.t, axis=0)
    assert run.torque is not None and np.all(np.mean(run.torque * speed, axis=0) > 0)


def test_kuka_lwr4(data: Path) -> None:
    """Three runs; the a-priori model explains joint 2 and 4 to about 7 %."""
    folder = data / "kuka-lwr4-flobaroid"
    robot = dynid.load_robot(folder / "kuka_lwr4.urdf")
    rec = dynid.load_recording([folder / f"measurements_{k}.npz" for k in (1, 2, 3)], robot)
    assert [run.q.shape for run in rec.runs] == [(5027, 7)] * 3
    for run in rec.runs:
        assert run.t[0] == 0 and 1 / run.step == pytest.approx(200, rel=0.01)
        assert mismatch(run).max() < 0.05
        assert run.v is not None and run.a is not None and run.torque is not None
        error = dynid.inverse_dynamics(robot, run.q, run.v, run.a) - run.torque
        assert (np.linalg.norm(error, axis=0) / np.linalg.norm(run.torque, axis=0))[[1, 3]].max() < 0.15


def test_kuka_med7_has_the_other_sign(data: Path) -> None:
    """With the sign turned the URDF explains joint 2; the file has no clock and runs at 100 Hz."""
    folder = data / "kuka-lbr-med7"
    robot = dynid.load_robot(folder / "med7dock.urdf")
    rec = dynid.load_recording(folder / "measurements_with_ext_tau_1_dgr.csv.xz", robot, rate=100, sign={"torque": -1})
    (run,) = rec.runs
    assert run.q.shape == (10007, 7) and run.torque is not None
    error = dynid.dynamics.gravity_torque(robot, run.q) - run.torque
    assert np.linalg.norm(error[:, 1]) / np.linalg.norm(run.torque[:, 1]) < 0.2


def test_kuka_med7_joint_states_go_by_number(data: Path) -> None:
    """Columns lbr_joint_1, 2, 3, 0, 4, 5, 6 in three files: velocities fit positions only in the right order."""
    folder = data / "kuka-lbr-med7"
    robot = dynid.load_robot(folder / "med7dock.urdf")
    files = {"q": "positions", "v": "velocities", "torque": "efforts"}
    source = {s: folder / f"joint_states_{name}.csv.xz" for s, name in files.items()}
    (run,) = dynid.load_recording(source, robot, sign={"torque": -1}).runs
    assert run.q.shape == (12048, 7) and 1 / run.step == pytest.approx(400, rel=0.01) and run.t[0] == 0
    assert mismatch(run).max() < 0.05
    assert run.torque is not None
    error = dynid.dynamics.gravity_torque(robot, run.q) - run.torque
    assert np.linalg.norm(error[:, 1]) / np.linalg.norm(run.torque[:, 1]) < 0.3


def test_kinova(data: Path) -> None:
    """The clock counts samples, which is noticed; torques of three kinds are a question."""
    folder = data / "kinova-gen3-dynamapp"
    robot = dynid.load_robot(folder / "gen3.urdf")
    file = folder / "opti_traj_testing1.csv.gz"
    columns = {"q": "Position{i}", "v": "Velocity{i}", "torque": "TorqueSm{i}", "current": "Cur{i}"}
    with expect_error(MissingArgument, "columns"):
        dynid.load_recording(file, robot)
    with expect_error(MissingArgument, "units"):
        dynid.load_recording(file, robot, columns=columns)
    (run,) = dynid.load_recording(file, robot, columns=columns, time=None, rate=1000).runs
    assert run.q.shape == (4741, 7) and mismatch(run).max() < 0.1
    assert run.torque is not None
    assert likeness(run.torque, dynid.dynamics.gravity_torque(robot, run.q))[[1, 3]].min() > 0.95
    single = [folder / f"joint_{k}_trapez.csv.gz" for k in range(1, 8)]
    assert len(dynid.load_recording(single, robot, columns=columns, time=None, rate=1000).runs) == 7


def test_rokae(data: Path) -> None:
    """Four files without header; sensor and motor torque of the same run."""
    folder = data / "rokae-xmate3pro"
    robot = dynid.load_robot(folder / "xmate3pro_kinematics.urdf")
    source = {"q": "ang", "v": "vel", "torque": "torque"}
    files = {s: folder / f"excit_{name}_record.txt.gz" for s, name in source.items()}
    (run,) = dynid.load_recording(files, robot, rate=1000).runs
    assert run.q.shape == (20000, 7) and mismatch(run).max() < 0.02
    motor = robot.with_transmission(Transmission(robot.coordinates, np.eye(7), np.full(7, 100.0)))
    files["torque"] = folder / "excit_motor_record.txt.gz"
    (other,) = dynid.load_recording(files, motor, rate=1000, motor_side={"torque"}).runs
    assert run.torque is not None and other.torque is not None
    # Gravity dominates joint 2, so both sources tell the same story there.
    assert likeness(other.torque, run.torque)[1] > 0.9


def test_kr300(data: Path) -> None:
    """Degrees from the start pose, motor torques times gear ratios."""
    folder = data / "kuka-kr300-weigand"
    robot = dynid.load_robot(folder / "kr300_cad.urdf")
    rec = dynid.load_recording(
        [folder / f"recording_{x}.csv.gz" for x in "ABC"],
        robot,
        columns={"q": "pos_mot_deg_{i}", "v": "vel_mot_deg_s_{i}", "torque": "torque_abs_nm_{i}"},
        units={"q": "deg", "v": "deg/s"},
        scale={"torque": [1798 / 7, 1872 / 7, 757 / 3, 221, 5032 / 21, 206793 / 1340]},
        offset={"q": np.radians([0, -90, 90, 0, 0, 0]).tolist()},
    )
    assert [run.q.shape for run in rec.runs] == [(2501, 6)] * 3
    for run in rec.runs:
        assert 1 / run.step == pytest.approx(250, rel=1e-6)
        np.testing.assert_allclose(np.degrees(run.q[0]), [0, -90, 90, 0, 0, 0], atol=0.2)
        assert mismatch(run).max() < 0.05
        # Axis 3 carries what the authors say it does at the start; friction takes power from every axis.
        assert run.torque is not None and run.v is not None
        assert run.torque[:, 2].mean() == pytest.approx(-2630, rel=0.2)
        assert np.all(np.mean(run.torque * run.v, axis=0) > 0)


TIAGO = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))


def test_tiago(data: Path) -> None:
    """A lift and seven joints of 24; the velocities lag the positions by about 18 samples."""
    folder = data / "tiago-figaroh"
    whole = dynid.load_robot(folder / "tiago_48_schunk.urdf")
    robot = whole.locked({name: 0.0 for name in whole.coordinates if name not in TIAGO})
    assert robot.coordinates == TIAGO
    mass = sum(link.inertia[0] for link in whole.links)
    assert sum(link.inertia[0] for link in robot.links) == pytest.approx(mass, rel=1e-12)
    files = {"q": "position", "v": "velocity", "torque": "effort"}
    source = {s: folder / f"tiago_{name}.csv.gz" for s, name in files.items()}
    factors = [1.0, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]
    rec = dynid.load_recording(source, robot, scale={"torque": factors}, rows=(920, 6791))
    (run,) = rec.runs
    assert run.q.shape == (5871, 8) and 1 / run.step == pytest.approx(100, rel=0.01)
    assert run.v is not None
    rate = np.gradient(run.q, run.t, axis=0)
    lags = np.arange(0, 40)
    fits = [likeness(run.v[40:], rate[40 - k : len(rate) - k]).mean() for k in lags]
    assert 12 <= lags[int(np.argmax(fits))] <= 24


def test_tiago_of_all_joints_is_refused(data: Path) -> None:
    """The whole robot has wheels that the files know nothing of."""
    folder = data / "tiago-figaroh"
    whole = dynid.load_robot(folder / "tiago_48_schunk.urdf")
    with expect_error(MissingJoints, "lock"):
        dynid.load_recording({"q": folder / "tiago_position.csv.gz"}, whole)


def test_wam(data: Path) -> None:
    """Joints 2 and 4 of seven in JSON records; the others are held."""
    whole = dynid.load_robot("wam7")
    robot = whole.locked({f"joint{k}": 0.0 for k in (1, 3, 5, 6, 7)})
    rec = dynid.load_recording(data / "barrett-wam-2dof/state_4.json.gz", robot, joints=[1, 3])
    (run,) = rec.runs
    assert rec.joints == ("joint2", "joint4") and run.q.shape == (2501, 2)
    assert run.t[0] == 0 and 1 / run.step == pytest.approx(250, rel=0.001)
    assert mismatch(run).max() < 0.05
    np.testing.assert_allclose([*run.q.min(axis=0), *run.q.max(axis=0)], [-1.29, -0.44, 0.94, 0.58], atol=0.01)
    # Mostly gravity: the arm of joint 2 is heavier to lift the further it leans.
    assert run.torque is not None
    assert abs(likeness(run.torque, dynid.dynamics.gravity_torque(robot, run.q))[0]) > 0.8


def test_double_pendulum(data: Path) -> None:
    """All 28 runs by their names alone: pos_meas, vel_meas and tau_meas among filtered and planned columns."""
    files = sorted((data / "double-pendulum-dfki").glob("*/*.csv.xz"))
    rec = dynid.load_recording(files)
    assert len(rec.runs) == 28 and rec.joints == ("joint1", "joint2")
    assert {run.q.shape[1] for run in rec.runs} == {2} and all(2900 < len(run) <= 5000 for run in rec.runs)
    assert np.median([1 / run.step for run in rec.runs]) == pytest.approx(500, rel=0.01)
    for run in rec.runs:
        moving = np.ptp(run.q, axis=0) > 0.1  # one run holds the second link
        assert mismatch(run)[moving].max() < 0.05


@pytest.mark.parametrize("arm", ["psm/one_results", "mtm/two_results"])
def test_dvrk(data: Path, arm: str) -> None:
    """Twenty-one columns without header at 200 Hz."""
    columns = {"q": "0:7", "v": "7:14", "torque": "14:21"}
    (run,) = dynid.load_recording(data / f"dvrk-wpi/{arm}.csv.xz", columns=columns, rate=200).runs
    assert run.q.shape == (5999, 7) and run.t[-1] == pytest.approx(5998 / 200)
    assert mismatch(run).max() < 0.25


def test_small_rigs(data: Path) -> None:
    """A pendulum with commas, a two-link arm with blanks."""
    folder = data / "pendulum-twolink-lvjonok"
    (run,) = dynid.load_recording(
        folder / "harmonic_input_1.csv.gz", columns={"q": 1, "v": 2, "torque": 3}, time=0
    ).runs
    assert run.q.shape == (5000, 1) and 1 / run.step == pytest.approx(500, rel=0.01) and mismatch(run).max() < 0.05
    columns = {"q": [1, 3], "v": [2, 4], "current": [5, 6]}
    (run,) = dynid.load_recording(folder / "two_link_observer_05_norm.csv.gz", columns=columns, time=0).runs
    assert run.q.shape[1] == 2 and 1 / run.step == pytest.approx(100, rel=0.01) and mismatch(run).max() < 0.05


def test_servo_pendulum(data: Path) -> None:
    """Records inside an object; unsigned load and a flag torque_enable, neither of which is a torque."""
    folder = data / "servo-pendulum-bam"
    rec = dynid.load_recording(sorted((folder / "xl330_raw").glob("*.json.gz")))
    assert len(rec.runs) == 16 and all(run.torque is None for run in rec.runs)
    for run in rec.runs:
        assert 0.0035 < run.step < 0.006
    # Speeds are coarse and late by a few samples.
    assert max(mismatch(run).max() for run in rec.runs) < 0.5
    (slow,) = dynid.load_recording(sorted((folder / "feetech_raw").glob("*.json.gz"))[0]).runs
    assert 0.015 < slow.step < 0.025


def test_human_on_a_force_plate(data: Path) -> None:
    """Floating base, 36 joints and the wrench; the mean force carries the weight of 94.4 kg."""
    folder = data / "human-forceplate-figaroh"
    robot = dynid.load_robot(folder / "human.urdf", base="floating")
    columns = {"base": "0:7", "q": "7:43", "wrench": ["Fx", "Fy", "Fz", "Mx", "My", "Mz"]}
    (run,) = dynid.load_recording(folder / "q_and_wrench_30Hz.csv.gz", robot, columns=columns, rate=30).runs
    assert run.q.shape == (2692, 36) and run.base is not None and run.wrench is not None
    np.testing.assert_allclose(np.linalg.norm(run.base[:, 3:], axis=1), 1.0, atol=1e-6)
    assert run.wrench[:, 2].mean() == pytest.approx(94.4 * 9.81, rel=0.001)


def test_sarcos(data: Path) -> None:
    """One MATLAB array of 28 columns, taken apart by ranges; about every eleventh row of a log at 100 Hz, in order."""
    starts = {"q": 0, "v": 7, "a": 14, "torque": 21}
    columns = {s: f"sarcos_inv_test[{k}:{k + 7}]" for s, k in starts.items()}
    file = data / "sarcos-arm-test/sarcos_inv_test.mat"
    (run,) = dynid.load_recording(file, columns=columns, rate=100 / 11).runs
    assert run.q.shape == (4449, 7) and run.torque is not None and run.a is not None and run.v is not None
    steps, mean = np.diff(run.q, axis=0), (run.v[1:] + run.v[:-1]) / 2
    np.testing.assert_allclose(np.sum(steps * mean, axis=0) / np.sum(mean * mean, axis=0), 0.11, rtol=0.1)
    # No derivative of every eleventh row is of use; the recorded ones pass as they are.
    ready = Signals(cutoff=None, decimate=(), trim=0.0, measured_velocity=True, measured_acceleration=True)
    motion = prepare(run, ready)
    assert np.array_equal(motion.v, run.v) and np.array_equal(motion.a, run.a) and np.all(motion.q_noise == 0)
