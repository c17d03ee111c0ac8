"""Friction that builds up after a reversal: the closed form of a sinusoid, rest, and the limit of a step."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.signals.presliding import friction_state


def test_it_follows_the_differential_equation_of_dahl() -> None:
    """dz/dq = (1 - z sign(v)) / distance, integrated by small steps of Euler."""
    t = np.linspace(0.0, 6.0, 200_000)
    q, v = np.sin(2 * t)[:, None], np.cos(2 * t)[:, None]
    distance, z = 0.3, 1.0
    expected = np.empty(len(t))
    for k, step in enumerate(np.diff(q[:, 0], prepend=q[0, 0])):
        z += (1.0 - z * np.sign(v[k, 0])) * step / distance
        expected[k] = z
    assert np.abs(friction_state(q, v, distance)[:, 0] - expected).max() < 1e-3


def test_a_short_distance_is_a_step() -> None:
    t = np.linspace(0.0, 6.0, 2000)
    q, v = np.sin(2 * t)[:, None], np.cos(2 * t)[:, None]
    far = np.abs(v[:, 0]) > 0.2
    assert friction_state(q, v, 1e-4)[far] == pytest.approx(np.sign(v)[far], abs=1e-9)


def test_friction_stays_while_the_joint_rests() -> None:
    q = np.array([[0.0], [0.01], [0.01], [0.01], [0.02]])
    v = np.array([[-1.0], [1.0], [0.0], [0.0], [1.0]])
    state = friction_state(q, v, 0.01)[:, 0]
    assert state[1] == state[2] == state[3] == pytest.approx(1.0 - 2.0 * np.exp(-1.0))
    assert state[4] == pytest.approx(1.0 - 2.0 * np.exp(-2.0))
