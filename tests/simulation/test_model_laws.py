"""Laws that know the robot do what their formulas say, and with the right model leave linear error dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from tests.support.closed_loops import TX40, Array, pendulum, refused, still, tx40_reference, wheel

EXACT = Sensors(velocity="exact")
SLOPE = 20.0
BARE = TX40.without("f*", "off*")
RATE = 1000.0


def decaying(t: Array, first: Array, gain: float) -> Array:
    """Error (N, n) of a critically damped loop of natural frequency sqrt(gain) that starts at rest."""
    w = np.sqrt(gain)
    return first * ((1 + w * t) * np.exp(-w * t))[:, None]


def test_computed_torque_leaves_linear_error_dynamics() -> None:
    """e'' + 40 e' + 400 e = 0 from any start, joint by joint, however the arm moves."""
    path = tx40_reference(5000.0, 0.6)
    law = controllers.computed_torque(5000.0, TX40, 400.0, 40.0)
    first = np.array([0.1, -0.1, 0.2, 0.1, -0.2, 0.3])
    start = (path.q[0] + first, path.v[0])
    done = simulate(TX40, ClosedLoop(controller=law, sensors=EXACT, coulomb_slope=SLOPE), path, initial=start)
    # The torque is held for 0.2 ms and friction turns in a few ms: errors of 0.3 rad to within 1 mrad.
    np.testing.assert_allclose(done.q - path.q, decaying(done.t, first, 400.0), atol=1e-3)


def test_computed_torque_with_any_model_is_the_compiled_one() -> None:
    """A torque model asked at every period gives the robot's own law."""
    path = tx40_reference(RATE, 0.2)
    robot = TX40.with_smooth_coulomb(SLOPE)
    ours = simulate(
        TX40, ClosedLoop(controller=controllers.computed_torque(RATE, robot, 400.0, 40.0), coulomb_slope=SLOPE), path
    )
    law = controllers.computed_torque(RATE, controllers.rigid(robot), 400.0, 40.0)
    theirs = simulate(TX40, ClosedLoop(controller=law, coulomb_slope=SLOPE), path)
    np.testing.assert_allclose(theirs.q, ours.q, atol=1e-9)
    np.testing.assert_allclose(theirs.torque, ours.torque, atol=1e-5)

    class Half:
        def torques(self, q: Array, v: Array, a: Array) -> Array:
            return 0.5 * a

    wave = 0.3 * np.sin(2 * np.pi * np.arange(300) / RATE)[:, None]
    done = simulate(
        wheel(0.5),
        ClosedLoop(controller=controllers.computed_torque(RATE, Half(), [400.0], [40.0]), sensors=EXACT),
        wave,
    )
    assert done.completed and np.abs(done.q - wave).max() < 1e-2


def test_model_position_by_hand() -> None:
    """Coriolis + gravity + M (kp (q_ref - q) - kd v), kd = 2 sqrt(kp); no friction, rotors only where asked."""
    path = tx40_reference(RATE, 0.2)
    kp = np.array([400.0, 300, 200, 500, 600, 700])
    for rotors, model in ((False, TX40.without("f*", "off*", "Ia*")), (True, BARE)):
        done = simulate(TX40, ClosedLoop(controller=controllers.model_position(RATE, TX40, kp, rotors=rotors)), path)
        wish = kp * (path.q - done.measured_q) - 2 * np.sqrt(kp) * done.measured_v
        M = dynid.mass_matrix(model, done.measured_q)
        expected = dynid.dynamics.bias_torque(model, done.measured_q, done.measured_v) + np.einsum(
            "kij,kj->ki", M, wish
        )
        np.testing.assert_allclose(done.torque, expected, atol=1e-8)
    given = controllers.model_position(RATE, TX40, kp, kd=15.0)
    np.testing.assert_array_equal(given.D, np.column_stack([kp, 0 * kp, -kp, np.full(6, -15.0)]))


