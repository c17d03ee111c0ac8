"""The whole road on a robot that needs no hardware: a TX40 recording made here, and what is found in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assess import assess
from dynid.assessment.verdict.assessment import Assessment
from dynid.dynamics.functions import inverse_dynamics
from dynid.excitation.fourier import random_fourier
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.identification.validation import Validation
from dynid.parameters.base import base_parameters
from dynid.recording.recording import Recording, Run
from dynid.report.document import write as write_report
from dynid.robot.load import load_robot
from dynid.robot.model import Robot

__all__ = ["Demo", "run_demo", "synthetic_recording"]

Array = NDArray[np.float64]

_RATE, _PERIOD = 1000.0, 20.0
_COUNTS_A_TURN = 2**17  # encoder on the joint side
_TORQUE_NOISE = 0.02  # of each joint's largest torque


@dataclass(frozen=True, eq=False)
class Demo:
    """Truth, estimate and validation of the demonstration, and the recordings behind them."""

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
        plain = identify(self.estimate.robot, self.fitted, "wls")
        return write_report(
            self.estimate, path, self.unseen, recording=self.fitted, others=[plain], command="dynid demo", seed=0
        )


def synthetic_recording(robot: Robot, seed: int, duration: float = _PERIOD) -> Recording:
    """A periodic motion within the robot's limits, seen through encoders and noisy torques.

    Of twenty random motions the one with the best conditioned base regressor is taken.
    """
    limits = list(robot.limits.values())
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    speed = np.array([x.velocity for x in limits])
    t = np.arange(0.0, duration, 1.0 / _RATE)
    base = base_parameters(robot)

    def condition(candidate: int) -> float:
        coarse = random_fourier(lower, upper, speed, _PERIOD, t[::50], candidate)
        w = base.regressor(*coarse).reshape(-1, base.count)
        return float(np.linalg.cond(w / np.linalg.norm(w, axis=0)))

    best = min(range(20 * seed, 20 * seed + 20), key=condition)
    q, v, a = random_fourier(lower, upper, speed, _PERIOD, t, best)
    torque = inverse_dynamics(robot, q, v, a)
    rng = np.random.default_rng(seed)
    step = 2 * np.pi / _COUNTS_A_TURN
    measured = np.round(q / step) * step
    noisy = torque + _TORQUE_NOISE * np.abs(torque).max(axis=0) * rng.normal(size=torque.shape)
    return Recording(robot.coordinates, (Run(t, measured, torque=noisy, name=f"motion{seed}"),))


def run_demo() -> Demo:
    """Make two recordings of the TX40, identify it from one with a wrong prior, and validate on the other."""
    truth = load_robot("tx40")
    rng = np.random.default_rng(0)
    # What a data sheet would give: every value off by up to 30 %.
    prior = truth.with_parameters(truth.parameters * rng.uniform(0.7, 1.3, truth.parameters.size))
    first, second = synthetic_recording(truth, 0), synthetic_recording(truth, 1)
    estimate = identify(prior, first, "feasible")
    return Demo(estimate.base.values(truth.parameters), estimate, estimate.validate(second), first, second)
