"""ROS 1 and ROS 2 bags and MCAP files; joints are identified by the names in every message."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.child import read_in_child
from dynid.errors import DamagedFile, DynidError, MissingArgument, MissingData, UnknownName, Unsupported, keyword
from dynid.recording.files import check_file, check_package, damage, optional_package
from dynid.recording.reader import Reader
from dynid.recording.records import columns_of, flat
from dynid.recording.table import Table, Unusable, shown

__all__ = ["MCAP", "ROSBAG", "extract", "read_mcap", "read_rosbag"]

logger = logging.getLogger("dynid")

# One message: its flat fields and the time (ns) at which it was logged.
Message = tuple[dict[str, Any], int]

_COLUMNS = "columns.npz"
_NAME_FIELDS = ("name", "joint_names", "names")


def read_rosbag(path: Path, topic: str | None = None, joints: Sequence[str] | None = None) -> Table:
    """Table of one topic of a ROS 1 or ROS 2 bag, see `_read`."""
    return _read(path, topic, joints, "rosbags", "ROS bags")


ROSBAG = Reader(
    name="rosbag",
    title="ROS bags",
    sentence="Joints by the names in every message, time by header stamps.",
    endings=(".bag", ".db3"),
    function=read_rosbag,
    marks=("metadata.yaml",),
    topics=True,
    extra="ros",
)


def read_mcap(path: Path, topic: str | None = None, joints: Sequence[str] | None = None) -> Table:
    """Table of one topic of an MCAP file, see `_read`."""
    return _read(path, topic, joints, "mcap", "MCAP files")


MCAP = Reader(
    name="mcap",
    title="MCAP files",
    sentence="As ROS bags, with ROS messages or JSON.",
    endings=(".mcap",),
    function=read_mcap,
    topics=True,
    extra="ros",
)


def _read(path: Path, topic: str | None, joints: Sequence[str] | None, package: str, what: str) -> Table:
    """Table of one topic of a bag.

    Parameters
    ----------
    path : Path
        File, or folder of a ROS 2 bag.
    topic : str, optional
        The topic; by default the only topic of joint states, or the only topic.
    joints : sequence of str, optional
        Joints that are needed. Where several nodes publish on one topic, messages without all of these joints are left
        out.
    package, what : str
        The package that reads it, and what such files are called.

    Returns
    -------
    Table
        t from the header stamps (from the times of logging where there are none), and field_joint for every joint.

    Raises
    ------
    DataError
        If the bag cannot be read or the topic is not clear.
    """
    for file in [p for p in path.iterdir() if not p.is_dir()] if path.is_dir() else [path]:
        check_file(file)
    check_package(package, "ros", what)
    with tempfile.TemporaryDirectory(prefix="dynid-") as name:
        argument = {"topic": topic, "joints": None if joints is None else list(joints), "package": package}
        found = read_in_child("dynid.recording.bags:extract", path, Path(name), argument)
        arrays = np.load(Path(name) / _COLUMNS, allow_pickle=False)
        columns = {column: arrays[str(k)] if why is None else Unusable(why) for k, (column, why) in found["columns"]}
    return Table(path.name, columns, joints=tuple(found["joints"]))


def extract(path: Path, folder: Path, given: Any) -> dict[str, Any]:
    """Write the columns of a bag into a folder, in a process of its own: libraries unpack whatever a bag holds."""
    try:
        messages = _mcap if given["package"] == "mcap" else _rosbag
        records = list(messages(path, given["topic"]))
        if not records:
            raise MissingData(f"{path.name} contains no messages of the topic", "topic")
        table = _table(path.name, _one_publisher(records, given["joints"], path.name))
    except (DynidError, MemoryError):
        raise
    except Exception as error:  # readers raise errors of many types on damaged files
        raise DamagedFile(f"{path.name} is not a bag, damaged or cut off: {damage(error)}") from None
    columns = list(enumerate(table.data.items()))
    np.savez(folder / _COLUMNS, **{str(k): x for k, (_, x) in columns if not isinstance(x, Unusable)})
    names = [(k, (name, x.reason if isinstance(x, Unusable) else None)) for k, (name, x) in columns]
    return {"columns": names, "joints": list(table.joints)}


def _chosen(topics: Mapping[str, str], topic: str | None, file: str) -> str:
    """The topic to read: the given one, the only one of joint states, or the only one."""
    listed = shown([f"{name} ({kind})" for name, kind in topics.items()])
    if topic is not None:
        if topic not in topics:
            raise UnknownName(f"{file} has no topic '{topic}', it has {listed}", "topic")
        return topic
    for candidates in ([x for x, kind in topics.items() if kind.endswith("JointState")], list(topics)):
        if len(candidates) == 1:
            return candidates[0]
    raise MissingArgument(f"choose one topic with {keyword('topic')}, it has {listed}", "topic", where=file)


def _rosbag(path: Path, topic: str | None) -> Iterator[Message]:
    """Messages of one topic of a ROS 1 or ROS 2 bag."""
    highlevel = optional_package("rosbags.highlevel", "ros", "ROS bags")
    typesys = optional_package("rosbags.typesys", "ros", "ROS bags")
    # Older ROS 2 bags do not contain their message definitions; that of joint states has never changed.
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    with highlevel.AnyReader([path], default_typestore=store) as reader:
        chosen = _chosen({c.topic: c.msgtype for c in reader.connections}, topic, path.name)
        connections = [c for c in reader.connections if c.topic == chosen]
        for connection, logged, raw in reader.messages(connections):
            yield flat(reader.deserialize(raw, connection.msgtype)), logged


def _mcap(path: Path, topic: str | None) -> Iterator[Message]:
    """Messages of one topic of an MCAP file."""
    module = optional_package("mcap.reader", "ros", "MCAP files")
    decoders: dict[int, Any] = {}
    with path.open("rb") as stream:
        reader = module.make_reader(stream, validate_crcs=True)
        summary = reader.get_summary()
        if summary is not None:
            pairs = [(summary.schemas.get(channel.schema_id), channel) for channel in summary.channels.values()]
        else:
            pairs = [(schema, channel) for schema, channel, _ in reader.iter_messages()]
        kinds = {channel.topic: schema.name if schema else channel.message_encoding for schema, channel in pairs}
        for schema, channel, message in reader.iter_messages(topics=[_chosen(kinds, topic, path.name)]):
            if channel.id not in decoders:
                decoders[channel.id] = _decoder(schema, channel, path.name)
            yield flat(decoders[channel.id](message.data)), message.log_time


def _decoder(schema: Any, channel: Any, file: str) -> Any:
    """The function that decodes the bytes of a channel into a record."""
    if channel.message_encoding == "json":
        return json.loads
    if schema is None or schema.encoding not in ("ros2msg", "ros1msg", "ros2idl"):
        raise Unsupported(
            f"topic '{channel.topic}' is encoded as '{channel.message_encoding}': only ROS messages and JSON are read",
            where=file,
        )
    typesys = optional_package("rosbags.typesys", "ros", "ROS messages in MCAP files")
    store = typesys.get_typestore(typesys.Stores.EMPTY)
    kind = schema.name if "/msg/" in schema.name else schema.name.replace("/", "/msg/", 1)
    text = schema.data.decode()
    idl = schema.encoding == "ros2idl"
    store.register(typesys.get_types_from_idl(text) if idl else typesys.get_types_from_msg(text, kind))
    read = store.deserialize_ros1 if channel.message_encoding == "ros1" else store.deserialize_cdr
    return lambda raw: read(raw, kind)


def _joints_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Joint names in a message, empty where it has none."""
    for field in _NAME_FIELDS:
        names = record.get(field)
        if isinstance(names, list | tuple) and names and all(isinstance(x, str) for x in names):
            return tuple(names)
    return ()


