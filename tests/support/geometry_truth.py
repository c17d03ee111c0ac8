"""Robots whose geometry differs from their file, by Pinocchio, and made measurements of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import dynid
from dynid import Robot

Array = NDArray[np.float64]


@cache
def robot_of(name: str) -> Robot:
    """A built-in robot."""
    return dynid.load_robot(name)


@dataclass(frozen=True, eq=False)
class Truth:
    """A robot and how it really is: every joint moved on its link, with another zero."""

    robot: Robot
    model: pin.Model
    zeros: Array

    @classmethod
    def of(cls, robot: Robot, rng: np.random.Generator, position: float = 1e-3, angle: float = 5e-3) -> Truth:
        """With errors of these standard deviations (m, rad)."""
        model = robot.to_pinocchio().copy()
        for i in range(1, model.njoints):
            away = pin.exp6(np.concatenate([position * rng.normal(size=3), angle * rng.normal(size=3)]))
            model.jointPlacements[i] = model.jointPlacements[i] * away
        return cls(robot, model, angle * rng.normal(size=model.nq))

    def frames(self, q: Array, frame: str) -> Array:
        """Placements (N, 4, 4) of a frame in the base."""
        data, out = self.model.createData(), []
        for row in q:
            pin.framesForwardKinematics(self.model, data, row + self.zeros)
            out.append(data.oMf[self.model.getFrameId(frame)].homogeneous.copy())
        return np.array(out)

    def postures(self, count: int, rng: np.random.Generator) -> Array:
        """Joint positions all over the workspace."""
        return rng.uniform(-1.5, 1.5, (count, self.robot.n))


def any_placement(rng: np.random.Generator, size: float = 1.0) -> Array:
    """A placement with any rotation."""
    out = np.eye(4)
    out[:3, :3] = pin.Quaternion(rng.normal(size=4) / 1.0).normalized().matrix()
    out[:3, 3] = size * rng.uniform(-1, 1, 3)
    return out


def near(rng: np.random.Generator, placement: Array, position: float, angle: float) -> Array:
    """A placement beside another one."""
    away = pin.exp6(np.concatenate([position * rng.normal(size=3), angle * rng.normal(size=3)]))
    return np.asarray(placement @ away.homogeneous)


def points_of(placements: Array, local: Array) -> Array:
    """Where a point of each placement is."""
    return np.asarray(placements[:, :3, :3] @ local + placements[:, :3, 3])
