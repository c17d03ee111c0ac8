"""How large torques and their errors are, on a scale that an engineer would use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.identification.validation_errors import Validation
from dynid.parameters.base import random_states
from dynid.robot.model import Robot

__all__ = ["Torques", "states_within", "torques_of", "torques_of_fit"]

Array = NDArray[np.float64]

# A joint that carries little torque is judged by this share of what it or the arm can bear: an error of 1 % of the
# effort limit then counts as 20 % of the torque. Without an effort limit the largest torque of the arm is less of a
# measure for a small joint, and counts for less.
_EFFORT_SHARE, _ARM_SHARE = 0.05, 0.02
# At least this share of the error counts as error of the model, however white it is.
_LEAST_SYSTEMATIC = 0.5
# Peak over root mean square of a sine.
_CREST = 2.0**0.5
_STATES = 400


@dataclass(frozen=True, eq=False)
class Torques:
    """Errors of predicted torques and the torques by which they are judged, per channel.

    Attributes
    ----------
    channels, units : tuple of str
        Channels, and N m or N.
    errors : ndarray (channel,)
        Root mean square errors; NaN where a channel was not compared.
    systematic : ndarray (channel,)
        Part of them that is not white noise of the measurement.
    size : ndarray (channel,)
        Root mean square torques.
    floor : ndarray (channel,)
        Torques below which a channel's own torque is too small a measure: a share of its effort limit and of the
        largest torque of the arm.
    """

    channels: tuple[str, ...]
    units: tuple[str, ...]
    errors: Array
    systematic: Array
    size: Array
    floor: Array

    @property
    def relative(self) -> Array:
        """Systematic errors relative to the torques that count (channel,)."""
        size = np.maximum(self.size, self.floor)
        return np.asarray(self.systematic / np.where(size > 0, size, np.inf))

    @property
    def worst(self) -> int:
        """The channel with the largest relative error."""
        return int(np.argmax(np.nan_to_num(self.relative, nan=-1.0)))

    def words(self, k: int) -> str:
        """The error of a channel in words."""
        share = 100 * self.errors[k] / self.size[k] if self.size[k] > 0 else np.inf
        words = f"{self.errors[k]:.3g} {self.units[k]}, {share:.1f} % of its torque"
        if self.floor[k] > self.size[k]:
            words += f", which is small ({self.size[k]:.2g} {self.units[k]})"
        return words


def torques_of(robot: Robot, validation: Validation) -> Torques:
    """Errors and torques of a validation."""
    peak = np.array([np.abs(x).max(initial=0.0) for x in validation.measured])
    size = np.array([np.sqrt(np.mean(x**2)) if len(x) else np.nan for x in validation.measured])
    parts = zip(validation.measured, validation.predicted, validation.time, strict=True)
    white = np.array([_white_share(m - p, t) for m, p, t in parts])
    systematic = validation.rmse * np.sqrt(np.maximum(1.0 - white, _LEAST_SYSTEMATIC**2))
    floor = _floor(robot, validation.channels, peak)
    return Torques(validation.channels, validation.units, validation.rmse, systematic, size, floor)


def torques_of_fit(robot: Robot, channels: tuple[str, ...], errors: Array, size: Array) -> Torques:
    """Errors and torques where only their root mean squares are known."""
    units = tuple(robot.channel_units[c] for c in channels)
    return Torques(channels, units, errors, errors, size, _floor(robot, channels, _CREST * size))


def _floor(robot: Robot, channels: tuple[str, ...], peak: Array) -> Array:
    """Torques below which the own torque of a channel is too small a measure (channel,)."""
    units = [robot.channel_units[c] for c in channels]
    finite = np.where(np.isfinite(peak), peak, 0.0)
    arm = np.array([max(p for p, other in zip(finite, units, strict=True) if other == unit) for unit in units])
    effort = np.array([robot.limits[c].effort if c in robot.coordinates else np.inf for c in channels])
    known = np.isfinite(effort) & (effort > 0)
    return np.where(known, _EFFORT_SHARE * np.minimum(effort, arm), _ARM_SHARE * arm)


def _white_share(error: Array, time: Array) -> float:
    """Share of the power of an error that is white: what is left after its autocorrelation is extended to lag zero."""
    if len(error) < 20:
        return 0.0
    step = float(np.median(np.diff(time)))
    power = float(np.mean(error**2))
    if power <= 0 or step <= 0:
        return 0.0
    rho = []
    for lag in (1, 2):
        near = np.abs(time[lag:] - time[:-lag] - lag * step) < 0.5 * step
        rho.append(float(np.mean(error[lag:][near] * error[:-lag][near])) / power if near.sum() > 10 else 0.0)
    return float(np.clip(1.0 - max(2 * rho[0] - rho[1], rho[0], 0.0), 0.0, 1.0))


def states_within(robot: Robot, fastest: tuple[Array, Array] | None) -> tuple[Array, Array, Array]:
    """Random states within the joint limits, with velocities and accelerations up to the given ones, if any."""
    q, v, a = random_states(robot, _STATES, seed=0)
    limits = [robot.limits[c] for c in robot.coordinates]
    rng = np.random.default_rng(1)
    for j, limit in enumerate(limits):
        if np.isfinite(limit.lower) and np.isfinite(limit.upper):
            q[:, j] = rng.uniform(limit.lower, limit.upper, _STATES)
    if fastest is not None:
        velocity, acceleration = fastest
        v, a = rng.uniform(-1, 1, v.shape) * velocity, rng.uniform(-1, 1, a.shape) * acceleration
    return q, v, a
