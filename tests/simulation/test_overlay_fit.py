"""The error of an internal model, from the torques of the feedback beside it."""

from __future__ import annotations

import numpy as np

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from tests.support.closed_loops import TX40, Array, refused

RATE = 500.0
RIGHT = dynid.load_robot("twolink").with_drives("none", rotor_inertia=False)
WRONG = RIGHT.with_parameters(0.6 * RIGHT.parameters)


def states(n: int, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(3, count, n))


def test_the_difference_of_two_models_comes_back() -> None:
    """From more samples than a block holds, as torques of any other motion; base values are the differences."""
    wrong = TX40.with_parameters(0.7 * TX40.parameters)
    motion, other = states(6, 2500), states(6, 50, 1)
    missing = dynid.inverse_dynamics(TX40, *motion) - dynid.inverse_dynamics(wrong, *motion)
    found = controllers.fit_overlay(TX40, *motion, missing)
    expected = dynid.inverse_dynamics(TX40, *other) - dynid.inverse_dynamics(wrong, *other)
    np.testing.assert_allclose(found.torques(*other), expected, atol=1e-7 * np.abs(expected).max())
    base = dynid.base_parameters(TX40)
    np.testing.assert_allclose(
        base.values(found.robot.parameters), base.values() - base.values(wrong.parameters), atol=1e-8
    )


def test_a_second_fit_adds_what_was_left() -> None:
    """Half of the torque first, the other half with the first correction laid over."""
    motion = states(6, 300)
    missing = dynid.inverse_dynamics(TX40, *motion)
    first = controllers.fit_overlay(TX40, *motion, 0.5 * missing)
    both = controllers.fit_overlay(TX40, *motion, missing - first.torques(*motion), previous=first)
    np.testing.assert_allclose(both.torques(*motion), missing, atol=1e-7)


def test_what_the_motion_does_not_show_stays_as_it_was() -> None:
    """At rest only first moments are seen, so the inertia of the previous correction is kept."""
    q, none = states(2, 50)[0], np.zeros((50, 2))
    robot = RIGHT.with_gravity([0, -9.81, 0])
    weight = dynid.dynamics.gravity_torque(robot, q)
    first = controllers.fit_overlay(robot, q, none, none, weight)
    base = dynid.base_parameters(robot)
    seen = np.array([name.startswith("m") for name in base.names])
    np.testing.assert_allclose(base.values(first.robot.parameters), np.where(seen, base.values(), 0.0), atol=1e-9)
    again = controllers.fit_overlay(robot, q, none, none, weight, previous=controllers.rigid(robot))
    np.testing.assert_allclose(base.values(again.robot.parameters), np.where(seen, 2.0, 1.0) * base.values(), atol=1e-9)


def test_iterations_find_the_error_in_the_loop() -> None:
    """A soft PD law beside a wrong model: every fit leaves less of the error than the one before it."""
    t = np.arange(round(4 * RATE)) / RATE
    w = 2 * np.pi * np.array([[0.5, 0.75], [1.25, 1.0]])
    size = np.array([[0.6, 0.5], [0.15, 0.2]])
    q, v, a = (
        sum(size[k] * w[k] ** order * np.sin(w[k] * t[:, None] + order * np.pi / 2) for k in range(2))
        for order in range(3)
    )
    path = Reference(RATE, q, v, a)
    kp, kd = np.array([300.0, 100.0]), np.array([30.0, 10.0])
    law = controllers.pd(RATE, kp, kd).with_feedforward("full", WRONG)
    base = dynid.base_parameters(RIGHT)
    wanted = base.values() - base.values(WRONG.parameters)
    correction, errors, off = None, [], [np.abs(wanted).max()]
    for _ in range(3):
        one = law if correction is None else controllers.overlay(law, correction)
        run = simulate(RIGHT, ClosedLoop(controller=one, sensors=Sensors(velocity="exact")), path)
        errors.append(float(np.linalg.norm(run.tracking_rmse)))
        feedback = kp * (path.q - run.measured_q) + kd * (path.v - run.measured_v)
        correction = controllers.fit_overlay(RIGHT, q, v, a, feedback, previous=correction)
        off.append(float(np.abs(base.values(correction.robot.parameters) - wanted).max()))
    assert errors[1] < 0.5 * errors[0] and errors[2] < 0.5 * errors[1] and off[-1] < 0.1 * off[0]


def test_data_that_cannot_be_fitted_are_refused() -> None:
    q, v, a = states(2, 20)
    refused(lambda: controllers.fit_overlay(RIGHT, q, v, a, a[:5]), "q", "(5, 2)")
    refused(lambda: controllers.fit_overlay(RIGHT, q, v, a, np.where(a > 0, np.nan, a)), "feedback", "finite")
    refused(lambda: controllers.fit_overlay(RIGHT, q[:0], v[:0], a[:0], a[:0]), "(1, 2)")
    refused(lambda: controllers.fit_overlay(RIGHT.with_base("floating"), q, v, a, a), "base", "moves")
    other = controllers.rigid(dynid.load_robot("twolink"))
    refused(lambda: controllers.fit_overlay(RIGHT, q, v, a, a, previous=other), "previous", "same")
