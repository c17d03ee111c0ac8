"""Method "auto" on a data set: friction and filters are chosen on a part of it, and everything is folded with them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dynid.errors import DataError
from dynid.identification.auto import AutoOptions, auto
from dynid.identification.data_sets import observe_dataset
from dynid.identification.drive_choice import carried
from dynid.identification.estimators.solution import Choice, Solution
from dynid.identification.observation import Observation
from dynid.progress import Progress, ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["auto_dataset"]

# Choices that are made again from the whole data set, because factors are enough for them.
_FROM_FACTORS = ("weight of the prior", "estimator")


def auto_dataset(
    robot: Robot,
    dataset: DataSet,
    options: AutoOptions,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
    device: str | None = None,
) -> tuple[Solution, Observation, tuple[Choice, ...]]:
    """Choose friction and filters on evenly spaced chunks, fold all partitions with them, and fit.

    The weight of the prior is chosen again on the whole data set. Robust weights are not tried, since they need the
    rows.
    """
    began = time.perf_counter()
    sample, bad = dataset.sample()
    if bad and not skip_bad:
        raise DataError(f"{bad[0].reason}; skip_bad=True leaves such partitions out")
    chosen_on: dict[str, Any] = {"channels": channels, "progress": progress, "device": device}
    _, seen, first = auto(robot, sample, options, signals=signals, **chosen_on)
    chosen = seen.robot
    if progress is not None:
        progress(Progress(f"friction and filters chosen in {time.perf_counter() - began:.0f} s"))
    whole = observe_dataset(
        chosen,
        dataset,
        signals=seen.signals,
        base=seen.base,
        client=client,
        skip_bad=skip_bad,
        progress=progress,
        device=device,
    )
    prior = None if options.prior is None else carried(robot, chosen, options.prior)
    given = replace(options, friction="given", filters="given", prior=prior)
    with one_blas_thread():
        solution, whole, second = auto(chosen, whole, given)
    choices = [c for c in first if c.what not in _FROM_FACTORS] + [c for c in second if c.what in _FROM_FACTORS]
    used = len({run.name.split("#")[0] for run in sample.runs})
    note = f"friction and filters were chosen on {sample.samples} samples of {used} of {len(dataset)} partitions"
    return solution, replace(whole, notes=(*whole.notes, note)), tuple(choices)
