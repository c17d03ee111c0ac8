"""Simulate held-out motion from measured states with the identified and the a-priori model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.model.horizon import ModelErrors, SimulationError
from dynid.assessment.model.horizon_loop import closed_loop_error
from dynid.assessment.model.horizon_starts import Setting, checked_track, nothing, setting_of
from dynid.errors import DynidError, InvalidValue
from dynid.identification.estimate import Estimate
from dynid.identification.loads import check_run
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals, prepare
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.replay import Starts, replay

__all__ = ["HORIZONS", "simulation_error", "simulation_error_of_motions"]

Array = NDArray[np.float64]

HORIZONS = (0.1, 0.5, 2.0)
_STEP = 0.0025  # s; the first step that is tried
_HALVING = 0.05  # largest change by half the step, relative to the error
_FINEST = 16  # steps per row at most
_SAMPLE = 12  # starts by which the step is chosen
_PROBED = 0.5  # s; the longest horizon by which the step is chosen
_NEGLIGIBLE = 1e-3  # of the motion; errors below need not be resolved


def simulation_error(
    estimate: Estimate,
    recording: Recording,
    *,
    horizons: Sequence[float] = HORIZONS,
    loop: ClosedLoop | None = None,
    signals: Signals | None = None,
    interval: float = 0.3,
    max_starts: int = 100,
) -> SimulationError:
    """Simulate measured motion from measured states and compare positions some time later.

    Without a loop the measured torque moves the model; nothing holds it on the measured motion, so errors grow with
    time. With a loop its controller moves the model along the recorded reference, from the measured state and from the
    state that the controller has there. The a-priori model and a constant velocity are compared with the same motion.

    Parameters
    ----------
    estimate : Estimate
        Identified parameters; the a-priori model is `estimate.robot`.
    recording : Recording
        Motion with torques, if possible not identified from.
    horizons : sequence of float
        Seconds after the start at which positions are compared.
    loop : ClosedLoop, optional
        Controller of the recording, for a closed-loop simulation; the recording then needs a reference.
    signals : Signals, optional
        How the runs are filtered; by default as for the identification.
    interval : float
        Seconds between starts.
    max_starts : int
        Largest number of starts; the interval is longer where there would be more.

    Returns
    -------
    SimulationError
        Where the robot cannot be simulated, `identified` is None and `reason` says why.

    Raises
    ------
    DataError
        If the horizons, the interval or the number of starts are not positive, or the recording does not fit the robot.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    >>> fitted, unseen = (synthetic_recording(robot, seed, 10.0) for seed in (0, 1))
    >>> found = dynid.assessment.simulation_error(dynid.identify(robot, fitted), unseen)
    >>> found.horizons, found.simulated
    ((0.1, 0.5, 2.0), True)
    """
    times = tuple(sorted(float(h) for h in horizons))
    if not times or not times[0] > 0 or not interval > 0 or max_starts < 1:
        raise InvalidValue("horizons, interval and max_starts of a simulation error must be positive", "horizons")
    base = estimate.base
    for run in recording.runs:
        check_run(base.robot, run, base.channels)
    if loop is not None:
        return closed_loop_error(estimate, recording, loop, times, signals or estimate.signals, interval, max_starts)
    motions = tuple(prepare(run, signals or estimate.signals) for run in recording.runs)
    return simulation_error_of_motions(estimate, motions, horizons=times, interval=interval, max_starts=max_starts)


def simulation_error_of_motions(
    estimate: Estimate,
    motions: Sequence[Motion],
    *,
    horizons: tuple[float, ...] = HORIZONS,
    interval: float = 0.3,
    max_starts: int = 100,
) -> SimulationError:
    """`simulation_error` in open loop for runs that are filtered already."""
    began = time.perf_counter()
    empty = nothing(estimate, "open", horizons)
    robot = estimate.robot
    try:
        track = checked_track(estimate, motions)
        setting = setting_of(robot, track, empty, interval, max_starts)
        ours = _Model(robot, estimate.parameters)
        parts, halving = _steps(setting, ours)
        identified = _errors(setting, ours, parts)
    except DynidError as error:
        return replace(empty, reason=str(error))
    prior, reason = None, "the robot has no a-priori parameters"
    if np.any(robot.parameters):
        prior, reason = _errors(setting, _Model(robot, None), parts), ""
    return setting.result(
        replace(empty, step=min(track.periods) / parts, halving=halving, reason=reason),
        identified=identified,
        prior=prior,
        began=began,
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """A robot with the parameters that are simulated."""

    robot: Robot
    parameters: ArrayLike | None


def _errors(setting: Setting, model: _Model, parts: int) -> ModelErrors:
    """Errors of a model with this number of steps per row."""
    found = [
        replay(model.robot, model.parameters, setting.track.torque, s, parts) for s in (setting.starts, setting.whole)
    ]
    return setting.errors(found[0], found[1])


def _steps(setting: Setting, model: _Model) -> tuple[int, float]:
    """Steps per row by which half the step changes positions little, and that change relative to the error."""
    starts = setting.starts
    some = np.unique(np.linspace(0, len(starts) - 1, _SAMPLE).astype(int))
    near = np.flatnonzero(starts.marks[0] * starts.period[0] <= _PROBED)
    near = near if near.size else np.array([0])
    few = Starts(
        starts.q[some], starts.v[some], starts.first[some], starts.last[some], starts.period[some],
        np.ascontiguousarray(starts.marks[np.ix_(some, near)]),
    )  # fmt: skip
    measured = setting.measured[np.ix_(some, near)]
    parts = max(1, int(np.ceil(max(setting.track.periods) / _STEP - 1e-6)))
    coarse = replay(model.robot, model.parameters, setting.track.torque, few, parts).q
    while True:
        fine = replay(model.robot, model.parameters, setting.track.torque, few, 2 * parts).q
        both = np.all(np.isfinite(fine) & np.isfinite(coarse) & np.isfinite(measured), axis=(1, 2))
        if not both.any():
            return parts, np.nan
        parted = (coarse - fine, fine - measured, measured - few.q[:, None])
        change, error, moved = (float(np.median(np.abs(x[both]).max(axis=(1, 2)))) for x in parted)
        change /= max(error, _NEGLIGIBLE * moved, 1e-300)
        if change <= _HALVING or 2 * parts > _FINEST:
            return parts, change
        parts, coarse = 2 * parts, fine
