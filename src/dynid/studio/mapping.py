"""Which column of a log is which signal of which joint: assigned in blocks, and turned into a log format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dynid.errors import Duplicate, InvalidShape, InvalidValue, Mismatch, MissingArgument, UnknownName
from dynid.recording.log_fields import PerJoint
from dynid.recording.log_format import LogFormat
from dynid.recording.run import PARTS, SIGNALS
from dynid.recording.table import shown
from dynid.recording.units import TIME_UNITS, UNITS
from dynid.studio.previews import ColumnPreview

__all__ = ["CLOCK", "Assignment", "LogMapping", "assignments_of", "column_numbers", "listed_numbers", "units_of"]

CLOCK = "t"


@dataclass(frozen=True)
class Assignment:
    """What one column is.

    Attributes
    ----------
    signal : str
        "t" for the clock, or a signal of a recording.
    channel : str
        The joint, or the component of a wrench or of the base's motion; "" for the clock.
    unit : str
        Unit in the file; "" for SI.
    sign : int
        1 or -1.
    factor : float or None
        Factor of the values; of a current, torque per current (N m/A or N/A).
    """

    signal: str
    channel: str = ""
    unit: str = ""
    sign: int = 1
    factor: float | None = None


@dataclass(frozen=True, eq=False)
class LogMapping:
    """The columns of a log and what they are.

    Attributes
    ----------
    columns : tuple of ColumnPreview
        All columns.
    joints : tuple of str
        The joints of the whole robot, in its order.
    prismatic : frozenset of str
        Those of them that slide.
    locked : mapping of str to float
        Joints that are held, and where (rad or m).
    assigned : mapping of int to Assignment
        Number of a column to what it is; the others are not used.
    rest : LogFormat
        Fields that no column has: rate, rows, bad_rows, topic, motor_side, offset.
    """

    columns: tuple[ColumnPreview, ...]
    joints: tuple[str, ...]
    prismatic: frozenset[str] = frozenset()
    locked: Mapping[str, float] = field(default_factory=dict)
    assigned: Mapping[int, Assignment] = field(default_factory=dict)
    rest: LogFormat = field(default_factory=LogFormat)

    @property
    def free(self) -> tuple[str, ...]:
        """Joints that are not locked."""
        return tuple(joint for joint in self.joints if joint not in self.locked)

    def channels(self, signal: str) -> tuple[str, ...]:
        """Joints or components that a signal has one column for."""
        return () if signal == CLOCK else PARTS.get(signal, self.joints)

    # -- changes ---------------------------------------------------------------------------------

    def assign(
        self,
        numbers: Sequence[int],
        signal: str,
        first: str = "",
        unit: str = "",
        sign: int = 1,
        factors: Sequence[float] = (),
    ) -> LogMapping:
        """These columns as one signal, of one joint after the other in the order of the robot.

        Parameters
        ----------
        numbers : sequence of int
            Columns in the order of the joints.
        signal : str
            "t", a signal, or "" for columns that are not used.
        first : str
            Joint or component of the first column; "" for the first that is not locked.
        unit, sign : str, int
            Of all these columns.
        factors : sequence of float
            None, one for all columns, or one per column.
        """
        unknown = [k for k in numbers if not 0 <= k < len(self.columns)]
        if not numbers or unknown:
            wrong = "choose columns first" if not numbers else f"there is no column {unknown[0]}"
            raise UnknownName(f"{wrong}: the log has columns 0 to {len(self.columns) - 1}", "columns")
        if not signal:
            return replace(self, assigned={k: a for k, a in self.assigned.items() if k not in numbers})
        if signal != CLOCK and signal not in SIGNALS:
            raise UnknownName(f"signal '{signal}' is unknown: use {CLOCK}, {', '.join(SIGNALS)}", "signal")
        if len(factors) not in (0, 1, len(numbers)):
            raise InvalidShape(f"{len(factors)} gains for {len(numbers)} columns: give one, or one per column", "gain")
        if unit and unit not in units_of(signal) and not unit.startswith("counts:"):
            raise UnknownName(f"unit '{unit}' of {signal} is unknown: use {', '.join(units_of(signal))}", "unit")
        for k in numbers:
            own = self.columns[k].signal
            if own and signal not in (own, CLOCK):
                raise Mismatch(
                    f"'{self.columns[k].file}' is the file of {own}: its columns cannot be {signal}", "columns"
                )
        targets = self._targets(signal, first, len(numbers))
        each: list[float | None] = (
            [*factors] * len(numbers) if len(factors) == 1 else [*factors] or [None] * len(numbers)
        )
        new = {
            k: Assignment(signal, channel, unit, sign, factor)
            for k, channel, factor in zip(numbers, targets, each, strict=True)
        }
        taken = {(a.signal, a.channel) for a in new.values()}
        kept = {k: a for k, a in self.assigned.items() if (a.signal, a.channel) not in taken and k not in new}
        return replace(self, assigned=dict(sorted((kept | new).items())))

    def _targets(self, signal: str, first: str, count: int) -> list[str]:
        """The joints or components of as many columns, from the first on."""
        if signal == CLOCK:
            if count != 1:
                raise InvalidValue(f"the clock is one column, not {count}", "time")
            return [""]
        names = self.channels(signal)
        # Locked joints are passed over, unless the block starts at one of them or needs them all.
        open_ones = [n for n in names if n not in self.locked]
        listed = list(names) if first in self.locked or (not first and count == len(names)) else open_ones
        if first and first not in listed:
            raise UnknownName(f"{signal} has no joint or component '{first}': it has {shown(names)}", "joints")
        start = listed.index(first) if first else 0
        if start + count > len(listed):
            where = f" from {first} on" if first else ""
            raise Mismatch(
                f"{count} columns for {len(listed) - start} joints or components of {signal}{where}", "columns"
            )
        return listed[start : start + count]

    def lock(self, held: Mapping[str, float]) -> LogMapping:
        """Other locked joints."""
        unknown = [joint for joint in held if joint not in self.joints]
        if unknown:
            raise UnknownName(f"no joint named '{unknown[0]}': the robot has {shown(self.joints)}", "joints")
        if len(held) == len(self.joints):
            raise InvalidValue("all joints are locked: leave at least one free", "lock")
        return replace(self, locked=dict(held))

    def without_position(self) -> list[str]:
        """Joints that no column of positions belongs to."""
        known = {a.channel for a in self.assigned.values() if a.signal == "q"}
        return [joint for joint in self.joints if joint not in known]

    # -- the log format --------------------------------------------------------------------------

    def log_format(self) -> LogFormat:
        """How the log is read, every column by its name or number; DataError where something is missing."""
        by_signal: dict[str, dict[str, int]] = {}
        for number, what in self.assigned.items():
            by_signal.setdefault(what.signal, {})[what.channel] = number
        if "q" not in by_signal:
            raise MissingArgument("no column is assigned to q: positions are needed")
        fields: dict[str, Any] = {
            name: getattr(self.rest, name)
            for name in ("rows", "bad_rows", "topic", "motor_side", "offset")
            if name in self.rest.model_fields_set
        }
        clock = by_signal.pop(CLOCK, {}).get("")
        units: dict[str, Any] = {}
        if clock is not None:
            fields["time"] = self.columns[clock].reference
            if self.assigned[clock].unit:
                units[CLOCK] = self.assigned[clock].unit
        elif self.rest.rate is None:
            raise MissingArgument("no column is assigned to the clock: assign one, or give the rate in Hz", "time")
        else:
            fields |= {"time": None, "rate": self.rest.rate}
        chosen = {signal: self._in_order(signal, by_signal[signal]) for signal in SIGNALS if signal in by_signal}
        fields["columns"] = {s: tuple(self.columns[k].reference for k in ks.values()) for s, ks in chosen.items()}
        fields["units"] = units | self._units(chosen)
        fields["sign"] = _common(
            {s: {c: float(self.assigned[k].sign) for c, k in ks.items()} for s, ks in chosen.items()}
        )
        scales = {s: {c: self._factor(k) for c, k in ks.items()} for s, ks in chosen.items() if s != "current"}
        fields["scale"] = _common(scales)
        if "current" in chosen and any(self.assigned[k].factor is not None for k in chosen["current"].values()):
            fields["gain"] = self._gain(chosen["current"])
        return LogFormat(**{name: value for name, value in fields.items() if value not in ({}, ())})

    def _in_order(self, signal: str, found: Mapping[str, int]) -> dict[str, int]:
        """The columns of a signal in the order of the joints that are not locked, or of its components."""
        needed = PARTS.get(signal, self.free)
        missing = [channel for channel in needed if channel not in found]
        if missing:
            advice = "assign one" if signal in PARTS else "assign one, or lock the joint"
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise MissingArgument(f"{signal} has no column for '{missing[0]}'{more}: {advice}", "columns")
        return {channel: found[channel] for channel in needed}

    def _factor(self, number: int) -> float:
        factor = self.assigned[number].factor
        return 1.0 if factor is None else factor

    def _gain(self, columns: Mapping[str, int]) -> PerJoint:
        missing = [c for c, k in columns.items() if self.assigned[k].factor is None]
        if missing:
            raise MissingArgument(
                f"the current of '{missing[0]}' has no gain: give one for every current, or for none", "gain"
            )
        gains = tuple(self._factor(k) for k in columns.values())
        return gains[0] if len(set(gains)) == 1 else gains

    def _units(self, chosen: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        """Units of the signals that have one other than SI; per joint where they differ."""
        out: dict[str, Any] = {}
        for signal, columns in chosen.items():
            if not any(self.assigned[k].unit for k in columns.values()):
                continue
            units = [self.assigned[k].unit or self._si(signal, channel) for channel, k in columns.items()]
            out[signal] = units[0] if len(set(units)) == 1 else tuple(units)
        return out

    def _si(self, signal: str, joint: str) -> str:
        return next(iter(UNITS[signal][joint in self.prismatic]))


def _common(values: Mapping[str, Mapping[str, float]]) -> dict[str, PerJoint]:
    """Numbers per signal: left out where all are one, one number where all are equal, otherwise one per joint."""
    out: dict[str, PerJoint] = {}
    for signal, found in values.items():
        numbers = tuple(found.values())
        if any(x != 1.0 for x in numbers):
            out[signal] = numbers[0] if len(set(numbers)) == 1 else numbers
    return out


def assignments_of(log: LogFormat, columns: Sequence[ColumnPreview], free: Sequence[str]) -> dict[int, Assignment]:
    """What a log format with resolved columns says about every column.

    Parameters
    ----------
    log : LogFormat
        Its `columns` are names, in the order of the joints that are not locked.
    columns : sequence of ColumnPreview
        The columns of the log.
    free : sequence of str
        The joints that are not locked.
    """
    numbers = {(c.signal, c.name): c.number for c in columns}
    several = any(c.signal for c in columns)
    out: dict[int, Assignment] = {}
    if log.time is not None:
        files = [CLOCK, "q", *(c.signal for c in columns)] if several else [""]
        found = next((numbers[f, str(log.time)] for f in files if (f, str(log.time)) in numbers), None)
        if found is not None:
            out[found] = Assignment(CLOCK, unit=str(log.units.get(CLOCK, "")))
    for signal, spec in (log.columns or {}).items():
        if signal not in SIGNALS:
            continue
        listed = [spec] if isinstance(spec, str | int) else list(spec)
        channels = PARTS.get(signal, tuple(free))
        for k, (name, channel) in enumerate(zip(listed, channels, strict=False)):
            number = numbers.get((signal if several else "", str(name)))
            if number is None:
                continue
            factor = log.gain if signal == "current" else log.scale.get(signal)
            sign = log.sign.get(signal, 1.0)
            out[number] = Assignment(
                signal, channel, str(_one(log.units.get(signal, ""), k)), int(_one(sign, k)), _one(factor, k)
            )
    return dict(sorted(out.items()))


def _one(value: Any, k: int) -> Any:
    """The entry of a joint of a value for all joints or per joint."""
    return value[k] if isinstance(value, tuple | list) else value


def units_of(signal: str) -> list[str]:
    """Units that a column of a signal may have, SI first."""
    if signal == CLOCK:
        return list(TIME_UNITS)
    revolute, prismatic = UNITS.get(signal, ({}, {}))
    return list({**revolute, **prismatic})


def column_numbers(text: str) -> list[int]:
    """Numbers of columns from text such as "0, 3, 7-12"."""
    out: list[int] = []
    for part in filter(None, (x.strip() for x in text.split(","))):
        match = re.fullmatch(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", part)
        if match is None:
            raise InvalidValue(f"'{part[:40]}' names no columns: write numbers and ranges such as 1-6, 13", "columns")
        start, stop = int(match[1]), int(match[2] or match[1])
        if stop < start or stop - start > 10_000:
            raise InvalidValue(f"'{part}' is no range of columns: the first number is the smaller one", "columns")
        out += range(start, stop + 1)
    if len(set(out)) != len(out):
        raise Duplicate(f"'{text[:60]}' names a column twice", "columns")
    return out


def listed_numbers(numbers: Sequence[int]) -> str:
    """Numbers of columns as text, the inverse of `column_numbers`."""
    parts: list[str] = []
    start: int | None = None
    for k, number in enumerate(numbers):
        start = number if start is None else start
        if k + 1 == len(numbers) or numbers[k + 1] != number + 1:
            parts.append(str(start) if start == number else f"{start}-{number}")
            start = None
    return ", ".join(parts)
