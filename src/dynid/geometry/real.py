"""The robot as it is: a robot of a file with known errors of its geometry.

With the errors t (translation), w (rotation), b (bending) of a joint with frame P and moments m, M of gravity,

    T = P Trans(t) exp(w + b m) motion((1 + g) reading + zero + waves + c M) mount

which `Geometry` places; here its unknowns have values.

Source: `dynid.geometry.kinematics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, NotFinite, UnknownName, did_you_mean
from dynid.geometry.kinematics import Geometry
from dynid.geometry.tangents import Placed
from dynid.geometry.unknowns import GeometryModel, Unknown, UnknownKind, axis_letters, joint_axes
from dynid.robot.model import Robot

__all__ = ["HELD", "WAVES", "JointErrors", "RealRobot", "checked_values", "joint_errors", "random_postures"]

Array = NDArray[np.float64]

# What a robot file can hold; the other kinds depend on the posture.
HELD = (UnknownKind.POSITION, UnknownKind.ROTATION, UnknownKind.ZERO, UnknownKind.SLIDE_ZERO)
WAVES = ("cos1", "sin1", "cos2", "sin2")


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Errors of one joint.

    Attributes
    ----------
    shift, turn : ndarray, shape (3,)
        Translation (m) and rotation vector (rad) of the joint frame, in its own axes.
    zero : float
        Added to the position (rad or m).
    gear : float
        Relative error of the gear factor.
    waves : ndarray, shape (4,)
        Factors of `WAVES` of the reading (rad).
    compliance : float
        About the joint's axis (rad/(N m)), or along it (m/N).
    bending : ndarray, shape (2,)
        Compliance about the first two of `joint_axes` (rad/(N m)).
    """

    shift: Array
    turn: Array
    zero: float
    gear: float
    waves: Array
    compliance: float
    bending: Array


def checked_values(robot: Robot, unknowns: Sequence[Unknown], values: ArrayLike) -> Array:
    """Values (K,) of unknowns, each of a joint of the robot."""
    x = np.array(values, dtype=float)
    if x.shape != (len(unknowns),):
        raise InvalidShape(f"there are {len(unknowns)} unknowns, but values has shape {x.shape}", "values")
    if not np.all(np.isfinite(x)):
        raise NotFinite(f"the value of {unknowns[int(np.argmin(np.isfinite(x)))].name} is not finite", "values")
    names = [j.name for j in robot.joints]
    for u in unknowns:
        if u.owner not in names:
            raise UnknownName(
                f"{u.name}: robot '{robot.name}' has no such joint{did_you_mean(u.owner, names)}", "unknowns"
            )
    return x


def joint_errors(robot: Robot, unknowns: Sequence[Unknown], values: ArrayLike) -> tuple[JointErrors, ...]:
    """Errors of every joint of a robot, from the values (K,) of its unknowns."""
    x = checked_values(robot, unknowns, values)
    found: dict[str, dict[str, float]] = {j.name: {} for j in robot.joints}
    for u, value in zip(unknowns, x, strict=True):
        found[u.owner][u.symbol] = float(value)
    out = []
    for joint in robot.joints:
        mine, axes = found[joint.name], joint_axes(joint)
        across, along = axis_letters(joint)
        letters = [*across, along]
        shift, turn = (axes @ [mine.get(f"{p}{s}", 0.0) for s in letters] for p in ("", "r"))
        waves = np.array([mine.get(s, 0.0) for s in WAVES])
        bending = np.array([mine.get(f"c{s}", 0.0) for s in across])
        zero, gear, compliance = (mine.get(s, 0.0) for s in ("zero", "gear", "c"))
        out.append(JointErrors(shift, turn, zero, gear, waves, compliance, bending))
    return tuple(out)


@dataclass(frozen=True, eq=False)
class _Known(Geometry):
    """A robot with these unknowns, whatever its model."""

    given: tuple[Unknown, ...] = ()

    @cached_property
    def unknowns(self) -> tuple[Unknown, ...]:
        return self.given


@dataclass(frozen=True, eq=False)
class RealRobot:
    """A robot with known errors of its geometry.

    Attributes
    ----------
    robot : Robot
        The robot of the file.
    unknowns : tuple of Unknown
        What differs.
    values : ndarray, shape (K,)
        By how much.
    bodies : Robot, optional
        Robot whose bodies load the joints, the same by default.
    """

    robot: Robot
    unknowns: tuple[Unknown, ...]
    values: Array
    bodies: Robot | None = None

    def __post_init__(self) -> None:
        # Kinds may be given as their words.
        known = tuple(replace(u, kind=UnknownKind(u.kind)) for u in self.unknowns)
        object.__setattr__(self, "unknowns", known)
        object.__setattr__(self, "values", checked_values(self.robot, self.unknowns, self.values))

    def place(self, q: Array, frames: Sequence[str]) -> dict[str, Placed]:
        """Placements of frames in the base at q (N, n), with derivatives in the unknowns."""
        geometry = _Known(self.robot, tuple(frames), GeometryModel(), self.bodies, given=self.unknowns)
        return geometry.place(geometry.postures(q, self.values), self.values, len(self.values))


def random_postures(robot: Robot, samples: int, seed: int) -> Array:
    """Joint positions (N, n) within the limits of the joints; a turn or a metre where there are none."""
    if samples < 1:
        raise InvalidValue(f"samples is {samples}: use one or more", "samples")
    joints = {j.name: j for j in robot.joints}
    low, high = [], []
    for name in robot.coordinates:
        joint = joints[name]
        reach = np.pi if joint.kind == "revolute" else 0.5
        low.append(joint.limits.lower if np.isfinite(joint.limits.lower) else min(-reach, joint.limits.upper))
        high.append(joint.limits.upper if np.isfinite(joint.limits.upper) else max(reach, joint.limits.lower))
    return np.random.default_rng(seed).uniform(low, high, (samples, len(low)))
