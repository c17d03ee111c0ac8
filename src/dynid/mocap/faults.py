"""Faults of marker tracks: gaps, exchanged names, spikes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.mocap.trial import Trial

__all__ = ["Gap", "Spike", "Swap", "find_gaps", "find_spikes", "find_swaps", "undo_swaps"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=Trial)

# A leap below this (m) is within what skin and cameras do.
_LEAST_LEAP = 0.01
_LEAST_SPIKE = 0.015
_LONGEST_SPIKE = 3  # frames
_BRIDGED = 5  # frames over which a track is continued at its last velocity
# Two markers belong to one segment if their distance scatters by less than this (m).
_RIGID = 0.006
_BROKEN = 0.015
_MOST_SWAPS = 30
# What a change of two names costs, in frames of contrary distances: anywhere, while one marker is away, ignored.
_CHANGE, _CHANGE_UNSEEN, _IGNORED_LEAP = 8.0, 4.0, 5.0


@dataclass(frozen=True)
class Gap:
    """Frames `start` to `stop` (excluded) in which a marker was not seen."""

    marker: str
    start: int
    stop: int

    @property
    def frames(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Swap:
    """Frames `start` to `stop` (excluded) in which `first` and `second` bear each other's name.

    The names of the longer part of a trial are taken as right, by the distances within segments; where these tell
    nothing, a leap from track to track begins an exchange and the next one ends it.
    """

    first: str
    second: str
    start: int
    stop: int


@dataclass(frozen=True)
class Spike:
    """Frames `start` to `stop` (excluded) in which a marker leaps away by `size` m and comes back."""

    marker: str
    start: int
    stop: int
    size: float


def find_gaps(capture: Trial) -> tuple[Gap, ...]:
    out = []
    for m, name in enumerate(capture.markers):
        missing = ~np.isfinite(capture.positions[:, m, 0])
        out += [Gap(name, start, stop) for start, stop in intervals(missing)]
    return tuple(out)


def find_spikes(capture: Trial) -> tuple[Spike, ...]:
    out = []
    exchanged = np.zeros(capture.positions.shape[:2], bool)
    for swap in find_swaps(capture):
        for name in (swap.first, swap.second):
            # The frames beside an exchange leap too.
            exchanged[max(swap.start - 1, 0) : swap.stop + 1, capture.marker_index(name)] = True
    for m, name in enumerate(capture.markers):
        size = _spike_sizes(capture.positions[:, m])
        size[exchanged[:, m]] = 0.0
        out += [Spike(name, a, b, float(size[a:b].max())) for a, b in intervals(size > 0)]
    return tuple(out)


def _spike_sizes(x: Array) -> Array:
    """How far a track (N, 3) leaves the straight line between its neighbours, where that is a spike; else 0."""
    size = np.zeros(len(x))
    for length in range(1, _LONGEST_SPIKE + 1):
        if len(x) < length + 2:
            break
        before, after = x[: -length - 1], x[length + 1 :]
        share = np.arange(1, length + 1) / (length + 1)
        line = before[:, None] + share[:, None] * (after - before)[:, None]
        inside = np.stack([x[1 + k : len(x) - length + k] for k in range(length)], axis=1)
        with np.errstate(invalid="ignore"):
            off = np.linalg.norm(inside - line, axis=2)
            least = max(_LEAST_SPIKE, 6 * _typical(off.max(axis=1)))
            far = np.all(off > least, axis=1) & (off.min(axis=1) > 2 * np.linalg.norm(after - before, axis=1))
        for k in np.flatnonzero(far):
            here = slice(k + 1, k + 1 + length)
            if not size[here].any():
                size[here] = off[k]
    return size


def find_swaps(capture: Trial) -> tuple[Swap, ...]:
    x, names = capture.positions, capture.markers
    if len(x) < 3 or len(names) < 2:
        return ()
    x = x.copy()
    swaps: list[Swap] = []
    # The surest first: until it is put right, its neighbours break their distances as well.
    for _ in range(_MOST_SWAPS):
        found = _surest(x)
        if found is None:
            break
        i, j, spans = found
        for a, b in spans:
            x[a:b, [i, j]] = x[a:b, [j, i]]
            swaps.append(Swap(names[i], names[j], a, b))
    return tuple(sorted(swaps, key=lambda s: (s.start, s.first)))


def _surest(x: Array) -> tuple[int, int, list[tuple[int, int]]] | None:
    """The pair of tracks whose exchange has most to show for it, and where."""
    leaps, segments = _exchanges(x), _Segments(x)
    best, most = None, 0.0
    for i, j in sorted(set(leaps) | set(segments.suspects())):
        evidence, jumps = segments.evidence(i, j), leaps.get((i, j), [])
        if not jumps and np.sum(evidence > 0) <= _CHANGE_UNSEEN:
            continue
        unseen = np.isnan(x[:, [i, j], 0])
        exchanged = _likeliest(evidence, jumps, unseen[:, 0] | unseen[:, 1])
        spans = _trimmed(intervals(exchanged), unseen[:, 0] & unseen[:, 1])
        shown = float(evidence[exchanged].sum()) + _IGNORED_LEAP * len(jumps)
        if spans and shown > most:
            best, most = (i, j, spans), shown
    return best


def _likeliest(evidence: Array, leaps: list[int], unseen: Mask) -> Mask:
    """Frames in which two markers are exchanged: the cheapest path through both states (Viterbi).

    A frame costs 1 where its distances tell the other state; a change costs little at a leap from track to track, more
    while one of them is away, most elsewhere; a leap that changes nothing costs as well.
    """
    stay = np.zeros(len(evidence))
    change = np.where(unseen | np.roll(unseen, 1), _CHANGE_UNSEEN, _CHANGE)
    stay[leaps], change[leaps] = _IGNORED_LEAP, 0.0
    here = np.column_stack([evidence > 0, (evidence < 0) + 1e-6])
    cost, origin = np.array([here[0, 0], here[0, 1] + _CHANGE]), np.zeros((len(evidence), 2), dtype=int)
    for k in range(1, len(evidence)):
        kept, turned = cost + stay[k], cost[::-1] + change[k]
        origin[k] = np.where(turned < kept, [1, 0], [0, 1])
        cost = np.minimum(kept, turned) + here[k]
    out = np.zeros(len(evidence), bool)
    state = int(cost[1] < cost[0])
    for k in range(len(evidence) - 1, -1, -1):
        out[k] = state == 1
        state = int(origin[k, state]) if k else state
    return out


def _trimmed(found: list[tuple[int, int]], gone: Mask) -> list[tuple[int, int]]:
    """Intervals without the frames at their ends in which neither marker is seen."""
    out = []
    for start, stop in found:
        seen = np.flatnonzero(~gone[start:stop])
        if len(seen):
            out.append((start + int(seen[0]), start + int(seen[-1]) + 1))
    return out


def undo_swaps(capture: T) -> T:
    x = capture.positions.copy()
    for swap in find_swaps(capture):
        i, j = capture.marker_index(swap.first), capture.marker_index(swap.second)
        x[swap.start : swap.stop, [i, j]] = x[swap.start : swap.stop, [j, i]]
    return replace(capture, positions=x)


def _exchanges(x: Array) -> dict[tuple[int, int], list[int]]:
    """Frames at which two tracks go on where the other one was heading, by pair."""
    least = np.array(
        [max(_LEAST_LEAP, 6 * _typical(np.linalg.norm(np.diff(y, 2, axis=0), axis=1))) for y in x.swapaxes(0, 1)]
    )
    out: dict[tuple[int, int], list[int]] = {}
    last, velocity, age = x[0].copy(), np.zeros_like(x[0]), np.zeros(x.shape[1])
    for k in range(1, len(x)):
        seen = np.isfinite(x[k, :, 0])
        heading = last + velocity * (age + 1)[:, None]
        with np.errstate(invalid="ignore"):
            leap = np.linalg.norm(x[k] - heading, axis=1)
            leaping = np.flatnonzero(leap > least * (1 + age))
        for i, j in combinations(leaping, 2):
            crossed = np.linalg.norm(x[k, i] - heading[j]) + np.linalg.norm(x[k, j] - heading[i])
            if crossed < 0.25 * (leap[i] + leap[j]):
                out.setdefault((int(i), int(j)), []).append(k)
                # Each track goes on with the velocity of the other.
                last[[i, j]], velocity[[i, j]] = last[[j, i]], velocity[[j, i]]
        known = seen & np.isfinite(last[:, 0])
        step = (x[k] - last) / (age + 1)[:, None]
        velocity = np.where(known[:, None], step, np.where(seen[:, None], 0.0, velocity))
        last = np.where(seen[:, None], x[k], last)
        age = np.where(seen, 0.0, age + 1)
        lost = age > _BRIDGED
        last[lost] = np.nan
        velocity[lost] = 0.0
        age[lost] = _BRIDGED
    return out


class _Segments:
    """Distances of markers to those that move with them, and who breaks them when."""

    def __init__(self, x: Array) -> None:
        self._x = x
        self._usual, self._scatter = _distances(x)
        count = x.shape[1]
        self._own = [self._misfit(i, i, i) for i in range(count)]
        with np.errstate(invalid="ignore"):
            self._broken = [off > self._least(i) for i, off in enumerate(self._own)]

    def suspects(self) -> list[tuple[int, int]]:
        """Pairs of markers that break their distances in the same frames."""
        some = [i for i, bad in enumerate(self._broken) if bad.any()]
        return [(i, j) for i, j in combinations(some, 2) if (self._broken[i] & self._broken[j]).sum() > _CHANGE_UNSEEN]

    def evidence(self, i: int, j: int) -> Array:
        """+1 where the tracks fit the segments of each other, -1 where they fit their own, 0 where neither tells."""
        own, crossed = np.zeros(len(self._x)), np.zeros(len(self._x))
        for a, b in ((i, j), (j, i)):
            at_home, away = self._misfit(a, a, b), self._misfit(b, a, a)
            told = np.isfinite(at_home) & np.isfinite(away)
            own += np.where(told, at_home, 0.0)
            crossed += np.where(told, away, 0.0)
        least = min(self._least(i), self._least(j))
        swapped = (crossed < 0.5 * own) & (own > least)
        return np.asarray(swapped * 1.0 - (own < 0.5 * crossed) * 1.0)

    def _least(self, i: int) -> float:
        mates = np.isfinite(self._usual[i])
        return max(_BROKEN, 5 * float(np.median(self._scatter[i, mates]))) if mates.any() else np.inf

    def _misfit(self, place: int, track: int, without: int) -> Array:
        """How far a track is from the distances that belong to another marker's place (N,)."""
        mates = [m for m in np.flatnonzero(np.isfinite(self._usual[place])) if m not in (place, track, without)]
        if len(mates) < 2:
            return np.full(len(self._x), np.nan)
        off = np.linalg.norm(self._x[:, mates] - self._x[:, track, None], axis=2) - self._usual[place, mates]
        return _median(np.abs(off))


