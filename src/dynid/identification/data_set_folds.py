"""Cross-validation on a data set: every partition is folded once and predicted once, whatever the number of folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.errors import DataError
from dynid.identification.data_set_validation import validate_dataset
from dynid.identification.data_sets import observe_dataset
from dynid.identification.estimators.options import MethodOptions
from dynid.identification.estimators.registry import CLOSED_LOOP, check_factors_suffice, method_options
from dynid.identification.folding import BLOCKS
from dynid.identification.loads import default_channels
from dynid.identification.observation import Observation, time_parts
from dynid.identification.pipeline import estimate_from, identify
from dynid.parameters.base import base_parameters
from dynid.recording.dataset import DataSet
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from dynid.identification.validation import Validation

__all__ = ["cross_validate_dataset"]


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

    `work` has the keywords client, skip_bad and progress. Method "auto" makes its choices for every group, so it folds
    the others each time; other methods join factors that are folded once.
    """
    count = len(dataset.partitions)
    if count < folds:
        raise DataError(f"{folds} folds need as many partitions, and {dataset.source} has {count}")
    edges = (np.arange(folds + 1) * count) // folds
    groups = [replace(dataset, partitions=dataset.partitions[a:b]) for a, b in pairwise(edges)]
    chosen = method_options(method, options, **keywords)
    if method in CLOSED_LOOP:
        raise DataError(f"method '{method}' simulates the closed loop and needs the recording, not a data set")
    if method == "auto":
        out: list[Validation] = []
        for a, b in pairwise(edges):
            others = replace(dataset, partitions=dataset.partitions[:a] + dataset.partitions[b:])
            found = identify(robot, others, method, options=chosen, signals=signals, channels=channels, **work)
            out.append(validate_dataset(found, groups[len(out)], **work))
        return tuple(out)
    check_factors_suffice(method, chosen)
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
