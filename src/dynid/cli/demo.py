"""The demonstration: a TX40 is simulated, identified from one motion and validated on another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assess import assess
from dynid.assessment.verdict.assessment import Assessment
from dynid.dynamics.functions import inverse_dynamics
from dynid.excitation.basis import random_fourier
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.identification.validation_errors import Validation
from dynid.parameters.base import base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from dynid.robot.model import Robot

__all__ = ["Demo", "run_demo", "synthetic_recording"]

Array = NDArray[np.float64]

_RATE, _PERIOD = 1000.0, 20.0
_ENCODER_COUNTS = 2**17  # per revolution, on the joint side
_TORQUE_NOISE = 0.02  # of each joint's largest torque


@dataclass(frozen=True, eq=False)
class Demo:
    """True parameters, estimate and validation of the demonstration, and its recordings."""

    truth: Array
    estimate: Estimate
    validation: Validation
    fitted: Recording
    unseen: Recording

    @cached_property
    def assessment(self) -> Assessment:
        """Whether the estimate can be trusted."""
        return assess(self.estimate, self.unseen, recording=self.fitted)

    def report(self, path: str | Path) -> Assessment:
        """Write the report of the demonstration, with plain weighted least squares beside its method."""
        from dynid.report.document import write

        plain = identify(self.estimate.robot, self.fitted, "wls")
        return write(
            self.estimate, path, self.unseen, recording=self.fitted, others=[plain], command="dynid demo", seed=0
        )


def synthetic_recording(robot: Robot, seed: int, duration: float = _PERIOD) -> Recording:
    """Simulate a recording of a periodic motion, with encoder quantisation and torque noise.

    Of twenty random motions the one with the best conditioned base regressor is taken.

    Parameters
    ----------
    robot : Robot
        The robot, with limits on position and velocity.
    seed : int
        Seed of the motion and of the noise.
    duration : float
        Length of the recording in s.

    Returns
    -------
    Recording
        One run at 1 kHz with positions, and torques with noise of 2 % of each joint's largest torque.
    """
    limits = list(robot.limits.values())
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    velocity = np.array([x.velocity for x in limits])
    t = np.arange(0.0, duration, 1.0 / _RATE)
    base = base_parameters(robot)

    def condition(candidate: int) -> float:
        coarse = random_fourier(lower, upper, velocity, _PERIOD, t[::50], candidate)
        w = base.regressor(*coarse).reshape(-1, base.count)
        norms = np.linalg.norm(w, axis=0)
        # A joint that moves in one direction only leaves a friction column of zeros.
        return float(np.linalg.cond(np.linalg.qr(w / norms, mode="r"))) if np.all(norms > 0) else np.inf

    best = min(range(20 * seed, 20 * seed + 20), key=condition)
    q, v, a = random_fourier(lower, upper, velocity, _PERIOD, t, best)
    torque = inverse_dynamics(robot, q, v, a)
    rng = np.random.default_rng(seed)
    step = 2 * np.pi / _ENCODER_COUNTS
    measured = np.round(q / step) * step
    noisy = torque + _TORQUE_NOISE * np.abs(torque).max(axis=0) * rng.normal(size=torque.shape)
    return Recording(robot.coordinates, (Run(t, measured, torque=noisy, name=f"motion{seed}"),))


def run_demo() -> Demo:
    """Simulate two recordings of the TX40, identify it from one with a wrong prior, and validate on the other."""
    truth = load_robot("tx40")
    rng = np.random.default_rng(0)
    # A-priori parameters such as those of a data sheet: every value off by up to 30 %.
    prior = truth.with_parameters(truth.parameters * rng.uniform(0.7, 1.3, truth.parameters.size))
    first, second = synthetic_recording(truth, 0), synthetic_recording(truth, 1)
    estimate = identify(prior, first, "feasible")
    return Demo(estimate.base.values(truth.parameters), estimate, estimate.validate(second), first, second)
