"""Kalman filters for state and parameters: their algebra, their honesty, and what stops them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from dynid.dynamics.kernels import kalman as kernels
from dynid.errors import DataError, InvalidValue, UnknownName
from dynid.identification.estimators.kalman import EkfOptions, ekf, ukf
from dynid.identification.estimators.registry import method_options
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop
from dynid.recording.recording import Recording
from tests.support.errors import Error, expect_error
from tests.support.noisy_loop import least_squares_miss, miss, noisy_loop, perturbed, surprise, truth

METHODS: dict[str, Callable[..., Any]] = {"ekf": ekf, "ukf": ukf}
both = pytest.mark.parametrize("name", METHODS)


@cache
def noisy() -> Experiment:
    return noisy_loop(seconds=3.0)


@cache
def solved(name: str) -> Any:
    return METHODS[name](noisy(), method_options(name, start=perturbed(noisy().robot), max_iterations=3))[0]


def triangle(size: int, seed: int) -> Any:
    return np.tril(np.random.default_rng(seed).normal(size=(size, size))) + 3 * np.eye(size)


@pytest.mark.parametrize("row", [0, 2, 4])
def test_correction_is_the_textbook_one(row: int) -> None:
    """Gain P h / (h'P h + r), P less gain times h'P, innovation squared in its variance; S stays a triangle."""
    S, mean = triangle(5, 0), np.arange(5.0)
    P, before = S @ S.T, mean.copy()
    variance, value = 0.3, 1.7
    squared = kernels._correct(mean, S, row, value, variance, np.zeros(5))
    total = P[row, row] + variance
    np.testing.assert_allclose(mean, before + P[:, row] / total * (value - before[row]), rtol=1e-12)
    np.testing.assert_allclose(S @ S.T, P - np.outer(P[:, row], P[row]) / total, atol=1e-12)
    assert squared == pytest.approx((value - before[row]) ** 2 / total)
    np.testing.assert_array_equal(S, np.tril(S))


def test_widening_adds_a_square() -> None:
    S, x = triangle(5, 1), np.array([0.0, 0.0, 0.7, -0.2, 0.4])
    expected = S @ S.T + np.outer(x, x)
    kernels._widen(S, 2, x.copy())
    np.testing.assert_allclose(S @ S.T, expected, atol=1e-12)


@both
def test_is_far_closer_than_biased_least_squares(name: str) -> None:
    """Noise in the loop puts least squares off by more than 5 %; the filters' own deviations cover their error."""
    experiment, solution = noisy(), solved(name)
    assert least_squares_miss(experiment) > 0.05
    assert miss(experiment, solution.beta) < 0.05 * least_squares_miss(experiment)
    # The torque noise allowed for (1 %) is not there, so deviations err on the large side.
    assert surprise(experiment, solution.beta, solution.covariance) < 2.0
    # Innovations are as large as the filter says.
    assert solution.history[-1].residual == pytest.approx(1.0, abs=0.15)
    assert solution.iterations == len(solution.history) and "filtered at 1000 Hz" in solution.notes


def test_both_filters_agree() -> None:
    """Close to the answer the dynamics bend little: values within half a deviation, deviations within a tenth."""
    first, second = solved("ekf"), solved("ukf")
    sigma = np.sqrt(np.diag(first.covariance))
    assert np.max(np.abs(first.beta - second.beta) / sigma) < 0.5
    np.testing.assert_allclose(np.sqrt(np.diag(second.covariance)), sigma, rtol=0.1)


def test_more_data_and_less_noise_narrow_the_answer_and_drift_widens_it() -> None:
    experiment = noisy()
    run = experiment.recording.runs[0]
    twice = replace(experiment, recording=Recording(experiment.recording.joints, (run, run)))
    one = np.diag(ekf(experiment, EkfOptions(max_iterations=1))[0].covariance)
    two = np.diag(ekf(twice, EkfOptions(max_iterations=1))[0].covariance)
    np.testing.assert_allclose(np.median(two / one), 0.5, atol=0.1)
    assert np.all(np.diag(ekf(experiment, EkfOptions(max_iterations=1, torque_noise=1.0))[0].covariance) > one)
    assert np.all(np.diag(ekf(experiment, EkfOptions(max_iterations=1, drift=0.1))[0].covariance) > one)


def test_fewer_positions_with_all_torques_tell_nearly_the_same() -> None:
    experiment = noisy()
    solution, _ = ekf(experiment, EkfOptions(rate=250.0))
    assert "filtered at 250 Hz" in solution.notes
    assert miss(experiment, solution.beta) < 0.05 * least_squares_miss(experiment)
    assert surprise(experiment, solution.beta, solution.covariance) < 2.0


def test_starting_covariance_counts() -> None:
    """Values held by a narrow start stay; the three ways to say it agree."""
    experiment, start = noisy(), perturbed(noisy().robot)
    held = 1e-9 * np.ones(experiment.base.count)
    first, _ = ekf(experiment, EkfOptions(start=start, max_iterations=1, std=held))
    np.testing.assert_allclose(first.beta, experiment.base.values(start), atol=1e-7)
    second, _ = ekf(experiment, EkfOptions(start=start, max_iterations=1, std=np.diag(held**2)))
    np.testing.assert_allclose(second.beta, first.beta, atol=1e-12)


@both
def test_impossible_start_is_an_outcome(name: str) -> None:
    """A negative inertia ends the pass; the answer says so and claims no precision."""
    experiment = noisy()
    solution, _ = METHODS[name](experiment, method_options(name, start=-experiment.robot.parameters))
    assert solution.status.startswith("aborted in iteration 1: the filter stopped at 0 s")
    assert np.all(np.isnan(solution.covariance)) and solution.history == ()


def test_six_joints() -> None:
    """The extended filter on a short noisy run of the TX40, sixty base parameters from 10 % off."""
    experiment = noisy_loop("tx40", noise=1e-5, seconds=2.0)
    solution, _ = ekf(experiment, EkfOptions(start=perturbed(experiment.robot, 0.1), max_iterations=2))
    assert miss(experiment, solution.beta) < 0.3 * least_squares_miss(experiment)
    assert surprise(experiment, solution.beta, solution.covariance) < 2.0
    assert len(truth(experiment)) == 60


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_iterations": 0}, (InvalidValue, "max_iterations")),
        ({"tolerance": 0.0}, (InvalidValue, "tolerance")),
        ({"start": "nowhere"}, (UnknownName, "start")),
        ({"std": -1.0}, (InvalidValue, "std")),
        ({"std": [1.0, 2.0]}, (DataError, "")),
        ({"std": -np.eye(11)}, (InvalidValue, "std")),
        ({"position_noise": 0.0}, (InvalidValue, "position_noise")),
        ({"torque_noise": [1.0]}, (InvalidValue, "torque_noise")),
        ({"drift": -1.0}, (InvalidValue, "drift")),
        ({"rate": 300.0}, (InvalidValue, "rate")),
        ({"alpha": 2.0}, (InvalidValue, "alpha")),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: Error) -> None:
    with expect_error(*error):
        estimate_closed_loop(noisy(), "ukf", **options)
