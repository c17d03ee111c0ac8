"""Recording: the measured motion of a robot, as one or more runs of evenly or unevenly sampled signals."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, Mismatch, MissingArgument, MissingData, TooFew
from dynid.files import writing, writing_bytes
from dynid.markup import html_table
from dynid.recording.run import NAMED_CONTACT, NAMED_WRENCH, SIGNALS, Run, column_names

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from dynid.recording.log_format import LogFormat
    from dynid.robot.model import Robot

__all__ = ["Recording"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recording:
    """One or more runs of the same robot; nothing is filtered or differentiated across their boundaries.

    Attributes
    ----------
    joints : tuple of str
        Names of the joints, in the order of the columns of every signal.
    runs : tuple of Run
        The runs, at least one.
    log_format : LogFormat or None
        How the log was read, with the clock and the columns that were found; None if it does not come from a log, or
        from logs that were read differently.
    unread_columns : tuple of str
        Columns of the log that were not read.

    Raises
    ------
    DataError
        If there is no run, or a run has another number of joints.

    Examples
    --------
    >>> import numpy as np
    >>> from dynid import Recording, Run
    >>> t = np.arange(0.0, 4.0, 0.01)
    >>> recording = Recording(("shoulder",), (Run(t, np.sin(t)[:, None], torque=np.cos(t)[:, None]),))
    >>> fit, held_out = recording.split(0.25)
    >>> fit.samples, held_out.samples
    (300, 100)
    """

    joints: tuple[str, ...]
    runs: tuple[Run, ...]
    log_format: LogFormat | None = None
    unread_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.runs:
            raise MissingArgument("a recording needs at least one run")
        for run in self.runs:
            if run.q.shape[1] != len(self.joints):
                raise Mismatch(f"run '{run.name}' has {run.q.shape[1]} joints, the recording {len(self.joints)}")

    @property
    def samples(self) -> int:
        """Number of samples of all runs together."""
        return sum(map(len, self.runs))

    @property
    def duration(self) -> float:
        """Duration of all runs together in s."""
        return float(sum(run.t[-1] - run.t[0] for run in self.runs))

    def __add__(self, other: Recording) -> Recording:
        if other.joints != self.joints:
            raise Mismatch("recordings of different joints cannot be joined")
        ours, theirs = self.log_format, other.log_format
        shared = ours.common(theirs) if ours is not None and theirs is not None else ours or theirs
        unread = tuple(dict.fromkeys(self.unread_columns + other.unread_columns))
        return Recording(self.joints, self.runs + other.runs, log_format=shared, unread_columns=unread)

    def between(self, start: float, stop: float) -> Recording:
        """Part of every run by time.

        Parameters
        ----------
        start, stop : float
            Seconds after the beginning of each run.

        Returns
        -------
        Recording
            Runs with fewer than two samples in between are left out.

        Raises
        ------
        DataError
            If no run is left.
        """
        out = []
        for run in self.runs:
            t = run.t - run.t[0]
            inside = np.flatnonzero((t >= start) & (t <= stop))
            if inside.size >= 2:
                out.append(run.rows(int(inside[0]), int(inside[-1]) + 1))
        if not out:
            raise MissingData(f"no run has samples between {start:g} and {stop:g} s")
        return replace(self, runs=tuple(out))

    def rows(self, start: int | None = None, stop: int | None = None) -> Recording:
        """Part of every run by rows.

        Parameters
        ----------
        start, stop : int, optional
            First row of each run, counted from 0, and the row after the last; negative numbers count from the end.

        Returns
        -------
        Recording
            Runs with fewer than two samples in between are left out.

        Raises
        ------
        DataError
            If no run is left.
        """
        cuts = [slice(start, stop).indices(len(run))[:2] for run in self.runs]
        parts = [run.rows(*cut) for run, cut in zip(self.runs, cuts, strict=True) if cut[1] - cut[0] >= 2]
        if not parts:
            raise TooFew(f"no run has two samples in rows {_range(start, stop)}")
        return replace(self, runs=tuple(parts))

    def split(
        self, share: float = 0.25, *, rows: tuple[int | None, int | None] | None = None
    ) -> tuple[Recording, Recording]:
        """Split every run into a part to identify from and a part held out for validation.

        Parameters
        ----------
        share : float
            Share of the samples at the end of every run that is held out, between 0 and 1.
        rows : tuple of int, optional
            Rows (start, stop) of every run that are held out instead, counted from 0.

        Returns
        -------
        fit, held_out : Recording
            Rows before and after the held-out rows are separate runs. Parts with fewer than two samples are left out.
            Both keep `log_format` and `unread_columns`.

        Raises
        ------
        DataError
            If the share is not between 0 and 1, or one of the two would have no run.
        """
        if rows is None and not 0.0 < share < 1.0:
            raise InvalidValue(f"the share that is held out must be between 0 and 1, got {share:g}", "share")
        fit, held_out = [], []
        for run in self.runs:
            count = len(run)
            wanted = slice(count - round(share * count), None) if rows is None else slice(*rows)
            start, stop, _ = wanted.indices(count)
            if stop - start >= 2:
                held_out.append(run.rows(start, stop))
            sides = [(0, start), (max(start, stop), count)]
            sides = [side for side in sides if side[1] - side[0] >= 2]
            for k, side in enumerate(sides, 1):
                name = run.name if len(sides) == 1 else f"{run.name}#{k}"
                fit.append(replace(run.rows(*side), name=name))
        if not fit or not held_out:
            what = f"a share of {share:g}" if rows is None else f"rows {_range(*rows)}"
            left = "to identify from" if held_out else "for validation"
            raise TooFew(f"holding out {what} of every run leaves no samples {left}")
        return replace(self, runs=tuple(fit)), replace(self, runs=tuple(held_out))

    def columns(self) -> dict[str, Array]:
        """All runs as one table.

        Returns
        -------
        dict of str to ndarray (samples,)
            run (number of the run, from 0), t, then signal_joint for every signal that all runs have.
        """
        signals = [s for s in SIGNALS if all(getattr(run, s) is not None for run in self.runs)]
        out = {
            "run": np.concatenate([np.full(len(run), i, float) for i, run in enumerate(self.runs)]),
            "t": np.concatenate([run.t for run in self.runs]),
        }
        for signal in signals:
            values = np.concatenate([getattr(run, signal) for run in self.runs])
            for k, name in enumerate(column_names(signal, self.joints)):
                out[name] = values[:, k]
        for sensor in self.runs[0].wrenches:
            if all(sensor in run.wrenches for run in self.runs):
                values = np.concatenate([run.wrenches[sensor] for run in self.runs])
                names = column_names(NAMED_WRENCH + sensor, self.joints)
                out |= {name: values[:, k] for k, name in enumerate(names)}
        for foot in self.runs[0].contacts:
            if all(foot in run.contacts for run in self.runs):
                out[NAMED_CONTACT + foot] = np.concatenate([run.contacts[foot] for run in self.runs])
        return out

    def to_csv(self, path: str | Path) -> None:
        """Write all runs into one CSV file with a header; `load_recording` reads it back exactly.

        Parameters
        ----------
        path : path
            The file.
        """
        table = self.columns()
        header = io.StringIO()
        csv.writer(header, lineterminator="").writerow(table)
        rows = np.column_stack(list(table.values()))
        with writing(path) as part:
            np.savetxt(part, rows, "%.17g", ",", header=header.getvalue(), comments="", encoding="utf-8")

    def to_parquet(self, path: str | Path) -> None:
        """Write all runs into one Parquet file; `load_recording` reads it back exactly.

        Parameters
        ----------
        path : path
            The file.
        """
        with writing_bytes(path) as file:
            self.to_frame().write_parquet(file)

    def to_frame(self) -> pl.DataFrame:
        """All runs as one table.

        Returns
        -------
        polars.DataFrame
            One row per sample, with the columns of `columns`, in SI units.
        """
        import polars as pl

        return pl.DataFrame(self.columns())

    def plot(
        self,
        signals: str | Sequence[str] | None = None,
        *,
        joints: str | Sequence[str] | None = None,
        robot: Robot | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> NDArray[Any]:
        """Draw signals over time, with the runs one after the other.

        Parameters
        ----------
        signals : str or sequence of str, optional
            q, v, a, torque, current, reference or link_q. By default the positions, velocities, torques and currents
            that the recording has.
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; all by default.
        robot : Robot, optional
            The robot of the recording. It tells which joints are prismatic: their axes have other units.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (panel,)
            One per signal and unit, from the top.

        Raises
        ------
        DataError
            If a signal is not there, or the robot has other joints.
        DynidError
            If matplotlib is not installed.
        """
        from dynid.recording.drawing import draw_recording

        return draw_recording(self.joints, self.runs, signals, joints, robot, ax)

    def __repr__(self) -> str:
        counts = f"{len(self.runs)} runs, {self.samples} samples, {self.duration:.1f} s, {len(self.joints)} joints"
        return f"Recording({counts})"

    def summary(self) -> str:
        """The runs with their signals, how the log was read, and the columns that were not read.

        Returns
        -------
        str
            Several lines.
        """
        lines = [f"{len(self.joints)} joints: {', '.join(self.joints)}"]
        for name, samples, seconds, rate, signals in self._table():
            lines.append(f"{name}: {samples} samples, {seconds} s at {rate} Hz: {signals}")
        if self.log_format is not None:
            lines += ["", "Log format", self.log_format.summary()]
        if self.unread_columns:
            lines.append(f"{'not read':<12}{', '.join(self.unread_columns)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        counts = f"Recording of {len(self.joints)} joints, {self.duration:.1f} s"
        note = ", ".join(self.joints)
        if self.unread_columns:
            note += f"; columns not read: {', '.join(self.unread_columns)}"
        page = html_table(counts, ("run", "samples", "seconds", "Hz", "signals"), self._table(), note)
        return page if self.log_format is None else page + self.log_format._repr_html_()

    def _table(self) -> list[tuple[str, int, str, str, str]]:
        """Name, samples, seconds, rate and signals of every run."""
        return [
            (
                run.name or f"run {k}",
                len(run),
                f"{run.t[-1] - run.t[0]:.2f}",
                f"{1 / run.step:.4g}",
                ", ".join([s for s in SIGNALS if getattr(run, s) is not None] + sorted(run.wrenches)),
            )
            for k, run in enumerate(self.runs, 1)
        ]


def _range(start: int | None, stop: int | None) -> str:
    """Rows for a message: 100:5000."""
    return f"{'' if start is None else start}:{'' if stop is None else stop}"
