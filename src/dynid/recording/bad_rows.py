"""Rows that cannot be used: found, named, and cut out where the caller asks for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.table import Table

__all__ = ["Block", "bad_rows", "stretches"]

Array = NDArray[np.float64]

logger = logging.getLogger("dynid")

# Larger numbers are garbage in any unit of positions, velocities and torques; stamps in ns reach 2e18.
_ABSURD, _ABSURD_TIME = 1e9, 1e19
_SHORTEST = 16
# A clock that stands still longer than this many steps, or runs back, has lost samples.
_GAP = 100


@dataclass(frozen=True, eq=False)
class Block:
    """Columns of a signal in SI units (N, column), the table they came from and the row there of the first sample."""

    table: Table
    signal: str
    columns: Sequence[str]
    values: Array
    first: int


def bad_rows(blocks: Sequence[Block], refuse: bool) -> NDArray[np.bool_]:
    """Which rows hold a cell without a number, an absurd number, or too few or too many cells; an error if `refuse`."""
    bad = np.zeros(len(blocks[0].values), dtype=bool)
    for block in blocks:
        bad |= _wrong(block).any(axis=1)
        bad[[k - block.first for k in block.table.broken if 0 <= k - block.first < len(bad)]] = True
    if refuse and bad.any():
        _refuse(blocks, int(np.argmax(bad)))
    return bad


def _wrong(block: Block) -> NDArray[np.bool_]:
    """Cells (N, column) that hold no number or an absurd one."""
    return ~(np.abs(block.values) <= (_ABSURD_TIME if block.signal == "t" else _ABSURD))


def _refuse(blocks: Sequence[Block], k: int) -> None:
    hint = 'bad_rows="split" leaves such rows out'
    for block in blocks:
        table, row = block.table, k + block.first
        if row in table.broken:
            raise DataError(f"{table.file}, {table.place(row)}: {table.broken[row]}; {hint}")
        wrong = np.flatnonzero(_wrong(block)[k])
        if wrong.size:
            column, value = block.columns[wrong[0]], block.values[k, wrong[0]]
            cell = f"'{table.text(column, row):.40}' is not a number"
            what = f"{value:.4g} is no plausible value" if np.isfinite(value) else cell
            raise DataError(f"{table.file}, {table.place(row)}, column '{column}': {what}; {hint}")


def stretches(file: str, t: Array, bad: NDArray[np.bool_], runs: Array | None, split: bool) -> list[slice]:
    """The rows of each run; with `split` the long enough ones between bad rows and jumps of the clock."""
    cut = np.zeros(len(t) + 1, dtype=bool)
    cut[[0, -1]] = True
    if runs is not None:
        cut[1:-1] |= runs[1:] != runs[:-1]
    if split:
        cut[:-1] |= bad
        cut[1:] |= bad
        cut[1:-1] |= _jumps(t, bad)
    edges = np.flatnonzero(cut)
    pieces = [slice(int(a), int(b)) for a, b in pairwise(edges) if not bad[a]]
    if not split:
        return pieces
    long = [s for s in pieces if s.stop - s.start >= _SHORTEST]
    if not long:
        raise DataError(f"{file} has no {_SHORTEST} good rows in a row ({int(bad.sum())} of {len(t)} rows are bad)")
    kept = sum(s.stop - s.start for s in long)
    if kept < len(t):
        logger.warning(
            "%s: %d bad rows and %d rows in stretches shorter than %d left out of %d, %d stretches kept",
            *(file, int(bad.sum()), len(t) - kept - int(bad.sum()), _SHORTEST, len(t), len(long)),
        )
    return long


def _jumps(t: Array, bad: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Steps (N - 1,) between good rows at which the clock runs back or leaps."""
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(t)
    good = ~(bad[1:] | bad[:-1])
    forward = steps[good & (steps > 0)]
    if not forward.size:
        return np.zeros(len(steps), dtype=bool)
    return good & ((steps < 0) | (steps > _GAP * np.median(forward)))
