"""Which columns of a table belong to which signal: given by the caller, or recognised by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    DataError,
    Duplicate,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    MissingJoints,
    UnknownName,
    keyword,
)
from dynid.recording.names import Group, groups, is_time, joint_first, tokens
from dynid.recording.run import NAMED_CONTACT, NAMED_WRENCH, SIGNALS, WIDTH, column_names
from dynid.recording.table import NO_COLUMN, Table, shown

__all__ = [
    "Channels",
    "Spec",
    "guess",
    "guess_one",
    "guess_time",
    "is_own_file",
    "named_signals",
    "resolve",
    "resolve_time",
]

# Rows by which commands are told from velocities, the fewest of them, and the share of a command that its position
# explains.
_SAMPLES, _FEWEST, _ALIKE = 20_000, 20, 0.8

Spec = str | int | Sequence[str | int]


@dataclass(frozen=True)
class Channels:
    """The joints, motors or components that a signal has one column each for.

    Attributes
    ----------
    names : tuple of str
        Names to look for in the column names.
    pick : tuple of int or None
        Indices (from 0) of the channels to use, where the file has more.
    count : int or None
        Number of channels, if known.
    what : str
        The word for the channels in messages.
    free : tuple of int
        Indices (from 0) of the channels among the joints of a robot of which some are locked; empty for none locked.
    total : int
        Number of joints of that robot. As many columns without names are those of all its joints.
    """

    names: tuple[str, ...] = ()
    pick: tuple[int, ...] | None = None
    count: int | None = None
    what: str = "joints"
    free: tuple[int, ...] = ()
    total: int = 0

    def numbers(self) -> Sequence[int] | None:
        """Indices (from 0) of the channels, None where their number is unknown."""
        return self.pick if self.pick is not None else None if self.count is None else range(self.count)

    def without_locked(self, columns: list[str]) -> list[str]:
        """The columns of the channels, where there are as many as joints of a robot of which some are locked."""
        return [columns[k] for k in self.free] if self.free and len(columns) == self.total else columns


def resolve(table: Table, signal: str, spec: Spec, channels: Channels) -> list[str]:
    """Columns that `spec` of the caller selects, in the order of the channels."""
    if isinstance(spec, str) and "{" in spec:
        columns = _expand(table, signal, spec, channels)
    elif isinstance(spec, str | int | np.integer):
        columns = channels.without_locked(_some(table, signal, spec))
        if channels.pick is not None and len(columns) > len(channels.pick):
            columns = _picked(table, signal, columns, channels.pick)
    else:
        columns = channels.without_locked([name for part in spec for name in _some(table, signal, part)])
    if channels.count is not None and len(columns) != channels.count:
        raise Mismatch(
            f"{signal} has {len(columns)} columns ({shown(columns, 8)}), expected {channels.count} {channels.what}",
            "columns",
            where=table.file,
        )
    return columns


def _some(table: Table, signal: str, part: str | int) -> list[str]:
    """Columns of one name, one index, a range of indices or a range of an array."""
    names, text = table.names, str(part)
    if signal == "link_q" and text == NO_COLUMN:
        return [NO_COLUMN]
    if isinstance(part, int | np.integer):
        if not -len(names) <= part < len(names):
            raise MissingData(
                f"{signal} needs column {part}, the file has {len(names)} columns", "columns", where=table.file
            )
        return [names[part]]
    if text in table.data:
        width = table.width(text)
        return [text] if width is None else [f"{text}[{k}]" for k in range(width)]
    if text in names:
        return [text]
    match = re.fullmatch(r"(.*?)\[?(\d*):(\d*)\]?", text)
    if match:
        inside = _some(table, signal, match[1]) if match[1] else list(names)
        start, stop = (int(x) if x else None for x in match.group(2, 3))
        if (stop or 0) > len(inside) or not inside[start:stop]:
            raise MissingData(
                f"{signal} needs columns {text}, the file has {len(inside)} of them", "columns", where=table.file
            )
        return inside[start:stop]
    raise UnknownName(f"{table.file} has no column '{text}' for {signal}, it has {shown(names)}", "columns")


def _expand(table: Table, signal: str, pattern: str, channels: Channels) -> list[str]:
    numbers = channels.numbers()
    labelled = "{joint" in pattern or "{part" in pattern
    if labelled and len(channels.names) != (channels.count or -1):
        raise MissingArgument(f"{signal}: the pattern '{pattern}' needs a robot or names in {keyword('joints')}")

    word = "part" if channels.what == "columns" else "joint"

    def name(k: int, label: str) -> str:
        try:
            return pattern.format(i=k + 1, k=k, **{word: label})
        except (KeyError, IndexError, ValueError):
            raise InvalidValue(
                f"{signal}: the pattern '{pattern}' may contain {{i}}, {{k}} or {{{word}}} only", "columns"
            ) from None

    if numbers is None:
        count = 0
        while name(count, "") in table.names and count < len(table.names):
            count += 1
        numbers = range(count)
    if channels.free and not labelled and all(name(k, "") in table.names for k in range(channels.total)):
        numbers = channels.free
    labels = channels.names if channels.names and labelled else [""] * len(numbers)
    columns = [name(k, label) for k, label in zip(numbers, labels, strict=True)]
    missing = [c for c in columns if c not in table.names] or ([] if columns else [name(0, "")])
    if missing:
        raise UnknownName(
            f"{table.file} has no column '{missing[0]}' for {signal}, it has {shown(table.names)}", "columns"
        )
    return columns


def _picked(table: Table, signal: str, columns: Sequence[str], pick: Sequence[int]) -> list[str]:
    if max(pick) >= len(columns) or min(pick) < 0:
        raise Mismatch(
            f"{keyword('joints')} selects {signal}[{max(pick)}], the file has {len(columns)} of them", where=table.file
        )
    return [columns[k] for k in pick]


def resolve_time(table: Table, time: str | int) -> str:
    """The column of the clock that the caller names."""
    columns = _some(table, "t", time)
    if len(columns) != 1:
        raise InvalidValue(f"{keyword('time', time)} selects {len(columns)} columns, not one", where=table.file)
    return columns[0]


def guess_time(table: Table, joints: Sequence[str] = (), one_signal: bool = False) -> str | None:
    """The column whose name is that of a clock.

    With a joint t, a column t is the clock unless there is another one. In a file of one signal it is the joint if
    every joint has a column of its name.
    """
    found = [name for name in table.names if is_time(name)]
    known = {tokens(joint) for joint in joints}
    clocks = [name for name in found if tokens(name) not in known]
    if clocks or (one_signal and known <= {tokens(name) for name in table.names}):
        found = clocks
    if len(found) > 1:
        raise MissingArgument(
            f"several columns may be the time ({shown(found)}): choose with {keyword('time')}", where=table.file
        )
    return found[0] if found else None


def guess(table: Table, channels: dict[str, Channels], clock: str | None = None) -> dict[str, list[str]]:
    """Columns of every signal that can be recognised by the names of a table."""
    out = _own(table, channels)
    if "q" in out and is_own_file(table):
        return out
    if not table.header:
        raise MissingArgument(
            f"{table.file} has {len(table.names)} columns and no header: say which are which, "
            f"such as {keyword('columns', {'q': '1:7', 'torque': '13:19'})}",
            "columns",
        )
    first = joint_first(table.names, channels["q"].names)
    if first:  # q_v then is the velocity of joint q, not the position of joint v
        out = {signal: columns for signal, columns in out.items() if channels[signal].what == "columns"}
    taken = {name for columns in out.values() for name in columns}
    left = [name for name in table.names if name not in taken]
    for signal in ("q", "v", "a", "torque", "current", "reference", "link_q"):
        wanted = channels[signal]
        if signal in out:
            continue
        every = _groups(table, left, wanted, clock, first=first)
        found = [g for g in every if g.signal == signal]
        if signal == "q" and not found:  # the only positions are those of the links
            found = [g for g in every if g.signal == "link_q"]
        if signal == "link_q":
            found = [_with_gaps(g, wanted) for g in found if not set(g.columns.values()) & set(out.get("q", ()))]
        columns = _choose(table, signal, found, wanted)
        if columns:
            out[signal] = columns
            if signal == "q" and wanted.count is None:
                channels = {s: Channels(c.names, c.pick, len(columns), c.what) for s, c in channels.items()}
    if "q" not in out:
        raise MissingArgument(
            f"no column is named as a position: give {keyword('columns')}, it has {shown(table.names)}",
            where=table.file,
        )
    if "v" in out and "reference" not in out and _are_commands(table, out["q"], out["v"]):
        out["reference"] = out.pop("v")
    return out


def _are_commands(table: Table, positions: Sequence[str], others: Sequence[str]) -> bool:
    """Whether columns with the name of a velocity are positions that the joints follow: qd may be either.

    A velocity is the derivative of a position, which for most motion is unrelated to the position itself.
    """
    q, x = table.values(positions)[:_SAMPLES], table.values(others)[:_SAMPLES]
    good = np.isfinite(q).all(axis=1) & np.isfinite(x).all(axis=1)
    if good.sum() < _FEWEST:
        return False
    q, x = q[good], x[good]
    moving = (np.ptp(q, axis=0) > 0) & (np.ptp(x, axis=0) > 0)
    if not moving.any():
        return False
    alike, derived = (_explained(y[:, moving], x[:, moving]) for y in (q, np.gradient(q, axis=0)))
    return bool(np.median(alike) > _ALIKE and np.median(alike) > np.median(derived))


def _explained(y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the variance of each column of x that the same column of y explains."""
    y, x = _standardised(y), _standardised(x)
    return np.asarray(np.mean(x * y, axis=0) ** 2)


