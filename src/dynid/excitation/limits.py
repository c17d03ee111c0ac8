"""Limits of a motion: position, velocity, acceleration, jerk, torque and power of each joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, MissingData, UnknownName, keyword
from dynid.patterns import matching_names
from dynid.robot.model import Robot
from dynid.robot.notes import quoted

__all__ = ["LIMIT_NAMES", "MotionLimits", "endless_joints", "motion_limits", "stated_limits"]

Array = NDArray[np.float64]

LIMIT_NAMES = ("lower", "upper", "velocity", "acceleration", "jerk", "torque", "power")


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of each joint, infinite where there is none. All but the position limits are symmetric.

    Attributes
    ----------
    lower, upper : array, shape (n,)
        Position range in rad or m.
    velocity : array, shape (n,)
        In rad/s or m/s.
    acceleration : array, shape (n,)
        In rad/s2 or m/s2.
    jerk : array, shape (n,)
        In rad/s3 or m/s3.
    torque : array, shape (n,)
        In N m, or N for prismatic joints.
    power : array, shape (n,)
        Mechanical power in W.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    torque: Array
    power: Array

    @property
    def center(self) -> Array:
        """Middle of the position ranges (n,)."""
        return 0.5 * (self.lower + self.upper)

    def tightened(self, share: float) -> MotionLimits:
        """All limits reduced by a share, 0 to 1; position ranges shrink about their middle."""
        keep = 1.0 - share
        half = 0.5 * keep * (self.upper - self.lower)
        names = ("velocity", "acceleration", "jerk", "torque", "power")
        others = {name: keep * getattr(self, name) for name in names}
        return replace(self, lower=self.center - half, upper=self.center + half, **others)


def endless_joints(robot: Robot) -> list[str]:
    """Names of the revolute joints without stops."""
    revolute = {joint.name for joint in robot.joints if joint.kind == "revolute"}
    ranges = {name: robot.limits[name] for name in robot.coordinates if name in revolute}
    return [name for name, limit in ranges.items() if np.isinf(limit.lower) and np.isinf(limit.upper)]


def motion_limits(
    robot: Robot, given: Mapping[str, Mapping[str, float]] | None = None, *, share: float = 1.0
) -> MotionLimits:
    """Limits of a robot's model, with some of them replaced.

    Parameters
    ----------
    robot : Robot
    given : mapping, optional
        Limits by joint name or pattern, such as {"joint*": {"velocity": 1.5, "acceleration": 10.0}}. Names of limits:
        lower, upper, velocity, acceleration, jerk, torque, power. They replace those of the model. Revolute joints
        without stops move within half a revolution to both sides unless a range is given.
    share : float
        Share of the model's own limits that is used, in (0, 1].

    Returns
    -------
    MotionLimits

    Raises
    ------
    DataError
        If a joint or limit is unknown, or a joint has no position range or no velocity limit.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.excitation.motion_limits(robot, {"joint*": {"acceleration": 10.0}}).acceleration
    array([10., 10.])
    """
    limits = stated_limits(robot, given, share=share)
    for name, low, high in zip(robot.coordinates, limits.lower, limits.upper, strict=True):
        if not (np.isfinite(low) and np.isfinite(high)):
            raise MissingData(
                f"joint '{name}' has no position range; give one with {keyword('limits')}, lower and upper of '{name}'"
            )
    unlimited = [n for n, value in zip(robot.coordinates, limits.velocity, strict=True) if not 0 < value < np.inf]
    if unlimited:
        raise MissingData(
            f"{quoted('joint', unlimited)} {'has' if len(unlimited) == 1 else 'have'} no velocity limit; give one with "
            f'{keyword("limits")}: \'{{"*": {{"velocity": 1.0}}}}\' is 1 rad/s (1 m/s) for every joint'
        )
    return limits


def stated_limits(
    robot: Robot, given: Mapping[str, Mapping[str, float]] | None = None, *, share: float = 1.0
) -> MotionLimits:
    """As `motion_limits`, but infinite where neither the model nor `given` has a limit."""
    names = robot.coordinates
    if not 0 < share <= 1:
        raise InvalidValue(f"the share of the limits lies in (0, 1], got {share}", "share")
    own = [robot.limits[n] for n in names]
    values = {name: np.full(len(names), np.inf) for name in LIMIT_NAMES}
    values["lower"] = np.array([limit.lower for limit in own])
    values["upper"] = np.array([limit.upper for limit in own])
    values["velocity"] = share * np.array([limit.velocity for limit in own])
    values["torque"] = share * np.array([limit.effort for limit in own])
    turning = [names.index(name) for name in endless_joints(robot)]
    values["lower"][turning], values["upper"][turning] = -np.pi, np.pi
    finite = np.isfinite(values["lower"]) & np.isfinite(values["upper"])
    span = np.where(finite, values["upper"], 0.0) - np.where(finite, values["lower"], 0.0)
    shrink = 0.5 * (1 - share) * span
    values["lower"], values["upper"] = values["lower"] + shrink, values["upper"] - shrink
    for pattern, entries in (given or {}).items():
        found = [names.index(name) for name in matching_names(pattern, names)]
        if not found:
            raise UnknownName(
                f"limits are given for '{pattern}', but the robot has the joints {', '.join(names)}", "limits"
            )
        for key, value in entries.items():
            if key not in LIMIT_NAMES:
                raise UnknownName(f"limit '{key}' of '{pattern}' is unknown: use {', '.join(LIMIT_NAMES)}", "limits")
            values[key][found] = _limit(value, f"limit '{key}' of '{pattern}'", signed=key in ("lower", "upper"))
    for name, low, high in zip(names, values["lower"], values["upper"], strict=True):
        if high <= low:
            raise InvalidValue(f"the range of joint '{name}' is empty: [{low:g}, {high:g}]", "limits")
    return MotionLimits(**values)


def _limit(value: float, what: str, *, signed: bool) -> float:
    """A limit that was given, as a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number) or not (signed or number > 0):
        raise InvalidValue(f"{what} must be a {'finite' if signed else 'positive'} number, got {value!r:.40}", "limits")
    return number
