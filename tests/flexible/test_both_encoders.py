"""Flexible joints from encoders of motor and link, against a pendulum that is integrated by the tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import DataError, MissingData, ModelError, UnknownName, WrongFormat
from dynid.flexible import (
    EncoderError,
    FlexibleEstimate,
    FlexibleModel,
    identify_flexible,
    load_flexible,
)
from dynid.flexible.rows import FlexibleRows, lag, two_sided
from dynid.flexible.solve import motor_stiffness
from dynid.recording.recording import Recording
from dynid.robot.load import load_robot
from dynid.signals.settings import Signals
from tests.support.errors import expect_error
from tests.support.flexible_plant import TRUTH, Truth, recording, robot


@pytest.fixture(scope="module")
def estimate() -> FlexibleEstimate:
    return identify_flexible(robot(), recording())


def test_all_parameters_are_found(estimate: FlexibleEstimate) -> None:
    """Stiffness and inertia to 0.5 %, damping to 2 %, frictions of both sides, within a few standard deviations."""
    assert estimate.converged and estimate.errors == ()
    np.testing.assert_allclose(estimate.stiffness, TRUTH.stiffness, rtol=5e-3)
    np.testing.assert_allclose(estimate.damping, TRUTH.damping, rtol=0.02)
    np.testing.assert_allclose(estimate.motor_inertia, TRUTH.motor_inertia, rtol=5e-3)
    assert abs(estimate.stiffness[0] - TRUTH.stiffness) < 4 * estimate.stiffness_std[0]
    found = dict(zip(estimate.base.names, estimate.beta, strict=True))
    assert found["Izz_link1"] == pytest.approx(TRUTH.inertia, rel=5e-3)
    assert found["mx_link1"] == pytest.approx(TRUTH.gravity / 9.81, rel=5e-3)
    assert found["fv_joint1"] == pytest.approx(TRUTH.link_viscous, rel=0.05)
    assert estimate.motor_parameters["fv_joint1"] == pytest.approx(TRUTH.viscous, rel=0.05)
    assert estimate.offsets[0, 0] == pytest.approx(-2e-3, abs=5e-5)


def test_rotor_inertia_is_not_grouped_with_the_link() -> None:
    """On a flexible joint; on a rigid one it is."""
    arm = load_robot("twolink", friction="viscous", rotor_inertia=True)
    flexible = FlexibleModel(arm, ("joint2",))
    assert not any("Ia_2" in text for text in flexible.base.expressions)
    assert any("Ia_1" in text for text in flexible.base.expressions)
    assert flexible.motor_names == ("Ia_joint2", "fv_joint2")
    with expect_error(ModelError, "link_friction", code="not_applicable"):
        FlexibleModel(arm, ("joint2",), "coulomb+offset")


def test_linear_springs_pass_the_tests_of_stiffness(estimate: FlexibleEstimate) -> None:
    assert [t.kind.value for t in estimate.tests] == ["cubic", "backlash", "hysteresis"]
    assert min(t.p_value for t in estimate.tests) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "kind"), [(Truth(backlash=1e-3), "backlash"), (Truth(cubic=5e6), "cubic")])
def test_nonlinear_stiffness_is_seen(truth: Truth, kind: str) -> None:
    """A gap of a milliradian, and a spring that hardens."""
    tests = {t.kind.value: t for t in identify_flexible(robot(), recording(truth)).tests}
    assert tests[kind].p_value < 1e-4
    assert (tests[kind].size > 0) == (kind == "backlash")


def test_a_late_link_encoder_is_recognized() -> None:
    """Two samples late: the difference of positions is mostly no deflection, and the stiffness stays right."""
    late = identify_flexible(robot(), recording(delay=2), tests=False)
    assert late.errors == (EncoderError.DELAY,)
    # Viscous friction of the link looks like a further delay of its compliance times its friction.
    assert late.delays[0] == pytest.approx(4e-3 + TRUTH.link_viscous / TRUTH.stiffness, abs=1e-4)
    assert late.stiffness[0] == pytest.approx(TRUTH.stiffness, rel=0.01)
    assert "lag behind" in " ".join(late.notes)


def test_noise_of_the_deflection_does_not_make_the_spring_soft() -> None:
    """Coarse encoders: least squares with the deflection as a regressor gives too little, the estimate does not."""
    clean = recording()
    run = clean.runs[0]
    assert run.link_q is not None
    noise = np.random.default_rng(1).normal(0.0, 2e-3, run.link_q.shape)
    noisy = Recording(clean.joints, (replace(run, link_q=run.link_q + noise),))
    model = FlexibleModel(robot(), ("joint1",))
    signals = Signals(cutoff=10.0)
    rows = FlexibleRows(model, (two_sided(robot(), noisy.runs[0], ("joint1",), signals),), signals)
    plain = motor_stiffness(rows, (*rows.torques, *rows.deflections(np.zeros(1))), 0)
    found = identify_flexible(robot(), noisy, tests=False, encoder_errors=(), signals=signals)
    assert plain < 0.9 * TRUTH.stiffness
    assert abs(found.stiffness[0] - TRUTH.stiffness) < 3 * found.stiffness_std[0] < 0.15 * TRUTH.stiffness


def test_links_are_predicted_from_motors(estimate: FlexibleEstimate) -> None:
    """On other motion: torques to a percent or two, link positions ten times better than without springs."""
    found = estimate.validate(recording(seed=1))
    assert found.torque.relative[0] < 0.02
    assert found.links is not None and found.links.flexible[0] < 0.1 * found.links.rigid[0]
    assert "link positions" in found.summary()


def test_files_hold_the_estimate(estimate: FlexibleEstimate, tmp_path: Path) -> None:
    """JSON holds all of it, TOML stiffness, damping and motors."""
    estimate.save(tmp_path / "joints.json")
    again = load_flexible(tmp_path / "joints.json")
    np.testing.assert_array_equal(again.x, estimate.x)
    np.testing.assert_array_equal(again.covariance, estimate.covariance)
    assert again.to_dict() == estimate.to_dict() and again.summary() == estimate.summary()
    estimate.save(tmp_path / "joints.toml")
    assert "stiffness_std" in (tmp_path / "joints.toml").read_text()
    with expect_error(WrongFormat):
        estimate.save(tmp_path / "joints.csv")
    (tmp_path / "joints.json").write_text('{"format": "other"}')
    with expect_error(WrongFormat):
        load_flexible(tmp_path / "joints.json")


def test_identified_links_are_physically_consistent(estimate: FlexibleEstimate) -> None:
    from dynid.feasibility.sets import feasible_set

    assert feasible_set(estimate.model.links).violations(estimate.parameters) == []
    np.testing.assert_allclose(estimate.base.values(estimate.parameters), estimate.beta, rtol=0.02, atol=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: replace(run, link_q=None), "motor side"),
        (lambda run: replace(run, link_q=np.full_like(run.q, np.nan)), "no joint has a link encoder"),
        (lambda run: replace(run, link_q=run.q + 0.1), "both encoders of 'joint1' are identical"),
        (lambda run: replace(run, link_q=0 * run.q), "link encoder of 'joint1' is constant"),
        (lambda run: replace(run, torque=None), "has no torques"),
    ],
)
def test_bad_link_encoders(change: object, words: str) -> None:
    """One sentence each."""
    given = recording()
    bad = Recording(given.joints, (change(given.runs[0]),))  # type: ignore[operator]
    with pytest.raises(DataError, match=words):
        identify_flexible(robot(), bad, sides="both")


def test_a_joint_without_link_encoder_cannot_be_asked_for() -> None:
    given = recording(link=False)
    with expect_error(MissingData):
        identify_flexible(robot(), given, joints=["joint1"], sides="both")
    with expect_error(UnknownName, "joints"):
        identify_flexible(robot(), given, joints=["elbow"], sides="both")
    with expect_error(UnknownName, "errors"):
        identify_flexible(robot(), recording(), encoder_errors=["slip"])


def test_the_lag_of_a_damper() -> None:
    """A sine behind 1 / (1 + T p): amplitude and phase."""
    t = np.arange(4000) / 1000.0
    w, time = 2 * np.pi * 5.0, 3e-3
    found = lag(np.sin(w * t)[:, None], time, 1000.0)[1000:, 0]
    expected = np.sin(w * t - np.arctan(w * time))[1000:] / np.hypot(1.0, w * time)
    np.testing.assert_allclose(found, expected, atol=2e-4)
