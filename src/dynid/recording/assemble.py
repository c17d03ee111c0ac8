"""Runs from the raw columns of a log: selected rows, good rows, conversions, clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    ConflictingArguments,
    DamagedFile,
    InvalidShape,
    Mismatch,
    TooFew,
    UnknownName,
    keyword,
    named,
)
from dynid.recording.bad_rows import Block, bad_rows, segments
from dynid.recording.clock import check_unit, from_start
from dynid.recording.columns import Channels
from dynid.recording.convert import Conversion
from dynid.recording.log_format import LogFormat
from dynid.recording.recording import Recording
from dynid.recording.run import NAMED_CONTACT, NAMED_WRENCH, Run
from dynid.recording.table import Table
from dynid.recording.units import TIME_UNITS
from dynid.recording.wrench import WrenchSensor
from dynid.robot.model import Robot

__all__ = ["Reading", "assemble"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """What a log is read with: the robot, the log format with its conversions, the named wrench sensors.

    `whole` is the robot before some of its joints were locked, if they were.
    """

    robot: Robot | None
    log: LogFormat
    conversion: Conversion
    sensors: Mapping[str, WrenchSensor]
    whole: Robot | None = None


def assemble(name: str, blocks: Sequence[Block], main: Table, joints: Channels, reading: Reading) -> Recording:
    """The recording of one log from its raw columns; `main` has the run numbers, if there are any."""
    lengths = {len(block.values): block for block in blocks}
    if len(lengths) > 1:
        counts = ", ".join(f"{b.signal} in {b.table.file} {n}" for n, b in lengths.items())
        raise InvalidShape(f"the signals of one run differ in their number of rows: {counts}")
    count, file, log = len(blocks[0].values), blocks[-1].table.file, reading.log
    start, stop, _ = slice(*(log.rows or (None, None))).indices(count)
    if stop - start < 2:
        left = f", of which rows={log.rows} leave {max(stop - start, 0)}" if log.rows is not None else ""
        raise TooFew(f"{file} has {count} rows{left}: at least two are needed")
    conversion, split = reading.conversion, log.bad_rows == "split"
    kept = []
    for block in blocks:
        values = block.values[start:stop]
        if block.signal != "t":
            values = conversion.to_si(block.signal, values, block.columns, block.table.file)
        kept.append(Block(block.table, block.signal, block.columns, values, start))
    bad = bad_rows(kept, refuse=not split)
    t = _time(kept, stop - start, reading)
    numbers = _run_numbers(main)
    pieces = segments(file, t, bad, None if numbers is None else numbers[start:stop], split)
    signals = conversion.to_joints({b.signal: np.where(bad[:, None], 0.0, b.values) for b in kept if b.signal != "t"})
    if kept[0].signal == "t" and conversion.time_unit() is None:
        good = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
        v = signals["v"][good] if "v" in signals else None
        check_unit(file, kept[0].columns[0], t[good], signals["q"][good], v)
    t = from_start(t, float(t[pieces[0].start]))
    runs = _runs(name, file, t, signals, pieces, reading.sensors)
    return Recording(_joint_names(joints, signals["q"].shape[1], reading.robot), runs)


def _runs(
    name: str,
    file: str,
    t: Array,
    signals: Mapping[str, Array],
    pieces: Sequence[slice],
    sensors: Mapping[str, WrenchSensor],
) -> tuple[Run, ...]:
    """One run per piece of the rows."""
    named = {s.removeprefix(NAMED_WRENCH): s for s in signals if s.startswith(NAMED_WRENCH)}
    touching = {s.removeprefix(NAMED_CONTACT): s for s in signals if s.startswith(NAMED_CONTACT)}
    unused = sorted(set(sensors) - set(named))
    if unused:
        raise UnknownName(f"{keyword('sensors')} names '{unused[0]}', of which no wrench is read", where=file)
    out = []
    for k, piece in enumerate(pieces):
        label = name if len(pieces) == 1 else f"{name}#{k + 1}"
        plain = {s: x[piece] for s, x in signals.items() if s not in {*named.values(), *touching.values()}}
        wrenches = {n: signals[s][piece] for n, s in named.items()}
        contacts = {n: signals[s][piece, 0] for n, s in touching.items()}
        out.append(Run(t[piece], name=label, wrenches=wrenches, sensors=sensors, contacts=contacts, **plain))
    return tuple(out)


def _run_numbers(table: Table) -> Array | None:
    """Number of the run of every row, where the file has a column for it."""
    if "run" not in table.names:
        return None
    runs = table.values(["run"])[:, 0]
    if not np.all(np.isfinite(runs)):
        raise DamagedFile("column 'run' must hold the number of the run in every row", where=table.file)
    return runs


def _time(blocks: Sequence[Block], count: int, reading: Reading) -> Array:
    """Seconds of every row; the clocks of several files of one run must agree."""
    clocks = [block for block in blocks if block.signal == "t"]
    unit = reading.conversion.time_unit()
    if not clocks:
        assert reading.log.rate is not None
        if unit is not None:
            raise ConflictingArguments(f"{named('units')} is given for t, but the times come from {keyword('rate')}")
        return np.arange(count) / reading.log.rate
    t = clocks[0].values[:, 0]
    for other in clocks[1:]:
        differs = np.flatnonzero(np.abs(other.values[:, 0] - t) > 0.01 * np.nanmedian(np.abs(np.diff(t))))
        if differs.size:
            row = int(differs[0]) + other.first
            raise Mismatch(
                f"the clocks of {clocks[0].table.file} and {other.table.file} differ at {other.table.place(row)}: "
                "bring them to one clock first"
            )
    return t / TIME_UNITS[unit or "s"]


def _joint_names(channels: Channels, count: int, robot: Robot | None) -> tuple[str, ...]:
    """Names of the joints, numbered from 1 where neither the robot nor the log names them."""
    if robot is not None:
        return robot.coordinates
    if channels.names:
        return channels.names
    return tuple(f"joint{k + 1}" for k in (channels.pick or range(count)))
