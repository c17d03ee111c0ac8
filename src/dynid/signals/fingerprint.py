"""Fingerprint of a motion: few samples of the positions by which the same motion is recognised in another recording.

Names, formats, rates and time stamps of two recordings say nothing of whether one is unseen motion for the other. The
positions do: a part of a recording, resampled, shifted or written in another format, has the same positions.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.signals.manifold import accumulated_rotation
from dynid.signals.settings import Motion

__all__ = ["Fingerprint", "fingerprint", "repeated_share"]

Array = NDArray[np.float64]

# Samples per second of a fingerprint, and how many it may have: a long recording is sampled less often.
_RATE, _SLOWEST_RATE, _MOST_SAMPLES = 25.0, 5.0, 6000
# Positions are compared below this share of the sampling rate, where they can be interpolated.
_BAND = 0.2
# Positions are compared over segments of this many samples: two seconds at the full rate.
_SEGMENT = 50
# Segments with less than this share of the usual motion are at rest and match everything.
_MOVING = 0.05
# Two segments are the same motion if they differ by less than this share of the motion. A robot that repeats a motion
# differs by its repeatability, about a thousandth; different motions differ by about one.
_SAME = 0.05
# Neighbouring segments repeat a motion only if they do so with the same shift, to this many samples.
_SHIFT = 2
# This many segments in a row must match: one alone may match by chance where only one joint moves.
_IN_A_ROW = 3
_WINDOWS = 4096
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
    """

    rate: float
    unit: Array
    runs: tuple[NDArray[np.int32], ...]

    @property
    def positions(self) -> list[Array]:
        """Positions of each run (samples, coordinate), in rad or m."""
        return [run * self.unit for run in self.runs]

    def to_dict(self) -> dict[str, Any]:
        """Return rate, unit and positions as plain data; positions are compressed."""
        return {"rate": self.rate, "unit": self.unit, "runs": [_packed(run) for run in self.runs]}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Fingerprint:
        """Rebuild a fingerprint from what `to_dict` returned; a ValueError if it is damaged."""
        try:
            rate, unit = float(data["rate"]), np.array(data["unit"], dtype=float)
            if not (rate > 0.0 and np.all(unit > 0.0) and np.all(np.isfinite([rate, *unit]))):
                raise ValueError("rate and unit of a fingerprint must be positive numbers")
            return Fingerprint(rate, unit, tuple(_unpacked(run, len(unit)) for run in data["runs"]))
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
        duration = sum(len(m.t) / m.rate for m in motions)
        rate = float(np.clip(_MOST_SAMPLES / max(duration, 1e-9), _SLOWEST_RATE, _RATE))
    sampled = [_sampled(m, rate) for m in motions]
    span = np.ptp(np.vstack(sampled), axis=0)
    unit = np.exp2(np.floor(np.log2(np.where(span > 0, span, 1.0))) - _BITS)
    return Fingerprint(rate, unit, tuple(np.round(run / unit).astype(np.int32) for run in sampled))


def repeated_share(fitted: Fingerprint, motions: Sequence[Motion]) -> float:
    """Share of the motion time of some runs that repeats the motion of a fingerprint, at any shift of time.

    Parameters
    ----------
    fitted : Fingerprint
        Fingerprint of the recording that was fitted.
    motions : sequence of Motion
        Filtered runs of the recording that should be unseen.

    Returns
    -------
    float
        Between 0 (all of it is another motion, or at rest) and 1.

    Raises
    ------
    DataError
        If the two recordings have different numbers of coordinates.
    """
    other = fingerprint(motions, fitted.rate)
    if not fitted.runs or not other.runs:
        return 0.0
    if fitted.runs[0].shape[1] != other.runs[0].shape[1]:
        raise DataError("the two recordings have different numbers of joints; their motions cannot be compared")
    seen, runs = fitted.positions, other.positions
    size = np.std(np.vstack([*seen, *runs]), axis=0)
    unit = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
    length = min(_SEGMENT, *(len(run) for run in (*seen, *runs)))
    seen, runs = [run * unit for run in seen], [run * unit for run in runs]
    moving = repeated = 0
    usual = float(np.median([np.var(s, axis=0).sum() for run in runs for s in _segments(run, length)]))
    for run in runs:
        alive, same = _matches(run, seen, length, _MOVING * usual)
        moving += int(alive.sum())
        repeated += int(same.sum())
    return repeated / moving if moving else 0.0


