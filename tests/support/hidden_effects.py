"""Two-link motions whose torques hold more than rigid bodies: ripple with position, friction that bends with speed."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.excitation.basis import random_fourier
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.settings import Signals

Array = NDArray[np.float64]

RATE, PERIOD = 50.0, 10.0
NOISE = 0.02
# The torques are made from exact states at every sample: nothing to filter, nothing to leave out.
SIGNALS = Signals(cutoff=None, derivative="fourier", trim=0.0, min_velocity=0.0, resample=None, decimate=())


@cache
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous", rotor_inertia=False)


def hidden(q: Array, v: Array) -> Array:
    """What no rigid model says (N, 2)."""
    return 0.6 * np.sin(2 * q) + 0.4 * np.tanh(4 * v) + 0.1 * v * np.abs(v)


def states(seed: int, reach: float = 1.5) -> tuple[Array, Array, Array, Array]:
    t = np.arange(int(RATE * PERIOD)) / RATE
    ones = np.ones(2)
    return t, *random_fourier(-reach * ones, reach * ones, 3 * ones, PERIOD, t, seed, harmonics=4)


def recording(*seeds: int, share: float = 1.0) -> Recording:
    """Runs with a share of the hidden torques."""
    runs = []
    for seed in seeds:
        t, q, v, a = states(seed)
        noise = NOISE * np.random.default_rng(seed + 500).standard_normal(q.shape)
        tau = dynid.inverse_dynamics(robot(), q, v, a) + share * hidden(q, v) + noise
        runs.append(Run(t, q, torque=tau, name=f"run {seed}"))
    return Recording(robot().coordinates, tuple(runs))


@cache
def estimate() -> dynid.Estimate:
    """Of the rigid bodies as they are: identified where nothing is hidden."""
    return dynid.identify(robot(), recording(0, 1, 2, share=0.0), "wls", signals=SIGNALS)


@cache
def residual() -> dynid.residual.Residual:
    """Learned from three runs, its kernels chosen."""
    return dynid.fit_residual(estimate(), recording(0, 1, 2), kernel=("own", "se"))
