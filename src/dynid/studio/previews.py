"""What a column of a log looks like before anything is known about it: first values, range, a small curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.table import Table

__all__ = ["ColumnPreview", "previews", "sparkline"]

Array = NDArray[np.float64]

_FIRST = 3  # values that are shown
_BINS = 48  # of a curve
_WIDTH, _HEIGHT = 120, 24  # pixels of a curve


@dataclass(frozen=True, eq=False)
class ColumnPreview:
    """One column of a file.

    Attributes
    ----------
    number : int
        Its number, from 0, over all files of the log.
    file : str
        Name of its file.
    signal : str
        The signal that its whole file has, "" for a file of all signals.
    name : str
        Its name; its number within the file where the file has no header.
    reference : str or int
        What a log format calls it: the name, or the number where there is no header.
    first : tuple of float
        Its first values.
    low, high : float
        Its range; NaN where it has no numbers.
    curve : ndarray (2 bins,)
        Smallest and largest value per bin over the whole column.
    rising : bool
        Whether every value is larger than the one before, as in a clock.
    """

    number: int
    file: str
    signal: str
    name: str
    reference: str | int
    first: tuple[float, ...]
    low: float
    high: float
    curve: Array
    rising: bool


def previews(tables: Mapping[str, Table]) -> tuple[ColumnPreview, ...]:
    """Every column of the files of a log; `tables` has the file of each signal, or one file under ""."""
    out: list[ColumnPreview] = []
    for signal, table in tables.items():
        for index, name in enumerate(table.names):
            try:
                values = table.values([name])[:, 0]
            except DataError:  # no numbers: it can be seen, and not be used
                values = np.zeros(0)
            reference = name if table.header else index
            out.append(_preview(len(out), table.file, signal, name, reference, values))
    return tuple(out)


def _preview(number: int, file: str, signal: str, name: str, reference: str | int, values: Array) -> ColumnPreview:
    sound = values[np.isfinite(values)]
    low, high = (float(sound.min()), float(sound.max())) if len(sound) else (np.nan, np.nan)
    rising = len(values) > 1 and bool(np.all(np.diff(values) > 0))
    first = tuple(map(float, values[:_FIRST]))
    return ColumnPreview(number, file, signal, name, reference, first, low, high, _bins(sound), rising)


def _bins(values: Array) -> Array:
    """Smallest and largest value of each bin, one after the other."""
    if len(values) <= 2 * _BINS:
        return values
    edges = np.linspace(0, len(values), _BINS, endpoint=False).astype(int)
    return np.column_stack([np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)]).ravel()


def sparkline(curve: Array) -> str:
    """A small curve as SVG, drawn with the color of the text beside it."""
    frame = f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="curve">'
    if len(curve) < 2:
        return frame + "</svg>"
    low, high = float(curve.min()), float(curve.max())
    x = np.linspace(1.0, _WIDTH - 1.0, len(curve))
    share = (curve - low) / (high - low) if high > low else np.full(len(curve), 0.5)
    y = 2.0 + (_HEIGHT - 4.0) * (1.0 - share)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'{frame}<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1"/></svg>'
