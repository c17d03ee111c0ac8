"""Candidate motions ranked by simulated identification.

A condition number says nothing of tracking errors, of noise within the loop, or of what filters remove. Each candidate
is run by the robot under its controller with the noise of its sensors, identified from that log, and compared with the
values of the simulated robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from dynid.errors import DynidError, InvalidValue, MissingArgument
from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import Excitation
from dynid.identification.pipeline import identify
from dynid.markup import HtmlFrame
from dynid.parameters.base import base_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.terminal import rendered

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Candidate", "Ranking", "design_candidates", "rank_motions"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion and what its simulated identification found.

    Attributes
    ----------
    number : int
        Place among the motions that were given, from 1.
    motion : Excitation
    score : float
        Rms over the base parameters of their error, each over its geometric mean among all candidates. Infinite where
        the motion cannot be simulated or identified.
    predicted : float
        The same of the standard deviations that the identification states.
    errors : array, shape (b,)
        Rms error of each base parameter over the repetitions.
    std : array, shape (b,)
        Rms standard deviation that the identification states.
    tracking : float
        Largest difference of a position from its reference, rad or m.
    outcome : str
        "completed", or why there are no errors.
    """

    number: int
    motion: Excitation
    score: float
    predicted: float
    errors: Array
    std: Array
    tracking: float
    outcome: str


@dataclass(frozen=True, eq=False)
class Ranking(HtmlFrame):
    """Motions in the order of the errors of their simulated identification.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best first.
    names : tuple of str
        Names of the base parameters.
    truth : array, shape (b,)
        Values of the simulated robot.
    repeats : int
        Simulations of each motion.
    method : str
        Method of the identification.
    """

    candidates: tuple[Candidate, ...]
    names: tuple[str, ...]
    truth: Array
    repeats: int
    method: str

    @property
    def best(self) -> Excitation:
        """The motion with the smallest errors."""
        return self.candidates[0].motion

    def to_frame(self) -> pl.DataFrame:
        """One row per candidate: candidate, error, stated_error, condition_number, tracking and outcome.

        Returns
        -------
        polars.DataFrame
        """
        import polars as pl

        return pl.DataFrame(self.to_dict()["candidates"], infer_schema_length=None)

    def summary(self) -> str:
        """A table of the candidates, the best first."""
        table = Table(title=f"motions ranked by simulated identification ({self.method}, {self.repeats} logs each)")
        columns = ("candidate", "error", "stated error", "condition number", "tracking", "largest relative error")
        for k, name in enumerate(columns):
            table.add_column(name, justify="right" if k else "left", overflow="fold")
        for c in self.candidates:
            table.add_row(*self._row(c))
        lines = [f"candidate {c.number}: {c.outcome}" for c in self.candidates if c.outcome != "completed"]
        words = "error: rms over the base parameters, each over its mean among the candidates; stated: of the estimates"
        return rendered(table, words, *lines)

    def _row(self, c: Candidate) -> tuple[str, ...]:
        worst = self._worst(c)
        figures = (c.score, c.predicted, c.motion.condition_number, c.tracking)
        shown = [f"{x:.3g}" if np.isfinite(x) else "-" for x in figures]
        return (str(c.number), *shown, "-" if worst is None else f"{self.names[worst[0]]} ({100 * worst[1]:.2g} %)")

    def _worst(self, c: Candidate) -> tuple[int, float] | None:
        """Base parameter with the largest relative error, and this error; values near zero are left out."""
        usable = np.abs(self.truth) > 1e-2 * np.abs(self.truth).max()
        if not np.isfinite(c.score) or not np.any(usable):
            return None
        relative = np.where(usable, c.errors / np.where(usable, np.abs(self.truth), 1.0), -1.0)
        return int(np.argmax(relative)), float(relative.max())

    def to_dict(self) -> dict[str, Any]:
        """The ranking as plain data; None for infinite values."""

        def plain(x: float) -> float | None:
            return float(x) if np.isfinite(x) else None

        return {
            "method": self.method,
            "repeats": self.repeats,
            "base_parameters": list(self.names),
            "candidates": [
                {
                    "candidate": c.number,
                    "error": plain(c.score),
                    "stated_error": plain(c.predicted),
                    "condition_number": plain(c.motion.condition_number),
                    "tracking": plain(c.tracking),
                    "outcome": c.outcome,
                    "errors": [plain(x) for x in c.errors],
                    "std": [plain(x) for x in c.std],
                }
                for c in self.candidates
            ],
        }


@dataclass(frozen=True, eq=False)
class _Logs:
    """Errors and standard deviations (repeat, b) from the logs of one motion, or why there are none."""

    errors: Array
    std: Array
    tracking: float
    outcome: str = "completed"


