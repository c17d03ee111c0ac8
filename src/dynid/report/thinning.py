"""Reduction of long signals to what the pixel columns of a chart can show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["thinned"]

Array = NDArray[np.float64]


def thinned(t: Array, signals: Sequence[Array], columns: int = 400) -> NDArray[np.intp]:
    """Rows with the lowest and highest sample of every signal (N,) in each of `columns` intervals.

    A line through these rows looks like a line through all rows. First and last row are always kept.
    """
    rows = len(t)
    if rows <= 2 * columns * max(len(signals), 1):
        return np.arange(rows)
    edges = np.linspace(0, rows, columns + 1).astype(int)
    kept = [np.array([0, rows - 1])]
    for y in signals:
        for pick in (np.argmin, np.argmax):
            kept.append(np.array([a + int(pick(y[a:b])) for a, b in pairwise(edges) if b > a]))
    return np.unique(np.concatenate(kept))
