"""An arm that picks up a body while it moves: Pinocchio's dynamics, integrated step by step, none of the package's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid import Robot, load_robot

Array = NDArray[np.float64]

MASS, CENTRE = 1.5, np.array([0.03, -0.02, 0.08])
# Inertia of every rotor on the joint side, kg m2.
ROTOR = 0.05
# Integration steps per sample.
_STEPS = 4


@dataclass(frozen=True)
class Carried:
    """Samples of the arm: time, positions and torques with the noise of their sensors."""

    t: Array
    q: Array
    torque: Array

    @property
    def rate(self) -> float:
        """Samples per second, Hz."""
        return 1.0 / float(self.t[1] - self.t[0])


def arm(joints: int = 7) -> Robot:
    """The WAM or a small arm of six joints, with known friction."""
    robot = load_robot("wam7" if joints == 7 else "rv2sq").without("*").with_drives("viscous+coulomb")
    values = robot.parameters.copy()
    for k, p in enumerate(robot.layout):
        if not p.inertial:
            values[k] = {"fv": 0.8, "fc": 1.2}[p.symbol]
    return robot.with_parameters(values)


def carry(
    robot: Robot,
    seconds: float,
    *,
    hold: tuple[float, float] = (np.inf, np.inf),
    mass: float = MASS,
    rate: float = 500.0,
    noise: float = 0.2,
    correlation: float = 0.0,
    encoder: float = 1e-5,
    seed: int = 0,
) -> Carried:
    """Follow smooth motion with a computed-torque controller that does not know the body held between two times.

    `noise` is the standard deviation of the torque sensors in N m, `correlation` that of neighbouring samples, and
    `encoder` the step of the encoders in rad.
    """
    rng = np.random.default_rng(seed)
    model = robot.to_pinocchio()
    for k in range(model.nv):
        model.armature[k] = ROTOR
    loaded = model.copy()
    loaded.inertias[model.njoints - 1] += pin.Inertia(mass, CENTRE, np.diag([2e-3, 2e-3, 1e-3]))
    plants = [(m, m.createData()) for m in (model, loaded)]
    n = model.nv
    friction = {p.name: x for p, x in zip(robot.layout, robot.parameters, strict=True) if not p.inertial}
    viscous = np.array([friction[f"fv_{j}"] for j in robot.coordinates])
    coulomb = np.array([friction[f"fc_{j}"] for j in robot.coordinates])
    frequency = rng.uniform(0.1, 0.6, (4, n))
    phase, size = rng.uniform(0, 2 * np.pi, (4, n)), rng.uniform(0.1, 0.25, (4, n))
    home = rng.uniform(-0.4, 0.4, n) + np.where(np.arange(n) % 2, 0.6, 0.0)

    def reference(t: float) -> tuple[Array, Array, Array]:
        w = 2 * np.pi * frequency
        return (
            home + np.sum(size * np.sin(w * t + phase), axis=0),
            np.sum(size * w * np.cos(w * t + phase), axis=0),
            -np.sum(size * w**2 * np.sin(w * t + phase), axis=0),
        )

    q, v, _ = reference(0.0)
    h = 1.0 / (rate * _STEPS)
    samples = int(seconds * rate)
    t_out, q_out, tau_out = np.arange(samples) / rate, np.empty((samples, n)), np.empty((samples, n))
    for k in range(samples):
        t = k / rate
        goal, speed, push = reference(t)
        wanted = push + 400.0 * (goal - q) + 40.0 * (speed - v)
        tau = pin.rnea(*plants[0], q, v, wanted) + viscous * v + coulomb * np.tanh(200.0 * v)
        q_out[k], tau_out[k] = q, tau
        plant = plants[int(hold[0] <= t < hold[1])]
        for _ in range(_STEPS):
            v = v + h * pin.aba(*plant, q, v, tau - viscous * v - coulomb * np.tanh(200.0 * v))
            q = q + h * v
    white = rng.normal(size=(samples, n))
    if correlation:
        white = _first_order(white, correlation)
    return Carried(t_out, encoder * np.round(q_out / encoder), tau_out + noise * white)


def _first_order(white: Array, correlation: float) -> Array:
    """Noise of unit size whose neighbouring samples are correlated."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([np.sqrt(1 - correlation**2)], [1.0, -correlation], white, axis=0))
