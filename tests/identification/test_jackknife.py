"""Standard deviations hold with autocorrelated residuals, against a Monte Carlo on a plain linear model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy

import dynid
from dynid.errors import UnknownName
from dynid.identification.estimators.solution import Solution
from dynid.identification.jackknife import jackknife, uncertainty
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, base_of, motion, observation_of, record

RUNS = 40


def colored(shape: tuple[int, int], memory: float, rng: np.random.Generator) -> np.ndarray:
    """Noise of unit variance whose correlation falls to 1/e within `memory` samples."""
    a = np.exp(-1.0 / memory) if memory else 0.0
    white = rng.standard_normal((shape[0] + 500, shape[1]))
    return scipy.signal.lfilter([np.sqrt(1 - a * a)], [1.0, -a], white, axis=0)[500:]


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.0, 5.0, 20.0])
@pytest.mark.parametrize("method", ["ols", "wls", "irls"])
def test_intervals_cover_the_truth(method: str, memory: float) -> None:
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W, truth = base.regressor(q, v, a), base.values()
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(RUNS):
        noise = 0.05 * colored(W.shape[:2], memory, rng)
        estimate = estimate_from(observation_of(base, W, W @ truth + noise), method)
        low, high = estimate.confidence_intervals(0.95).T
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.90 <= np.mean(covered) <= 0.985, np.mean(covered)


def test_slow_effects_below_white_noise_make_blocks_longer() -> None:
    """A component that outlasts a block and is hidden in white noise of twice its size: 90 % of 95 % without it."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W, truth = base.regressor(q, v, a), base.values()
    rng = np.random.default_rng(1)
    covered, freedom = [], []
    for _ in range(RUNS):
        noise = 0.05 * (rng.standard_normal(W.shape[:2]) + 0.5 * colored(W.shape[:2], 150.0, rng))
        estimate = estimate_from(observation_of(base, W, W @ truth + noise), "wls")
        low, high = estimate.confidence_intervals(0.95).T
        covered.append(np.mean((low <= truth) & (truth <= high)))
        freedom.append(estimate.freedom)
    assert 0.925 <= np.mean(covered) <= 0.985, np.mean(covered)
    assert np.median(freedom) < 19


def test_white_noise_is_the_former_covariance() -> None:
    robot = arm()
    recording = record(robot, (0,))
    white = identify(robot, recording, "wls", signals=EXACT, noise_model="white")
    assert white.noise_model == "white" and white.freedom == sum(white.rows) - white.beta.size
    assert white.independent_rows == ()
    with expect_error(UnknownName, "noise_model"):
        identify(robot, recording, "wls", noise_model="pink")  # type: ignore[arg-type]


def test_a_block_that_holds_a_direction_alone_is_bounded() -> None:
    """Deleting it would leave nothing of that parameter: its standard deviation is large but finite."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a).copy()
    W[len(W) // 20 :, :, 0] = 0.0
    rng = np.random.default_rng(0)
    observation = observation_of(base, W, W @ base.values() + 0.01 * rng.standard_normal(W.shape[:2]))
    found = jackknife(observation, base.values(), np.full(W.shape[1], 0.01))
    assert found is not None and np.all(np.isfinite(found.std))


def test_what_only_the_prior_decides_is_as_uncertain_as_the_prior() -> None:
    """The mass of a first link that turns about a vertical axis has no effect on torques."""
    robot = dynid.load_robot("tx40")
    from dynid.cli.demo import synthetic_recording

    estimate = identify(robot, synthetic_recording(robot, 0), "feasible")
    assert estimate.standard is not None and estimate.standard_covariance is not None
    at = robot.parameter_names.index("m_link1")
    std = np.sqrt(estimate.standard_covariance[at, at])
    assert 0.5 * estimate.standard[at] < std < 2 * estimate.standard[at]


def test_without_samples_noise_is_taken_as_white_and_said_so() -> None:
    robot = arm()
    seen = observe(robot, record(robot, (0,)), signals=EXACT)
    assert estimate_from(replace(seen, blocks=lambda: iter(())), "wls").noise_model == "white"


def test_a_solution_without_prior_keeps_its_correlations() -> None:
    """Standard deviations change, correlations between parameters do not."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    noise = 0.05 * colored(W.shape[:2], 10.0, np.random.default_rng(0))
    observation = observation_of(base, W, W @ base.values() + noise)
    estimate = estimate_from(observation, "wls", noise_model="white")
    solution = Solution(estimate.beta, estimate.covariance, estimate.noise)
    wide = uncertainty(observation, solution, "autocorrelated").covariance
    std = np.sqrt(np.diag(wide))
    np.testing.assert_allclose(
        wide / np.outer(std, std), estimate.covariance / np.outer(estimate.std, estimate.std), atol=1e-9
    )
    assert np.median(std / estimate.std) > 1.5
