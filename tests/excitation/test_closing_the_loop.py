"""From design to estimate on a simulated TX40: what was promised is what one gets, and it beats chance."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dynid
from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import Excitation
from dynid.excitation.search import shrunk

LIMITS = {"*": {"lower": -2.0, "upper": 2.0, "velocity": 2.0, "acceleration": 10.0}}
NOISE = np.array([1.0, 1.0, 0.5, 0.3, 0.3, 0.2])
RATE = 100.0


@cache
def designed() -> Excitation:
    robot = dynid.load_robot("tx40")
    return design_excitation(robot, 10.0, criterion="a", noise=NOISE, limits=LIMITS, budget=300)


def estimates(
    base: dynid.parameters.BaseParameters, q: np.ndarray, v: np.ndarray, a: np.ndarray, draws: int
) -> np.ndarray:
    """Base parameters (draws, b) by weighted least squares from torques with fresh noise."""
    W = base.regressor(q, v, a)
    torque = W @ base.values()
    rng = np.random.default_rng(0)
    white = np.linalg.pinv((W / NOISE[:, None]).reshape(-1, base.count))
    return np.array([white @ ((torque + NOISE * rng.normal(size=torque.shape)) / NOISE).ravel() for _ in range(draws)])


def one_period(motion: Excitation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _, q, v, a = motion.sample(RATE)
    return q[:-1], v[:-1], a[:-1]


@pytest.mark.slow
def test_predicted_std_is_that_of_repeated_experiments() -> None:
    """300 simulated identifications spread as the plan says, within 15 %; five periods spread less by their root."""
    motion = designed()
    base = motion.criterion.base
    spread = estimates(base, *one_period(motion), draws=300).std(axis=0, ddof=1)
    ratio = motion.predicted_std(NOISE, rate=RATE) / spread
    assert abs(np.sqrt(np.mean(ratio**2)) - 1) < 0.05
    # A deviation of 300 draws is itself uncertain by 4 %.
    assert np.all(np.abs(ratio - 1) < 0.15)
    np.testing.assert_allclose(motion.predicted_std(NOISE, periods=5), motion.predicted_std(NOISE) / np.sqrt(5))


@pytest.mark.slow
def test_a_designed_motion_beats_random_ones() -> None:
    """At least three times less mean squared error than random motions drawn out to the same limits."""
    motion = designed()
    base = motion.criterion.base
    error = np.mean((estimates(base, *one_period(motion), draws=60) - base.values()) ** 2)
    problem = motion.problem(200)
    others = []
    for seed in range(8):
        wild = problem.resting + problem.unit * np.random.default_rng(seed).normal(size=problem.unit.shape)
        X = shrunk(problem, wild)
        assert X is not None and problem.worst(X) < 0.01
        t = np.arange(0.0, motion.duration, 1 / RATE)
        q, v, a = (motion.basis.values(t, order) @ X.T for order in range(3))
        others.append(np.mean((estimates(base, q, v, a, draws=60) - base.values()) ** 2))
    assert np.mean(others) > 3 * error
    assert np.min(others) > error


def test_limits_hold_on_a_fine_grid() -> None:
    """Twenty times finer than the design's own."""
    motion = designed()
    assert motion.problem(20 * 100).worst(motion.coefficients) >= 0
