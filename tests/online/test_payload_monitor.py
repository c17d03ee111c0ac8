"""Payload while running, on an arm that Pinocchio integrates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidValue, ModelError
from dynid.online import EventKind, PayloadEvent, PayloadMonitor, PayloadState
from dynid.online.payload import Rows
from tests.support import carrying_plant
from tests.support.carrying_plant import CENTRE, MASS, Carried, carry
from tests.support.errors import expect_error


@cache
def known(joints: int) -> dynid.Robot:
    """The plant's own model: friction and the rotor inertia of its motors."""
    robot = carrying_plant.arm(joints)
    rotors = [robot.joint_term(k, "Ia", carrying_plant.ROTOR) for k in range(robot.n)]
    return robot.with_terms(*rotors)


def watched(
    model: dynid.Robot | dynid.Estimate, run: Carried, look: float, **settings: float
) -> tuple[PayloadMonitor, list[PayloadEvent], PayloadState | None]:
    """All events, and the payload as it was known at one time."""
    robot = model if isinstance(model, dynid.Robot) else model.robot
    monitor = PayloadMonitor(model, robot.links[-1].name, rate=run.rate, **settings)  # type: ignore[arg-type]
    before = run.t <= look
    events = monitor.update_block(run.t[before], run.q[before], run.torque[before])
    state = monitor.payload()
    events += monitor.update_block(run.t[~before], run.q[~before], run.torque[~before])
    return monitor, events, state


def test_pick_up_and_release_are_found_with_their_mass() -> None:
    run = carry(carrying_plant.arm(6), 8.0, hold=(4.0, 6.0), rate=250.0)
    monitor, events, state = watched(known(6), run, 5.0, training=2.5)
    assert [event.kind for event in events] == [EventKind.PICK_UP, EventKind.RELEASE] and monitor.trained
    for event, truth, sign in zip(events, (4.0, 6.0), (1, -1), strict=True):
        assert 0 < event.detected - truth < 1.0 and abs(event.time - truth) < 0.15
        assert abs(event.mass_change - sign * MASS) < 5 * event.mass_change_std
        assert event.statistic > event.threshold and event.to_dict()["kind"] == str(event.kind)
    assert state is not None and abs(state.mass - MASS) < 0.05 * MASS
    assert np.all(np.abs(state.centre - CENTRE) < 0.02) and "centre" in str(state)
    last = monitor.payload()
    assert last is not None and abs(last.mass) < max(0.02, 5 * last.mass_std)


def test_nothing_is_reported_where_nothing_happens() -> None:
    """A payload that is there from the start is no event: it is the payload."""
    run = carry(carrying_plant.arm(6), 6.0, hold=(0.0, np.inf), rate=250.0, seed=1)
    monitor, events, _ = watched(known(6), run, 5.0, training=2.5)
    state = monitor.payload()
    assert events == [] and state is not None
    assert abs(state.mass - MASS) < 0.02 * MASS and state.to_dict()["link"] == "link6"


def test_the_inertia_of_a_heavy_payload_is_no_event() -> None:
    """Mass and first moments alone left torques far above the noise: 'release' of some 0.2 kg while it is carried."""
    run = carry(carrying_plant.arm(6), 9.0, hold=(4.0, np.inf), rate=250.0, mass=8.0, noise=0.1, seed=2)
    _, events, state = watched(known(6), run, 8.0, training=2.5)
    assert [event.kind for event in events] == [EventKind.PICK_UP]
    assert state is not None and abs(state.mass - 8.0) < 0.02 * 8.0


def test_a_dead_torque_sensor_is_named_and_raises_no_event() -> None:
    """It was a pick-up of 14 kg, then a release of 27 kg, and so on twice per second."""
    run = carry(carrying_plant.arm(6), 8.0, rate=250.0)
    torque = run.torque.copy()
    torque[(run.t > 4.0) & (run.t < 6.0), 1] = torque[1000, 1]
    monitor, events, _ = watched(known(6), replace(run, torque=torque), 5.0, training=2.5)
    assert events == [] and monitor.dead == ()
    torque[run.t > 4.0, 1] = torque[1000, 1]
    monitor, events, _ = watched(known(6), replace(run, torque=torque), 5.0, training=2.5)
    assert events == [] and monitor.dead == (known(6).coordinates[1],)


def test_a_change_that_is_found_late_is_reported_once() -> None:
    """The rows since the change may confirm it at once: the event is returned, and the rows after it are used."""
    run = carry(carrying_plant.arm(6), 3.5, rate=250.0)
    monitor, events, _ = watched(known(6), run, 3.0, training=2.5)
    assert events == [] and monitor.trained
    # Each instant says little of a mass of 10 kg, so that many of them are needed.
    rows = np.zeros((2, 11))
    rows[:, 0], rows[:, 10] = 0.2, 2.0
    arm = np.zeros((2, monitor._covariance.shape[0]))
    found = [monitor._take(Rows(4.0 + 0.05 * k, rows, arm), rows[:, :10], rows[:, 10]) for k in range(20)]
    (event,) = (x for x in found if x is not None)
    assert event.kind is EventKind.PICK_UP and abs(event.mass_change - 10.0) < 4 * event.mass_change_std
    assert monitor.events == (event,) and event.detected - event.time > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_an_identified_arm_of_seven_joints_weighs_what_it_picks_up(seed: int) -> None:
    """The arm is known from a recording of its own; noise of the torques is autocorrelated. About ten seconds."""
    prior = known(7)
    first = carry(carrying_plant.arm(7), 30.0, seed=100 + seed, correlation=0.9)
    run = dynid.Run(first.t, first.q, torque=first.torque)
    estimate = dynid.identify(prior, dynid.Recording(prior.coordinates, (run,)), "wls")
    second = carry(carrying_plant.arm(7), 18.0, hold=(12.0, 15.0), seed=seed, correlation=0.9)
    _, events, state = watched(estimate, second, 13.0)
    assert [event.kind for event in events] == [EventKind.PICK_UP, EventKind.RELEASE]
    assert events[0].detected < 13.0 and events[1].detected < 16.0
    assert state is not None and abs(state.mass - MASS) < 0.05 * MASS
    assert abs(state.mass - MASS) < 5 * state.mass_std


def test_settings_that_cannot_be_used_are_refused() -> None:
    robot = known(6)
    for settings, error in (
        ({"training": 0.0}, (InvalidValue, "")),
        ({"false_alarms": 0.0}, (InvalidValue, "")),
        ({"smallest": -1.0}, (InvalidValue, "smallest")),
    ):
        with expect_error(*error):
            PayloadMonitor(robot, "link6", rate=100.0, **settings)
    with expect_error(ModelError, "name", code="unknown_name"):
        PayloadMonitor(robot, "hand", rate=100.0)
