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
    MissingArgument,
    TooFew,
    UnknownName,
    keyword,
    named,
)
from dynid.recording.bad_rows import Block, bad_rows, segments
from dynid.recording.columns import Channels
from dynid.recording.convert import Conversion
from dynid.recording.log_format import LogFormat
from dynid.recording.names import named_unit
from dynid.recording.recording import Recording
from dynid.recording.run import NAMED_CONTACT, NAMED_WRENCH, Run
from dynid.recording.table import Table
from dynid.recording.units import TIME_UNITS
from dynid.recording.wrench import WrenchSensor
from dynid.robot.model import Robot

__all__ = ["Reading", "assemble", "check_unit", "from_start"]

Array = NDArray[np.float64]


# The clock of a recording: seconds from its beginning, and whether the unit that is assumed for it is plausible.


# Dynamics are not identified from samples 0.1 s apart; clocks in ms advance by 0.1 and more up to rates of 10 kHz.
_LONGEST_STEP = 0.1
# Clocks that start later than this many seconds (three years) count from 1970, not from power-on.
_UNIX = 1e8


def from_start(t: Array, start: float) -> Array:
    """Times (N,) since 1970 counted from `start` (s) instead; clocks that count from power-on stay as they are."""
    return t - start if abs(start) >= _UNIX else t


def check_unit(file: str, column: str, t: Array, q: Array, v: Array | None) -> None:
    """Raise DataError where a clock t (N,) cannot be in seconds; the message gives the unit that it seems to have.

    The unit follows from the name of the column, from velocities against positions where there are both, otherwise
    from the step.
    """
    named = named_unit("t", column)
    steps = np.diff(t)
    step = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
    if step == 0.0:
        return
    unit = _unit_from_motion(t, q, v) or (_unit_by_size(step) if step >= _LONGEST_STEP else "s")
    unit = named or unit
    if unit == "s":
        return
    raise MissingArgument(
        f"'{column}' advances by {step:.4g} per sample, which cannot be seconds: give {keyword('units', {'t': unit})}"
        f" if it is a time, or {keyword('time', None)} and {keyword('rate')} in Hz if it counts samples",
        where=file,
    )


def _unit_of(ratio: float) -> str | None:
    """The unit of a clock that advances this many times faster than seconds, within a factor of three."""
    for unit, count in TIME_UNITS.items():
        if abs(np.log10(ratio / count)) < 0.5:
            return unit
    return None


def _unit_by_size(step: float) -> str:
    """The unit by the step alone: sampling rates of robots lie between 10 Hz and 10 kHz."""
    return "ms" if step < 100 else "us" if step < 1e5 else "ns"


def _unit_from_motion(t: Array, q: Array, v: Array | None) -> str | None:
    """The unit in which the distance travelled fits the velocities; None where the motion does not decide.

    Distances are net ones over fifty intervals, so that noise of the samples averages out.
    """
    if v is None or len(t) < 100:
        return None
    edges = np.linspace(0, len(t) - 1, 51).astype(int)
    travelled = np.abs(np.diff(q[edges], axis=0))
    area = np.concatenate([np.zeros((1, q.shape[1])), np.cumsum((v[1:] + v[:-1]) / 2 * np.diff(t)[:, None], axis=0)])
    expected = np.abs(np.diff(area[edges], axis=0))
    if travelled.sum() < 1e-3 or expected.sum() == 0:
        return None
    return _unit_of(float(expected.sum() / travelled.sum()))


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
