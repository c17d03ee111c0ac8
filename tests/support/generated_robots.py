"""Robots with everything that generated code has to write: trees, all drives, smooth friction, kinds of bases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dynid
from dynid import Robot
from tests.support.random_robots import random_motion, random_robot

Array = np.ndarray

__all__ = ["ROBOTS", "motions"]

ROBOTS: dict[str, Callable[[], Robot]] = {
    "tx40": lambda: dynid.load_robot("tx40"),
    "tree": lambda: random_robot(2, 5),
    "drives": lambda: random_robot(5, 3, drives=True),
    "smooth": lambda: random_robot(5, 3, drives=True).with_smooth_coulomb(20.0),
    "floating": lambda: random_robot(6, 4, base="floating", rotors=True),
    "instrumented": lambda: random_robot(7, 4, base="instrumented", rotors=True),
    "followers": lambda: random_robot(4, 5, mimics=2),
}


def motions(robot: Robot, samples: int = 5) -> dict[str, Array]:
    """Random q, v, a, and torques of order ten; the parameters of the robot as parms."""
    q, v, a = random_motion(robot, 1, samples)
    tau = 10 * np.random.default_rng(2).normal(size=v.shape)
    return {"q": q, "v": v, "a": a, "tau": tau, "parms": robot.parameters}
