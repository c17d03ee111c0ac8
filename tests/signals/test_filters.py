"""Filters and derivatives against signals whose result is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import dynid
from dynid.signals.filters import (
    auto_cutoff,
    average_periods,
    decimate,
    derivative,
    estimate_delay,
    lowpass,
    median,
)


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
    with pytest.raises(dynid.DataError, match="cut-off"):
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
    with pytest.raises(dynid.DataError, match="odd"):
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
    with pytest.raises(dynid.DataError, match="too few"):
        decimate(x[:20], (10,))


def test_automatic_cutoff_lies_between_motion_and_noise() -> None:
    """Motion up to 2 Hz under encoder noise at 1 kHz gives a cut-off a little above the motion."""
    rng = np.random.default_rng(0)
    _, x = tones(1000.0, 20.0, 0.5, 2.0)
    cutoff = auto_cutoff(x + 1e-4 * rng.normal(size=x.shape), 1000.0)
    assert 2.0 < cutoff < 10.0


def test_automatic_cutoff_with_colored_noise() -> None:
    """A coarse encoder read with a jittering clock has noise far above the floor of the highest frequencies."""
    rng = np.random.default_rng(1)
    rate, t = 500.0, np.arange(5000) / 500.0
    late = t + scipy.signal.lfilter([0.2], [1, -0.8], 5e-4 * rng.normal(size=t.shape))
    moving = np.column_stack(
        [np.sin(2 * np.pi * f * late) + 0.3 * np.sin(2 * np.pi * 3 * f * late) for f in (0.5, 0.7)]
    )
    coarse = 4e-4 * np.round(moving / 4e-4)
    assert 8.0 <= auto_cutoff(coarse, rate) < 20.0


def test_automatic_cutoff_ignores_joints_at_rest() -> None:
    """Six joints held still leave the cut-off to the one that moves."""
    rng = np.random.default_rng(2)
    _, x = tones(1000.0, 10.0, 1.0, 12.0)
    alone = auto_cutoff(x + 1e-6 * rng.normal(size=x.shape), 1000.0)
    held = 1e-3 * rng.normal(size=(len(x), 6))
    assert auto_cutoff(np.hstack([x + 1e-6 * rng.normal(size=x.shape), held]), 1000.0) == pytest.approx(alone, rel=0.15)
    assert alone > 12.0


@pytest.mark.parametrize("seed", range(5))
def test_automatic_cutoff_of_marker_data_bounds_the_noise_of_accelerations(seed: int) -> None:
    """Angles from markers: noise with more velocity energy than the motion, of which only a small part passes."""
    rng = np.random.default_rng(seed)
    rate, t = 100.0, np.arange(1500) / 100.0
    tones = [(0.15 * rng.normal(), k / 10, rng.uniform(0, 6.3)) for k in range(1, 6) for _ in range(8)]
    clean = np.column_stack([sum(a * np.sin(2 * np.pi * f * t + p) for a, f, p in tones[j::8]) for j in range(8)])
    noise = 5e-3 * rng.normal(size=clean.shape)
    assert np.var(np.diff(noise, axis=0)) > np.var(np.diff(clean, axis=0))
    cutoff = auto_cutoff(clean + noise, rate, friction=False)
    assert 1.0 < cutoff < 4.0
    middle = slice(150, -150)

    def acceleration(x: np.ndarray) -> np.ndarray:
        return derivative(derivative(x, rate), rate)[middle]

    share = np.var(acceleration(lowpass(noise, cutoff, rate)), axis=0) / np.var(acceleration(clean), axis=0)
    lost = np.var(acceleration(lowpass(clean, cutoff, rate) - clean), axis=0) / np.var(acceleration(clean), axis=0)
    # A thousandth is aimed at for the joint in the middle; the edge of a Butterworth filter lets half as much again by.
    assert 2e-4 < np.median(share) < 3e-3 and lost.max() < 1e-3
    # Friction needs its steps, and encoders, which are far quieter, are left alone.
    assert auto_cutoff(clean + noise, rate) == 8.0
    assert auto_cutoff(clean + 1e-3 * noise, rate, friction=False) == auto_cutoff(clean + 1e-3 * noise, rate)


@pytest.mark.parametrize("rate", [0.05, 0.5, 5.0, 5e4])
@pytest.mark.parametrize("samples", [2, 31, 33, 500])
def test_automatic_cutoff_stays_inside_any_band(rate: float, samples: int) -> None:
    """Slow clocks, short runs, noise and standstill: always a usable number below half the rate."""
    for x in (np.random.default_rng(0).normal(size=(samples, 2)), np.zeros((samples, 2))):
        for friction in (True, False):
            assert 0 < auto_cutoff(x, rate, friction) < rate / 2


def test_averaging_periods_reduces_noise() -> None:
    """Ten repetitions leave a third of the noise and the same motion."""
    rng = np.random.default_rng(0)
    _, x = tones(100.0, 100.0, 0.1)
    mean = average_periods(x + 0.1 * rng.normal(size=x.shape), 1000)
    assert mean.shape == (1000, 1)
    assert np.std(mean - x[:1000]) == pytest.approx(0.1 / np.sqrt(10), rel=0.1)
    with pytest.raises(dynid.DataError, match="less than one period"):
        average_periods(x[:10], 1000)


@pytest.mark.parametrize("lag", [0.0, 0.0137, 0.18, -0.05])
def test_delay_is_found_to_a_fraction_of_a_sample(lag: float) -> None:
    """Also a reversed signal and a lead."""
    rate = 100.0
    t = np.arange(0, 30, 1 / rate)
    signal = lambda x: np.sin(2.1 * x) + 0.5 * np.sin(5.3 * x + 1)  # noqa: E731
    found = estimate_delay(signal(t), -2.0 * signal(t - lag), rate)
    assert found == pytest.approx(lag, abs=2e-3)
    with pytest.raises(dynid.DataError, match="constant"):
        estimate_delay(np.ones(100), signal(t)[:100], rate)
