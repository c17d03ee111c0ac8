"""A log that is open in the page: its columns, the guess what they are, and what comes out when it is read so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from dynid.errors import DataError, DynidError, InvalidValue, MissingArgument, UnknownName
from dynid.patterns import matching_names
from dynid.recording.assemble import Reading
from dynid.recording.columns import guess_time
from dynid.recording.convert import Conversion
from dynid.recording.load import columns_of_table, read_table, recording_of_table
from dynid.recording.log_format import LogFormat
from dynid.recording.names import Group, groups, tokens
from dynid.recording.recording import Recording
from dynid.recording.run import SIGNALS
from dynid.recording.table import Table
from dynid.robot.model import Robot
from dynid.studio.mapping import CLOCK, Assignment, LogMapping, assignments_of
from dynid.studio.previews import ColumnPreview, previews

__all__ = ["OpenedLog", "held_joints", "open_log", "signal_of_file"]


@dataclass(frozen=True, eq=False)
class OpenedLog:
    """The tables of a log and what their columns are taken for.

    Attributes
    ----------
    files : mapping of str to str
        Signal to the name of its file; "" for a file of all signals.
    tables : mapping of str to Table
        Their contents.
    whole : Robot
        The robot before joints are locked.
    mapping : LogMapping
        What the columns are.
    guess : str
        What the guess could not find, in a sentence; "" if nothing.
    """

    files: Mapping[str, str]
    tables: Mapping[str, Table]
    whole: Robot
    mapping: LogMapping
    guess: str = ""

    def changed(self, mapping: LogMapping) -> OpenedLog:
        """The same log with other assignments."""
        return replace(self, mapping=mapping)

    @cached_property
    def robot(self) -> Robot:
        """The robot with its joints locked."""
        return self.whole.locked(dict(self.mapping.locked)) if self.mapping.locked else self.whole

    @cached_property
    def recording(self) -> Recording:
        """The log as it is read with these assignments; DataError where it cannot be."""
        reading = _reading(self.whole, self.robot, self.mapping.log_format())
        name = next(iter(self.files.values()))
        return recording_of_table(name, self.tables.get("") or self.tables, reading)

    def summary(self) -> str:
        """What was read, in a line."""
        found, run = self.recording, self.recording.runs[0]
        signals = [s for s in SIGNALS if getattr(run, s, None) is not None]
        runs = f"{len(found.runs)} runs, " if len(found.runs) > 1 else ""
        rate = 1.0 / float(np.median(np.diff(run.t)))
        return (
            f"{runs}{found.samples} samples, {found.duration:.1f} s at {rate:.4g} Hz: "
            f"{', '.join(signals)} of {len(found.joints)} joint{'s' if len(found.joints) > 1 else ''}"
        )

    def ranges(self) -> dict[int, tuple[float, float, str]]:
        """Number of a column to its range after all conversions, and the unit of that range."""
        out: dict[int, tuple[float, float, str]] = {}
        for number, what in self.mapping.assigned.items():
            gained = what.signal == "current" and self.recording.runs[0].torque is not None
            signal = "torque" if gained else what.signal
            if signal == CLOCK:
                parts = [run.t for run in self.recording.runs]
            elif what.channel not in self.recording.joints:
                continue
            else:
                k = self.recording.joints.index(what.channel)
                parts = [x[:, k] for x in (getattr(run, signal) for run in self.recording.runs) if x is not None]
            if parts:
                low, high = min(float(x.min()) for x in parts), max(float(x.max()) for x in parts)
                out[number] = (low, high, _unit(signal, what.channel in self.mapping.prismatic))
        return out


_SI = {
    CLOCK: ("s", "s"),
    "q": ("rad", "m"),
    "reference": ("rad", "m"),
    "link_q": ("rad", "m"),
    "v": ("rad/s", "m/s"),
    "a": ("rad/s2", "m/s2"),
    "torque": ("N m", "N"),
    "current": ("A", "A"),
}


def _unit(signal: str, prismatic: bool) -> str:
    return _SI[signal][prismatic]


def _reading(whole: Robot, robot: Robot, log: LogFormat) -> Reading:
    return Reading(robot, log, Conversion(robot, log), {}, None if whole is robot else whole)


def open_log(
    files: Mapping[str, Path], whole: Robot, log: LogFormat, locked: Mapping[str, float] | None = None
) -> OpenedLog:
    """Read the files of a log, and take their columns for what the log format, or else their names, say.

    Parameters
    ----------
    files : mapping of str to Path
        Signal to its file, or "" to a file of all signals.
    whole : Robot
        The robot before joints are locked.
    log : LogFormat
        What is known about the log; columns that it does not name are recognised by their names.
    locked : mapping of str to float, optional
        Joints that are held. Left out, those that no column names, if columns name some of the joints.
    """
    if not files:
        raise MissingArgument("choose a log first", "log")
    reading = _reading(whole, whole, LogFormat(topic=log.topic))
    tables = {signal: read_table(path, reading) for signal, path in files.items()}
    columns = previews(tables)
    held = _not_named(tables, whole) if locked is None else dict(locked)
    kinds = {joint.name: joint.kind for joint in whole.joints}
    sliding = frozenset(j for j in whole.coordinates if kinds.get(j) == "prismatic")
    mapping = LogMapping(columns, whole.coordinates, sliding, held, {}, log)
    opened = OpenedLog({s: p.name for s, p in files.items()}, tables, whole, mapping)
    try:
        found, _ = columns_of_table(tables.get("") or tables, _reading(whole, opened.robot, log))
    except DynidError as error:
        clock = _clock(tables, columns)
        assigned = {} if clock is None else {clock: Assignment(CLOCK)}
        bare = log.columns is None and any(not table.header for table in tables.values())
        words = f"{tables[''].file} has no header: assign its columns" if bare and "" in tables else str(error)
        return replace(opened, mapping=replace(mapping, assigned=assigned), guess=words)
    assigned = assignments_of(found, columns, mapping.free)
    return replace(opened, mapping=replace(mapping, assigned=assigned))


def _not_named(tables: Mapping[str, Table], whole: Robot) -> dict[str, float]:
    """Joints that no column names, where columns name some of the joints: they are not in the log."""
    named: set[str] = set()
    for table in tables.values():
        try:
            found = groups(table.names, whole.coordinates, bare="" not in tables, first=None)
        except DataError:
            return {}
        named |= {key for group in found for key in group.columns if isinstance(key, str)}
    return {joint: 0.0 for joint in whole.coordinates if joint not in named} if named else {}


def _clock(tables: Mapping[str, Table], columns: tuple[ColumnPreview, ...]) -> int | None:
    """The column that is named as a clock; in a file without a header the first one, if its values rise."""
    table = tables.get("") or tables.get(CLOCK) or tables["q"]
    own = [c for c in columns if c.file == table.file]
    if not table.header:
        return own[0].number if own[0].rising else None
    try:
        name = guess_time(table)
    except DataError:
        return None
    return next((c.number for c in own if c.name == name), None)


def signal_of_file(name: str) -> str:
    """The signal that the name of a file says, "" where it says none: tiago_effort.csv has torques."""
    return Group(tuple(x for x in tokens(name.split(".")[0]) if not x.isdigit())).signal or ""


def held_joints(lock: list[str] | dict[str, float], robot: Robot) -> dict[str, float]:
    """The joints that `lock` of a project file holds, and where (rad or m); names may be patterns or NAME=VALUE."""
    pairs = lock.items() if isinstance(lock, dict) else [_name_and_value(x) for x in lock]
    held: dict[str, float] = {}
    for pattern, value in pairs:
        found = matching_names(pattern, robot.coordinates)
        if not found:
            raise UnknownName(f"lock: no joint fits '{pattern}', the robot has {', '.join(robot.coordinates)}", "lock")
        held |= dict.fromkeys(found, float(value))
    return held


def _name_and_value(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        return name, float(value) if equals else 0.0
    except ValueError:
        raise InvalidValue(f"lock: '{value}' is not a position, in '{text}'", "lock") from None
