"""One door for every recording: files of any usual format to joint-side SI signals, joint by joint."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording import arrays, tables
from dynid.recording.bad_rows import Block, bad_rows, stretches
from dynid.recording.bags import read_bag
from dynid.recording.clock import check_unit, from_start
from dynid.recording.columns import (
    Channels,
    Spec,
    guess,
    guess_one,
    guess_time,
    named_wrenches,
    resolve,
    resolve_time,
)
from dynid.recording.convert import TIME_UNITS, Conversion, PerJoint
from dynid.recording.files import kind_of, stem_of
from dynid.recording.names import mentioned
from dynid.recording.recording import NAMED_WRENCH, PARTS, SIGNALS, WIDTH, Recording, Run
from dynid.recording.table import Table, shown
from dynid.recording.wrench import WrenchSensor
from dynid.robot.model import Robot

__all__ = ["load_recording"]

logger = logging.getLogger("dynid")

Array = NDArray[np.float64]
PathLike = str | Path
Source = PathLike | Mapping[str, PathLike]

_READERS: dict[str, Callable[[Path], Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".log"), tables.read_text),
    **dict.fromkeys((".parquet", ".pq"), tables.read_parquet),
    ".npz": arrays.read_npz,
    ".npy": arrays.read_npy,
    ".mat": arrays.read_mat,
    **dict.fromkeys((".h5", ".hdf5"), arrays.read_hdf5),
    ".json": arrays.read_json,
}
_BAGS = (".bag", ".db3", ".mcap")


@dataclass(frozen=True)
class _Request:
    """The options of `load_recording` that say where things stand in the files."""

    columns: Mapping[str, Spec] | None
    time: str | int | None
    rate: float | None
    joints: Sequence[str | int] | None
    rows: tuple[int | None, int | None]
    split: bool
    topic: str | None
    conversion: Conversion
    sensors: Mapping[str, WrenchSensor]

    def channels(self, found: Mapping[str, Table]) -> dict[str, Channels]:
        """What every signal has one column each of, by the robot, by the caller or by what the file itself names."""
        table = found.get("") or found["q"]
        robot, joints = self.conversion.robot, list(self.joints or ())
        pick = tuple(int(k) for k in joints) if joints and not isinstance(joints[0], str) else None
        names = tuple(str(x) for x in joints) if joints and pick is None else ()
        count = robot.n if robot is not None else len(joints) or None
        if not joints:
            names = robot.coordinates if robot is not None else table.joints or _own_joints(table)
        side = Channels(names, pick, count or len(names) or None, "joints")
        out = dict.fromkeys(SIGNALS, side) | {s: _parts(s) for s in WIDTH}
        named = [s for s in (*found, *(self.columns or ()), *named_wrenches(table)) if s.startswith(NAMED_WRENCH)]
        out |= {s: _parts("wrench") for s in named}
        if robot is not None and robot.transmission is not None:
            motors = robot.transmission.motors
            # Files often name motors by the joints they drive.
            by_joint = bool(joints) or (len(motors) == robot.n and not mentioned(table.names, motors))
            shafts = Channels(names if by_joint else motors, pick, len(motors), "motors")
            out |= {s: shafts for s in SIGNALS if self.conversion.on_motor_side(s)}
        return out


def load_recording(
    source: Source | Sequence[Source],
    robot: Robot | None = None,
    *,
    columns: Mapping[str, Spec] | None = None,
    time: str | int | None = "auto",
    rate: float | None = None,
    units: Mapping[str, str | Sequence[str]] | None = None,
    scale: Mapping[str, PerJoint] | None = None,
    sign: Mapping[str, PerJoint] | None = None,
    gain: PerJoint | None = None,
    motor_side: bool | Collection[str] = False,
    offset: Mapping[str, PerJoint] | None = None,
    joints: Sequence[str | int] | None = None,
    rows: tuple[int | None, int | None] | None = None,
    bad_rows: Literal["error", "split"] = "error",
    topic: str | None = None,
    sensors: Mapping[str, WrenchSensor] | None = None,
) -> Recording:
    """Recording from a file, from several files (one run or more each), or from one file a signal.

    source: a path, a list of paths, or a mapping such as {"q": "pos.csv", "torque": "cur.csv"}: text tables, Parquet,
    NPZ, NPY, MATLAB, HDF5 and JSON (also as .gz, .xz, .bz2), ROS bags and MCAP. columns: signal (q, v, a, torque,
    current, reference, wrench, wrench:NAME of a named sensor, base, base_v, base_a) to a name, a list of names or
    indices, a pattern with {i} (from 1), {k} (from 0), {joint} or {part} (x, qx, fx ... of a base or wrench), a range
    "1:7", an array or a part of it ("data[0:7]"); left out, names are guessed. time: column of the clock, None for a
    fixed rate in Hz. joints: their names in the file, in the order of the robot, or their indices (from 0).
    Conversions, in this order, each a number or one a column: units, scale, sign, gain (N m/A, currents to torques),
    motor_side (through the robot's transmission), offset. rows: a range (from 0, end excluded) of each file.
    bad_rows: "split" cuts runs at unusable rows. topic: chooses within a bag. sensors: where the named wrench sensors
    are; one left out sits in the robot's frame of its own name. See docs/recordings.md.
    """
    if bad_rows not in ("error", "split"):
        raise DataError(f"bad_rows '{bad_rows}' is unknown: use error or split")
    if rate is not None and not rate > 0:
        raise DataError(f"rate must be positive, got {rate}")
    if time is None and rate is None:
        raise DataError("without a time column (time=None) the rate in Hz is needed: rate=")
    if columns is not None:
        unknown = [s for s in columns if not _is_signal(s)]
        if unknown:
            hint = ", the clock is given with time=" if unknown[0] in ("t", "time") else ""
            raise DataError(f"columns knows {', '.join(SIGNALS)}, not '{unknown[0]}'{hint}")
    if robot is not None and not isinstance(robot, Robot):
        raise DataError(f"robot must come from dynid.load_robot, got {robot!r:.60}")
    if rows is not None and (len(rows) != 2 or not all(x is None or isinstance(x, int) for x in rows)):
        raise DataError(f"rows must be (start, stop), got {rows!r:.60}")
    if joints is not None and (isinstance(joints, str) or len({isinstance(x, str) for x in joints}) != 1):
        raise DataError(f"joints= must list names or indices, got {joints!r:.60}")
    if robot is not None and joints is not None and len(joints) != robot.n:
        raise DataError(f"joints= has {len(joints)} entries, the robot {robot.n} joints ({shown(robot.coordinates)})")
    conversion = Conversion(robot, units, scale, sign, gain, motor_side, offset)
    span = rows or (None, None)
    request = _Request(columns, time, rate, joints, span, bad_rows == "split", topic, conversion, sensors or {})
    sources = [source] if isinstance(source, str | Path | Mapping) else list(source)
    if not sources:
        raise DataError("no file is given")
    loaded = [_load(one, request) for one in sources]
    for other in loaded[1:]:
        if other.joints != loaded[0].joints:
            raise DataError(
                f"run '{other.runs[0].name}' has the joints {shown(other.joints)}, "
                f"run '{loaded[0].runs[0].name}' {shown(loaded[0].joints)}: give the robot or joints="
            )
    return Recording(loaded[0].joints, tuple(itertools.chain.from_iterable(x.runs for x in loaded)))


def _load(source: Source, request: _Request) -> Recording:
    files = dict(source) if isinstance(source, Mapping) else {"": source}
    unknown = [s for s in files if s not in ("", "t") and not _is_signal(s)]
    if unknown or ("" not in files and "q" not in files):
        wrong = f"'{unknown[0]}' is none of them" if unknown else "q is needed"
        raise DataError(f"one file a signal is given by t, {', '.join(SIGNALS)}: {wrong}")
    paths = {signal: Path(path) for signal, path in files.items()}
    opened: dict[Path, Table] = {}
    for path in paths.values():
        if path not in opened:
            opened[path] = _read(path, request)
    found = {signal: opened[path] for signal, path in paths.items()}
    first = found.get("") or found["q"]
    channels = request.channels(found)
    clocks = _clocks(found, request)
    picked = _columns(found, channels, dict(clocks), request)
    blocks = [Block(table, signal, names, table.values(names), 0) for signal, (table, names) in picked.items()]
    blocks = [Block(table, "t", [column], table.values([column]), 0) for table, column in clocks] + blocks
    return _assemble(stem_of(paths.get("") or paths["q"]), blocks, _runs(first), channels["q"], request)


def _parts(signal: str) -> Channels:
    """Components of the base's motion or of a wrench, one column each."""
    return Channels(PARTS[signal], count=WIDTH[signal], what="columns")


def _is_signal(name: str) -> bool:
    return name in SIGNALS or (name.startswith(NAMED_WRENCH) and name != NAMED_WRENCH)


def _read(path: Path, request: _Request) -> Table:
    kind = kind_of(path)
    if kind in _BAGS or path.is_dir():
        if not path.exists():
            raise DataError(f"{path} cannot be read: No such file or directory")
        robot = request.conversion.robot
        names = [x for x in request.joints or (robot.coordinates if robot is not None else ()) if isinstance(x, str)]
        return read_bag(path, request.topic, names or None)
    if request.topic is not None:
        raise DataError(f"topic= chooses within a bag, {path.name} is none")
    if kind not in _READERS:
        raise DataError(f"{path.name}: ending '{kind}' is unknown, known are {', '.join([*_READERS, *_BAGS])}")
    return _READERS[kind](path)


def _own_joints(table: Table) -> tuple[str, ...]:
    """Joints of a file of our own writer, which has the columns run, t and q_<joint>."""
    if "run" not in table.names or "t" not in table.names:
        return ()
    return tuple(name.removeprefix("q_") for name in table.names if name.startswith("q_"))


def _runs(table: Table) -> Array | None:
    """Number of the run of every row, where the file tells."""
    if "run" not in table.names:
        return None
    runs = table.values(["run"])[:, 0]
    if not np.all(np.isfinite(runs)):
        raise DataError(f"{table.file}: column 'run' must hold the number of the run in every row")
    return runs


def _clocks(found: Mapping[str, Table], request: _Request) -> list[tuple[Table, str]]:
    """The columns of the clock: none with a fixed rate, several where files of one run each have their own."""
    if request.time is None:
        return []
    if request.time != "auto":
        table = found.get("t") or found.get("") or found["q"]
        return [(table, resolve_time(table, request.time))]
    candidates = [found["t"]] if "t" in found else list(dict.fromkeys(found.values()))
    out = []
    for table in candidates:
        column = guess_time(table)
        if column is None and "t" in found and len(table.names) == 1:
            column = table.names[0]
        if column is not None:
            out.append((table, column))
    if not out and request.rate is None:
        file, names = candidates[0].file, shown(candidates[0].names)
        raise DataError(f"{file} has no column for the time: give time= (a column) or rate= (Hz), it has {names}")
    return out


def _columns(
    found: Mapping[str, Table], channels: dict[str, Channels], times: Mapping[Table, str], request: _Request
) -> dict[str, tuple[Table, list[str]]]:
    """Table and columns of every signal."""
    columns = request.columns
    if "" in found:
        table = found[""]
        if columns is None:
            guessed = guess(table, channels)
            logger.info("%s: %s", table.file, ", ".join(f"{s} from {shown(names, 3)}" for s, names in guessed.items()))
            return {signal: (table, names) for signal, names in guessed.items()}
        if "q" not in columns:
            raise DataError(f"columns names {', '.join(columns)}, but not q: positions are needed")
        return {s: (table, resolve(table, s, spec, channels[s])) for s, spec in columns.items()}
    out = {}
    extra = set(columns or ()) - set(found)
    if extra:
        raise DataError(f"columns is given for {min(extra)}, which has no file of its own")
    for signal, table in found.items():
        if signal == "t":
            continue
        if columns is not None and signal in columns:
            names = resolve(table, signal, columns[signal], channels[signal])
        else:
            names = guess_one(table, signal, channels[signal], times.get(table))
        out[signal] = (table, names)
    return out


def _assemble(name: str, blocks: list[Block], runs: Array | None, wanted: Channels, request: _Request) -> Recording:
    """Runs from the raw columns: equal lengths, selected rows, good rows, conversions, clock."""
    lengths = {len(block.values): block for block in blocks}
    if len(lengths) > 1:
        counts = ", ".join(f"{b.signal} in {b.table.file} {n}" for n, b in lengths.items())
        raise DataError(f"the signals of one run differ in their number of rows: {counts}")
    count, file = len(blocks[0].values), blocks[-1].table.file
    start, stop, _ = slice(*request.rows).indices(count)
    if stop - start < 2:
        left = f", of which rows={request.rows} leave {max(stop - start, 0)}" if request.rows != (None, None) else ""
        raise DataError(f"{file} has {count} rows{left}: at least two are needed")
    conversion = request.conversion
    kept = []
    for block in blocks:
        values = block.values[start:stop]
        if block.signal != "t":
            values = conversion.to_si(block.signal, values, block.columns, block.table.file)
        kept.append(Block(block.table, block.signal, block.columns, values, start))
    bad = bad_rows(kept, refuse=not request.split)
    t = _time(kept, stop - start, request)
    pieces = stretches(file, t, bad, None if runs is None else runs[start:stop], request.split)
    signals = conversion.to_joints({b.signal: np.where(bad[:, None], 0.0, b.values) for b in kept if b.signal != "t"})
    if kept[0].signal == "t" and conversion.time_unit() is None:
        good = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
        v = signals["v"][good] if "v" in signals else None
        check_unit(file, kept[0].columns[0], t[good], signals["q"][good], v, request.rate)
    t = from_start(t, float(t[pieces[0].start]))
    named = {s.removeprefix(NAMED_WRENCH): s for s in signals if s.startswith(NAMED_WRENCH)}
    lost = sorted(set(request.sensors) - set(named))
    if lost:
        raise DataError(f"{file}: sensors= names '{lost[0]}', of which no wrench is read")
    out = []
    for k, piece in enumerate(pieces):
        label = name if len(pieces) == 1 else f"{name}#{k + 1}"
        plain = {s: x[piece] for s, x in signals.items() if s not in named.values()}
        wrenches = {n: signals[s][piece] for n, s in named.items()}
        out.append(Run(t[piece], name=label, wrenches=wrenches, sensors=request.sensors, **plain))
    return Recording(_joint_names(wanted, signals["q"].shape[1], request), tuple(out))


def _time(blocks: Sequence[Block], count: int, request: _Request) -> Array:
    """Seconds of every row; clocks of several files of one run must agree."""
    clocks = [block for block in blocks if block.signal == "t"]
    unit = request.conversion.time_unit()
    if not clocks:
        assert request.rate is not None
        if unit is not None:
            raise DataError("units is given for t, but the times come from rate=")
        return np.arange(count) / request.rate
    t = clocks[0].values[:, 0]
    for other in clocks[1:]:
        differs = np.flatnonzero(np.abs(other.values[:, 0] - t) > 0.01 * np.nanmedian(np.abs(np.diff(t))))
        if differs.size:
            row = int(differs[0]) + other.first
            raise DataError(
                f"the clocks of {clocks[0].table.file} and {other.table.file} differ at {other.table.place(row)}: "
                "bring them to one clock first"
            )
    return t / TIME_UNITS[unit or "s"]


def _joint_names(wanted: Channels, count: int, request: _Request) -> tuple[str, ...]:
    robot = request.conversion.robot
    if robot is not None:
        return robot.coordinates
    if wanted.names:
        return wanted.names
    return tuple(f"joint{k + 1}" for k in (wanted.pick or range(count)))
