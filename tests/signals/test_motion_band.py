"""The band of a motion: every line of it is inside, the noise of the accelerations is not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from numpy.typing import NDArray

from dynid.signals.filters import derivative, lowpass
from dynid.signals.motion_band import motion_band, moving_columns

Array = NDArray[np.float64]


def tones(rate: float, duration: float, *frequencies: float) -> tuple[Array, Array]:
    t = np.arange(0.0, duration, 1.0 / rate)
    return t, np.column_stack([np.sin(2 * np.pi * f * t + 0.3) for f in frequencies])


def swing(rate: float, phase: Array) -> Array:
    """A slow swing and a fast component of some phase (rad) per sample, on an encoder of 17 bits."""
    t = np.arange(len(phase)) / rate
    q = 0.8 * np.sin(2 * np.pi * 0.3 * t) + 0.3 * np.sin(2 * np.pi * 0.8 * t) + phase
    count = 2 * np.pi / 2**17
    return np.asarray(count * np.round(q / count))[:, None]


@pytest.mark.parametrize("rate", [200.0, 1000.0])
@pytest.mark.parametrize("amplitude", [0.05, 0.005])
@pytest.mark.parametrize("frequency", [6.0, 8.0, 12.0, 15.0])
def test_every_line_of_the_motion_is_in_the_band(rate: float, amplitude: float, frequency: float) -> None:
    """A line of a quarter of a thousandth of the position power has nearly all of the acceleration power."""
    t = np.arange(0.0, 20.0, 1.0 / rate)
    band = motion_band(swing(rate, amplitude * np.sin(2 * np.pi * frequency * t)), rate)
    assert 1.2 * frequency < band < max(1.5 * frequency, 20.0)


def test_a_chirp_is_in_the_band_to_its_end() -> None:
    """From 0.2 to 15 Hz in 20 s: the last tenth of the sweep has the last percent of the acceleration power."""
    t = np.arange(0.0, 20.0, 1.0 / 500.0)
    phase = 2 * np.pi * (0.2 * t + 0.5 * (15.0 - 0.2) / 20.0 * t**2)
    assert motion_band(swing(500.0, 0.02 * np.sin(phase)), 500.0) > 15.0


def test_a_line_in_the_noise_is_left_out() -> None:
    """At 40 Hz the noise below the line has more acceleration power than the line: the band does not follow it."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 20.0, 1.0 / 500.0)
    q = swing(500.0, 2e-4 * np.sin(2 * np.pi * 40.0 * t)) + 1e-3 * rng.normal(size=(len(t), 1))
    assert motion_band(q, 500.0) < 20.0


def test_columns_move_by_more_than_their_noise() -> None:
    """Noise of 2 mrad has a range above a hundredth, but no motion; a slow ramp of 2 mrad has neither."""
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 1.0, 5000)
    q = np.column_stack([2e-3 * rng.normal(size=5000), 2e-3 * t, 0.02 * t, 0.1 * t + 2e-3 * rng.normal(size=5000)])
    assert moving_columns(q, 0.01).tolist() == [False, False, True, True]


def test_band_lies_between_motion_and_noise() -> None:
    """Motion up to 2 Hz under encoder noise at 1 kHz gives a band that ends a little above the motion."""
    rng = np.random.default_rng(0)
    _, x = tones(1000.0, 20.0, 0.5, 2.0)
    band = motion_band(x + 1e-4 * rng.normal(size=x.shape), 1000.0)
    assert 2.0 < band < 10.0


def test_band_with_colored_noise() -> None:
    """A coarse encoder read with a jittering clock has noise far above the floor of the highest frequencies."""
    rng = np.random.default_rng(1)
    rate, t = 500.0, np.arange(5000) / 500.0
    late = t + scipy.signal.lfilter([0.2], [1, -0.8], 5e-4 * rng.normal(size=t.shape))
    moving = np.column_stack(
        [np.sin(2 * np.pi * f * late) + 0.3 * np.sin(2 * np.pi * 3 * f * late) for f in (0.5, 0.7)]
    )
    coarse = 4e-4 * np.round(moving / 4e-4)
    assert 8.0 <= motion_band(coarse, rate) < 20.0


def test_band_ignores_joints_at_rest() -> None:
    """Six joints held still leave the band to the one that moves."""
    rng = np.random.default_rng(2)
    _, x = tones(1000.0, 10.0, 1.0, 12.0)
    alone = motion_band(x + 1e-6 * rng.normal(size=x.shape), 1000.0)
    held = 1e-3 * rng.normal(size=(len(x), 6))
    assert motion_band(np.hstack([x + 1e-6 * rng.normal(size=x.shape), held]), 1000.0) == pytest.approx(alone, rel=0.15)
    assert alone > 12.0


@pytest.mark.parametrize("seed", range(5))
def test_band_of_marker_data_bounds_the_noise_of_accelerations(seed: int) -> None:
    """Angles from markers: noise with more velocity energy than the motion, of which only a small part passes."""
    rng = np.random.default_rng(seed)
    rate, t = 100.0, np.arange(1500) / 100.0
    tones = [(0.15 * rng.normal(), k / 10, rng.uniform(0, 6.3)) for k in range(1, 6) for _ in range(8)]
    clean = np.column_stack([sum(a * np.sin(2 * np.pi * f * t + p) for a, f, p in tones[j::8]) for j in range(8)])
    noise = 5e-3 * rng.normal(size=clean.shape)
    assert np.var(np.diff(noise, axis=0)) > np.var(np.diff(clean, axis=0))
    band = motion_band(clean + noise, rate, friction=False)
    assert 1.0 < band < 4.0
    middle = slice(150, -150)

    def acceleration(x: np.ndarray) -> np.ndarray:
        return derivative(derivative(x, rate), rate)[middle]

    share = np.var(acceleration(lowpass(noise, band, rate)), axis=0) / np.var(acceleration(clean), axis=0)
    lost = np.var(acceleration(lowpass(clean, band, rate) - clean), axis=0) / np.var(acceleration(clean), axis=0)
    # A thousandth is aimed at for the joint in the middle; the edge of a Butterworth filter lets half as much again by.
    assert 2e-4 < np.median(share) < 3e-3 and lost.max() < 1e-3
    # Friction needs its steps, and encoders, which are far quieter, are left alone.
    assert motion_band(clean + noise, rate) == 8.0
    assert motion_band(clean + 1e-3 * noise, rate, friction=False) == motion_band(clean + 1e-3 * noise, rate)


@pytest.mark.parametrize("rate", [0.05, 0.5, 5.0, 5e4])
@pytest.mark.parametrize("samples", [2, 31, 33, 500])
def test_band_is_always_usable(rate: float, samples: int) -> None:
    """Slow clocks, short runs, noise and standstill: always a usable number, a fifth of the rate at most."""
    for x in (np.random.default_rng(0).normal(size=(samples, 2)), np.zeros((samples, 2))):
        for friction in (True, False):
            assert 0 < motion_band(x, rate, friction) <= 0.2 * rate
