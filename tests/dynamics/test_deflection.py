"""Motion of springs: Newmark's method against the exact oscillator."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.kernels.deflection import spring_responses


@pytest.mark.parametrize(("beta", "order"), [(1 / 12, 4), (1 / 4, 2)])
def test_order_of_the_error(beta: float, order: int) -> None:
    """A forced oscillator at 15 Hz: halving the step divides the error by two to the power of the order."""
    w, drive = 2 * np.pi * 15.0, 2 * np.pi * 4.0
    errors = []
    for rate in (250.0, 500.0):
        t, h = np.arange(int(rate)) / rate, 1.0 / rate
        load = np.sin(drive * t)[:, None, None]
        S = np.full((len(t), 1, 1), 1.0 / (1.0 + beta * w**2 * h**2))
        x, v, a = (np.empty_like(load) for _ in range(3))
        spring_responses(S, load, np.array([w**2]), np.zeros((len(t), 1)), beta, h, x, v, a)
        # The free oscillation that the start leaves is fitted: what is left is the error of frequency and response.
        forced = np.sin(drive * t) / (w**2 - drive**2)
        free = np.column_stack([np.sin(w * t), np.cos(w * t)])
        rest = x[:, 0, 0] - forced
        errors.append(np.linalg.norm(rest - free @ np.linalg.lstsq(free, rest, rcond=None)[0]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=1.2)


def test_damping_may_change_with_time() -> None:
    """Strong damping in the second half ends the oscillation there."""
    t, w = np.arange(2000) / 1000.0, 2 * np.pi * 10.0
    d = np.where(t < 1.0, 0.0, w)[:, None]
    load = np.zeros((len(t), 1, 1))
    load[1] = w**2
    S = 1.0 / (1.0 + d * 5e-4 + w**2 * 1e-6 / 12)[:, :, None]
    x, v, a = (np.empty_like(load) for _ in range(3))
    spring_responses(S, load, np.array([w**2]), d, 1 / 12, 1e-3, x, v, a)
    assert np.abs(x[800:1000]).max() == pytest.approx(np.abs(x[100:300]).max(), rel=0.01)
    assert np.abs(x[1500:]).max() < 1e-4 * np.abs(x[:1000]).max()
