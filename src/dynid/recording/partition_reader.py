"""Reading one partition of a data set: some rows of some columns at a time, with errors that name it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.errors import DamagedFile, DataError
from dynid.recording.assemble import Reading
from dynid.recording.convert import Conversion
from dynid.recording.files import damage
from dynid.recording.load import recording_of_table
from dynid.recording.partitions import Partition, opened
from dynid.recording.pieces import cut
from dynid.recording.recording import Recording
from dynid.recording.table import Table
from dynid.recording.tables import parquet_columns

if TYPE_CHECKING:
    from dynid.recording.dataset import DataSet

__all__ = ["PartitionReader"]

# A clock in another unit is a thousand times faster or slower; sampling rates of one data set differ by less than this.
_OTHER_UNIT = 30.0


class PartitionReader:
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
