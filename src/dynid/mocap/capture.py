"""Capture: what cameras, analog channels and force plates saw of a moving body, on one clock that starts at 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.mocap.plate import Plate
from dynid.mocap.resample import resample
from dynid.recording.recording import Recording, Run

if TYPE_CHECKING:
    from dynid.assessment.finding import Finding
    from dynid.mocap.faults import Gap, Spike, Swap
    from dynid.robot.model import Robot

__all__ = ["Capture", "Channels", "unique_names"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channels:
    """Named columns of evenly sampled values (K, C) at `rate` Hz from time 0, with their units."""

    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    rate: float = 1.0
    values: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise DataError(f"no channel '{name}', there are {', '.join(self.names) or 'none'}")
        return np.asarray(self.values[:, self.names.index(name)])

    @property
    def t(self) -> Array:
        return np.arange(len(self.values)) / self.rate


@dataclass(frozen=True, eq=False)
class Capture:
    """Markers, analog channels, force plates and coordinates of one trial; metres, radians, newtons, z up.

    positions (N, M, 3) of the markers at `rate` Hz in the laboratory, NaN where one was not seen. `analogs` are the
    raw channels in units of the file, `coordinates` those of a motion file. `events`: name and time in s. `start` is
    the time that the file gives its first sample; here every clock starts at 0.
    """

    name: str
    rate: float
    markers: tuple[str, ...] = ()
    positions: Array = field(default_factory=lambda: np.zeros((0, 0, 3)))
    analogs: Channels = field(default_factory=Channels)
    plates: tuple[Plate, ...] = ()
    coordinates: Channels = field(default_factory=Channels)
    events: tuple[tuple[str, float], ...] = ()
    start: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise DataError(f"capture '{self.name}': the rate must be positive, got {self.rate:g}")
        positions = np.ascontiguousarray(self.positions, dtype=float)
        if positions.ndim != 3 or positions.shape[1:] != (len(self.markers), 3):
            raise DataError(
                f"capture '{self.name}': positions have shape {positions.shape}, expected (N, {len(self.markers)}, 3)"
            )
        if len(set(self.markers)) != len(self.markers):
            raise DataError(f"capture '{self.name}' has two markers of one name")
        # A marker of which one coordinate is missing was not seen.
        positions = np.where(np.isfinite(positions).all(axis=2, keepdims=True), positions, np.nan)
        object.__setattr__(self, "positions", positions)

    @property
    def t(self) -> Array:
        """Times (N,) of the camera frames, or of the coordinates where there are no markers."""
        count = len(self.positions) if self.markers else len(self.coordinates.values)
        return np.arange(count) / self.rate

    def __getitem__(self, marker: str) -> Array:
        """Positions (N, 3) of one marker."""
        return np.asarray(self.positions[:, self.marker_index(marker)])

    def marker_index(self, marker: str) -> int:
        if marker not in self.markers:
            raise DataError(f"capture '{self.name}' has no marker '{marker}', it has {', '.join(self.markers)}")
        return self.markers.index(marker)

    def with_markers(self, positions: Mapping[str, ArrayLike]) -> Capture:
        """The same trial with only these markers, at positions (N, 3) in m."""
        stacked = np.stack([np.asarray(x, dtype=float) for x in positions.values()], axis=1)
        return replace(self, markers=tuple(positions), positions=stacked)

    def with_plates(self, other: Capture) -> Capture:
        """The same trial with the plates of another file of it, whose clock is told by both files' `start`."""
        late = self.start - other.start
        if late < -0.5 / self.rate:
            raise DataError(f"the plates of '{other.name}' start {-late:.4g} s after the cameras of '{self.name}'")
        plates = []
        for plate in other.plates:
            times = np.arange(max(late, 0.0), float(plate.t[-1]) + 1e-9, 1.0 / plate.rate)
            plates.append(replace(plate, wrench=resample(plate.wrench, plate.rate, times, plate.rate)))
        return replace(self, plates=self.plates + tuple(plates))

    # -- one clock -------------------------------------------------------------------------------

    def wrench(self, times: ArrayLike | None = None, delay: float = 0.0) -> Array:
        """Reaction of all plates together (N, 6) about the laboratory's origin, at the camera frames or `times`.

        What the new clock cannot show is filtered out first. `delay`: seconds by which the plates' clock lags the
        cameras' (as `clock_offset` tells it); times that no plate covers hold NaN.
        """
        if not self.plates:
            raise DataError(f"capture '{self.name}' has no force plate")
        at = self.t if times is None else np.asarray(times, dtype=float)
        if not len(at):
            raise DataError(f"capture '{self.name}' has no camera frames: give times=")
        return np.asarray(sum(plate.at(at + delay) for plate in self.plates))

    def resampled(self, rate: float, delay: float = 0.0) -> Capture:
        """Cameras, plates and channels on one clock of `rate` Hz, band-limited; `delay` as for `wrench`.

        Gaps of markers stay gaps. Only the time that cameras and plates both cover is kept, starting at 0.
        """
        if not rate > 0:
            raise DataError(f"rate must be positive, got {rate:g}")
        ends = [(0.0, float(self.t[-1]))] if len(self.t) else []
        ends += [(-delay, float(p.t[-1]) - delay) for p in self.plates]
        if len(self.analogs.values):
            ends.append((-delay, float(self.analogs.t[-1]) - delay))
        if not ends:
            raise DataError(f"capture '{self.name}' is empty")
        start, stop = max(x for x, _ in ends), min(x for _, x in ends)
        count = int(np.floor((stop - start) * rate + 1e-6)) + 1
        if count < 2:
            raise DataError(f"capture '{self.name}': cameras and plates share less than two samples at {rate:g} Hz")
        times = start + np.arange(count) / rate

        def channels(old: Channels, shift: float) -> Channels:
            if not len(old.values):
                return old
            return replace(old, rate=rate, values=resample(old.values, old.rate, times + shift, rate))

        plates = tuple(
            replace(p, rate=rate, wrench=resample(p.wrench, p.rate, times + delay, rate)) for p in self.plates
        )
        return replace(
            self,
            rate=rate,
            positions=_with_gaps(self.positions, self.rate, times, rate),
            analogs=channels(self.analogs, delay),
            plates=plates,
            coordinates=channels(self.coordinates, 0.0),
            events=tuple((name, t - start) for name, t in self.events),
        )

    # -- what is wrong with it -------------------------------------------------------------------

    def gaps(self) -> tuple[Gap, ...]:
        """Stretches of frames in which a marker was not seen."""
        from dynid.mocap.faults import find_gaps

        return find_gaps(self)

    def swaps(self) -> tuple[Swap, ...]:
        """Stretches of frames in which two markers bear each other's name."""
        from dynid.mocap.faults import find_swaps

        return find_swaps(self)

    def spikes(self) -> tuple[Spike, ...]:
        """Frames in which a marker leaps away and comes back."""
        from dynid.mocap.faults import find_spikes

        return find_spikes(self)

    def unswapped(self) -> Capture:
        """The capture with the names of all `swaps` exchanged back."""
        from dynid.mocap.faults import undo_swaps

        return undo_swaps(self)

    def findings(self, mass: float | None = None) -> tuple[Finding, ...]:
        """What is wrong with markers, plates and clocks, in words, worst first; `mass` of the body in kg helps."""
        from dynid.mocap.findings import find

        return find(self, mass)

    def clock_offset(self, height: ArrayLike | None = None) -> tuple[float, float]:
        """Seconds by which the plates lag the cameras, and the correlation that tells it.

        Compares the vertical force with the vertical acceleration of the body: of `height` (N,) in m, the centre of
        mass where it is known, or of the mean of all markers.
        """
        from dynid.mocap.plate_checks import compare_clocks

        lag, correlation, _ = compare_clocks(self, None if height is None else np.asarray(height, dtype=float))
        return lag, correlation

    def recording(self, robot: Robot) -> Recording:
        """The coordinates of a motion file as a recording of a robot with fixed base, joints by their names."""
        if robot.base == "floating":
            raise DataError(f"robot '{robot.name}' has a floating base: its motion comes from inverse_kinematics")
        missing = [name for name in robot.coordinates if name not in self.coordinates.names]
        if missing:
            there = ", ".join(self.coordinates.names) or "none"
            raise DataError(f"capture '{self.name}' has no coordinate '{missing[0]}', it has {there}")
        q = np.column_stack([self.coordinates[name] for name in robot.coordinates])
        return Recording(robot.coordinates, (Run(self.coordinates.t, q, name=self.name),))

    def __repr__(self) -> str:
        parts = [f"{len(self.t)} frames at {self.rate:g} Hz", f"{len(self.markers)} markers"]
        parts += [f"{len(self.plates)} plates"] if self.plates else []
        parts += [f"{len(self.coordinates.names)} coordinates"] if self.coordinates.names else []
        return f"Capture('{self.name}', {', '.join(parts)})"


