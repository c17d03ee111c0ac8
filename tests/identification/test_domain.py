"""Domain of validity: what was recorded, and torques that become uncertain beyond it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DamagedFile, MissingData
from dynid.identification.domain import friction_scale, friction_std
from dynid.identification.observing import observe
from dynid.recording import open_dataset
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.domain import Domain
from tests.support import linear_axis
from tests.support.errors import expect_error
from tests.support.partitions import runs, write_data_set
from tests.support.synthetic import EXACT, arm, motion, record

V_LIMIT = 4.0


@pytest.fixture(scope="module")
def estimate() -> dynid.Estimate:
    robot = arm().with_limits({"joint1": {"velocity": V_LIMIT}})
    return dynid.identify(robot, record(robot, (0, 1), noise=0.05), "wls", signals=EXACT)


@pytest.fixture(scope="module")
def domain(estimate: dynid.Estimate) -> Domain:
    assert estimate.domain is not None
    return estimate.domain


def test_the_domain_is_what_was_recorded(domain: Domain) -> None:
    """Over both runs: ranges, magnitudes that few samples exceed, the robot's limits, and the duration."""
    moved = [motion(arm(), seed) for seed in (0, 1)]
    q, v, a = (np.concatenate([m[k] for m in moved]) for k in (1, 2, 3))
    np.testing.assert_allclose([domain.low, domain.high], [q.min(axis=0), q.max(axis=0)], rtol=1e-6)
    for reached, x in ((domain.velocity, v), (domain.acceleration, a)):
        above = np.mean(np.abs(x) > reached, axis=0)
        assert np.all((above > 0.001) & (above <= 0.0055))
    torque = np.abs(dynid.inverse_dynamics(arm(), q, v, a)).max(axis=0)
    assert np.all((domain.load > 0.8 * torque) & (domain.load < torque + 0.2))  # four standard deviations of the noise
    assert domain.velocity_limit.tolist() == [V_LIMIT, np.inf, np.inf] and domain.seconds == pytest.approx(20.0)


def test_partitions_have_the_domain_of_the_recording(tmp_path: Path) -> None:
    """Percentiles of parts differ a little from those of whole runs; joined observations cover both motions."""
    signals = dynid.Signals(cutoff=10.0, stops=False)
    recording = Recording(arm().coordinates, tuple(runs(arm(), 3, samples=2000)))
    write_data_set(arm(), tmp_path, list(recording.runs))
    whole = observe(arm(), recording, signals=signals)
    streamed = observe(arm(), open_dataset(tmp_path, arm()), signals=signals)
    first, second = (
        observe(arm(), replace(recording, runs=some), signals=signals)
        for some in (recording.runs[:1], recording.runs[1:])
    )
    assert whole.domain is not None
    for other, tolerance in ((streamed.domain, 0.02), (first.joined(second).domain, 1e-12)):
        assert other is not None
        for x in fields(Domain)[2:]:
            np.testing.assert_allclose(getattr(other, x.name), getattr(whole.domain, x.name), rtol=tolerance)


def test_sentences_name_the_least_covered_joint_first_with_its_share_of_the_limit(domain: Domain) -> None:
    velocities, loads, positions = domain.sentences()
    share = 100 * domain.velocity[0] / V_LIMIT
    assert velocities.startswith(f"Valid for velocities up to {domain.velocity[0]:.3g} rad/s (joint1, {share:.0f} % of")
    assert f"{domain.load[2]:.3g} N m (joint3)" in loads and "joint3" in positions and "limit" not in loads


def test_a_slide_has_metres_and_newtons() -> None:
    found = observe(linear_axis.axis(), linear_axis.recording(0)).domain
    assert found is not None
    velocities, loads, positions = found.sentences()
    assert " m/s (" in velocities and " N (" in loads and " m (" in positions and "rad" not in velocities + positions


def test_a_domain_survives_a_file_and_a_damaged_one_is_refused(domain: Domain) -> None:
    again = Domain.from_dict(domain.to_dict())
    for x in fields(Domain):
        assert np.array_equal(getattr(again, x.name), getattr(domain, x.name)), x.name
    damages: list[dict[str, object]] = [{"low": [0.0]}, {"velocity": ["fast"] * 3}, {"speed": []}]
    for wrong in damages:
        with expect_error(DamagedFile):
            Domain.from_dict(domain.to_dict() | wrong)


