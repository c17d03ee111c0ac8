"""Tables in files: text with the usual separators, with or without a header, and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.limits import exceeded, file_limits
from dynid.recording.files import damage, read_bytes
from dynid.recording.parquet import parquet_frame
from dynid.recording.table import Table, Unusable

__all__ = ["parquet_columns", "read_parquet", "read_text"]

_COMMENTS = (ord("#"), ord("%"))
_NEWLINE = ord("\n")


def read_text(path: Path) -> Table:
    """Table of a text file; separator, header and decimal comma are detected.

    Lines that start with # or % are comments; the last one before the numbers may be the header.
    """
    lines = _Lines.of(_plain(read_bytes(path)), path.name)
    separator = lines.separator()
    if separator == " ":
        lines = _Lines.of(re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", lines.text)), path.name)
        separator = "\t"
    _check_columns(int(lines.count(lines.data[:1], separator)[0]), path.name)
    first = lines.cells(lines.data[0], separator)
    header = _looks_like_header(first)
    if header and len(lines.data) == 1:
        raise DataError(f"{path.name} has a header and no rows")
    data = lines.data[1:] if header else lines.data
    cells = lines.count(data, separator)
    width = Counter(cells.tolist()).most_common(1)[0][0]
    _check_columns(width, path.name)
    names = first if header else lines.comment_header(separator, width)
    body = lines.body(data)
    if separator == ";" or (separator == "\t" and b"." not in body):
        body = body.replace(b",", b".")
    frame = _frame(body, separator, width, path.name)
    if frame.height != len(data):
        raise DataError(f"{path.name}: {len(data)} lines read as {frame.height} rows, check its quotation marks")
    names = _column_names(names, frame, path.name)
    broken = {}
    if b'"' not in body:
        broken = {int(k): f"has {cells[k]} cells, the other lines {width}" for k in np.flatnonzero(cells != width)}
    columns = dict(zip(names or map(str, range(width)), frame.get_columns(), strict=True))
    columns, joints = _by_joint_name(columns, path.name)
    return Table(path.name, columns, data + 1, broken, names is not None, joints)


def _check_columns(count: int, file: str) -> None:
    """Refuse a table with more columns than the limit."""
    if count > file_limits().columns:
        exceeded(file, f"{count} columns", "columns")


def _frame(body: bytes, separator: str, width: int, file: str) -> Any:
    """All columns as numbers, or as text where one of them is not."""
    import polars

    def read(kind: Any) -> Any:
        return polars.read_csv(
            io.BytesIO(body),
            separator=separator,
            has_header=False,
            schema={str(k): kind for k in range(width)},
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
        )

    try:
        return read(polars.Float64)
    except polars.exceptions.PolarsError:
        pass
    try:
        return read(polars.String)
    except polars.exceptions.PolarsError as error:
        raise DataError(f"{file} cannot be read as a table, check its quotation marks: {damage(error)}") from None


def read_parquet(path: Path) -> Table:
    """Table of a Parquet file; columns of lists become arrays (N, width)."""
    frame = parquet_frame(path)
    if not frame.height:
        raise DataError(f"{path.name} has columns and no rows")
    return Table(path.name, parquet_columns(frame))


def parquet_columns(frame: Any) -> dict[str, Any]:
    """Columns of a frame of Polars by name; lists of equal length become arrays (N, width)."""
    return {series.name: _parquet_column(series) for series in frame.get_columns()}


def _parquet_column(series: Any) -> Any:
    """A column of a Parquet file; lists of equal length become an array (N, width)."""
    import polars

    if isinstance(series.dtype, polars.List):
        widths = series.list.len().unique()
        if len(widths) != 1 or widths[0] is None:
            return Unusable("contains lists of different lengths")
        series = series.list.to_array(int(widths[0]))
    if isinstance(series.dtype, polars.Array):
        return np.asarray(series.to_numpy(), dtype=float)
    return series


def _plain(raw: bytes) -> bytes:
    """Text with single line feeds and without a byte-order mark."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raw = raw.decode("utf-16", errors="replace").encode()
    return raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@dataclass(frozen=True, eq=False)