def _standardised(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns without their means and of standard deviation one, or zero; also where squares would overflow."""
    x = x / np.maximum(np.abs(x).max(axis=0), 1e-300)
    x = x - x.mean(axis=0)
    return x / np.maximum(x.std(axis=0), 1e-300)


def _with_gaps(group: Group, channels: Channels) -> Group:
    """The columns of link encoders, with no column for joints that have none."""
    expected: Sequence[str | int]
    if group.numbered:
        count = channels.total or channels.count or len(group.columns)
        start = 0 if 0 in group.columns else 1
        expected = range(start, start + count)
    else:
        expected = channels.names
    if None in group.columns or not set(group.columns) <= set(expected):
        return group
    return Group(group.words, {key: group.columns.get(key, NO_COLUMN) for key in expected}, group.doubles)


def guess_one(table: Table, signal: str, channels: Channels, clock: str | None) -> list[str]:
    """Columns of the one signal that a file contains."""
    own = _own(table, {signal: channels})
    if own:
        return own[signal]
    names = [name for name in table.names if name != clock]
    found = _groups(table, names, channels, clock, bare=True, first=joint_first(names, channels.names))
    named = [g for g in found if g.signal == signal]
    plain = [g for g in found if g.signal is None]
    # Positions that are planned have no others beside them.
    planned = [g for g in found if signal == "q" and g.signal == "reference"]
    columns = _choose(table, signal, named or plain or planned, channels)
    if columns is None:
        raise MissingArgument(
            f"no columns for {signal} found: give {keyword('columns')}, it has {shown(names)}", where=table.file
        )
    return columns


def _groups(
    table: Table,
    names: Sequence[str],
    channels: Channels,
    clock: str | None,
    *,
    bare: bool = False,
    first: bool | None,
) -> list[Group]:
    try:
        return groups(names, channels.names, bare=bare, clock=clock, first=first)
    except DataError as error:
        raise error.at(table.file) from None


def is_own_file(table: Table) -> bool:
    """Whether the file was written by `Recording.to_csv` or `Recording.to_parquet`."""
    return "run" in table.names and "t" in table.names


def _own(table: Table, channels: dict[str, Channels]) -> dict[str, list[str]]:
    """Columns under the names that `Recording.to_csv` gives them."""
    out = {}
    named = [s for s in channels if s.startswith((NAMED_WRENCH, NAMED_CONTACT))]
    for signal in (*SIGNALS, *named):
        if signal not in channels or not (channels[signal].names or signal in WIDTH or signal in named):
            continue
        columns = column_names(signal, channels[signal].names)
        if all(name in table.names for name in columns):
            out[signal] = columns
    return out


def named_signals(table: Table) -> list[str]:
    """Signals of named wrench sensors and contacts, under the names that `Recording.to_csv` gives them."""
    first = "_fx"
    wrenches = [n.removesuffix(first) for n in table.names if n.startswith(NAMED_WRENCH) and n.endswith(first)]
    return wrenches + [n for n in table.names if n.startswith(NAMED_CONTACT)]


def _choose(table: Table, signal: str, found: list[Group], channels: Channels) -> list[str] | None:
    """Columns of the one group that fits; an error where several do, or where the only ones have the wrong size."""
    if channels.pick is not None:
        fitting = [g for g in found if len(g.columns) > max(channels.pick)] or found
    else:
        sizes = {channels.count, channels.total} if channels.free else {channels.count}
        fitting = [g for g in found if channels.count is None or len(g.columns) in sizes]
    if signal == "reference" and len(fitting) > 1:
        # Not every command is a position: of several, one that says so, or none.
        fitting = [g for g in fitting if g.plain]
        if len(fitting) > 1:
            return None
    if len(fitting) > 1:
        options = " or ".join(map(str, fitting))
        raise MissingArgument(
            f"{signal} may be {options}: say which with {keyword('columns')}, for all signals", where=table.file
        )
    if not fitting:
        _refuse_size(table, signal, found, channels)
        return None
    group = fitting[0]
    if group.doubles:
        raise Duplicate(f"{signal} has two columns for one joint: {shown(group.doubles)}", where=table.file)
    if None in group.columns:
        return list(group.columns.values())
    if not group.numbered:
        if any(n not in group.columns for n in channels.names):
            raise _missing_joints(table, signal, group, channels)
        return [group.columns[n] for n in channels.names]
    numbers = sorted(key for key in group.columns if isinstance(key, int))
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > 1:
        raise MissingArgument(
            f"{signal} is numbered {shown([str(k) for k in numbers])}: list its columns in {keyword('columns')}",
            where=table.file,
        )
    columns = [group.columns[k] for k in numbers]
    if channels.pick is None:
        return channels.without_locked(columns)
    return _picked(table, signal, columns, channels.pick)


def _refuse_size(table: Table, signal: str, found: list[Group], channels: Channels) -> None:
    """No group has the right size: an error for positions and for signals with several columns, else nothing."""
    several = [g for g in found if len(g.columns) > 1] or (found if signal == "q" else [])
    if not several:
        return
    group = several[0]
    if any(n in group.columns for n in channels.names):
        raise _missing_joints(table, signal, group, channels)
    raise Mismatch(
        f"{signal} has {len(group.columns)} columns ({group}), expected {channels.count} "
        f"{channels.what}: choose with {keyword('joints')} or {keyword('columns')}",
        where=table.file,
    )


def _missing_joints(table: Table, signal: str, group: Group, channels: Channels) -> DataError:
    """What to say of joints of the robot that have no column."""
    missing = [n for n in channels.names if n not in group.columns]
    joints = f"joint '{missing[0]}'" if len(missing) == 1 else f"joint '{missing[0]}' and {len(missing) - 1} more"
    what = f"{table.file}: {signal} has no column for {joints}, it has {shown(table.names)}"
    if signal != "q":
        return MissingData(what)
    still = keyword("lock", ",".join(missing))
    return MissingJoints(f"{what}; joints that do not move are left out with {still}", missing)
