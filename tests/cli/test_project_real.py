"""dynid.toml on real logs: reading settings are given once to `dynid init`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dynid
from dynid.cli.main import app
from studies.reproduce import robot_cases
from studies.reproduce.robot_cases import Case

pytestmark = pytest.mark.real
LAW = "viscous+coulomb+offset"


def done(*words: object) -> Result:
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result


def identified() -> tuple[list[float], dict[str, float]]:
    """Base parameters and relative errors per joint of `dynid identify`, after `dynid check` has read the logs."""
    CliRunner().invoke(app, ["check"])
    page = json.loads(done("identify", "--method", "wls", "--json", "--report", "none").stdout)
    done("report")
    errors = {joint: figures["relative"] for joint, figures in page["validation"].items()}
    return [p["value"] for p in page["base_parameters"]], errors


def assert_same(ours: tuple[list[float], dict[str, float]], case: Case) -> None:
    """Equal to the Python functions with the same settings."""
    estimate = dynid.identify(case.robot, case.train, "wls")
    assert np.allclose(ours[0], estimate.beta, rtol=1e-9, atol=1e-12)
    assert case.test is not None
    assert np.allclose(list(ours[1].values()), estimate.validate(case.test).relative, rtol=1e-9)


@pytest.mark.slow
def test_ur10e(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No header, the clock in column 0, currents with drive gains, other rows of the validation log."""
    monkeypatch.chdir(tmp_path)
    folder = data / "ur10e-mamedov"
    columns = ("--columns", "q=1:7", "--columns", "v=7:13", "--columns", "current=13:19")
    done(
        *("init", folder / "ur10e.urdf", folder / "identification/ur-20_02_10-30sec_12harm.csv.gz"),
        *("--validate", folder / "validation/ur-20_01_17-ptp_10_points.csv.gz", "--time", "0", *columns),
        *("--gain", "10,10.6956,8.4566,9.0029,9.48,10.1232", "--rows", "634:3510", "--validate-rows", "699:4200"),
        *("--friction", LAW, "--rotor-inertia"),
    )
    assert_same(identified(), robot_cases.ur10e())


@pytest.mark.slow
def test_tiago_with_joints_locked(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file per signal; every joint but torso and arm is locked, the base wheels and the hand among them."""
    monkeypatch.chdir(tmp_path)
    folder = data / "tiago-figaroh"
    whole = dynid.load_robot(folder / "tiago_48_schunk.urdf", friction="none")
    case = robot_cases.tiago()
    locked = [name for name in whole.coordinates if name not in case.robot.coordinates]
    assert len(locked) == 15
    gains = [1.0, *[100 * 0.136] * 2, *[-100 * 0.087] * 2, *[-336 * 0.0613] * 3]
    logs = f"q={folder / 'tiago_position.csv.gz'},torque={folder / 'tiago_effort.csv.gz'}"
    done(
        *("init", folder / "tiago_48_schunk.urdf", logs, "--lock", ",".join(locked), "--time", "t"),
        *("--scale", "torque=" + ",".join(map(repr, gains)), "--rows", "921:4149", "--validate-rows", "4736:6791"),
        *("--friction", LAW, "--rotor-inertia"),
    )
    page = tomllib.loads(Path("dynid.toml").read_text())
    assert page["robot"]["lock"] == locked and set(page["runs"]["identify"][0]) == {"q", "torque"}
    assert_same(identified(), case)


@pytest.mark.slow
def test_a_ros2_bag(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joint states of a Med 7 in a bag: names of their own, torques of the other sign, one log divided."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    typesys = pytest.importorskip("rosbags.typesys")
    monkeypatch.chdir(tmp_path)
    folder = data / "kuka-lbr-med7"
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    import polars

    tables = {s: polars.read_csv(_unpacked(folder / f"joint_states_{s}.csv.xz")) for s in ("positions", "efforts")}
    names = [n for n in tables["positions"].columns if n.startswith("lbr")]
    clock = tables["positions"]["time"].to_numpy()
    q, tau = (np.ascontiguousarray(tables[s].select(names).to_numpy()) for s in ("positions", "efforts"))
    with rosbag2.Writer(tmp_path / "bag", version=9) as writer:
        topic = writer.add_connection("/lbr/joint_states", kind, typestore=store)
        for t, position, effort in zip(clock, q, tau, strict=True):
            seconds, rest = divmod(round(t * 1e9), 10**9)
            stamp = store.types["builtin_interfaces/msg/Time"](seconds, rest)
            head = store.types["std_msgs/msg/Header"](stamp, "")
            message = store.types[kind](head, names, position, np.zeros(0), effort)
            writer.write(topic, round(t * 1e9), store.serialize_cdr(message, kind))
    joints = ",".join(f"lbr_joint_{k}" for k in range(7))
    options = ("--joints", joints, "--sign", "torque=-1", "--topic", "/lbr/joint_states", "--friction", LAW)
    done("init", folder / "med7dock.urdf", "bag", *options)
    page = tomllib.loads(Path("dynid.toml").read_text())
    assert page["runs"] == {"identify": ["bag"], "validate_share": 0.25} and page["log"]["topic"] == "/lbr/joint_states"
    robot = dynid.load_robot(folder / "med7dock.urdf", friction=LAW)
    log = dynid.load_recording("bag", robot, joints=joints.split(","), sign={"torque": -1}, topic="/lbr/joint_states")
    assert_same(identified(), Case(robot, *log.split(0.25)))


def _unpacked(path: Path) -> bytes:
    import lzma

    return lzma.decompress(path.read_bytes())
