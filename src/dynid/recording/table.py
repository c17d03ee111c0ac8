"""Table: the columns of one file under their names, whatever the format was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, InvalidShape
from dynid.limits import exceeded, file_limits

if TYPE_CHECKING:
    import polars

__all__ = ["NO_COLUMN", "Table", "Unusable", "shown"]

Array = NDArray[np.float64]

# In place of a column: a joint that has no encoder on its link.
NO_COLUMN = "none"


@dataclass(frozen=True)
class Unusable:
    """A column that contains no numbers, and why."""

    reason: str


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file by name.

    Attributes
    ----------
    file : str
        Name of the file, for messages.
    data : mapping
        Name to an array (N,) or (N, width), or to a column of text that is converted to numbers on demand. The columns
        of an array x of two dimensions are named x[0], x[1], ...
    lines : ndarray of int (N,) or None
        Line numbers of the rows of a text file.
    broken : mapping
        Row to the problem, for rows with too few or too many cells.
    header : bool
        Whether the columns have names; without a header they are named 0, 1, ...
    joints : tuple of str
        Joint names in the file.
    """

    file: str
    data: Mapping[str, Any]
    lines: NDArray[np.int64] | None = None
    broken: Mapping[int, str] = field(default_factory=dict)
    header: bool = True
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        limits, longest = file_limits(), max(map(len, self.data), default=0)
        count = sum(self.width(name) or 1 for name in self.data)
        if count > limits.columns:
            exceeded(self.file, f"{count} columns", "columns")
        if longest > limits.name_length:
            exceeded(self.file, f"a column whose name has {longest} characters", "name_length")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every single column, in the order of the file."""
        out: list[str] = []
        for name in self.data:
            width = self.width(name)
            out += [name] if width is None else [f"{name}[{k}]" for k in range(width)]
        return tuple(out)

    def width(self, name: str) -> int | None:
        """Number of columns of a two-dimensional array, None for a single column."""
        column = self.data[name]
        return column.shape[1] if isinstance(column, np.ndarray) and column.ndim == 2 else None

    def values(self, names: Sequence[str]) -> Array:
        """The named single columns (N, len(names)); cells that are not numbers are NaN, and so is no column."""
        known = {name: self._numbers(name) for name in names if name != NO_COLUMN}
        absent = np.full(len(next(iter(known.values()), ())), np.nan)
        columns = [known.get(name, absent) for name in names]
        lengths = {len(c): name for c, name in zip(columns, names, strict=True)}
        if len(lengths) > 1:
            found = ", ".join(f"{name} {n}" for n, name in lengths.items())
            raise InvalidShape(f"columns differ in their number of rows: {found}", where=self.file)
        return np.column_stack(columns)

    def text(self, name: str, row: int) -> str:
        """Text of a cell, for messages."""
        cell = self.data[name][row] if name in self.data else self._numbers(name)[row]
        return "" if cell is None else str(cell)

    def place(self, row: int) -> str:
        """Place of a row in the file, for messages: its line, or its number counted from 1."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def _numbers(self, name: str) -> Array:
        base, index = name, None
        if name not in self.data:
            base, _, tail = name.rpartition("[")
            index = int(tail.removesuffix("]"))
        column = self.data[base]
        if isinstance(column, Unusable):
            raise DamagedFile(f"'{base}' {column.reason}", where=self.file)
        if isinstance(column, np.ndarray):
            return np.asarray(column if index is None else column[:, index], dtype=float)
        return _series_numbers(column)


def _series_numbers(series: polars.Series) -> Array:
    import polars

    if series.dtype == polars.String:
        series = series.str.strip_chars()
    elif isinstance(series.dtype, polars.Datetime):
        return series.dt.epoch("ns").to_numpy().astype(float) / 1e9
    return series.cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy().astype(float)


def shown(names: Sequence[str], most: int = 12) -> str:
    """A short list of names for a message."""
    names = [n or "''" for n in names]
    if len(names) <= most:
        return ", ".join(names) or "none"
    return f"{', '.join(names[: most - 2])}, ... {names[-1]} ({len(names)} in all)"
