"""Lines of a growing text log as samples: the columns, units and conversions of a `LogFormat`, line by line."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.kernels.stream import LARGEST
from dynid.errors import DamagedFile, MissingData
from dynid.recording.convert import Conversion
from dynid.recording.load import load_recording
from dynid.recording.log_format import LogFormat
from dynid.recording.tables import read_text
from dynid.recording.units import TIME_UNITS
from dynid.robot.model import Robot

__all__ = ["LineFault", "LineReader", "Samples"]

Array = NDArray[np.float64]

# Rows from which columns, units and separator are recognised.
_FIRST_ROWS = 20


class LineFault(StrEnum):
    """Why a line was left out: wrong number of CELLS, a cell that is no NUMBER, or a VALUE not finite or beyond 1e9."""

    CELLS = "number of cells"
    NUMBER = "not a number"
    VALUE = "not finite or beyond 1e9"


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of joint-side SI signals: t (N,), q and torque (N, joint), v (N, joint) or None."""

    t: Array
    q: Array
    torque: Array
    v: Array | None


@dataclass(frozen=True)
class _Layout:
    """Where the signals are: separator, decimal comma, number of cells, and columns of the clock and the signals."""

    separator: str | None
    comma: bool
    width: int
    clock: int | None
    columns: dict[str, tuple[int, ...]]
    names: dict[str, tuple[str, ...]]
    conversion: Conversion


class LineReader:
    """Samples from the lines of a log that grows.

    The first line may name the columns; lines that start with # or % are comments. Columns are recognised from the
    first twenty rows, as for `load_recording`. A line that cannot be read is counted in `faults` and left out.

    Parameters
    ----------
    robot : Robot
        The robot whose joints the columns belong to.
    log : LogFormat, optional
        How the log is read; its rows are not used.
    whole : Robot, optional
        The robot before `Robot.locked`.
    """

    def __init__(self, robot: Robot, log: LogFormat | None = None, *, whole: Robot | None = None) -> None:
        self.robot, self.log, self.whole = robot, (log or LogFormat()).replaced({"rows": None}), whole
        self.faults: Counter[LineFault] = Counter()
        self.last_fault = ""
        self.lines = 0
        self._head: list[str] = []
        self._layout: _Layout | None = None
        self._rows = 0

    def feed(self, lines: Sequence[str], *, last: bool = False) -> Samples | None:
        """Read lines; returns their samples, or None as long as the columns are not known.

        Parameters
        ----------
        lines : sequence of str
            Complete lines.
        last : bool, default False
            No more lines follow, so that the columns must be recognised from what there is.

        Raises
        ------
        DataError
            If the columns cannot be recognised, or the log has no torques.
        """
        kept = [line for line in map(str.strip, lines) if line and not line.startswith(("#", "%"))]
        if self._layout is None:
            self._head += kept
            if len(self._head) <= _FIRST_ROWS and not (last and len(self._head) > 2):
                return None
            self._layout = self._recognised()
            kept, self._head = self._head, []
        return self._samples(kept)

    def _recognised(self) -> _Layout:
        """The layout of the log, from its first rows as a file of their own."""
        first = self._head[0]
        separator = _separator(self._head)
        width = len(_cells(first, separator))
        comma = separator == ";" or (separator == "\t" and not any("." in x for x in self._head[1:]))
        read = [(x, _numbers(_cells(x, separator), width, comma)) for x in self._head[1:]]
        good = [x for x, numbers in read if numbers is not None and np.all(np.isfinite(numbers))][:_FIRST_ROWS]
        if len(good) < 2:
            raise DamagedFile(f"the first {len(self._head)} lines of the log are no rows of numbers")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stream.csv"
            path.write_text("\n".join([first, *good]) + "\n", encoding="utf-8")
            table = read_text(path)
            found = load_recording(path, self.robot, log=self.log, whole=self.whole).log_format
        assert found is not None and found.columns is not None
        used: list[str] = [s for s in ("q", "v", "torque", "current") if s in found.columns]
        if "torque" not in used and ("current" not in used or found.gain is None):
            raise MissingData("the log has no torques: name their columns, or give the gain of the currents")
        names: dict[str, tuple[str, ...]] = {s: tuple(map(str, found.columns[s])) for s in used}  # type: ignore[arg-type]
        order = list(table.names)
        return _Layout(
            separator=separator,
            comma=comma,
            width=width,
            clock=None if found.time is None else order.index(str(found.time)),
            columns={s: tuple(order.index(x) for x in own) for s, own in names.items()},
            names=names,
            conversion=Conversion(self.robot, found),
        )

    def _samples(self, lines: Sequence[str]) -> Samples | None:
        layout = self._layout
        assert layout is not None
        rows, numbers = [], []
        for line in lines:
            self.lines += 1
            cells = _cells(line, layout.separator)
            if self.lines == 1 and _numbers(cells, layout.width, layout.comma) is None:
                continue  # the header
            if len(cells) != layout.width:
                self._fault(LineFault.CELLS, f"{len(cells)} cells, not {layout.width}")
                continue
            row = _numbers(cells, layout.width, layout.comma)
            if row is None:
                self._fault(LineFault.NUMBER, f"'{line[:40]}'")
                continue
            rows.append(row)
            numbers.append(self.lines)
        if not rows:
            return None
        return self._converted(np.array(rows), numbers)

    def _converted(self, rows: Array, numbers: Sequence[int]) -> Samples | None:
        layout = self._layout
        assert layout is not None
        conversion, used = layout.conversion, [*(c for own in layout.columns.values() for c in own)]
        # The clock is not among them: time stamps in ns reach 2e18.
        good = np.all(np.abs(rows[:, used]) <= LARGEST, axis=1)
        if layout.clock is not None:
            good &= np.isfinite(rows[:, layout.clock])
        for k in np.flatnonzero(~good).tolist():
            self._fault(LineFault.VALUE, "a value is not finite or beyond 1e9", numbers[k])
        rows = rows[good]
        if not len(rows):
            return None
        if layout.clock is None:
            rate = conversion.log.rate
            assert rate is not None
            t = (self._rows + np.arange(len(rows))) / rate
        else:
            t = rows[:, layout.clock] / TIME_UNITS[conversion.time_unit() or "s"]
        self._rows += len(rows)
        signals = {
            s: conversion.to_si(s, rows[:, own], layout.names[s], "the log") for s, own in layout.columns.items()
        }
        joint = conversion.to_joints(signals)
        return Samples(t, joint["q"], joint["torque"], joint.get("v"))

    def _fault(self, fault: LineFault, text: str, number: int | None = None) -> None:
        """Count a line that was left out; its number counts lines that are neither empty nor comments."""
        self.faults[fault] += 1
        self.last_fault = f"line {self.lines if number is None else number}: {text}"


def _separator(lines: Sequence[str]) -> str | None:
    """Tab, semicolon or comma, whichever comes first in most lines; None for blanks."""
    for mark in ("\t", ";", ","):
        if 2 * sum(mark in line for line in lines) > len(lines):
            return mark
    return None


def _cells(line: str, separator: str | None) -> list[str]:
    cells = line.split(separator) if separator is not None else re.split(r"[ \t]+", line)
    return [cell.strip().strip('"') for cell in cells]


def _numbers(cells: Sequence[str], width: int, comma: bool) -> list[float] | None:
    """The cells as numbers, nan for an empty one; None where one is neither or there are too many."""
    if len(cells) != width:
        return None
    try:
        return [float((cell.replace(",", ".") if comma else cell) or "nan") for cell in cells]
    except ValueError:
        return None
