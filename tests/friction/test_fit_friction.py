"""Friction of a joint with known truth: recovered, chosen, put on a robot; bad input in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import (
    Duplicate,
    InvalidShape,
    InvalidType,
    MissingArgument,
    MissingData,
    ModelError,
    NotFinite,
    NotIdentifiable,
    UnknownName,
)
from dynid.friction.pieces import REFERENCE_TEMPERATURE
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from tests.support.errors import expect_error
from tests.support.friction_truth import EXACT, LOADED, STRIBECK, arm, record

ROBOT = arm()
MODELS = ("coulomb+viscous", "asymmetric", "stribeck", "load", "stribeck+load")


def within_three_sigma(fit: dynid.friction.FrictionFit, truth: dict[str, float]) -> None:
    for name, value in truth.items():
        assert abs(fit.parameters[name] - value) <= 3 * fit.std[name], (name, fit.parameters[name], fit.std[name])
        assert fit.std[name] < 0.2 * abs(value), (name, fit.std[name])


@pytest.mark.parametrize(
    "model, truth",
    [
        ("stribeck", STRIBECK),
        ("load", LOADED),
        ("stribeck+load", STRIBECK | {"fl": 0.1}),
        ("asymmetric", {"fcp": 0.9, "fcn": 0.4, "fvp": 0.5, "fvn": 0.9}),
        ("power", {"fc": 0.4, "fp": 0.8, "n": 0.6}),
        ("coulomb+viscous", {"fc": 0.7, "fv": 0.5}),
    ],
)
def test_truth_is_chosen_and_lies_within_three_deviations(model: str, truth: dict[str, float]) -> None:
    """Together with all base parameters of the arm; noise of 0.05 N m."""
    fit = dynid.friction.fit_friction(ROBOT, record(model, truth), "joint2", signals=EXACT)
    assert fit.best.name == model
    within_three_sigma(fit, truth)
    assert fit.best.rms == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize(
    "model, truth",
    [
        ("stribeck-shaped", {"fc": 0.5, "fv": 0.5, "fs": 0.9, "vs": 0.4, "delta": 1.0}),
        ("load-directional", {"fc": 0.5, "fv": 0.6, "fld": 0.08, "flb": 0.25}),
        ("tanh", {"fc": 0.9, "vc": 0.17, "fv": 0.4}),
        ("sigmoid", {"fc": 1.0, "vc": 0.25, "v0": 0.15, "fv": 0.4}),
        ("quadratic", {"fc": 0.5, "fv": 0.3, "fq": 0.2}),
    ],
)
def test_other_models_recover_their_truth(model: str, truth: dict[str, float]) -> None:
    fit = dynid.friction.fit_friction(ROBOT, record(model, truth, noise=0.02), 1, models=[model], signals=EXACT)
    within_three_sigma(fit, truth)


@pytest.mark.parametrize("model", ["temperature", "temperature-exponential"])
def test_friction_of_a_warming_gear_is_recovered(model: str) -> None:
    warm = np.linspace(20, 55, 1000)
    truth = {"fc": 0.5, "fv": 0.8, **({"fvt": -0.012} if model == "temperature" else {"kt": 0.03})}
    recording = record(model, truth, temperature=warm)
    models = ("coulomb+viscous", model)
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, models=models, signals=EXACT, temperature=warm)
    assert fit.best.name == model
    within_three_sigma(fit, truth)
    hot, cold = fit.curve([1.0], temperature=50.0), fit.curve([1.0], temperature=REFERENCE_TEMPERATURE)
    assert hot[0] < cold[0]
    with expect_error(ModelError, "temperature", code="missing_argument"):
        fit.apply(ROBOT)
    assert fit.apply(ROBOT, temperature=30.0).n == 3


def test_residual_of_an_estimate_shows_the_same_friction() -> None:
    """An estimate with the right terms leaves the friction in the residual; its own errors do not count in `std`."""
    recording = record("stribeck", STRIBECK, noise=0.02)
    known = dynid.friction.fit_friction(ROBOT, recording, 1, models=["stribeck"], signals=EXACT).apply(ROBOT)
    estimate = dynid.identify(known, recording, "wls", signals=EXACT)
    fit = dynid.friction.fit_friction(known, recording, 1, models=MODELS, estimate=estimate)
    assert fit.best.name == "stribeck"
    for name, value in STRIBECK.items():
        assert fit.parameters[name] == pytest.approx(value, rel=0.05)


def test_decimated_rows_give_the_same_friction() -> None:
    """Columns are computed before decimation and decimated as the torques are: default signals, noisier torques."""
    recording = record("stribeck", STRIBECK, noise=0.3, samples=10000)
    fit = dynid.friction.fit_friction(ROBOT, recording, 1)
    assert fit.best.name == "stribeck" and fit.effective_rows < 0.9 * fit.rows
    within_three_sigma(fit, STRIBECK)


@pytest.mark.parametrize("truth, values", [("coulomb+viscous", {"fc": 0.7, "fv": 0.5}), ("stribeck", STRIBECK)])
def test_f_tests_keep_the_right_model(truth: str, values: dict[str, float]) -> None:
    """In at least nine of ten recordings; a level of 5 % leaves 95 % in the mean. 200 of each: the slow test."""
    assert share(truth, values, 10) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "truth, values", [("coulomb+viscous", {"fc": 0.7, "fv": 0.5}), ("stribeck", STRIBECK), ("load", LOADED)]
)
def test_f_tests_keep_the_right_model_in_two_hundred(truth: str, values: dict[str, float]) -> None:
    assert share(truth, values, 200) >= 0.9


def share(truth: str, values: dict[str, float], runs: int) -> float:
    chosen: Counter[str] = Counter()
    for seed in range(runs):
        recording = record(truth, values, seed=seed, samples=300)
        chosen[dynid.friction.fit_friction(ROBOT, recording, 1, models=MODELS, signals=EXACT).best.name] += 1
    return chosen[truth] / runs


@pytest.mark.slow
def test_the_speed_of_a_stribeck_term_that_is_not_there_does_not_fool_the_test() -> None:
    """p-values of a zero term are uniform: of 60, the share below 0.2 is 0.2 within three std, 0.155."""
    p = [
        dynid.friction.fit_friction(
            ROBOT,
            record("coulomb+viscous", {"fc": 0.7, "fv": 0.5}, seed=s, samples=300),
            1,
            models=MODELS[::2],
            signals=EXACT,
        )["stribeck"].p_value
        for s in range(60)
    ]
    assert abs(np.mean(np.array(p) < 0.2) - 0.2) < 0.155


@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_information_criteria_choose_the_truth_too(criterion: str) -> None:
    fit = dynid.friction.fit_friction(
        ROBOT, record("stribeck", STRIBECK), 1, models=MODELS, criterion=criterion, signals=EXACT
    )  # type: ignore[arg-type]
    assert fit.best.name == "stribeck"
    figures = [getattr(f, criterion) for f in fit.ranking]
    assert figures == sorted(figures)


def test_a_robot_with_the_friction_predicts_motion_it_has_not_seen() -> None:
    """With Stribeck friction on the robot the error on another motion is the noise; without, three times as much."""
    recording, other = (record("stribeck", STRIBECK, motion_seed=s, noise=0.02) for s in (3, 4))
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, signals=EXACT)
    better = fit.apply(ROBOT)
    assert {"fs_joint2", "fc_joint2"} <= set(better.parameter_names)
    errors = [dynid.identify(r, recording, "wls", signals=EXACT).validate(other).rmse[1] for r in (ROBOT, better)]
    assert errors[1] < 0.025 and errors[0] > 3 * errors[1]


def test_load_friction_on_a_robot_is_that_of_gravity() -> None:
    recording = record("load", LOADED, gravity_load=True, noise=0.02)
    fit = dynid.friction.fit_friction(ROBOT, recording, 1, models=MODELS, signals=EXACT, load="gravity")
    assert fit.best.name == "load"
    within_three_sigma(fit, LOADED)
    on_robot = fit.apply(ROBOT)
    estimate = dynid.identify(on_robot, recording, "wls", signals=EXACT)
    assert estimate.validate(recording).rmse[1] == pytest.approx(0.02, rel=0.15)
    rigid = dynid.friction.fit_friction(ROBOT, recording, 1, models=["load"], signals=EXACT)
    with expect_error(ModelError, "load", code="unsupported"):
        rigid.apply(ROBOT)


def test_forward_dynamics_undo_inverse_dynamics_with_fitted_friction() -> None:
    fit = dynid.friction.fit_friction(ROBOT, record("stribeck", STRIBECK), 1, models=["stribeck"], signals=EXACT)
    robot = fit.apply(ROBOT)
    q, v, a = np.random.default_rng(1).normal(size=(3, 5, 3))
    tau = dynid.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(dynid.forward_dynamics(robot, q, v, tau), a, atol=1e-9)
    bare = dynid.inverse_dynamics(fit.apply(ROBOT).without("*_joint2"), q, v, a)
    rotor = dynid.inverse_dynamics(robot.without("f*_joint2", "off_joint2"), q, v, a)
    assert not np.allclose(bare[:, 1], rotor[:, 1])
    np.testing.assert_allclose(tau[:, 1] - rotor[:, 1], fit.curve(v[:, 1]), atol=1e-9)


def test_results_read_as_text_and_as_data() -> None:
    fits = dynid.friction.select_friction(ROBOT, record("stribeck", STRIBECK), models=MODELS[::2], signals=EXACT)
    assert fits.joints == ROBOT.coordinates
    assert fits["joint2"].best.name == "stribeck" and fits["joint1"].best.name == "coulomb+viscous"
    page = fits["joint2"].to_dict()
    assert page["best"] == "stribeck" and len(page["ranking"]) == 3
    assert "vs" in fits["joint2"].summary()
    with expect_error(UnknownName, "name"):
        fits["joint2"]["load"]


def test_bad_input_is_refused_in_words() -> None:
    recording = record("stribeck", STRIBECK)
    run = recording.runs[0]
    with expect_error(MissingArgument, "joint"):
        dynid.friction.fit_friction(ROBOT, recording)
    with expect_error(UnknownName, "joint"):
        dynid.friction.fit_friction(ROBOT, recording, "elbow")
    with expect_error(UnknownName, "criterion"):
        dynid.friction.fit_friction(ROBOT, recording, 1, criterion="p")  # type: ignore[arg-type]
    with expect_error(MissingArgument, "temperature"):
        dynid.friction.fit_friction(ROBOT, recording, 1, models=["temperature"])
    with expect_error(NotFinite, "temperature"):
        bad = np.full(len(run), 20.0)
        bad[3] = np.nan
        dynid.friction.fit_friction(ROBOT, recording, 1, models=["temperature"], temperature=bad)
    with expect_error(InvalidShape, "temperature"):
        dynid.friction.fit_friction(ROBOT, recording, 1, models=["temperature"], temperature=[20.0, 21.0])
    with expect_error(Duplicate, "models"):
        dynid.friction.fit_friction(ROBOT, recording, 1, models=["stribeck", "coulomb+stribeck"])
    with expect_error(InvalidType):
        dynid.friction.fit_friction(ROBOT, "run.csv", 1)  # type: ignore[arg-type]
    with expect_error(UnknownName, "load"):
        dynid.friction.fit_friction(ROBOT, recording, 1, models=["load"], load="half")  # type: ignore[arg-type]
    silent = Recording(recording.joints, (replace(run, torque=None),))
    with expect_error(MissingData):
        dynid.friction.fit_friction(ROBOT, silent, 1)


def test_a_joint_that_moves_one_way_only_is_refused() -> None:
    robot = ROBOT
    t = np.linspace(0, 5, 500)
    q = np.column_stack([np.sin(3 * t), 0.3 * t + 0.02 * np.sin(2 * t), np.cos(2 * t)])
    torque = np.random.default_rng(0).normal(size=q.shape)
    recording = Recording(robot.coordinates, (Run(t, q, torque=torque, name="up"),))
    with expect_error(NotIdentifiable):
        dynid.friction.fit_friction(robot, recording, 1, models=["coulomb+viscous"])


def test_a_joint_without_load_leaves_load_models_out() -> None:
    """The first axis of the arm is vertical: gravity does not load it."""
    recording = record("coulomb+viscous", {"fc": 0.7, "fv": 0.5}, joint=0)
    fit = dynid.friction.fit_friction(ROBOT, recording, 0, signals=EXACT, load="gravity")
    assert not any("load" in f.name for f in fit.ranking) and "load of the joint is zero" in fit.summary()
    with expect_error(NotIdentifiable):
        dynid.friction.fit_friction(ROBOT, recording, 0, models=["load"], signals=EXACT, load="gravity")


def test_a_simulated_loop_with_the_friction_shows_it_again() -> None:
    """From a fit to the simulation and back: within a tenth, which sharp reversals between samples cost."""
    fit = dynid.friction.fit_friction(ROBOT, record("stribeck", STRIBECK), 1, models=["stribeck"], signals=EXACT)
    robot = fit.apply(ROBOT)
    t = np.arange(10000) / 1000.0
    path = 0.5 * np.column_stack([np.sin(1.5 * t + k) + 0.5 * np.sin((3 + k) * t) for k in range(3)])
    law = dynid.controllers.cascade(1000.0, *dynid.controllers.bandwidth_gains(robot, 5.0))
    recording = dynid.simulate(robot, dynid.ClosedLoop(controller=law), path).recording()
    again = dynid.friction.fit_friction(ROBOT, recording, 1, models=["coulomb+viscous", "stribeck"])
    assert again.best.name == "stribeck"
    for name in STRIBECK:
        assert again.parameters[name] == pytest.approx(fit.parameters[name], rel=0.1)
    loaded = dynid.friction.fit_friction(ROBOT, record("load", LOADED), 1, models=["load"], signals=EXACT)
    with expect_error(ModelError, "load", code="unsupported"):
        loaded.apply(ROBOT)


def test_temperatures_of_runs_of_different_length_are_taken_run_by_run() -> None:
    first, second = (record("temperature", {"fc": 0.5, "fv": 0.8, "fvt": -0.012}, samples=1000, seed=s,
                            temperature=np.full(1000, x)) for s, x in ((0, 25.0), (1, 50.0)))  # fmt: skip
    both = Recording(first.joints, (first.runs[0], second.runs[0].rows(0, 800)))
    warm = [np.full(1000, 25.0), np.full(800, 50.0)]
    settings = replace(EXACT, derivative="central")
    fit = dynid.friction.fit_friction(
        ROBOT, both, 1, models=["coulomb+viscous", "temperature"], temperature=warm, signals=settings
    )
    assert fit.best.name == "temperature"
    with expect_error(InvalidShape, "temperature"):
        dynid.friction.fit_friction(ROBOT, both, 1, models=["temperature"], temperature=warm[:1])


def test_friction_that_differs_by_the_load_is_not_seen_in_one_joint_of_unknown_mass() -> None:
    """Lifting and lowering give two torques for three unknowns: mass and two efficiencies. It is said, not guessed."""
    rows = [{"alpha": "-pi/2", "inertia": {"mass": 1.0, "com": [0.2, 0, 0]}, "drive": {"Ia": 0.01, "fc": 0.1}}]
    robot = dynid.Robot.from_dh(rows, "modified", name="pendulum")
    t = np.arange(1000) / 100.0
    q = (np.sin(2 * np.pi * 0.3 * t) + 0.4 * np.sin(2 * np.pi * 0.7 * t))[:, None]
    v = (0.6 * np.pi * np.cos(0.6 * np.pi * t) + 0.56 * np.pi * np.cos(1.4 * np.pi * t))[:, None]
    torque = 2.0 * np.sin(q) + 0.1 * np.sign(v) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    recording = Recording(robot.coordinates, (Run(t, q, torque=torque, name="run"),))
    fit = dynid.friction.fit_friction(robot, recording, models=["coulomb+viscous", "load-directional"])
    assert (
        [f.name for f in fit.ranking] == ["coulomb+viscous"]
        and "'fl" in fit.summary()
        and "not identifiable" in fit.summary()
    )
