"""Delays, gains and offsets of the sensors, estimated together with the robot's parameters."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.calibration.sensors.result import SensorCalibration
from dynid.calibration.sensors.rows import KNOWN, ONE, Problem
from dynid.calibration.sensors.solve import LONGEST, Found, solve
from dynid.calibration.sensors.unknowns import (
    VELOCITY,
    Unknowns,
    Values,
    corrected_run,
    neutral,
    read_unknowns,
    tilted_gravity,
)
from dynid.calibration.sensors.velocity import velocity_sensors
from dynid.calibration.sensors.visibility import hidden_unknowns
from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import Solution
from dynid.identification.loads import check_run, default_channels
from dynid.identification.observation import Observation, fold, observe
from dynid.identification.pipeline import estimate_from, estimate_of
from dynid.parameters.base import BaseParameters, base_parameters, choose_channels
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Signals
from dynid.signals.shift import REACH

__all__ = ["calibrate_sensors"]

Array = NDArray[np.float64]

# Where a joint turns round, friction steps at an instant that is recorded to a sample only: rows there pull a delay.
_MIN_SPEED = "10%"
_LEAN = np.array([0.3, 0.2])
# Deviations from here on leave the number open: seconds, shares, radians.
_POOR = {"delay": 0.02, "wrench_delay": 0.02, "torque_gain": 0.2, "encoder_offset": 0.1, "tilt": 0.1}


def calibrate_sensors(
    robot: Robot,
    recordings: Recording | Sequence[Recording],
    estimate: str | Sequence[str] | Mapping[str, str | Sequence[str]] = ("delay",),
    *,
    reference: str | Sequence[str] | None = None,
    payloads: Mapping[str, Robot | ArrayLike] | None = None,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
) -> SensorCalibration:
    """Estimate errors of the sensors together with the base parameters, by weighted least squares.

    `estimate` names what is unknown: delay (of torques), torque_gain, torque_offset, encoder_offset, tilt (of the
    base), velocity_gain, velocity_offset, and of a measured base wrench wrench_delay and wrench_offset. A mapping says
    of which joints: {"delay": "common", "encoder_offset": ["joint2"]}; "common" is one number for all of them.
    Gains need a scale: a `reference` joint (or several) whose gain is one, or `payloads`, known loads by the names of
    the runs that carried them, each a standard vector (p,) or the robot with its load (`Robot.with_payload`).
    What no motion can show is left out with a warning; what this motion cannot tell apart is an error. By default
    rows of a joint below a tenth of its highest speed do not count (`Signals.min_velocity`).
    """
    started = time.perf_counter()
    recording = _joined(recordings)
    settings = signals or Signals(min_velocity=_MIN_SPEED)
    chosen = channels if channels is not None else default_channels(robot, recording)
    names = [robot.channels[i] for i in choose_channels(robot, chosen)]
    unknowns, speeds = read_unknowns(robot, estimate, reference, names)
    loads = _loads(robot, recording, payloads or {})
    gains = [e for e in unknowns.entries if e.word == "torque_gain"]
    if gains and reference is None and not loads:
        raise DataError(
            "all torques and parameters could be larger by one factor: give a reference joint whose gain is known, "
            "or payloads that are"
        )
    for run in recording.runs:
        check_run(robot, run, names)
    values, std = (neutral(robot), {w: np.zeros_like(x) for w, x in neutral(robot).items()})
    if speeds:
        found_speeds, their_std = velocity_sensors(recording, settings, speeds)
        values |= found_speeds
        std |= their_std
        recording = _velocities_corrected(recording, values, robot)
    uncorrected = estimate_from(observe(robot, _without(recording, loads), settings, channels=names), "wls")
    if not unknowns.entries:
        return SensorCalibration(
            robot,
            speeds,
            values,
            std,
            (),
            np.zeros((0, 0)),
            uncorrected,
            uncorrected,
            0,
            True,
            periodic=_periodic(settings),
        )
    leaning = any(e.word == "tilt" for e in unknowns.entries)
    model = robot.with_gravity(tilted_gravity(robot, _LEAN)) if leaning else robot
    base = base_parameters(model, channels=names)
    hidden = hidden_unknowns(base, unknowns, bool(loads))
    asked = tuple(dict.fromkeys(e.word for e in unknowns.entries)) + speeds
    for entry in hidden:
        std[entry.word][list(entry.members)] = np.inf
    unknowns = unknowns.without(list(hidden))
    warnings = list(hidden.values())
    if not unknowns.entries:
        raise DataError(f"nothing is left to estimate: {'; '.join(warnings)}")
    found = solve(Problem(base, recording, _trimmed(settings, unknowns, recording), unknowns, loads))
    deviations = np.sqrt(np.diag(found.covariance))[base.count :]
    values |= {w: x for w, x in unknowns.values(found.theta).items() if w not in VELOCITY}
    for entry, deviation in zip(unknowns.entries, deviations, strict=True):
        std[entry.word][list(entry.members)] = deviation
        if deviation > _POOR.get(entry.word, np.inf):
            warnings.append(f"{entry.name} is known only to {deviation:.2g}: this motion hardly shows it")
    warnings += [f"{name} ran to the end of its range, which no sensor should need" for name in found.stuck]
    if not found.converged and not found.stuck:
        warnings.append(f"the search did not settle in {found.iterations} iterations")
    upright = robot.with_gravity(tilted_gravity(robot, values["tilt"])) if leaning else robot
    return SensorCalibration(
        robot=upright,
        words=asked,
        values=values,
        std=std,
        names=tuple(e.name for e in unknowns.entries),
        covariance=found.covariance[base.count :, base.count :],
        estimate=_estimate(replace(base, robot=upright), found, unknowns, settings, started),
        uncorrected=uncorrected,
        iterations=found.iterations,
        converged=found.converged,
        warnings=tuple(warnings),
        periodic=_periodic(settings),
    )


def _estimate(base: BaseParameters, found: Found, unknowns: Unknowns, settings: Signals, started: float) -> Estimate:
    """The base parameters as an estimate from corrected data."""
    values, b = unknowns.values(found.theta), base.count
    factors, noise = [], []
    for channel, f, deviation in zip(base.channels, found.folded.factors, found.noise, strict=True):
        if channel in base.robot.coordinates:
            j = base.robot.coordinates.index(channel)
            gain, offset = values["torque_gain"][j], values["torque_offset"][j]
        else:
            gain, offset = 1.0, values["wrench_offset"][base.robot.channels.index(channel)]
        y = (f[:, -1] - offset * f[:, b + ONE]) / gain - f[:, b + KNOWN]
        factors.append(fold(np.asfortranarray(np.column_stack([f[:, :b], y]))))
        noise.append(deviation / abs(gain))
    cutoffs = found.folded.cutoffs
    observation = Observation(base, tuple(factors), found.folded.rows, lambda: iter(()), settings, cutoffs)
    solution = Solution(found.beta, found.covariance[:b, :b], np.array(noise), found.condition_number)
    status = "converged" if found.converged else "out of iterations"
    with threadpool_limits(1, "blas"):
        return estimate_of(observation, replace(solution, status=status), "wls + sensors", started)


def _joined(recordings: Recording | Sequence[Recording]) -> Recording:
    if isinstance(recordings, Recording):
        return recordings
    if not recordings:
        raise DataError("sensors are calibrated from recordings, and none was given")
    out = recordings[0]
    for more in recordings[1:]:
        out = out + more
    return out


def _loads(robot: Robot, recording: Recording, payloads: Mapping[str, Robot | ArrayLike]) -> dict[str, Array]:
    """What hangs on the robot in each run that names a payload, as a standard vector."""
    names = [run.name for run in recording.runs]
    out = {}
    for name, given in payloads.items():
        if name not in names:
            raise DataError(f"payloads name no run '{name}', the runs are {', '.join(names)}")
        if isinstance(given, Robot):
            if given.parameter_names != robot.parameter_names:
                raise DataError(f"the robot with the payload of run '{name}' has other parameters than '{robot.name}'")
            out[name] = given.parameters - robot.parameters
        else:
            out[name] = checked(given, (len(robot.layout),), f"payload of run '{name}'", DataError)
    return out


def _without(recording: Recording, loads: Mapping[str, Array]) -> Recording:
    """Runs without a payload, or all where every one carries some."""
    plain = tuple(run for run in recording.runs if run.name not in loads)
    return Recording(recording.joints, plain) if plain else recording


def _velocities_corrected(recording: Recording, values: Values, robot: Robot) -> Recording:
    only = neutral(robot) | {w: values[w] for w in VELOCITY}
    return Recording(recording.joints, tuple(corrected_run(run, only, periodic=False) for run in recording.runs))


def _trimmed(settings: Signals, unknowns: Unknowns, recording: Recording) -> Signals:
    """Settings that leave out what lies beyond the ends of a torque moved in time."""
    if _periodic(settings) or not any("delay" in e.word for e in unknowns.entries):
        return settings
    step = max(run.step for run in recording.runs)
    return replace(settings, trim=max(settings.trim, LONGEST + REACH * step))


def _periodic(settings: Signals) -> bool:
    return settings.derivative == "fourier"
