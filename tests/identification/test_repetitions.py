"""Recordings that repeat one motion: alignment, mean, and scatter as the noise, against known noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import dynid
from dynid.errors import ConflictingArguments
from dynid.identification.estimate import Estimate
from dynid.identification.observing import observe
from dynid.identification.pipeline import identify
from dynid.identification.repeated import identify_repetitions
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.averaging import repetitions
from tests.support.energy_plant import RATE, Plant
from tests.support.errors import expect_error
from tests.support.synthetic import base_of

Array = NDArray[np.float64]
# Noise of the torques, relative to their size, and its correlation from one sample to the next (corner at 2 Hz).
LEVEL, COLOR = 0.02, np.exp(-2 * np.pi * 2.0 / RATE)


@cache
def plant() -> Plant:
    return Plant(2, motions=2)


def coloured(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Noise of unit variance that is correlated over time."""
    white = rng.normal(size=(shape[0] + 2000, *shape[1:])) * np.sqrt(1.0 - COLOR**2)
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -COLOR], white, axis=0)[2000:])


def repeated(count: int, seed: int = 0, extra: Array | float = 0.0) -> Recording:
    """Runs of the same motion with noise of their own; `extra` is a torque that the model does not have."""
    rng = np.random.default_rng(seed)
    q, tau = plant().motions[0][0], plant().torques[0]
    size = LEVEL * np.sqrt(np.mean(tau**2, axis=0))
    runs = [
        Run(
            plant().t,
            q + 1e-5 * rng.normal(size=q.shape),
            torque=tau + extra + size * coloured(rng, q.shape),
            name=f"run{k}",
        )
        for k in range(count)
    ]
    return Recording(plant().robot.coordinates, tuple(runs))


def test_runs_that_were_started_by_hand_are_aligned() -> None:
    """Whole samples and fractions of a sample, earlier and later, runs of other lengths."""
    q, tau = plant().motions[0][0], plant().torques[0]
    spline = scipy.interpolate.make_interp_spline(plant().t, np.hstack([q, np.cumsum(tau, axis=0) / RATE]), 5)
    runs = []
    for k, lag in enumerate((0.0, 0.5, -0.1234, 0.0317)):
        t = np.arange(1.0, 8.0 + 0.3 * k, 1.0 / RATE)
        smooth = spline(t - lag)
        runs.append(Run(t - 1.0, smooth[:, :2], torque=smooth[:, 2:], name=f"run{k}"))
    found = repetitions(Recording(plant().robot.coordinates, tuple(runs)))
    np.testing.assert_allclose(found.shifts, (0.0, 0.5, -0.1234, 0.0317), atol=1e-5)
    assert found.count == 4 and found.freedom == 3
    for run in found.runs:
        assert np.array_equal(run.t, found.mean.t)
        np.testing.assert_allclose(run.q, spline(run.t + 1.0)[:, :2], atol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_scatter_is_the_noise_whatever_the_number_of_runs(count: int) -> None:
    """Its variance is unbiased with two runs too, and the mean has a K-th of it."""
    found = repetitions(repeated(count))
    size = LEVEL * np.sqrt(np.mean(plant().torques[0] ** 2, axis=0))
    assert found.torque_std is not None and found.mean.torque is not None
    np.testing.assert_allclose(found.torque_std, size, rtol=0.15)
    np.testing.assert_allclose(found.position_std, 1e-5, rtol=0.05)
    left = found.mean.torque - plant().torques[0][: len(found.mean.t)]
    np.testing.assert_allclose(np.std(left, axis=0), size / np.sqrt(count), rtol=0.25)


def _covers(count: int, draws: int) -> tuple[float, float]:
    """Share of the truth in 95 % intervals, and reported standard deviation relative to the spread."""
    truth = base_of(plant().robot).values()
    errors, stds, inside = [], [], []
    for seed in range(draws):
        found = identify_repetitions(plant().robot, repeated(count, seed))
        error = found.beta - truth
        errors.append(error)
        stds.append(found.std)
        inside.append(np.abs(error) < scipy.stats.t.ppf(0.975, found.freedom) * found.std)
    ratio = np.sqrt(np.mean(np.square(stds), axis=0)) / np.sqrt(np.mean(np.square(errors), axis=0))
    return float(np.mean(inside)), float(np.sqrt(np.mean(ratio**2)))


def test_intervals_of_a_few_repetitions_hold_the_truth() -> None:
    """Noise that is correlated over time, three runs: 95 % and the right size, to the chance of twenty draws."""
    share, ratio = _covers(3, 20)
    assert 0.90 < share < 0.99 and 0.8 < ratio < 1.3


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 6])
def test_intervals_of_any_number_of_repetitions_hold_the_truth(count: int) -> None:
    share, ratio = _covers(count, 120)
    assert 0.92 < share < 0.98 and 0.85 < ratio < 1.15


def test_errors_of_the_model_repeat_and_do_not_count_as_noise() -> None:
    """A torque that the model lacks raises the standard deviations from residuals, not those from the scatter."""
    q = plant().motions[0][0]
    extra = 5.0 * np.sin(12.0 * q)
    clean, wrong = (identify_repetitions(plant().robot, repeated(3, 0, e)) for e in (0.0, extra))
    np.testing.assert_allclose(wrong.std, clean.std, rtol=0.3)
    residual = identify(plant().robot, repeated(3, 0, extra), "wls")
    assert np.median(residual.std / wrong.std) > 2.0


def test_the_noise_of_the_mean_falls_with_the_number_of_runs() -> None:
    """The joints are weighted by the scatter of the mean: noise over the square root of K."""
    few, many = (identify_repetitions(plant().robot, repeated(k)) for k in (2, 8))
    np.testing.assert_allclose(many.noise, few.noise / 2.0, rtol=0.2)
    assert many.freedom > 2 * few.freedom
    rows = observe(plant().robot, Recording(few.robot.coordinates, (repetitions(repeated(2)).mean,))).rows
    assert few.rows == rows and few.method == "wls"


def test_an_estimate_from_repetitions_is_saved_and_says_what_it_rests_on(tmp_path: Path) -> None:
    found = identify_repetitions(plant().robot, repeated(3))
    found.save(tmp_path / "estimate.json")
    back = Estimate.load(tmp_path / "estimate.json")
    assert back.noise_model == "repetitions" and back.freedom == found.freedom
    assert np.array_equal(back.covariance, found.covariance)
    assert "scatter of repetitions" in back.summary() and "without errors of the model" in back.summary()


def test_what_is_no_repetition_is_refused() -> None:
    """One sentence, with the names of the runs."""
    whole, robot = repeated(2), plant().robot
    first, second = whole.runs

    def refused(words: str, *runs: Run) -> None:
        with pytest.raises(dynid.DataError, match=words) as caught:
            identify_repetitions(robot, Recording(whole.joints, runs))
        assert "\n" not in str(caught.value)

    refused("at least two runs", first)
    other = Run(plant().t, plant().motions[1][0], torque=plant().torques[1], name="other")
    refused("'other' is not the motion of 'run0': .*differ by", first, other)
    refused("samples per second", first, replace(second, t=second.t / 2))
    refused("torques in all runs or in none", first, Run(second.t, second.q, name="bare"))
    refused("less than half of the motion|not the motion", first, second.rows(0, 500))
    with expect_error(ConflictingArguments, "period"):
        identify_repetitions(robot, whole, signals=dynid.Signals(period=10.0))
