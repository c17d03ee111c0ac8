"""Simulated experiments with known truth, started from wrong parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.controllers import bandwidth_gains, cascade
from dynid.excitation.basis import random_fourier
from dynid.identification.experiment import Experiment
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors

RATE = 1000.0
Array = NDArray[np.float64]


def reference(robot: dynid.Robot, seconds: float, seed: int = 0) -> Reference:
    """A random motion that fills the ranges of the joints."""
    limits = [robot.limits[name] for name in robot.coordinates]
    lower, upper, speed = (np.array([getattr(x, k) for x in limits]) for k in ("lower", "upper", "velocity"))
    t = np.arange(round(seconds * RATE)) / RATE
    return Reference(RATE, *random_fourier(lower, upper, speed, seconds, t, seed))


def experiment(
    truth: dynid.Robot,
    prior: dynid.Robot,
    signals: Signals,
    sensors: Sensors | None = None,
    seconds: float = 6.0,
    seed: int = 1,
    loop: ClosedLoop | None = None,
) -> Experiment:
    """The true robot under a cascade of 10 Hz (20 Hz from joint 4 on), recorded; the prior is what is known of it."""
    law = cascade(RATE, *bandwidth_gains(truth, np.where(np.arange(truth.n) < 3, 10.0, 20.0)))
    loop = replace(loop or ClosedLoop(), controller=law, sensors=sensors or Sensors())
    done = simulate(truth, loop, reference(truth, seconds), seed=seed)
    assert done.completed
    return Experiment(prior, done.recording(), loop, signals)


def wrong(robot: dynid.Robot, share: float, seed: int = 0) -> dynid.Robot:
    """Another possible robot: every link denser or lighter as a whole, every drive number off, by up to this share."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(1 - share, 1 + share, robot.parameters.size)
    names = robot.parameter_names
    for link in robot.links:
        mine = [i for i, name in enumerate(names) if name.endswith(f"_{link.name}")]
        if mine:
            factors[mine] = factors[mine[0]]
    return robot.with_parameters(factors * robot.parameters)
