"""Small robots with base parameters, and possible bodies for them: clouds, plates, rods and points."""

from __future__ import annotations

from functools import cache

import numpy as np

import dynid
from dynid.parameters.base import BaseParameters, base_parameters
from tests.support import textbook
from tests.support.random_robots import random_robot, random_rotation
from tests.support.textbook import Array, bodies

DRIVES = ("Ia", "fv", "fc", "off")


@cache
def robot_and_base(seed: int, joints: int) -> tuple[dynid.Robot, BaseParameters]:
    """A random robot with some of the drive terms on every joint, and its base parameters."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, joints)
    chosen = [s for s in DRIVES if rng.random() < 0.6]
    robot = robot.with_terms(
        *(robot.joint_term(i, s, float(rng.uniform(0.05, 0.5))) for i in range(robot.n) for s in chosen)
    )
    return robot, base_parameters(robot)


def random_bodies(robot: dynid.Robot, rng: np.random.Generator, thinnest: float) -> Array:
    """A possible standard vector: every body a cloud of mass, down to `thinnest` (m) in one, two or three directions.

    That makes plates, rods and points. Drive parameters that cannot be negative are positive, some of them tiny.
    """
    pi = np.array(robot.parameters)
    for first in bodies(robot):
        mass, com = 10.0 ** rng.uniform(-1, 1), rng.uniform(-0.3, 0.3, 3)
        spread = rng.uniform(0.05, 0.3, 3)
        spread[: rng.integers(0, 4)] = thinnest
        root = random_rotation(rng) * spread
        second = root @ root.T
        pi[first : first + 10] = dynid.inertia.inertia_from_com(
            mass, com, mass * (np.trace(second) * np.eye(3) - second)
        )
    for i in textbook.signed(robot):
        pi[i] = rng.uniform(0.05, 2.0) if rng.random() < 0.8 else thinnest
    return pi
