"""Friction models: names, exact derivatives, nesting; the separable solver against a plain one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from dynid.errors import ModelError
from dynid.friction.models import FRICTION_WORDS, friction_model
from dynid.friction.pieces import PIECES, Features
from dynid.friction.separable import Separable
from tests.support.errors import expect_error

RNG = np.random.default_rng(5)
FEATURES = Features(RNG.normal(size=60), RNG.normal(size=60), RNG.uniform(15, 60, 60))


@pytest.mark.parametrize("name", [p.name for p in PIECES.values() if p.inner])
def test_derivatives_of_columns_are_those_of_differences(name: str) -> None:
    """Central differences of a step of 1e-6 are exact to about 1e-9 of columns of size one."""
    piece = PIECES[name]
    assert piece.slopes is not None
    theta = np.array([0.3 * low + 0.7 * high for low, high in (x.bounds(2.0) for x in piece.inner)])
    exact = piece.slopes(FEATURES, theta)
    for i in range(len(theta)):
        step = 1e-6 * np.eye(len(theta))[i]
        difference = piece.columns(FEATURES, theta + step) - piece.columns(FEATURES, theta - step)
        np.testing.assert_allclose(exact[i], difference / 2e-6, atol=1e-7)


@pytest.mark.parametrize("name", FRICTION_WORDS)
def test_every_word_makes_a_model_of_named_parameters(name: str) -> None:
    model = friction_model(name, offset=True)
    assert model.count == len(model.symbols) + len(model.inner) == len(model.units())
    values = dict.fromkeys(model.units(), 0.4)
    assert np.all(np.isfinite(model.torque(FEATURES, values)))


def test_models_contain_the_smaller_ones_that_they_can_become() -> None:
    plain, stribeck, shaped, both = map(
        friction_model, ("coulomb+viscous", "stribeck", "stribeck-shaped", "stribeck+load")
    )
    assert plain in stribeck and stribeck in shaped and stribeck in both and plain in both
    assert stribeck not in plain and shaped not in both and stribeck not in stribeck
    assert plain in friction_model("asymmetric") and plain in friction_model("power")
    assert plain not in friction_model("tanh") and plain not in friction_model("sigmoid")


def test_inner_parameters_without_meaning_under_the_smaller_model_are_known() -> None:
    """The Stribeck velocity is undefined without a Stribeck term; its shape is defined with one."""
    plain, stribeck, shaped = map(friction_model, ("coulomb+viscous", "stribeck", "stribeck-shaped"))
    assert stribeck.unseen_inner(plain) == [True]
    assert shaped.unseen_inner(plain) == [True, True]
    assert shaped.unseen_inner(stribeck) == [False, False]
    assert friction_model("power").unseen_inner(plain) == [False]


def test_limits_of_models_are_other_models() -> None:
    v = np.linspace(-2, 2, 81)
    f = Features(v)
    power = friction_model("power").torque(f, {"fc": 0.4, "fp": 0.3, "n": 1.0})
    np.testing.assert_allclose(power, friction_model("coulomb+viscous").torque(f, {"fc": 0.4, "fv": 0.3}), atol=1e-15)
    sigmoid = friction_model("sigmoid").torque(f, {"fc": 0.5, "vc": 1e-4, "v0": 0.0, "fv": 0.0})
    np.testing.assert_allclose(sigmoid, 0.5 * np.sign(v), atol=1e-12)
    still = {"fc": 1.0, "vc": 0.3, "v0": 0.2, "fv": 1.0}
    assert friction_model("sigmoid").torque(Features(np.zeros(1)), still)[0] == 0.0


@pytest.mark.parametrize("name", ["", "sliding", "stribeck+", "stribeck+tanh+sigmoid+rolling"])
def test_unknown_models_are_refused_in_words(name: str) -> None:
    with expect_error(ModelError, "name", "unknown_name" if name else "invalid_type"):
        friction_model(name)


def problem(seed: int) -> tuple[Separable, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    v = rng.uniform(-2, 2, 300)
    f, model = Features(v), friction_model("stribeck-shaped")
    W = np.column_stack([model.fixed(f), rng.normal(size=(300, 4))])
    y = model.torque(f, {"fc": 0.5, "fv": 0.2, "fs": 0.4, "vs": 0.3, "delta": 1.5}) + 0.02 * rng.normal(size=300)
    y += W[:, 2:] @ rng.normal(size=4)
    curved = Separable(W[:, 2:], W[:, :2], y, lambda t: model.curved(f, t), lambda t: model.slopes(f, t))
    return curved, model.bounds(2.0)


def test_the_projected_jacobian_is_that_of_differences() -> None:
    """Full Golub-Pereyra: exact away from the solution too, where Kaufman's is not."""
    separable, _ = problem(0)
    theta = np.array([0.6, 2.5])
    exact = separable.jacobian(theta)
    for i in range(2):
        step = 1e-6 * np.eye(2)[i]
        difference = (separable.residual(theta + step) - separable.residual(theta - step)) / 2e-6
        np.testing.assert_allclose(exact[:, i], difference, atol=1e-7)


def test_separable_and_plain_least_squares_find_the_same() -> None:
    """All parameters searched for together, from the separable solution's neighbourhood, end at the same point."""
    separable, (low, high) = problem(1)
    model = friction_model("stribeck-shaped")
    found = separable.solve(low, high, [x.grid(2.0) for x in model.inner], [True, True])
    known = np.hstack([separable.W, separable.F])
    b = known.shape[1]

    def rest(x: np.ndarray) -> np.ndarray:
        return separable.y - known @ x[:b] - separable.columns(x[b + 1 :]) @ x[b : b + 1]

    start = np.concatenate([found.linear, found.theta]) * 1.02
    plain = scipy.optimize.least_squares(rest, start, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(np.concatenate([found.linear, found.theta]), plain.x, rtol=2e-5, atol=1e-6)
    covariance = np.linalg.inv(plain.jac.T @ plain.jac)
    np.testing.assert_allclose(found.unscaled_covariance, covariance, rtol=1e-3, atol=1e-8)
    assert found.converged and not any(found.at_bound)