def test_model_position_with_the_right_model_is_a_double_integrator_under_pd() -> None:
    """A frictionless arm drawn to a pose: critically damped, every joint on its own."""
    path = still(6, 5000.0, 0.5, 0.3)
    law = controllers.model_position(5000.0, BARE, 400.0, rotors=True)
    first = np.array([0.5, -0.3, 0.4, 0.2, -0.5, 0.6])
    done = simulate(BARE, ClosedLoop(controller=law, sensors=EXACT), path, initial=(path.q[0] + first, np.zeros(6)))
    np.testing.assert_allclose(done.q - path.q, decaying(done.t, first, 400.0), atol=1e-3)


def test_augmented_pd_by_hand() -> None:
    """M a_ref + Coriolis + gravity + kp (q_ref - q) + kd (v_ref - v), term by term; no friction, rotors where asked."""
    path = tx40_reference(RATE, 0.2)
    kp, kd = np.array([2000.0, 2000, 600, 300, 300, 100]), np.array([60.0, 60, 20, 8, 8, 3])
    for rotors, model in ((False, TX40.without("f*", "off*", "Ia*")), (True, BARE)):
        law = controllers.augmented_pd(RATE, TX40, kp, kd, rotors=rotors)
        done = simulate(TX40, ClosedLoop(controller=law), path)
        q, v = done.measured_q, done.measured_v
        terms = np.einsum("kij,kj->ki", dynid.mass_matrix(model, q), path.a) + dynid.dynamics.bias_torque(model, q, v)
        np.testing.assert_allclose(done.torque, terms + kp * (path.q - q) + kd * (path.v - v), atol=1e-8)


def test_augmented_pd_leaves_the_error_to_the_pd_torque() -> None:
    """Sousa (2014), equation 4.17: M (a - a_ref) is the PD torque alone, however the arm moves."""
    path = tx40_reference(5000.0, 0.3)
    kp, kd = np.array([2000.0, 2000, 600, 300, 300, 100]), np.array([60.0, 60, 20, 8, 8, 3])
    first = np.array([0.1, -0.1, 0.2, 0.1, -0.2, 0.3])
    law = controllers.augmented_pd(5000.0, BARE, kp, kd, rotors=True)
    done = simulate(BARE, ClosedLoop(controller=law, sensors=EXACT), path, initial=(path.q[0] + first, path.v[0]))
    left = np.einsum("kij,kj->ki", dynid.mass_matrix(BARE, done.q), done.a - path.a)
    np.testing.assert_allclose(left, kp * (path.q - done.q) + kd * (path.v - done.v), atol=1e-6)
    assert np.abs(done.q[-1] - path.q[-1]).max() < 0.1 * np.abs(first).max()


def test_a_correction_lies_over_augmented_pd() -> None:
    """The overlay is added to the torque, not to the acceleration."""

    class Push:
        def torques(self, q: Array, v: Array, a: Array) -> Array:
            return np.full(q.shape, 0.5)

    path = tx40_reference(RATE, 0.05)
    law = controllers.augmented_pd(RATE, BARE, 300.0, 8.0, rotors=True)
    done = simulate(TX40, ClosedLoop(controller=controllers.overlay(law, Push())), path)
    q, v = done.measured_q, done.measured_v
    expected = dynid.inverse_dynamics(BARE, q, v, path.a) + 300.0 * (path.q - q) + 8.0 * (path.v - v) + 0.5
    np.testing.assert_allclose(done.torque, expected, atol=1e-8)


def test_compensation_by_hand() -> None:
    """Gravity, springs whole, a share of friction at the measured velocity, with the law's own slope."""
    share, slope = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0]), 5.0
    spring = TX40.joint_term(1, "k", 12.0, rest=0.2)
    robot = TX40.with_terms(spring)
    path = tx40_reference(RATE, 0.2)
    law = controllers.compensation(RATE, robot, share=share, slope=slope, stiffness=100.0, damping=1.0)
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    for loop in (ClosedLoop(coulomb_slope=10.0), ClosedLoop(integrator="implicit", coulomb_slope="exact")):
        done = simulate(robot, replace(loop, controller=law), path)
        assert done.completed
        q, v = done.measured_q, done.measured_v
        expected = dynid.dynamics.gravity_torque(robot, q) + 100.0 * (path.q - q) + (path.v - v)
        expected[:, 1] += 12.0 * (q[:, 1] - 0.2)
        for i in range(6):
            fv, fc, off = (value[f"{s}_joint{i + 1}"] for s in ("fv", "fc", "off"))
            expected[:, i] += share[i] * (fv * v[:, i] + fc * np.tanh(slope * v[:, i]) + off)
        # The shaft of motor 6 turns with joints 5 and 6 and belongs to the last.
        fc, shaft = value["fc_motor6"], np.tanh(slope * (v[:, 4] + v[:, 5]))
        fv = value["fv_motor6"]
        expected[:, 4] += share[5] * (fv * v[:, 5] + fc * shaft)
        expected[:, 5] += share[5] * (fv * v[:, 4] + fc * shaft)
        np.testing.assert_allclose(done.torque, expected, atol=1e-8)


