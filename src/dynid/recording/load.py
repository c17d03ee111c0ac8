"""`load_recording`: log files of any usual format to joint-side SI signals."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from dynid.errors import (
    ConflictingArguments,
    InvalidType,
    Mismatch,
    MissingArgument,
    NotApplicable,
    Sentence,
    UnknownName,
    keyword,
    named,
)
from dynid.recording.assemble import Reading, assemble
from dynid.recording.bad_rows import Block
from dynid.recording.columns import (
    Channels,
    guess,
    guess_one,
    guess_time,
    is_own_file,
    named_signals,
    resolve,
    resolve_time,
)
from dynid.recording.convert import Conversion
from dynid.recording.files import stem_of
from dynid.recording.formats import read_log
from dynid.recording.log_fields import LogFields, is_signal
from dynid.recording.log_format import LogFormat, both_clocks, unknown_field
from dynid.recording.names import mentioned
from dynid.recording.recording import Recording
from dynid.recording.run import NAMED_CONTACT, NAMED_WRENCH, PARTS, SIGNALS, WIDTH
from dynid.recording.table import Table, shown
from dynid.recording.wrench import WrenchSensor
from dynid.robot.model import Robot

__all__ = ["columns_of_table", "load_recording", "read_table", "recording_of_table"]

logger = logging.getLogger("dynid")

PathLike = str | Path
Source = PathLike | Mapping[str, PathLike]


def load_recording(
    source: Source | Sequence[Source],
    robot: Robot | None = None,
    *,
    log: LogFormat | None = None,
    sensors: Mapping[str, WrenchSensor] | None = None,
    whole: Robot | None = None,
    **fields: Unpack[LogFields],
) -> Recording:
    """Load a recording from log files.

    Parameters
    ----------
    source : path, mapping or list of them
        A file; a list of files, each of one run or more; or one file per signal, as a mapping such as
        {"q": "pos.csv", "torque": "cur.csv"} (t may have a file too). `dynid.recording.readers()` lists the formats;
        most may be compressed (.gz, .xz, .bz2).
    robot : Robot, optional
        The robot of the log: its joint names are searched for in the column names, and the signals are in the order
        of its joints.
    log : LogFormat, optional
        How the log is read. By default the clock and the columns are recognised by their names, in SI units.
    sensors : mapping of str to WrenchSensor, optional
        Where the named wrench sensors are; one that is left out sits in the robot's frame of its own name.
    whole : Robot, optional
        The robot before `Robot.locked`. If the log has as many columns without joint names as this robot has joints,
        they are taken as those of all its joints, and the columns of locked joints are left out.
    **fields
        Fields of `LogFormat`, which override those of `log`: time, rate, columns, units, scale, sign, gain, motor_side,
        offset, joints, rows, bad_rows, topic.

    Returns
    -------
    Recording
        One or more runs. `recording.log_format` is the format with the columns that were read, and
        `recording.unread_columns` lists the other columns of the files.

    Raises
    ------
    DataError
        If a setting is unknown or cannot be used, or a file cannot be read; the message names the file, the line and
        the column.

    See Also
    --------
    LogFormat : every setting, with its units.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dynid
    >>> file = Path(tempfile.mkdtemp()) / "run.csv"
    >>> _ = file.write_text("time,pos1,pos2,tau1,tau2\\n0,10,20,1,2\\n10,11,22,1,2\\n20,12,24,1,2\\n")
    >>> robot = dynid.load_robot("twolink")
    >>> recording = dynid.load_recording(file, robot, units={"t": "ms", "q": "deg"})
    >>> recording.runs[0].torque[0].tolist()
    [1.0, 2.0]
    >>> recording.log_format.columns["torque"]
    ('tau1', 'tau2')
    """
    unknown = [name for name in fields if name not in LogFormat.model_fields]
    if unknown:
        raise UnknownName(unknown_field(unknown[0]))
    if log is not None and not isinstance(log, LogFormat):
        raise InvalidType(f"log must be a LogFormat, got {log!r:.60}", "log")
    if robot is not None and not isinstance(robot, Robot):
        raise InvalidType(f"robot must come from dynid.load_robot, got {robot!r:.60}")
    chosen = (log or LogFormat()).replaced(fields)
    if robot is not None and chosen.joints is not None and len(chosen.joints) != robot.n:
        count, names = len(chosen.joints), shown(robot.coordinates)
        raise Mismatch(f"{keyword('joints')} has {count} entries, the robot {robot.n} joints ({names})")
    reading = Reading(robot, chosen, Conversion(robot, chosen), sensors or {}, whole)
    sources = [source] if isinstance(source, str | Path | Mapping) else list(source)
    if not sources:
        raise MissingArgument("no file is given", "source")
    loaded = [_load(one, reading) for one in sources]
    for other in loaded[1:]:
        if other.joints != loaded[0].joints:
            raise Mismatch(
                f"run '{other.runs[0].name}' has the joints {shown(other.joints)}, "
                f"run '{loaded[0].runs[0].name}' {shown(loaded[0].joints)}: give the robot or {keyword('joints')}"
            )
    formats = [recording.log_format for recording in loaded]
    return Recording(
        loaded[0].joints,
        tuple(itertools.chain.from_iterable(recording.runs for recording in loaded)),
        # Files with different columns have only the given format in common.
        log_format=formats[0] if all(x == formats[0] for x in formats) else chosen,
        unread_columns=tuple(dict.fromkeys(name for recording in loaded for name in recording.unread_columns)),
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """The files of one recording: the table of every signal, "" for all of them, and their channels."""

    tables: dict[str, Table]
    reading: Reading

    @property
    def main(self) -> Table:
        """The table of all signals, or that of the positions."""
        return self.tables.get("") or self.tables["q"]

    def channels(self) -> dict[str, Channels]:
        """Joints, motors or components of every signal, from the robot, the log format or the file itself."""
        table, robot = self.main, self.reading.robot
        joints = self.reading.log.joints or ()
        pick = tuple(k for k in joints if isinstance(k, int)) or None
        names = tuple(x for x in joints if isinstance(x, str))
        count = robot.n if robot is not None else len(joints) or None
        if not joints:
            names = robot.coordinates if robot is not None else table.joints or _own_joints(table)
        side = Channels(names, pick, count or len(names) or None, "joints", *self._free())
        out = dict.fromkeys(SIGNALS, side) | {s: _components(s) for s in WIDTH}
        given = (*self.tables, *(self.reading.log.columns or ()), *named_signals(table))
        out |= {s: _components("wrench") for s in given if s.startswith(NAMED_WRENCH)}
        out |= {s: Channels((s,), count=1, what="columns") for s in given if s.startswith(NAMED_CONTACT)}
        if robot is not None and robot.transmission is not None:
            motors = robot.transmission.motors
            # Files often name motors by the joints they drive.
            by_joint = bool(joints) or (len(motors) == robot.n and not mentioned(table.names, motors))
            shafts = Channels(names if by_joint else motors, pick, len(motors), "motors")
            out |= {s: shafts for s in SIGNALS if self.reading.conversion.on_motor_side(s)}
        return out

    def _free(self) -> tuple[tuple[int, ...], int]:
        """Indices of the robot's joints among those of the robot before some were locked, and their number."""
        robot, whole = self.reading.robot, self.reading.whole
        if robot is None or whole is None or self.reading.log.joints is not None:
            return (), 0
        return tuple(k for k, name in enumerate(whole.coordinates) if name in robot.coordinates), whole.n

    def clocks(self, joints: Sequence[str]) -> list[tuple[Table, str]]:
        """The columns of the clock: none with a fixed rate, several where files of one run have one each."""
        log = self.reading.log
        if log.time is None:
            return []
        if log.time != "auto":
            table = self.tables.get("t") or self.main
            return [(table, resolve_time(table, log.time))]
        candidates = [self.tables["t"]] if "t" in self.tables else list(dict.fromkeys(self.tables.values()))
        out = []
        for table in candidates:
            alone = "t" in self.tables and len(table.names) == 1
            column = table.names[0] if alone else guess_time(table, joints, one_signal="" not in self.tables)
            if column is not None:
                out.append((table, column))
        if out and log.rate is not None:
            raise ConflictingArguments(f"{out[0][0].file}: {both_clocks(out[0][1], log.rate)}", "rate")
        if not out and log.rate is None:
            file, names = candidates[0].file, shown(candidates[0].names)
            raise MissingArgument(
                f"{file} has no column for the time: give {keyword('time')} (a column) or {keyword('rate')} (Hz), "
                f"it has {names}"
            )
        return out

    def columns(
        self, channels: dict[str, Channels], clocks: Mapping[Table, str]
    ) -> dict[str, tuple[Table, Sequence[str]]]:
        """Table and columns of every signal."""
        given = self.reading.log.columns
        if "" in self.tables:
            table = self.tables[""]
            if given is None:
                return {s: (table, names) for s, names in guess(table, channels, clocks.get(table)).items()}
            if "q" not in given:
                raise MissingArgument(f"{named('columns')} names {', '.join(given)}, but not q: positions are needed")
            return {s: (table, resolve(table, s, spec, channels[s])) for s, spec in given.items()}
        extra = set(given or ()) - set(self.tables)
        if extra:
            raise NotApplicable(f"{named('columns')} is given for {min(extra)}, which has no file of its own")
        out: dict[str, tuple[Table, Sequence[str]]] = {}
        for signal, table in self.tables.items():
            if signal == "t":
                continue
            if given is not None and signal in given:
                out[signal] = (table, resolve(table, signal, given[signal], channels[signal]))
            else:
                out[signal] = (table, guess_one(table, signal, channels[signal], clocks.get(table)))
        return out


