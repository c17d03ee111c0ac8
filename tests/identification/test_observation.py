"""Observation: folded factors hold what the rows held, whatever their number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import ConflictingArguments, Mismatch, MissingData
from dynid.identification import row_stream
from dynid.identification.observation import time_parts
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.signals.settings import Signals, prepare
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, base_of, record


def test_factors_equal_those_of_the_full_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunked folding gives the normal matrix of the held W, with channels apart."""
    monkeypatch.setattr(row_stream, "_CHUNK", 97)
    robot = arm()
    recording = record(robot, (0, 1), noise=0.2)
    observation = observe(robot, recording, signals=EXACT)
    motions = [prepare(run, EXACT) for run in recording.runs]
    W = np.concatenate([base_of(robot).regressor(m.q, m.v, m.a) for m in motions])
    y = np.concatenate([m.torque for m in motions])
    for k, factor in enumerate(observation.factors):
        full = np.column_stack([W[:, k], y[:, k]])
        np.testing.assert_allclose(factor.T @ factor, full.T @ full, atol=1e-9 * np.abs(full.T @ full).max())


@pytest.mark.parametrize("method", ["irls", "gls"])
def test_rows_made_again_are_the_rows_that_were_folded(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimators that stream the rows again see the same data, in the same order, when they were too many to keep.

    Joints stand still at different samples, so the blocks of the channels begin with different samples.
    """
    robot = arm()
    monkeypatch.setattr(row_stream, "_CHUNK", 97)
    recording = record(robot, (0, 1), noise=0.2)
    settings = replace(EXACT, min_velocity=0.3)
    kept = identify(robot, recording, method, signals=settings)
    monkeypatch.setattr(row_stream, "_KEEP_BYTES", 0)
    streamed = identify(robot, recording, method, signals=settings)
    np.testing.assert_allclose(kept.beta, streamed.beta, rtol=1e-9, atol=1e-12)
    assert kept.notes == streamed.notes


def test_a_large_recording_is_folded_in_blocks_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks are the parts of its rows, and give the standard deviations that the rows give."""
    robot = arm()
    recording = record(robot, (0, 1), noise=0.2)
    small = observe(robot, recording, signals=EXACT)
    expected = estimate_from(small, "wls")
    with monkeypatch.context() as limited:
        limited.setattr(row_stream, "_KEEP_BYTES", 0)
        large = observe(robot, recording, signals=EXACT)
    assert not small.time_blocks and len(large.time_blocks) == row_stream.BLOCKS
    for a, b in zip(small.factors, large.factors, strict=True):
        np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-9 * np.abs(a.T @ a).max())
    for ours, parts in zip(large.time_blocks, time_parts(small, row_stream.BLOCKS), strict=True):
        for a, b in zip(ours, parts, strict=True):
            np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-9 * np.abs(b.T @ b).max())
    np.testing.assert_allclose(estimate_from(large, "wls").std, expected.std, rtol=1e-6)


def test_a_large_and_a_small_recording_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small one is cut into blocks as long as those of the large one, whichever is first."""
    robot = arm()
    short = observe(robot, record(robot, (3,), noise=0.2), signals=EXACT)
    with monkeypatch.context() as limited:
        limited.setattr(row_stream, "_KEEP_BYTES", 0)
        long = observe(robot, record(robot, (0, 1), noise=0.2), signals=EXACT)
    for joined in (long.joined(short), short.joined(long)):
        assert len(joined.time_blocks) == row_stream.BLOCKS + row_stream.BLOCKS // 2
        whole = [sum(b[k].T @ b[k] for b in joined.time_blocks) for k in range(len(joined.factors))]
        for a, b in zip(joined.factors, whole, strict=True):
            np.testing.assert_allclose(a.T @ a, b, atol=1e-9 * np.abs(b).max())


def test_blockwise_decimation_equals_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filtering columns block by block with margins gives what filtering them whole gives."""
    robot = arm()
    recording = record(robot, (0,), noise=0.2, samples=20000)
    settings = replace(EXACT, decimate=(5, 4))
    whole = observe(robot, recording, signals=settings)
    monkeypatch.setattr(row_stream, "_DECIMATED_BLOCK", 100)
    parts = observe(robot, recording, signals=settings)
    assert parts.rows == whole.rows
    for a, b in zip(whole.factors, parts.factors, strict=True):
        # The filters' memory has decayed to this after the margin.
        np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-6 * np.abs(a.T @ a).max())


