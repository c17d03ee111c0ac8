"""ROS 1 and ROS 2 bags and MCAP files, written by their own libraries: joints go by name, times by header stamps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import (
    DamagedFile,
    MissingArgument,
    MissingData,
    MissingFile,
    MissingJoints,
    UnknownName,
    Unsupported,
    WrongFormat,
)
from tests.support.errors import expect_error
from tests.support.log_files import Array, motion, refused, robot, same

pytestmark = pytest.mark.usefixtures("readers_here")

rosbags = pytest.importorskip("rosbags.typesys")
rosbag1 = pytest.importorskip("rosbags.rosbag1")
rosbag2 = pytest.importorskip("rosbags.rosbag2")
mcap_writer = pytest.importorskip("mcap.writer")

RUN = motion(samples=40)
NAMES = ("a1", "a2", "a3")
ROBOT = robot(*NAMES)
START = 1_700_000_000_123_456_789
KIND = "sensor_msgs/msg/JointState"
ROS1, ROS2 = (rosbags.get_typestore(x) for x in (rosbags.Stores.ROS1_NOETIC, rosbags.Stores.ROS2_HUMBLE))


class Sample:
    """One joint state: names in any order, stamp and log time in ns."""

    def __init__(self, k: int, order: Sequence[int] = (2, 0, 1), names: Sequence[str] = NAMES) -> None:
        assert RUN.v is not None and RUN.torque is not None
        pick = list(order)
        self.stamp = START + round(RUN.t[k] * 1e9)
        self.logged = self.stamp + 2_000_000
        self.names = [names[j] for j in pick]
        self.position, self.velocity, self.effort = RUN.q[k, pick], RUN.v[k, pick], RUN.torque[k, pick]

    def message(self, store: Any, stamped: bool = True) -> Any:
        types = store.types
        seconds, rest = divmod(self.stamp if stamped else 0, 10**9)
        stamp = types["builtin_interfaces/msg/Time"](seconds, rest)
        head = types["std_msgs/msg/Header"]
        header = head(0, stamp, "") if store is ROS1 else head(stamp, "")
        return types[KIND](header, self.names, self.position, self.velocity, self.effort)


# The order of the joints changes in the middle of the run.
SAMPLES = [Sample(k, (2, 0, 1) if k < 20 else (1, 2, 0)) for k in range(len(RUN))]


def ros1(path: Path, samples: Sequence[Sample] = SAMPLES, topics: Sequence[str] = ("/joint_states",)) -> Path:
    with rosbag1.Writer(path) as writer:
        for topic in topics:
            connection = writer.add_connection(topic, KIND, typestore=ROS1)
            for sample in samples:
                writer.write(connection, sample.logged, ROS1.serialize_ros1(sample.message(ROS1), KIND))
    return path


def ros2(path: Path, samples: Sequence[Sample] = SAMPLES, plugin: str = "SQLITE3", stamped: bool = True) -> Path:
    storage = rosbag2.StoragePlugin[plugin]
    with rosbag2.Writer(path, version=9, storage_plugin=storage) as writer:
        connection = writer.add_connection("/joint_states", KIND, typestore=ROS2)
        text = writer.add_connection("/rosout", "std_msgs/msg/String", typestore=ROS2)
        note = ROS2.types["std_msgs/msg/String"]("start")
        writer.write(text, START, ROS2.serialize_cdr(note, "std_msgs/msg/String"))
        for sample in samples:
            writer.write(connection, sample.logged, ROS2.serialize_cdr(sample.message(ROS2, stamped), KIND))
    return path


def mcap_json(path: Path, rows: Sequence[tuple[int, dict[str, Any]]], topic: str = "/joints") -> Path:
    with path.open("wb") as stream:
        writer = mcap_writer.Writer(stream)
        writer.start()
        schema = writer.register_schema("JointState", "jsonschema", b'{"type": "object"}')
        channel = writer.register_channel(topic, "json", schema)
        for logged, row in rows:
            writer.add_message(channel, logged, json.dumps(row).encode(), logged)
        writer.finish()
    return path


def json_rows() -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for x in SAMPLES:
        stamp = {"sec": x.stamp // 10**9, "nsec": x.stamp % 10**9}
        values = {k: getattr(x, k).tolist() for k in ("position", "velocity", "effort")}
        rows.append((x.logged, {"header": {"stamp": stamp}, "name": x.names, **values}))
    return rows


def mcap_ros1(path: Path) -> Path:
    with path.open("wb") as stream:
        writer = mcap_writer.Writer(stream)
        writer.start(profile="ros1")
        definition = ROS1.generate_msgdef(KIND)[0].encode()
        schema = writer.register_schema("sensor_msgs/JointState", "ros1msg", definition)
        channel = writer.register_channel("/joint_states", "ros1", schema)
        for x in SAMPLES:
            raw = bytes(ROS1.serialize_ros1(x.message(ROS1), KIND))
            writer.add_message(channel, x.logged, raw, x.logged)
        writer.finish()
    return path


def single(path: Path, plugin: str) -> Path:
    """The only data file of a ROS 2 bag, without the folder around it."""
    (found,) = [p for p in ros2(path, plugin=plugin).iterdir() if p.suffix in (".db3", ".mcap")]
    return found


MAKERS = {
    "ros 1": lambda folder: ros1(folder / "run.bag"),
    "ros 2 folder": lambda folder: ros2(folder / "bag"),
    "ros 2 mcap folder": lambda folder: ros2(folder / "bag", plugin="MCAP"),
    "db3": lambda folder: single(folder / "bag", "SQLITE3"),
    "mcap ros 2": lambda folder: single(folder / "bag", "MCAP"),
    "mcap ros 1": lambda folder: mcap_ros1(folder / "run.mcap"),
    "mcap json": lambda folder: mcap_json(folder / "run.mcap", json_rows()),
}


@pytest.mark.parametrize("format", MAKERS)
def test_joints_go_by_name_and_times_by_stamp(tmp_path: Path, format: str) -> None:
    """The order of joints in the messages is arbitrary and changes in the middle; stamps are exact to the ns."""
    loaded = dynid.load_recording(MAKERS[format](tmp_path), ROBOT)
    assert same(loaded.runs[0], RUN)
    turned = dynid.load_recording(MAKERS[format](_fresh(tmp_path)), joints=["a2", "a3", "a1"]).runs[0]
    assert np.array_equal(turned.q, RUN.q[:, [1, 2, 0]])


def _fresh(folder: Path) -> Path:
    out = folder / "again"
    out.mkdir()
    return out


def test_without_a_robot_the_messages_name_the_joints(tmp_path: Path) -> None:
    loaded = dynid.load_recording(ros1(tmp_path / "run.bag"))
    assert loaded.joints == ("a3", "a1", "a2") and np.array_equal(loaded.runs[0].q, RUN.q[:, [2, 0, 1]])


def test_messages_of_other_nodes_on_the_topic_are_left_out(tmp_path: Path) -> None:
    """A gripper publishes on the same topic; without a robot this is an error."""
    gripper = ("finger1", "finger2", "finger3")
    mixed = [Sample(k // 2, names=NAMES if k % 2 else gripper) for k in range(2 * len(RUN))]
    file = ros1(tmp_path / "run.bag", mixed)
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)
    with expect_error(MissingArgument, "joints"):
        dynid.load_recording(file)


def test_log_times_stand_in_for_missing_stamps(tmp_path: Path) -> None:
    """All stamps zero, as drivers without a clock leave them."""
    loaded = dynid.load_recording(ros2(tmp_path / "bag", stamped=False), ROBOT)
    assert same(loaded.runs[0], RUN)


def test_topic_is_chosen_or_an_error(tmp_path: Path) -> None:
    """A single topic of joint states is read; several, or an unknown one, are an error."""
    file = ros1(tmp_path / "run.bag", topics=("/left/joint_states", "/right/joint_states"))
    with expect_error(MissingArgument, "topic"):
        dynid.load_recording(file, ROBOT)
    with expect_error(UnknownName, "topic"):
        dynid.load_recording(file, ROBOT, topic="/joint_states")
    assert same(dynid.load_recording(file, ROBOT, topic="/right/joint_states").runs[0], RUN)


def test_empty_effort_is_no_signal(tmp_path: Path) -> None:
    """Joint states may leave velocity or effort empty."""
    rows = [(t, row | {"effort": [], "velocity": []}) for t, row in json_rows()]
    run = dynid.load_recording(mcap_json(tmp_path / "run.mcap", rows), ROBOT).runs[0]
    assert run.torque is None and run.v is None and np.array_equal(run.q, RUN.q)


def test_messages_without_names_are_arrays(tmp_path: Path) -> None:
    """A driver's own message: fixed order, nested fields, several topics that are not joint states."""
    rows = []
    for x, q, tau in zip(SAMPLES, RUN.q, RUN.torque, strict=True):
        rows.append((x.stamp, {"arm": {"measured_position": q.tolist(), "torque_sensor": tau.tolist()}}))
    file = mcap_json(tmp_path / "run.mcap", rows, "/lbr/state")
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN, "q", "torque")
    columns = {"q": "arm.measured_position", "torque": "arm.torque_sensor"}
    assert same(dynid.load_recording(file, ROBOT, columns=columns).runs[0], RUN, "q", "torque")


