"""Sample numbers of rows: which rows are k steps apart, and which belong to one batch in time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape

__all__ = ["batch_sums", "checked_index", "positions", "usual_step"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def checked_index(index: ArrayLike | None, rows: int) -> Index:
    """Sample numbers (rows,); consecutive numbers where `index` is None."""
    if index is None:
        return np.arange(rows)
    numbers = np.asarray(index)
    if numbers.shape != (rows,) or not np.issubdtype(numbers.dtype, np.integer):
        raise InvalidShape(
            f"index must hold {rows} whole sample numbers, got shape {numbers.shape} of {numbers.dtype}", "index"
        )
    return numbers.astype(np.int64)


def usual_step(index: Index) -> int:
    """The most frequent difference of sample numbers: the total decimation factor."""
    steps = np.diff(index)
    values, counts = np.unique(steps[steps > 0], return_counts=True)
    return int(values[np.argmax(counts)]) if values.size else 1


def positions(index: Index, reach: int) -> Index:
    """Positions of the rows in usual steps, with the distances of rows up to `reach` steps apart.

    Longer gaps are shortened to reach + 1 steps. A difference that is not a positive whole number of steps begins a
    new run.
    """
    step = usual_step(index)
    apart, odd = np.divmod(np.diff(index), step)
    apart = np.where((apart <= 0) | (odd != 0), reach + 1, np.minimum(apart, reach + 1))
    return np.concatenate([[0], np.cumsum(apart)])


def batch_sums(rows: Array, index: Index, batch: int, step: int) -> Array:
    """Sums (batches, k) of the rows (m, k) whose sample numbers lie in the same interval of `batch` steps."""
    label = index // (batch * step)
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.diff(label[order], prepend=label[order[0]] - 1))
    return np.add.reduceat(rows[order], first, axis=0)