def _load(source: Source, reading: Reading) -> Recording:
    """The recording of one file, or of one file per signal."""
    files = dict(source) if isinstance(source, Mapping) else {"": source}
    unknown = [s for s in files if s not in ("", "t") and not is_signal(s)]
    if unknown or ("" not in files and "q" not in files):
        wrong = f"'{unknown[0]}' is none of them" if unknown else "q is needed"
        raise UnknownName(f"one file per signal is given by t, {', '.join(SIGNALS)}: {wrong}", "source")
    paths = {signal: Path(path) for signal, path in files.items()}
    opened: dict[Path, Table] = {}
    for path in paths.values():
        if path not in opened:
            opened[path] = read_table(path, reading)
    found = _Source({signal: opened[path] for signal, path in paths.items()}, reading)
    return _recording(stem_of(paths.get("") or paths["q"]), found)


def recording_of_table(name: str, table: Table | Mapping[str, Table], reading: Reading) -> Recording:
    """The recording of one table of all signals, or of one table per signal, under a name."""
    return _recording(name, _Source({"": table} if isinstance(table, Table) else dict(table), reading))


def columns_of_table(table: Table | Mapping[str, Table], reading: Reading) -> tuple[LogFormat, tuple[str, ...]]:
    """The log format with the clock and the columns of one table of all signals, or of one table per signal.

    The columns that are not read come with it.
    """
    found = _Source({"": table} if isinstance(table, Table) else dict(table), reading)
    channels = found.channels()
    clocks = found.clocks(channels["q"].names)
    picked = found.columns(channels, dict(clocks))
    blocks = [Block(t, "t", [column], np.zeros((0, 1)), 0) for t, column in clocks]
    blocks += [Block(t, signal, names, np.zeros((0, 1)), 0) for signal, (t, names) in picked.items()]
    return reading.log.replaced(_resolved(found, clocks, picked)), _unread(dict.fromkeys(found.tables.values()), blocks)


