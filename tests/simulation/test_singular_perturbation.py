"""Control of links behind flexible joints, with encoders on both sides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid import ClosedLoop, controllers
from dynid.dynamics import gravity_torque
from dynid.errors import InvalidValue, MissingData, UnknownName
from dynid.simulation import Sensors, Simulation, UnmodeledEffects
from dynid.simulation.laws import CallableController, LinearController
from tests.simulation.test_elastic_pd import RATE, STIFFNESS, flexible_arm, link_error, smooth
from tests.support.errors import expect_error

GAINS = 400.0, 40.0
SPRINGS = UnmodeledEffects(stiffness=STIFFNESS)


def simulated(
    law: LinearController | CallableController,
    reference: object,
    *,
    sensors: Sensors = Sensors(),  # noqa: B008 (frozen)
    disturbance: NDArray[np.float64] | None = None,
) -> Simulation:
    loop = ClosedLoop(controller=law, sensors=sensors)
    return dynid.simulate(flexible_arm(), loop, reference, unmodeled=SPRINGS, disturbance=disturbance)


def vibration(done: Simulation) -> float:
    """Peak to peak deflection of the second joint in the last half second."""
    return float(np.ptp((done.motor_q - done.q)[-500:, 1]))


def test_feedback_of_links_needs_damped_springs() -> None:
    """Springs without damping: feedback of the links makes them vibrate until the loop diverges; the law damps them."""
    arm, rest = flexible_arm(), np.tile([0.4, -0.2], (3000, 1))
    push = np.zeros_like(rest)
    push[200:220, 1] = 40.0  # a knock at the link
    damped = simulated(controllers.singular_perturbation(RATE, arm, *GAINS, STIFFNESS), rest, disturbance=push)
    alone = simulated(
        controllers.singular_perturbation(RATE, arm, *GAINS, STIFFNESS, damping_ratio=0.0), rest, disturbance=push
    )
    assert damped.completed
    assert np.abs(damped.motor_q - damped.q)[200:300, 1].max() > 1e-3  # the knock bends the joint
    assert vibration(damped) < 1e-6
    assert not alone.completed or vibration(alone) > 1e-2


def test_links_follow_a_smooth_reference() -> None:
    arm, path = flexible_arm(), smooth()
    law = controllers.singular_perturbation(RATE, arm, *GAINS, STIFFNESS)
    rigid = controllers.pd(RATE, [1500.0, 500.0], [80.0, 25.0]).with_feedforward("full", arm)
    exact = Sensors(velocity="exact")
    assert link_error(simulated(law, path, sensors=exact)) < 0.05 * link_error(simulated(rigid, path, sensors=exact))


def test_a_wrong_stiffness_of_the_model_leaves_the_links_at_rest_where_they_should_be() -> None:
    """Springs half as stiff as in the model: held motors leave the difference to the links, fed back links less."""
    arm = flexible_arm()
    frictionless = arm.with_parameters(
        [0.0 if p.symbol == "fc" else x for p, x in zip(arm.layout, arm.parameters, strict=True)]
    )
    rest, soft = np.tile([0.4, -0.2], (4000, 1)), UnmodeledEffects(stiffness=STIFFNESS / 2, damping=5.0)
    held = controllers.elastic_pd(RATE, frictionless, 1e5, 6e2, STIFFNESS, feedforward="gravity")
    fed_back = controllers.singular_perturbation(RATE, frictionless, *GAINS, STIFFNESS, feedforward="gravity")
    errors = []
    for law in (held, fed_back):
        done = dynid.simulate(frictionless, ClosedLoop(controller=law), rest, unmodeled=soft)
        assert done.completed
        errors.append(np.abs(done.q - rest)[-1])
    bent = np.abs(gravity_torque(frictionless, rest[-1])) / STIFFNESS
    np.testing.assert_allclose(errors[0], bent, rtol=0.1)
    assert np.all(errors[1] < 1e-6)


def test_encoders_of_links_have_their_own_noise_and_steps() -> None:
    """What the law is given: motors and links, each with its own noise and the steps of an encoder."""
    given: list[list[NDArray[np.float64]]] = []

    def watch(*args: NDArray[np.float64]) -> NDArray[np.float64]:
        given.append([x.copy() for x in args[4:]])
        return np.zeros(2)

    law = CallableController(RATE, 2, watch, link_encoders=True)
    sensors = Sensors(noise=1e-4, counts=1e5)
    done = simulated(law, np.zeros((400, 2)), sensors=sensors)
    motor_q, motor_v, link_q, link_v = (np.array(x) for x in zip(*given, strict=True))
    step = 2 * np.pi / 1e5
    errors = [motor_q - done.motor_q, link_q - done.q]
    for error, seen in zip(errors, (motor_q, link_q), strict=True):
        assert 0.7e-4 < error.std() < 1.4e-4
        np.testing.assert_allclose(seen / step, np.rint(seen / step), atol=1e-6)
    assert abs(np.corrcoef(errors[0].ravel(), errors[1].ravel())[0, 1]) < 0.2
    np.testing.assert_allclose(link_v[1:], np.diff(link_q, axis=0) * RATE, atol=1e-9)
    np.testing.assert_allclose(motor_v[1:], np.diff(motor_q, axis=0) * RATE, atol=1e-9)


def test_bad_input_is_refused() -> None:
    arm = flexible_arm()
    with expect_error(InvalidValue):
        controllers.singular_perturbation(RATE, arm, *GAINS, [100.0, 0.0])
    with expect_error(InvalidValue, "damping_ratio"):
        controllers.singular_perturbation(RATE, arm, *GAINS, 100.0, damping_ratio=-1.0)
    with expect_error(UnknownName, "feedforward"):
        controllers.singular_perturbation(RATE, arm, *GAINS, 100.0, feedforward="none")  # type: ignore[arg-type]
    values = zip(arm.layout, arm.parameters, strict=True)
    bare = arm.with_parameters([0.0 if p.symbol == "Ia" else x for p, x in values])
    with expect_error(MissingData, "model"):
        controllers.singular_perturbation(RATE, bare, *GAINS, [100.0, np.inf])