def _distances(x: Array) -> tuple[Array, Array]:
    """Usual distance of every two markers (M, M) where it hardly changes, else NaN; and its scatter."""
    some = x[np.unique(np.linspace(0, len(x) - 1, 300).astype(int))]
    off = np.linalg.norm(some[:, :, None] - some[:, None], axis=3)
    seen = np.isfinite(off).sum(axis=0)
    usual = _median(off.transpose(1, 2, 0))
    scatter = 1.4826 * _median(np.abs(off - usual).transpose(1, 2, 0))
    with np.errstate(invalid="ignore"):
        rigid = (scatter < _RIGID) & (seen >= min(20, len(some)))
    np.fill_diagonal(rigid, False)
    return np.where(rigid, usual, np.nan), scatter


def _median(x: Array) -> Array:
    """Median over the last axis of what is finite; NaN where nothing is."""
    ordered = np.sort(x, axis=-1)  # NaN last
    count = np.isfinite(x).sum(axis=-1)
    low = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0)[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, np.minimum(count // 2, np.maximum(count - 1, 0))[..., None], axis=-1)[..., 0]
    return np.asarray(0.5 * (low + high))


def _typical(x: Array) -> float:
    x = x[np.isfinite(x)]
    return float(1.4826 * np.median(x)) if len(x) else 0.0


def intervals(mask: Mask) -> list[tuple[int, int]]:
    """Start and stop (excluded) of every run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
