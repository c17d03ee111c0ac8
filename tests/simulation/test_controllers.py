"""Every controller does what its formula says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.signal

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from tests.support.closed_loops import TX40, pendulum, refused, still, tx40_reference, wheel

EXACT = Sensors(velocity="exact")
WAVE = 0.4 * np.sin(2 * np.pi * 1.5 * np.arange(1000) / 1000.0)[:, None]


def test_pd_and_cascade_by_hand() -> None:
    """The torque of every tick from what was measured at it."""
    robot = pendulum(fv=1.0)
    pd = simulate(robot, ClosedLoop(controller=controllers.pd(1000.0, 150.0, 12.0)), WAVE)
    v_ref = np.gradient(WAVE, 1e-3, axis=0)
    np.testing.assert_allclose(pd.torque, 150 * (WAVE - pd.measured_q) + 12 * (v_ref - pd.measured_v), atol=1e-9)
    cascade = simulate(robot, ClosedLoop(controller=controllers.cascade(1000.0, 15.0, 12.0)), WAVE)
    asked = 12 * (15 * (WAVE - cascade.measured_q) - cascade.measured_v)
    np.testing.assert_allclose(cascade.torque, asked, atol=1e-9)
    np.testing.assert_allclose(cascade.measured_v[1:], np.diff(cascade.q, axis=0) * 1000.0, atol=1e-8)


def test_pid_removes_the_static_error() -> None:
    """Gravity of 9.81 * 2 N m deflects a PD by itself over kp; the integral takes it away."""
    robot, path = pendulum(fv=2.0), still(1, 1000.0, 6.0)
    pd = simulate(robot, ClosedLoop(controller=controllers.pd(1000.0, 200.0, 20.0)), path)
    q = pd.q[-1, 0]
    assert q == pytest.approx(-9.81 * 2 * np.cos(q) / 200, rel=1e-6)
    pid = simulate(robot, ClosedLoop(controller=controllers.pid(1000.0, 200.0, 400.0, 20.0)), path)
    assert abs(pid.q[-1, 0]) < 1e-5
    e = path.q - pid.measured_q
    asked = 200 * e + 400 * np.cumsum(e, axis=0) / 1000.0 + 20 * (0 - pid.measured_v)
    np.testing.assert_allclose(pid.torque, asked, atol=1e-9)


def test_feed_forward_of_gravity_and_of_the_whole_model() -> None:
    """Gravity alone holds a still arm; the whole model brings the error of a moving one down a hundredfold."""
    law = controllers.pd(2000.0, [2000, 2000, 600, 300, 300, 100], [60, 60, 20, 8, 8, 3])
    path = still(6, 2000.0, 0.5, 0.3)
    balanced = TX40.without("off_*")
    held, sagging = (
        simulate(balanced, ClosedLoop(controller=x), path) for x in (law.with_feedforward("gravity", TX40), law)
    )
    assert np.abs(held.q - path.q).max() < 1e-9 and np.abs(sagging.q - path.q).max() > 1e-4
    moving = tx40_reference(2000.0, 1.0)
    errors = [
        np.abs(simulate(TX40, ClosedLoop(controller=x, sensors=EXACT), moving).q - moving.q).max()
        for x in (law, law.with_feedforward("full", TX40))
    ]
    assert errors[1] < 1e-2 * errors[0]


def test_computed_torque_with_the_exact_model_tracks() -> None:
    """With a wrong model it does not."""
    path = tx40_reference(5000.0, 1.0)
    loop = ClosedLoop(integrator="rk4", substeps=4, coulomb_slope=20.0)
    law = controllers.computed_torque(5000.0, TX40, 900.0, 60.0)
    good = simulate(TX40, replace(loop, controller=law, sensors=EXACT), path)
    assert np.abs(good.q - path.q).max() < 1e-3
    asked = dynid.inverse_dynamics(
        TX40.with_smooth_coulomb(20.0), good.q, good.v, path.a + 900 * (path.q - good.q) + 60 * (path.v - good.v)
    )
    np.testing.assert_allclose(good.torque, asked, atol=1e-9)
    wrong = controllers.computed_torque(5000.0, TX40.with_parameters(0.7 * TX40.parameters), 900.0, 60.0)
    assert np.abs(simulate(TX40, replace(loop, controller=wrong, sensors=EXACT), path).q - path.q).max() > 1e-2


def test_impedance_gives_way_by_torque_over_stiffness() -> None:
    """A constant push of 4 N m against 80 N m/rad, gravity compensated."""
    robot, path = pendulum(fv=1.0), still(1, 1000.0, 3.0, 0.5)
    law = controllers.impedance(1000.0, robot, 80.0, 15.0)
    pushed = simulate(robot, ClosedLoop(controller=law), path, disturbance=np.full(path.q.shape, 4.0))
    assert pushed.q[-1, 0] - 0.5 == pytest.approx(4.0 / 80.0, rel=1e-6)


def test_transfer_function_is_that_of_scipy() -> None:
    """The torques of a record are the filter's response to its errors, orders 0 to 3, joint by joint."""
    num = [[30.0, -28.0, 0.5], [20.0, -15.0, 2.0]]
    den = [[1.0, -0.7, 0.1, 0.02], [2.0, -0.9, 0.3, -0.1]]
    robot = dynid.load_robot("twolink").with_gravity([0, 0, 0])
    path = WAVE * [1.0, -0.5]
    run = simulate(robot, ClosedLoop(controller=controllers.transfer_function(1000.0, num, den)), path)
    for i in range(2):
        system = scipy.signal.dlti(num[i], den[i], dt=1e-3)
        _, torque = scipy.signal.dlsim(system, path[:, i] - run.measured_q[:, i])
        np.testing.assert_allclose(run.torque[:, i], torque[:, 0], atol=1e-9)
    gain = simulate(
        robot, ClosedLoop(controller=controllers.transfer_function(1000.0, [[30.0], [20.0]], [[1.0], [1.0]])), path
    )
    np.testing.assert_allclose(gain.torque, [30, 20] * (path - gain.measured_q), atol=1e-9)


