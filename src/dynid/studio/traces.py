"""Extremes of long signals per pixel column, exact and in time that grows with the columns, not with the samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue

__all__ = ["MOST_COLUMNS", "Extremes", "Trace", "Window"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Samples per block of a level. The levels of eight hold two sevenths of the signal, and a query of a column takes at
# most fourteen blocks per level.
_BLOCK = 8
# Columns of one request: more than any screen has.
MOST_COLUMNS = 8192
# Samples per column below which the samples themselves are sent.
_SPARSE = 2
# A step of time this many times longer than the median is a gap: no line is drawn across it.
_GAP = 8.0


class Extremes:
    """Smallest and largest value of any ranges of rows, from a pyramid of blocks.

    Parameters
    ----------
    values : ndarray, shape (sample, signal)
        The signals. NaN marks a value that is missing and never counts.
    """

    def __init__(self, values: Array) -> None:
        self._levels = [(values, values)]
        while len(self._levels[-1][0]) > _BLOCK:
            low, high = self._levels[-1]
            self._levels.append((_blocks(low, np.fmin), _blocks(high, np.fmax)))

    def between(self, starts: Rows, stops: Rows) -> tuple[Array, Array]:
        """Extremes of each range of rows.

        Parameters
        ----------
        starts, stops : ndarray, shape (range,)
            First row and the row after the last, within the signal.

        Returns
        -------
        low, high : ndarray, shape (range, signal)
            Smallest and largest value; NaN where a range has no value.
        """
        first, last = starts.copy(), np.maximum(stops, starts)
        low = np.full((len(first), self._levels[0][0].shape[1]), np.nan)
        high = low.copy()

        def take(level: tuple[Array, Array], chosen: NDArray[np.intp], blocks: Rows) -> None:
            low[chosen] = np.fmin(low[chosen], level[0][blocks])
            high[chosen] = np.fmax(high[chosen], level[1][blocks])

        for level in self._levels:
            # Blocks at both ends until what is left is whole blocks of the next level; at the top, all of them.
            for _ in range(_BLOCK):
                chosen = np.flatnonzero((first < last) & ((first % _BLOCK != 0) | (level is self._levels[-1])))
                if not chosen.size:
                    break
                take(level, chosen, first[chosen])
                first[chosen] += 1
            for _ in range(_BLOCK):
                chosen = np.flatnonzero((first < last) & (last % _BLOCK != 0))
                if not chosen.size:
                    break
                last[chosen] -= 1
                take(level, chosen, last[chosen])
            first, last = first // _BLOCK, last // _BLOCK
            if not np.any(first < last):
                break
        return low, high


@dataclass(frozen=True, eq=False)
class Window:
    """What a plot shows of a trace between two times.

    Attributes
    ----------
    times : ndarray, shape (point,)
        Times in s: of the samples, or the middles of the pixel columns.
    low, high : ndarray, shape (point, signal)
        Extremes per column, both the sample itself where `whole`; NaN where a column has none.
    whole : bool
        Whether all samples are there.
    """

    times: Array
    low: Array
    high: Array
    whole: bool


@dataclass(frozen=True, eq=False)
class Trace:
    """Signals over one clock.

    Attributes
    ----------
    t : ndarray, shape (sample,)
        Time in s. Stamps that run backwards are shown at the latest time before them.
    values : ndarray, shape (sample, signal)
        The signals; NaN where there is none.
    """

    t: Array
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", np.maximum.accumulate(np.asarray(self.t, dtype=float)))

    @cached_property
    def extremes(self) -> Extremes:
        return Extremes(self.values)

    @cached_property
    def gap(self) -> float:
        """Shortest step of time in s across which no line is drawn."""
        steps = np.diff(self.t)
        steps = steps[steps > 0]
        return _GAP * float(np.median(steps)) if steps.size else np.inf

    def row(self, time: float) -> int:
        """The last row at or before a time, or the first."""
        return max(int(np.searchsorted(self.t, time, "right")) - 1, 0)

    def window(self, start: float, stop: float, columns: int) -> Window:
        """What is seen between two times on a plot of so many pixel columns.

        Parameters
        ----------
        start, stop : float
            Times in s; `stop` is later.
        columns : int
            Number of pixel columns.

        Returns
        -------
        Window
            All samples, with one beyond either end, where there are fewer than two per column; otherwise the extremes
            of every column, so that no spike disappears. A value at `stop` belongs to the last column.

        Raises
        ------
        DataError
            If the range or the number of columns cannot be shown.
        """
        if not (np.isfinite(start) and np.isfinite(stop) and start < stop):
            raise InvalidValue("the range of time must have a start before its end", "start")
        if not 1 <= columns <= MOST_COLUMNS:
            raise InvalidValue(f"a plot has 1 to {MOST_COLUMNS} columns, not {columns}", "columns")
        first = int(np.searchsorted(self.t, start, "left"))
        last = int(np.searchsorted(self.t, stop, "right"))
        if last - first <= _SPARSE * columns:
            rows = slice(max(first - 1, 0), last + 1)
            return Window(self.t[rows], self.values[rows], self.values[rows], whole=True)
        edges = np.linspace(start, stop, columns + 1)
        cuts = np.searchsorted(self.t, edges, "left")
        cuts[0], cuts[-1] = first, last
        low, high = self.extremes.between(cuts[:-1], cuts[1:])
        return Window(0.5 * (edges[1:] + edges[:-1]), low, high, whole=False)


def _blocks(values: Array, extreme: np.ufunc) -> Array:
    """Extreme of each block; the last block may be shorter."""
    return np.asarray(extreme.reduceat(values, np.arange(0, len(values), _BLOCK), axis=0))
