"""A controller found again from the log of its loop."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.controller_identification import identify_controller
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from tests.support.closed_loops import TX40, refused, tx40_reference

RATE = 500.0
KP = np.array([900.0, 1200, 500, 300, 200, 150])
KD = np.array([40.0, 60, 15, 8, 6, 4])


def within(found: dict[str, float], sigma: dict[str, float], truth: dict[str, float]) -> None:
    """Four standard deviations: six joints and a few gains each would pass it by chance once in some hundred runs."""
    for name, value in truth.items():
        assert abs(found[name] - value) < 4 * sigma[name], (name, found[name], value, sigma[name])
        assert sigma[name] < 0.2 * abs(value)


def from_rest(seconds: float, seed: int) -> np.ndarray:
    """A motion that begins slowly: a filter's state does not travel with a law."""
    q = tx40_reference(RATE, seconds, seed).q
    return q[0] + (q - q[0]) * np.minimum(1.0, np.arange(len(q)) / 250)[:, None] ** 3


@pytest.mark.parametrize(("delay", "cutoff"), [(0, None), (1, 60.0)])
def test_gains_are_recovered_within_their_deviation(delay: int, cutoff: float | None) -> None:
    """PD with and without a low-pass, at once and a sample late, torques noisy: structure, gains, delay."""
    sensors = Sensors(noise=1e-5, velocity_cutoff=cutoff, torque_noise=0.2, delay=delay)
    run = simulate(
        TX40, ClosedLoop(controller=controllers.pd(RATE, KP, KD), sensors=sensors), tx40_reference(RATE, 4.0).q, seed=1
    )
    found = identify_controller(run.recording(), max_delay=2)
    assert found.delay == delay and found.loop.sensors.delay == delay
    for i, law in enumerate(found.laws):
        assert law.structure == "pd" and law.joint == f"joint{i + 1}" and law.fit > 90
        truth = {"kp": KP[i], "kd": KD[i]} | ({"cutoff": cutoff} if cutoff else {})
        within(law.gains, law.std, truth)
        assert cutoff or "cutoff" not in law.gains
    assert f"delay of {delay}" in found.summary() and "joint6: pd" in found.summary()


def test_structures_are_told_apart() -> None:
    """Cascade, PID and P, each from its own log."""
    path = tx40_reference(RATE, 4.0).q
    sensors = Sensors(noise=1e-5, torque_noise=0.1)
    cascade = simulate(TX40, ClosedLoop(controller=controllers.cascade(RATE, KP / KD, KD), sensors=sensors), path)
    for i, law in enumerate(identify_controller(cascade.recording(), max_delay=1).laws):
        assert law.structure == "cascade"
        within(law.gains, law.std, {"kp": KP[i] / KD[i], "kv": KD[i]})
    pid = simulate(TX40, ClosedLoop(controller=controllers.pid(RATE, KP, 5 * KP, KD), sensors=sensors), path)
    for i, law in enumerate(identify_controller(pid.run(), max_delay=1).laws):
        assert law.structure == "pid"
        within(law.gains, law.std, {"kp": KP[i], "ki": 5 * KP[i], "kd": KD[i]})
    p = simulate(TX40, ClosedLoop(controller=controllers.pd(RATE, KP, 0.0), sensors=sensors), path)
    assert {law.structure for law in identify_controller(p.recording(), max_delay=1).laws} == {"p"}


def test_feed_forward_is_taken_off() -> None:
    """With the model the gains come out; without it the fit says that something is missing."""
    model = TX40.with_parameters(0.8 * TX40.parameters).with_smooth_coulomb(20.0)
    law = controllers.pd(RATE, KP, KD).with_feedforward("full", model)
    run = simulate(TX40, ClosedLoop(controller=law, sensors=Sensors(torque_noise=0.1)), tx40_reference(RATE, 4.0).q)
    found = identify_controller(run.recording(), model=model, feedforward="full", max_delay=1)
    assert found.controller.feedforward == "full"
    for i, joint in enumerate(found.laws):
        within(joint.gains, joint.std, {"kp": KP[i], "kd": KD[i]})
    assert min(x.fit for x in identify_controller(run.recording(), max_delay=1).laws) < 90


def test_the_identified_controller_repeats_the_loop() -> None:
    """Another motion with the law that was found: the torques of the true one, for a PID and for a law of no name."""
    b, a = [[900.0, -860.0]] * 6, [[1.0, -0.6]] * 6
    for true in (controllers.pid(RATE, KP, 5 * KP, KD), controllers.transfer_function(RATE, b * KP[:, None] / 900, a)):
        sensors = Sensors(velocity_cutoff=80.0) if true.name == "pid" else Sensors()
        log = simulate(TX40, ClosedLoop(controller=true, sensors=sensors), from_rest(4.0, 0))
        found = identify_controller(log.recording(), max_delay=1)
        other = from_rest(2.0, 5)
        theirs = simulate(TX40, ClosedLoop(controller=true, sensors=sensors), other)
        ours = simulate(TX40, found.loop, other)
        assert ours.completed and found.delay == 0
        assert np.std(ours.torque - theirs.torque) < 1e-3 * np.std(theirs.torque)
    assert all(law.structure.startswith("arx") for law in found.laws)


def test_logs_that_cannot_tell_are_refused() -> None:
    """No reference, no torque, too short, uneven, no model of what is fed forward."""
    t, q = np.arange(900) / RATE, np.random.default_rng(0).normal(size=(900, 1))
    refused(lambda: identify_controller(dynid.Run(t, q, torque=q, name="r")), "'r'", "no reference")
    refused(lambda: identify_controller(dynid.Run(t, q, reference=q, name="r")), "'r'", "no torque")
    full = dynid.Run(t, q, torque=q, reference=q, name="r")
    refused(lambda: identify_controller(full.rows(0, 50)), "'r'", "50 samples")
    refused(lambda: identify_controller(dynid.Run(t**1.1, q, torque=q, reference=q, name="r")), "'r'", "evenly")
    refused(lambda: identify_controller(full, feedforward="full"), "full", "robot")
    refused(lambda: identify_controller(full, structures=["lqr"]), "'lqr'", "cascade")