def _one_publisher(records: list[Message], joints: Sequence[str] | None, file: str) -> list[Message]:
    """Only the messages with the needed joints, where several nodes publish on the topic."""
    sets = dict.fromkeys(frozenset(_joints_of(record)) for record, _ in records)
    wanted = [s for s in sets if joints is not None and s.issuperset(joints)]
    if len(sets) == 1 or len(wanted) == len(sets):
        return records
    if not wanted:
        listed = shown([" ".join(sorted(s)) or "no names" for s in sets], 4)
        raise MissingArgument(
            f"messages of one topic name different joints ({listed}): give the robot or {keyword('joints')}", where=file
        )
    kept = [m for m in records if frozenset(_joints_of(m[0])) in wanted]
    logger.info("%s: %d messages of other joints are left out", file, len(records) - len(kept))
    return kept


def _table(file: str, records: list[Message]) -> Table:
    """Columns t and field_joint of the messages."""
    rows = []
    for record, _ in records:
        names = _joints_of(record)
        row: dict[str, Any] = {}
        for field, value in record.items():
            if isinstance(value, np.ndarray | list | tuple) and names:
                if len(value) == len(names) and field not in _NAME_FIELDS:
                    row |= {f"{field}_{joint}": x for joint, x in zip(names, value, strict=True)}
            elif not isinstance(value, str):
                row[field] = value
        rows.append(row)
    columns: dict[str, Any] = {"t": _clock(file, records)}
    columns |= {name: column for name, column in columns_of(rows).items() if "stamp." not in name}
    return Table(file, columns, joints=_joints_of(records[0][0]))


def _clock(file: str, records: list[Message]) -> Any:
    """Seconds since the first message, from integer nanoseconds."""
    stamps = [_stamp(record) for record, _ in records]
    if not any(stamps):
        logger.info("%s: messages have no time stamps, the times of logging are used", file)
        stamps = [logged for _, logged in records]
    return (np.array(stamps, dtype=np.int64) - stamps[0]) / 1e9


def _stamp(record: Mapping[str, Any]) -> int:
    """Header stamp of a message in ns, 0 where it has none."""
    for field in ("header.stamp", "stamp", "timestamp"):
        if f"{field}.sec" in record:
            parts = (record.get(f"{field}.{x}") for x in ("nanosec", "nsec"))
            return int(record[f"{field}.sec"]) * 10**9 + int(next((x for x in parts if x is not None), 0))
    return 0
