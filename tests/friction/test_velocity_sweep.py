"""Velocity sweeps: the motion, the friction map, and the models fitted to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import Infeasible, InvalidValue, NotIdentifiable, TooFew
from dynid.friction.models import friction_model
from dynid.friction.pieces import Features
from dynid.friction.rows import without_friction
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.report.friction import friction_figure
from dynid.signals.settings import Signals
from tests.support.errors import expect_error
from tests.support.friction_truth import STRIBECK, arm

ROBOT = arm()
VELOCITIES = np.geomspace(0.05, 2.0, 10)
SIGNALS = Signals(cutoff=None, decimate=(), trim=0.0)


def sweep_recording(noise: float = 0.1, velocities: np.ndarray = VELOCITIES, seed: int = 0) -> Recording:
    """The second joint, which lifts the arm, at ten velocities; Stribeck friction and an offset."""
    sweep = dynid.friction.velocity_sweep(ROBOT, 1, velocities, between=(-0.4, 0.4))
    t, q, v, a = sweep.sample(200.0)
    torque = dynid.inverse_dynamics(without_friction(ROBOT, 1), q, v, a)
    torque[:, 1] += 0.3 + friction_model("stribeck").torque(Features(v[:, 1]), STRIBECK)
    torque += noise * np.random.default_rng(seed).normal(size=torque.shape)
    return Recording(ROBOT.coordinates, (Run(t, q, torque=torque, name="sweep"),))


def test_the_motion_holds_every_speed_both_ways_and_is_smooth() -> None:
    sweep = dynid.friction.velocity_sweep(ROBOT, "joint2", [0.2, 1.0], between=(-0.5, 0.5), acceleration=4.0)
    t, q, v, a = sweep.sample(1000.0)
    assert sweep.duration == pytest.approx(t[-1], abs=0.01)
    for s in (0.2, -0.2, 1.0, -1.0):
        even = np.isclose(v[:, 1], s)
        assert np.sum(even) / 1000 >= 0.7 / abs(s)
        assert q[even, 1].min() >= -0.501 and q[even, 1].max() <= 0.501
    assert q[:, 1].max() == pytest.approx(0.5 + 1.0 / 4.0, abs=1e-3)  # a reversal needs the square of the velocity
    assert np.abs(a).max() <= 4.0 + 1e-9
    # Trapezoids of smooth curves at 1 kHz: errors of about 1e-6 of what they sum to.
    np.testing.assert_allclose(np.cumsum(0.5 * (v[1:, 1] + v[:-1, 1])) / 1000 + q[0, 1], q[1:, 1], atol=1e-4)
    assert np.all(q[:, [0, 2]] == 0) and v[0, 1] == 0


def test_the_map_shows_friction_without_gravity_and_offset() -> None:
    """Gravity of several N m cancels between the directions; the map is right within its own standard deviations."""
    found = dynid.friction.friction_map(ROBOT, sweep_recording(), 1, signals=SIGNALS)
    truth = friction_model("stribeck").torque(Features(found.velocity), STRIBECK)
    np.testing.assert_allclose(found.velocity, VELOCITIES, rtol=0.02)
    z = (found.friction - truth) / found.std
    # Ten values, ten standard deviations of twenty bins each: Student's t with 19 degrees stays within 4.
    assert np.abs(z).max() < 4.0 and np.all(found.std < 0.05)
    assert np.all(found.load > 1.0)
    assert "10 velocities" in found.summary() and len(found.to_dict()["velocity"]) == 10
    assert type(found).from_dict(found.to_dict()).summary() == found.summary()


def test_models_fitted_to_the_map_recover_the_truth() -> None:
    found = dynid.friction.friction_map(ROBOT, sweep_recording(noise=0.05), 1, signals=SIGNALS)
    fit = dynid.friction.fit_friction(ROBOT, found, models=("coulomb+viscous", "stribeck"))
    assert fit.best.name == "stribeck" and fit.joint == "joint2"
    for name, value in STRIBECK.items():
        assert abs(fit.parameters[name] - value) < 4 * fit.std[name] + 0.02 * abs(value)


def test_sweeps_are_written_and_read_again(tmp_path: Path) -> None:
    sweep = dynid.friction.velocity_sweep(ROBOT, 1, [0.5, 1.0], between=(-0.4, 0.4))
    sweep.to_csv(tmp_path / "sweep.csv", 100.0)
    run = dynid.load_recording(tmp_path / "sweep.csv", ROBOT).runs[0]
    np.testing.assert_allclose(run.q, sweep.sample(100.0)[1], atol=1e-12)


def test_bad_sweeps_and_maps_are_refused_in_words() -> None:
    with expect_error(InvalidValue, "velocities"):
        dynid.friction.velocity_sweep(ROBOT, 1, [1.0])
    with expect_error(InvalidValue, "velocities"):
        dynid.friction.velocity_sweep(ROBOT, 1, [1.0, np.nan])
    with expect_error(InvalidValue, "between"):
        dynid.friction.velocity_sweep(ROBOT, 1, [1.0, 2.0], between=(1.0, -1.0))
    tight = ROBOT.with_limits({"joint2": {"position": (-0.5, 0.5), "velocity": 3.0}})
    with expect_error(Infeasible, "between"):
        dynid.friction.velocity_sweep(tight, 1, [1.0, 2.0], between=(-0.45, 0.45))
    with expect_error(InvalidValue, "velocities"):
        dynid.friction.velocity_sweep(tight, 1, [1.0, 4.0])
    recording = sweep_recording(velocities=np.array([0.3, 1.0]))
    found = dynid.friction.friction_map(ROBOT, recording, 1, signals=SIGNALS)
    with expect_error(TooFew, "models"):
        dynid.friction.fit_friction(ROBOT, found, models=["stribeck"])
    with expect_error(NotIdentifiable):
        dynid.friction.fit_friction(ROBOT, found, models=["asymmetric"])
    up = recording.between(0.0, 1.5)
    with expect_error(NotIdentifiable):
        dynid.friction.friction_map(ROBOT, up, 1, signals=SIGNALS)


def test_friction_of_a_prismatic_joint_has_linear_units() -> None:
    """Force in N, damping in N s/m, velocity in m/s, in every table and on the robot."""
    rows = [{"kind": "prismatic", "a": 0.0, "inertia": {"mass": 2.0}, "drive": {"fc": 1.0, "fv": 3.0}}]
    cart = dynid.Robot.from_dh(rows, "modified", name="cart")
    sweep = dynid.friction.velocity_sweep(cart, None, np.geomspace(0.05, 1.0, 8), between=(-0.2, 0.2))
    t, q, v, a = sweep.sample(200.0)
    torque = dynid.inverse_dynamics(cart, q, v, a) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    recording = Recording(cart.coordinates, (Run(t, q, torque=torque, name="sweep"),))
    found = dynid.friction.friction_map(cart, recording, signals=SIGNALS)
    assert (
        found.prismatic and "m/s" in found.summary() and "rad" not in found.summary() and "N m" not in found.summary()
    )
    fit = dynid.friction.fit_friction(cart, found, models=["coulomb+viscous", "stribeck"])
    assert fit["stribeck"].units == {"fc": "N", "fv": "N s/m", "fs": "N", "vs": "m/s"}
    assert fit.parameters["fv"] == pytest.approx(3.0, rel=0.05)
    for text in (fit.summary(), friction_figure(fit, "cart", found)):
        assert "rad" not in text and "N m" not in text
    robot = fit.apply(cart, model="stribeck")
    assert next(t for t in robot.drives if t.symbol == "fs").unit == "N"
