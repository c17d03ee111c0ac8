"""Robots with right angles and zero offsets, whose parameters group in special ways."""

from __future__ import annotations

import numpy as np

import dynid
import dynid.robot
from dynid.robot.drives import Transmission
from dynid.robot.spatial import clean, placement, rpy_rotation
from tests.support.random_robots import random_inertia

MOTOR_SYMBOLS = ("Ia", "fv", "fc", "off")
JOINT_SYMBOLS = ("Ia", "fv", "fvp", "fvn", "fc", "fcp", "fcn", "off", "k")


def structured_robot(seed: int, joints: int, base: str) -> dynid.Robot:
    """A tree as robots are built: right angles, parallel and crossing axes, offsets that are often zero.

    Random placements hide every special grouping; here most robots have some.
    """
    rng = np.random.default_rng(seed)
    built, links = [], [dynid.robot.Link("l0", random_inertia(rng))]
    for j in range(joints):
        turn = rpy_rotation(*(np.pi / 2 * rng.integers(0, 4, 3)))
        offset = np.where(rng.random(3) < 0.6, 0.0, rng.uniform(0.1, 0.5, 3))
        mount = np.eye(4) if rng.random() < 0.6 else placement(rpy_rotation(np.pi / 2, 0, 0), (0.3, 0, 0.2))
        parent = j if rng.random() < 0.75 else int(rng.integers(0, j + 1))
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        axis = np.eye(3)[rng.integers(3)]
        built.append(dynid.robot.Joint(f"j{j + 1}", kind, parent, clean(placement(turn, offset)), axis, clean(mount)))
        links.append(dynid.robot.Link(f"l{j + 1}", random_inertia(rng)))
    gravity = [(0, 0, -9.81), (0, 0, 0), (0, 9.81, 0), (1.0, 2.0, -9.0)][rng.integers(4)]
    robot = dynid.Robot("structured", tuple(links), tuple(built), gravity=np.array(gravity, float), base=base)
    terms = [robot.joint_term(i, s, 1.0, rest=0.3 * (s == "k")) for i in range(joints) for s in JOINT_SYMBOLS]
    robot = robot.with_terms(*(t for t in terms if rng.random() < 0.4))
    if joints > 1 and rng.random() < 0.6:
        coupling = np.eye(joints)
        coupling[0, joints - 1] = rng.choice([-1.0, 0.5, 1.0])
        robot = robot.with_transmission(
            Transmission(tuple(f"m{i + 1}" for i in range(joints)), coupling, np.ones(joints))
        )
        motor = [(f"m{i + 1}", s) for i in range(joints) for s in MOTOR_SYMBOLS]
        cross = bool(rng.random() < 0.5)
        robot = robot.with_terms(
            *(
                robot.motor_term(m, s, 1.0, cross_only=cross and m == f"m{joints}")
                for m, s in motor
                if rng.random() < 0.4
            )
        )
    return robot
