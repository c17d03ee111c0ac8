"""Simulation of other motion with identified actuators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.logs import Log, read_logs
from dynid.actuators.rollouts import Segments, rollout
from dynid.results import Result, about
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.signals.fingerprint import Fingerprint
from dynid.signals.repetition import repeated_share
from dynid.signals.settings import Signals, prepare

if TYPE_CHECKING:
    import polars as pl

    from dynid.recording.recording import Recording

__all__ = ["HORIZONS", "PositionErrors", "position_errors", "simulated_errors"]

Array = NDArray[np.float64]

# Seconds after the start of a simulation at which its position error is measured.
HORIZONS = (0.1, 0.5, 2.0)
_MAX_STARTS = 200


@dataclass(frozen=True, eq=False)
class PositionErrors(Result):
    """Position errors (rad or m) of simulated motion."""

    joints: tuple[str, ...] = field(metadata=about("Joints."))
    rms: Array = field(
        metadata=about(
            "Of whole runs, simulated from their first row; infinite where the simulation diverges.", size=("n",)
        )
    )
    range: Array = field(metadata=about("Range of the measured positions.", size=("n",)))
    horizons: Array = field(metadata=about("Seconds after a start.", size=("h",)))
    by_horizon: Array = field(
        metadata=about(
            "Root mean square error that long after a start, over starts along the runs; infinite where one diverges.",
            size=("h", "n"),
        )
    )
    repeated: float = field(
        default=np.nan, metadata=about("Share of the motion that repeats the fitted one; NaN where that is not known.")
    )

    def to_frame(self) -> pl.DataFrame:
        """The errors as a table.

        Returns
        -------
        polars.DataFrame
            One row per joint and horizon: joint, horizon in s (null for whole runs), rms and range in rad or m.
        """
        import polars as pl

        rows: list[tuple[str, float | None, float, float]] = []
        for j, joint in enumerate(self.joints):
            rows.append((joint, None, float(self.rms[j]), float(self.range[j])))
            rows += [
                (joint, float(h), float(self.by_horizon[k, j]), float(self.range[j]))
                for k, h in enumerate(self.horizons)
            ]
        return pl.DataFrame(rows, schema={"joint": str, "horizon": float, "rms": float, "range": float}, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "joints": list(self.joints),
            "rms": self.rms.tolist(),
            "range": self.range.tolist(),
            "horizons": self.horizons.tolist(),
            "by_horizon": self.by_horizon.tolist(),
            "repeated": None if np.isnan(self.repeated) else self.repeated,
        }


def position_errors(
    robot: Robot,
    law: ActuatorLaw,
    recording: Recording,
    *,
    fitted: Fingerprint | None = None,
    step: float | None = None,
) -> PositionErrors:
    """Simulate the motion of a recording under its commands.

    Parameters
    ----------
    robot : Robot
        With identified drive terms, or the a-priori robot.
    law : ActuatorLaw
    recording : Recording
        Positions and commands.
    fitted : Fingerprint, optional
        `ActuatorEstimate.fingerprint`, to find out whether the recording is other motion than the fitted one.
    step : float, optional
        Largest integration step in s. 1 ms by default.

    Returns
    -------
    PositionErrors
    """
    logs = read_logs(robot, law, recording)
    ranges = np.max([np.ptp(x.measured, axis=0) for x in logs], axis=0)
    longest = max((len(x) - 1) / x.rate for x in logs)
    horizons = np.array([h for h in HORIZONS if h < longest])
    by_horizon = _by_horizon(robot, law, logs, horizons, step)
    again = np.nan if fitted is None else repeated_share(fitted, [prepare(run, Signals()) for run in recording.runs])
    rms = simulated_errors(robot, law, logs, step)
    return PositionErrors(law.joints, rms, ranges, horizons, by_horizon, again)


def simulated_errors(robot: Robot, law: ActuatorLaw, logs: list[Log], step: float | None = None) -> Array:
    """Root mean square position error (n,) of whole simulated runs; infinite where a simulation diverges."""
    total, rows = np.zeros(law.n), 0
    for log in logs:
        start = Segments(np.array([0]), len(log) - 1, log.q[:1] - law.bias, log.v[:1])
        found = rollout(robot, law, log.commands, start, step=step)
        if found.endings[0].ended_early:
            return np.full(law.n, np.inf)
        total += np.sum((log.measured - law.bias - found.q[0]) ** 2, axis=0)
        rows += len(log)
    return np.asarray(np.sqrt(total / rows))


def _by_horizon(robot: Robot, law: ActuatorLaw, logs: list[Log], horizons: Array, step: float | None) -> Array:
    """Root mean square errors (h, n) at the horizons, over starts along all logs."""
    total, count = np.zeros((len(horizons), law.n)), 0
    for log in logs if len(horizons) else ():
        marks = np.maximum(1, np.round(horizons * log.rate)).astype(int)
        if len(log) <= marks[-1]:
            continue
        first = np.unique(np.linspace(0, len(log) - 1 - marks[-1], _MAX_STARTS).astype(int))
        starts = Segments(first, int(marks[-1]), log.q[first] - law.bias, log.v[first])
        found = rollout(robot, law, log.commands, starts, step=step)
        measured = log.measured[first[:, None] + marks] - law.bias
        errors = measured - found.q[:, marks]
        lost = np.array([x.ended_early for x in found.endings])
        total += np.sum(np.where(lost[:, None, None], np.inf, errors) ** 2, axis=0)
        count += len(first)
    return np.asarray(np.sqrt(total / max(count, 1)))