def design_candidates(
    robot: Robot,
    duration: float = 20.0,
    count: int = 5,
    *,
    budget: int = 1000,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> tuple[Excitation, ...]:
    """Several motions, each from random starts of its own, for `rank_motions`.

    Parameters
    ----------
    robot : Robot
    duration : float
        Duration of the motions, s.
    count : int
        Number of motions.
    budget : int
        Iterations of all searches together, shared equally.
    seed : int
        Seed of the first; the others follow.
    progress : callable, optional
        Called with a `dynid.progress.Progress` during the searches.
    **options
        Further options of `dynid.design_excitation`.

    Returns
    -------
    tuple of Excitation

    Raises
    ------
    DataError
        If there are fewer iterations than motions, or `dynid.design_excitation` refuses a setting.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidValue(f"the number of candidates is a whole number from 1, got {count!r:.40}", "count")
    if isinstance(budget, int) and budget < count:
        raise InvalidValue(f"{count} candidates need a budget of at least {count} iterations, got {budget}", "budget")
    share = budget // count if isinstance(budget, int) else budget
    return tuple(
        design_excitation(
            robot,
            duration,
            budget=share,
            seed=seed + k,
            progress=_part(progress, f"candidate {k + 1} of {count}", k, count),
            **options,
        )
        for k in range(count)
    )


def rank_motions(
    robot: Robot,
    motions: Sequence[Excitation],
    loop: ClosedLoop,
    *,
    repeats: int = 5,
    method: str = "wls",
    seed: int = 0,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Ranking:
    """Rank motions by the errors of the base parameters that are identified from simulated logs.

    Every motion meets the same seeds of noise. The same seed gives the same ranking.

    Parameters
    ----------
    robot : Robot
        The simulated robot, whose values are also what the errors are counted from.
    motions : sequence of Excitation
        At least one, such as those of `design_candidates`.
    loop : ClosedLoop
        The controller, and sensors with noise.
    repeats : int
        Logs of each motion, with other noise.
    method : str
        Method of `dynid.identify` that fits the measured regressor.
    seed : int
        Seed of the noise.
    progress : callable, optional
        Called with a `dynid.progress.Progress` after every log.
    **options
        Further options of `dynid.identify`, such as `signals`.

    Returns
    -------
    Ranking

    Raises
    ------
    DataError
        If there is no motion or no controller, or the sensors have no noise.
    DynidError
        If no motion can be simulated and identified.
    """
    motions = tuple(motions)
    if not motions:
        raise MissingArgument("there is no motion to rank", "motions")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise InvalidValue(f"the number of logs per motion is a whole number from 1, got {repeats!r:.40}", "repeats")
    noises = (loop.sensors.noise, loop.sensors.counts, loop.sensors.torque_noise)
    if not any(np.any(np.asarray(x, dtype=float) > 0) for x in noises):
        raise MissingArgument(
            "without noise all motions identify alike: give the sensors of the loop noise or torque_noise", "noise"
        )
    base = base_parameters(robot, channels="torque")
    logs = []
    for k, motion in enumerate(motions):
        report = _part(progress, f"simulating candidate {k + 1} of {len(motions)}", k, len(motions))
        logs.append(_simulated(robot, motion, loop, range(seed, seed + repeats), method, options, report))
    found = _scored(motions, logs)
    if not np.isfinite(found[0].score):
        raise DynidError(
            f"no motion can be identified in simulation; the first: {found[0].outcome}", code="simulation_failed"
        )
    return Ranking(tuple(found), base.names, base.values(), repeats, method)


def _part(progress: ProgressCallback | None, what: str, done: int, count: int) -> ProgressCallback | None:
    """Progress of one of several equal parts, named."""
    if progress is None:
        return None

    def report(now: Progress) -> None:
        share = None if now.share is None else (done + now.share) / count
        progress(replace(now, message=f"{what}: {now.message}", share=share, seconds_left=None))

    return report


def _simulated(
    robot: Robot,
    motion: Excitation,
    loop: ClosedLoop,
    seeds: range,
    method: str,
    options: dict[str, Any],
    report: ProgressCallback | None,
) -> _Logs:
    """Errors and standard deviations of the identification of each simulated log."""
    errors, std, tracking = [], [], 0.0
    for k, seed in enumerate(seeds):
        log = simulate(robot, loop, motion, seed=seed)
        tracking = max(tracking, float(np.abs(log.q - log.reference).max(initial=0.0)))
        if not log.completed:
            return _Logs(np.zeros((0, 0)), np.zeros((0, 0)), tracking, f"the simulation stopped: {log.outcome}")
        try:
            estimate = identify(robot, log.recording(), method, **options)
        except DynidError as error:
            return _Logs(np.zeros((0, 0)), np.zeros((0, 0)), tracking, str(error))
        errors.append(estimate.beta - estimate.base.values())
        std.append(np.sqrt(np.diag(estimate.covariance)))
        if report is not None:
            report(Progress(f"log {k + 1} of {len(seeds)}", (k + 1) / len(seeds)))
    return _Logs(np.array(errors), np.array(std), tracking)


def _scored(motions: Sequence[Excitation], logs: Sequence[_Logs]) -> list[Candidate]:
    """The candidates in order, each parameter measured by its mean among those that were identified."""
    done = [x for x in logs if x.outcome == "completed"]
    typical = [
        np.exp(np.mean([np.log(np.maximum(_rms(part), 1e-300)) for part in parts], axis=0)) if parts else np.zeros(0)
        for parts in ([x.errors for x in done], [x.std for x in done])
    ]
    out = []
    for number, (motion, x) in enumerate(zip(motions, logs, strict=True), start=1):
        if x.outcome != "completed":
            nothing = np.full(motion.criterion.base.count, np.inf)
            out.append(Candidate(number, motion, np.inf, np.inf, nothing, nothing, x.tracking, x.outcome))
            continue
        errors, std = _rms(x.errors), _rms(x.std)
        score, predicted = (float(_rms(part / unit)) for part, unit in zip((errors, std), typical, strict=True))
        out.append(Candidate(number, motion, score, predicted, errors, std, x.tracking, x.outcome))
    return sorted(out, key=lambda c: c.score)


def _rms(values: Array) -> Array:
    """Root mean square over the first axis."""
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))