def test_joint_that_no_message_names_is_an_error(tmp_path: Path) -> None:
    with expect_error(MissingJoints, "lock"):
        dynid.load_recording(ros1(tmp_path / "run.bag"), robot("a1", "a2", "a4"))


@pytest.mark.parametrize("format", [f for f in MAKERS if "folder" not in f])
def test_bags_that_are_cut_off_are_refused(tmp_path: Path, format: str) -> None:
    """A disk that was full, a cable that was pulled: half of the file is missing."""
    file = MAKERS[format](tmp_path)
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2])
    with refused(f"{file.name} is not a bag, damaged or cut off"):
        dynid.load_recording(file, ROBOT)


def test_folders_that_are_not_bags_are_refused(tmp_path: Path) -> None:
    with expect_error(WrongFormat):
        dynid.load_recording(_fresh(tmp_path), ROBOT)
    bag = ros2(tmp_path / "bag")
    for file in bag.glob("*.db3"):
        file.unlink()
    with expect_error(DamagedFile):
        dynid.load_recording(bag, ROBOT)
    shutil.rmtree(bag)
    with expect_error(MissingFile):
        dynid.load_recording(tmp_path / "gone.bag", ROBOT)


def test_bag_without_messages_is_refused(tmp_path: Path) -> None:
    with expect_error(MissingData, "topic"):
        dynid.load_recording(ros1(tmp_path / "run.bag", samples=()), ROBOT)


def test_unsupported_encodings_are_an_error(tmp_path: Path) -> None:
    with (tmp_path / "run.mcap").open("wb") as stream:
        writer = mcap_writer.Writer(stream)
        writer.start()
        schema = writer.register_schema("Pose", "protobuf", b"")
        channel = writer.register_channel("/pose", "protobuf", schema)
        writer.add_message(channel, 0, b"", 0)
        writer.finish()
    with expect_error(Unsupported):
        dynid.load_recording(tmp_path / "run.mcap", ROBOT)


def test_jitter_of_stamps_is_kept(tmp_path: Path) -> None:
    """Uneven stamps come out uneven: nothing is resampled on reading."""
    samples = [Sample(k) for k in range(len(RUN))]
    jitter: Array = np.random.default_rng(0).integers(-400_000, 400_000, len(samples)).astype(float)
    for sample, shift in zip(samples, jitter, strict=True):
        sample.stamp += int(shift)
    t = dynid.load_recording(ros1(tmp_path / "run.bag", samples), ROBOT).runs[0].t
    # Differences of integer nanoseconds; the rounding error of the division by 1e9 is 1e-17 s.
    assert np.abs(t - (RUN.t + (jitter - jitter[0]) / 1e9)).max() < 1e-12
