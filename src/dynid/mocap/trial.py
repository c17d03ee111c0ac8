"""Plain data of one motion-capture trial: markers, analog channels and force plates, on one clock that starts at 0."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    Duplicate,
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    NotApplicable,
    TooFew,
    UnknownName,
    keyword,
    named,
)
from dynid.mocap.plate import Plate
from dynid.mocap.resample import resample
from dynid.recording.recording import Recording
from dynid.recording.run import Run

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["Channels", "Trial", "unique_names"]

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
            raise UnknownName(f"no channel '{name}', there are {', '.join(self.names) or 'none'}", "name")
        return np.asarray(self.values[:, self.names.index(name)])

    @property
    def t(self) -> Array:
        """Times (K,), s."""
        return np.arange(len(self.values)) / self.rate


@dataclass(frozen=True, eq=False)
class Trial:
    """The plain data of one motion-capture trial; `Capture` describes the attributes and adds the checks.

    Checks take a `Trial`.
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
            raise InvalidValue(f"the rate must be positive, got {self.rate:g}", "rate", where=f"capture '{self.name}'")
        positions = np.ascontiguousarray(self.positions, dtype=float)
        if positions.ndim != 3 or positions.shape[1:] != (len(self.markers), 3):
            raise InvalidShape(
                f"positions have shape {positions.shape}, expected (N, {len(self.markers)}, 3)",
                "positions",
                where=f"capture '{self.name}'",
            )
        if len(set(self.markers)) != len(self.markers):
            raise Duplicate(f"capture '{self.name}' has two markers of one name", "markers")
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
        """Index of a marker by name."""
        if marker not in self.markers:
            raise UnknownName(
                f"capture '{self.name}' has no marker '{marker}', it has {', '.join(self.markers)}", "marker"
            )
        return self.markers.index(marker)

    def with_plates(self, other: Trial) -> Self:
        """The trial with the plates of another file of the same trial; the `start` of both files aligns the clocks."""
        late = self.start - other.start
        if late < -0.5 / self.rate:
            raise Mismatch(f"the plates of '{other.name}' start {-late:.4g} s after the cameras of '{self.name}'")
        plates = []
        for plate in other.plates:
            times = np.arange(max(late, 0.0), float(plate.t[-1]) + 1e-9, 1.0 / plate.rate)
            plates.append(replace(plate, wrench=resample(plate.wrench, plate.rate, times, plate.rate)))
        return replace(self, plates=self.plates + tuple(plates))

    # -- one clock -------------------------------------------------------------------------------

    def wrench(self, times: ArrayLike | None = None, delay: float = 0.0) -> Array:
        """Total ground reaction of all plates about the origin of the laboratory.

        Parameters
        ----------
        times : array_like, optional
            Times, s; by default the camera frames. Frequencies above their Nyquist rate are filtered out.
        delay : float, default 0.0
            Delay of the plates against the cameras, s, as given by `clock_offset`.

        Returns
        -------
        ndarray, shape (N, 6)
            Force (N) and moment (N m); nan at times that no plate covers.
        """
        if not self.plates:
            raise MissingData(f"capture '{self.name}' has no force plate")
        at = self.t if times is None else np.asarray(times, dtype=float)
        if not len(at):
            raise MissingArgument(f"capture '{self.name}' has no camera frames: give {keyword('times')}")
        return np.asarray(sum(plate.at(at + delay) for plate in self.plates))

    def resampled(self, rate: float, delay: float = 0.0) -> Self:
        """Resample cameras, plates and channels to one clock, band-limited.

        Gaps of markers remain. Only the time that cameras and plates both cover is kept; it starts at 0.

        Parameters
        ----------
        rate : float
            New rate, Hz.
        delay : float, default 0.0
            Delay of the plates against the cameras, s.

        Returns
        -------
        Capture
            The resampled trial.
        """
        if not rate > 0:
            raise InvalidValue(f"{named('rate')} must be positive, got {rate:g}")
        ends = [(0.0, float(self.t[-1]))] if len(self.t) else []
        ends += [(-delay, float(p.t[-1]) - delay) for p in self.plates]
        if len(self.analogs.values):
            ends.append((-delay, float(self.analogs.t[-1]) - delay))
        if not ends:
            raise MissingData(f"capture '{self.name}' is empty")
        start, stop = max(x for x, _ in ends), min(x for _, x in ends)
        count = int(np.floor((stop - start) * rate + 1e-6)) + 1
        if count < 2:
            raise TooFew(
                f"cameras and plates share less than two samples at {rate:g} Hz", "rate", where=f"capture '{self.name}'"
            )
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

    def recording(self, robot: Robot) -> Recording:
        """Coordinates of a motion file as a recording of a robot with fixed base, matched by joint names."""
        if robot.base == "floating":
            raise NotApplicable(f"robot '{robot.name}' has a floating base: its motion comes from inverse_kinematics")
        missing = [name for name in robot.coordinates if name not in self.coordinates.names]
        if missing:
            there = ", ".join(self.coordinates.names) or "none"
            raise MissingData(f"capture '{self.name}' has no coordinate '{missing[0]}', it has {there}")
        q = np.column_stack([self.coordinates[name] for name in robot.coordinates])
        return Recording(robot.coordinates, (Run(self.coordinates.t, q, name=self.name),))

    def __repr__(self) -> str:
        parts = [f"{len(self.t)} frames at {self.rate:g} Hz", f"{len(self.markers)} markers"]
        parts += [f"{len(self.plates)} plates"] if self.plates else []
        parts += [f"{len(self.coordinates.names)} coordinates"] if self.coordinates.names else []
        return f"{type(self).__name__}('{self.name}', {', '.join(parts)})"


def _with_gaps(positions: Array, rate: float, times: Array, new_rate: float) -> Array:
    """Markers on another clock; a new frame is missing if one of its two neighbours is."""
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
    """Unique names: numbers where names are missing, a suffix for repeated ones."""
    out: dict[str, None] = {}
    copies: Counter[str] = Counter()
    for k in range(count):
        unique = name = given[k] if k < len(given) and given[k] else f"{otherwise}{k + 1}"
        while unique in out:
            copies[name] += 1
            unique = f"{name}#{copies[name] + 1}"
        out[unique] = None
    return tuple(out)
