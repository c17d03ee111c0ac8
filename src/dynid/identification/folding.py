"""Folding: the rows of filtered runs into one triangular factor per channel, run after run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.identification.device_rows import DeviceRows
from dynid.identification.row_stream import Block, Segment, SegmentRows, segments, velocity_limits
from dynid.identification.triangular import side_by_side
from dynid.parameters.base import BaseParameters
from dynid.signals.settings import Motion, Signals
from dynid.threads import one_blas_thread

__all__ = ["BLOCKS", "Folding"]

Array = NDArray[np.float64]

# Rows of small recordings are kept for estimators that need them again; those of large ones are computed again. Of
# large ones the factors of this many blocks of time are kept, for standard deviations and cross-validation.
_KEEP_BYTES = 128 * 2**20
BLOCKS = 20


class Folding:
    """Triangular factors of [W y] per channel, to which runs are added one by one.

    Parameters
    ----------
    base : BaseParameters
        The unknowns.
    settings : Signals
        Which rows are left out at low velocities.
    parts : int, default 1
        Number of parts of the time, each of which has factors of its own.
    keep : bool, default False
        Keep the rows.
    threads : int, optional
        Number of threads; by default that of the kernels. It changes no bit of the result.
    device : str, optional
        Device of PyTorch that makes and folds the rows in place of the kernels; `keep` is then False.
    """

    def __init__(
        self,
        base: BaseParameters,
        settings: Signals,
        *,
        parts: int = 1,
        keep: bool = False,
        threads: int | None = None,
        device: str | None = None,
    ) -> None:
        self.base, self.settings = base, settings
        self.rows = [0] * len(base.channels)
        self.samples = 0
        self.kept: list[tuple[int, int, Array, NDArray[np.int64]]] | None = [] if keep else None
        self._maker = SegmentRows(base, threads) if device is None else DeviceRows(base, device)
        self._factors = [[np.zeros((0, len(c) + 1)) for c in self._maker.touched] for _ in range(parts)]

    def add(self, motion: Motion, first: float = 0.0, share: float = 1.0) -> None:
        """Fold the rows of a filtered run, which begins at `first` of the whole time and is a `share` of it."""
        maker, limits = self._maker, velocity_limits(self.base, motion, self.settings)
        channels = range(len(self.base.channels))
        # Tall, narrow factors gain nothing from several BLAS threads, which slow each other down.
        with one_blas_thread():
            for part in segments(motion, maker.chunk):
                table = maker.table(motion, part)

                def fold_channel(k: int, table: Array = table, part: Segment = part) -> None:
                    rows, velocity = maker.channel(table, part, k)
                    moving, index = maker.used(motion, part, k, velocity, limits[k])
                    if not moving.all():
                        rows, index = rows[moving], index[moving]
                    if len(rows):
                        when = first + share * index / len(motion.t)
                        self._add(k, rows, self.samples + part.start, self.samples + index, when)

                side_by_side(fold_channel, channels, maker.threads)
        self.samples += len(motion.t)

    def _add(self, k: int, rows: Array, segment: int, index: NDArray[np.int64], when: Array) -> None:
        """Fold rows [W y] of touched columns of a channel into the factors of their parts of the time."""
        parts = len(self._factors)
        if parts == 1:
            self._fold(self._factors[0], k, rows)
        else:
            place = np.minimum((when * parts).astype(int), parts - 1)
            for part in np.unique(place):
                self._fold(self._factors[part], k, rows[place == part])
        self.rows[k] += len(rows)
        if self.kept is not None:
            self.kept.append((segment, k, rows.copy(), index))

    @classmethod
    def of_recording(
        cls, base: BaseParameters, settings: Signals, motions: Sequence[Motion], device: str | None = None
    ) -> Folding:
        """All runs of a recording folded: the rows of a small one are kept, a large one is cut into blocks of time.

        Rows that a device makes are not kept.
        """
        rows = sum(-(-len(m.t) // math.prod(m.decimate or ())) for m in motions) * len(base.channels)
        small = rows * (base.count + 1) * 8 <= _KEEP_BYTES
        out = cls(base, settings, parts=1 if small else BLOCKS, keep=small and device is None, device=device)
        total = sum(len(m.t) for m in motions)
        for motion in motions:
            out.add(motion, out.samples / total, len(motion.t) / total)
        return out

    def _fold(self, factors: list[Array], k: int, rows: Array) -> None:
        """Fold rows into the factor of a channel."""
        factors[k] = self._maker.folded(factors[k], rows)

    def factors(self) -> list[tuple[Array, ...]]:
        """The factors of each part, one per channel with all columns (<= touched + 1, b + 1)."""
        return [
            tuple(self._wide(f, c) for f, c in zip(part, self._maker.touched, strict=True)) for part in self._factors
        ]

    def _wide(self, factor: Array, columns: NDArray[np.intp]) -> Array:
        out = np.zeros((len(factor), self.base.count + 1))
        out[:, columns], out[:, -1] = factor[:, :-1], factor[:, -1]
        return out

    def kept_blocks(self) -> Iterator[Block]:
        """The rows that are kept, segment by segment and channel by channel, as `motion_blocks` streams them."""
        for _, k, rows, index in sorted(self.kept or (), key=lambda one: one[:2]):
            yield self._maker.wide(k, rows, index)
