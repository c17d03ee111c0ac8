"""Nonlinear friction of the independent joints of linkages, with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import ModelError
from dynid.excitation.basis import random_fourier
from dynid.friction.models import friction_model
from dynid.friction.pieces import Features
from tests.support.errors import expect_error
from tests.support.friction_truth import EXACT

Array = NDArray[np.float64]
STRIBECK = {"fc": 4.0, "fv": 6.0, "fs": 5.0, "vs": 0.1}


def moved(robot: dynid.Robot, seed: int) -> tuple[Array, Array, Array, Array]:
    t = np.arange(4000) / 400.0
    reach = 0.5 * np.ones(robot.n)
    return t, *random_fourier(robot.home - reach, robot.home + reach, 3 * reach, 10.0, t, seed)


def record(
    robot: dynid.Robot, joint: str, model: str, values: dict[str, float], noise: float = 0.2, seed: int = 3
) -> dynid.Recording:
    """One run of a linkage without friction but for a model on one joint."""
    j = robot.coordinates.index(joint)
    t, q, v, a = moved(robot, seed)
    torque = dynid.inverse_dynamics(robot.without("f*"), q, v, a)
    torque[:, j] += friction_model(model).torque(Features(v[:, j], torque[:, j], None), values)
    torque += noise * np.random.default_rng(seed).normal(size=torque.shape)
    return dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque, name="run"),))


@pytest.mark.parametrize("joint", ["arm", "flange"])
def test_truth_is_chosen_recovered_and_applied(joint: str) -> None:
    """The flange is the fourth coordinate and the last joint of the tree; its friction is found beside all bodies."""
    robot = dynid.load_robot("palletizer")
    assert robot.tree_coordinates.index("flange") > robot.coordinates.index("flange")
    recording = record(robot, joint, "stribeck", STRIBECK)
    models = ("coulomb+viscous", "asymmetric", "stribeck", "load")
    fit = dynid.friction.fit_friction(robot.without("f*"), recording, joint, models=models, signals=EXACT)
    assert fit.best.name == "stribeck"
    for name, value in STRIBECK.items():
        assert abs(fit.parameters[name] - value) <= 3 * fit.std[name] and fit.std[name] < 0.2 * value
    rubbing = fit.apply(robot.without("f*"))
    _, q, v, a = moved(robot, 4)
    torque = dynid.inverse_dynamics(rubbing, q, v, a) - dynid.inverse_dynamics(robot.without("f*"), q, v, a)
    j = robot.coordinates.index(joint)
    expected = fit.best.model.torque(Features(v[:, j], None, None), fit.parameters)
    np.testing.assert_allclose(torque[:, j], expected, atol=1e-9)
    np.testing.assert_allclose(np.delete(torque, j, axis=1), 0.0, atol=1e-9)


def test_a_custom_column_acts_on_its_joint_of_the_tree() -> None:
    robot, truth = dynid.load_robot("palletizer"), {"fc": 3.0, "fp": 8.0, "n": 0.6}
    recording = record(robot, "flange", "power", truth, noise=0.01)
    fit = dynid.friction.fit_friction(robot.without("f*"), recording, "flange", models=["power"], signals=EXACT)
    rubbing = fit.apply(robot.without("f*"))
    unseen = record(robot, "flange", "power", truth, noise=0.0, seed=4).runs[0]
    _, q, v, a = moved(robot, 4)
    rest = dynid.inverse_dynamics(rubbing, q, v, a) - unseen.torque
    assert np.abs(rest).max() < 0.05  # of friction up to 10 N m


def test_residual_of_an_estimate_shows_the_same_friction() -> None:
    robot = dynid.load_robot("palletizer").without("f*")
    recording = record(robot.with_drives("viscous+coulomb"), "flange", "stribeck", STRIBECK, noise=0.02)
    known = dynid.friction.fit_friction(robot, recording, "flange", models=["stribeck"], signals=EXACT).apply(robot)
    estimate = dynid.identify(known, recording, "wls", signals=EXACT)
    again = dynid.friction.fit_friction(known, recording, "flange", models=["stribeck"], estimate=estimate)
    assert {name: again.parameters[name] for name in STRIBECK} == pytest.approx(STRIBECK, rel=0.1)


def test_friction_that_depends_on_the_load_is_fitted_but_not_applied() -> None:
    robot = dynid.load_robot("palletizer").without("f*")
    values = {"fc": 4.0, "fv": 6.0, "fl": 0.1}
    recording = record(robot.with_drives("viscous"), "arm", "load", values)
    fit = dynid.friction.fit_friction(robot, recording, "arm", models=["load"], signals=EXACT, load="gravity")
    with expect_error(ModelError, code="unsupported"):
        fit.apply(robot)


def test_a_sweep_starts_from_the_assembled_posture() -> None:
    robot = dynid.load_robot("palletizer")
    sweep = dynid.friction.velocity_sweep(robot, "arm", [0.1, 0.2], between=(-0.2, 0.2))
    _, q, _, _ = sweep.sample(100.0)
    np.testing.assert_array_equal(np.delete(q, 1, axis=1)[0], np.delete(robot.home, 1))
    assert dynid.dynamics.assemble(robot, q).q.shape == (len(q), 10)
