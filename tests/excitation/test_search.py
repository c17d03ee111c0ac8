"""The search itself: its quadratic steps, and what it does when its model breaks down."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from dynid.excitation import search


@pytest.mark.parametrize("seed", range(5))
def test_quadratic_steps_are_optimal(seed: int) -> None:
    """Against scipy's SLSQP on the same program; the limits hold."""
    rng = np.random.default_rng(seed)
    n, m = 6, 15
    root = rng.normal(size=(n, n))
    curvature, gradient = root @ root.T + 0.1 * np.eye(n), rng.normal(size=n)
    rows, room = rng.normal(size=(m, n)), rng.uniform(0, 0.3, m)
    step = search._quadratic_step(curvature, gradient, rows, room)

    def cost(d: np.ndarray) -> float:
        return float(gradient @ d + 0.5 * d @ curvature @ d)

    other = scipy.optimize.minimize(
        cost,
        np.zeros(n),
        jac=lambda d: gradient + curvature @ d,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda d: room - rows @ d, "jac": lambda d: -rows}],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert (rows @ step - room).max() < 1e-9
    assert cost(step) == pytest.approx(other.fun, abs=1e-8)


def test_updates_keep_the_model_convex_or_it_is_begun_anew() -> None:
    """Damped updates with changes against the step stay definite; an indefinite model is recognised."""
    rng = np.random.default_rng(0)
    model = search._fresh(np.ones(4))
    for _ in range(30):
        step = rng.normal(size=4)
        model = search._updated(model, step, -step)
        assert search._definite(model)
    assert not search._definite(np.diag([1.0, -1e-12]))