def test_a_compensated_arm_is_light() -> None:
    """A push moves a pendulum through its friction as if there were less, and let go it stays."""
    robot, path = pendulum(fv=1.0, fc=3.0), still(1, RATE, 1.0, 0.4)
    push = np.where(np.arange(1000)[:, None] < 300, 4.0, 0.0)
    moved = [
        simulate(
            robot, ClosedLoop(controller=controllers.compensation(RATE, robot, share=share)), path, disturbance=push
        ).q[-1, 0]
        - 0.4
        for share in (0.0, 0.8)
    ]
    assert 0 < 3 * moved[0] < moved[1]
    still_there = simulate(robot, ClosedLoop(controller=controllers.compensation(RATE, robot, share=0.9)), path)
    assert np.abs(still_there.q - 0.4).max() < 1e-9


@pytest.mark.slow
def test_regimes_are_stiff_by_name() -> None:
    """Bandwidths by the inertia that joints see, and the gains of Krishnamoorthi (2018) as they are."""
    gains = controllers.regimes(TX40)
    np.testing.assert_array_equal(gains["identification"], [[75.0] * 6, [0.32] * 6])
    np.testing.assert_array_equal(gains["test"], [[10.0] * 6, [0.2] * 6])
    assert np.all(gains["low"][0] < gains["middle"][0]) and np.all(gains["middle"][0] < gains["high"][0])
    kp, kv = controllers.bandwidth_gains(TX40, 4.0)
    np.testing.assert_allclose(gains["middle"], [kp * kv, kv])
    own = controllers.regimes(TX40, bandwidths={"soft": [1, 2, 3, 4, 5, 6]}, damping=0.7)
    kp, kv = controllers.bandwidth_gains(TX40, [1, 2, 3, 4, 5, 6], damping=0.7)
    np.testing.assert_allclose(own["soft"], [kp * kv, kv])
    assert set(own) == {"soft", "identification", "test"}
    # A stiffer regime deflects less under the same push.
    path = still(6, RATE, 0.5, 0.3)
    push = np.full(path.q.shape, 2.0)
    give = [
        np.abs(
            simulate(
                TX40, ClosedLoop(controller=controllers.impedance(RATE, TX40, *gains[name])), path, disturbance=push
            ).q
            - 0.3
        ).max()
        for name in ("low", "middle", "high")
    ]
    assert give[0] > give[1] > give[2]


def test_bad_model_laws_are_refused() -> None:
    """One sentence each."""
    refused(lambda: controllers.compensation(RATE, TX40, share=[1.0, 2.0]), "share", "6")
    refused(lambda: controllers.compensation(RATE, TX40, slope=0.0), "slope")
    refused(lambda: controllers.compensation(RATE, TX40, slope=np.inf), "slope")
    refused(lambda: controllers.model_position(RATE, TX40, -1.0), "kp", "negative")
    refused(lambda: controllers.model_position(RATE, TX40, [1.0, 2.0]), "kp", "6")
    refused(lambda: controllers.computed_torque(RATE, "tx40", 1.0, 1.0), "torque model")  # type: ignore[call-overload]
    refused(lambda: controllers.computed_torque(RATE, controllers.rigid(TX40), [1.0, 2.0], 1.0), "kp", "6")
    refused(lambda: controllers.regimes(TX40, bandwidths={"none": 0.0}), "bandwidth")
    assert controllers.computed_torque(RATE, controllers.rigid(wheel()), 1.0, 1.0).n == pytest.approx(1)
