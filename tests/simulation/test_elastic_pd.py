"""Control of motors behind flexible joints: the links follow the reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid import ClosedLoop, controllers
from dynid.dynamics import gravity_torque
from dynid.errors import InvalidValue, UnknownName
from dynid.simulation import Simulation, UnmodeledEffects
from dynid.simulation.laws import LinearController
from dynid.simulation.reference import Reference
from tests.support.errors import expect_error

RATE = 1000.0
STIFFNESS, DAMPING = np.array([4000.0, 1500.0]), np.array([5.0, 2.0])
GAINS = np.array([1500.0, 500.0]), np.array([80.0, 25.0])


def flexible_arm() -> dynid.Robot:
    robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True).with_gravity((0.0, -9.81, 0.0))
    values = {"Ia": 0.5, "fv": 1.0, "fc": 0.5}
    return robot.with_parameters([values.get(p.symbol, x) for p, x in zip(robot.layout, robot.parameters, strict=True)])


def smooth(seconds: float = 4.0) -> Reference:
    """Sums of sines, with exact derivatives."""
    t, w, size = np.arange(int(seconds * RATE)) / RATE, np.array([4.0, 6.0]), np.array([0.5, 0.4])
    angle = np.outer(t, w)
    return Reference(RATE, size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle))


def simulated(law: LinearController, reference: Reference | NDArray[np.float64]) -> Simulation:
    effects = UnmodeledEffects(stiffness=STIFFNESS, damping=DAMPING)
    return dynid.simulate(flexible_arm(), ClosedLoop(controller=law), reference, unmodeled=effects)


def link_error(done: Simulation) -> float:
    """Largest error of the links in the second half, where the start is forgotten."""
    half = len(done.t) // 2
    return float(np.abs(done.q - done.reference)[half:].max())


def test_links_follow_a_smooth_reference() -> None:
    """Feed-forward of rigid joints leaves the deflections; that of flexible joints leaves the period of the loop."""
    arm, path = flexible_arm(), smooth()
    rigid = link_error(simulated(controllers.pd(RATE, *GAINS).with_feedforward("full", arm), path))
    elastic = link_error(simulated(controllers.elastic_pd(RATE, arm, *GAINS, STIFFNESS, damping=DAMPING), path))
    assert rigid > 1e-2  # rad
    assert elastic < 0.05 * rigid  # measured: 0.033


def test_links_rest_at_the_reference_under_gravity() -> None:
    """A step to a posture: motors are held ahead by the deflection under gravity, so that links are where they should.

    Without Coulomb friction, which would hold the motors anywhere near.
    """
    arm = flexible_arm()
    frictionless = arm.with_parameters(
        [0.0 if p.symbol == "fc" else x for p, x in zip(arm.layout, arm.parameters, strict=True)]
    )
    goal = np.tile([0.6, -0.3], (4000, 1))
    effects = UnmodeledEffects(stiffness=STIFFNESS, damping=DAMPING)
    law = controllers.elastic_pd(RATE, frictionless, *GAINS, STIFFNESS, feedforward="gravity")
    done = dynid.simulate(frictionless, ClosedLoop(controller=law), goal, unmodeled=effects)
    np.testing.assert_allclose(done.q[-1], goal[-1], atol=1e-6)
    bent = gravity_torque(frictionless, goal[-1]) / STIFFNESS
    assert np.abs(bent).max() > 1e-3
    np.testing.assert_allclose(done.motor_q[-1] - done.q[-1], bent, atol=1e-6)


def test_rigid_joints_are_those_of_the_rigid_feedforward() -> None:
    arm, path = flexible_arm(), smooth(1.0)
    elastic = controllers.elastic_pd(RATE, arm, *GAINS, np.inf)
    rigid = controllers.pd(RATE, *GAINS).with_feedforward("full", arm)
    given = path.q, path.v, path.a
    np.testing.assert_allclose(elastic.torques_ahead(*given), rigid.torques_ahead(*given), atol=1e-9)


def test_wrong_springs_are_refused() -> None:
    arm = flexible_arm()
    with expect_error(InvalidValue):
        controllers.elastic_pd(RATE, arm, *GAINS, [100.0, 0.0])
    with expect_error(UnknownName, "feedforward"):
        controllers.elastic_pd(RATE, arm, *GAINS, 100.0, feedforward="none")  # type: ignore[arg-type]
