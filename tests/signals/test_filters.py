"""Filters and derivatives against signals whose result is known."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InvalidValue, TooFew
from dynid.signals.filters import (
    average_periods,
    decimate,
    derivative,
    lowpass,
    median,
)
from tests.support.errors import expect_error


def tones(rate: float, duration: float, *frequencies: float) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(0.0, duration, 1.0 / rate)
    return t, np.column_stack([np.sin(2 * np.pi * f * t + 0.3) for f in frequencies])


def test_order_twenty_at_three_hertz_and_eight_kilohertz() -> None:
    """The polynomial form diverges here; sections keep 0.37 and 1.5 Hz and stop 6 Hz, without phase."""
    rate = 8000.0
    _, x = tones(rate, 20.0, 0.37, 1.5, 6.0)
    y = lowpass(x, 3.0, rate, order=20)
    middle = slice(int(5 * rate), int(15 * rate))
    # Order 20 is flat to 1.6e-3 at half the cut-off and down by 2 * 20 * 6 dB an octave above it.
    assert np.abs(y - x)[middle, :2].max() < 2e-3
    assert np.abs(y[middle, 2]).max() < 1e-3


def test_cutoff_outside_the_band_is_refused() -> None:
    """Half the sampling rate is the end of the band."""
    with expect_error(InvalidValue, "cutoff"):
        lowpass(np.zeros((100, 1)), 60.0, 100.0)


@pytest.mark.parametrize(("method", "tolerance"), [("central", 1e-4), ("central5", 1e-7), ("savgol", 1e-5)])
def test_derivatives_of_every_channel(method: str, tolerance: float) -> None:
    """All columns, the last one too, follow the analytic derivative to the order of the formula."""
    rate = 1000.0
    t, x = tones(rate, 3.0, 0.5, 0.8, 1.1)
    exact = np.column_stack([2 * np.pi * f * np.cos(2 * np.pi * f * t + 0.3) for f in (0.5, 0.8, 1.1)])
    error = np.abs(derivative(x, rate, method) - exact)[10:-10]
    # h^2 w^3 / 6 = 5e-5 for 3 points, h^4 w^5 / 30 = 5e-10 for 5, between them for the local cubic.
    assert error.max() < tolerance and error.max(axis=0).min() > 0


def test_fourier_derivative_is_exact_for_whole_periods() -> None:
    """Band-limited periodic motion, even and odd numbers of samples."""
    for samples in (200, 201):
        t = np.arange(samples) * (10.0 / samples)
        x = np.sin(2 * np.pi * 0.3 * t)[:, None]
        exact = 2 * np.pi * 0.3 * np.cos(2 * np.pi * 0.3 * t)
        np.testing.assert_allclose(derivative(x, samples / 10.0, "fourier")[:, 0], exact, atol=1e-11)


def test_median_removes_single_spikes_only() -> None:
    """One bad sample goes, a ramp stays."""
    x = np.arange(50.0)[:, None]
    spiky = x.copy()
    spiky[20] = 1000.0
    # Beside the spike the median is a neighbour's value.
    assert np.abs(median(spiky, 3) - x)[1:-1].max() <= 1.0
    with expect_error(InvalidValue, "median"):
        median(x, 4)


def test_decimation_keeps_slow_and_stops_fast_in_stages() -> None:
    """By a hundred in two stages at 5 kHz: 2 Hz stays, 45 Hz does not fold back."""
    rate = 5000.0
    t, x = tones(rate, 10.0, 2.0, 45.0)
    y = decimate(x, (10, 10))
    assert len(y) == len(x[::100])
    inside = slice(20, -20)
    np.testing.assert_allclose(y[inside, 0], np.sin(2 * np.pi * 2.0 * t[::100] + 0.3)[inside], atol=0.02)
    assert np.abs(y[inside, 1]).max() < 1e-3
    with expect_error(TooFew, "decimate"):
        decimate(x[:20], (10,))


def test_averaging_periods_reduces_noise() -> None:
    """Ten repetitions leave a third of the noise and the same motion."""
    rng = np.random.default_rng(0)
    _, x = tones(100.0, 100.0, 0.1)
    mean = average_periods(x + 0.1 * rng.normal(size=x.shape), 1000)
    assert mean.shape == (1000, 1)
    assert np.std(mean - x[:1000]) == pytest.approx(0.1 / np.sqrt(10), rel=0.1)
    with expect_error(TooFew, "period"):
        average_periods(x[:10], 1000)
