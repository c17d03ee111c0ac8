"""Pieces of one long log file: ranges of rows that are read one at a time, as the partitions of a data set.

A text is looked through once for where its rows start; a Parquet file is read once, piece by piece, in a child process,
which ends there if the file is damaged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynid.child import read_in_child
from dynid.errors import DamagedFile, DataError, MissingData, TooFew, TooLarge, Unsupported, WrongFormat
from dynid.limits import exceeded, file_limits
from dynid.reading import PACKED, within_ratio
from dynid.recording.files import check_file, damage, kind_of
from dynid.recording.partitions import Partition
from dynid.recording.tables import PARQUET, TEXT, TextLayout, TextPiece, data_lines, plain_text

__all__ = ["check_parquet", "cut", "is_long", "pieces_of"]

# Bytes of a text that are looked through at a time, and that say how it is laid out; the longest line.
_BLOCK, _HEAD, _LONGEST_LINE = 1 << 23, 1 << 20, 1 << 26
# Rows from one remembered place of a text to the next.
_STRIDE = 1024
# Formats that can be read in pieces.
_CUT = (*TEXT.endings, *PARQUET.endings)
_UTF8_MARK, _UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


def is_long(source: Any) -> bool:
    """Whether this is a text table or a Parquet file above the limit `whole_bytes`, which can be read in pieces."""
    if not isinstance(source, str | Path) or "://" in str(source):
        return False
    path = Path(source)
    if path.suffix.lower() in PACKED or kind_of(path) not in _CUT or not path.is_file():
        return False
    if check_file(path) <= file_limits().whole_bytes:
        return False
    return kind_of(path) in PARQUET.endings or _has_lines(path)


def _has_lines(path: Path) -> bool:
    """Whether a text can be cut after line feeds: not where a character has two bytes or lines end otherwise."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head.startswith(_UTF16_MARKS) and b"\n" in head and b"\r" not in head.replace(b"\r\n", b"")


def pieces_of(path: Path, longest: int, rows: tuple[int | None, int | None] | None) -> tuple[Partition, ...]:
    """The pieces of a file with at most `longest` rows each, of all its rows or of some."""
    if not check_file(path):
        raise MissingData(f"{path.name} is empty")
    kind = kind_of(path)
    if path.suffix.lower() in PACKED or kind not in _CUT:
        raise WrongFormat(f"{path.name} cannot be read in pieces: only files that end in {', '.join(_CUT)} can")
    if kind in PARQUET.endings:
        with tempfile.TemporaryDirectory(prefix="dynid-") as folder:
            total = read_in_child("dynid.recording.pieces:check_parquet", path, Path(folder), longest)
        cuts = cut(path.name, total, longest, rows)
        return tuple(Partition(_name(path, a, b), str(path.resolve()), rows=(a, b)) for a, b in cuts)
    if not _has_lines(path):
        raise Unsupported(
            f"{path.name} cannot be read in pieces: its lines do not end with line feeds, or it is UTF-16"
        )
    index = _TextIndex(path)
    return tuple(
        Partition(_name(path, a, b), str(path.resolve()), rows=(a, b), text=index.piece(a, b))
        for a, b in cut(path.name, index.rows, longest, rows)
    )


def _name(path: Path, start: int, stop: int) -> str:
    return f"{path.name} rows {start}:{stop}"


def cut(name: str, total: int, longest: int, rows: tuple[int | None, int | None] | None) -> list[tuple[int, int]]:
    """First row and row after the last of every piece of `total` rows, or of some of them; all of equal length."""
    start, stop, _ = slice(*(rows or (None, None))).indices(total)
    if stop - start < 2:
        raise TooFew(f"{name} has {max(stop - start, 0)} rows to read: at least two are needed")
    edges = np.linspace(start, stop, -(-(stop - start) // longest) + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def check_parquet(path: Path, _: Path, longest: int) -> int:
    """Number of rows of a file of which every piece can be read."""
    import polars

    try:
        lazy = polars.scan_parquet(path, glob=False)
        columns, rows = len(lazy.collect_schema()), int(lazy.select(polars.len()).collect().item())
        if columns > file_limits().columns:
            exceeded(path.name, f"{columns} columns", "columns")
        within_ratio(path.name, 8 * columns * rows, path.stat().st_size)
        for start, stop in cut(path.name, rows, longest, None):
            lazy.slice(start, stop - start).collect()
    except (DataError, MemoryError):
        raise
    except BaseException as error:  # panics are no Exceptions
        raise DamagedFile(f"{path.name} is not a Parquet file or damaged: {damage(error)}") from None
    return rows


class _TextIndex:
    """Where the rows of a text file are: the byte and the line of every row whose number divides by the stride."""

    def __init__(self, path: Path) -> None:
        self._size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD)
        whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
        self._layout = TextLayout.of(plain_text(whole), path.name)
        self._places: list[tuple[int, int]] = []
        rows, lines = -1 if self._layout.header else 0, 0
        for at, block in _blocks(path):
            count, numbers, starts = data_lines(block)
            row = rows + np.arange(len(numbers))
            kept = (row >= 0) & (row % _STRIDE == 0)
            self._places += [(at + int(s), lines + int(n)) for s, n in zip(starts[kept], numbers[kept], strict=True)]
            rows, lines = rows + len(numbers), lines + count
        self.rows = rows

    def piece(self, start: int, stop: int) -> TextPiece:
        """The piece of some rows."""
        first, after = start // _STRIDE, -(-stop // _STRIDE)
        at, line = self._places[first]
        end = self._places[after][0] if after < len(self._places) else self._size
        return TextPiece(self._layout, at, end, line, start - first * _STRIDE)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """The text in blocks of whole lines, each with its place in the file."""
    with path.open("rb") as file:
        mark = file.read(len(_UTF8_MARK))
        at, rest = (len(mark), b"") if mark == _UTF8_MARK else (0, mark)
        while block := file.read(_BLOCK):
            block = rest + block
            end = block.rfind(b"\n") + 1
            if not end and len(block) > _LONGEST_LINE:
                raise TooLarge(f"{path.name} has a line of more than {_LONGEST_LINE >> 20} MiB: it is no table")
            if end:
                yield at, block[:end]
            at, rest = at + end, block[end:]
        if rest:
            yield at, rest
