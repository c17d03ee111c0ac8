"""Tables in files: text with the usual separators, with or without a header, and Parquet."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.child import read_in_child
from dynid.errors import DamagedFile, DataError, MissingData, Unsupported
from dynid.limits import exceeded, file_limits
from dynid.reading import within_ratio
from dynid.recording.files import damage, read_bytes, unpacked_file
from dynid.recording.reader import Reader
from dynid.recording.table import Table, Unusable

__all__ = [
    "PARQUET",
    "SCANNED",
    "TEXT",
    "TextLayout",
    "data_lines",
    "extract",
    "parquet_columns",
    "parquet_frame",
    "plain_text",
    "read_parquet",
    "read_text",
    "table_of_text",
]


# Tables of Parquet files, read in a child process: the reader ends its process at a memory limit.

_TABLE = "table.arrow"


def parquet_frame(path: Path) -> Any:
    """The polars frame of a file."""
    import polars

    with tempfile.TemporaryDirectory(prefix="dynid-") as name, unpacked_file(path) as plain:
        try:
            read_in_child("dynid.recording.tables:extract", plain, Path(name))
        except DataError as error:
            raise DamagedFile(str(error).replace(plain.name, path.name)) from None
        return polars.read_ipc((Path(name) / _TABLE).read_bytes())


def extract(path: Path, folder: Path, _: Any) -> None:
    """Write the table of a file into a folder as an Arrow file, which is read without decoding."""
    import polars

    try:
        lazy = polars.scan_parquet(path, glob=False)
        columns, rows = len(lazy.collect_schema()), lazy.select(polars.len()).collect().item()
        if columns > file_limits().columns:
            exceeded(path.name, f"{columns} columns", "columns")
        within_ratio(path.name, 8 * columns * rows, path.stat().st_size)
        polars.read_parquet(path, glob=False).rechunk().write_ipc(folder / _TABLE)
    except (DataError, MemoryError):
        raise
    except BaseException as error:  # panics are no Exceptions
        raise DamagedFile(f"{path.name} is not a Parquet file or damaged: {damage(error)}") from None


_COMMENTS = (ord("#"), ord("%"))
_NEWLINE = ord("\n")


@dataclass(frozen=True)
class TextLayout:
    """How the lines of a text are cut into columns.

    Attributes
    ----------
    separator : str
        Tab, semicolon, comma or blank.
    header : bool
        Whether the first line that is no comment names the columns.
    width : int
        Cells of a line.
    names : tuple of str or None
        Names of the columns as written, None where the text has none.
    """

    separator: str
    header: bool
    width: int
    names: tuple[str, ...] | None

    @staticmethod
    def of(text: bytes, file: str) -> TextLayout:
        """The layout of the beginning of a text, or of all of it."""
        lines = _Lines.of(text, file)
        separator = lines.separator()
        return _layout(*_in_cells(lines, separator, file), separator, file)


def read_text(path: Path) -> Table:
    """Table of a text file; separator, header and decimal comma are detected.

    Lines that start with # or % are comments; the last one before the numbers may be the header.
    """
    return table_of_text(plain_text(read_bytes(path)), path.name)


TEXT = Reader(
    name="text",
    title="text tables",
    sentence="Separator, header, comments and decimal commas are detected.",
    endings=(".csv", ".tsv", ".txt", ".dat", ".log"),
    function=read_text,
    compressed=True,
)


def table_of_text(
    text: bytes, file: str, layout: TextLayout | None = None, rows: tuple[int, int] | None = None, line: int = 0
) -> Table:
    """Table of a text, or of rows from the middle of a longer one.

    Parameters
    ----------
    text : bytes
        Lines that end with line feeds (`plain_text`).
    file : str
        Name of the file, for messages.
    layout : TextLayout, optional
        The layout of the longer text, whose header is not in this one; by default it is detected.
    rows : tuple of int, optional
        First row and row after the last; all by default.
    line : int, default 0
        Lines of the longer text before this one.
    """
    lines = _Lines.of(text, file)
    separator = lines.separator() if layout is None else layout.separator
    lines, mark = _in_cells(lines, separator, file)
    data = lines.data
    if layout is None:
        layout = _layout(lines, mark, separator, file)
        data = data[1:] if layout.header else data
    data = data[slice(*rows or (None,))]
    cells = lines.count(data, mark)
    body = lines.body(data)
    if mark == ";" or (mark == "\t" and b"." not in body):
        body = body.replace(b",", b".")
    frame = _frame(body, mark, layout.width, file)
    if frame.height != len(data):
        raise DamagedFile(f"{len(data)} lines read as {frame.height} rows, check its quotation marks", where=file)
    names = _column_names(None if layout.names is None else list(layout.names), frame, file)
    broken = {}
    if b'"' not in body:
        wrong = np.flatnonzero(cells != layout.width)
        broken = {int(k): f"has {cells[k]} cells, the other lines {layout.width}" for k in wrong}
    columns = dict(zip(names or map(str, range(layout.width)), frame.get_columns(), strict=True))
    columns, joints = _by_joint_name(columns, file)
    return Table(file, columns, data + line + 1, broken, names is not None, joints)


def _in_cells(lines: _Lines, separator: str, file: str) -> tuple[_Lines, str]:
    """The lines, with tabs in place of blanks, and what separates their cells then."""
    if separator != " ":
        return lines, separator
    spaced = re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", lines.text))
    return _Lines.of(spaced, file), "\t"


def _layout(lines: _Lines, mark: str, separator: str, file: str) -> TextLayout:
    _check_columns(int(lines.count(lines.data[:1], mark)[0]), file)
    first = lines.cells(lines.data[0], mark)
    header = _looks_like_header(first)
    if header and len(lines.data) == 1:
        raise MissingData(f"{file} has a header and no rows")
    cells = lines.count(lines.data[1:] if header else lines.data, mark)
    width = Counter(cells.tolist()).most_common(1)[0][0]
    _check_columns(width, file)
    names = first if header else lines.comment_header(mark, width)
    return TextLayout(separator, header, width, None if names is None else tuple(names))


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

    # Polars panics now and then, by the timing of its threads, where a cell is no number; a panic is no PolarsError.
    wrong = (polars.exceptions.PolarsError, polars.exceptions.PanicException)
    try:
        return read(polars.Float64)
    except wrong:
        pass
    try:
        return read(polars.String)
    except wrong as error:
        raise DamagedFile(f"{file} cannot be read as a table, check its quotation marks: {damage(error)}") from None


def read_parquet(path: Path) -> Table:
    """Table of a Parquet file; columns of lists become arrays (N, width)."""
    frame = parquet_frame(path)
    if not frame.height:
        raise MissingData(f"{path.name} has columns and no rows")
    return Table(path.name, parquet_columns(frame))


PARQUET = Reader(
    name="parquet",
    title="Parquet files",
    sentence="Columns of lists become arrays.",
    endings=(".parquet", ".pq"),
    function=read_parquet,
    compressed=True,
)
# Files of which single columns can be read.
SCANNED = (*PARQUET.endings, ".csv")


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


def plain_text(raw: bytes) -> bytes:
    """Text with single line feeds and without a byte-order mark."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raw = raw.decode("utf-16", errors="replace").encode()
    return raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_lines(block: bytes) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Number of lines of a block, and the lines of data among them: their numbers and where they start."""
    lines = _Lines.in_block(block)
    return len(lines.start), lines.data, lines.start[lines.data]


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
        found = _Lines.in_block(text)
        if not len(found.data):
            raise MissingData(f"{file} contains comments and no rows" if len(found.comments) else f"{file} is empty")
        return found

    @staticmethod
    def in_block(text: bytes) -> _Lines:
        """The lines of a text, which may have no data."""
        letters = np.frombuffer(text, dtype=np.uint8)
        feeds = np.flatnonzero(letters == _NEWLINE)
        start = np.concatenate([[0], feeds + 1])
        stop = np.concatenate([feeds, [len(letters)]])
        if start[-1] == len(letters):
            start, stop = start[:-1], stop[:-1]
        filled = np.flatnonzero(np.maximum.reduceat(letters, start) > ord(" ")) if len(start) else start
        is_comment = np.isin(letters[start[filled]], _COMMENTS)
        return _Lines(text, start, stop, filled[~is_comment], filled[is_comment])

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
        return _split(self.line(k).decode(errors="replace"), separator)

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
        for names in (_split(line, separator), line.split()):
            if len(names) == width:
                return names
        return None

    def body(self, lines: NDArray[np.int64]) -> bytes:
        """The text of these lines alone."""
        if lines[-1] - lines[0] + 1 == len(lines):
            return self.text[self.start[lines[0]] : self.stop[lines[-1]]]
        return b"\n".join(self.line(k) for k in lines)


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line; one with a cell of over 128 KiB, which the csv module refuses, is cut at its separators."""
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        cells = line.split(separator)
    return [cell.strip() for cell in cells]


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
        raise DamagedFile(f"the header names {len(names)} columns, the rows have {frame.width}", where=file)
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
            raise Unsupported(f"the joint in column '{column}' changes from row to row", where=file)
        joints[match[1], match[2]] = str(series[0]).strip()
    if not joints:
        return columns, ()
    out = {}
    for column, series in columns.items():
        match = re.fullmatch(r"(.*\b)([A-Za-z]+)\[?(\d+)\]?", column)
        joint = joints.get((match[1], match[3])) if match else None
        out[f"{match[2]}_{joint}" if match and joint and match[2] != "name" else column] = series
    return out, tuple(joints.values())


@dataclass(frozen=True)
class TextPiece:
    """Some rows of a text file.

    Attributes
    ----------
    layout : TextLayout
        How its lines are cut into columns.
    start, stop : int
        Bytes of the file that hold the rows.
    line : int
        Lines before `start`.
    skipped : int
        Rows between `start` and the first of the piece.
    """

    layout: TextLayout
    start: int
    stop: int
    line: int
    skipped: int

    def table(self, path: str, name: str, start: int, stop: int) -> Table:
        """The table of some rows, counted from the first of the piece."""
        with open(path, "rb") as file:
            file.seek(self.start)
            text = plain_text(file.read(self.stop - self.start))
        return table_of_text(text, name, self.layout, (self.skipped + start, self.skipped + stop), self.line)
