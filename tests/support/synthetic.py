"""Synthetic recordings with known truth."""

from __future__ import annotations

import numpy as np

import dynid
from dynid.excitation.basis import random_fourier
from dynid.identification.observation import Block, Observation, fold
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.settings import Signals

# Exact derivatives of periodic motion and nothing else: what is left is the estimator.
EXACT = Signals(cutoff=None, derivative="fourier", trim=0.0, min_velocity=0.0, resample=None, decimate=())


def arm() -> dynid.Robot:
    """Three joints of a real arm, enough for every kind of base parameter."""
    rows = [
        {"alpha": 0.0, "inertia": {"mass": 3.0, "com": [0.05, 0, 0.1], "tensor": [0.03, 0, 0, 0.03, 0, 0.02]}},
        {"alpha": "-pi/2", "inertia": {"mass": 2.0, "com": [0.2, 0.02, 0], "tensor": [0.01, 0, 0, 0.04, 0, 0.04]}},
        {"a": 0.4, "inertia": {"mass": 1.0, "com": [0.1, 0, 0.05], "tensor": [0.004, 0, 0, 0.01, 0, 0.01]}},
    ]
    drive = {"Ia": 0.2, "fv": 1.0, "fc": 0.7, "off": 0.1}
    return dynid.Robot.from_dh([{**row, "drive": drive} for row in rows], "modified", name="arm3")


def motion(robot: dynid.Robot, seed: int, samples: int = 1000, period: float = 10.0):  # type: ignore[no-untyped-def]
    t = np.arange(samples) * (period / samples)
    ones = np.ones(robot.n)
    return t, *random_fourier(-1.5 * ones, 1.5 * ones, 3.0 * ones, period, t, seed)


def record(robot: dynid.Robot, seeds: tuple[int, ...] = (0,), noise: float = 0.0, samples: int = 1000) -> Recording:
    """Runs of a robot with its own parameters; Gaussian torque noise."""
    runs = []
    for seed in seeds:
        t, q, v, a = motion(robot, seed, samples)
        rng = np.random.default_rng(1000 + seed)
        torque = dynid.inverse_dynamics(robot, q, v, a) + noise * rng.normal(size=q.shape)
        runs.append(Run(t, q, torque=torque, name=f"seed{seed}"))
    return Recording(robot.coordinates, tuple(runs))


def observation_of(base: BaseParameters, W: np.ndarray, y: np.ndarray) -> Observation:
    """An observation of rows at hand: W (N, channel, b), y (N, channel)."""
    index = np.arange(len(y))
    blocks = [Block(k, W[:, k], y[:, k], index) for k in range(y.shape[1])]
    factors = tuple(fold(np.column_stack([b.W, b.y])) for b in blocks)
    return Observation(base, factors, (len(y),) * y.shape[1], lambda: iter(blocks), EXACT)


def base_of(robot: dynid.Robot) -> BaseParameters:
    return base_parameters(robot, channels="torque")
