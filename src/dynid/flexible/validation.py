"""How well flexible joints predict torques and link positions of other motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.errors import MissingData, TooFew, UnknownName
from dynid.flexible.estimate import FlexibleEstimate, FlexibleValidation, LinkErrors, Sides
from dynid.flexible.rows import FlexibleRows, SpringMotion, TwoSided, advanced, spring_motion, two_sided
from dynid.identification.loads import no_torques
from dynid.identification.validation_errors import validation_of
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.filters import derivative
from dynid.signals.settings import Motion, Signals, uniform

__all__ = ["FlexibleValidation", "FrequencyResponse", "LinkErrors", "frequency_response", "validate_flexible"]

Array = NDArray[np.float64]

# Damping ratio of gears whose damping is not known.
_RATIO = 0.1


def validate_flexible(estimate: FlexibleEstimate, recording: Recording) -> FlexibleValidation:
    """Predict torques and link positions of a recording with identified flexible joints."""
    model, robot, u = estimate.model, estimate.robot, estimate.unknowns
    encoders = all(run.link_q is not None for run in recording.runs)
    both = estimate.sides is Sides.BOTH
    if both and not encoders:
        raise MissingData("the joints were identified with link encoders: the recording for validation has none")
    motions, bent = [], []
    for run in recording.runs:
        if run.torque is None:
            raise no_torques(run)
        raw, moved = _measured(estimate, run)
        predicted = predicted_springs(estimate, raw.motors).bent(raw.motors)
        if encoders:
            bent.append((raw, moved, predicted))
        motions.append(moved if both else predicted)
    rows = FlexibleRows(model, tuple(motions), estimate.signals)
    y: list[list[Array]] = [[] for _ in range(robot.n)]
    found: list[list[Array]] = [[] for _ in range(robot.n)]
    time: list[list[Array]] = [[] for _ in range(robot.n)]
    clock = np.concatenate([m.motors.t for m in motions])
    for part in rows.torques:
        y[part.channel].append(part.y)
        found[part.channel].append(
            part.links @ estimate.x[part.columns] + part.motors @ estimate.x[u.links : u.links + u.motors]
        )
        time[part.channel].append(clock[part.index])
    torque = validation_of(robot, robot.coordinates, *([np.concatenate(x) for x in rows] for rows in (y, found, time)))
    return FlexibleValidation(torque=torque, links=_link_errors(estimate, bent) if bent else None)


def _measured(estimate: FlexibleEstimate, run: Run) -> tuple[TwoSided, TwoSided]:
    """The run as its encoders give it, and with the links advanced by the delays of their encoders."""
    raw = two_sided(estimate.robot, run, _with_encoders(estimate, run), estimate.signals)
    delays = np.zeros(estimate.robot.n)
    delays[estimate.model.flexible] = estimate.delays
    return raw, advanced(raw, delays)


def _with_encoders(estimate: FlexibleEstimate, run: Run) -> list[str]:
    there = np.zeros(estimate.robot.n, dtype=bool) if run.link_q is None else ~np.isnan(run.link_q[0])
    return [name for name in estimate.joints if there[estimate.robot.coordinates.index(name)]]


def predicted_springs(estimate: FlexibleEstimate, motors: Motion) -> SpringMotion:
    """Deflections of the identified springs under the motion of the motors, with physically consistent bodies."""
    damping = predicting_damping(estimate)
    bodies = estimate.identified_robot
    return spring_motion(estimate.model, estimate.beta, estimate.stiffness, damping, motors, bodies)


def predicting_damping(estimate: FlexibleEstimate) -> Array:
    """Damping (flexible joint,) to predict with: a usual ratio where none can be distinguished from zero.

    Without any, a spring would keep the oscillation of its unknown start.
    """
    poses = np.zeros((1, estimate.robot.n))
    inertia = np.diagonal(mass_matrix(estimate.identified_robot, poses)[0])[estimate.model.flexible]
    k = np.where(estimate.seen, estimate.stiffness, 0.0)
    found = np.nan_to_num(estimate.damping)
    known = found > 2.0 * np.nan_to_num(estimate.damping_std, nan=np.inf)
    return np.asarray(np.where(known, found, 2.0 * _RATIO * np.sqrt(k * inertia)))


def _link_errors(estimate: FlexibleEstimate, runs: list[tuple[TwoSided, TwoSided, TwoSided]]) -> LinkErrors:
    """Errors of predicted link positions of all runs."""
    u, model = estimate.unknowns, estimate.model
    squares = np.zeros((3, u.flexible))
    count = 0
    for raw, moved, predicted in runs:
        for k, i in enumerate(model.flexible):
            fixed = np.zeros(len(predicted.motors.t))
            if u.errors and estimate.sides is Sides.BOTH:
                columns = FlexibleRows(model, (), estimate.signals, estimate.errors).encoder_columns(
                    moved.links, slice(None), int(i)
                )
                values = estimate.x[u.encoder(k)].copy()
                if "delay" in estimate.errors:
                    values[0] = 0.0  # the links are already advanced by it
                fixed = np.column_stack(columns) @ values
            errors = (
                moved.deflection[:, i] - fixed - predicted.deflection[:, i],
                moved.deflection[:, i] - fixed,
                raw.deflection[:, i],
            )
            squares[:, k] += [float(np.sum((x - x.mean()) ** 2)) for x in errors]
        count += len(predicted.motors.t)
    rms = np.sqrt(squares / max(count, 1))
    units = tuple("m" if estimate.robot.channel_units[j] == "N" else "rad" for j in estimate.joints)
    return LinkErrors(estimate.joints, units, rms[0], rms[1], rms[2])


_SEGMENT = 4.0  # s
# Least coherence of frequencies that are used, and how far a peak stands above its surroundings.
_COHERENT, _PEAK = 0.8, 2.0
_LOWEST = 1.0  # Hz
_SURROUNDINGS = 21  # frequencies


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """Response of the velocity of a motor to its torque.

    The response is that of all joints together under their controllers: peaks are a start of the identification, not
    its result.

    Attributes
    ----------
    joint : str
        The joint.
    frequency : ndarray, shape (f,)
        Frequencies in Hz.
    gain : ndarray of complex, shape (f,)
        Velocity over torque, rad/s/(N m) or m/s/N.
    coherence : ndarray, shape (f,)
        Share of the velocity that is a linear response to the torque, 0 to 1.
    antiresonance : float
        Frequency in Hz at which the motor stands nearly still while the link oscillates, sqrt(k/J); NaN if none is
        seen.
    resonance : float
        Frequency in Hz at which motor and link oscillate against each other; NaN if none is seen.
    """

    joint: str
    frequency: Array
    gain: NDArray[np.complex128]
    coherence: Array
    antiresonance: float
    resonance: float


def frequency_response(recording: Recording, joint: str) -> FrequencyResponse:
    """Frequency response of a joint from recorded torques and motor positions.

    Parameters
    ----------
    recording : Recording
        Runs with torques, excited up to the frequencies of interest.
    joint : str
        The joint.

    Returns
    -------
    FrequencyResponse

    Raises
    ------
    DataError
        If the joint is unknown, a run has no torques or all runs are too short.
    """
    if joint not in recording.joints:
        raise UnknownName(f"no joint named '{joint}', the joints are {', '.join(recording.joints)}", "joint")
    i = recording.joints.index(joint)
    spectra: list[tuple[Array, Array, Array]] = []
    frequency = np.zeros(0)
    for run in recording.runs:
        if run.torque is None:
            raise MissingData(f"run '{run.name}' has no torques")
        even, rate = uniform(run, Signals())
        samples = int(_SEGMENT * rate)
        if len(even) < 2 * samples or even.torque is None:
            continue
        v = derivative(even.q[:, i : i + 1], rate, "central5")[:, 0]
        settings = {"fs": rate, "nperseg": samples, "detrend": "linear"}
        f, cross = scipy.signal.csd(even.torque[:, i], v, **settings)
        _, input_power = scipy.signal.welch(even.torque[:, i], **settings)
        _, output_power = scipy.signal.welch(v, **settings)
        if len(frequency) in (0, len(f)):
            frequency = f
            spectra.append((cross, input_power, output_power))
    if not spectra:
        raise TooFew(f"a frequency response needs a run of at least {2 * _SEGMENT:g} s")
    cross, power, out = (np.mean([s[k] for s in spectra], axis=0) for k in range(3))
    gain = cross / np.maximum(power, 1e-300)
    coherence = np.abs(cross) ** 2 / np.maximum(power * out, 1e-300)
    low, high = _peaks(frequency, gain, coherence)
    return FrequencyResponse(joint, frequency, gain, coherence, low, high)


def _peaks(frequency: Array, gain: NDArray[np.complex128], coherence: Array) -> tuple[float, float]:
    """The deepest notch and the highest peak above it, where the coherence is high; NaN where there are none."""
    # The gain of a rigid joint falls with the frequency: the apparent inertia is flat without elasticity.
    used = np.flatnonzero((coherence > _COHERENT) & (frequency > _LOWEST))
    if len(used) < _SURROUNDINGS:
        return np.nan, np.nan
    size = np.abs(gain[used]) * frequency[used]
    usual = scipy.ndimage.median_filter(size, _SURROUNDINGS, mode="nearest")
    notch = int(np.argmin(size / usual))
    low = float(frequency[used][notch]) if usual[notch] > _PEAK * size[notch] else np.nan
    above = np.arange(len(used)) > (notch if np.isfinite(low) else -1)
    peak = int(np.argmax(np.where(above, size / usual, 0.0)))
    high = float(frequency[used][peak]) if size[peak] > _PEAK * usual[peak] else np.nan
    return low, high
