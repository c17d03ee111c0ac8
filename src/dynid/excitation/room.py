"""Whether limits leave room for a motion at all, asked before a search begins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.excitation.limits import MotionLimits
from dynid.robot.model import Robot

__all__ = ["check_duration", "check_torque_model", "has_torque_model"]

Array = NDArray[np.float64]

# A motion that can cross less than this share of a joint's range shows nothing of it.
_LEAST_TRAVEL = 0.01


def has_torque_model(robot: Robot) -> bool:
    """Whether the a-priori model has any mass, so that its torques mean something."""
    return any(robot.links[i].inertia[0] > 0 for i in robot.parameter_links)


def check_torque_model(robot: Robot, given: Mapping[str, Mapping[str, float]] | None) -> None:
    """Refuse torque and power limits that there is no model to hold a motion against."""
    if has_torque_model(robot):
        return
    for pattern, entries in (given or {}).items():
        for name in ("torque", "power"):
            if name in entries:
                raise DataError(
                    f"robot '{robot.name}' has no masses, so no torque model for the {name} limit of '{pattern}'; "
                    "leave that limit out or give the robot a-priori masses"
                )


def check_duration(robot: Robot, limits: MotionLimits, duration: float) -> None:
    """Refuse a duration in which a joint, from rest to rest, cannot leave its place.

    Farthest ways: v T at top speed, a T^2 / 4 where the acceleration turns once, j T^3 / 32 where the jerk turns twice.
    """
    need = crossing_time(limits, _LEAST_TRAVEL)
    slowest = int(np.argmax(need))
    if duration < need[slowest]:
        whole = float(crossing_time(limits, 1.0)[slowest])
        raise DataError(
            f"a motion of {duration:g} s is too short: within its speed and acceleration limits joint "
            f"'{robot.coordinates[slowest]}' takes {whole:.2g} s to cross its range; give a longer duration"
        )


def crossing_time(limits: MotionLimits, share: float) -> Array:
    """Least time (n,) from rest to rest over a share of each range."""
    way = share * (limits.upper - limits.lower)
    times = (way / limits.velocity, 2 * np.sqrt(way / limits.acceleration), np.cbrt(32 * way / limits.jerk))
    return np.asarray(np.max(times, axis=0))
