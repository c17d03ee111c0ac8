"""Causal filters: one delay for positions, velocities and accelerations, exact where motion is."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InvalidValue, TooLarge
from dynid.online import causal_filters
from tests.support.errors import Error, expect_error


@pytest.mark.parametrize(("rate", "cutoff"), [(1000.0, None), (125.0, None), (100.0, 10.0), (40.0, None)])
def test_all_three_filters_have_the_same_delay(rate: float, cutoff: float | None) -> None:
    """A sine in the band comes out as its position, velocity and acceleration of `lag` samples ago."""
    filters = causal_filters(rate, cutoff)
    count = filters.taps.shape[1]
    for share in (0.1, 0.3, 0.5):
        w = 2 * np.pi * share * filters.cutoff
        t = np.arange(count) / rate
        then = t[-1 - filters.lag]
        want = np.array([np.sin(w * then), w * np.cos(w * then), -(w**2) * np.sin(w * then)])
        np.testing.assert_allclose(filters.taps @ np.sin(w * t) / [1, w, w**2], want / [1, w, w**2], atol=2.5e-3)


def test_noise_above_the_band_is_attenuated() -> None:
    filters = causal_filters(1000.0, 16.0)
    w = 2 * np.pi * np.linspace(1.5 * 16.0, 500.0, 400) / 1000.0
    gain = np.abs(np.exp(1j * np.outer(w, np.arange(filters.taps.shape[1]))) @ filters.taps[0])
    assert gain.max() < 2e-3


def test_rows_follow_the_band() -> None:
    """Half of the cut-off is kept, with two and a half rows per Hz of it; the delay is that of both filters."""
    filters = causal_filters(1000.0, 16.0)
    assert filters.step == 50 and filters.row_rate == 20.0
    t = np.arange(4000) / 1000.0
    from scipy.signal import sosfilt

    slow = sosfilt(filters.sections, t)  # a ramp is delayed by the group delay at zero frequency
    assert t[-1] - slow[-1] + filters.lag / 1000.0 == pytest.approx(filters.delay, abs=1e-6)


@pytest.mark.parametrize(
    ("rate", "cutoff", "error"),
    [
        (0.0, None, (InvalidValue, "rate")),
        (100.0, 50.0, (InvalidValue, "cutoff")),
        (100.0, 0.0, (InvalidValue, "cutoff")),
        (1e5, 1.0, (TooLarge, "cutoff")),
    ],
)
def test_what_cannot_be_filtered_is_refused(rate: float, cutoff: float | None, error: Error) -> None:
    with expect_error(*error):
        causal_filters(rate, cutoff)
