"""Variation of a parameter from date to date, and its dependence on temperature, over all units of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.fleet.series import Series, robust_variance

__all__ = ["SWING", "TemperatureEffect", "Track", "Variation", "usable_temperature", "variation_of"]

Array = NDArray[np.float64]

# Units from which the variation of the temperature effect between units can be estimated.
_UNITS = 8
# Temperature of a unit must vary by this much, deg C, for its effect to be estimated.
SWING = 0.5
_PASSES = 3


@dataclass(frozen=True, eq=False)
class Track:
    """Values of one parameter of one unit.

    Attributes
    ----------
    days : ndarray, shape (n,)
        Time in days, increasing.
    values, variances : ndarray, shape (n,)
        Estimates and their variances.
    temperature : ndarray, shape (n,), or None
        Temperature of the joint, deg C; None where it is not logged, on two dates only, or does not vary.
    """

    days: Array
    values: Array
    variances: Array
    temperature: Array | None


@dataclass(frozen=True)
class TemperatureEffect:
    """Slope of a parameter over temperature: mean of the fleet, its standard deviation, and that between units.

    `between` is infinite where too few units are there to tell: the slope of each unit is then its own.
    """

    slope: float
    std: float
    between: float


@dataclass(frozen=True, eq=False)
class Variation:
    """How one parameter varies in a healthy fleet.

    Attributes
    ----------
    scatter : float
        Variance from date to date beyond that of the estimates.
    temperature : TemperatureEffect or None
        Effect of temperature, where it is logged.
    freedom : float
        Degrees of freedom behind the scatter.
    """

    scatter: float
    temperature: TemperatureEffect | None
    freedom: float

    def series(self, track: Track) -> Series:
        """The series of a track, its covariance with scatter, temperature taken out or as a nuisance."""
        values, covariance = track.values, np.diag(track.variances + self.scatter)
        nuisance = np.zeros((len(values), 0))
        effect = self.temperature
        if effect is not None and track.temperature is not None:
            warm = track.temperature - track.temperature.mean()
            if np.isinf(effect.between):
                nuisance = warm[:, None]
            else:
                values = values - effect.slope * warm
                covariance = covariance + (effect.between**2 + effect.std**2) * np.outer(warm, warm)
        return Series(track.days, values, covariance, nuisance)


def usable_temperature(temperature: Array) -> Array | None:
    """Temperatures of a unit, or None where they are few or do not vary."""
    return temperature if len(temperature) > 2 and np.ptp(temperature) >= SWING else None


def variation_of(tracks: Sequence[Track]) -> Variation:
    """Scatter and temperature effect of one parameter over all units, whatever a few changed units do."""
    if not tracks:
        return Variation(0.0, None, 1.0)
    scatter, effect = 0.0, None
    warm = [t for t in tracks if t.temperature is not None]
    for _ in range(_PASSES):
        effect = _effect(warm, scatter) if warm else None
        differences, known = [], []
        for track in tracks:
            d, v = np.diff(track.values), track.variances[1:] + track.variances[:-1]
            if effect is not None and track.temperature is not None:
                step = np.diff(track.temperature)
                own = effect.slope
                if np.isinf(effect.between):
                    own = _own_slope(track, scatter)[0]
                else:
                    v = v + effect.between**2 * step**2
                d = d - own * step
            differences.append(d)
            known.append(v)
        d, v = np.concatenate(differences), np.concatenate(known)
        # A difference has the scatter of two dates.
        scatter = 0.5 * robust_variance(d, v)
    return Variation(scatter, effect, float(max(len(d) - 1, 1)))


def _own_slope(track: Track, scatter: float) -> tuple[float, float]:
    """Slope over temperature of one unit and its variance, by weighted regression with a mean."""
    assert track.temperature is not None
    weight = 1.0 / (track.variances + scatter)
    warm = track.temperature - np.sum(weight * track.temperature) / weight.sum()
    information = float(np.sum(weight * warm**2))
    return float(np.sum(weight * warm * track.values)) / information, 1.0 / information


def _effect(tracks: Sequence[Track], scatter: float) -> TemperatureEffect:
    found = [_own_slope(t, scatter) for t in tracks]
    slopes, variances = (np.array(x) for x in zip(*found, strict=True))
    if len(tracks) < _UNITS:
        weights = 1.0 / variances
        return TemperatureEffect(float(np.sum(weights * slopes) / weights.sum()), float(weights.sum() ** -0.5), np.inf)
    center = float(np.median(slopes))
    for _ in range(_PASSES):
        between = robust_variance(slopes - center, variances)
        total = variances + between
        weights = np.minimum(1.0, 2.5 * np.sqrt(total) / np.maximum(np.abs(slopes - center), 1e-300)) / total
        center = float(np.sum(weights * slopes) / weights.sum())
    return TemperatureEffect(center, float(weights.sum() ** -0.5), float(np.sqrt(between)))
