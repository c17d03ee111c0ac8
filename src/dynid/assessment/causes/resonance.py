"""Elasticity: a residual that oscillates at one frequency, as a body behind an elastic joint does.

    height = power(f) / sqrt(power(f / 1.6) power(1.6 f))

Source: own rule; Welch, The Use of Fast Fourier Transform for the Estimation of Power Spectra (1967), for the spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.cause_groups import Model
from dynid.assessment.causes.cause_rows import away_from_reversals
from dynid.signals.filters import decimate

__all__ = ["Resonance", "resonances"]

Array = NDArray[np.float64]

# Frequencies that are searched, Hz, and the share of the cut-off beyond which filters differ.
_LOWEST, _HIGHEST, _BELOW_CUTOFF = 2.0, 12.0, 0.8
_SEGMENT = 4.0  # s, of the averaged spectra
# A peak over the geometric mean of the power at 1 / 1.6 and 1.6 times its frequency.
_APART, _PEAK = 1.6, 3.0
# Share of the Nyquist frequency that the decimation passes: beyond, the spectrum falls, and the edge would be a peak.
_PASSED = 0.8


@dataclass(frozen=True)
class Resonance:
    """Channel with a peak, its frequency in Hz, its height over its surroundings, and its share of the power."""

    channel: int
    frequency: float
    height: float
    share: float


def resonances(model: Model) -> list[Resonance]:
    """Channels whose residual has a peak in its spectrum, the highest first."""
    rows, found = model.rows, []
    calm = away_from_reversals(rows.motions)
    for k, j in enumerate(rows.joints):
        spectra = []
        for motion, residual, far in zip(rows.motions, model.residual, calm, strict=True):
            step = int(np.prod(motion.decimate)) if motion.decimate else 1
            # Friction where the joint reverses would ring at the edge of the band.
            e = decimate(residual[:, [j]], motion.decimate)[:, 0] * far[::step, j]
            rate = motion.rate / step
            spectra.append((*scipy.signal.welch(e, rate, nperseg=min(int(_SEGMENT * rate), len(e))), motion.cutoff))
        frequency, _, cutoff = spectra[0]
        power = np.mean([np.interp(frequency, f, p) for f, p, _ in spectra], axis=0)
        smooth = scipy.ndimage.gaussian_filter1d(power, 1.5)
        highest = min(_HIGHEST, _BELOW_CUTOFF * (cutoff or np.inf), _PASSED * frequency[-1] / _APART)
        inside = np.flatnonzero((frequency >= _LOWEST) & (frequency <= highest))
        if not len(inside):
            continue
        around = np.sqrt(
            np.interp(frequency[inside] / _APART, frequency, smooth)
            * np.interp(frequency[inside] * _APART, frequency, smooth)
        )
        height = smooth[inside] / np.maximum(around, 1e-300)
        at = int(np.argmax(height))
        if height[at] > _PEAK:
            near = np.abs(np.log(frequency[1:] / frequency[inside][at])) < np.log(_APART)
            extra = np.maximum(power[1:] - around[at], 0.0) * near
            share = float(extra.sum() / power[1:].sum())
            found.append(Resonance(k, float(frequency[inside][at]), float(height[at]), share))
    return sorted(found, key=lambda r: -r.height)