def test_within_the_domain_the_band_is_that_of_parameters_and_noise(estimate: dynid.Estimate) -> None:
    """And it holds 95 % of new measurements, for fast and for slow samples."""
    _, q, v, a = motion(arm(), 0)
    predicted = estimate.predict(q, v, a)
    model = estimate.base_model()
    inside = ~predicted.beyond.any(axis=1)
    expected = np.hypot(model.std("inverse_dynamics", q, v, a), estimate.rms)
    assert 0.9 < inside.mean() < 1.0
    np.testing.assert_allclose(predicted.std[inside], expected[inside], rtol=1e-9)
    np.testing.assert_allclose(predicted.torque, model.inverse_dynamics(q, v, a), rtol=1e-9, atol=1e-9)
    new = dynid.inverse_dynamics(arm(), q, v, a) + 0.05 * np.random.default_rng(3).normal(size=q.shape)
    assert 0.93 < np.mean(np.abs(new - predicted.torque) <= 1.96 * predicted.std) < 0.97


def test_beyond_the_recorded_velocity_the_band_of_that_joint_grows(estimate: dynid.Estimate, domain: Domain) -> None:
    """By more than the square of the excess for the fast joint, and by the covariance alone for the others."""
    faster = np.array([1.0, 2.0, 4.0, 8.0])
    q, v, a = (np.zeros((4, 3)) for _ in range(3))
    q += 0.5 * (domain.low + domain.high)
    v[:, 1] = faster * domain.velocity[1]
    predicted = estimate.predict(q, v, a)
    assert predicted.beyond.tolist() == [[False, x > 1, False] for x in faster]
    linear = np.hypot(estimate.base_model().std("inverse_dynamics", q, v, a), estimate.rms)
    np.testing.assert_allclose(predicted.std[:, [0, 2]], linear[:, [0, 2]], rtol=1e-9)
    extra = np.sqrt(predicted.std[:, 1] ** 2 - linear[:, 1] ** 2)
    assert extra[0] == pytest.approx(0.0, abs=1e-6) and extra[3] > 4 * extra[2] > 16 * extra[1] / 2
    dry, change = friction_scale(estimate, domain)
    assert dry[1] == pytest.approx(0.7, abs=0.05) and change[1] == pytest.approx(1.0 * domain.velocity[1], rel=0.05)


def test_the_bound_is_the_error_of_a_line_fitted_to_a_quadratic_law() -> None:
    """The bound of the arcsine law is at sqrt(2) standard deviations."""
    v = motion(arm(), 0)[2][:, 0]
    found = observe(arm(), record(arm(), (0,)), signals=EXACT).domain
    assert found is not None
    fastest, excess = found.velocity[0], np.array([0.0, 0.5, 2.0])
    slope = np.sum(np.abs(v) ** 3) / np.sum(v**2)
    error = (fastest * (1 + excess)) ** 2 - slope * fastest * (1 + excess)
    std = friction_std(0.0, slope * fastest, excess, found.crossing[0])
    np.testing.assert_allclose(np.sqrt(2) * std, error - error[0], rtol=1e-6)
    assert np.isinf(friction_std(0.0, 0.0, np.inf, 1.0))  # of a joint that stood still


def test_a_stribeck_peak_and_smoothing_do_not_count_as_change() -> None:
    """What has fallen before half of the recorded velocity says nothing of what follows."""
    robot = replace(dynid.load_robot("twolink"), drives=())
    laws = [("fv", 0.2, 0.0), ("fc", 1.0, 0.0), ("fs", 3.0, 0.1)]
    terms = [robot.joint_term(j, symbol, value, velocity=vs) for j in robot.coordinates for symbol, value, vs in laws]
    robot = robot.with_terms(*terms).with_smooth_coulomb(50.0)
    t, q, v, a = motion(robot, 0)
    recording = Recording(robot.coordinates, (Run(t, q, torque=dynid.inverse_dynamics(robot, q, v, a)),))
    estimate = dynid.identify(robot, recording, "wls", signals=EXACT)
    assert estimate.domain is not None
    dry, change = friction_scale(estimate, estimate.domain)
    np.testing.assert_allclose(dry, 1.0, atol=0.02)
    np.testing.assert_allclose(change, 0.2 * estimate.domain.velocity, rtol=0.05)


def test_without_a_recorded_motion_there_is_no_prediction(estimate: dynid.Estimate) -> None:
    with expect_error(MissingData):
        replace(estimate, domain=None).predict(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 3)))


def test_what_a_joint_at_rest_leaves_unknown_has_no_band() -> None:
    """Its friction is unknown at any velocity, and so are torques that its motion shows; those at rest are known."""
    t, q, v, a = (np.array(x) for x in motion(arm(), 0))
    for x in (q, v, a):
        x[:, 2] = 0.0
    recording = Recording(arm().coordinates, (Run(t, q, torque=dynid.inverse_dynamics(arm(), q, v, a)),))
    estimate = dynid.identify(arm(), recording, "wls", signals=replace(EXACT, min_velocity=0.01))
    resting = estimate.predict(q[:1], v[:1], a[:1])
    moving = estimate.predict(q[:1], v[:1] + np.array([0, 0, 1.0]), a[:1])
    assert np.all(np.isfinite(resting.std[0, :2])) and np.isinf(moving.std[0, 2]) and moving.beyond[0, 2]