def _segments(run: Array, length: int) -> list[Array]:
    """Consecutive segments of a run; the last one ends with the run."""
    starts = list(range(0, len(run) - length + 1, length))
    if starts and starts[-1] + length < len(run):
        starts.append(len(run) - length)
    return [run[k : k + length] for k in starts]


def _matches(
    run: Array, seen: Sequence[Array], length: int, least: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which segments of a run move, and which of these repeat one of the runs that were seen."""
    segments = _segments(run, length)
    alive = np.array([float(np.var(s, axis=0).sum()) > least for s in segments])
    same = np.zeros(len(segments), dtype=bool)
    needed = min(_IN_A_ROW, int(alive.sum()))
    for other in seen:
        if len(other) < length or not needed:
            continue
        distance = _distances(segments, other, length)
        energy = np.array([max(float(np.var(s, axis=0).sum()) * length, 1e-300) for s in segments])
        close = (distance < _SAME**2 * energy[:, None]) & alive[:, None]
        # A match of several segments in a row is a diagonal: the shift of time stays the same.
        diagonals: dict[int, list[int]] = {}
        for i, k in zip(*np.nonzero(close), strict=True):
            shift = int(k) - i * length if i < len(segments) - 1 else int(k) - (len(run) - length)
            for near in range(shift - _SHIFT, shift + _SHIFT + 1):
                diagonals.setdefault(near, []).append(int(i))
        for members in diagonals.values():
            chain = _chains(np.unique(members), alive, needed)
            same[chain] = True
    return alive, same & alive


def _chains(members: NDArray[np.int64], alive: NDArray[np.bool_], needed: int) -> NDArray[np.int64]:
    """Members of chains of enough matching segments; segments at rest between them do not break a chain."""
    rank = np.cumsum(alive) - 1
    parts = np.split(members, np.flatnonzero(np.diff(rank[members]) > 1) + 1)
    found = [part for part in parts if len(part) >= needed]
    return np.concatenate(found) if found else members[:0]


def _distances(segments: Sequence[Array], other: Array, length: int) -> Array:
    """Squared distance (segment, window) of each segment to each window of a run, at the best shift below a sample."""
    flat = np.array([s.ravel() for s in segments])
    windows = len(other) - length + 1
    out = np.empty((len(segments), windows))
    own = np.sum(flat**2, axis=1)
    change = np.gradient(other, axis=0)
    for start in range(0, windows, _WINDOWS):
        stop = min(start + _WINDOWS, windows)
        at, slope = (
            sliding_window_view(x[start : stop + length - 1], length, axis=0)
            .transpose(0, 2, 1)
            .reshape(stop - start, -1)
            for x in (other, change)
        )
        whole = own[:, None] + np.sum(at**2, axis=1) - 2.0 * flat @ at.T
        # One step of Gauss-Newton for the shift: the distance falls by the part along the slope.
        along = flat @ slope.T - np.sum(at * slope, axis=1)
        steep = np.maximum(np.sum(slope**2, axis=1), 1e-300)
        shift = np.clip(along / steep, -1.0, 1.0)
        out[:, start:stop] = whole - 2.0 * shift * along + shift**2 * steep
    return np.maximum(out, 0.0)


def _sampled(motion: Motion, rate: float) -> Array:
    """Positions of a run, low-passed and sampled at the rate of a fingerprint; of base and joints."""
    q = motion.q
    if motion.base is not None:
        pose = motion.base.pose
        q = np.hstack([q, pose[:, :3], accumulated_rotation(pose)])
    if motion.rate > 2.0 * _BAND * rate and len(q) > 30:
        sos = scipy.signal.butter(2, _BAND * rate, fs=motion.rate, output="sos")
        q = scipy.signal.sosfiltfilt(sos, q, axis=0)
    t = np.arange(0.0, (len(q) - 1) / motion.rate, 1.0 / rate)
    return np.asarray(scipy.interpolate.CubicSpline(np.arange(len(q)) / motion.rate, q, axis=0)(t))


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
