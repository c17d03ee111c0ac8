"""Fingerprint of a motion: few samples of the positions by which the same motion is recognised in another recording.

Names, formats, rates and time stamps of two recordings say nothing of whether one is unseen motion for the other. The
positions do: a part of a recording, resampled, shifted or written in another format, has the same positions. Of a data
set that lasts days, evenly spaced stretches are kept.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.signals.manifold import accumulated_rotation
from dynid.signals.settings import Motion

__all__ = ["SEGMENT", "STRETCH", "Fingerprint", "MotionSampler", "fingerprint", "sampling_rate", "stretches"]

Array = NDArray[np.float64]

# Samples per second of a fingerprint, and how many it may have: a long recording is sampled less often.
_RATE, _SLOWEST_RATE, _MOST_SAMPLES = 25.0, 5.0, 6000
# Positions are compared below this share of the sampling rate, where they can be interpolated.
_BAND = 0.2
# Positions are compared over segments of this many samples: two seconds at the full rate, ten at the slowest. Where a
# part of the motion is kept, it is kept in stretches of five segments, of which any shift of time finds four.
SEGMENT, STRETCH = 50, 250
# Two filtered runs with less than this many seconds between them are one motion that was read in two chunks.
_BRIDGED = 1.0
# The low-pass continues the motion beyond the ends of a run for this many periods of its cut-off.
_CONTINUED = 1.0
# Low-passed positions are interpolated between this many points per sample of the fingerprint.
_POINTS = 10
# A stored fingerprint is read up to this many positions: at its slowest rate, a day of a hundred joints.
_MOST_NUMBERS = 100 * 5 * 86400
# Positions are stored with a resolution of their range over two to this power, at least.
_BITS = 12


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Low-passed positions of a recording at a low rate.

    Attributes
    ----------
    rate : float
        Samples per second.
    unit : ndarray (coordinate,)
        Resolution of the positions, in rad or m.
    runs : tuple of ndarray (samples, coordinate)
        Positions of each run, as multiples of `unit`.
    share : float
        Share of the motion that is kept; less than one for long data sets.
    gap : float
        Longest piece of the motion that is not kept, in s.
    """

    rate: float
    unit: Array
    runs: tuple[NDArray[np.int32], ...]
    share: float = 1.0
    gap: float = 0.0

    @staticmethod
    def of_positions(rate: float, runs: Sequence[Array], share: float = 1.0, gap: float = 0.0) -> Fingerprint:
        """The fingerprint of positions (samples, coordinate) at its rate; for the parameters see the attributes."""
        span = np.ptp(np.vstack(runs), axis=0)
        unit = np.exp2(np.floor(np.log2(np.where(span > 0, span, 1.0))) - _BITS)
        return Fingerprint(rate, unit, tuple(np.round(run / unit).astype(np.int32) for run in runs), share, gap)

    @property
    def positions(self) -> list[Array]:
        """Positions of each run (samples, coordinate), in rad or m."""
        return [run * self.unit for run in self.runs]

    def to_dict(self) -> dict[str, Any]:
        """Return rate, unit and positions as plain data; positions are compressed."""
        kept = {} if self.share == 1.0 else {"share": self.share, "gap": self.gap}
        return {"rate": self.rate, "unit": self.unit, "runs": [_packed(run) for run in self.runs], **kept}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Fingerprint:
        """Rebuild a fingerprint from what `to_dict` returned; a ValueError if it is damaged."""
        try:
            rate, unit = float(data["rate"]), np.array(data["unit"], dtype=float)
            if not (rate > 0.0 and np.all(unit > 0.0) and np.all(np.isfinite([rate, *unit]))):
                raise ValueError("rate and unit of a fingerprint must be positive numbers")
            share, gap = float(data.get("share", 1.0)), float(data.get("gap", 0.0))
            if not (0.0 < share <= 1.0 and 0.0 <= gap < np.inf):
                raise ValueError("the share of the motion that is kept lies between 0 and 1, and its gaps are finite")
            return Fingerprint(rate, unit, tuple(_unpacked(run, len(unit)) for run in data["runs"]), share, gap)
        except (KeyError, TypeError, OverflowError, zlib.error) as error:
            raise ValueError(f"a fingerprint is damaged: {error}") from None


def fingerprint(motions: Sequence[Motion], rate: float | None = None) -> Fingerprint:
    """Fingerprint of filtered runs.

    Parameters
    ----------
    motions : sequence of Motion
        Filtered runs on uniform clocks.
    rate : float, optional
        Samples per second; by default 25, less for recordings of more than four minutes.

    Returns
    -------
    Fingerprint
    """
    if rate is None:
        rate = sampling_rate(sum(len(m.t) / m.rate for m in motions))
    return Fingerprint.of_positions(rate, [_sampled(m, rate) for m in motions])


