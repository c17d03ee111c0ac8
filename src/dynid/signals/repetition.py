"""Whether a motion repeats another one: segments of its positions are looked for in a fingerprint, at any shift.

Every segment is compared with every window of the fingerprint. The lowest coefficients of the cosine transform of both
decide first: their distance is never larger than that of the positions, so no match is lost, and few windows are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dynid.errors import Mismatch
from dynid.signals.fingerprint import SEGMENT, STRETCH, Fingerprint, fingerprint
from dynid.signals.settings import Motion

__all__ = ["Repetition", "SeenMotion", "repeated_share"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

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
# Coefficients of the cosine transform per coordinate that are compared first.
_COEFFICIENTS = 4
# Share of the motion that may be unknown, because a part of the fitted motion is not kept.
_UNKNOWN = 0.1


@dataclass(frozen=True)
class Repetition:
    """How much of a motion repeats a fitted one, in segments of time.

    Attributes
    ----------
    moving : int
        Segments in which the robot moves.
    repeated : int
        Those that repeat a part of the fitted motion that is kept.
    unknown : int
        Those of runs so short that they may lie between two kept parts of the fitted motion.
    """

    moving: int = 0
    repeated: int = 0
    unknown: int = 0

    def __add__(self, other: Repetition) -> Repetition:
        return Repetition(self.moving + other.moving, self.repeated + other.repeated, self.unknown + other.unknown)


class SeenMotion:
    """The motion of a fingerprint, with which others are compared.

    Parameters
    ----------
    fitted : Fingerprint
        Fingerprint of the recording that was fitted.
    """

    def __init__(self, fitted: Fingerprint) -> None:
        self.fitted = fitted
        self._runs = fitted.positions
        self._coefficients: dict[int, tuple[Array, Array]] = {}

    def compare(self, runs: Sequence[Array]) -> Repetition:
        """Compare positions (samples, coordinate) of some runs, sampled at the rate of the fingerprint.

        Raises a DataError if they have another number of coordinates.
        """
        seen, runs = self._runs, [run for run in runs if len(run) > 1]
        if not seen or not runs:
            return Repetition()
        if seen[0].shape[1] != runs[0].shape[1]:
            raise Mismatch("the two recordings have different numbers of joints; their motions cannot be compared")
        size = np.std(np.vstack([*seen, *runs]), axis=0)
        unit = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
        length = min(SEGMENT, *(len(run) for run in (*seen, *runs)))
        scaled = [run * unit for run in runs]
        usual = float(np.median([np.var(s, axis=0).sum() for run in scaled for s in _segments(run, length)]))
        total = Repetition()
        for run in scaled:
            alive, same = self._matches(run, unit, length, _MOVING * usual)
            lost = self.fitted.share < 1.0 and len(run) < self.fitted.gap * self.fitted.rate + 2 * STRETCH
            unknown = int(alive.sum()) if lost and not same.any() else 0
            total += Repetition(int(alive.sum()), int(same.sum()), unknown)
        return total

    def share(self, found: Repetition) -> float:
        """Share of the motion that repeats the fitted one; NaN where too much is unknown.

        Where a part of the fitted motion is kept, matches with that part stand for all.
        """
        if not found.moving:
            return 0.0
        share = found.repeated / found.moving
        if self.fitted.share < 1.0:
            share = min(share / (self.fitted.share * (1.0 - SEGMENT / STRETCH)), 1.0)
            if share <= _UNKNOWN < found.unknown / found.moving:
                return math.nan
        return share

    def _matches(self, run: Array, unit: Array, length: int, least: float) -> tuple[Mask, Mask]:
        """Which segments of a scaled run move, and which of these repeat one of the runs that were seen."""
        segments = _segments(run, length)
        alive = np.array([float(np.var(s, axis=0).sum()) > least for s in segments])
        same = np.zeros(len(segments), dtype=bool)
        needed = min(_IN_A_ROW, int(alive.sum()))
        if not needed:
            return alive, same
        energy = np.array([max(float(np.var(s, axis=0).sum()) * length, 1e-300) for s in segments])
        near = self._near(np.array(segments), unit, _SAME * np.sqrt(energy)) & alive[:, None]
        for k in np.flatnonzero(near.sum(axis=0) >= needed):
            other = self._runs[k] * unit
            mine = np.flatnonzero(near[:, k])
            distance = _distances([segments[i] for i in mine], other, length)
            close = distance < _SAME**2 * energy[mine, None]
            # A match of several segments in a row is a diagonal: the shift of time stays the same.
            diagonals: dict[int, list[int]] = {}
            for row, place in zip(*np.nonzero(close), strict=True):
                i = int(mine[row])
                shift = int(place) - i * length if i < len(segments) - 1 else int(place) - (len(run) - length)
                for beside in range(shift - _SHIFT, shift + _SHIFT + 1):
                    diagonals.setdefault(beside, []).append(i)
            for members in diagonals.values():
                chain = _chains(np.unique(members), alive, needed)
                same[chain] = True
        return alive, same & alive

    def _near(self, segments: Array, unit: Array, limits: Array) -> Mask:
        """Which runs (segment, run) that were seen may hold a window closer to a segment than its limit."""
        length = segments.shape[1]
        out = np.zeros((len(segments), len(self._runs)), dtype=bool)
        basis = _cosines(length)
        flat = np.einsum("sld,lc->sdc", segments, basis).reshape(len(segments), -1)
        own = np.sum(flat**2, axis=1)
        scale = np.repeat(unit, basis.shape[1])
        for windows, slopes, run in self._windows(length, basis):
            at = windows * scale
            # The best shift is at most one sample, along the slope.
            reach = np.linalg.norm(slopes * scale, axis=1)
            whole = np.maximum(own[:, None] + np.sum(at**2, axis=1) - 2.0 * flat @ at.T, 0.0)
            hit = np.sqrt(whole) < limits[:, None] * (1.0 + 1e-6) + reach + 1e-6
            for k in np.unique(run):
                out[:, k] |= hit[:, run == k].any(axis=1)
        return out

    def _windows(self, length: int, basis: Array) -> Iterator[tuple[Array, Array, NDArray[np.intp]]]:
        """Coefficients of windows and of their slopes (windows, coordinate x coefficient), and the run of each."""
        if length not in self._coefficients:
            kept = [run for run in self._runs if len(run) >= length]
            changes = [np.gradient(run, axis=0) for run in kept]
            self._coefficients = {length: (_transformed(kept, basis), _transformed(changes, basis))}
        windows, slopes = self._coefficients[length]
        counts = [max(len(run) - length + 1, 0) for run in self._runs]
        run = np.repeat(np.arange(len(counts)), counts)
        for start in range(0, len(windows), _WINDOWS):
            part = slice(start, start + _WINDOWS)
            yield windows[part], slopes[part], run[part]


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
        Between 0 (all of it is another motion, or at rest) and 1; NaN where the fingerprint keeps so little of the
        fitted motion that these runs may lie in what is left out.

    Raises
    ------
    DataError
        If the two recordings have different numbers of coordinates.
    """
    seen = SeenMotion(fitted)
    return seen.share(seen.compare(fingerprint(motions, fitted.rate).positions))


def _transformed(runs: Sequence[Array], basis: Array) -> Array:
    """Coefficients (windows, coordinate x coefficient) of all windows of some runs."""
    found = [sliding_window_view(run, len(basis), axis=0) @ basis for run in runs]
    return np.concatenate([one.reshape(len(one), -1) for one in found])


def _cosines(length: int) -> Array:
    """The lowest cosines (length, coefficient) of an orthonormal transform."""
    return np.asarray(scipy.fft.idct(np.eye(length)[: min(_COEFFICIENTS, length)], axis=1, norm="ortho").T)


def _segments(run: Array, length: int) -> list[Array]:
    """Consecutive segments of a run; the last one ends with the run."""
    starts = list(range(0, len(run) - length + 1, length))
    if starts and starts[-1] + length < len(run):
        starts.append(len(run) - length)
    return [run[k : k + length] for k in starts]


def _chains(members: NDArray[np.int64], alive: Mask, needed: int) -> NDArray[np.int64]:
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
