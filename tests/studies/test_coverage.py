"""Confidence intervals on plants that our simulator did not make."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.robot.inertia import inertia_to_pseudo
from studies.reproduce.coverage import coverage
from studies.reproduce.coverage_plants import ARMS, RATE
from studies.reproduce.plants import colored_noise


@pytest.mark.parametrize("corner", [None, 10.0, 2.0])
def test_noise_has_unit_variance_and_its_correlation_time(corner: float | None) -> None:
    noise = colored_noise((400_000, 2), corner, RATE, np.random.default_rng(0))
    assert np.allclose(noise.std(axis=0), 1.0, atol=0.05)
    lag = 20
    correlation = np.mean(noise[:-lag] * noise[lag:], axis=0)
    expected = 0.0 if corner is None else np.exp(-2 * np.pi * corner * lag / RATE)
    assert np.allclose(correlation, expected, atol=0.06)


def test_the_prior_is_wrong_and_physically_consistent() -> None:
    for arm in ARMS.values():
        assert np.linalg.norm(arm.prior.parameters - arm.truth.parameters) > 0.1 * np.linalg.norm(arm.truth.parameters)
        assert all(np.linalg.eigvalsh(inertia_to_pseudo(link.inertia))[0] >= 0 for link in arm.prior.links[1:])


@pytest.mark.slow
def test_intervals_cover_the_truth_under_autocorrelated_noise() -> None:
    """Standard deviations that take the noise for white cover about half."""
    found = coverage(ARMS["two joints"], 2.0, runs=30, methods=("wls",), workers=1)["wls"]
    assert 0.88 < found.share < 0.99
    assert 0.8 < found.rms_z < 1.3
