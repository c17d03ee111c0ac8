"""Commands that show unknown actuators: the standard deviations that a log of them would give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.actuators.law import ActuatorLaw
from dynid.actuators.rollouts import Commands, Segments, rollout
from dynid.actuators.unknowns import DEFAULT_UNKNOWN, Quantity, Spec, Unknown, parameter_space
from dynid.errors import DataError
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop

__all__ = ["ChirpDesign", "design_chirps", "predict_std"]

Array = NDArray[np.float64]

# Highest frequencies (Hz) and shares of the amplitude that are tried.
_FREQUENCIES = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
_SHARES = (0.25, 0.5, 1.0)
_LOWEST = 0.1  # Hz
_RAMP = 0.5  # s
# Chirps of neighboring joints differ by this factor in frequency, so that they do not move as one.
_APART = 0.07


@dataclass(frozen=True, eq=False)
class ChirpDesign:
    """Commanded positions that show the unknowns best.

    Attributes
    ----------
    command : ndarray, shape (K, n)
        Commanded positions (rad or m).
    rate : float
        Rows per second.
    highest : float
        Frequency at the end of the chirps, in Hz.
    share : float
        Share of the given amplitude that was chosen.
    unknowns : tuple of Unknown
    std : ndarray, shape (C,)
        Standard deviations that a log of these commands would give; infinite for what it does not show.
    alternatives : tuple of tuple
        Highest frequency, share and largest relative standard deviation of every chirp that was tried; infinite where
        a limit is exceeded or the simulation diverges.
    """

    command: Array
    rate: float
    highest: float
    share: float
    unknowns: tuple[Unknown, ...]
    std: Array
    alternatives: tuple[tuple[float, float, float], ...]


def predict_std(
    robot: Robot,
    law: ActuatorLaw,
    command: ArrayLike,
    *,
    rate: float = 200.0,
    unknown: Spec = DEFAULT_UNKNOWN,
    noise: float = 1e-3,
) -> tuple[tuple[Unknown, ...], Array]:
    """Standard deviations of unknown actuators that a log of a command would give.

    Parameters
    ----------
    robot : Robot
        With the values that are expected: friction hides what a motion without it would show.
    law : ActuatorLaw
    command : array of shape (K, n)
        Commanded positions (rad or m).
    rate : float
        Rows per second.
    unknown : sequence of str or mapping
        As for `identify_actuators`.
    noise : float
        Standard deviation of the measured positions (rad or m), independent from row to row.

    Returns
    -------
    unknowns : tuple of Unknown
    std : ndarray, shape (C,)
        Infinite where the log does not show a value.

    Raises
    ------
    DataError
        If the simulation diverges.
    """
    wanted = np.asarray(command, dtype=float)
    if wanted.ndim != 2 or wanted.shape[1] != robot.n or len(wanted) < 2:
        raise DataError(f"the command needs rows of {robot.n} positions, got shape {wanted.shape}")
    found = _simulated(robot, law, wanted, rate, unknown, noise)
    if found is None:
        raise DataError("the simulation of this command diverges: the law is unstable with the model")
    return found[0], found[1]


def design_chirps(
    robot: Robot,
    law: ActuatorLaw,
    amplitude: ArrayLike,
    *,
    seconds: float = 20.0,
    rate: float = 200.0,
    unknown: Spec = DEFAULT_UNKNOWN,
    noise: float = 1e-3,
    center: ArrayLike | None = None,
) -> ChirpDesign:
    """Chirps of all joints at once that show the unknowns best, within the limits of the robot.

    Parameters
    ----------
    robot : Robot
        With the values that are expected. Positions and velocities stay within its limits.
    law : ActuatorLaw
    amplitude : float or array of shape (n,)
        Largest amplitude of the command (rad or m).
    seconds : float
    rate : float
        Rows per second.
    unknown : sequence of str or mapping
        As for `identify_actuators`.
    noise : float
        Standard deviation of the measured positions (rad or m).
    center : array of shape (n,), optional
        Positions that the chirps move about. By default the middle of the limits, or the home position.

    Returns
    -------
    ChirpDesign

    Raises
    ------
    DataError
        If every chirp exceeds a limit or diverges.
    """
    middle = robot.home if center is None else np.broadcast_to(np.asarray(center, dtype=float), (robot.n,))
    largest = np.broadcast_to(np.asarray(amplitude, dtype=float), (robot.n,))
    found: list[tuple[float, float, float, Array, tuple[Unknown, ...], Array]] = []
    for highest, share in product([f for f in _FREQUENCIES if f < 0.2 * rate], _SHARES):
        command = middle + share * largest * _chirp(robot.n, seconds, rate, highest)
        result = _simulated(robot, law, command, rate, unknown, noise)
        worst = np.inf
        if result is not None and _within(robot, result[2], result[3]):
            worst = _worst(result[0], result[1], result[4])
        found.append((worst, highest, share, command, *(result[:2] if result is not None else ((), np.zeros(0)))))
    best = min(found, key=lambda x: x[0])
    if np.isinf(best[0]):
        raise DataError("every chirp exceeds a limit of the robot or diverges: give a smaller amplitude")
    tried = tuple((highest, share, worst) for worst, highest, share, *_ in found)
    return ChirpDesign(best[3], rate, best[1], best[2], best[4], best[5], tried)


def _chirp(n: int, seconds: float, rate: float, highest: float) -> Array:
    """Chirps (K, n) of unit amplitude that begin and end at rest."""
    t = np.arange(int(seconds * rate)) / rate
    turns = _LOWEST * t + (highest - _LOWEST) * t**2 / (2 * seconds)
    window = np.minimum(1.0, np.minimum(t, t[-1] - t) / _RAMP)
    return np.asarray(window[:, None] * np.sin(2 * np.pi * np.outer(turns, 1.0 - _APART * (np.arange(n) % 4))))


def _simulated(
    robot: Robot, law: ActuatorLaw, command: Array, rate: float, unknown: Spec, noise: float
) -> tuple[tuple[Unknown, ...], Array, Array, Array, Array] | None:
    """Unknowns, their standard deviations, positions, velocities and values; None where the simulation diverges."""
    velocity = np.gradient(command, 1.0 / rate, axis=0)
    space = parameter_space(robot, law, unknown, velocity)
    space = replace(space, robot=ClosedLoop().regularized(space.robot, velocity))
    start = Segments(np.array([0]), len(command) - 1, command[:1] - law.bias, np.zeros((1, robot.n)))
    moved = rollout(space.robot, space.law, Commands(rate, command, None, None), start, directions=space.directions)
    if any(x.ended_early for x in moved.endings):
        return None
    assert moved.dq is not None
    count = len(space.unknowns)
    slope = moved.dq[0]
    if "bias" in space.directions.law:
        slope = slope.copy()
        slope[..., :count] += space.directions.law["bias"].T
    rows = slope.reshape(-1, slope.shape[-1]) / noise
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0] = 1.0
    _, s, vt = np.linalg.svd(np.asarray(np.linalg.qr(rows / scale, mode="r")))
    small = s <= 1e-9 * s.max()
    std = np.linalg.norm(vt[~small].T / s[~small], axis=1) / scale
    std[np.abs(vt[small]).max(axis=0, initial=0.0) > 1e-3] = np.inf
    return space.unknowns, std[:count], moved.q[0], moved.v[0], space.values


def _within(robot: Robot, q: Array, v: Array) -> bool:
    """Whether a motion keeps to the limits of positions and velocities."""
    limits = [robot.limits[c] for c in robot.coordinates]
    return all(
        x.lower <= a.min() and a.max() <= x.upper and np.abs(b).max() <= x.velocity
        for x, a, b in zip(limits, q.T, v.T, strict=True)
    )


def _worst(unknowns: tuple[Unknown, ...], std: Array, values: Array) -> float:
    """Largest standard deviation relative to the typical value of its quantity; a delay relative to 5 ms."""
    size = np.zeros(len(std))
    for quantity in {x.quantity for x in unknowns}:
        own = [k for k, x in enumerate(unknowns) if x.quantity is quantity]
        typical = float(np.median(np.abs(values[own])))
        size[own] = 0.005 if quantity is Quantity.DELAY else typical if typical > 0 else 1.0
    return float(np.max(std / size))
