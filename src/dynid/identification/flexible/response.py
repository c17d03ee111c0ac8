"""Frequency response from torque to motor velocity: resonance and antiresonance of a flexible joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.signals.filters import derivative
from dynid.signals.settings import Signals, uniform

__all__ = ["FrequencyResponse", "frequency_response"]

Array = NDArray[np.float64]

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
        raise DataError(f"no joint named '{joint}', the joints are {', '.join(recording.joints)}")
    i = recording.joints.index(joint)
    spectra: list[tuple[Array, Array, Array]] = []
    frequency = np.zeros(0)
    for run in recording.runs:
        if run.torque is None:
            raise DataError(f"run '{run.name}' has no torques")
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
        raise DataError(f"a frequency response needs a run of at least {2 * _SEGMENT:g} s")
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
