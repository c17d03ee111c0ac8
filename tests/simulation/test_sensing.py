"""What the controller sees, what the drives deliver, and what a recording of it holds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import dynid
from dynid import Robot, controllers
from dynid.progress import Progress
from dynid.robot import Joint, Link
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from tests.support.closed_loops import TX40, Array, pendulum, refused, still, tx40_reference, wheel

RATE = 1000.0
LAW = controllers.pd(RATE, 100.0, 10.0)
WAVE = 0.4 * np.sin(2 * np.pi * 1.5 * np.arange(2000) / RATE)[:, None]


def test_encoders_have_whole_counts() -> None:
    """Positions are the nearest of 4096 counts a turn, 1000 a metre on a slide, and drive the loop."""
    run = simulate(wheel(fv=1.0), ClosedLoop(controller=LAW, sensors=Sensors(counts=4096)), WAVE)
    counts = run.measured_q * 4096 / (2 * np.pi)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-8)
    assert 0.4 < np.abs(run.measured_q - run.q).max() * 4096 / (2 * np.pi) <= 0.5 + 1e-9
    assert np.abs(run.q - simulate(wheel(fv=1.0), ClosedLoop(controller=LAW), WAVE).q).max() > 0
    inertia = np.array([2.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])
    slide = Joint("s", "prismatic", 0, np.eye(4), np.array([1.0, 0, 0]))
    cart = Robot("cart", (Link("base", np.zeros(10)), Link("cart", inertia)), (slide,))
    counts = simulate(cart, ClosedLoop(controller=LAW, sensors=Sensors(counts=1000)), WAVE).measured_q * 1000
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-8)


def test_noise_has_its_deviation_and_its_seed() -> None:
    """Joint by joint, white, inside the loop; the same for the same seed."""
    noise = np.array([1e-4, 2e-4, 3e-4, 1e-4, 2e-4, 5e-4])
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    path = tx40_reference(RATE, 1.0)
    one, same, other = (
        simulate(TX40, ClosedLoop(controller=law, sensors=Sensors(noise=noise)), path, seed=s) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.q, same.q)
    assert np.abs(one.q - other.q).max() > 0
    error = one.measured_q - one.q
    np.testing.assert_allclose(error.std(axis=0), noise, rtol=0.1)  # 1000 samples: 2.2 % is one standard deviation
    lagged = np.sum(error[1:] * error[:-1], axis=0) / np.sum(error**2, axis=0)
    assert np.abs(lagged).max() < 0.15
    clean = simulate(TX40, ClosedLoop(controller=law), path)
    assert np.abs(one.torque - clean.torque).max() > 1.0  # through the differentiated position


def test_torque_noise_stays_out_of_the_loop() -> None:
    """It is in the recorded torque alone."""
    clean = simulate(wheel(), ClosedLoop(controller=LAW), WAVE)
    noisy = simulate(wheel(), ClosedLoop(controller=LAW, sensors=Sensors(torque_noise=0.5)), WAVE)
    np.testing.assert_array_equal(clean.q, noisy.q)
    np.testing.assert_array_equal(clean.torque, noisy.torque)
    assert (noisy.measured_torque - noisy.torque).std() == pytest.approx(0.5, rel=0.1)
    np.testing.assert_array_equal(noisy.recording().runs[0].torque, noisy.measured_torque)


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_delay_in_control_periods(delay: int) -> None:
    """The torque of tick k follows from the measurement `delay` periods before."""
    run = simulate(wheel(fv=1.0), ClosedLoop(controller=LAW, sensors=Sensors(delay=delay)), WAVE)
    v_ref = np.gradient(WAVE, 1 / RATE, axis=0)
    asked = 100 * (WAVE - run.measured_q) + 10 * (v_ref - run.measured_v)
    np.testing.assert_allclose(run.torque[delay:], asked[: len(asked) - delay], atol=1e-9)
    np.testing.assert_allclose(run.torque[:delay], np.broadcast_to(asked[0], (delay, 1)), atol=1e-9)


def test_speed_by_differentiation_with_its_low_pass() -> None:
    """A first-order filter of 40 Hz on the differences of what the encoder said."""
    sensors = Sensors(counts=10_000, noise=1e-4, velocity_cutoff=40.0)
    run = simulate(wheel(fv=1.0), ClosedLoop(controller=LAW, sensors=sensors), WAVE)
    keep = np.exp(-2 * np.pi * 40 / RATE)
    rough = np.diff(run.measured_q[:, 0]) * RATE
    start = scipy.signal.lfiltic([1 - keep], [1, -keep], [run.measured_v[0, 0]])
    smooth, _ = scipy.signal.lfilter([1 - keep], [1, -keep], rough, zi=start)
    np.testing.assert_allclose(run.measured_v[1:, 0], smooth, atol=1e-9)
    exact = simulate(wheel(fv=1.0), ClosedLoop(controller=LAW, sensors=Sensors(velocity="exact", noise=1e-4)), WAVE)
    np.testing.assert_array_equal(exact.measured_v, exact.v)


def test_saturation() -> None:
    """Torques stay within limits given, or the robot's own of 50 N m; the motion suffers."""
    free = simulate(wheel(), ClosedLoop(controller=controllers.pd(RATE, 1000.0, 40.0)), 10 * WAVE)
    assert np.abs(free.torque).max() > 60
    own = simulate(wheel(), ClosedLoop(controller=controllers.pd(RATE, 1000.0, 40.0)), 10 * WAVE, torque_limits="robot")
    assert np.abs(own.torque).max() == 50.0
    tight = simulate(
        wheel(), ClosedLoop(controller=controllers.pd(RATE, 1000.0, 40.0)), 10 * WAVE, torque_limits=[20.0]
    )
    assert np.abs(tight.torque).max() == 20.0 and np.abs(tight.q - free.q).max() > 0.1


