"""Signals: every setting has an effect, and survives a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidValue, MissingData, TooFew, UnknownName
from dynid.recording.run import Run
from dynid.signals.filters import decimate
from dynid.signals.settings import Signals, prepare
from tests.support.errors import Error, expect_error


def noisy_run(jitter: float = 0.0) -> Run:
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 20.0, 0.002)
    t = t + jitter * 0.002 * rng.uniform(-1, 1, t.size)
    q = np.column_stack([np.sin(2 * t), np.cos(3 * t + 1)]) + 1e-3 * rng.normal(size=(t.size, 2))
    q[500] += 0.5
    v = np.column_stack([2 * np.cos(2 * t), -3 * np.sin(3 * t + 1)])
    a = np.column_stack([-4 * np.sin(2 * t), -9 * np.cos(3 * t + 1)])
    torque = np.column_stack([np.sin(5 * t), np.cos(4 * t)]) + 0.1 * rng.normal(size=(t.size, 2))
    return Run(t, q, v=v, a=a, torque=torque)


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
        ({"derivative": "central"}, "v"),
        ({"derivative": "savgol"}, "a"),
        ({"measured_velocity": True}, "v"),
        ({"measured_acceleration": True}, "a"),
        ({"delay": 0.01}, "torque"),
        ({"resample": 250.0}, "t"),
        ({"trim": 0.5}, "t"),
        ({"period": 10.0}, "t"),
    ],
)
def test_each_setting_changes_what_it_names(change: dict[str, Any], where: str) -> None:
    """Every filter setting reaches the filter."""
    run = noisy_run()
    before, after = prepare(run, BASE), prepare(run, replace(BASE, **change))
    one, two = getattr(before, where), getattr(after, where)
    assert one.shape != two.shape or not np.allclose(one, two)


def test_min_velocity_and_decimate_reach_the_observation() -> None:
    """They act on rows, joint by joint."""
    from dynid.identification.observing import observe
    from tests.support.synthetic import EXACT, arm, record

    robot = arm()
    recording = record(robot, (0,), samples=4000)
    rows = observe(robot, recording, signals=EXACT).rows
    assert rows == (4000, 4000, 4000)
    slow = observe(robot, recording, signals=replace(EXACT, min_velocity=(0.0, 0.5, 0.0))).rows
    assert slow[0] == slow[2] == 4000 and slow[1] < 4000
    share = observe(robot, recording, signals=replace(EXACT, min_velocity="20%")).rows
    assert all(r < 4000 for r in share)
    assert observe(robot, recording, signals=replace(EXACT, decimate=(2, 5))).rows == (400, 400, 400)


def _rows(trim: float, torque: Callable[[np.ndarray], np.ndarray], decimate: tuple[int, ...] = (10,)) -> np.ndarray:
    """Torque rows (channel, row) of one run of the three-joint arm, at 200 Hz, decimated."""
    from dynid.identification.observing import observe
    from tests.support.synthetic import EXACT, arm, motion

    robot = arm()
    t, q, _, _ = motion(robot, 0, 2000)
    recording = dynid.Recording(robot.coordinates, (Run(t, q, torque=torque(t)),))
    observation = observe(robot, recording, signals=replace(EXACT, trim=trim, decimate=decimate))
    out: list[list[float]] = [[], [], []]
    for block in observation.blocks():
        out[block.channel].extend(block.y)
    return np.array(out)


def _end_noise(trim: float) -> np.ndarray:
    """Noise of the first and last row over draws of white torque noise, relative to that of the middle rows."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([_rows(trim, lambda t: rng.normal(size=(len(t), 3))) for _ in range(60)])
    return np.std(rows[:, [0, -1]], axis=0) / np.std(rows[:, 20:-20])


@pytest.mark.slow
def test_noise_of_the_end_samples_does_not_reach_the_rows() -> None:
    """The transient of the decimation filter is trimmed; otherwise its first row is the raw first sample."""
    # 180 draws: a standard deviation is known to 5 %, and twice as much noise at an end is far outside.
    np.testing.assert_allclose(_end_noise(1.0), 1.0, atol=0.2)
    assert _end_noise(0.0)[0] > 2.0


