"""The grid on which the values of a quantised channel lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["grid_step"]

# Values lie on a grid to this precision; grids finer than a millionth of the range do not matter.
_ON_GRID, _FINEST = 0.05, 1e-6
_GRID_SHARE = 0.95


def grid_step(x: NDArray[np.float64]) -> float:
    """Step of the grid on which the values lie; 0 where they lie on none."""
    span = float(np.ptp(x))
    if not np.isfinite(span) or span == 0:
        return 0.0
    values = np.unique(np.round((x - x.min()) / span, 9))
    gaps = np.diff(values)
    # Two values only are a switch, not a grid.
    if gaps.size < 2:
        return 0.0
    step = float(np.min(gaps))
    if step < _FINEST:
        return 0.0
    counts = gaps / step
    on_grid = np.abs(counts - np.round(counts)) < _ON_GRID
    return step * span if np.mean(on_grid) > _GRID_SHARE else 0.0
