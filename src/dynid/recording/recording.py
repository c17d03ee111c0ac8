"""Recording: what a robot did, as one or more runs of evenly or unevenly sampled signals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.files import writing
from dynid.markup import html_table
from dynid.recording.wrench import WrenchSensor

__all__ = ["Recording", "Run"]

Array = NDArray[np.float64]

# Signals of a run beside t, and their width where it is not the number of joints.
SIGNALS = ("q", "v", "a", "torque", "current", "reference", "wrench", "base", "base_v", "base_a")
WIDTH = {"wrench": 6, "base": 7, "base_v": 6, "base_a": 6}
# Wrenches of named sensors are signals too, under this word and their name.
NAMED_WRENCH = "wrench:"
PARTS = {
    "wrench": ("fx", "fy", "fz", "mx", "my", "mz"),
    "base": ("x", "y", "z", "qx", "qy", "qz", "qw"),
    "base_v": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "base_a": ("vx", "vy", "vz", "wx", "wy", "wz"),
}


@dataclass(frozen=True, eq=False)
class Run:
    """One uninterrupted stretch of samples: t (N,) in s, all other signals (N, joint) on the joint side in SI units.

    `wrench` (N, 6) acts on the base at its origin. `base` (N, 7) is its position and quaternion (x, y, z, w), brought
    to unit length and freed of changes of sign; `base_v` and `base_a` (N, 6) its body twist (linear, angular) and the
    rate of it where they are measured. `wrenches` (N, 6) are those of named sensors, exerted on the robot; `sensors`
    says where each is. One that is not named there sits in the frame of its own name.
    """

    t: Array
    q: Array
    v: Array | None = None
    a: Array | None = None
    torque: Array | None = None
    current: Array | None = None
    reference: Array | None = None
    wrench: Array | None = None
    base: Array | None = None
    base_v: Array | None = None
    base_a: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    sensors: Mapping[str, WrenchSensor] = field(default_factory=dict)
    name: str = "run"

    def __post_init__(self) -> None:
        t = np.ascontiguousarray(self.t, dtype=float)
        object.__setattr__(self, "t", t)
        if t.ndim != 1 or t.size < 2:
            raise DataError(f"run '{self.name}' has {t.size} samples; at least two are needed")
        for signal in SIGNALS:
            value = getattr(self, signal)
            if value is not None:
                width = WIDTH[signal] if signal in WIDTH else np.shape(self.q)[-1]
                object.__setattr__(self, signal, self._checked(signal, value, width))
        lost = sorted(set(self.sensors) - set(self.wrenches))
        if lost:
            raise DataError(f"run '{self.name}': sensor '{lost[0]}' has no wrench")
        named = {n: self._checked(NAMED_WRENCH + n, w, 6) for n, w in self.wrenches.items()}
        object.__setattr__(self, "wrenches", named)
        object.__setattr__(self, "sensors", {n: self.sensors.get(n, WrenchSensor(n)) for n in named})
        if self.base is not None:
            object.__setattr__(self, "base", mended_poses(self.base, f"run '{self.name}'"))
        if not np.all(np.isfinite(t)):
            raise DataError(f"run '{self.name}': the time is not a finite number at row {np.argmin(np.isfinite(t))}")

    def _checked(self, signal: str, value: Array, width: int) -> Array:
        array = np.ascontiguousarray(value, dtype=float)
        if array.ndim != 2 or len(array) != self.t.size:
            raise DataError(
                f"run '{self.name}': {signal} has shape {array.shape}, expected {self.t.size} rows as the time has"
            )
        if array.shape[1] != width:
            raise DataError(f"run '{self.name}': {signal} has {array.shape[1]} columns, expected {width}")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            raise DataError(
                f"run '{self.name}': {signal} is not a finite number at row {bad[0][0]}, column {bad[0][1]}"
            )
        return array

    def __len__(self) -> int:
        return self.t.size

    @property
    def step(self) -> float:
        """Median time between samples (s)."""
        return float(np.median(np.diff(self.t)))

    def rows(self, start: int, stop: int) -> Run:
        """The run between two row numbers."""
        cut = {s: getattr(self, s)[start:stop] for s in ("t", *SIGNALS) if getattr(self, s) is not None}
        return replace(self, **cut, wrenches={n: w[start:stop] for n, w in self.wrenches.items()})


@dataclass(frozen=True, eq=False)
class Recording:
    """One or more runs of the same robot; nothing is filtered or differentiated across their boundaries."""

    joints: tuple[str, ...]
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not self.runs:
            raise DataError("a recording needs at least one run")
        for run in self.runs:
            if run.q.shape[1] != len(self.joints):
                raise DataError(f"run '{run.name}' has {run.q.shape[1]} joints, the recording {len(self.joints)}")

    @property
    def samples(self) -> int:
        return sum(map(len, self.runs))

    @property
    def duration(self) -> float:
        """Seconds of all runs together."""
        return float(sum(run.t[-1] - run.t[0] for run in self.runs))

    def __add__(self, other: Recording) -> Recording:
        if other.joints != self.joints:
            raise DataError("recordings of different joints cannot be joined")
        return Recording(self.joints, self.runs + other.runs)

    def between(self, start: float, stop: float) -> Recording:
        """Only the samples from `start` to `stop` seconds after each run's beginning."""
        out = []
        for run in self.runs:
            t = run.t - run.t[0]
            inside = np.flatnonzero((t >= start) & (t <= stop))
            if inside.size >= 2:
                out.append(run.rows(int(inside[0]), int(inside[-1]) + 1))
        if not out:
            raise DataError(f"no run has samples between {start:g} and {stop:g} s")
        return Recording(self.joints, tuple(out))

    def columns(self) -> dict[str, Array]:
        """All runs as one table, column by column: run number, t, then signal_joint for what all runs have."""
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
        return out

    def to_csv(self, path: str | Path) -> None:
        """Write all runs into one CSV file with a header; `load_recording` reads it back."""
        table = self.columns()
        header = io.StringIO()
        csv.writer(header, lineterminator="").writerow(table)
        rows = np.column_stack(list(table.values()))
        with writing(path) as part:
            np.savetxt(part, rows, "%.17g", ",", header=header.getvalue(), comments="", encoding="utf-8")

    def to_parquet(self, path: str | Path) -> None:
        """Write all runs into one Parquet file; `load_recording` reads it back."""
        import polars

        with writing(path) as part:
            polars.DataFrame(self.columns()).write_parquet(part)

    def __repr__(self) -> str:
        counts = f"{len(self.runs)} runs, {self.samples} samples, {self.duration:.1f} s, {len(self.joints)} joints"
        return f"Recording({counts})"

    def _repr_html_(self) -> str:
        kinds = [s for s in SIGNALS if any(getattr(run, s) is not None for run in self.runs)]
        rows = [
            (
                run.name or f"run {k}",
                len(run),
                f"{run.t[-1] - run.t[0]:.2f}",
                f"{1 / run.step:.4g}",
                ", ".join([s for s in kinds if getattr(run, s) is not None] + sorted(run.wrenches)),
            )
            for k, run in enumerate(self.runs, 1)
        ]
        counts = f"Recording of {len(self.joints)} joints, {self.duration:.1f} s"
        return html_table(counts, ("run", "samples", "seconds", "Hz", "signals"), rows, ", ".join(self.joints))


def column_names(signal: str, joints: Sequence[str]) -> list[str]:
    kind = "wrench" if signal.startswith(NAMED_WRENCH) else signal
    return [f"{signal}_{x}" for x in PARTS.get(kind, joints)]


def mended_poses(poses: Array, where: str) -> Array:
    """Poses (N, 7) with quaternions of unit length that never jump to their opposite, which is the same rotation."""
    quaternion = poses[:, 3:]
    length = np.linalg.norm(quaternion, axis=1)
    # Printed with few digits a quaternion is off by a percent; a much shorter one is a gap filled with zeros.
    if length.min(initial=1.0) < 1e-3:
        row = int(np.argmin(length))
        raise DataError(f"{where}: the quaternion of the base is zero at row {row}, which is no rotation")
    if np.abs(length - 1.0).max(initial=0.0) > 1e-12:
        quaternion = quaternion / length[:, None]
    flips = np.cumprod(np.where(np.sum(quaternion[1:] * quaternion[:-1], axis=1) < 0, -1.0, 1.0))
    if np.any(flips < 0):
        quaternion = np.concatenate([quaternion[:1], quaternion[1:] * flips[:, None]])
    return np.hstack([poses[:, :3], quaternion])
