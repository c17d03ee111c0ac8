"""Standard deviations of unknown actuators that a log of a command would give, by simulation of the command."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.actuators.fit import inverse_of
from dynid.actuators.rollouts import Commands, Segments, rollout
from dynid.actuators.unknowns import DEFAULT_UNKNOWN, ParameterSpace, Spec, Unknown, parameter_space
from dynid.errors import InvalidShape, InvalidValue, SimulationFailed
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.threads import one_blas_thread

__all__ = ["Predicted", "checked_noise", "predict", "predict_std", "resting"]

Array = NDArray[np.float64]

_SETTLING = 5.0  # s in which a robot comes to rest under a constant command


@dataclass(frozen=True, eq=False)
class Predicted:
    """Simulated motion (K, n) of a command, and the standard deviations (C,) that its log would give.

    The standard deviations are NaN if the simulation diverges.
    """

    space: ParameterSpace
    std: Array
    q: Array
    v: Array
    torque: Array

    @property
    def diverged(self) -> bool:
        """Whether the simulation ended early."""
        return bool(np.isnan(self.std).any())


def predict_std(
    robot: Robot,
    law: ActuatorLaw,
    command: ArrayLike,
    *,
    rate: float = 200.0,
    unknown: Spec = DEFAULT_UNKNOWN,
    noise: ArrayLike = 1e-3,
) -> tuple[tuple[Unknown, ...], Array]:
    """Standard deviations of unknown actuators that a log of a command would give.

    The robot is at rest under its first command before the log begins.

    Parameters
    ----------
    robot : Robot
        With the values that are expected: friction hides what a motion without it would show. A floating base is held
        fixed.
    law : ActuatorLaw
    command : array of shape (K, n)
        Commanded positions (rad or m).
    rate : float
        Rows per second.
    unknown : sequence of str or mapping
        As for `identify_actuators`.
    noise : float or array of shape (n,)
        Standard deviation of the measured positions (rad or m), independent from row to row.

    Returns
    -------
    unknowns : tuple of Unknown
    std : ndarray, shape (C,)
        Infinite where the log does not show a value.

    Raises
    ------
    DataError
        If the command is not an array of finite positions of all joints, a number is not positive, or the simulation
        diverges.
    """
    robot, sizes = robot.with_base("fixed"), checked_noise(noise, robot.n)
    wanted = np.asarray(command, dtype=float)
    if wanted.ndim != 2 or wanted.shape[1] != robot.n or len(wanted) < 2:
        raise InvalidShape(f"the command needs rows of {robot.n} positions, got shape {wanted.shape}", "command")
    found = predict(robot, law, wanted, rate, unknown, sizes, resting(robot, law, wanted[0], rate))
    if found.diverged:
        raise SimulationFailed("the simulation of this command diverges: the law is unstable with the model")
    return found.space.unknowns, found.std


def checked_noise(noise: ArrayLike, n: int) -> Array:
    """Standard deviations (n,) of the measured positions, positive."""
    sizes = np.asarray(noise, dtype=float)
    if sizes.shape not in ((), (1,), (n,)):
        raise InvalidShape(f"the noise of the positions is one number or {n}, got {sizes.size}", "noise")
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise InvalidValue(f"the noise of the positions must be positive, got {sizes.min():g}", "noise")
    return np.broadcast_to(sizes, (n,))


def resting(robot: Robot, law: ActuatorLaw, posture: Array, rate: float) -> Array:
    """Positions (n,) at which the robot comes to rest while it is told to hold a posture: gravity makes it sag."""
    rows = max(int(_SETTLING * rate), 2)
    commands = Commands(rate, np.tile(posture, (rows, 1)))
    start = Segments(np.array([0]), rows - 1, posture[None] - law.bias, np.zeros((1, robot.n)))
    held = rollout(robot, law, commands, start)
    if held.endings[0].ended_early:
        raise SimulationFailed("the simulation of the robot at rest diverges: the law is unstable with the model")
    return np.asarray(held.q[0, -1])


def predict(
    robot: Robot, law: ActuatorLaw, command: Array, rate: float, unknown: Spec, noise: Array, start: Array
) -> Predicted:
    """Motion from rest at `start` (n,), and standard deviations."""
    velocity = np.gradient(command, 1.0 / rate, axis=0)
    space = parameter_space(robot, law, unknown, velocity)
    space = replace(space, robot=ClosedLoop().regularized(space.robot, velocity))
    begin = Segments(np.array([0]), len(command) - 1, start[None], np.zeros((1, robot.n)))
    moved = rollout(space.robot, space.law, Commands(rate, command), begin, directions=space.directions)
    count, motion = len(space.unknowns), (moved.q[0], moved.v[0], moved.torque[0])
    if moved.endings[0].ended_early:
        return Predicted(space, np.full(count, np.nan), *motion)
    assert moved.dq is not None
    slope = moved.dq[0]
    if "bias" in space.directions.law:
        slope[..., :count] += space.directions.law["bias"].T
    rows = (slope / noise[:, None]).reshape(-1, slope.shape[-1])
    if not np.isfinite(rows).all():
        return Predicted(space, np.full(count, np.nan), *motion)
    with one_blas_thread():
        covariance, lost = inverse_of(np.asarray(np.linalg.qr(rows, mode="r")))
    std = np.where(lost, np.inf, np.sqrt(np.diag(covariance)))
    return Predicted(space, std[:count], *motion)
