"""Delays, gains and offsets of the sensors, estimated together with the robot's parameters."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.calibration.sensors.result import SensorCalibration
from dynid.calibration.sensors.rows import KNOWN, ONE, Problem
from dynid.calibration.sensors.solve import LONGEST, Found, solve, velocity_sensors
from dynid.calibration.sensors.unknowns import (
    VELOCITY,
    Unknown,
    Unknowns,
    Values,
    corrected_run,
    neutral,
    read_unknowns,
)
from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError, Mismatch, MissingArgument, NotIdentifiable, UnknownName
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import Outcome, Solution
from dynid.identification.loads import check_run, default_channels
from dynid.identification.observation import Observation, fold, no_rows
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, estimate_of
from dynid.parameters.base import BaseParameters, base_parameters, choose_channels, random_states
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.robot.posture import tilted_gravity
from dynid.signals.settings import Signals
from dynid.signals.shift import REACH
from dynid.threads import one_blas_thread

__all__ = ["calibrate_sensors", "hidden_unknowns"]

Array = NDArray[np.float64]
_LEAN = np.array([0.3, 0.2])


# Structural identifiability of sensor errors, decided on random states and random bodies.


_STEP = 1e-3
_STEPS = (-2 * _STEP, -_STEP, _STEP, 2 * _STEP)
# Remainder of a unit column after projection on all before it; rounding of the differences leaves 1e-11.
_VISIBLE = 1e-7

_WHY = {
    "torque_gain": "no other measured torque shares a load with it, so nothing says how large its own is",
    "torque_offset": "the robot's own drive offset is the same signal; leave one of them out",
    "encoder_offset": "bodies turned about the joint's axis give the same torques",
    "tilt": "other bodies give the same torques",
    "wrench_offset": "the weight of the base link is the same signal",
}
_NOTHING = {"encoder_offset": "gravity looks the same from all positions of this joint, as about a vertical axis"}


def hidden_unknowns(base: BaseParameters, unknowns: Unknowns, loaded: bool) -> dict[Unknown, str]:
    """Unknowns whose effect equals that of base parameters or of earlier unknowns, each with the reason.

    `loaded`: whether a known payload hangs on the robot in part of the runs. Delays always show in a moving robot.
    """
    robot = unknowns.robot
    if any(e.word == "tilt" for e in unknowns.entries):
        tilt = _LEAN
        model = robot.with_gravity(tilted_gravity(robot, tilt))
    else:
        tilt, model = np.zeros(2), robot
    rows = [robot.channels.index(c) for c in base.channels]
    samples = max(4 * (base.count + len(unknowns.entries)) // max(len(rows), 1), 60)
    q, v, a = random_states(model, samples, seed=1)
    rng = np.random.default_rng(2)
    pi = rng.uniform(0.2, 1.0, len(robot.layout))
    load = rng.uniform(0.2, 1.0, len(robot.layout))
    carries = (np.arange(samples) % 2 == 1)[:, None]
    W = replace(base, robot=model).regressor(q, v, a)

    def torque(of: Array, gravity: Array | None = None) -> Array:
        here = model if gravity is None else robot.with_gravity(gravity)
        plain = inverse_dynamics(here, of, v, a, pi)
        if loaded:
            plain = np.where(carries, inverse_dynamics(here, of, v, a, pi + load), plain)
        return np.asarray(plain[:, rows])

    basis = np.linalg.qr(_unit(W.reshape(-1, base.count)))[0]
    hidden: dict[Unknown, str] = {}
    now = torque(q)
    first = len(robot.channels) - robot.n
    # A zero error of a joint that only a leaning base shows counts as the direction of that lean: tilts come first.
    for entry in sorted(unknowns.entries, key=lambda e: e.word == "encoder_offset"):
        if "delay" in entry.word:
            continue
        column = np.zeros_like(now)
        if entry.word == "encoder_offset":
            move = np.eye(q.shape[1])[q.shape[1] - robot.n + entry.members[0]]
            column = _derivative([torque(q + s * move) for s in _STEPS])
        elif entry.word == "tilt":
            turn = np.eye(2)[entry.members[0]]
            column = _derivative([torque(q, tilted_gravity(robot, tilt + s * turn)) for s in _STEPS])
        else:
            of_base = entry.word.startswith("wrench")
            mine = [k for k, r in enumerate(rows) if (r if of_base else r - first) in entry.members]
            column[:, mine] = now[:, mine] if entry.word == "torque_gain" else 1.0
        size = float(np.linalg.norm(column))
        if size <= _VISIBLE * np.linalg.norm(now):
            hidden[entry] = f"{entry.name} cannot be seen: {_NOTHING.get(entry.word, 'it changes no measured torque')}"
            continue
        unit = column.ravel() / size
        for _ in range(2):
            unit = unit - basis @ (basis.T @ unit)
        left = float(np.linalg.norm(unit))
        if left > _VISIBLE:
            basis = np.column_stack([basis, unit / left])
        else:
            hidden[entry] = f"{entry.name} cannot be seen: {_WHY[entry.word]}"
    return hidden


def _unit(columns: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    return columns / np.where(size > 0, size, 1.0)


def _derivative(values: Sequence[Array]) -> Array:
    """Derivative at zero from values at the four steps, to fourth order."""
    return np.asarray((8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * _STEP))


# Friction steps where a joint reverses, at an instant known to a sample only: rows there bias a delay.
_MIN_VELOCITY = "10%"
# Standard deviations above which an unknown counts as not identified: seconds, shares, radians.
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
    """Estimate sensor delays, gains and offsets together with the base parameters, by weighted least squares.

    Parameters
    ----------
    robot : Robot
        The robot.
    recordings : Recording or sequence of Recording
        Recorded motion with torques, or with a base wrench.
    estimate : str, sequence of str or mapping, default ("delay",)
        Unknowns: delay (of torques), torque_gain, torque_offset, encoder_offset, tilt (of the base), velocity_gain,
        velocity_offset, and for a measured base wrench wrench_delay and wrench_offset. A mapping names the joints:
        {"delay": "common", "encoder_offset": ["joint2"]}; "common" is one value for all of them.
    reference : str or sequence of str, optional
        Joints whose torque gain is one. Gains need this or `payloads`.
    payloads : mapping of str to Robot or array_like, optional
        Known loads by the name of the run that carried them, each a vector of standard parameters (p,) or the robot
        with its load (`Robot.with_payload`).
    signals : Signals, optional
        How runs are filtered. By default samples of a joint below a tenth of its highest velocity are left out.
    channels : str or sequence of str, optional
        Channels to use; by default those that were recorded.

    Returns
    -------
    SensorCalibration
        Estimated errors with standard deviations, and the parameters estimated with them. Unknowns that no motion can
        identify are left out with a warning.

    Raises
    ------
    DataError
        If this motion cannot separate the unknowns, gains have no scale, or nothing is left to estimate.
    """
    started = time.perf_counter()
    recording = _joined(recordings)
    settings = signals or Signals(min_velocity=_MIN_VELOCITY)
    chosen = channels if channels is not None else default_channels(robot, recording)
    names = [robot.channels[i] for i in choose_channels(robot, chosen)]
    unknowns, velocities = read_unknowns(robot, estimate, reference, names)
    loads = _loads(robot, recording, payloads or {})
    gains = [e for e in unknowns.entries if e.word == "torque_gain"]
    if gains and reference is None and not loads:
        raise MissingArgument(
            "torque gains need a scale, since all torques and parameters may have a common factor: give a reference "
            "joint whose gain is known, or known payloads",
            "reference",
        )
    for run in recording.runs:
        check_run(robot, run, names)
    values, std = (neutral(robot), {w: np.zeros_like(x) for w, x in neutral(robot).items()})
    if velocities:
        found_velocities, their_std = velocity_sensors(recording, settings, velocities)
        values |= found_velocities
        std |= their_std
        recording = _velocities_corrected(recording, values, robot)
    uncorrected = estimate_from(observe(robot, _without(recording, loads), signals=settings, channels=names), "wls")
    if not unknowns.entries:
        return SensorCalibration(
            robot,
            velocities,
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
    asked = tuple(dict.fromkeys(e.word for e in unknowns.entries)) + velocities
    for entry in hidden:
        std[entry.word][list(entry.members)] = np.inf
    unknowns = unknowns.without(list(hidden))
    warnings = list(hidden.values())
    if not unknowns.entries:
        raise NotIdentifiable(f"nothing is left to estimate: {'; '.join(warnings)}")
    found = solve(Problem(base, recording, _trimmed(settings, unknowns, recording), unknowns, loads))
    all_std = np.sqrt(np.diag(found.covariance))[base.count :]
    values |= {w: x for w, x in unknowns.values(found.theta).items() if w not in VELOCITY}
    for entry, one_std in zip(unknowns.entries, all_std, strict=True):
        std[entry.word][list(entry.members)] = one_std
        if one_std > _POOR.get(entry.word, np.inf):
            warnings.append(f"{entry.name} has a standard deviation of {one_std:.2g}: this motion hardly identifies it")
    warnings += [f"{name} reached the limit of its range, which no real sensor needs" for name in found.stuck]
    if not found.converged and not found.stuck:
        warnings.append(f"the search did not converge in {found.iterations} iterations")
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
    for channel, f, one_std in zip(base.channels, found.folded.factors, found.noise, strict=True):
        if channel in base.robot.coordinates:
            j = base.robot.coordinates.index(channel)
            gain, offset = values["torque_gain"][j], values["torque_offset"][j]
        else:
            gain, offset = 1.0, values["wrench_offset"][base.robot.channels.index(channel)]
        y = (f[:, -1] - offset * f[:, b + ONE]) / gain - f[:, b + KNOWN]
        factors.append(fold(np.asfortranarray(np.column_stack([f[:, :b], y]))))
        noise.append(one_std / abs(gain))
    cutoffs = found.folded.cutoffs
    observation = Observation(base, tuple(factors), found.folded.rows, no_rows, settings, cutoffs)
    status = "converged" if found.converged else "out of iterations"
    outcome = Outcome.CONVERGED if found.converged else Outcome.NOT_CONVERGED
    solution = Solution(found.beta, found.covariance[:b, :b], np.array(noise), status, outcome)
    with one_blas_thread():
        return estimate_of(observation, solution, "wls + sensors", started)


def _joined(recordings: Recording | Sequence[Recording]) -> Recording:
    if isinstance(recordings, Recording):
        return recordings
    if not recordings:
        raise MissingArgument("no recording was given")
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
            raise UnknownName(f"payloads name no run '{name}', the runs are {', '.join(names)}", "payloads")
        if isinstance(given, Robot):
            if given.parameter_names != robot.parameter_names:
                raise Mismatch(
                    f"the robot with the payload of run '{name}' has other parameters than '{robot.name}'", "payloads"
                )
            out[name] = given.parameters - robot.parameters
        else:
            out[name] = checked(given, (len(robot.layout),), f"payload of run '{name}'", DataError)
    return out


def _without(recording: Recording, loads: Mapping[str, Array]) -> Recording:
    """Runs without a payload, or all where every one carries some."""
    plain = tuple(run for run in recording.runs if run.name not in loads)
    return replace(recording, runs=plain) if plain else recording


def _velocities_corrected(recording: Recording, values: Values, robot: Robot) -> Recording:
    only = neutral(robot) | {w: values[w] for w in VELOCITY}
    return replace(recording, runs=tuple(corrected_run(run, only, periodic=False) for run in recording.runs))


def _trimmed(settings: Signals, unknowns: Unknowns, recording: Recording) -> Signals:
    """Settings that leave out what lies beyond the ends of a torque moved in time."""
    if _periodic(settings) or not any("delay" in e.word for e in unknowns.entries):
        return settings
    step = max(run.step for run in recording.runs)
    return replace(settings, trim=max(settings.trim, LONGEST + REACH * step))


def _periodic(settings: Signals) -> bool:
    return settings.derivative == "fourier"
