"""A person who sways on a force plate: motion, ground reaction, and the file a plate writes."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from dynid import Robot
from dynid.excitation.basis import random_fourier
from tests.support.humanoids import Dance, from_euler

Array = NDArray[np.float64]


def swaying(robot: Robot, rate: float, seed: int) -> Dance:
    """Ten seconds of a person who sways and moves all joints."""
    t = np.arange(round(10 * rate)) / rate
    size, speed = 0.5 * np.ones(robot.n), 2.0 * np.ones(robot.n)
    q, v, a = random_fourier(-size, size, speed, 10.0, t, seed)
    x = random_fourier(-0.2 * np.ones(6), 0.2 * np.ones(6), np.ones(6), 10.0, t, seed + 100)
    pose, twist, rate_of_twist = from_euler(*x)
    pose[:, 2] += 1.0
    return Dance(t, np.hstack([pose, q]), np.hstack([twist, v]), np.hstack([rate_of_twist, a]))


def on_the_ground(robot: Robot, motion: Dance) -> Array:
    """The wrench (N, 6) in world axes about the world's origin, with a newton of noise."""
    load = dynid.inverse_dynamics(robot, motion.q, motion.v, motion.a)
    turn = Rotation.from_quat(motion.q[:, 3:7])
    force = turn.apply(load[:, :3])
    moment = turn.apply(load[:, 3:6]) + np.cross(motion.q[:, :3], force)
    return np.hstack([force, moment]) + np.random.default_rng(0).normal(size=(len(force), 6))


def write_plate(path: Path, rate: float, wrench: Array) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["time", "Fx", "Fy", "Fz", "Mx", "My", "Mz"])
        out.writerows([f"{k / rate:.6f}", *(f"{x:.6g}" for x in row)] for k, row in enumerate(wrench))
