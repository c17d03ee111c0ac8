"""Motion of the base and named wrenches: mended quaternions, matrices, inertial units, feet, and columns of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dynid
import dynid.recording
from dynid import DataError, Recording, Run
from dynid.errors import ConflictingArguments, InvalidShape, InvalidValue, ModelError, UnknownName
from dynid.recording import WrenchSensor
from dynid.robot.spatial import placement
from tests.support.errors import expect_error
from tests.support.humanoids import dance, humanoid


def poses(samples: int = 200) -> np.ndarray:
    t = np.linspace(0, 6, samples)
    turn = Rotation.from_euler("ZYX", np.column_stack([2 * t, np.sin(t), 0.5 * np.cos(t)]))
    return np.hstack([np.column_stack([t, t**2, -t]), turn.as_quat()])


def test_quaternions_are_mended() -> None:
    """Any length and either sign: the same rotations, of unit length, without jumps."""
    rng = np.random.default_rng(0)
    pose = poses()
    broken = pose.copy()
    broken[:, 3:] *= rng.uniform(0.5, 20, (200, 1)) * rng.choice([-1, 1], (200, 1))
    t, q = np.arange(200) / 100, np.zeros((200, 1))
    run = Run(t, q, base=broken)
    assert run.base is not None
    assert np.abs(np.linalg.norm(run.base[:, 3:], axis=1) - 1).max() < 1e-15
    assert np.abs(np.diff(run.base[:, 3:], axis=0)).max() < 0.1
    same = Rotation.from_quat(run.base[:, 3:]).inv() * Rotation.from_quat(pose[:, 3:])
    assert same.magnitude().max() < 1e-7
    np.testing.assert_array_equal(Run(t, q, base=run.base).base, run.base)
    broken[17, 3:] = 0.0
    with expect_error(InvalidValue, "base"):
        Run(t, q, base=broken)


def test_wrenches_are_checked_and_cut_with_the_run() -> None:
    t, q, w = np.arange(10) / 100, np.zeros((10, 1)), np.arange(60.0).reshape(10, 6)
    run = Run(t, q, wrenches={"foot": w, "plate": w + 1}, sensors={"plate": WrenchSensor("world", "world")})
    assert run.sensors["foot"].frame == "foot" and run.sensors["plate"].frame == "world"
    part = run.rows(2, 6)
    np.testing.assert_array_equal(part.wrenches["plate"], w[2:6] + 1)
    assert part.sensors["plate"].axes == "world"
    with expect_error(InvalidShape):
        Run(t, q, wrenches={"foot": w[:, :5]})
    with expect_error(UnknownName, "sensors"):
        Run(t, q, sensors={"hand": WrenchSensor("hand")})
    with expect_error(UnknownName, "axes"):
        WrenchSensor("world", "plate")  # type: ignore[arg-type]
    with expect_error(DataError):
        WrenchSensor("world", placement=2 * np.eye(4))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_named_wrenches_survive_a_file(tmp_path: Path, ending: str) -> None:
    robot = humanoid(0, limbs="L")
    rng = np.random.default_rng(0)
    values = {"footL": rng.normal(size=(30, 6)), "plate 1": rng.normal(size=(30, 6))}
    sensors = {"plate 1": WrenchSensor("world", placement=placement(None, [1, 2, 3]))}
    run = Run(np.arange(30) / 50, rng.normal(size=(30, 6)), base=poses(30), wrenches=values, sensors=sensors)
    recording = Recording(robot.coordinates, (run, run))
    file = tmp_path / f"run{ending}"
    (recording.to_parquet if ending == ".parquet" else recording.to_csv)(file)
    back = dynid.load_recording(file, robot, sensors=sensors)
    assert len(back.runs) == 2
    for name, wrench in values.items():
        np.testing.assert_array_equal(back.runs[1].wrenches[name], wrench)
    np.testing.assert_array_equal(back.runs[0].base, run.base)
    assert back.runs[0].sensors["plate 1"] is sensors["plate 1"]
    with expect_error(UnknownName, "sensors"):
        dynid.load_recording(file, robot, sensors={"hand": WrenchSensor("world")})


def test_columns_by_list_pattern_and_own_file(tmp_path: Path) -> None:
    """A plate by pattern, a foot by list with its sign turned, a hand in a file of its own."""
    robot = humanoid(0, limbs="L")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 6 + 7 + 12))
    rows[:, 6:13] = poses(40)
    names = [f"q{k}" for k in range(6)] + [f"pelvis {x}" for x in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    names += [f"plate.{x}" for x in ("fx", "fy", "fz", "mx", "my", "mz")] + [f"c{k}" for k in range(6)]
    file = tmp_path / "run.csv"
    np.savetxt(file, rows, "%.17g", ",", header=",".join(names), comments="")
    columns = {"q": "q{k}", "base": "pelvis {part}", "wrench:plate": "plate.{part}", "wrench:footL": "19:25"}
    given = {"sensors": {"plate": WrenchSensor("world")}, "rate": 50}
    run = dynid.load_recording(file, robot, columns=columns, sign={"wrench:footL": -1}, **given).runs[0]  # type: ignore[arg-type]
    np.testing.assert_array_equal(run.wrenches["plate"], rows[:, 13:19])
    np.testing.assert_array_equal(run.wrenches["footL"], -rows[:, 19:])
    np.testing.assert_allclose(run.base, rows[:, 6:13], atol=1e-15)
    hand = tmp_path / "hand.csv"
    order = [5, 4, 3, 2, 1, 0]
    np.savetxt(hand, rows[:, 19:][:, order], "%.17g", ",", header="mz,my,mx,fz,fy,fx", comments="")
    both = dynid.load_recording({"q": file, "wrench:hand": hand}, robot, columns={"q": "q{k}"}, rate=50).runs[0]
    np.testing.assert_array_equal(both.wrenches["hand"], rows[:, 19:])
    with expect_error(InvalidValue, "columns"):
        dynid.load_recording(file, robot, columns=columns | {"wrench:plate": "plate.{joint}"}, **given)  # type: ignore[arg-type]
    with expect_error(InvalidValue):
        dynid.load_recording(file, robot, columns={"q": "q{k}", "wrench:": "plate.{part}"}, rate=50)


def test_matrices_become_poses() -> None:
    pose = poses()
    turns = Rotation.from_quat(pose[:, 3:]).as_matrix()
    found = dynid.recording.base_from_matrices(turns, pose[:, :3])
    np.testing.assert_allclose(found.pose, pose * np.sign(found.pose[0, 6] * pose[0, 6]) ** np.r_[0, 0, 0, 1, 1, 1, 1])
    h = np.tile(np.eye(4), (200, 1, 1))
    h[:, :3, :3], h[:, :3, 3] = np.round(turns, 3), pose[:, :3]
    rounded = dynid.recording.base_from_matrices(h)
    off = Rotation.from_quat(rounded.pose[:, 3:]).inv() * Rotation.from_quat(pose[:, 3:])
    assert off.magnitude().max() < 2e-3 and rounded.twist is None
    h[5, :3, 0] *= -1
    with expect_error(InvalidValue, "matrices"):
        dynid.recording.base_from_matrices(h)
    with expect_error(ConflictingArguments, "positions"):
        dynid.recording.base_from_matrices(h, pose[:, :3])
    with expect_error(InvalidShape, "matrices"):
        dynid.recording.base_from_matrices(pose)


def test_an_inertial_unit_gives_all_that_the_wrench_needs() -> None:
    """Gyroscope and accelerometer anywhere on the base: the same torques and wrench as from the true motion."""
    robot = humanoid(0, limbs="LA")
    motion = dance(robot, samples=6000, turns=2)
    rng = np.random.default_rng(2)
    mount = placement(Rotation.from_rotvec(rng.normal(size=3)).as_matrix(), rng.uniform(-0.2, 0.2, 3))
    turn = Rotation.from_quat(motion.q[:, 3:7])
    w, dw = motion.v[:, 3:6], motion.a[:, 3:6]
    classical = motion.a[:, :3] + np.cross(w, motion.v[:, :3]) - turn.inv().apply(np.array(robot.gravity))
    at = classical + np.cross(dw, mount[:3, 3]) + np.cross(w, np.cross(w, mount[:3, 3]))
    gyroscope, accelerometer = w @ mount[:3, :3], at @ mount[:3, :3]
    found = dynid.recording.base_from_imu(
        motion.t, gyroscope, accelerometer, start=3 * motion.q[0, 3:7], gravity=robot.gravity, placement=mount
    )
    assert found.twist is not None and found.acceleration is not None
    # Rates are straight lines between samples: off by h^2 / 12 times the change of their slope, about 30 rad/s2.
    assert (turn.inv() * Rotation.from_quat(found.pose[:, 3:])).magnitude().max() < 5e-6
    q = np.hstack([found.pose, motion.q[:, 7:]])
    v = np.hstack([found.twist, motion.v[:, 6:]])
    a = np.hstack([found.acceleration, motion.a[:, 6:]])
    truth = dynid.inverse_dynamics(robot, motion.q, motion.v, motion.a)
    error = dynid.inverse_dynamics(robot, q, v, a) - truth
    # Angular acceleration is the rate's central difference, off by h^2 / 6 times its second derivative.
    assert np.abs(error[5:-5]).max() < 1e-4 * np.abs(truth).max()
    run = found.on(Run(motion.t, motion.q[:, 7:]))
    assert run.base_v is not None and run.base_a is not None
    assert dynid.recording.base_from_imu(motion.t, gyroscope).acceleration is None
    with expect_error(DataError):
        dynid.recording.base_from_imu(motion.t, gyroscope[:-1])
    with expect_error(InvalidValue, "base"):
        dynid.recording.base_from_imu(motion.t, gyroscope, start=(0, 0, 0, 0))
    with expect_error(InvalidValue):
        dynid.recording.base_from_imu(motion.t[::-1], gyroscope)


def test_a_standing_foot_gives_the_base() -> None:
    """One foot all the time, and feet that take turns: the chain back to the base."""
    robot = humanoid(3)
    motion = dance(robot)
    foot = dynid.dynamics.frame_placement(robot.with_base("fixed"), motion.q[:, 7:], "footL")
    where = placement(Rotation.from_rotvec([0, 0, 0.4]).as_matrix(), [1.0, 2.0, 0.0])
    found = dynid.recording.base_from_foot(robot, motion.q[:, 7:], "footL", placement=where)
    q = np.hstack([found.pose, motion.q[:, 7:]])
    np.testing.assert_allclose(
        dynid.dynamics.frame_placement(robot, q, "footL"), np.broadcast_to(where, foot.shape), atol=1e-12
    )
    stance = ["footL"] * 250 + ["footR"] * 350
    walked = dynid.recording.base_from_foot(robot, motion.q[:, 7:], stance, placement=where)
    q = np.hstack([walked.pose, motion.q[:, 7:]])
    right = dynid.dynamics.frame_placement(robot, q, "footR")
    np.testing.assert_allclose(right[249:], np.broadcast_to(right[249], right[249:].shape), atol=1e-12)
    np.testing.assert_allclose(walked.pose[:250], found.pose[:250])
    with expect_error(InvalidShape, "foot"):
        dynid.recording.base_from_foot(robot, motion.q[:, 7:], ["footL"] * 3)
    with expect_error(ModelError, "name", code="unknown_name"):
        dynid.recording.base_from_foot(robot, motion.q[:, 7:], "toe")
    with expect_error(InvalidShape):
        dynid.recording.base_from_foot(robot, motion.q, "footL")
