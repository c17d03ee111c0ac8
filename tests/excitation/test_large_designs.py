"""Robots with many joints, and with joints of both kinds, get a motion within their limits in two minutes."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import Robot
from dynid.excitation.design import design_excitation
from tests.support.random_robots import random_robot


def humanoid() -> Robot:
    """A tree of 44 joints: torso, head, two arms with two fingers each, two legs."""
    parents: list[int] = []

    def chain(parent: int, length: int) -> int:
        for _ in range(length):
            parents.append(parent)
            parent = len(parents)
        return parent

    torso = chain(0, 3)
    chain(torso, 3)
    for _ in range(2):
        hand = chain(torso, 7)
        chain(hand, 3)
        chain(hand, 3)
    for _ in range(2):
        chain(0, 6)
    assert len(parents) == 44
    return random_robot(3, 44, parents=parents)


def mobile_arm() -> Robot:
    """A lift and seven revolute joints."""
    for seed in range(100):
        robot = random_robot(seed, 8, parents=list(range(8)))
        kinds = [joint.kind for joint in robot.joints]
        if kinds[0] == "prismatic" and kinds.count("prismatic") == 1:
            return robot
    raise AssertionError("no such robot among the random ones")


LIMITS = {"*": {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 10.0}}


def test_a_lift_and_an_arm() -> None:
    """Both kinds of joints move, and stay within their limits on a fine grid."""
    robot = mobile_arm()
    motion = design_excitation(robot, 10.0, limits=LIMITS, budget=300)
    assert motion.problem(1000).worst(motion.coefficients) >= 0
    assert np.all(np.ptp(motion.sample(100.0)[1], axis=0) > 0.1)
    assert np.isfinite(motion.condition_number)


@pytest.mark.slow
def test_a_humanoid_in_two_minutes() -> None:
    """396 coefficients, 244 base parameters: far better than random, within all limits, within the budget."""
    robot = humanoid()
    motion = design_excitation(robot, 20.0, limits=LIMITS, budget=3000)
    assert motion.seconds < 120
    assert motion.problem(1000).worst(motion.coefficients) >= 0
    # Sixty random motions come to -2.1 at best; the logarithm is that of a mean singular value.
    assert motion.value < -4.0
