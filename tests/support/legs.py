"""Robots with legs on a trunk, their drives, and commands for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid import Robot
from dynid.actuators.rollouts import Commands
from dynid.inertia import inertia_from_com
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.parts import Joint, Link

Array = NDArray[np.float64]


def legs(count: int = 1, base: str = "fixed", **drive: float) -> Robot:
    """A trunk with `count` legs of three joints each: hip, thigh and knee, of the size of a small quadruped.

    Every joint has these drive terms; Stribeck friction fades at 0.3 rad/s.
    """
    links, joints = [Link("trunk", _body(6.0, (0.0, 0.0, 0.0), 0.2))], []
    for k in range(count):
        x, y = (0.2 if k % 2 else -0.2), (0.1 if k // 2 else -0.1)
        side = 1.0 if y > 0 else -1.0
        parts = (
            ("hip", (x, y, 0.0), (1, 0, 0), 0.7, (0.0, 0.02 * side, 0.0)),
            ("thigh", (0.0, 0.09 * side, 0.0), (0, 1, 0), 1.1, (0.0, -0.02 * side, -0.03)),
            ("knee", (0.0, 0.0, -0.21), (0, 1, 0), 0.2, (0.005, 0.0, -0.12)),
        )
        for i, (name, place, axis, mass, center) in enumerate(parts):
            at = np.eye(4)
            at[:3, 3] = place
            parent = 0 if i == 0 else len(links) - 1
            joints.append(Joint(f"{name}{k}", "revolute", parent, at, np.array(axis, float)))
            links.append(Link(f"{name}{k}_link", _body(mass, center, 0.06)))
    robot = Robot("legs", tuple(links), tuple(joints), base=base)  # type: ignore[arg-type]
    terms = [
        robot.joint_term(j, symbol, value, velocity=0.3 if symbol == "fs" else 0.0, rest=0.2 if symbol == "k" else 0.0)
        for j in range(robot.n)
        for symbol, value in drive.items()
    ]
    return robot.with_terms(*terms)


def _body(mass: float, center: tuple[float, float, float], size: float) -> Array:
    """Inertial parameters of a box-like body."""
    return inertia_from_com(mass, center, mass * size**2 * np.diag([1.0, 1.3, 0.8]) / 6)


def sloped(robot: Robot, slope: float) -> Robot:
    """The robot with this slope on every dry friction term."""
    return replace(robot, drives=tuple(replace(t, slope=slope) if t.jumps else t for t in robot.drives))


def pd_law(robot: Robot, **fields: object) -> ActuatorLaw:
    """A PD law for the joints of a leg, computed at 1 kHz."""
    return ActuatorLaw(robot.coordinates, **({"kp": 25.0, "kd": 0.6, "rate": 1000.0} | fields))  # type: ignore[arg-type]


def sines(robot: Robot, rows: int, rate: float = 200.0, seed: int = 0, size: float = 0.4) -> Commands:
    """Commanded positions as sums of two sines per joint."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)[:, None] / rate
    f, p = rng.uniform(0.6, 2.5, (2, robot.n)), rng.uniform(0, 2 * np.pi, (2, robot.n))
    return Commands(rate, size * sum(np.sin(2 * np.pi * f[k] * t + p[k]) for k in range(2)))
