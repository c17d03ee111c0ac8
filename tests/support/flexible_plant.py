"""A pendulum with a flexible joint, whose equations are written out and integrated here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot

Array = NDArray[np.float64]

RATE = 500.0


@dataclass(frozen=True)
class Truth:
    """One joint with a horizontal axis: J q'' + g cos q + link friction = k (theta - q) + d (theta' - q')."""

    stiffness: float = 3000.0
    damping: float = 3.0
    motor_inertia: float = 0.6
    inertia: float = 1.0
    gravity: float = 9.81
    viscous: float = 2.0
    link_viscous: float = 0.5
    backlash: float = 0.0
    cubic: float = 0.0

    def spring(self, x: float, v: float) -> float:
        """Torque of the spring under a deflection and its rate."""
        bent = x - np.clip(x, -0.5 * self.backlash, 0.5 * self.backlash)
        return self.stiffness * bent + self.cubic * bent**3 + self.damping * v


TRUTH = Truth()


def robot() -> Robot:
    """A pendulum with one joint: mass and length 1 at the end, viscous friction and rotor inertia."""
    rows = [{"alpha": np.pi / 2, "a": 0.0, "d": 0.0, "theta": 0.0}]
    bare = Robot.from_dh(rows, convention="modified", name="pendulum")
    return bare.with_drives("viscous", rotor_inertia=True)


@cache
def motion(truth: Truth, seconds: float = 12.0, seed: int = 0) -> tuple[Array, Array, Array]:
    """Motor positions, link positions and torques (N,) of the joint under a PD law, without noise."""
    rng = np.random.default_rng(seed)
    f = np.concatenate([[0.2, 0.5, 0.9], rng.uniform(3.0, 9.0, 6)])
    size = np.concatenate([[0.5, 0.3, 0.2], np.full(6, 0.006)])
    phase = rng.uniform(0, 2 * np.pi, len(f))
    h, t = 1.0 / RATE, truth

    def wanted(s: float) -> tuple[float, float]:
        angle = 2 * np.pi * f * s + phase
        return float(np.sum(size * np.sin(angle))), float(np.sum(size * 2 * np.pi * f * np.cos(angle)))

    def torque(s: float, x: Array) -> float:
        q, v = wanted(s)
        return 3000.0 * (q - x[0]) + 120.0 * (v - x[2])

    def rate(s: float, x: Array) -> Array:
        spring = t.spring(x[0] - x[1], x[2] - x[3])
        motor = (torque(s, x) - t.viscous * x[2] - spring) / t.motor_inertia
        link = (spring - t.gravity * np.cos(x[1]) - t.link_viscous * x[3]) / t.inertia
        return np.array([x[2], x[3], motor, link])

    q, v = wanted(0.0)
    x = np.array([q, q - t.gravity * np.cos(q) / t.stiffness, v, v])
    out = np.empty((int(seconds * RATE), 3))
    for i in range(len(out)):
        s = i * h
        out[i] = x[0], x[1], torque(s, x)
        a = rate(s, x)
        b = rate(s + h / 2, x + h / 2 * a)
        c = rate(s + h / 2, x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(s + h, x + h * c))
    return out[:, 0], out[:, 1], out[:, 2]


def recording(truth: Truth = TRUTH, *, delay: int = 0, link: bool = True, seed: int = 0) -> Recording:
    """The motion with encoder steps and torque noise; the link encoder may be late by some samples."""
    theta, q, torque = motion(truth, seed=seed)
    rng = np.random.default_rng(seed + 100)
    step = 1e-5
    late = np.concatenate([np.full(delay, q[0]), q[: len(q) - delay]])
    measured = step * np.round((late + 2e-3) / step)
    run = Run(
        np.arange(len(q)) / RATE,
        step * np.round(theta / step)[:, None],
        torque=(torque + 0.01 * torque.std() * rng.standard_normal(len(q)))[:, None],
        link_q=measured[:, None] if link else None,
    )
    return Recording(("joint1",), (run,))
