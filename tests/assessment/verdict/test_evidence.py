"""What a verdict does with the evidence that is given, that is missing, and that is the fitted motion again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import dynid
from dynid.assessment.verdict.assess import evidence_of
from dynid.assessment.verdict.torques import torques_of
from dynid.cli.demo import synthetic_recording
from dynid.hypothesis import HypothesisTest, TestCode
from dynid.identification.observing import observe

CAUTION = ("trusted", "use with care", "do not use")


@pytest.fixture(scope="module")
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous+coulomb")


@pytest.fixture(scope="module")
def fitted(robot: dynid.Robot) -> dynid.Recording:
    return synthetic_recording(robot, 0)


@pytest.fixture(scope="module")
def unseen(robot: dynid.Robot) -> dynid.Recording:
    return synthetic_recording(robot, 1)


@pytest.fixture(scope="module")
def estimate(robot: dynid.Robot, fitted: dynid.Recording) -> dynid.Estimate:
    return dynid.identify(robot, fitted, "feasible")


@pytest.mark.parametrize("saved", [False, True])
def test_the_fitted_recording_is_not_unseen(
    estimate: dynid.Estimate, fitted: dynid.Recording, saved: bool, tmp_path: object
) -> None:
    """In any disguise, also for an estimate that was saved and has no recording beside it."""
    if saved:
        estimate.save(f"{tmp_path}/estimate.json")
        estimate = dynid.Estimate.load(f"{tmp_path}/estimate.json")
    run = fitted.runs[0]
    assert run.torque is not None
    every = slice(None, None, 4)
    disguised = [
        replace(fitted, runs=(replace(run, name="another"),)),
        replace(fitted, runs=(run.rows(2000, 7000),)),
        replace(fitted, runs=(dynid.Run(run.t[1:], run.q[:-1], torque=run.torque[:-1]),)),
        replace(fitted, runs=(dynid.Run(run.t[every], run.q[every], torque=run.torque[every]),)),
    ]
    for recording in disguised:
        assessment = dynid.assess(estimate, recording, recording=None if saved else fitted)
        check = assessment.check("unseen_motion")
        assert check.result == "warned" and check.figure is not None and check.figure > 0.85
        assert assessment.verdict != "trusted"
    assert "not unseen" in estimate.validate(disguised[0]).summary()


def test_less_evidence_is_never_a_reason_to_trust(
    estimate: dynid.Estimate, fitted: dynid.Recording, unseen: dynid.Recording
) -> None:
    """Each check has the same result with less evidence, or is not made; what is missing is a warning, no failure."""
    diagnosis = dynid.stats.diagnose(estimate, fitted)
    validation = estimate.validate(unseen)
    whole = dynid.assess(estimate, unseen, recording=fitted, diagnosis=diagnosis)
    assert whole.verdict == "trusted", whole.summary()
    for recording, motion, tests in product((fitted, None), (unseen, validation, None), (diagnosis, None)):
        part = dynid.assess(estimate, motion, recording=recording, diagnosis=tests)
        assert part.verdict != "do not use", part.summary()
        assert CAUTION.index(part.verdict) >= CAUTION.index(whole.verdict)
        assert (part.verdict == "trusted") == (recording is fitted and motion is unseen), part.summary()
        for check in part.checks:
            if check.code not in ("evidence", "validation_error"):
                assert check.result in (whole.check(check.code).result, "not checked"), check


def test_faults_are_found_with_whatever_evidence_shows_them(
    robot: dynid.Robot, fitted: dynid.Recording, unseen: dynid.Recording
) -> None:
    """A reversed torque is a failure with the recording or with unseen motion, and never trusted with neither."""

    def turned(recording: dynid.Recording) -> dynid.Recording:
        runs = [replace(r, torque=r.torque * np.array([1.0, -1.0])) for r in recording.runs if r.torque is not None]
        return replace(recording, runs=tuple(runs))

    wrong = dynid.identify(robot, turned(fitted), "wls")
    for recording, motion in product((turned(fitted), None), (turned(unseen), None)):
        verdict = dynid.assess(wrong, motion, recording=recording).verdict
        assert verdict == "do not use" if recording is not None else verdict != "trusted"


def test_another_recording_is_not_the_fitted_one(
    estimate: dynid.Estimate, robot: dynid.Robot, unseen: dynid.Recording
) -> None:
    check = dynid.assess(estimate, unseen, recording=synthetic_recording(robot, 7)).check("evidence")
    assert check.result == "warned" and "another one was given" in check.words


def test_rejected_instruments_are_a_reason_for_care(
    estimate: dynid.Estimate, fitted: dynid.Recording, unseen: dynid.Recording
) -> None:
    plain = dynid.stats.diagnose(estimate, fitted)
    for p_value, result in ((1e-21, "warned"), (0.5, "passed")):
        test = HypothesisTest(
            TestCode.INSTRUMENT_VALIDITY, "name", "null", 9.0, "F(1, 9)", p_value, 0.05, "verdict", "advice"
        )
        diagnosis = replace(plain, tests=(*plain.tests, test))
        assessment = dynid.assess(estimate, unseen, recording=fitted, diagnosis=diagnosis)
        assert assessment.check("instruments").result == result
        assert assessment.trusted == (result == "passed")


def test_a_singular_covariance_is_no_failure(
    estimate: dynid.Estimate, fitted: dynid.Recording, unseen: dynid.Recording
) -> None:
    """With and without the recording: nothing inverts it."""
    singular = estimate.covariance.copy()
    singular[1] = singular[0]
    singular[:, 1] = singular[:, 0]
    other = replace(estimate, covariance=singular)
    results = [
        {c.code: c.result for c in dynid.assess(other, unseen, recording=recording).checks}
        for recording in (fitted, None)
    ]
    for code in ("excitation", "prediction_uncertainty", "parameter_agreement"):
        assert results[0][code] == results[1][code] == "passed"


def errors_of(robot: dynid.Robot, torque: tuple[float, float], error: tuple[float, float], white: bool) -> np.ndarray:
    """Relative errors of two joints with sinusoidal torque, and smooth or white errors of a given size."""
    t = np.arange(0.0, 20.0, 0.05)
    rng = np.random.default_rng(0)
    measured = [size * np.sqrt(2) * np.sin(3 * t + k) for k, size in enumerate(torque)]
    kind = [rng.normal(size=len(t)) if white else np.sqrt(2) * np.sin(0.7 * t) for _ in error]
    predicted = [m - e * x for m, e, x in zip(measured, error, kind, strict=True)]
    times = (t, t)
    found = dynid.identification.validation.validation_of(robot, robot.coordinates, measured, predicted, times)
    return torques_of(robot, found).relative


def test_small_joints_are_judged_by_what_the_arm_needs(robot: dynid.Robot) -> None:
    """An error of 0.2 N m in a wrist that carries 0.3 N m counts little in an arm that needs 60 N m."""
    own = errors_of(robot, (40.0, 0.3), (1.0, 0.2), white=False)
    assert own == pytest.approx([1.0 / 40.0, 0.2 / (0.02 * 40 * np.sqrt(2))], rel=0.02)
    limited = robot.with_limits({"joint2": {"effort": 20.0}})
    assert errors_of(limited, (40.0, 0.3), (1.0, 0.2), white=False)[1] == pytest.approx(0.2, rel=0.02)
    alone = errors_of(robot, (0.3, 0.3), (0.2, 0.2), white=False)
    assert alone == pytest.approx([0.667, 0.667], rel=0.02)


def test_white_noise_is_half_an_error_at_most(robot: dynid.Robot) -> None:
    """A model cannot predict noise; but a torque that is nothing but noise is not explained either."""
    assert errors_of(robot, (1.0, 1.0), (0.8, 0.8), white=True) == pytest.approx([0.4, 0.4], rel=0.15)


def test_rows_that_were_computed_before_change_nothing(
    estimate: dynid.Estimate, fitted: dynid.Recording, unseen: dynid.Recording
) -> None:
    """The default observes with a Coulomb step that the low-pass blurs; causes are those of the estimate's model."""
    robot = estimate.robot
    blurred = replace(robot, drives=tuple(replace(x, slope=20.0) if x.is_coulomb else x for x in robot.drives))
    rows = observe(blurred, fitted, signals=estimate.signals)
    evidence = evidence_of(estimate, unseen, recording=fitted)
    again = evidence_of(estimate, unseen, recording=fitted, observation=rows)
    assert evidence.fitted is not None and again.fitted is not None
    for one, two, other in zip(evidence.fitted.factors, again.fitted.factors, rows.factors, strict=True):
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, other)
