"""Robots with flexible joints that are not simulated by dynid: Pinocchio's forward dynamics, and springs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.plants import ENGINES

__all__ = ["FlexibleDrives", "arm", "recorded", "two_mass"]

Array = NDArray[np.float64]

_RATE = 1000.0  # Hz
# Counts per revolution of the encoders, on the joint side: 4096 behind a gear of 100, and 17 bits.
_MOTOR_COUNTS, LINK_COUNTS = 4096 * 100, 2**17
# Share of the torque that is noise.
_TORQUE_NOISE = 0.02
_SLOPE = 200.0  # s/rad, of Coulomb friction
_BAND = 2 * np.pi * 4.0  # rad/s, of the controller


@dataclass(frozen=True, eq=False)
class FlexibleDrives:
    """Truth of a robot whose joints are all flexible, (n,) each, in SI units on the joint side."""

    bodies: Robot
    stiffness: Array
    damping: Array
    motor_inertia: Array
    viscous: Array
    coulomb: Array
    link_viscous: Array
    link_coulomb: Array

    @property
    def robot(self) -> Robot:
        """The robot to be identified: the same bodies and kinds of friction, no values of the drives."""
        return (
            replace(self.bodies, drives=())
            .with_drives("viscous+coulomb", rotor_inertia=True)
            .with_smooth_coulomb(_SLOPE)
        )


def two_mass(rng: np.random.Generator) -> FlexibleDrives:
    """A motor and a link with a vertical axis: nothing but two inertias and a spring between 10 and 18 Hz."""
    bodies = replace(load_robot("twolink"), drives=()).locked({"joint2": 0.0}).with_gravity((0.0, 0.0, 0.0))
    return _drives(bodies, rng)


def arm(rng: np.random.Generator) -> FlexibleDrives:
    """A small 6-joint arm with flexible joints between 10 and 18 Hz behind the held motors."""
    return _drives(replace(load_robot("rv2sq"), drives=()), rng)


def _drives(bodies: Robot, rng: np.random.Generator) -> FlexibleDrives:
    n = bodies.n
    inertia = np.diag(mass_matrix(bodies, np.full((1, n), 0.3))[0])
    frequency = 2 * np.pi * rng.uniform(10.0, 18.0, n)
    stiffness = frequency**2 * inertia
    motor = inertia * rng.uniform(0.5, 1.5, n)
    size = inertia * 3.0
    return FlexibleDrives(
        bodies=bodies,
        stiffness=stiffness,
        damping=2 * rng.uniform(0.03, 0.08, n) * stiffness / frequency,
        motor_inertia=motor,
        viscous=size * rng.uniform(0.5, 1.0, n),
        coulomb=size * rng.uniform(0.5, 1.0, n),
        link_viscous=size * rng.uniform(0.1, 0.2, n),
        link_coulomb=size * rng.uniform(0.1, 0.2, n),
    )


def recorded(
    drives: FlexibleDrives, seconds: float, rng: np.random.Generator, runs: int = 1, link_counts: int = LINK_COUNTS
) -> Recording:
    """Runs of the robot under position control of its motors, measured with noise, encoder counts and an offset."""
    offset = rng.uniform(-1e-3, 1e-3, drives.bodies.n)
    made = [_run(drives, seconds, rng, offset, link_counts, f"run{k + 1}") for k in range(runs)]
    return Recording(drives.bodies.coordinates, tuple(made))


def _run(
    drives: FlexibleDrives, seconds: float, rng: np.random.Generator, offset: Array, link_counts: int, name: str
) -> Run:
    theta, q, torque = _integrated(drives, seconds, rng)
    noise = _TORQUE_NOISE * torque.std(axis=0) * rng.standard_normal(torque.shape)
    return Run(
        np.arange(len(q)) / _RATE,
        _counted(theta, _MOTOR_COUNTS),
        torque=torque + noise,
        link_q=_counted(q + offset, link_counts),
        name=name,
    )


def _counted(x: Array, counts: int) -> Array:
    """Positions in whole counts of an encoder."""
    step = 2 * np.pi / counts
    return np.asarray(step * np.round(x / step))


def _reference(n: int, t: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Slow motion over a large range and fast motion over a small one (N, n), with its derivatives."""
    slow = 0.1 * np.arange(1, 9)
    fast = np.linspace(2.0, 12.0, 21) + rng.uniform(-0.1, 0.1, 21)
    f = np.concatenate([slow, fast])
    size = np.concatenate([0.35 / np.arange(1, 9) ** 0.7, 0.01 / fast**1.2])
    w, phase = 2 * np.pi * f, rng.uniform(0, 2 * np.pi, (n, len(f)))
    angle = t[:, None, None] * w + phase
    return (
        np.sum(size * np.sin(angle), axis=2),
        np.sum(size * w * np.cos(angle), axis=2),
        np.sum(-size * w**2 * np.sin(angle), axis=2),
    )


def _integrated(drives: FlexibleDrives, seconds: float, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Motor positions, link positions and torques (N, n), by Runge-Kutta steps of fourth order.

    The controller is much faster than the clock of the log, as those of drives are: its torques are continuous.
    """
    n, step, count = drives.bodies.n, 1.0 / _RATE, int(seconds * _RATE)
    forward = ENGINES["Pinocchio"](drives.bodies, np.zeros(n))
    wanted, velocity, acceleration = _reference(n, np.linspace(0.0, seconds, 2 * count + 1), rng)
    ahead = inverse_dynamics(drives.bodies, wanted, velocity, acceleration) + drives.motor_inertia * acceleration
    inertia = np.diag(mass_matrix(drives.bodies, wanted[:1])[0]) + drives.motor_inertia
    kp, kd = _BAND**2 * inertia, 2 * _BAND * inertia
    fv, fc, lv, lc = drives.viscous, drives.coulomb, drives.link_viscous, drives.link_coulomb
    k, d, rotor = drives.stiffness, drives.damping, drives.motor_inertia

    def control(x: Array, i: int) -> Array:
        return np.asarray(ahead[i] + kp * (wanted[i] - x[:n]) + kd * (velocity[i] - x[2 * n : 3 * n]))

    def rate(x: Array, i: int) -> Array:
        theta, q, w, v = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n :]
        spring = k * (theta - q) + d * (w - v)
        motors = (control(x, i) - fv * w - fc * np.tanh(_SLOPE * w) - spring) / rotor
        links = forward(q, v, spring - lv * v - lc * np.tanh(_SLOPE * v))
        return np.concatenate([w, v, motors, links])

    still = inverse_dynamics(drives.bodies, wanted[:1], 0 * wanted[:1], 0 * wanted[:1])[0]
    x = np.concatenate([wanted[0], wanted[0] - still / k, velocity[0], velocity[0]])
    out = np.empty((count, 3, n))
    for i in range(count):
        out[i] = x[:n], x[n : 2 * n], control(x, 2 * i)
        a = rate(x, 2 * i)
        b = rate(x + 0.5 * step * a, 2 * i + 1)
        c = rate(x + 0.5 * step * b, 2 * i + 1)
        x = x + step / 6 * (a + 2 * b + 2 * c + rate(x + step * c, 2 * i + 2))
    return out[:, 0], out[:, 1], out[:, 2]