def test_samples_of_the_filter_transient_give_no_rows() -> None:
    """Rows begin where trimming ends, whatever lies before, and their number does not depend on the transient."""
    run = noisy_run()
    motion = prepare(run, replace(BASE, trim=1.0, decimate=(5, 5)))
    assert motion.lead == 375 and motion.lead % 25 == 0  # three quarters of 500 samples
    assert motion.t[motion.lead] == run.t[500] and motion.t[-1 - motion.lead] == run.t[-501]
    wave = _rows(1.0, lambda t: np.sin(np.column_stack([t, 2 * t, 3 * t])))
    at = np.arange(1.0, 9.0, 0.05)
    # The ripple of the pass band, 0.05 dB there and back.
    np.testing.assert_allclose(wave, np.sin(np.outer([1, 2, 3], at)), atol=0.015)


@pytest.mark.parametrize("trim", [0.0, 0.06])
def test_less_trim_than_a_step_leaves_no_samples_for_the_transient(trim: float) -> None:
    """Then what is left after trimming is decimated as it is."""
    rng = np.random.default_rng(1)
    torque = rng.normal(size=(2000, 3))
    edge = round(trim * 200)
    plain = decimate(torque[edge : 2000 - edge], (10,))
    np.testing.assert_allclose(_rows(trim, lambda t: torque), plain.T, atol=1e-12)
    assert prepare(noisy_run(), replace(BASE, trim=trim, decimate=(50,))).lead == 0


def test_no_decimation_has_no_transient() -> None:
    motion = prepare(noisy_run(), replace(BASE, trim=1.0, decimate=()))
    assert motion.lead == 0 and len(motion.t) == 10000 - 2 * 500


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
    ("settings", "error"),
    [
        ({"derivative": "magic"}, (UnknownName, "derivative")),
        ({"trim": -1.0}, (InvalidValue, "")),
        ({"min_velocity": "fast"}, (InvalidValue, "min_velocity")),
    ],
)
def test_wrong_settings_are_refused_at_once(settings: dict[str, Any], error: Error) -> None:
    """Before any work is done, and by name."""
    with expect_error(*error):
        Signals(**settings)


ALL_CHANGED: dict[str, Any] = {
    "median": 5,
    "cutoff": 12.5,
    "order": 2,
    "torque_cutoff": "same",
    "derivative": "savgol",
    "measured_velocity": True,
    "measured_acceleration": True,
    "resample": None,
    "period": 10.0,
    "trim": 0.75,
    "delay": 0.004,
    "decimate": (10, 5),
    "min_velocity": (0.01, 0.02, 0.03),
    "wrench_delay": -0.002,
    "stops": False,
    "dropouts": False,
}


def test_every_setting_survives_json() -> None:
    """With no setting at its default, and with those that are words, None or empty."""
    changed = Signals(**ALL_CHANGED)
    assert set(ALL_CHANGED) == {f.name for f in fields(Signals)}
    assert all(getattr(changed, name) != getattr(Signals(), name) for name in ALL_CHANGED)
    for settings in (changed, Signals(), Signals(cutoff=None, decimate=(), min_velocity=0.05, resample=250.0)):
        assert Signals.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
        assert Signals.from_dict(settings.to_dict()) == settings
    with expect_error(UnknownName, "signals"):
        Signals.from_dict({"cutof": 3})


def test_unusable_runs_are_refused() -> None:
    """Time that stands still, nothing left after trimming, no measured velocity, a period that does not fit."""
    run = noisy_run()
    stuck = Run(np.where(np.arange(len(run)) == 5, run.t[4], run.t), run.q)
    for bad, settings, error in (
        (stuck, BASE, (InvalidValue, "")),
        (run, replace(BASE, trim=10.0), (TooFew, "trim")),
        (Run(run.t, run.q), replace(BASE, measured_velocity=True), (MissingData, "")),
        (Run(run.t, run.q), replace(BASE, measured_acceleration=True), (MissingData, "")),
        (run, replace(BASE, period=0.0031), (InvalidValue, "period")),
    ):
        with expect_error(*error):
            prepare(bad, settings)
