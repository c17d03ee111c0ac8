"""How well an estimate predicts torques on motion that it was not identified from, in recordings and data sets.

The errors of a data set are summed up partition by partition, here or on a cluster, and rows are not held. In
cross-validation every partition is folded once and predicted once, whatever the number of folds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, MissingData, NotApplicable, TooFew
from dynid.identification.data_sets import cleaned_chunk, needed_signals, observe_dataset
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.options import MethodOptions
from dynid.identification.estimators.registry import check_factors_suffice, find_method, method_options
from dynid.identification.loads import check_run, default_channels
from dynid.identification.observation import Observation, check_no_client, time_parts
from dynid.identification.pipeline import estimate_from, identify
from dynid.identification.row_stream import BLOCKS, motion_blocks
from dynid.identification.stops import without_stops
from dynid.identification.validation_errors import Validation, validation_of
from dynid.parameters.base import base_parameters
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.fingerprint import MotionSampler
from dynid.signals.repetition import Repetition, SeenMotion, repeated_share
from dynid.signals.settings import Motion, Signals, prepare

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = [
    "cross_validate",
    "cross_validate_dataset",
    "repeated_motion",
    "validate",
    "validate_dataset",
]

Array = NDArray[np.float64]


def validate(
    estimate: Estimate,
    recording: Recording | DataSet,
    *,
    signals: Signals | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
) -> Validation:
    """Predict the torques of a recording or data set with an estimate and compare; as `Estimate.validate`."""
    if isinstance(recording, DataSet):
        return validate_dataset(
            estimate, recording, signals=signals, client=client, skip_bad=skip_bad, progress=progress
        )
    check_no_client(client)
    settings = signals or estimate.signals
    base = estimate.base
    measured: list[list[Array]] = [[] for _ in base.channels]
    predicted: list[list[Array]] = [[] for _ in base.channels]
    when: list[list[Array]] = [[] for _ in base.channels]
    clock = 0.0
    for run in recording.runs:
        check_run(base.robot, run, base.channels)
    motions, _ = without_stops(base, [prepare(run, settings) for run in recording.runs], settings)
    for motion in motions:
        for block in motion_blocks(base, motion, settings):
            measured[block.channel].append(block.y)
            predicted[block.channel].append(block.W @ estimate.beta)
            when[block.channel].append(clock + motion.t[block.index] - motion.t[0])
        clock += float(motion.t[-1] - motion.t[0])
    if not any(measured):
        raise MissingData("no joint moves faster than min_velocity in this recording", "min_velocity")
    joined = ([np.concatenate([*x, np.zeros(0)]) for x in rows] for rows in (measured, predicted, when))
    found = validation_of(base.robot, base.channels, *joined)
    return replace(found, repeated=repeated_motion(estimate, motions))


def repeated_motion(estimate: Estimate, motions: Sequence[Motion]) -> float:
    """Share of the motion of filtered runs that repeats the one that was fitted; NaN where that is not known."""
    return math.nan if estimate.fingerprint is None else repeated_share(estimate.fingerprint, motions)


def cross_validate(
    robot: Robot,
    recording: Recording | DataSet,
    method: str = "wls",
    *,
    folds: int = 5,
    options: MethodOptions | None = None,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
    **keywords: Any,
) -> tuple[Validation, ...]:
    """Predict each of several segments of time from the others.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    recording : Recording or DataSet
        Measured motion and torques. Every run is cut into `folds` segments of consecutive samples, so that neighbouring
        samples are not on both sides. The segments of a data set are whole partitions.
    method : str, default "wls"
        The method, as for `identify`.
    folds : int, default 5
        Number of segments, at least two.
    options : MethodOptions, optional
        Options of the method, as for `identify`.
    signals : Signals, optional
        How runs are filtered, as for `identify`.
    channels : str or sequence of str, optional
        Measured quantities that are fitted, as for `identify`.
    client : distributed.Client, optional
        Dask cluster whose workers read the partitions of a data set.
    skip_bad : bool, default False
        Leave out partitions of a data set that cannot be used.
    progress : callable, optional
        Receives a `Progress` after every partition of a data set.
    **keywords
        Options of the method by name.

    Returns
    -------
    tuple of Validation
        One per segment.

    Raises
    ------
    DataError
        If `folds` is less than two or more than the partitions of a data set, or as `identify` does.
    """
    if folds < 2:
        raise InvalidValue(f"cross-validation needs at least two folds, got {folds}", "folds")
    if isinstance(recording, DataSet):
        return cross_validate_dataset(
            robot,
            recording,
            method,
            folds=folds,
            options=options,
            signals=signals,
            channels=channels,
            work={"client": client, "skip_bad": skip_bad, "progress": progress},
            **keywords,
        )
    check_no_client(client)
    out = []
    for fold in range(folds):
        inside: list[Run] = []
        outside: list[Run] = []
        for run in recording.runs:
            edges = np.linspace(0, len(run), folds + 1).astype(int)
            lo, hi = int(edges[fold]), int(edges[fold + 1])
            inside.append(run.rows(lo, hi))
            outside += [run.rows(a, b) for a, b in ((0, lo), (hi, len(run))) if b - a > 1]
        others = replace(recording, runs=tuple(outside))
        estimate = identify(robot, others, method, options=options, signals=signals, channels=channels, **keywords)
        out.append(validate(estimate, replace(recording, runs=tuple(inside))))
    return tuple(out)


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
        raise TooFew("has no run that is long enough to be filtered")
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
        raise MissingData(f"no joint moves faster than min_velocity in {dataset.source}", "min_velocity")
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


def cross_validate_dataset(
    robot: Robot,
    dataset: DataSet,
    method: str,
    *,
    folds: int,
    options: MethodOptions | None,
    signals: Signals | None,
    channels: str | Sequence[str] | None,
    work: dict[str, Any],
    **keywords: Any,
) -> tuple[Validation, ...]:
    """Predict each of several groups of consecutive partitions from the others, as `cross_validate`.

    `work` has the keywords client, skip_bad and progress. A method that takes the recording makes its choices for every
    group, so it folds the others each time; other methods join factors that are folded once.
    """
    count = len(dataset.partitions)
    if count < folds:
        raise TooFew(f"{folds} folds need as many partitions, and {dataset.source} has {count}", "folds")
    edges = (np.arange(folds + 1) * count) // folds
    groups = [replace(dataset, partitions=dataset.partitions[a:b]) for a, b in pairwise(edges)]
    record, chosen = find_method(method), method_options(method, options, **keywords)
    if record.simulates:
        raise NotApplicable(
            f"method '{method}' simulates the closed loop and needs the recording, not a data set", "method"
        )
    if record.takes == "recording":
        out: list[Validation] = []
        for a, b in pairwise(edges):
            others = replace(dataset, partitions=dataset.partitions[:a] + dataset.partitions[b:])
            found = identify(robot, others, method, options=chosen, signals=signals, channels=channels, **work)
            out.append(validate_dataset(found, groups[len(out)], **work))
        return tuple(out)
    check_factors_suffice(record, chosen)
    wanted = channels if channels is not None else default_channels(robot, dataset.sample(1)[0])
    base = base_parameters(robot, channels=wanted)
    seen = [observe_dataset(robot, group, signals=signals, base=base, **work) for group in groups]
    estimates = [
        estimate_from(_joined([one for k, one in enumerate(seen) if k != fold]), method, options=chosen)
        for fold in range(folds)
    ]
    return tuple(validate_dataset(e, group, **work) for e, group in zip(estimates, groups, strict=True))


def _joined(parts: Sequence[Observation]) -> Observation:
    """One observation of several, with as many blocks of time as that of a data set."""
    whole = reduce(Observation.joined, parts)
    if len(whole.time_blocks) <= BLOCKS:
        return whole
    return replace(whole, time_blocks=tuple(time_parts(whole, BLOCKS)))