def test_nothing_is_filtered_across_runs() -> None:
    """Two runs with a jump between them equal two observations joined."""
    robot = arm()
    settings = Signals(cutoff=8.0, trim=0.2)
    one, two = record(robot, (0,)), record(robot, (5,))
    together = observe(robot, one + two, signals=settings)
    joined = observe(robot, one, signals=settings).joined(observe(robot, two, signals=settings))
    assert together.rows == joined.rows
    for a, b in zip(together.factors, joined.factors, strict=True):
        np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-9 * np.abs(a.T @ a).max())


def test_measured_subset_of_joints() -> None:
    """Only some torques measured: variances and rows are those of the channels, not of the model."""
    robot = arm()
    estimate = identify(robot, record(robot, (0, 1), noise=0.05), "wls", signals=EXACT, channels=["joint2", "joint3"])
    assert estimate.base.channels == ("joint2", "joint3") and len(estimate.noise) == 2
    np.testing.assert_allclose(estimate.noise, 0.05, rtol=0.1)
    truth = estimate.base.values()
    assert np.all(np.abs(estimate.beta - truth) < 5 * estimate.std)


@pytest.mark.parametrize(
    "run",
    [
        Run(np.arange(100.0), np.zeros((100, 3))),
        Run(np.arange(100.0), np.zeros((100, 3)), current=np.ones((100, 3))),
    ],
)
def test_recordings_without_torque_are_refused(run: Run) -> None:
    """Currents alone need gains; the message says so."""
    with expect_error(MissingData):
        observe(arm(), Recording(("joint1", "joint2", "joint3"), (run,)), signals=EXACT)


def test_other_robots_recording_is_refused() -> None:
    """Wrong number of joints, by both numbers."""
    with expect_error(Mismatch):
        observe(dynid.load_robot("twolink"), record(arm()), signals=EXACT)


def test_runs_with_a_weighed_payload_join_those_without() -> None:
    """A known payload is taken off; both recordings then tell of the same bare robot."""
    robot = arm()
    load = dynid.inertia.inertia_from_com(0.8, np.array([0.05, 0.0, 0.1]), 0.001 * np.eye(3))
    loaded = robot.with_payload("link3", load)
    known = np.zeros(len(robot.layout))
    known[[robot.parameter_names.index(f"{s}_link3") for s in INERTIAL_SYMBOLS]] = load
    bare = observe(robot, record(robot, (0,)), signals=EXACT)
    carried = observe(robot, record(loaded, (1,)), signals=EXACT, known=known)
    estimate = identify(robot, bare.joined(carried), "ols")
    np.testing.assert_allclose(estimate.beta, base_of(robot).values(), atol=1e-7)
    ignored = identify(robot, bare.joined(observe(robot, record(loaded, (1,)), signals=EXACT)), "ols")
    assert np.abs(ignored.beta - base_of(robot).values()).max() > 0.1


def test_observations_of_other_robots_do_not_join() -> None:
    """Other base parameters, other meaning."""
    robot = arm()
    other = robot.with_drives("viscous")
    with expect_error(Mismatch):
        observe(robot, record(robot), signals=EXACT).joined(observe(other, record(other), signals=EXACT))


def test_an_estimate_from_an_observation_is_validated_with_its_settings() -> None:
    """The settings travel with the rows; other ones, or another robot, are refused instead of ignored."""
    robot = arm()
    observation = observe(robot, record(robot, (0,), noise=0.05), signals=EXACT)
    estimate = identify(robot, observation, "wls")
    assert estimate.signals == EXACT
    np.testing.assert_allclose(estimate.validate(record(robot, (9,), noise=0.05)).rmse, 0.05, rtol=0.2)
    with expect_error(ConflictingArguments, "signals"):
        identify(robot, observation, "wls", signals=Signals())
    with expect_error(Mismatch):
        identify(robot.with_drives("viscous"), observation, "wls")
