"""Triangular factors of a stream in blocks of time, in square-root information form.

The rows of a channel are rotated one by one into the factor of the current block (Givens rotations). Twenty blocks take
turns, so that their estimates also show how far the residuals are correlated over time. Nothing forgotten: after each
turn the blocks become twice as long, so that they remain a fixed share of the whole. With a time constant, the rows of
a channel lose weight with every new row of this channel: a joint that stands still forgets nothing. With a window, a
block is emptied before it is used again.

    R'R <- fade^2 R'R + [W y]'[W y],    fade = exp(-1 / (2 forgetting row_rate)),    rows <- fade^2 rows + 1

Sources: Golub and Van Loan, Matrix Computations (4th edition 2013), chapter 5 (Givens rotations); Haykin, Adaptive
Filter Theory (2002), chapter on square-root adaptive filters; Bierman, Factorization Methods for Discrete Sequential
Estimation (1977), for the square-root information form.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.batch import first_use
from dynid.dynamics.kernels.stream import FILLED, LEFT, LENGTH, SLOT, Factors, fold_rows, next_block
from dynid.errors import ConflictingArguments, InvalidValue
from dynid.identification.observation import Observation, fold, time_parts
from dynid.online.rows import CausalRows
from dynid.parameters.base import BaseParameters

__all__ = ["BlockFactors"]

Array = NDArray[np.float64]

# Blocks of time, and seconds of the first ones: several correlation times of the residuals of a drive.
BLOCKS = 20
_FIRST_BLOCK = 1.0


class BlockFactors:
    """Factors of [W y] per channel and block of time.

    Parameters
    ----------
    base : BaseParameters
        The base parameters.
    touched : list of ndarray
        Columns that each channel can have.
    row_rate : float
        Rows per second.
    forgetting : float or None
        Time constant in s of the weight of old rows; None for none.
    window : float or None
        Seconds that are kept; None for all.
    """

    def __init__(
        self,
        base: BaseParameters,
        touched: list[NDArray[np.intp]],
        *,
        row_rate: float,
        forgetting: float | None = None,
        window: float | None = None,
    ) -> None:
        for name, value in (("forgetting", forgetting), ("window", window)):
            if value is not None and not (value > 0 and np.isfinite(value)):
                raise InvalidValue(f"{name} is a positive number of seconds, got {value}")
        if forgetting is not None and window is not None:
            raise ConflictingArguments("give a time constant of forgetting or a window, not both", "forgetting")
        self.base, self.touched = base, touched
        self.row_rate, self.forgetting, self.window = row_rate, forgetting, window
        sizes = np.array([len(c) + 1 for c in touched])
        channels = len(touched)
        seconds = _FIRST_BLOCK
        if window is not None:
            seconds = window / BLOCKS
        elif forgetting is not None:
            seconds = 2.0 * forgetting / BLOCKS
        length = max(1, round(seconds * row_rate))
        state = np.zeros(4, dtype=np.int64)
        state[LEFT], state[LENGTH], state[FILLED] = length, length, 1
        self.arrays = Factors(
            start=np.cumsum([0, *sizes]),
            place=np.cumsum([0, *sizes**2]),
            values=np.zeros((BLOCKS, int(np.sum(sizes**2)))),
            weight=np.zeros((BLOCKS, channels)),
            last=np.zeros((BLOCKS, channels)),
            clock=np.zeros(channels),
            fade=np.array([1.0 if forgetting is None else np.exp(-0.5 / (forgetting * row_rate))]),
            share=np.zeros(channels),
            least=np.zeros(channels),
            smallest=np.zeros(channels),
            state=state,
            window=np.array([0 if window is None else 1]),
            row=np.zeros(int(sizes.max())),
        )

    def warm_up(self, rows: CausalRows) -> None:
        """Compile before samples arrive."""
        with first_use(fold_rows):
            fold_rows(rows.stream, self.arrays, rows.out, 0)

    def fold(self, rows: CausalRows, count: int) -> int:
        """Rotate the rows of a stream into the current block; returns how many rows of channels were used."""
        return int(fold_rows(rows.stream, self.arrays, rows.out, count))

    def add(self, observation: Observation, seconds: float) -> None:
        """Fold a whole recording that lasts some seconds, cut into parts of time that take the next blocks."""
        f = self.arrays
        length = f.state[LENGTH] / self.row_rate
        count = int(np.clip(round(seconds / length), 1, BLOCKS))
        parts = [observation.factors] if count == 1 else time_parts(observation, count)
        weights = np.array(observation.rows, dtype=float) / len(parts)
        for part in parts:
            if self.forgetting is not None:
                f.clock[:] += seconds / len(parts) * self.row_rate
            self._add_part(part, weights)
            next_block(f)

    def _add_part(self, part: tuple[Array, ...], weights: Array) -> None:
        f, slot = self.arrays, int(self.arrays.state[SLOT])
        for c, own in enumerate(self.touched):
            fade = float(f.fade[0]) ** (f.clock[c] - f.last[slot, c])
            rows = part[c][:, [*own, -1]]
            stack = np.vstack([fade * self._factor(slot, c), rows])
            folded = fold(np.asfortranarray(stack))
            view = self._factor(slot, c)
            view[:] = 0.0
            view[: len(folded)] = folded[: len(view)]
            f.weight[slot, c] = f.weight[slot, c] * fade**2 + weights[c]
            f.last[slot, c] = f.clock[c]

    def _factor(self, block: int, channel: int) -> Array:
        """The factor (k, k) of a channel in a block, not faded."""
        f = self.arrays
        size = int(f.start[channel + 1] - f.start[channel])
        return f.values[block, f.place[channel] : f.place[channel + 1]].reshape(size, size)

    def _fades(self) -> Array:
        """What is left (block, channel) of the rows of each block since they were rotated in."""
        f = self.arrays
        return np.asarray(f.fade[0] ** (f.clock - f.last))

    @property
    def rows(self) -> Array:
        """Number of rows per channel (channel,), faded."""
        return np.asarray(np.sum(self._fades() ** 2 * self.arrays.weight, axis=0))

    def parts(self) -> list[tuple[Array, ...]]:
        """Factors (k, b + 1) per channel of every block that has rows, the oldest first."""
        f, fades = self.arrays, self._fades()
        filled, slot = int(f.state[FILLED]), int(f.state[SLOT])
        order = [(slot + 1 + k) % filled for k in range(filled)]
        out = []
        for block in order:
            if not np.any(f.weight[block]):
                continue
            factors = []
            for c, own in enumerate(self.touched):
                wide = np.zeros((len(own) + 1, self.base.count + 1))
                factor = fades[block, c] * self._factor(block, c)
                wide[:, own], wide[:, -1] = factor[:, :-1], factor[:, -1]
                factors.append(wide)
            out.append(tuple(factors))
        return out
