"""Recordings of known robots under a cascade, with noise of the encoders inside the loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.controllers import bandwidth_gains, cascade
from dynid.excitation.basis import random_fourier
from dynid.identification.estimators.least_squares import ols
from dynid.identification.experiment import Experiment
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors

Array = NDArray[np.float64]
RATE = 1000.0


def robot(name: str = "twolink") -> Robot:
    """A built-in robot whose Coulomb steps are smooth enough for one or two steps a millisecond."""
    found = dynid.load_robot(name)
    return (found.without("Ia_motor6") if name == "tx40" else found).with_smooth_coulomb(30.0 if found.n == 2 else 10.0)


def noisy_loop(
    name: str = "twolink", noise: float = 1e-5, seconds: float = 5.0, seed: int = 1, torque_noise: float = 0.0
) -> Experiment:
    """A run of the robot along a random motion, 1 kHz, with all that made it."""
    arm = robot(name)
    limits = [arm.limits[c] for c in arm.coordinates]
    lower, upper, speed = np.array([[x.lower, x.upper, x.velocity] for x in limits]).T
    t = np.arange(round(seconds * RATE)) / RATE
    reference = Reference(RATE, *random_fourier(lower, upper, speed, seconds, t, 0))
    controller = cascade(RATE, *bandwidth_gains(arm, 8.0))
    sensors = Sensors(noise=noise, velocity_cutoff=40.0, torque_noise=torque_noise)
    loop = ClosedLoop(controller=controller, sensors=sensors)
    made = simulate(arm, loop, reference, seed=seed)
    assert made.completed
    signals = Signals(cutoff=60.0, decimate=(5,), trim=0.2)
    return Experiment(arm, made.recording(), loop, signals)


def perturbed(arm: Robot, share: float = 0.2, seed: int = 0) -> Array:
    """Standard parameters, each off by up to this share of itself."""
    return arm.parameters * (1 + share * np.random.default_rng(seed).uniform(-1, 1, len(arm.layout)))


def truth(experiment: Experiment) -> Array:
    return experiment.base.values(experiment.robot.parameters)


def miss(experiment: Experiment, beta: Array) -> float:
    """Distance to the true base values as a share of their size."""
    return float(np.linalg.norm(beta - truth(experiment)) / np.linalg.norm(truth(experiment)))


def least_squares_miss(experiment: Experiment) -> float:
    return miss(experiment, ols(experiment.measured).beta)


def surprise(experiment: Experiment, beta: Array, covariance: Array) -> float:
    """Root mean square error in deviations: about one where the covariance is honest."""
    return float(np.sqrt(np.mean((beta - truth(experiment)) ** 2 / np.diag(covariance))))
