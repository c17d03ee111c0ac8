"""Force plates in files of their own: tables of six columns, resampled to the clock of the motion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, InvalidValue, Mismatch, MissingData, NotApplicable, TooFew, WrongFormat
from dynid.recording.columns import guess_time
from dynid.recording.files import stem_of
from dynid.recording.formats import read_log, reader_of, readers
from dynid.recording.run import PARTS, Run
from dynid.recording.table import Table, shown
from dynid.recording.wrench import WrenchSensor

__all__ = ["plate_zero", "read_plate", "with_plate"]

Array = NDArray[np.float64]

# A plate may stop this long (s) before the cameras do: shorter than the transient of any filter.
_SHORT = 0.1
# With this share of the mean force of the whole file the plate is loaded, and its mean is not an offset.
_STANDS = 0.5


def read_plate(path: str | Path) -> tuple[Array | None, Array]:
    """Clock (N,) in s, None where the file has none, and force and moment (N, 6) of a plate's table.

    Columns are recognised by names that end or begin with fx, fy, fz, mx, my, mz, in upper or lower case.
    """
    path = Path(path)
    if reader_of(path).topics:
        known = ", ".join(ending for reader in readers().values() if not reader.topics for ending in reader.endings)
        raise WrongFormat(f"a plate's file is a table, {known}, not '{path.suffix}'", "wrench", where=path.name)
    table = read_log(path)
    column = guess_time(table)
    wrench = table.values(_six(table))
    t = None if column is None else table.values([column])[:, 0]
    for values, what in ((wrench, "wrench"), (t, "time")):
        if values is not None and not np.all(np.isfinite(values)):
            row = int(np.argmax(~np.isfinite(np.atleast_2d(values.T)).all(axis=0)))
            raise DamagedFile(f"the {what} is not a number at {table.place(row)}", where=path.name)
    if t is not None and (len(t) < 2 or np.any(np.diff(t) <= 0)):
        raise DamagedFile("the time of the plate does not increase", where=path.name)
    return t, wrench


def _six(table: Table) -> list[str]:
    plain = {name: "".join(c for c in name.lower() if c.isalpha()) for name in table.names}
    for fits in (str.__eq__, str.endswith, str.startswith):
        found = [[name for name, word in plain.items() if fits(word, part)] for part in PARTS["wrench"]]
        if all(len(names) == 1 for names in found):
            return [names[0] for names in found]
    raise MissingData(
        f"the six columns fx, fy, fz, mx, my, mz of a plate are not there once each, it has {shown(table.names)}",
        where=table.file,
    )


def with_plate(run: Run, path: str | Path, sensor: WrenchSensor, name: str = "plate", zero: Array | float = 0.0) -> Run:
    """The run with the wrench of a plate's file less its `zero` (6,), at the run's rate; both begin together."""
    t, wrench = read_plate(path)
    wrench = wrench - zero
    file = Path(path).name
    if t is None:
        if len(wrench) != len(run):
            raise Mismatch(
                f"{file} has no column for the time and {len(wrench)} rows, run '{run.name}' has {len(run)}: "
                "without a clock both need the same number of rows",
                "wrench",
            )
    else:
        wrench = _on_clock(t, wrench, run, file)
    label = name if name not in run.wrenches else f"{name}:{stem_of(Path(path))}"
    return replace(run, wrenches={**run.wrenches, label: wrench}, sensors={**run.sensors, label: sensor})


def plate_zero(given: str, path: str | Path) -> Array:
    """Offset of an unloaded plate (6,): its mean over START:END s of its file, or over another file.

    Seconds count from the first row of the plate's file.
    """
    t, wrench = read_plate(path)
    between = _interval(given)
    if between is None:
        free, where = read_plate(given)[1], f"in {Path(given).name}"
    else:
        start, end = between
        if t is None:
            raise MissingData(
                f"{Path(path).name} has no column for the time: '{given}' s cannot be found in it", "zero_plate"
            )
        rows = (t - t[0] >= start) & (t - t[0] < end)
        where = f"from {start:g} to {end:g} s of {Path(path).name}"
        if np.count_nonzero(rows) < 2:
            raise MissingData(f"there are no samples {where}, which lasts {t[-1] - t[0]:.4g} s", "zero_plate")
        free = wrench[rows]
    zero = free.mean(axis=0)
    size, all_of_it = (float(np.linalg.norm(x[:3])) for x in (zero, wrench.mean(axis=0)))
    if size > _STANDS * all_of_it:
        raise NotApplicable(
            f"the plate carries {size:.0f} N {where}, {all_of_it:.0f} N in all of it: it is not unloaded", "zero_plate"
        )
    return np.asarray(zero)


def _interval(given: str) -> tuple[float, float] | None:
    """START:END as numbers; None for text that is not a pair of numbers, such as a file name."""
    try:
        start, end = (float(x) for x in given.split(":"))
    except ValueError:
        return None
    if not (0 <= start < end < np.inf):
        raise InvalidValue(
            f"'{given}' is not a time interval: START:END in s, from the plate's first row", "zero_plate"
        )
    return start, end


def _on_clock(t: Array, wrench: Array, run: Run, file: str) -> Array:
    """The wrench at the times of the run; both clocks count from their first sample."""
    from dynid.mocap.resample import resample

    t, clock = t - t[0], run.t - run.t[0]
    if len(t) == len(clock) and np.abs(t - clock).max() < 0.01 * run.step:
        return wrench
    if t[-1] < clock[-1] - _SHORT:
        raise TooFew(
            f"{file} lasts {t[-1]:.3g} s, run '{run.name}' {clock[-1]:.3g} s: the plate must cover all of it", "wrench"
        )
    step = float(t[-1] / (len(t) - 1))
    even = step * np.arange(len(t))
    if np.abs(even - t).max() > 0.01 * step:
        wrench = np.column_stack([np.interp(even, t, column) for column in wrench.T])
    return resample(wrench, 1.0 / step, np.minimum(clock, even[-1]), 1.0 / run.step)
