"""Recordings of an arm whose friction is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.excitation.basis import random_fourier
from dynid.friction.models import friction_model
from dynid.friction.pieces import Features
from dynid.friction.rows import without_friction
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from tests.support.synthetic import EXACT, arm

Array = NDArray[np.float64]

STRIBECK = {"fc": 0.7, "fv": 0.5, "fs": 0.6, "vs": 0.25}
LOADED = {"fc": 0.5, "fv": 0.6, "fl": 0.12}
__all__ = ["EXACT", "LOADED", "STRIBECK", "arm", "record"]


def record(
    model: str,
    values: dict[str, float],
    joint: int = 1,
    noise: float = 0.05,
    seed: int = 0,
    samples: int = 1000,
    temperature: Array | None = None,
    gravity_load: bool = False,
    motion_seed: int = 3,
) -> Recording:
    """One run of the three-joint arm; `joint` has the friction model, the others what the robot has."""
    robot = arm()
    bare = without_friction(robot, joint)
    t = np.arange(samples) * (10.0 / samples)
    ones = np.ones(robot.n)
    q, v, a = random_fourier(-1.5 * ones, 1.5 * ones, 3.0 * ones, 10.0, t, motion_seed)
    torque = dynid.inverse_dynamics(bare, q, v, a)
    load = dynid.dynamics.gravity_torque(bare, q)[:, joint] if gravity_load else torque[:, joint]
    torque[:, joint] += friction_model(model).torque(Features(v[:, joint], load, temperature), values)
    torque += noise * np.random.default_rng(seed).normal(size=torque.shape)
    return Recording(robot.coordinates, (Run(t, q, torque=torque, name="run"),))
