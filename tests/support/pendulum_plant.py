"""A pendulum under a controller, integrated by scipy: nothing of our own dynamics is in its data."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

import dynid
from dynid import Recording, Robot, Run
from dynid.robot.parts import Joint, Link

Array = NDArray[np.float64]

INERTIA, GRAVITY, VISCOUS, COULOMB = 0.25, 5.0, 0.2, 0.5  # kg m2, N m, N m s/rad, N m
_SLOPE = 100.0  # s/rad, of the smooth Coulomb friction
_COUNTS = 2.0**17


def pendulum() -> Robot:
    """The pendulum without values; gravity acts along x."""
    joint = Joint("joint1", "revolute", 0, np.eye(4), np.array([0.0, 0.0, 1.0]))
    links = (Link("base", np.zeros(10)), Link("link1", np.zeros(10)))
    return Robot("pendulum", links, (joint,), gravity=np.array([9.81, 0.0, 0.0])).with_drives("viscous+coulomb")


@cache
def swing(frequency: float, amplitude: float, chirp: bool, seed: int, duration: float = 15.0) -> tuple[Array, Array]:
    """Positions and torques at 1 kHz of a slow swing with a fast component, or with a chirp up to its frequency."""
    slow, turn = np.random.default_rng(seed).uniform([0.2, 0.0], [0.5, 6.3])
    bend = 2 * np.pi * (frequency - 0.2) / duration

    def reference(t: float) -> tuple[float, float, float]:
        w, u = 2 * np.pi * slow, 2 * np.pi * 0.8
        phase, rate, change = 2 * np.pi * frequency * t, 2 * np.pi * frequency, 0.0
        if chirp:
            phase, rate, change = 2 * np.pi * 0.2 * t + 0.5 * bend * t * t, 2 * np.pi * 0.2 + bend * t, bend
        q = 0.8 * np.sin(w * t) + 0.3 * np.sin(u * t + turn) + amplitude * np.sin(phase)
        v = 0.8 * w * np.cos(w * t) + 0.3 * u * np.cos(u * t + turn) + amplitude * rate * np.cos(phase)
        a = -0.8 * w * w * np.sin(w * t) - 0.3 * u * u * np.sin(u * t + turn)
        return q, v, a + amplitude * (change * np.cos(phase) - rate * rate * np.sin(phase))

    def torque(t: float, q: float, v: float) -> float:
        to, fast, bent = reference(t)
        return 0.9 * INERTIA * bent + 0.9 * GRAVITY * np.sin(to) + 60.0 * (to - q) + 6.0 * (fast - v)

    def rate(t: float, x: Array) -> tuple[float, float]:
        q, v = float(x[0]), float(x[1])
        load = GRAVITY * np.sin(q) + VISCOUS * v + COULOMB * np.tanh(_SLOPE * v)
        return v, (torque(t, q, v) - load) / INERTIA

    t = np.arange(0.0, duration, 1e-3)
    solved = scipy.integrate.solve_ivp(rate, (0.0, t[-1]), reference(0.0)[:2], "LSODA", t, rtol=1e-8, atol=1e-9)
    return solved.y[0], np.array([torque(*x) for x in zip(t, *solved.y, strict=True)])


def recorded(frequency: float, amplitude: float, chirp: bool = False, seed: int = 0, rate: int = 500) -> Recording:
    """What an encoder of 17 bits and a torque sensor with 2 % of noise record of the swing."""
    q, torque = (x[:: 1000 // rate, None] for x in swing(frequency, amplitude, chirp, seed))
    count = 2 * np.pi / _COUNTS
    noise = 0.02 * np.std(torque) * np.random.default_rng(seed).normal(size=torque.shape)
    run = Run(np.arange(len(q)) / rate, count * np.round(q / count), torque=torque + noise, name=f"swing{seed}")
    return Recording(("joint1",), (run,))


def inertia(estimate: dynid.Estimate) -> float:
    """Identified inertia about the joint."""
    place = next(i for i, name in enumerate(estimate.base.names) if name.startswith("Izz"))
    return float(estimate.beta[place])
