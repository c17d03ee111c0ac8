"""Output error and input error: the truth where least squares is biased, and no crash where simulations stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.identification.estimators import closed_loop
from dynid.identification.estimators.closed_loop import ClieOptions, clie, cloe
from dynid.identification.estimators.registry import method_options
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop
from tests.support.noisy_loop import least_squares_miss, miss, noisy_loop, perturbed, surprise, truth

METHODS: dict[str, Callable[..., Any]] = {"cloe": cloe, "clie": clie}
both = pytest.mark.parametrize("name", METHODS)


@cache
def quiet() -> Experiment:
    return noisy_loop(noise=0.0, seconds=2.0)


@cache
def noisy() -> Experiment:
    return noisy_loop()


@both
def test_recovers_the_truth_without_noise(name: str) -> None:
    """From values 20 % off, to what the first speed costs, which is known from differences of the reference only."""
    experiment = quiet()
    solution, _ = METHODS[name](experiment, method_options(name, start=perturbed(experiment.robot), tolerance=1e-4))
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.beta, truth(experiment), atol=1e-3)


@both
def test_is_far_closer_than_biased_least_squares(name: str) -> None:
    """Noise in the loop puts least squares off by more than 5 %; the covariance covers what is left."""
    experiment = noisy()
    solution, observation = METHODS[name](experiment, method_options(name, start=perturbed(experiment.robot)))
    assert least_squares_miss(experiment) > 0.05
    assert miss(experiment, solution.beta) < 0.2 * least_squares_miss(experiment)
    # Correlation over time and channels is estimated from few samples: within a factor of three of one.
    assert 0.2 < surprise(experiment, solution.beta, solution.covariance) < 3.0
    assert solution.status == "converged" and solution.iterations == len(solution.history) >= 2
    assert observation.total_rows > 1000 and solution.history[-1].simulation_seconds > 0


@both
def test_fits_its_signal_better_than_the_truth_does(name: str) -> None:
    """The minimum of the errors of one sample of noise lies below their value at the true parameters."""
    experiment = noisy()
    comparison = closed_loop._Comparison(experiment, "q" if name == "cloe" else "torque", experiment.robot.parameters)
    solution, _ = METHODS[name](experiment)
    at_truth = comparison.at(truth(experiment)).errors
    weight = comparison.std(at_truth)
    assert np.sum((comparison.at(solution.beta).errors / weight) ** 2) < np.sum((at_truth / weight) ** 2)


def test_errors_of_the_right_model_are_the_noise_alone() -> None:
    """Measured and simulated signals are cleaned alike: with the true parameters only the first speed is left."""
    experiment = quiet()
    for signal in ("q", "torque"):
        comparison = closed_loop._Comparison(experiment, signal, experiment.robot.parameters)  # type: ignore[arg-type]
        errors = comparison.at(truth(experiment)).errors
        assert len(errors) == len(comparison.measured) > 100
        assert np.abs(errors).max() < 1e-5 * np.abs(comparison.measured).max()


@both
def test_impossible_start_is_an_outcome(name: str) -> None:
    """A negative inertia cannot be simulated; the answer says so and claims no precision."""
    experiment = quiet()
    solution, _ = METHODS[name](experiment, method_options(name, start=-experiment.robot.parameters))
    assert solution.status.startswith("aborted in iteration 1: stopped at") and "positive definite" in solution.status
    assert np.all(np.isnan(solution.covariance)) and solution.history == ()


def test_step_that_cannot_be_simulated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first trial is replaced by an impossible robot: damping grows and the search goes on to the truth."""
    experiment = quiet()
    original, calls = closed_loop._Comparison.at, []

    def at(self: Any, beta: Any) -> Any:
        calls.append(beta)
        return original(self, -beta if len(calls) == experiment.base.count + 2 else beta)

    monkeypatch.setattr(closed_loop._Comparison, "at", at)
    solution, _ = clie(experiment, ClieOptions(start=perturbed(experiment.robot)))
    assert solution.status == "converged" and miss(experiment, solution.beta) < 1e-3
    assert "1 trial steps were rejected because their simulation stopped early" in solution.notes


@pytest.mark.slow
def test_six_joints() -> None:
    """Input error on a short noisy run of the TX40, sixty base parameters from 5 % off."""
    experiment = noisy_loop("tx40", noise=1e-5, seconds=2.0)
    solution, _ = clie(experiment, ClieOptions(start=perturbed(experiment.robot, 0.05), max_iterations=2))
    assert miss(experiment, solution.beta) < 0.5 * least_squares_miss(experiment)
    assert surprise(experiment, solution.beta, solution.covariance) < 3.0


@both
@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_iterations": 0}, "iteration"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"start": "nowhere"}, "nowhere"),
        ({"x": 1}, "x"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(dynid.DynidError, match=word):
        estimate_closed_loop(quiet(), name, **options)