def test_state_space_takes_all_four_inputs() -> None:
    """The same law as a PID, and a pure state that filters the reference velocity."""
    robot = wheel(fv=1.0)
    pid = controllers.pid(1000.0, 50.0, 30.0, 5.0)
    same = controllers.state_space(1000.0, pid.A, pid.B, pid.C, pid.D)
    np.testing.assert_array_equal(
        simulate(robot, ClosedLoop(controller=pid), WAVE).q, simulate(robot, ClosedLoop(controller=same), WAVE).q
    )
    law = controllers.state_space(1000.0, [[[0.9]]], [[[0, 0.1, 0, 0]]], [[2.0]], [[0, 0, 0, 0]])
    run = simulate(robot, ClosedLoop(controller=law), WAVE)
    v_ref = np.gradient(WAVE[:, 0], 1e-3)
    filtered = scipy.signal.lfilter([0, 0.1], [1, -0.9], v_ref)
    np.testing.assert_allclose(run.torque[:, 0], 2 * filtered, atol=1e-9)


def test_a_function_runs_the_same_loop() -> None:
    """A PD written in Python gives the trajectory of the compiled one; it sees time and acceleration as well."""
    kp, kd = np.array([2000.0, 2000, 600, 300, 300, 100]), np.array([60.0, 60, 20, 8, 8, 3])
    seen = []

    def law(t, q_ref, v_ref, a_ref, q, v):  # type: ignore[no-untyped-def]
        seen.append((t, a_ref))
        return kp * (q_ref - q) + kd * (v_ref - v)

    path = tx40_reference(1000.0, 0.3)
    sensors = Sensors(noise=1e-4, counts=20000, delay=2, velocity_cutoff=100.0)
    ours = simulate(TX40, ClosedLoop(controller=controllers.pd(1000.0, kp, kd), sensors=sensors), path, seed=3)
    theirs = simulate(TX40, ClosedLoop(controller=controllers.function(1000.0, 6, law), sensors=sensors), path, seed=3)
    # Quantised positions magnify a rounding of the torque to a count now and then; none happens here.
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-9)
    np.testing.assert_allclose(ours.measured_torque, theirs.measured_torque, atol=1e-6)
    np.testing.assert_allclose(seen[7][0], 0.007)
    np.testing.assert_array_equal([a for _, a in seen], path.a)


@pytest.mark.parametrize("damping", [0.7, 1.0, 1.5])
def test_bandwidth_is_what_the_loop_shows(damping: float) -> None:
    """The gains' loop around a linear joint follows a sine of that frequency at -3 dB."""
    robot = wheel(0.3)
    kp, kv = controllers.bandwidth_gains(robot, 5.0, damping=damping)
    law = controllers.cascade(20_000.0, kp, kv)
    t = np.arange(40_000) / 20_000.0
    path = 0.2 * np.sin(2 * np.pi * 5.0 * t)[:, None]
    run = simulate(robot, ClosedLoop(controller=law, sensors=EXACT), path)
    last = t >= 1.0  # five periods after the transient
    response = 2 * np.mean(run.q[last, 0] * np.exp(-2j * np.pi * 5.0 * t[last]))
    # The held torque delays by half a period of 50 us: 1e-3.
    assert abs(response) / 0.2 == pytest.approx(np.sqrt(0.5), rel=2e-3)


def test_bad_controllers_are_refused() -> None:
    """Rates, gains and shapes: one sentence each."""
    refused(lambda: controllers.pd(0.0, 1.0, 1.0), "rate", "0")
    refused(lambda: controllers.pid(-5.0, 1.0, 1.0, 1.0), "rate", "-5")
    refused(lambda: controllers.pd(100.0, [1.0, 2.0], [1.0, 2.0, 3.0]), "kp", "(3)")
    refused(lambda: controllers.pd(100.0, [np.nan], [1.0]), "kp", "finite")
    refused(lambda: controllers.transfer_function(100.0, [[1, 2, 3]], [[1, 2]]), "transfer function", "order")
    refused(lambda: controllers.transfer_function(100.0, [[1.0]], [[0.0, 1.0]]), "nonzero")
    refused(lambda: controllers.state_space(100.0, [[[1.0]]], [[[1.0]]], [[1.0]], [[1.0, 0, 0, 0]]), "B", "(1, 1, 4)")
    refused(lambda: controllers.pd(100.0, 1.0, 1.0).with_feedforward("some", wheel()), "feedforward", "'some'")  # type: ignore[arg-type]
    refused(lambda: controllers.computed_torque(100.0, wheel(), 1.0, 1.0).with_feedforward("full", wheel()), "computed")
    refused(lambda: controllers.computed_torque(100.0, TX40, [1.0, 2.0], 1.0), "kp", "6")
    refused(lambda: controllers.bandwidth_gains(TX40, 0.0), "bandwidth", "positive")
    refused(lambda: controllers.bandwidth_gains(TX40, [1.0, 2.0]), "bandwidth", "6")
    refused(lambda: controllers.function(100.0, 1, 3), "callable")  # type: ignore[arg-type]
    bad = controllers.function(100.0, 1, lambda *_: [1.0, 2.0])
    refused(lambda: simulate(wheel(), ClosedLoop(controller=bad), still(1, 100.0, 1.0)), "1 finite torques", "0 s")