class _Lines:
    """A text by lines: where they start and stop, and which of them (counted from 0) are data or comments."""

    text: bytes
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    data: NDArray[np.int64]
    comments: NDArray[np.int64]

    @staticmethod
    def of(text: bytes, file: str) -> _Lines:
        """The lines of a text, which must have data."""
        letters = np.frombuffer(text, dtype=np.uint8)
        feeds = np.flatnonzero(letters == _NEWLINE)
        start = np.concatenate([[0], feeds + 1])
        stop = np.concatenate([feeds, [len(letters)]])
        if start[-1] == len(letters):
            start, stop = start[:-1], stop[:-1]
        filled = np.flatnonzero(np.maximum.reduceat(letters, start) > ord(" ")) if len(start) else start
        is_comment = np.isin(letters[start[filled]], _COMMENTS)
        comments, data = filled[is_comment], filled[~is_comment]
        if not len(data):
            raise DataError(f"{file} is empty" if not len(comments) else f"{file} contains comments and no rows")
        return _Lines(text, start, stop, data, comments)

    def line(self, k: int) -> bytes:
        """The text of line k."""
        return self.text[self.start[k] : self.stop[k]]

    def separator(self) -> str:
        """Tab, semicolon, comma or blank: the first that occurs in most of the leading lines."""
        sample = [self.line(k) for k in self.data[:20]]
        for mark in ("\t", ";", ","):
            if sum(mark.encode() in line for line in sample) * 2 > len(sample):
                return mark
        blanks = sum(len(line.split()) > 1 for line in sample)
        return " " if blanks * 2 > len(sample) else ","

    def cells(self, k: int, separator: str) -> list[str]:
        """The cells of line k."""
        row = next(csv.reader([self.line(k).decode(errors="replace")], delimiter=separator))
        return [cell.strip() for cell in row]

    def count(self, lines: NDArray[np.int64], separator: str) -> NDArray[np.int64]:
        """Number of cells of each line."""
        marks = np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord(separator))
        return np.searchsorted(marks, self.stop[lines]) - np.searchsorted(marks, self.start[lines]) + 1

    def comment_header(self, separator: str, width: int) -> list[str] | None:
        """Names in the last comment before the first row, where it has as many cells as the rows."""
        above = self.comments[self.comments < self.data[0]]
        if not len(above):
            return None
        line = self.line(above[-1])[1:].decode(errors="replace").strip()
        for names in (next(csv.reader([line], delimiter=separator), []), line.split()):
            if len(names) == width:
                return [name.strip() for name in names]
        return None

    def body(self, lines: NDArray[np.int64]) -> bytes:
        """The text of these lines alone."""
        if lines[-1] - lines[0] + 1 == len(lines):
            return self.text[self.start[lines[0]] : self.stop[lines[-1]]]
        return b"\n".join(self.line(k) for k in lines)


def _looks_like_header(cells: list[str]) -> bool:
    """Whether the first row is a header: its first cell or half of its cells are not numbers, or it counts columns."""
    filled = [cell for cell in cells if cell]
    words = [cell for cell in filled if not _is_number(cell)]
    if not words:
        return len(filled) > 5 and filled == [str(k) for k in range(len(filled))]
    return words[0] == cells[0] or 2 * len(words) >= len(filled)


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or comma."""
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _column_names(names: list[str] | None, frame: Any, file: str) -> list[str] | None:
    """A distinct name for every column; names that occur twice are numbered."""
    if names is None:
        return None
    # A separator at the end of the lines adds one cell, which is empty.
    if len(names) == frame.width - 1 and frame.to_series(-1).null_count() == frame.height:
        names = [*names, ""]
    elif len(names) == frame.width + 1 and not names[-1]:
        names = names[:-1]
    if len(names) != frame.width:
        raise DataError(f"{file}: the header names {len(names)} columns, the rows have {frame.width}")
    total, seen, out = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        out.append(name if total[name] == 1 else f"{name}#{seen[name]}")
    return out


def _by_joint_name(columns: dict[str, Any], file: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Columns name0, position0, ... of a printed joint state, renamed by the joint in the name column."""
    joints = {}
    for column, series in columns.items():
        match = re.fullmatch(r"(.*?\b)name\[?(\d+)\]?", column)
        if match is None or not len(series):
            continue
        if series.n_unique() > 1:
            raise DataError(f"{file}: the joint in column '{column}' changes from row to row")
        joints[match[1], match[2]] = str(series[0]).strip()
    if not joints:
        return columns, ()
    out = {}
    for column, series in columns.items():
        match = re.fullmatch(r"(.*\b)([A-Za-z]+)\[?(\d+)\]?", column)
        joint = joints.get((match[1], match[3])) if match else None
        out[f"{match[2]}_{joint}" if match and joint and match[2] != "name" else column] = series
    return out, tuple(joints.values())
