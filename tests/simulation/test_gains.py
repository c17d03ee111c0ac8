"""Bandwidth of a loop from its gains, and gains from a bandwidth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import dynid
from dynid import controllers
from tests.support.closed_loops import TX40, refused, wheel


@pytest.mark.parametrize("damping", [0.3, 0.7, 1.0, 3.0])
def test_bandwidth_gives_back_what_the_gains_were_made_for(damping: float) -> None:
    """In the middle of the limits and at a given posture."""
    wanted = np.array([10.0, 8, 6, 20, 15, 30])
    for q in (None, np.full(6, 0.4)):
        kp, kv = controllers.bandwidth_gains(TX40, wanted, damping=damping, q=q)
        found = controllers.bandwidth(TX40, kp * kv, kv, reference_velocity=False, q=q)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("reference_velocity", [True, False])
@pytest.mark.parametrize(
    ("kp", "kd", "fv"), [(75.0, 0.32, 0.0), (75.0, 0.32, 4.0), (1e-3, 50.0, 30.0), (2e4, 0.0, 0.0)]
)
def test_response_is_half_the_power_at_the_bandwidth(kp: float, kd: float, fv: float, reference_velocity: bool) -> None:
    """By scipy's frequency response, from a loop without damping to one that is all friction."""
    found = controllers.bandwidth(wheel(0.3), kp, kd, friction=fv, reference_velocity=reference_velocity)
    ahead = [kd, kp] if reference_velocity else [kp]
    _, response = scipy.signal.freqs(ahead, [0.3, kd + fv, kp], worN=2 * np.pi * found)
    assert np.abs(response) == pytest.approx(np.sqrt(0.5), rel=1e-9)


def test_wrist_of_the_puma_has_the_published_bandwidth() -> None:
    """Krishnamoorthi (2018): 5 Hz at the gains for identification; natural frequencies times sqrt(1 + sqrt 2)."""
    robot = dynid.load_robot("puma560")
    found = controllers.bandwidth(robot, 75.0, 0.0, q=np.zeros(6))
    inertia = np.diagonal(dynid.mass_matrix(robot, np.zeros(6)))
    np.testing.assert_allclose(found, np.sqrt(75 / inertia) * np.sqrt(1 + np.sqrt(2)) / (2 * np.pi), rtol=1e-12)
    assert found.max() == pytest.approx(5.0, abs=0.5)


def test_gains_without_a_bandwidth_are_refused() -> None:
    refused(lambda: controllers.bandwidth(wheel(), 0.0, 1.0), "kp", "positive")
    refused(lambda: controllers.bandwidth(wheel(), 1.0, -1.0), "kd", "negative")
    refused(lambda: controllers.bandwidth(wheel(), 1.0, 1.0, friction=-1.0), "friction", "negative")
    refused(lambda: controllers.bandwidth(TX40, [1.0, 2.0], 1.0), "kp", "6")
    refused(lambda: controllers.bandwidth(wheel(0.0), 1.0, 1.0), "'j1'", "inertia")
