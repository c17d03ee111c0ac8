"""Rows that cannot be used: an error that names them, or runs that are split there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, NotFinite, TooFew, keyword
from dynid.recording.table import Table

__all__ = ["Block", "bad_rows", "segments"]

Array = NDArray[np.float64]

logger = logging.getLogger("dynid")

# Largest plausible number in any unit of positions, velocities and torques; time stamps in ns reach 2e18.
_ABSURD, _ABSURD_TIME = 1e9, 1e19
# Fewest samples of a run after splitting.
_SHORTEST = 16
# Samples are missing where the clock advances by more than this many steps, or runs backwards.
_GAP = 100


@dataclass(frozen=True, eq=False)
class Block:
    """Values (N, column) of a signal, the table and columns they come from, and the row of the first sample there."""

    table: Table
    signal: str
    columns: Sequence[str]
    values: Array
    first: int


def bad_rows(blocks: Sequence[Block], refuse: bool) -> NDArray[np.bool_]:
    """Find rows that cannot be used.

    A row is bad if a cell is not a number or is implausibly large, or if the row has too few or too many cells.

    Parameters
    ----------
    blocks : sequence of Block
        Signals with the same number of rows N.
    refuse : bool
        Whether a bad row is an error.

    Returns
    -------
    ndarray of bool (N,)

    Raises
    ------
    DataError
        If `refuse` and a row is bad; the message names the line and the column.
    """
    bad = np.zeros(len(blocks[0].values), dtype=bool)
    for block in blocks:
        bad |= _wrong(block).any(axis=1)
        bad[[k - block.first for k in block.table.broken if 0 <= k - block.first < len(bad)]] = True
    if refuse and bad.any():
        _refuse(blocks, int(np.argmax(bad)))
    return bad


def _wrong(block: Block) -> NDArray[np.bool_]:
    """Cells (N, column) that are not a number or are implausibly large; a joint may have no encoder on its link."""
    wrong = ~(np.abs(block.values) <= (_ABSURD_TIME if block.signal == "t" else _ABSURD))
    return wrong & ~np.isnan(block.values).all(axis=0) if block.signal == "link_q" else wrong


def _refuse(blocks: Sequence[Block], k: int) -> None:
    """Raise DataError for bad row k."""
    hint = f"{keyword('bad_rows', 'split')} leaves such rows out"
    for block in blocks:
        table, row = block.table, k + block.first
        if row in table.broken:
            raise DamagedFile(f"{table.file}, {table.place(row)}: {table.broken[row]}; {hint}", "bad_rows")
        wrong = np.flatnonzero(_wrong(block)[k])
        if wrong.size:
            column, value = block.columns[wrong[0]], block.values[k, wrong[0]]
            cell = f"'{table.text(column, row):.40}' is not a number"
            what = f"{value:.4g} is not plausible" if np.isfinite(value) else cell
            raise NotFinite(f"{table.file}, {table.place(row)}, column '{column}': {what}; {hint}", "bad_rows")


def segments(file: str, t: Array, bad: NDArray[np.bool_], runs: Array | None, split: bool) -> list[slice]:
    """Rows of each run; with `split` also cut at bad rows and jumps of the clock, without pieces that are too short."""
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
        raise TooFew(f"{file} has no {_SHORTEST} consecutive good rows ({int(bad.sum())} of {len(t)} rows are bad)")
    kept = sum(s.stop - s.start for s in long)
    if kept < len(t):
        logger.warning(
            "%s: %d bad rows and %d rows in runs shorter than %d are left out of %d, %d runs are kept",
            *(file, int(bad.sum()), len(t) - kept - int(bad.sum()), _SHORTEST, len(t), len(long)),
        )
    return long


def _jumps(t: Array, bad: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Steps (N - 1,) between good rows at which the clock runs backwards or jumps."""
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(t)
    good = ~(bad[1:] | bad[:-1])
    forward = steps[good & (steps > 0)]
    if not forward.size:
        return np.zeros(len(steps), dtype=bool)
    return good & ((steps < 0) | (steps > _GAP * np.median(forward)))
