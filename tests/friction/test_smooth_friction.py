"""Smooth Coulomb friction: tanh and sigmoid, recovered from data of independent formulas."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.friction.models import friction_model
from dynid.friction.pieces import Features
from dynid.friction.rows import without_friction
from dynid.recording.recording import Recording
from tests.support.friction_truth import EXACT, arm, record

ROBOT = arm()


def with_law(law: object, noise: float = 0.02, seed: int = 0) -> Recording:
    """A recording of the arm whose second joint has friction of this formula, without any code of dynid's models."""
    assert callable(law)
    recording = record("viscous", {"fv": 0.0}, noise=noise, seed=seed)
    run = recording.runs[0]
    assert run.torque is not None
    v = np.gradient(run.q[:, 1], run.t)
    torque = run.torque.copy()
    torque[:, 1] += law(v)
    return Recording(recording.joints, (type(run)(run.t, run.q, torque=torque, name="run"),))


def test_tanh_is_recovered_and_selected() -> None:
    recording = with_law(lambda v: 0.9 * np.tanh(v / 0.15) + 0.4 * v)
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, signals=EXACT)
    assert fit.best.name == "tanh"
    for name, value in {"fc": 0.9, "vc": 0.15, "fv": 0.4}.items():
        assert abs(fit.parameters[name] - value) < 3 * fit.std[name] + 0.01 * value, name


def test_the_sigmoid_is_recovered_and_is_a_tanh() -> None:
    """2 / (1 + exp(-v / vc)) - 1 = tanh(v / (2 vc)): both models find it, and the one without a shift is selected."""
    recording = with_law(lambda v: 0.9 * (2.0 / (1.0 + np.exp(-v / 0.1)) - 1.0) + 0.4 * v)
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, models=["coulomb+viscous", "tanh", "sigmoid"], signals=EXACT)
    sigmoid, tanh = fit["sigmoid"], fit["tanh"]
    for name, value in {"fc": 0.9, "vc": 0.1, "fv": 0.4, "v0": 0.0}.items():
        assert abs(sigmoid.parameters[name] - value) < 3 * sigmoid.std[name] + 0.01 * value, name
    assert tanh.parameters["vc"] == pytest.approx(0.2, rel=0.05)
    assert fit.best.name == "tanh" and sigmoid.against == "tanh" and sigmoid.p_value > 0.05


def test_a_shifted_sigmoid_is_recovered_and_selected() -> None:
    """Friction of the Panda by Gaz et al. 2019: phi1 / (1 + exp(-phi2 (v + phi3))) less its value at rest."""
    phi = 1.8, 5.0, 0.2

    def law(v: np.ndarray) -> np.ndarray:
        return phi[0] / (1 + np.exp(-phi[1] * (v + phi[2]))) - phi[0] / (1 + np.exp(-phi[1] * phi[2]))

    fit = dynid.friction.fit_friction(
        ROBOT, with_law(law), 1, models=["coulomb+viscous", "tanh", "sigmoid"], signals=EXACT
    )
    assert fit.best.name == "sigmoid" and fit.best.p_value < 1e-6
    for name, value in {"fc": phi[0] / 2, "vc": 1 / phi[1], "v0": phi[2]}.items():
        assert abs(fit.parameters[name] - value) < 3 * fit.std[name] + 0.02 * value, name


def test_smooth_friction_on_a_robot_is_that_of_the_formula() -> None:
    """tanh becomes a built-in term with a slope, the sigmoid a custom one; applied twice, the terms are replaced."""
    v = np.linspace(-2, 2, 41)
    zero = np.zeros((41, 3))
    motion = zero.copy()
    motion[:, 1] = v
    bare = dynid.inverse_dynamics(without_friction(ROBOT, 1), zero, motion, zero)[:, 1]
    values = {"fc": 0.9, "vc": 0.15, "fv": 0.4, "v0": 0.1}
    for name in ("tanh", "sigmoid"):
        recording = record(name, values, noise=0.001)
        fit = dynid.friction.fit_friction(ROBOT, recording, 1, models=[name], signals=EXACT, offset=False)
        robot = fit.apply(ROBOT)
        assert fit.apply(robot).parameter_names == robot.parameter_names
        own = dynid.inverse_dynamics(robot, zero, motion, zero)[:, 1] - bare
        np.testing.assert_allclose(own, friction_model(name).torque(Features(v), fit.parameters), atol=1e-9)
    assert any(t.slope > 0 for t in dynid.friction.fit_friction(
        ROBOT, record("tanh", values), 1, models=["tanh"], signals=EXACT).apply(ROBOT).drives)  # fmt: skip
