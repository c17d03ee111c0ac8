"""What logs are good for, by what they hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Recording
from dynid.assessment import route
from dynid.assessment.data.gains import gains_by_bodies
from dynid.cli.demo import synthetic_recording
from tests.support.check_data import recorded
from tests.support.synthetic import arm

ROBOT = arm()
SOUND = recorded(ROBOT)


def with_signals(recording: Recording, name: str = "run", **signals: Any) -> Recording:
    """The recording with other signals, each a function of the run or a value."""
    made = [
        replace(run, name=name, **{s: x(run) if callable(x) else x for s, x in signals.items()})
        for run in recording.runs
    ]
    return Recording(recording.joints, tuple(made))


def goal(*recordings: Recording) -> str:
    findings = [x for recording in recordings for x in dynid.check(ROBOT, recording)]
    return route(ROBOT, recordings, findings).goal


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        ({}, "bodies"),
        ({"torque": None}, "record"),
        ({"torque": None, "reference": lambda run: run.q}, "actuators"),
        ({"torque": None, "current": lambda run: run.torque / 8.0}, "gains"),
        ({"torque": lambda run: abs(run.torque)}, "record"),
        ({"torque": lambda run: abs(run.torque), "reference": lambda run: run.q}, "actuators"),
        ({"torque": lambda run: 1e-3 * np.sin(37.0 * run.q)}, "record"),
        ({"link_q": lambda run: run.q}, "flexible"),
        ({"torque": lambda run: np.column_stack([run.torque[:, :2], 0 * run.t])}, "bodies"),
    ],
    ids=["torques", "positions", "commands", "currents", "magnitudes", "magnitudes and commands", "no torques",
         "both sides", "one dead torque"],
)  # fmt: skip
def test_the_goal_follows_from_the_signals(signals: dict[str, Any], expected: str) -> None:
    assert goal(with_signals(SOUND, **signals)) == expected


def test_a_payload_is_told_by_its_weight_or_by_file_names() -> None:
    """The same motion with a body in the hand; friction that changed, and noise, are no payload."""
    carrying = ROBOT.with_payload(ROBOT.links[-1].name, [1.5, 0.0, 0.0, 0.1, 0.01, 0.01, 0.0, 0.01, 0.0, 0.0])
    loaded = recorded(carrying)
    pair = route(ROBOT, [with_signals(SOUND, "a"), with_signals(loaded, "b")])
    assert (pair.goal, pair.loaded) == ("payload", (1,))
    assert route(ROBOT, [with_signals(loaded, "a"), with_signals(SOUND, "b")]).loaded == (0,)
    worn = with_signals(SOUND, "b", torque=lambda run: run.torque + 2.0 * np.tanh(np.gradient(run.q, axis=0) / 1e-4))
    assert goal(with_signals(SOUND, "a"), worn) == "bodies"
    names = ("without_tool", "payload_2kg", "run_unloaded", "payload_0kg", "loaded", "download")
    named = route(ROBOT, [with_signals(SOUND, name) for name in names])
    assert (named.goal, named.loaded) == ("payload", (1, 4))


def test_postures_are_said_to_be_postures() -> None:
    """A motion that rests most of the time is good for gravity."""

    def stepped(run: dynid.Run) -> np.ndarray[Any, Any]:
        blocks = np.repeat(run.q[::200], 200, axis=0)[: len(run)]
        return np.asarray(blocks)

    assert "postures" in route(ROBOT, [with_signals(SOUND, q=stepped)]).reason
    assert "postures" not in route(ROBOT, [SOUND]).reason


def test_a_robot_on_its_feet() -> None:
    """An inertial unit on a floating base; feet are those of the contacts."""
    robot = ROBOT.with_base("floating")
    imu = with_signals(SOUND, imu=lambda run: np.zeros((len(run), 6)), contacts=lambda run: {"left": 0 * run.t})
    found = route(robot, [imu])
    assert (found.goal, found.feet) == ("legs", ("left",))


def test_gains_that_fit_the_masses() -> None:
    """Currents of a known plant; joints whose current says nothing leave all gains open."""
    gains = np.array([6.0, 9.0, 14.0])
    currents = with_signals(SOUND, current=lambda run: run.torque / gains, torque=None)
    assert gains_by_bodies(ROBOT, currents) == pytest.approx(gains, rel=0.1)
    noise = np.random.default_rng(0)
    dead = with_signals(SOUND, current=lambda run: noise.normal(size=run.q.shape), torque=None)
    assert gains_by_bodies(ROBOT, dead) is None


def test_the_signals_of_every_run_count() -> None:
    """A log with torques beside one without is no log with torques."""
    robot = dynid.load_robot("twolink")
    one = synthetic_recording(robot, 0, duration=5.0)
    assert route(robot, [one, with_signals(one, torque=None)]).goal == "record"