def test_a_disturbance_pushes_and_is_not_measured() -> None:
    """A PD around a wheel deflects by torque over kp; the delivered torque is minus the push."""
    path = still(1, RATE, 3.0)
    run = simulate(wheel(fv=2.0), ClosedLoop(controller=LAW), path, disturbance=np.full((3000, 1), 5.0))
    assert run.q[-1, 0] == pytest.approx(0.05, rel=1e-6)
    assert run.torque[-1, 0] == pytest.approx(-5.0, rel=1e-6)


def test_payload_is_a_robot_with_payload() -> None:
    """A kilogram half a metre out adds 0.5 * 9.81 N m to what a level arm carries."""
    path = still(1, RATE, 3.0)
    law = controllers.pid(RATE, 400.0, 800.0, 30.0)
    body = np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    place = np.eye(4)
    place[0, 3] = 0.5
    bare, loaded = (
        simulate(r, ClosedLoop(controller=law), path)
        for r in (pendulum(fv=2), pendulum(fv=2).with_payload("arm", body, place))
    )
    assert loaded.torque[-1, 0] - bare.torque[-1, 0] == pytest.approx(0.5 * 9.81, rel=1e-4)


def test_record_at_a_slower_rate() -> None:
    """Every fifth tick of the same run; the recording goes through a file and back."""
    fast, slow = (
        simulate(wheel(), ClosedLoop(controller=LAW), WAVE),
        simulate(wheel(), ClosedLoop(controller=LAW), WAVE, rate=200.0),
    )
    for name in ("t", "q", "v", "a", "torque", "measured_q", "measured_v", "reference"):
        np.testing.assert_allclose(getattr(slow, name), getattr(fast, name)[::5], atol=1e-12)
    run = slow.recording("half").runs[0]
    assert run.name == "half" and run.step == pytest.approx(0.005)
    np.testing.assert_array_equal(run.reference, WAVE[::5])


def test_accelerations_of_the_record_are_those_of_the_model() -> None:
    """Torque is the inverse dynamics of the recorded state: nothing is lost between the two."""
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    run = simulate(TX40, ClosedLoop(controller=law, coulomb_slope=100.0), tx40_reference(RATE, 0.5))
    torque = dynid.inverse_dynamics(TX40.with_smooth_coulomb(100.0), run.q, run.v, run.a)
    np.testing.assert_allclose(torque, run.torque, atol=1e-9)


def test_progress_and_initial_state() -> None:
    """The share grows to one, with no time left; a simulation starts at the initial state."""
    told: list[Progress] = []
    run = simulate(wheel(), ClosedLoop(controller=LAW), WAVE, progress=told.append, initial=([0.3], [-0.5]))
    shares = [x.share for x in told if x.share is not None]
    assert shares == sorted(shares) and shares[-1] == 1.0 and told[-1].seconds_left == 0.0 and told[-1].message
    assert run.q[0, 0] == 0.3 and run.v[0, 0] == -0.5
    told.clear()
    function = controllers.function(RATE, 1, lambda t, q_ref, v_ref, a_ref, q, v: 100 * (q_ref - q))
    simulate(wheel(), ClosedLoop(controller=function), WAVE, progress=told.append)
    assert told[-1].share == 1.0


def bad_sensors() -> dict[str, tuple[dict[str, Array | float | str], tuple[str, ...]]]:
    return {
        "word": ({"velocity": "guess"}, ("'difference'", "'guess'")),
        "half a delay": ({"delay": 0.5}, ("delay", "whole")),
        "cut-off": ({"velocity_cutoff": 0.0}, ("cut-off",)),
        "noise": ({"noise": -1.0}, ("noise", "negative")),
        "endless noise": ({"torque_noise": np.nan}, ("torque_noise", "finite")),
    }


@pytest.mark.parametrize("case", bad_sensors())
def test_bad_sensors_are_refused(case: str) -> None:
    """One sentence that names the setting."""
    options, words = bad_sensors()[case]
    refused(lambda: Sensors(**options), *words)  # type: ignore[arg-type]


def test_sensors_for_another_robot_are_refused() -> None:
    """One number per joint, or one for all."""
    refused(
        lambda: simulate(wheel(), ClosedLoop(controller=LAW, sensors=Sensors(noise=[1e-4, 1e-4])), WAVE),
        "noise",
        "(1)",
        "(2,)",
    )
