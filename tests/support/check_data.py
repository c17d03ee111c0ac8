"""Recordings as a sound robot would give them, and a way to spoil one channel at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid import Recording, Robot, Run
from dynid.assessment import Finding
from dynid.excitation.basis import random_fourier

Array = NDArray[np.float64]

ENCODER = 2 * np.pi / 2**17


def recorded(
    robot: Robot, seed: int = 0, rate: float = 200.0, duration: float = 20.0, noise: float = 0.01
) -> Recording:
    """A random periodic motion within the limits: encoder positions, noisy velocities and torques."""
    limits = list(robot.limits.values())
    lower = np.array([max(x.lower, -1.5) for x in limits])
    upper = np.array([min(x.upper, 1.5) for x in limits])
    speed = np.array([min(x.velocity, 3.0) for x in limits])
    t = np.arange(0.0, duration, 1 / rate)
    q, v, a = random_fourier(lower, upper, speed, 10.0, t, seed)
    tau = dynid.inverse_dynamics(robot, q, v, a)[:, -robot.n :]
    rng = np.random.default_rng(seed + 100)
    spread = {name: noise * np.std(x, axis=0) * rng.normal(size=x.shape) for name, x in (("v", v), ("torque", tau))}
    run = Run(t, np.round(q / ENCODER) * ENCODER, v=v + spread["v"], torque=tau + spread["torque"], name="motion")
    return Recording(robot.coordinates, (run,))


def spoiled(recording: Recording, **signals: Any) -> Recording:
    """The recording with other signals; a function of the old signal, or the new one."""
    run = recording.runs[0]
    new = {s: x(getattr(run, s).copy()) if callable(x) else x for s, x in signals.items()}
    return Recording(recording.joints, (replace(run, **new),))


def times(column: int, factor: float) -> Callable[[Array], Array]:
    """A signal with one column multiplied."""

    def change(x: Array) -> Array:
        x[:, column] *= factor
        return x

    return change


def late(column: int, samples: int) -> Callable[[Array], Array]:
    """A signal with one column delayed by some samples (of a motion that repeats)."""

    def change(x: Array) -> Array:
        x[:, column] = np.roll(x[:, column], samples)
        return x

    return change


def serious(findings: tuple[Finding, ...]) -> list[Finding]:
    """Errors and warnings."""
    return [f for f in findings if f.severity != "info"]


def only(findings: tuple[Finding, ...], joint: str, code: str, severity: str = "error") -> Finding:
    """The one serious finding, which must be on this joint and have this code."""
    found = serious(findings)
    assert len(found) == 1, found
    assert (found[0].joint, found[0].code, found[0].severity) == (joint, code, severity), found
    return found[0]


def number(finding: Finding) -> float:
    """The number that a finding's amount begins with."""
    return float(finding.how_much.split()[0])
