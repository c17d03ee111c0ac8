"""Validation on a data set: the errors of each partition are summed up, here or on a cluster; rows are not held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.data_set_chunks import cleaned_chunk, needed_signals
from dynid.identification.row_stream import motion_blocks
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.signals.fingerprint import MotionSampler
from dynid.signals.repetition import Repetition, SeenMotion
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate
    from dynid.identification.validation import Validation
    from dynid.parameters.base import BaseParameters

__all__ = ["validate_dataset"]

Array = NDArray[np.float64]

# Rows per channel that are kept for figures, and the fewest of a partition: those at the beginning of partitions that
# are evenly spaced over the data set.
_SHOWN, _FEWEST_SHOWN = 20_000, 200


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of each channel (channel,): their number, of the errors and of the torques.

    `mean` is that of the torques and `scatter` the sum of their squared distances from it, which can be joined without
    loss of digits.
    """

    rows: NDArray[np.int64]
    error: Array
    torque: Array
    mean: Array
    scatter: Array
    lowest: Array
    highest: Array
    largest: Array

    @staticmethod
    def none(channels: int) -> Sums:
        """No rows."""
        zero = np.zeros(channels)
        far = np.full(channels, np.inf)
        return Sums(np.zeros(channels, dtype=np.int64), zero, zero, zero, zero, far, -far, zero)

    @staticmethod
    def of(channels: int, channel: int, measured: Array, error: Array) -> Sums:
        """Sums over rows of one channel."""
        mine, mean = np.arange(channels) == channel, float(measured.mean())

        def at(value: float, other: float = 0.0) -> Array:
            return np.where(mine, value, other)

        return Sums(
            np.where(mine, len(measured), 0),
            at(float(error @ error)),
            at(float(measured @ measured)),
            at(mean),
            at(float(np.sum((measured - mean) ** 2))),
            at(float(measured.min()), np.inf),
            at(float(measured.max()), -np.inf),
            at(float(np.abs(error).max())),
        )

    def joined(self, other: Sums) -> Sums:
        """Sums over the rows of both."""
        rows = self.rows + other.rows
        share = other.rows / np.maximum(rows, 1)
        apart = other.mean - self.mean
        return Sums(
            rows,
            self.error + other.error,
            self.torque + other.torque,
            self.mean + apart * share,
            self.scatter + other.scatter + apart**2 * self.rows * share,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            np.maximum(self.largest, other.largest),
        )


Shown = list[tuple[Array, Array, Array]]


@dataclass(frozen=True, eq=False)
class PartitionErrors:
    """Errors on one partition.

    Attributes
    ----------
    sums : Sums
        Sums over its rows.
    shown : list of tuple of ndarray
        Measured and predicted torque, and time in s from the beginning, of the first rows of each channel.
    seconds : float
        How long it lasts.
    positions : list of ndarray (samples, coordinate)
        Positions at the rate of a fingerprint, if there is one.
    """

    sums: Sums
    shown: Shown
    seconds: float
    positions: list[Array]


def sum_partition(
    dataset: DataSet,
    partition: Partition,
    base: BaseParameters,
    beta: Array,
    settings: Signals,
    rate: float | None,
    most: int,
    threads: int | None,
) -> PartitionErrors:
    """Errors on one partition, with at most `most` rows per channel to show."""
    count = len(base.channels)
    total = Sums.none(count)
    shown: Shown = [(np.zeros(0), np.zeros(0), np.zeros(0)) for _ in range(count)]
    used, seconds, start = 0, 0.0, None
    sampler = None if rate is None else MotionSampler(rate)
    for _, chunk in dataset.chunks(partition):
        for run, motion in cleaned_chunk(base, chunk, settings)[0]:
            used += len(run)
            seconds += len(run) * run.step
            start = float(motion.t[0]) if start is None else start
            if sampler is not None:
                sampler.add(motion)
            for block in motion_blocks(base, motion, settings, threads=threads):
                k, y, predicted = block.channel, block.y, block.W @ beta
                total = total.joined(Sums.of(count, k, y, y - predicted))
                room = most - len(shown[k][0])
                if room > 0:
                    new = (y[:room], predicted[:room], motion.t[block.index[:room]] - start)
                    shown[k] = tuple(np.concatenate([a, b]) for a, b in zip(shown[k], new, strict=True))  # type: ignore[assignment]
    if not used:
        raise DataError("has no run that is long enough to be filtered")
    return PartitionErrors(total, shown, seconds, [] if sampler is None else sampler.runs)


def validate_dataset(
    estimate: Estimate,
    dataset: DataSet,
    *,
    signals: Signals | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
) -> Validation:
    """Predict the torques of a data set with an estimate and compare, as `validate`."""
    from dynid.identification.validation import Validation

    settings = signals or estimate.signals
    base = estimate.base
    total = Sums.none(len(base.channels))
    shown: list[list[tuple[Array, Array, Array]]] = [[] for _ in base.channels]
    left_out: list[LeftOut] = []
    seen = None if estimate.fingerprint is None else SeenMotion(estimate.fingerprint)
    again = Repetition()
    pruned = dataset.with_signals(needed_signals(settings, dataset))
    most = max(_SHOWN // len(dataset), _FEWEST_SHOWN)
    every = -(-len(dataset) * most // _SHOWN)
    clock = 0.0
    work = map_partitions(
        sum_partition,
        pruned,
        (base, estimate.beta, settings, None if seen is None else seen.fitted.rate, most),
        client=client,
        skip_bad=skip_bad,
        progress=progress,
        what="predicting torques",
    )
    for k, one in work:
        if isinstance(one, LeftOut):
            left_out.append(one)
            continue
        total = total.joined(one.sums)
        again += Repetition() if seen is None else seen.compare(one.positions)
        if k % every == 0:
            for mine, (torque, found, when) in zip(shown, one.shown, strict=True):
                mine.append((torque, found, clock + when))
        clock += one.seconds
    if not np.any(total.rows):
        raise DataError(f"no joint moves faster than min_velocity in {dataset.source}")
    checked, empty = total.rows > 0, np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rmse = np.where(checked, np.sqrt(total.error / np.maximum(total.rows, 1)), np.nan)
        relative = np.where(checked, np.sqrt(total.error / np.where(total.torque > 0, total.torque, np.inf)), np.nan)
        spans = np.where(checked & (total.highest > total.lowest), total.highest - total.lowest, np.inf)
        variance = total.scatter / np.maximum(total.rows, 1)
        r2 = 1.0 - rmse**2 / np.where(variance > 0, variance, np.nan)
    measured, predicted, time = (
        tuple(np.concatenate([*(rows[i] for rows in mine), empty]) for mine in shown) for i in range(3)
    )
    return Validation(
        channels=base.channels,
        units=tuple(base.robot.channel_units[c] for c in base.channels),
        rows=tuple(int(n) for n in total.rows),
        rmse=rmse,
        relative=relative,
        nrmse=rmse / spans,
        largest=np.where(checked, total.largest, np.nan),
        r2=r2,
        measured=measured,
        predicted=predicted,
        time=time,
        repeated=np.nan if seen is None else seen.share(again),
        partitions=len(dataset.partitions),
        left_out=tuple(left_out),
    )
