"""Rows of the measured regressor together with those of the instruments, for instrumental variables and their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.observation import Block, Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.signals.settings import Signals

__all__ = ["Paired", "PairedBlock"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairedBlock:
    """Rows of one channel: instruments Z (m, bz), measured regressor X (m, b), torque y (m,), sample numbers."""

    channel: int
    Z: Array
    X: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Paired:
    """Factors of [Z X y] per channel, from instruments Z, measured regressor X and torque y.

    Attributes
    ----------
    base : BaseParameters
        The base parameters that are the unknowns.
    factors : tuple of ndarray, shape (k, bz + b + 1)
        Triangular factor of [Z X y] per channel.
    rows : tuple of int
        Number of rows per channel.
    blocks : callable
        Streams the rows again.
    signals : Signals
        How the runs were filtered.
    cutoffs : tuple of float or None
        Cut-off frequency per run in Hz.
    """

    base: BaseParameters
    factors: tuple[Array, ...]
    rows: tuple[int, ...]
    blocks: Callable[[], Iterator[PairedBlock]] = field(repr=False)
    signals: Signals = field(default_factory=Signals)
    cutoffs: tuple[float | None, ...] = ()

    @property
    def total_rows(self) -> int:
        """Number of rows of all channels."""
        return sum(self.rows)

    def stacked(self, weights: Sequence[float] | Array | None = None) -> Array:
        """One factor of [Z X y] of all channels, the rows of each channel multiplied by its weight."""
        w = np.ones(len(self.factors)) if weights is None else np.asarray(weights, dtype=float)
        return fold(np.vstack([x * f for x, f in zip(w, self.factors, strict=True)]))

    def projected(self, weights: Sequence[float] | Array) -> Array:
        """Rows [X y] projected onto the instruments: Q'[X y] with Q their orthonormal basis, channels weighted."""
        factor = self.stacked(weights)
        instruments = factor.shape[1] - self.base.count - 1
        return factor[:instruments, instruments:]

    @cached_property
    def measured(self) -> Observation:
        """The observation of the measured regressor alone."""
        first = self.factors[0].shape[1] - self.base.count - 1

        def blocks() -> Iterator[Block]:
            for block in self.blocks():
                yield Block(block.channel, block.X, block.y, block.index)

        factors = tuple(fold(np.asfortranarray(f[:, first:])) for f in self.factors)
        return Observation(self.base, factors, self.rows, blocks, self.signals, self.cutoffs)


def pair(
    base: BaseParameters, blocks: list[PairedBlock], signals: Signals, cutoffs: tuple[float | None, ...]
) -> Paired:
    """Fold the blocks of all channels."""
    factors, rows = [], []
    for k in range(len(base.channels)):
        mine = [block for block in blocks if block.channel == k]
        stack = np.vstack([np.column_stack([x.Z, x.X, x.y]) for x in mine])
        factors.append(fold(np.asfortranarray(stack)))
        rows.append(sum(len(x.y) for x in mine))
    if sum(rows) <= base.count:
        raise DataError(
            f"{sum(rows)} rows are left for {base.count} base parameters; record longer, or lower min_velocity or trim"
        )
    return Paired(base, tuple(factors), tuple(rows), lambda: iter(blocks), signals, cutoffs)
