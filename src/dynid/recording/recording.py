"""Recording: the measured motion of a robot, as one or more runs of evenly or unevenly sampled signals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    NotFinite,
    TooFew,
    UnknownName,
)
from dynid.files import writing, writing_bytes
from dynid.markup import html_table
from dynid.recording.wrench import WrenchSensor

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from dynid.recording.log_format import LogFormat
    from dynid.robot.model import Robot

__all__ = ["Recording", "Run"]

Array = NDArray[np.float64]

# Signals of a run other than t, and their width where it is not the number of joints.
SIGNALS = ("q", "v", "a", "torque", "current", "reference", "link_q", "wrench", "base", "base_v", "base_a", "imu")
WIDTH = {"wrench": 6, "base": 7, "base_v": 6, "base_a": 6, "imu": 6}
# Prefixes of the signals that are wrenches of named sensors, and contacts of named frames.
NAMED_WRENCH = "wrench:"
NAMED_CONTACT = "contact:"
PARTS = {
    "wrench": ("fx", "fy", "fz", "mx", "my", "mz"),
    "base": ("x", "y", "z", "qx", "qy", "qz", "qw"),
    "base_v": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "base_a": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "imu": ("fx", "fy", "fz", "wx", "wy", "wz"),
}


@dataclass(frozen=True, eq=False)
class Run:
    """One uninterrupted run of samples, on the joint side, in SI units.

    Attributes
    ----------
    t : ndarray (N,)
        Time in s.
    q, v, a : ndarray (N, joint)
        Position (rad, m), velocity and acceleration of the joints; v and a are None where they are not measured.
    torque : ndarray (N, joint) or None
        Torque (N m) or force (N) that the drives deliver on the joint side.
    current : ndarray (N, joint) or None
        Motor current in A.
    reference : ndarray (N, joint) or None
        Positions that the controller follows (rad, m).
    link_q : ndarray (N, joint) or None
        Positions of the links behind elastic gears (rad, m), where `q` are those of the motors on the joint side. NaN
        for a joint without an encoder on its link.
    wrench : ndarray (N, 6) or None
        Force (N) and moment (N m) on the base at its origin.
    base : ndarray (N, 7) or None
        Position (m) and quaternion (x, y, z, w) of the base. Quaternions are normalised and their sign is made
        continuous.
    base_v, base_a : ndarray (N, 6) or None
        Body twist of the base (linear m/s, angular rad/s) and its time derivative, where they are measured.
    imu : ndarray (N, 6) or None
        Specific force (m/s2) and angular velocity (rad/s) of an inertial unit on the robot, in the axes of the unit.
    contacts : mapping of str to ndarray (N,)
        Whether the link or frame of this name touches the surroundings: 0 or 1, or the probability of it.
    wrenches : mapping of str to ndarray (N, 6)
        Force and moment that the surroundings exert on the robot, by the name of the sensor.
    sensors : mapping of str to WrenchSensor
        Where each of these sensors is; one that is left out sits in the robot's frame of its own name.
    name : str
        Name of the run in messages and tables.

    Raises
    ------
    DataError
        If a signal has the wrong shape or a value that is not finite.
    """

    t: Array
    q: Array
    v: Array | None = None
    a: Array | None = None
    torque: Array | None = None
    current: Array | None = None
    reference: Array | None = None
    link_q: Array | None = None
    wrench: Array | None = None
    base: Array | None = None
    base_v: Array | None = None
    base_a: Array | None = None
    imu: Array | None = None
    contacts: Mapping[str, Array] = field(default_factory=dict)
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    sensors: Mapping[str, WrenchSensor] = field(default_factory=dict)
    name: str = "run"

    def __post_init__(self) -> None:
        t = np.ascontiguousarray(self.t, dtype=float)
        object.__setattr__(self, "t", t)
        if t.ndim != 1 or t.size < 2:
            raise TooFew(f"run '{self.name}' has {t.size} samples; at least two are needed")
        for signal in SIGNALS:
            value = getattr(self, signal)
            if value is not None:
                width = WIDTH[signal] if signal in WIDTH else np.shape(self.q)[-1]
                object.__setattr__(self, signal, self._checked(signal, value, width))
        unused = sorted(set(self.sensors) - set(self.wrenches))
        if unused:
            raise UnknownName(f"sensor '{unused[0]}' has no wrench", "sensors", where=f"run '{self.name}'")
        named = {n: self._checked(NAMED_WRENCH + n, w, 6) for n, w in self.wrenches.items()}
        object.__setattr__(self, "wrenches", named)
        touching = {n: self._checked(NAMED_CONTACT + n, np.reshape(c, (-1, 1)), 1) for n, c in self.contacts.items()}
        for foot, share in touching.items():
            if np.any((share < 0.0) | (share > 1.0)):
                raise InvalidValue(
                    f"the contact of '{foot}' must be between 0 and 1", "contact", where=f"run '{self.name}'"
                )
        object.__setattr__(self, "contacts", {n: c[:, 0] for n, c in touching.items()})
        object.__setattr__(self, "sensors", {n: self.sensors.get(n, WrenchSensor(n)) for n in named})
        if self.base is not None:
            object.__setattr__(self, "base", mended_poses(self.base, f"run '{self.name}'"))
        if not np.all(np.isfinite(t)):
            raise NotFinite(
                f"the time is not a finite number at row {np.argmin(np.isfinite(t))}", where=f"run '{self.name}'"
            )

    def _checked(self, signal: str, value: Array, width: int) -> Array:
        """A signal as a contiguous array (N, width) of finite numbers."""
        array = np.ascontiguousarray(value, dtype=float)
        if array.ndim != 2 or len(array) != self.t.size:
            raise InvalidShape(
                f"{signal} has shape {array.shape}, expected {self.t.size} rows as the time has",
                where=f"run '{self.name}'",
            )
        if array.shape[1] != width:
            raise InvalidShape(f"{signal} has {array.shape[1]} columns, expected {width}", where=f"run '{self.name}'")
        absent = np.isnan(array).all(axis=0) if signal == "link_q" else np.zeros(width, dtype=bool)
        bad = np.argwhere(~np.isfinite(array) & ~absent)
        if len(bad):
            raise NotFinite(
                f"{signal} is not a finite number at row {bad[0][0]}, column {bad[0][1]}", where=f"run '{self.name}'"
            )
        return array

    def __len__(self) -> int:
        return self.t.size

    @property
    def step(self) -> float:
        """Median time between samples in s."""
        return float(np.median(np.diff(self.t)))

    def rows(self, start: int, stop: int) -> Run:
        """Part of the run.

        Parameters
        ----------
        start, stop : int
            First row, counted from 0, and the row after the last; negative numbers count from the end.

        Returns
        -------
        Run
            The samples in between, under the same name.
        """
        cut = {s: getattr(self, s)[start:stop] for s in ("t", *SIGNALS) if getattr(self, s) is not None}
        wrenches = {n: w[start:stop] for n, w in self.wrenches.items()}
        return replace(self, **cut, wrenches=wrenches, contacts={n: c[start:stop] for n, c in self.contacts.items()})


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

        return draw_recording(self, signals, joints, robot, ax)

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


def column_names(signal: str, joints: Sequence[str]) -> list[str]:
    """Names of the columns of a signal in the files that `Recording.to_csv` writes."""
    if signal.startswith(NAMED_CONTACT):
        return [signal]
    kind = "wrench" if signal.startswith(NAMED_WRENCH) else signal
    return [f"{signal}_{x}" for x in PARTS.get(kind, joints)]


def mended_poses(poses: Array, where: str) -> Array:
    """Poses (N, 7) with unit quaternions of continuous sign: a quaternion and its opposite are the same rotation."""
    quaternion = poses[:, 3:]
    length = np.linalg.norm(quaternion, axis=1)
    # Printed with few digits a quaternion is off by a percent; a much shorter one is a gap filled with zeros.
    if length.min(initial=1.0) < 1e-3:
        row = int(np.argmin(length))
        raise InvalidValue(
            f"the quaternion of the base is zero at row {row}, which is not a rotation", "base", where=where
        )
    if np.abs(length - 1.0).max(initial=0.0) > 1e-12:
        quaternion = quaternion / length[:, None]
    flips = np.cumprod(np.where(np.sum(quaternion[1:] * quaternion[:-1], axis=1) < 0, -1.0, 1.0))
    if np.any(flips < 0):
        quaternion = np.concatenate([quaternion[:1], quaternion[1:] * flips[:, None]])
    return np.hstack([poses[:, :3], quaternion])