def sampling_rate(duration: float) -> float:
    """Samples per second of the fingerprint of a motion of this many seconds."""
    return float(np.clip(_MOST_SAMPLES / max(duration, 1e-9), _SLOWEST_RATE, _RATE))


class MotionSampler:
    """Positions at a low rate of a motion that is read in chunks; consecutive chunks are one run.

    Parameters
    ----------
    rate : float
        Samples per second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._runs: list[list[Array]] = []
        self._start = self._end = np.nan
        self._last: tuple[Array, Array] | None = None
        self._count = 0

    @property
    def runs(self) -> list[Array]:
        """Positions (samples, coordinate) of the runs so far; of none shorter than a segment, if others are longer."""
        found = [np.concatenate(parts) for parts in self._runs]
        return [run for run in found if len(run) >= SEGMENT] or [run for run in found if len(run)]

    def add(self, motion: Motion) -> None:
        """Sample a filtered run, which continues the one before if it begins where that one ended."""
        points, step = _lowpassed(motion, self._rate)
        begin = float(motion.t[0])
        first, last = ((points[k + 1] - points[k]) / step for k in (0, -2))
        continues = self._last is not None and motion.base is None and 0.0 < begin - self._end < _BRIDGED
        if not continues:
            self._runs.append([])
            self._start, self._count = begin, 0
        elif self._last is not None:
            times = self._times(begin)
            ends, slopes = np.array([self._last[0], points[0]]), np.array([self._last[1], first])
            bridge = scipy.interpolate.CubicHermiteSpline([self._end, begin], ends, slopes)
            self._runs[-1].append(bridge(times))
        times = self._times(begin + (len(points) - 1) * step) - begin
        self._runs[-1].append(_interpolated(points, step, times))
        self._end, self._last = begin + (len(points) - 1) * step, (points[-1], last)

    def _times(self, end: float) -> Array:
        """Instants of the run before `end` that are not sampled yet."""
        until = max(int(np.ceil((end - self._start) * self._rate - 1e-6)), self._count)
        times = self._start + np.arange(self._count, until) / self._rate
        self._count = until
        return times


def stretches(runs: Sequence[Array], most: int) -> tuple[list[Array], int]:
    """Evenly spaced stretches of runs that have about `most` samples together, and the samples between two of them."""
    total = sum(len(run) for run in runs)
    if total <= most:
        return list(runs), 0
    period = -(-total * STRETCH // most)
    found = [run[k : k + STRETCH] for run in runs for k in range(0, len(run), period)]
    return [run for run in found if len(run) >= SEGMENT] or found[:1], max(period - STRETCH, 0)


def _sampled(motion: Motion, rate: float) -> Array:
    """Positions of a run, low-passed and sampled at the rate of a fingerprint; of base and joints."""
    points, step = _lowpassed(motion, rate)
    return _interpolated(points, step, np.arange(0.0, (len(motion.t) - 1) / motion.rate, 1.0 / rate))


def _lowpassed(motion: Motion, rate: float) -> tuple[Array, float]:
    """Low-passed positions (points, coordinate) of base and joints for a sampling rate, and their step in s."""
    q = motion.q
    if motion.base is not None:
        pose = motion.base.pose
        q = np.hstack([q, pose[:, :3], accumulated_rotation(pose)])
    band = _BAND * rate
    if motion.rate > 2.0 * band and len(q) > 30:
        sos = scipy.signal.butter(2, band, fs=motion.rate, output="sos")
        q = scipy.signal.sosfiltfilt(sos, q, axis=0, padlen=min(len(q) - 1, int(_CONTINUED * motion.rate / band)))
    every = max(int(motion.rate / (_POINTS * rate)), 1)
    while every > 1 and (len(q) - 1) // every < 3:
        every -= 1
    return q[::every], every / motion.rate


def _interpolated(points: Array, step: float, times: Array) -> Array:
    """Points (N, coordinate) that are `step` seconds apart, at other times."""
    return np.asarray(scipy.interpolate.CubicSpline(step * np.arange(len(points)), points, axis=0)(times))


def _packed(run: NDArray[np.int32]) -> dict[str, Any]:
    change = np.diff(run, axis=0, prepend=np.zeros((1, run.shape[1]), dtype=np.int32))
    return {"samples": len(run), "steps": base64.b64encode(zlib.compress(change.astype("<i4").tobytes(), 9)).decode()}


def _unpacked(data: Mapping[str, Any], width: int) -> NDArray[np.int32]:
    size = int(data["samples"]) * width
    if not 0 <= size <= _MOST_NUMBERS:
        raise ValueError(f"a fingerprint cannot have {size} positions")
    raw = zlib.decompressobj().decompress(base64.b64decode(data["steps"], validate=True), 4 * max(size, 1))
    if len(raw) != 4 * size:
        raise ValueError("a fingerprint has too few samples")
    return np.cumsum(np.frombuffer(raw, dtype="<i4").reshape(-1, width), axis=0, dtype=np.int32)
