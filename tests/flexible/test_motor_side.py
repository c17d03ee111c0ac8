"""Flexible joints from the motor encoder alone, and the frequency response that shows them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import dynid
from dynid.errors import MissingData, UnknownName
from dynid.flexible import Sides, frequency_response, identify_flexible
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from tests.support.errors import expect_error
from tests.support.flexible_plant import TRUTH, recording, robot


def test_stiffness_without_a_link_encoder() -> None:
    """The torques of fast motion show a spring that nobody measures: within 10 %, as its standard deviation says."""
    found = identify_flexible(robot(), recording(link=False))
    assert found.sides is Sides.MOTOR and found.seen.all()
    np.testing.assert_allclose(found.stiffness, TRUTH.stiffness, rtol=0.1)
    assert abs(found.stiffness[0] - TRUTH.stiffness) < 4 * found.stiffness_std[0]
    np.testing.assert_allclose(found.motor_inertia, TRUTH.motor_inertia, rtol=0.15)
    # The positions of the links follow, and are better than those of the motors.
    links = found.validate(recording(seed=1)).links
    assert links is not None and links.flexible[0] < 0.3 * links.rigid[0]


def test_two_joints_without_link_encoders() -> None:
    """Both springs of an arm, from rigid joints: a fit near the resonances alone would end in a local minimum."""
    bare = dynid.load_robot("twolink", friction="viscous", rotor_inertia=True)
    values = {"Ia": 0.5, "fv": 1.0}
    arm = bare.with_parameters([values.get(p.symbol, x) for p, x in zip(bare.layout, bare.parameters, strict=True)])
    rng = np.random.default_rng(0)
    t = np.arange(10_000) / 1000.0
    path = 0.5 * np.sin(np.outer(t, [2.0, 2.6])) + 0.2 * np.sin(np.outer(t, [5.0, 4.1]))
    for f in np.linspace(3.0, 20.0, 18):
        path += 0.02 / f * np.sin(2 * np.pi * (f * t[:, None] + rng.uniform(size=2)))
    stiffness = np.array([9e3, 4e3])
    springs = dynid.simulation.UnmodeledEffects(stiffness=stiffness, damping=[9.0, 4.0])
    law = dynid.controllers.pd(1000.0, [2000.0, 800.0], [200.0, 80.0])
    done = dynid.simulate(arm, dynid.ClosedLoop(controller=law), path, unmodeled=springs)
    # A torque is held for one period: at a sample it is the mean of two.
    held = 0.5 * (done.torque + np.vstack([done.torque[:1], done.torque[:-1]]))
    torque = held + 0.01 * held.std(axis=0) * rng.standard_normal(held.shape)
    run = Run(done.t, 1e-5 * np.round(done.motor_q / 1e-5), torque=torque)
    found = identify_flexible(bare, Recording(bare.coordinates, (run,)), link_friction="none")
    np.testing.assert_allclose(found.stiffness, stiffness, rtol=0.05)
    np.testing.assert_allclose(found.motor_inertia, 0.5, rtol=0.05)
    assert np.all(np.abs(found.stiffness - stiffness) < 4 * found.stiffness_std)


def test_a_motor_without_rotor_inertia_has_no_resonance() -> None:
    with expect_error(MissingData):
        identify_flexible(robot().with_drives(rotor_inertia=False), recording(link=False))


def test_frequency_response_of_a_wheel_on_a_spring() -> None:
    """White torque on two wheels: antiresonance at sqrt(k / J), resonance at sqrt(k (1 / J + 1 / I)), coherence one."""
    k, d, motor, link, rate = 2000.0, 1.5, 0.5, 1.0, 500.0
    A = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [-k, k, -d, d], [k, -k, d, -d]], dtype=float)
    A[2] /= motor
    A[3] /= link
    B = np.array([[0.0], [0.0], [1 / motor], [0.0]])
    system = scipy.signal.cont2discrete((A, B, np.eye(4), np.zeros((4, 1))), 1 / rate)
    torque = np.random.default_rng(0).normal(0.0, 10.0, 30_000)
    _, x, _ = scipy.signal.dlsim(scipy.signal.dlti(*system[:4], dt=1 / rate), torque)
    run = Run(np.arange(len(torque)) / rate, x[:, :1], torque=torque[:, None])
    found = frequency_response(Recording(("wheel",), (run,)), "wheel")
    assert found.antiresonance == pytest.approx(np.sqrt(k / link) / (2 * np.pi), abs=0.5)
    assert found.resonance == pytest.approx(np.sqrt(k / link + k / motor) / (2 * np.pi), abs=0.5)
    near = (found.frequency > 2) & (found.frequency < 30)
    assert np.median(found.coherence[near]) > 0.95
    with expect_error(UnknownName, "joint"):
        frequency_response(Recording(("wheel",), (run,)), "axle")
