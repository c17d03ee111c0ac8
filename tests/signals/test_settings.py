"""One settings object: every setting reaches the code it names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.recording.recording import Run
from dynid.signals.settings import Signals, prepare


def noisy_run(jitter: float = 0.0) -> Run:
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 20.0, 0.002)
    t = t + jitter * 0.002 * rng.uniform(-1, 1, t.size)
    q = np.column_stack([np.sin(2 * t), np.cos(3 * t + 1)]) + 1e-3 * rng.normal(size=(t.size, 2))
    q[500] += 0.5
    v = np.column_stack([2 * np.cos(2 * t), -3 * np.sin(3 * t + 1)])
    torque = np.column_stack([np.sin(5 * t), np.cos(4 * t)]) + 0.1 * rng.normal(size=(t.size, 2))
    return Run(t, q, v=v, torque=torque)


BASE = Signals(cutoff=20.0, trim=0.1)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"median": 5}, "q"),
        ({"cutoff": 5.0}, "q"),
        ({"cutoff": None}, "q"),
        ({"cutoff": "auto"}, "q"),
        ({"order": 2}, "q"),
        ({"torque_cutoff": 3.0}, "torque"),
        ({"torque_cutoff": "same"}, "torque"),
        ({"derivative": "central5"}, "v"),
        ({"derivative": "savgol"}, "a"),
        ({"measured_velocity": True}, "v"),
        ({"delay": 0.01}, "torque"),
        ({"resample": 250.0}, "t"),
        ({"trim": 0.5}, "t"),
        ({"period": 10.0}, "t"),
    ],
)
def test_each_setting_changes_what_it_names(change: dict[str, Any], where: str) -> None:
    """Filter settings that never reached the filter have been tuned in vain elsewhere."""
    run = noisy_run()
    before, after = prepare(run, BASE), prepare(run, replace(BASE, **change))
    one, two = getattr(before, where), getattr(after, where)
    assert one.shape != two.shape or not np.allclose(one, two)


def test_min_speed_and_decimate_reach_the_observation() -> None:
    """They act on rows, joint by joint."""
    from synthetic import EXACT, arm, record

    from dynid.identify.observation import observe

    robot = arm()
    recording = record(robot, (0,), samples=4000)
    rows = observe(robot, recording, EXACT).rows
    assert rows == (4000, 4000, 4000)
    slow = observe(robot, recording, replace(EXACT, min_speed=(0.0, 0.5, 0.0))).rows
    assert slow[0] == slow[2] == 4000 and slow[1] < 4000
    share = observe(robot, recording, replace(EXACT, min_speed="20%")).rows
    assert all(r < 4000 for r in share)
    assert observe(robot, recording, replace(EXACT, decimate=(2, 5))).rows == (400, 400, 400)


def test_uneven_clock_is_resampled_by_default_and_followed() -> None:
    """A clock with 20 % jitter: positions on the uniform clock follow the motion, derivatives too."""
    motion = prepare(noisy_run(jitter=0.2), replace(BASE, cutoff=10.0, median=3))
    assert np.ptp(np.diff(motion.t)) < 1e-9
    inside = slice(300, -300)
    # Noise of 1e-3 below 10 Hz of a band of 250 Hz.
    assert np.abs(motion.q[inside, 0] - np.sin(2 * motion.t[inside])).max() < 2e-3
    assert np.abs(motion.v[inside, 0] - 2 * np.cos(2 * motion.t[inside])).max() < 0.1


def test_delay_aligns_torque_with_motion() -> None:
    """A torque that lags by the delay is moved back onto the motion."""
    t = np.arange(0, 10, 0.001)
    run = Run(t, np.sin(t)[:, None], torque=np.sin(3 * (t - 0.05))[:, None])
    motion = prepare(run, Signals(cutoff=None, delay=0.05, trim=0.2))
    np.testing.assert_allclose(motion.torque[:, 0], np.sin(3 * motion.t), atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"derivative": "magic"}, "magic"),
        ({"trim": -1.0}, "trim"),
        ({"min_speed": "fast"}, "fast"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings: dict[str, Any], culprit: str) -> None:
    """Before any work is done, and by name."""
    with pytest.raises(dynid.DataError, match=culprit):
        Signals(**settings)


def test_unusable_runs_are_refused() -> None:
    """Time that stands still, nothing left after trimming, no measured velocity, a period that does not fit."""
    run = noisy_run()
    stuck = Run(np.where(np.arange(len(run)) == 5, run.t[4], run.t), run.q)
    for bad, settings, culprit in (
        (stuck, BASE, "row 5"),
        (run, replace(BASE, trim=10.0), "nothing is left"),
        (Run(run.t, run.q), replace(BASE, measured_velocity=True), "measured velocity"),
        (run, replace(BASE, period=0.0031), "whole number"),
    ):
        with pytest.raises(dynid.DataError, match=culprit):
            prepare(bad, settings)
