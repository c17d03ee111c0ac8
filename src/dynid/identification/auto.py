"""Method "auto": friction terms, weight of the prior, signals and estimator, chosen by cross-validation.

The recording is cut into parts of consecutive time. A model is judged by how well each part is predicted from the
others: the relative torque error, mean over the joints. Nothing outside the recording is looked at, and the search is
the same every time. The estimate is always physically consistent, and stays as close to the prior as the errors allow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from dynid.errors import DataError
from dynid.feasibility.constraints import Constraints, constraint_set
from dynid.identification.drive_choice import (
    carried,
    choose_drives,
    drive_columns,
    free_joints,
    rich_robot,
    with_drives,
)
from dynid.identification.estimator_choice import choose_estimator
from dynid.identification.estimators.options import MethodOptions, check_choice
from dynid.identification.estimators.solution import Choice, Solution
from dynid.identification.loads import default_channels
from dynid.identification.observation import Observation, observe
from dynid.identification.parts import parts_of
from dynid.identification.signal_choice import choose_signals
from dynid.identification.velocity_choice import choose_velocity_laws
from dynid.parameters.base import base_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

__all__ = ["AutoOptions", "auto"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoOptions(MethodOptions):
    """Options of method "auto".

    Attributes
    ----------
    friction : {"choose", "given"}, default "choose"
        Whether friction terms and rotor inertia of each joint are chosen, or are those of the robot.
    filters : {"choose", "given"}, default "choose"
        Whether delay and cut-off frequency are chosen, or are those of the signals.
    prior : array_like, shape (p,), optional
        A-priori standard parameters of the robot; by default its own.
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, as for method "feasible".
    parts : int, default 5
        Number of parts of the time, each of which is predicted from the others.
    """

    friction: Literal["choose", "given"] = "choose"
    filters: Literal["choose", "given"] = "choose"
    prior: ArrayLike | None = None
    constraints: Constraints = "full"
    parts: int = 5

    def __post_init__(self) -> None:
        check_choice("friction", self.friction, ("choose", "given"))
        check_choice("filters", self.filters, ("choose", "given"))
        constraint_set(self.constraints)
        if isinstance(self.parts, bool) or not isinstance(self.parts, int) or self.parts < 2:
            raise DataError(f"parts must be a whole number of at least two, got {self.parts!r:.40}")


def auto(
    robot: Robot,
    data: Recording | Observation,
    options: AutoOptions,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    progress: ProgressCallback | None = None,
    device: str | None = None,
) -> tuple[Solution, Observation, tuple[Choice, ...]]:
    """Choose a model by cross-validation and fit it; an observation keeps its drive terms and signals."""
    report = _Steps(progress)
    free: tuple[int, ...] = ()
    if options.friction == "choose" and isinstance(data, Recording):
        measured = base_parameters(robot, channels=default_channels(robot, data) if channels is None else channels)
        free = free_joints(robot, measured.channels)
    rich = rich_robot(robot, free)
    settings = signals or Signals()
    report("reading the motion", 0.05)
    given: dict[str, Any] = {"channels": channels, "device": device}
    seen = data if isinstance(data, Observation) else observe(rich, data, signals=settings, **given)
    prior = None if options.prior is None else carried(robot, rich, options.prior)
    parts = parts_of(seen, options.parts, prior)
    choices: list[Choice] = []
    report("friction", 0.2)
    drives, weight = choose_drives(parts, robot, free, choices, lambda share: report("friction", 0.2 + 0.4 * share))
    chosen = with_drives(robot, drives)
    if isinstance(data, Recording):
        if options.filters == "choose":
            terms = drive_columns(rich, drives)
            settings = choose_signals(
                parts, data, settings, terms, weight, choices, lambda share: report("filters", 0.6 + 0.2 * share)
            )
        seen = observe(chosen, data, signals=settings, **given)
        if free:
            report("velocity laws", 0.8)
            chosen = choose_velocity_laws(chosen, free, seen, options.parts, weight, choices)
            if chosen is not seen.robot:
                seen = observe(chosen, data, signals=settings, **given)
    report("estimator", 0.85)
    prior = None if options.prior is None else carried(robot, chosen, options.prior)
    solution = choose_estimator(parts_of(seen, options.parts, prior), options.constraints, weight, choices)
    return solution, seen, tuple(choices)


class _Steps:
    """Progress of the search; the time left follows from the share that is done."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self._progress, self._started = progress, time.perf_counter()

    def __call__(self, what: str, share: float) -> None:
        if self._progress is None:
            return
        spent = time.perf_counter() - self._started
        left = spent * (1 - share) / share if share > 0.1 else None
        self._progress(Progress(f"choosing a model: {what}", share, left))
