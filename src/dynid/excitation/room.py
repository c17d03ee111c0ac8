"""Checks before a search: whether the limits allow any motion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Infeasible, MissingData
from dynid.excitation.limits import MotionLimits
from dynid.robot.model import Robot

__all__ = ["check_duration", "check_torque_model", "has_torque_model"]

Array = NDArray[np.float64]

# A motion that covers less than this share of a joint's range does not excite its parameters.
_LEAST_TRAVEL = 0.01


def has_torque_model(robot: Robot) -> bool:
    """Whether the a-priori model has any mass, so that it predicts torques."""
    return any(robot.links[i].inertia[0] > 0 for i in robot.parameter_links)


def check_torque_model(robot: Robot, given: Mapping[str, Mapping[str, float]] | None) -> None:
    """Raise if torque or power limits are given and there is no model to predict torques."""
    if has_torque_model(robot):
        return
    for pattern, entries in (given or {}).items():
        for name in ("torque", "power"):
            if name in entries:
                raise MissingData(
                    f"robot '{robot.name}' has no masses, so no torque model for the {name} limit of '{pattern}'; "
                    "leave that limit out or give the robot a-priori masses",
                    "limits",
                )


def check_duration(robot: Robot, limits: MotionLimits, duration: float) -> None:
    """Raise if a joint cannot move from rest to rest over a small share of its range within the duration.

    Largest distances: v T at constant velocity, a T^2 / 4 with one change of acceleration, j T^3 / 32 with two of jerk.
    """
    need = crossing_time(limits, _LEAST_TRAVEL)
    slowest = int(np.argmax(need))
    if duration < need[slowest]:
        whole = float(crossing_time(limits, 1.0)[slowest])
        raise Infeasible(
            f"a motion of {duration:g} s is too short: within its velocity and acceleration limits joint "
            f"'{robot.coordinates[slowest]}' takes {whole:.2g} s to cross its range; give a longer duration",
            "duration",
        )


def crossing_time(limits: MotionLimits, share: float) -> Array:
    """Least time (n,) from rest to rest over a share of each range."""
    path = share * (limits.upper - limits.lower)
    times = (path / limits.velocity, 2 * np.sqrt(path / limits.acceleration), np.cbrt(32 * path / limits.jerk))
    return np.asarray(np.max(times, axis=0))
