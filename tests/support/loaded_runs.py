"""An arm with and without a body in its hand, by torques and by currents, with known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dynid
from dynid.recording.recording import Recording
from tests.support.synthetic import arm, record

MASS, CENTRE = 1.5, np.array([0.12, 0.03, -0.05])
BODY = dynid.inertia.inertia_from_com(MASS, CENTRE, np.diag([0.004, 0.006, 0.005]))
GAINS = np.array([12.0, 8.0, 5.0])
HAND = "link3"


def torques(loaded: bool, noise: float = 0.0, seed: int = 0) -> Recording:
    """Two runs; those with the body follow other paths."""
    robot = arm().with_payload(HAND, BODY) if loaded else arm()
    rng = np.random.default_rng(seed)
    clean = record(robot, (2, 3) if loaded else (0, 1))
    runs = (replace(x, torque=x.torque + noise * rng.normal(size=x.q.shape)) for x in clean.runs)
    return Recording(clean.joints, tuple(runs))


def currents(loaded: bool, noise: float = 0.0, seed: int = 0, gains: np.ndarray = GAINS) -> Recording:
    """The same runs by their currents, A."""
    rng = np.random.default_rng(seed)
    clean = torques(loaded)
    made = (x.torque / gains + noise * rng.normal(size=x.q.shape) for x in clean.runs)
    runs = tuple(replace(x, torque=None, current=i) for x, i in zip(clean.runs, made, strict=True))
    return Recording(clean.joints, runs)