def _resolved(
    found: _Source, clocks: Sequence[tuple[Table, str]], picked: Mapping[str, tuple[Table, Sequence[str]]]
) -> dict[str, Any]:
    """Fields of the log format that say which columns were read."""
    return {
        # Where several files have a clock each, a second reading compares them again.
        "time": dict(clocks).get(found.tables.get("t") or found.main, "auto") if clocks else None,
        "columns": {signal: tuple(names) for signal, (_, names) in picked.items()},
    }


def _recording(name: str, found: _Source) -> Recording:
    """The recording of opened files."""
    reading = found.reading
    channels = found.channels()
    clocks = found.clocks(channels["q"].names)
    picked = found.columns(channels, dict(clocks))
    blocks = [Block(table, "t", [column], table.values([column]), 0) for table, column in clocks]
    blocks += [Block(table, signal, names, table.values(names), 0) for signal, (table, names) in picked.items()]
    unread = _unread(dict.fromkeys(found.tables.values()), blocks)
    if "" in found.tables and reading.log.columns is None:
        _report_missing(found.main.file, picked, unread)
    recording = assemble(name, blocks, found.main, channels["q"], reading)
    resolved = _resolved(found, clocks, picked)
    if reading.robot is None:
        resolved["joints"] = recording.joints
    return replace(recording, log_format=reading.log.replaced(resolved), unread_columns=unread)


def _unread(read: Iterable[Table], blocks: Sequence[Block]) -> tuple[str, ...]:
    """Columns that no signal, clock or run number was read from; an array that was not read at all has one entry."""
    out: list[str] = []
    for table in read:
        used = {name for block in blocks if block.table is table for name in block.columns} | {"run"}
        for name in table.data:
            width = table.width(name)
            parts = [name] if width is None else [f"{name}[{k}]" for k in range(width)]
            left = [part for part in parts if part not in used]
            out += [name] if len(left) == len(parts) else left
    return tuple(name for name in dict.fromkeys(out) if name not in ("", "run"))


def _report_missing(file: str, picked: Mapping[str, tuple[Table, Sequence[str]]], unread: Sequence[str]) -> None:
    """Log which signals were recognised, and warn where neither torques nor currents were but columns are left."""
    found = ", ".join(f"{signal} from {shown(names, 3)}" for signal, (_, names) in picked.items())
    wrench = any(signal.startswith("wrench") for signal in picked)
    if unread and not wrench and "torque" not in picked and "current" not in picked:
        absent = ", ".join(s for s in ("v", "torque", "current") if s not in picked)
        left = f"columns left over: {shown(unread)}. Name them with {keyword('columns')}, or in the log format"
        logger.warning(Sentence(f"{file}: read {found}; not found: {absent}; {left}"))
    else:
        logger.info("%s: %s", file, found)


def _components(signal: str) -> Channels:
    """Components of the base motion or of a wrench, one column each."""
    return Channels(PARTS[signal], count=WIDTH[signal], what="columns")


def read_table(path: Path, reading: Reading) -> Table:
    """The table of one file."""
    known = reading.robot.coordinates if reading.robot is not None else ()
    names = [x for x in reading.log.joints or known if isinstance(x, str)]
    return read_log(path, reading.log.topic, names or None)


def _own_joints(table: Table) -> tuple[str, ...]:
    """Joints of a file that `Recording.to_csv` wrote, which has the columns run, t and q_<joint>."""
    if not is_own_file(table):
        return ()
    return tuple(name.removeprefix("q_") for name in table.names if name.startswith("q_"))
