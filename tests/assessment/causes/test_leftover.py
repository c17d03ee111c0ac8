"""An effect that no candidate has: it is told as unknown, with the quantity that it follows, and noise is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.assessment.causes.test_causes import causes, only

Array = np.ndarray

# Torques that no candidate has, and the range in which they are largest.
EFFECTS: dict[str, tuple[Callable[[Array, Array], Array], float, float]] = {
    "position": (lambda q, v: -60.0 * np.clip(q[:, 1] - 0.6, 0.0, None) ** 2, 0.4, 2.0),
    "velocity": (lambda q, v: 1.5 * np.exp(-(((v[:, 1] - 1.0) / 0.25) ** 2)), 0.5, 1.5),
}


@pytest.mark.parametrize("variable", EFFECTS)
def test_an_unknown_effect_is_told_with_what_it_follows(variable: str) -> None:
    effect, low, high = EFFECTS[variable]
    unknown = [
        c for c in causes(lambda q, v, torque, run: (q, torque + only(1, effect(q, v)))).causes if c.code == "unknown"
    ]
    assert len(unknown) == 1 and unknown[0].joints == ("joint2",)
    words = unknown[0].words
    assert f"follows the {variable} of 'joint2'" in words
    first, last = (float(x) for x in words.split("between ")[1].rsplit(" ", 1)[0].split(" and "))
    assert low <= 0.5 * (first + last) <= high


@pytest.mark.parametrize("seed", range(4))
def test_slow_noise_is_no_unknown_effect(seed: int) -> None:
    """A residual that does not return in the other run: noise of 1 Hz, a fifth of the torque of friction."""
    noise = np.random.default_rng(seed).standard_normal((2, 4000))
    spectrum = np.fft.rfft(noise, axis=1) * (np.fft.rfftfreq(4000, 1 / 400.0) < 1.0)
    slow = np.fft.irfft(spectrum, 4000, axis=1)
    slow *= 0.3 / slow.std(axis=1, keepdims=True)
    found = causes(lambda q, v, torque, run: (q, torque + only(1, slow[run])), seed=seed)
    assert all(c.code != "unknown" for c in found.causes)
