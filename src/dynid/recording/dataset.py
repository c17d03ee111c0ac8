"""DataSet: recordings in a folder of Parquet partitions or in one long file, read in chunks that fit in memory.

A partition is one file, in a hive layout such as `robot=unit3/date=2025-03-01/run=7/part-0.parquet`. Only the columns
that are used are read, and only one chunk of rows at a time. A run that is longer than a chunk is cut into consecutive
runs of equal length; each is filtered on its own, and its ends are trimmed as those of any run. The partitions of one
long file are such ranges of rows.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from dynid.child import read_in_child
from dynid.errors import (
    DamagedFile,
    DataError,
    DynidError,
    InvalidValue,
    MissingData,
    TooFew,
    TooLarge,
    Unsupported,
    WrongFormat,
)
from dynid.limits import exceeded, file_limits
from dynid.markup import HtmlSummary
from dynid.reading import PACKED, within_ratio
from dynid.recording.assemble import Reading
from dynid.recording.convert import Conversion
from dynid.recording.files import check_file, damage, kind_of
from dynid.recording.formats import folder_reader
from dynid.recording.load import columns_of_table, recording_of_table
from dynid.recording.log_fields import LogFields
from dynid.recording.log_format import LogFormat
from dynid.recording.partitions import LeftOut, Partition, listed, opened
from dynid.recording.recording import Recording
from dynid.recording.table import Table
from dynid.recording.tables import PARQUET, TEXT, TextLayout, TextPiece, data_lines, parquet_columns, plain_text
from dynid.recording.wrench import WrenchSensor
from dynid.robot.model import Robot

__all__ = [
    "DataSet",
    "LeftOut",
    "Partition",
    "check_parquet",
    "cut",
    "is_dataset",
    "is_long",
    "open_dataset",
    "pieces_of",
]


# Pieces of one long log file: ranges of rows that are read one at a time, as the partitions of a data set.
#
# A text is looked through once for where its rows start; a Parquet file is read once, piece by piece, in a child
# process,
# which ends there if the file is damaged.

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
            total = read_in_child("dynid.recording.dataset:check_parquet", path, Path(folder), longest)
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


# Rows of a chunk: a minute at 1 kHz, of which trimmed ends are less than a hundredth.
LONGEST = 65536
# Partitions that are looked at when a data set is opened, and rows of each.
_PROBED, _PROBE_ROWS = 9, 256
# A clock in another unit is a thousand times faster or slower; sampling rates of one data set differ by less than this.
_OTHER_UNIT = 30.0


@dataclass(frozen=True, eq=False)
class DataSet(HtmlSummary):
    """Recordings of a robot in partitions, which are read when they are needed and not held.

    Attributes
    ----------
    source : str
        Folder, address or long file.
    robot : Robot
        The robot; signals are in the order of its joints.
    partitions : tuple of Partition
        The files, in the order of their names (numbers in names count as numbers), or ranges of rows of one file.
    log_format : LogFormat
        How the partitions are read, with the columns that were found in the first of them.
    step : float
        Usual time between two samples in s.
    unread_columns : tuple of str
        Columns that are not read.
    longest : int
        Most samples of a chunk; longer partitions are cut.
    sensors : mapping of str to WrenchSensor
        Where the named wrench sensors are.
    whole : Robot or None
        The robot before joints were locked.
    """

    source: str
    robot: Robot
    partitions: tuple[Partition, ...]
    log_format: LogFormat
    step: float
    unread_columns: tuple[str, ...] = ()
    longest: int = LONGEST
    sensors: Mapping[str, WrenchSensor] = field(default_factory=dict)
    whole: Robot | None = None

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.robot.coordinates

    def select(self, **keys: str) -> DataSet:
        """The partitions with these values of the hive layout.

        Parameters
        ----------
        **keys : str
            Value by key, such as robot="unit3".

        Returns
        -------
        DataSet

        Raises
        ------
        DataError
            If no partition has them.
        """
        found = tuple(p for p in self.partitions if all(p.keys.get(k) == str(v) for k, v in keys.items()))
        if not found:
            wanted = ", ".join(f"{k}={v}" for k, v in keys.items())
            raise MissingData(f"{self.source} has no partition with {wanted}")
        return replace(self, partitions=found)

    def split(self, share: float = 0.25) -> tuple[DataSet, DataSet]:
        """Partitions to identify from, and the last ones, which are held out for validation.

        Parameters
        ----------
        share : float, default 0.25
            Share of the partitions that is held out, between 0 and 1.

        Returns
        -------
        fit, held_out : DataSet

        Raises
        ------
        DataError
            If one of the two would be empty.
        """
        count = round(share * len(self.partitions))
        if not 0 < count < len(self.partitions):
            raise InvalidValue(
                f"a share of {share:g} of {len(self.partitions)} partitions leaves one side empty", "share"
            )
        cut = len(self.partitions) - count
        return replace(self, partitions=self.partitions[:cut]), replace(self, partitions=self.partitions[cut:])

    def with_signals(self, signals: Sequence[str]) -> DataSet:
        """The data set of which only these signals are read; signals that it does not have are ignored."""
        columns = self.log_format.columns or {}
        kept = {s: spec for s, spec in columns.items() if s in signals or ":" in s}
        return replace(self, log_format=self.log_format.replaced({"columns": kept}))

    def rows(self, partition: Partition) -> int:
        """Number of rows of a partition, from its footer."""
        return _PartitionReader(self, partition).rows

    def chunks(self, partition: Partition) -> Iterator[tuple[int, Recording]]:
        """The recordings of a partition, chunk by chunk, each with the number of its first row.

        Parameters
        ----------
        partition : Partition
            One of `partitions`.

        Yields
        ------
        int, Recording

        Raises
        ------
        DataError
            If the partition cannot be read; the message names it.
        """
        reader = _PartitionReader(self, partition)
        for start, stop in reader.cuts():
            yield start, reader.recording(start, stop)

    def sample(self, samples: int = 200_000) -> tuple[Recording, tuple[LeftOut, ...]]:
        """Chunks of evenly spaced partitions as a recording in memory.

        Parameters
        ----------
        samples : int, default 200000
            Number of samples from which no further chunk is added.

        Returns
        -------
        Recording
            One chunk of every chosen partition.
        tuple of LeftOut
            Partitions that were chosen and could not be read.

        Raises
        ------
        DataError
            If none of the chosen partitions can be read.
        """
        found: list[tuple[int, Recording]] = []
        bad: list[LeftOut] = []
        total = 0
        for k in _spaced(len(self.partitions)):
            try:
                recording = next(self.chunks(self.partitions[k]))[1]
            except DynidError as error:
                bad.append(LeftOut(self.partitions[k].name, str(error)))
                continue
            found.append((k, recording))
            total += recording.samples
            if total >= samples:
                break
        if not found:
            raise MissingData(bad[0].reason)
        # In the order of time, whatever the order in which they were chosen.
        runs = [run for _, one in sorted(found, key=lambda item: item[0]) for run in one.runs]
        first = found[0][1]
        return replace(first, runs=tuple(runs), log_format=self.log_format, unread_columns=self.unread_columns), (*bad,)

    def __repr__(self) -> str:
        return f"DataSet('{self.source}', {len(self.partitions)} partitions, {len(self.joints)} joints)"

    def summary(self) -> str:
        """The partitions and how they are read.

        Returns
        -------
        str
            Several lines.
        """
        keys = {key: len({p.keys.get(key) for p in self.partitions}) for p in self.partitions[:1] for key in p.keys}
        counts = ", ".join(f"{n} of {key}" for key, n in keys.items())
        lines = [f"{self.source}: {len(self.partitions)} partitions{f' ({counts})' if counts else ''}"]
        lines += [f"samples every {self.step:.4g} s, {len(self.joints)} joints: {', '.join(self.joints)}"]
        lines += ["", "Log format", self.log_format.summary()]
        if self.unread_columns:
            lines.append(f"{'not read':<12}{', '.join(self.unread_columns)}")
        return "\n".join(lines)


class _PartitionReader:
    """Reads one partition; all its errors name it."""

    def __init__(self, dataset: DataSet, partition: Partition) -> None:
        import polars

        self._dataset, self._partition = dataset, partition
        log = dataset.log_format.replaced({"rows": None})
        self.reading = Reading(dataset.robot, log, Conversion(dataset.robot, log), dataset.sensors, dataset.whole)
        self._first, stop = partition.rows or (0, None)
        if partition.text is not None:
            assert stop is not None
            self.rows = stop - self._first
            return
        try:
            self._scan = polars.scan_parquet(opened(partition.address))
            self._names = self._scan.collect_schema().names()
            self.rows = int(self._scan.select(polars.len()).collect().item()) if stop is None else stop - self._first
        except FileNotFoundError:
            raise self._error("cannot be read: No such file or directory") from None
        # Polars raises errors of many types on damaged files; a panic is no Exception.
        except (Exception, polars.exceptions.PanicException) as error:
            raise self._error(f"is not a Parquet file or damaged: {damage(error)}") from None
        if not self.rows:
            raise self._error("has columns and no rows")

    def _error(self, what: str) -> DataError:
        return DamagedFile(f"partition {self._partition.name} {what}")

    def cuts(self) -> list[tuple[int, int]]:
        """First row and row after the last of every chunk."""
        # Of a long file, the rows of the log format were chosen when it was cut.
        rows = self._dataset.log_format.rows if self._partition.rows is None else None
        return cut(f"partition {self._partition.name}", self.rows, self._dataset.longest, rows)

    def table(self, start: int, stop: int, columns: Sequence[str] | None) -> Table:
        """Some rows of some columns, by default of all."""
        import polars

        whole = stop - start == self.rows
        place = f"partition {self._partition.name}{'' if whole else f' rows {start}:{stop}'}"
        if self._partition.text is not None:
            try:
                return self._partition.text.table(self._partition.address, place, start, stop)
            except OSError as error:
                raise self._error(f"cannot be read: {error.strerror}") from None
        scan = self._scan if columns is None else self._scan.select(columns)
        try:
            frame = scan.slice(self._first + start, stop - start).collect()
        except (Exception, polars.exceptions.PanicException) as error:
            raise self._error(f"is damaged: {damage(error)}") from None
        return Table(place, parquet_columns(frame))

    def recording(self, start: int, stop: int) -> Recording:
        """The recording of some rows."""
        table = self.table(start, stop, self._needed())
        found = recording_of_table(self._partition.name, table, self.reading)
        step = self._step(found)
        ratio = step / self._dataset.step
        if not 1 / _OTHER_UNIT < ratio < _OTHER_UNIT:
            raise self._error(
                f"has samples {step:.3g} s apart, the other partitions {self._dataset.step:.3g} s: "
                "its clock is in another unit"
            )
        return found

    def step(self, rows: int) -> float:
        """Time between two samples in s, from the first rows."""
        found = recording_of_table(self._partition.name, self.table(0, rows, self._needed()), self.reading)
        return self._step(found)

    def _step(self, found: Recording) -> float:
        step = float(np.median([run.step for run in found.runs]))
        if not step > 0:
            raise self._error("has a clock that stands still: most of its samples have the time of the one before")
        return step

    def _needed(self) -> list[str] | None:
        """Columns of the file that the log format names, None for all of a text; a DataError if one is missing."""
        if self._partition.text is not None:
            return None
        log = self._dataset.log_format
        wanted = {} if log.time is None else {str(log.time): "t"}
        for signal, names in (log.columns or {}).items():
            wanted |= {str(name): signal for name in (names if isinstance(names, tuple) else (names,))}
        out: dict[str, None] = {}
        for name, signal in wanted.items():
            column = name if name in self._names else re.sub(r"\[\d+\]$", "", name)
            if column not in self._names and column != "none":
                raise self._error(f"has no column '{name}' for {signal}, which the other partitions have")
            if column in self._names:
                out[column] = None
        return [*out, *(["run"] if "run" in self._names and "run" not in out else [])]


def is_dataset(source: Any) -> bool:
    """Whether this is the address of a data set or a folder with Parquet partitions."""
    if not isinstance(source, str | Path):
        return False
    if "://" in str(source):
        return True
    path = Path(source)
    return path.is_dir() and folder_reader(path) is None and _first_file(path)


def _first_file(path: Path) -> bool:
    return any(True for ending in PARQUET.endings for _ in path.rglob(f"*{ending}"))


def open_dataset(
    source: str | Path,
    robot: Robot,
    *,
    log: LogFormat | None = None,
    sensors: Mapping[str, WrenchSensor] | None = None,
    whole: Robot | None = None,
    longest: int = LONGEST,
    **fields: Unpack[LogFields],
) -> DataSet:
    """Open a folder of Parquet partitions, of which a few rows are read, or one long file, which is looked through.

    Parameters
    ----------
    source : path or str
        A folder; an address that fsspec knows, such as s3://bucket/logs (`pip install dynid[cluster]`); or a text table
        or Parquet file, whose partitions are ranges of at most `longest` rows.
    robot : Robot
        Its joint names are looked for in the column names, and the signals are in the order of its joints.
    log : LogFormat, optional
        How the partitions are read. By default the clock and the columns are recognised by their names, in SI units.
        All partitions must have the columns that are found in the first.
    sensors : mapping of str to WrenchSensor, optional
        Where the named wrench sensors are.
    whole : Robot, optional
        The robot before `Robot.locked`, as for `load_recording`.
    longest : int, default 65536
        Most samples that are read at once. A longer partition is cut into chunks of equal length, each of which is
        filtered as a run of its own.
    **fields
        Fields of `LogFormat`, which override those of `log`.

    Returns
    -------
    DataSet

    Raises
    ------
    DataError
        If there are no partitions, or if none of those that are looked at can be read.

    Examples
    --------
    >>> import tempfile
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> from dynid.recording import open_dataset
    >>> robot = dynid.load_robot("twolink")
    >>> folder = tempfile.mkdtemp()
    >>> for k in range(3):
    ...     synthetic_recording(robot, k, duration=5.0).to_parquet(f"{folder}/run={k}.parquet")
    >>> len(open_dataset(folder, robot).partitions)
    3
    """
    if longest < 256:
        raise InvalidValue(f"a chunk needs at least 256 samples, got {longest}", "longest")
    given = (log or LogFormat()).replaced(fields)
    long = "://" not in str(source) and Path(source).is_file()
    partitions = pieces_of(Path(source), longest, given.rows) if long else listed(str(source))
    opened = DataSet(
        str(source), robot, partitions, given, math.nan, longest=longest, sensors=sensors or {}, whole=whole
    )
    steps, first, wrong = [], None, None
    for k in sorted(_spaced(len(partitions))[:_PROBED]):
        try:
            reader = _PartitionReader(opened, partitions[k])
            probe = reader.table(0, min(reader.rows, _PROBE_ROWS), None)
            resolved, unread = columns_of_table(probe, reader.reading)
            resolved = resolved.replaced({"rows": given.rows})
            sure = replace(opened, log_format=resolved).with_signals(["q"])
            steps.append(_PartitionReader(sure, partitions[k]).step(min(reader.rows, _PROBE_ROWS)))
        except DynidError as error:
            wrong = wrong or error
            continue
        first = first or (resolved, unread)
    if first is None:
        assert wrong is not None
        raise wrong
    return replace(opened, log_format=first[0], unread_columns=first[1], step=float(np.median(steps)))


def _spaced(count: int) -> list[int]:
    """Numbers below a count, so ordered that those at the beginning lie evenly apart: first, last, middle, ..."""
    order: list[int] = []
    seen: set[int] = set()
    parts = 1
    while len(order) < count:
        for k in range(parts + 1):
            place = round(k * (count - 1) / parts)
            if place not in seen:
                seen.add(place)
                order.append(place)
        parts *= 2
    return order
