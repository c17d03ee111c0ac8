"""A heavy linear axis with exact Coulomb friction under a cascade, integrated in closed form and not by dynid."""

from __future__ import annotations

from math import copysign, exp, inf, log

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.controllers import bandwidth_gains, cascade
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.sensors import Sensors

Array = NDArray[np.float64]

RATE = 1000.0
MASS, VISCOUS, COULOMB = 100.0, 200.0, 150.0  # kg, N s/m, N
FASTEST = 0.13  # m/s
NOISE, CUTOFF = 5e-6, 100.0  # m, standard deviation of the encoder; Hz, low-pass of the measured velocity


def axis() -> dynid.Robot:
    """A horizontal slide."""
    inertia = {"mass": MASS, "com": [0.0, 0, 0], "tensor": [1.0, 0, 0, 1, 0, 1]}
    row = {"kind": "prismatic", "alpha": "pi/2", "inertia": inertia, "drive": {"fv": VISCOUS, "fc": COULOMB}}
    return dynid.Robot.from_dh([row], "modified", name="axis")


def loop(**settings: object) -> ClosedLoop:
    """The cascade of 8 Hz that `recording` was made with."""
    law = cascade(RATE, *bandwidth_gains(axis(), 8.0))
    return ClosedLoop(controller=law, sensors=Sensors(velocity_cutoff=CUTOFF), **settings)  # type: ignore[arg-type]


def moved(v: float, force: float, span: float) -> tuple[float, float]:
    """Displacement and final velocity under a constant force: m dv/dt = force - fv v - fc sign(v), with sticking.

    Between two changes of sign the velocity is an exponential, so every instant of stopping is known exactly.
    """
    distance, rate = 0.0, VISCOUS / MASS
    while span > 0:
        if v == 0 and abs(force) <= COULOMB:
            return distance, 0.0
        sign = copysign(1.0, v or force)
        final = (force - sign * COULOMB) / VISCOUS
        stop = log(1 - v / final) / rate if v and final * sign < 0 else inf
        part = min(stop, span)
        distance += final * part + (v - final) * (1 - exp(-rate * part)) / rate
        v = 0.0 if stop <= span else final + (v - final) * exp(-rate * part)
        span -= part
    return distance, v


def reference(seconds: float) -> Array:
    """A random Fourier series of up to 0.6 Hz with the largest velocity of the axis."""
    t = np.arange(round(seconds * RATE)) / RATE
    omega = 2 * np.pi * np.arange(1, round(0.6 * seconds) + 1) / seconds
    rng = np.random.default_rng(0)
    phase, size = rng.uniform(0, 2 * np.pi, len(omega)), rng.uniform(0.5, 1.0, len(omega))
    angle = np.outer(t, omega) + phase
    q = np.sin(angle) @ (size / omega)
    return np.asarray(FASTEST / np.abs(np.cos(angle) @ size).max() * (q - q[0]))


def recording(seed: int, seconds: float = 10.0) -> Recording:
    """One run with encoder noise inside the loop. The controller is written out here as well."""
    (kp,), (kv,) = bandwidth_gains(axis(), 8.0)
    path = reference(seconds)
    noise = NOISE * np.random.default_rng(seed).standard_normal(len(path))
    gain = 1 - exp(-2 * np.pi * CUTOFF / RATE)
    seen, velocity, force = np.zeros((3, len(path)))
    q = v = 0.0
    for k, wanted in enumerate(path):
        seen[k] = q + noise[k]
        if k:
            velocity[k] = velocity[k - 1] + gain * ((seen[k] - seen[k - 1]) * RATE - velocity[k - 1])
        force[k] = kv * (kp * (wanted - seen[k]) - velocity[k])
        distance, v = moved(v, force[k], 1 / RATE)
        q += distance
    columns = {"v": velocity, "torque": force, "reference": path}
    t = np.arange(len(path)) / RATE
    run = Run(t, seen[:, None], **{name: x[:, None] for name, x in columns.items()}, name=f"seed{seed}")  # type: ignore[arg-type]
    return Recording(axis().coordinates, (run,))
