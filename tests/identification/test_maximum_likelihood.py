"""Maximum likelihood with noisy positions: exact gradient, a likelihood that never falls, and no attenuation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from dynid.errors import InvalidValue, NotApplicable, UnknownName
from dynid.identification.estimators.least_squares import joint_noise, wls
from dynid.identification.estimators.maximum_likelihood import MlOptions, _Samples, ml, noise_gains, position_std
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop
from dynid.signals.filters import decimate, derivative, lowpass
from dynid.signals.settings import Signals
from tests.support.errors import Error, expect_error
from tests.support.noisy_loop import RATE, least_squares_miss, miss, noisy_loop, surprise, truth

NOISE = 3e-5


@cache
def outside_the_loop(noise: float = NOISE) -> Experiment:
    """Positions whose noise the controller does not see: a log from other encoders than its own."""
    quiet = noisy_loop(noise=0.0, torque_noise=0.02)
    run = quiet.recording.runs[0]
    blurred = replace(run, q=run.q + noise * np.random.default_rng(3).standard_normal(run.q.shape))
    return replace(quiet, recording=replace(quiet.recording, runs=(blurred,)))


@cache
def solved() -> Any:
    return ml(outside_the_loop())[0]


def start(experiment: Experiment) -> tuple[_Samples, Any, Any]:
    """Samples, least squares, and a first torque covariance."""
    beta = wls(experiment.measured).beta
    samples = _Samples(experiment, np.full(2, NOISE))
    return samples, beta, np.diag(joint_noise(experiment.measured, beta) ** 2)


def test_no_attenuation_where_least_squares_is_biased() -> None:
    """Noisy accelerations shrink what least squares finds, weighted or not; likelihood knows them to be noisy."""
    experiment, solution = outside_the_loop(), solved()
    weighted = miss(experiment, wls(experiment.measured).beta)
    assert least_squares_miss(experiment) > 0.3 and weighted > 0.05
    assert miss(experiment, solution.beta) < 0.3 * weighted
    assert surprise(experiment, solution.beta, solution.covariance) < 2.0
    assert solution.status == "converged" and solution.iterations == len(solution.history)


def test_with_exact_positions_it_is_least_squares() -> None:
    """What is left is the correlation of the torques' noise between joints, which weighted least squares leaves out."""
    experiment = noisy_loop(noise=0.0, torque_noise=0.02)
    solution, _ = ml(experiment, MlOptions(position_noise=1e-12))
    plain = wls(experiment.measured)
    assert np.max(np.abs(solution.beta - plain.beta) / np.sqrt(np.diag(plain.covariance))) < 1.0


def test_step_uses_the_exact_gradient() -> None:
    """Whitened rows [Y e] hold the derivative of the weighted squares, the covariance's own dependence included."""
    experiment = outside_the_loop()
    samples, beta, torque = start(experiment)

    def squares(x: Any) -> float:
        return samples.weighed(experiment.base.standard(x), x, torque).squares

    factor = samples.factor(samples.weighed(experiment.base.standard(beta), beta, torque))
    gradient = -2.0 * factor[:, :-1].T @ factor[:, -1]
    numeric = [(squares(beta + d) - squares(beta - d)) / 2e-5 for d in 1e-5 * np.eye(len(beta))]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())


def test_likelihood_of_the_torque_covariance_never_falls() -> None:
    experiment = outside_the_loop()
    samples, beta, torque = start(experiment)
    weighed = samples.weighed(experiment.base.standard(beta), beta, torque)
    values = [samples.likelihood(weighed, torque)]
    for _ in range(30):
        torque = samples.torque_covariance(weighed, torque)
        weighed = samples.again(weighed, torque)
        values.append(samples.likelihood(weighed, torque))
        assert np.linalg.eigvalsh(torque).min() > 0
    assert np.all(np.diff(values) > -1e-9) and values[-1] > values[0] + 1


def test_noise_after_filters_is_as_foretold() -> None:
    """White noise through low-pass, derivatives and decimation has the covariance of the impulse responses."""
    experiment = outside_the_loop()
    motion = experiment.motions[0]
    q = lowpass(np.random.default_rng(0).standard_normal((200_000, 1)), 60.0, RATE, 4)
    v = derivative(q, RATE, experiment.signals.derivative)
    a = derivative(v, RATE, experiment.signals.derivative)
    seen = np.hstack([decimate(x, (5,)) for x in (q, v, a)])
    scale = np.sqrt(np.diag(noise_gains(experiment.signals, motion)))
    # 40000 correlated samples: about 1 %.
    np.testing.assert_allclose(
        np.cov(seen.T) / np.outer(scale, scale),
        noise_gains(experiment.signals, motion) / np.outer(scale, scale),
        atol=0.04,
    )


def test_position_noise_is_found_from_the_data() -> None:
    np.testing.assert_allclose(position_std(outside_the_loop()), NOISE, rtol=0.05)


def test_slow_rows_are_left_out_one_joint_at_a_time() -> None:
    """Samples where one joint is slow still count for the other."""
    experiment = replace(outside_the_loop(), signals=Signals(cutoff=60.0, decimate=(5,), trim=0.2, min_velocity="20%"))
    samples = _Samples(experiment, np.full(2, NOISE))
    assert np.sum(samples.here.any(axis=1) & ~samples.here.all(axis=1)) > 0
    assert tuple(samples.here.sum(axis=0)) == experiment.measured.rows
    solution, _ = ml(experiment)
    assert surprise(experiment, solution.beta, solution.covariance) < 2.0
    assert len(solution.beta) == len(truth(experiment))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_iterations": 0}, (InvalidValue, "max_iterations")),
        ({"tolerance": 0.0}, (InvalidValue, "tolerance")),
        ({"start": "nowhere"}, (UnknownName, "start")),
        ({"position_noise": -1}, (InvalidValue, "position_noise")),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: Error) -> None:
    with expect_error(*error):
        estimate_closed_loop(outside_the_loop(), "ml", **options)


def test_signals_it_cannot_follow_are_refused() -> None:
    for signals in (Signals(measured_velocity=True), Signals(median=3)):
        with expect_error(NotApplicable, "measured_velocity"):
            ml(replace(outside_the_loop(), signals=signals))