def _with_gaps(positions: Array, rate: float, times: Array, new_rate: float) -> Array:
    """Markers on another clock; a new frame between two old ones of which one is missing is missing."""
    count, markers = positions.shape[:2]
    out = np.full((len(times), markers, 3), np.nan)
    where = np.clip(times * rate, 0, count - 1)
    low, high = np.floor(where + 1e-9).astype(int), np.ceil(where - 1e-9).astype(int)
    for m in range(markers):
        seen = np.isfinite(positions[:, m, 0])
        if seen.sum() < 2:
            continue
        frames = np.arange(count)
        filled = np.column_stack([np.interp(frames, frames[seen], x[seen]) for x in positions[:, m].T])
        moved = resample(filled, rate, times, new_rate)
        out[:, m] = np.where((seen[low] & seen[high])[:, None], moved, np.nan)
    return out


def unique_names(given: list[str], count: int, otherwise: str) -> tuple[str, ...]:
    """One name each: numbers where names are missing, a number behind those that repeat."""
    out: list[str] = []
    for k in range(count):
        name = given[k] if k < len(given) and given[k] else f"{otherwise}{k + 1}"
        copies = 1
        unique = name
        while unique in out:
            copies += 1
            unique = f"{name}#{copies}"
        out.append(unique)
    return tuple(out)
