"""A simulated TX40 in closed loop: truth, controller, motion and noise of the PC-DIDIM study."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np

from dynid.controllers import LinearController, bandwidth_gains, cascade
from dynid.excitation.excitation import Excitation
from dynid.identification.experiment import Experiment
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors

__all__ = ["RATE", "SLOW", "TRIM", "slow_experiment", "tx40_loop", "tx40_sensors", "tx40_truth"]

RATE = 5000.0
SLOW = 1000.0  # for loops that are simulated hundreds of times; noise is scaled to the same density
_BANDWIDTH = (10.0, 10.0, 10.0, 20.0, 20.0, 20.0)
_TORQUE_NOISE = 0.1 * np.array([30.0, 30.0, 12.0, 6.0, 6.0, 6.0])
_VELOCITY_CUTOFF = 100.0
TRIM = 0.6


def tx40_truth() -> Robot:
    """The truth: the built-in TX40 without coupling inertia, Coulomb friction as tanh(100 v)."""
    return load_robot("tx40").without("Ia_motor6").with_smooth_coulomb(100.0)


def tx40_loop(rate: float) -> tuple[LinearController, Excitation]:
    """Cascade controllers with the paper's bandwidths, and the motion."""
    robot = tx40_truth()
    with resources.as_file(resources.files("studies.reproduce") / "data" / "pc_didim_motion.toml") as path:
        motion = Excitation.from_toml(Path(path), robot)
    return cascade(rate, *bandwidth_gains(robot, _BANDWIDTH)), motion


def tx40_sensors(counts: float, rate: float = RATE, torque: float = 1.0, count: float = 1 / np.sqrt(12)) -> Sensors:
    """Encoder noise with a standard deviation in counts, by default that of rounding, and torque noise.

    Both have one density for all rates.
    """
    share = np.sqrt(rate / RATE)
    noise = 2 * np.pi / counts * count
    return Sensors(noise=share * noise, velocity_cutoff=_VELOCITY_CUTOFF, torque_noise=share * torque * _TORQUE_NOISE)


def slow_experiment(seed: int) -> Experiment:
    """One recording of the slow loop with good filters."""
    robot, sensors = tx40_truth(), tx40_sensors(32000, SLOW)
    controller, motion = tx40_loop(SLOW)
    loop = ClosedLoop(controller=controller, sensors=sensors, integrator="implicit", substeps=1)
    recording = simulate(robot, loop, motion, seed=seed).recording()
    signals = Signals(cutoff=40.0, decimate=(10, 4), trim=TRIM)
    return Experiment(robot, recording, loop, signals)
