"""Friction does not return energy: coefficients are not negative, and a bound that is active is named."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import dynid
from dynid.errors import Infeasible
from dynid.friction.models import friction_model
from dynid.friction.pieces import Features
from dynid.friction.separable import Separable
from tests.support.errors import expect_error
from tests.support.friction_truth import EXACT, arm, record

ROBOT = arm()


def problem(values: dict[str, float], name: str = "stribeck") -> Separable:
    """Rows with an arbitrary column beside the friction of a model."""
    rng = np.random.default_rng(1)
    v = rng.uniform(-2, 2, 200)
    f, model = Features(v), friction_model(name)
    W = rng.normal(size=(200, 2))
    y = model.torque(f, values) + W @ [0.3, -0.2] + 0.02 * rng.normal(size=200)
    return Separable(W, model.fixed(f), y, lambda t: model.curved(f, t), lambda t: model.slopes(f, t))


@pytest.mark.parametrize("fs", [-0.4, 0.4])
@pytest.mark.parametrize("theta", [0.1, 0.3, 1.0])
def test_coefficients_for_given_inner_parameters_are_those_of_bounded_least_squares(fs: float, theta: float) -> None:
    """scipy's bounded solver on all columns at once is the oracle; two base columns may have any sign."""
    separable = problem({"fc": 0.1, "fv": -0.05, "fs": fs, "vs": 0.3})
    C = np.hstack([separable.W, separable.F, separable.columns(np.array([theta]))])
    oracle = scipy.optimize.lsq_linear(C, separable.y, ([-np.inf] * 2 + [0.0] * 3, np.inf), tol=1e-14)
    residual = separable.residual(np.array([theta]))
    assert residual @ residual == pytest.approx(2 * oracle.cost, rel=1e-9)
    np.testing.assert_allclose(residual, separable.y - C @ oracle.x, atol=1e-6)


def test_the_jacobian_with_an_active_bound_is_that_of_differences() -> None:
    separable = problem({"fc": 0.5, "fv": -0.2, "fs": 0.4, "vs": 0.3})
    theta, step = np.array([0.4]), np.array([1e-6])
    difference = (separable.residual(theta + step) - separable.residual(theta - step)) / 2e-6
    np.testing.assert_allclose(separable.jacobian(theta)[:, 0], difference, atol=1e-7)


@pytest.mark.parametrize(
    "model, truth, held",
    [
        ("coulomb+viscous", {"fc": 0.5, "fv": -0.1}, {"fv"}),
        ("coulomb+viscous", {"fc": -0.3, "fv": 0.8}, {"fc"}),
        ("asymmetric", {"fcp": 0.9, "fcn": -0.3, "fvp": 0.5, "fvn": 0.4}, {"fcn"}),
        ("quadratic", {"fc": 0.5, "fv": 0.9, "fq": -0.1}, {"fq"}),
    ],
)
def test_a_negative_term_is_held_at_zero_and_named(model: str, truth: dict[str, float], held: set[str]) -> None:
    fit = dynid.friction.fit_friction(ROBOT, record(model, truth), 1, models=[model], signals=EXACT)
    assert set(fit.best.at_zero) == held == set(fit.best.to_dict()["at_zero"])
    assert all(fit.parameters[name] == 0.0 for name in held)
    for name in held:
        assert f"{name} of '{model}' is held at zero" in fit.summary()


@pytest.mark.parametrize("seed", range(5))
def test_no_fitted_model_returns_energy(seed: int) -> None:
    """Torques of noise alone: without the bound half of all coefficients would be negative."""
    fit = dynid.friction.fit_friction(
        ROBOT, record("coulomb+viscous", {"fc": 0.0, "fv": 0.0}, seed=seed), 1, signals=EXACT, offset=False
    )
    v = np.linspace(-3, 3, 301)
    assert len(fit.ranking) == 8
    assert any(f.at_zero for f in fit.ranking)
    for f in fit.ranking:
        for load in (-20.0, 0.0, 20.0):
            assert np.all(v * f.curve(v, load=load) >= 0.0), f.name


def test_a_smooth_reversal_is_not_a_negative_stribeck_term() -> None:
    """Friction that falls towards zero velocity is what tanh describes; the Stribeck model says that it does not."""
    recording = record("tanh", {"fc": 0.8, "vc": 0.2, "fv": 0.5})
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, signals=EXACT)
    assert fit.best.name == "tanh" and not fit.best.at_zero
    stribeck = fit["stribeck"]
    assert stribeck.at_zero and "compare the model 'tanh'" in " ".join(stribeck.notes)
    assert min(stribeck.parameters[name] for name in ("fc", "fv", "fs")) == 0.0


def test_viscous_friction_that_warmth_makes_negative_is_left_out() -> None:
    """At 55 deg C the damping 0.5 - 0.03 (T - 20) is negative; at 30 deg C it is not."""
    warm = np.linspace(20, 55, 1000)
    truth = {"fc": 0.5, "fv": 0.5, "fvt": -0.03}
    given = {"models": ("coulomb+viscous", "temperature"), "signals": EXACT}
    recording = record("temperature", truth, temperature=warm)
    recording.runs[0].torque[:, 1] -= 0.5 * np.sign(np.gradient(recording.runs[0].q[:, 1]))
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, temperature=warm, **given)  # type: ignore[arg-type]
    assert [f.name for f in fit.ranking] == ["coulomb+viscous"] and "returns energy" in fit.summary()
    with expect_error(Infeasible):
        dynid.friction.fit_friction(ROBOT, recording, 1, models=["temperature"], temperature=warm, signals=EXACT)
    mild = np.linspace(20, 30, 1000)
    cool = record("temperature", truth, temperature=mild)
    assert dynid.friction.fit_friction(ROBOT, cool, 1, temperature=mild, **given).best.name == "temperature"  # type: ignore[arg-type]
