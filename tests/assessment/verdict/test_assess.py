"""Checks of a assessment one by one: what each looks at, and what it says without its evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.assessment.verdict.assess import CHECKS, evidence_of
from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.model_checks import check_domain
from dynid.cli.demo import synthetic_recording
from dynid.errors import DamagedFile, MissingData, MissingFile, UnknownName
from dynid.identification.estimators.solution import Outcome
from tests.support.errors import expect_error
from tests.support.saved_fields import assert_no_defaults


@pytest.fixture(scope="module")
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous+coulomb")


@pytest.fixture(scope="module")
def recordings(robot: dynid.Robot) -> tuple[dynid.Recording, dynid.Recording]:
    return synthetic_recording(robot, 0), synthetic_recording(robot, 1)


@pytest.fixture(scope="module")
def estimate(robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]) -> dynid.Estimate:
    return dynid.identify(robot, recordings[0], "feasible")


def test_unseen_errors_are_those_of_validate(
    estimate: dynid.Estimate, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """A recording and its validation lead to the same errors; only the recording shows whether parameters agree."""
    validation = estimate.validate(recordings[1])
    mine = evidence_of(estimate, recordings[1]).validation
    assert mine is not None
    for name in ("rmse", "relative", "largest"):
        assert np.allclose(getattr(mine, name), getattr(validation, name), rtol=1e-12)
    assert all(np.allclose(a, b) for a, b in zip(mine.time, validation.time, strict=True))
    assessment = dynid.assess(estimate, validation, recording=recordings[0])
    assert assessment.check("validation_error").result == "passed"
    assert assessment.check("parameter_agreement").result == "not checked"


def test_a_judgement_is_plain_data(
    estimate: dynid.Estimate, recordings: tuple[dynid.Recording, dynid.Recording], tmp_path: Path
) -> None:
    """Every check stands in the file with its figure and limit, and the words say the verdict again."""
    assessment = dynid.assess(estimate, recordings[1], recording=recordings[0])
    assessment.save(tmp_path / "verdict.json")
    saved = json.loads((tmp_path / "verdict.json").read_text())
    assert saved["verdict"] == assessment.verdict == "trusted" and len(saved["checks"]) == len(CHECKS)
    assert {c["result"] for c in saved["checks"]} == {"passed", "not checked"}
    assert assessment.summary().startswith("verdict: trusted") and assessment.trusted
    assert Assessment.load(tmp_path / "verdict.json") == assessment


def test_every_field_of_an_assessment_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    full = Check(CheckCode.DELAY, "warned", "late", 1.5, float("inf"), float("nan"), "samples", "shift the torques")
    full = replace(full, effects=("load-friction",))
    assert_no_defaults(full)
    assessment = Assessment("arm", "wls", (full, Check(CheckCode.SOLVER, "passed", "it converged")))
    assessment.save(path)
    again = Assessment.load(path)
    assert again.robot == "arm" and again.method == "wls" and again.checks[1] == assessment.checks[1]
    assert np.isnan(again.checks[0].failure)
    assert replace(again.checks[0], failure=0.0) == replace(full, failure=0.0)
    for text in ("{}", "[1]", "no", '{"format": "dynid verdict 1"}'):
        path.write_text(text)
        with pytest.raises(dynid.DataError, match=r"verdict\.json"):
            Assessment.load(path)
    with expect_error(MissingFile):
        Assessment.load(tmp_path / "none.json")


def test_a_file_that_was_changed_gives_no_verdict(tmp_path: Path) -> None:
    """A result in other words is not a check that passed, and the verdict is that of the checks."""
    path = tmp_path / "verdict.json"
    Assessment("arm", "wls", (Check(CheckCode.DELAY, "failed", "late"),)).save(path)
    whole = json.loads(path.read_text())
    check = whole["checks"][0]
    changes = [
        whole | {"verdict": "trusted"},
        whole | {"verdict": "fine"},
        whole | {"checks": 3},
        whole | {"more": 1},
        whole | {"checks": []},
    ]
    for name, value in {"result": "pass", "code": "late", "figure": "much", "words": None}.items():
        changes.append(whole | {"checks": [check | {name: value}]})
    changes.append(whole | {"checks": [{k: x for k, x in check.items() if k != "limit"}]})
    for changed in changes:
        path.write_text(json.dumps(changed))
        with expect_error(DamagedFile):
            Assessment.load(path)


def test_a_method_that_did_not_end_is_not_used(estimate: dynid.Estimate) -> None:
    """Whatever the errors are; one without values is judged by its end alone and cannot be reported."""
    assert (
        dynid.assess(replace(estimate, status="stalled in iteration 3", outcome=Outcome.STALLED)).verdict
        == "do not use"
    )
    nothing = np.full_like(estimate.beta, np.nan)
    empty = replace(estimate, status="aborted in iteration 1", outcome=Outcome.ABORTED, beta=nothing)
    assessment = dynid.assess(empty)
    assert assessment.verdict == "do not use" and len(assessment.checks) == 1
    with expect_error(MissingData):
        dynid.report.write(empty, "nowhere.html")


def test_worse_than_the_prior_is_said(
    estimate: dynid.Estimate, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """The a-priori model of the simulation is the truth; values a third off lose against it, and against the motion."""
    assessment = dynid.assess(replace(estimate, beta=1.3 * estimate.beta), recordings[1], recording=recordings[0])
    assert assessment.check("prior").result == "failed"
    assert assessment.check("parameter_agreement").result == "failed"
    assert assessment.verdict == "do not use" and "a-priori model predicts better" in " ".join(assessment.reasons)


def test_friction_that_drives_is_a_wrong_sign(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """Without findings of the data checks the sign of the friction itself tells."""
    plain = dynid.identify(robot, recordings[0], "wls")
    beta = plain.beta.copy()
    beta[plain.base.names.index("fc_joint2")] *= -1
    check = dynid.assess(replace(plain, beta=beta), recordings[1], recording=recordings[0], findings=()).check("signs")
    assert check.result == "failed" and "fc_joint2" in check.words


def test_load_is_weighed(robot: dynid.Robot, estimate: dynid.Estimate) -> None:
    """A payload in the unseen run alone is named, with about its mass."""
    body = dynid.inertia.inertia_from_com(0.4, [0.3, 0.0, 0.0], 1e-4 * np.eye(3))
    carried = synthetic_recording(robot.with_payload(robot.links[-1].name, body), 1)
    check = dynid.assess(estimate, carried).check("payload")
    assert check.result in ("warned", "failed") and robot.links[-1].name in check.words


def test_a_load_that_hardly_acts_is_not_named(robot: dynid.Robot, estimate: dynid.Estimate) -> None:
    """A gram in the hand is significant without noise, but no torque is wrong by more than a few percent."""
    body = dynid.inertia.inertia_from_com(0.01, [0.3, 0.0, 0.0], 1e-7 * np.eye(3))
    carried = synthetic_recording(robot.with_payload(robot.links[-1].name, body), 1)
    assessment = dynid.assess(estimate, carried)
    error, check = assessment.check("validation_error"), assessment.check("payload")
    assert error.figure is not None and 0.002 < error.figure < 0.03
    assert check.result == "passed" and check.figure == check.limit


def test_an_unknown_check_is_named(estimate: dynid.Estimate) -> None:
    """With the codes that there are, and the nearest of them."""
    assessment = dynid.assess(estimate)
    assert assessment.check("excitation") is assessment.check(CheckCode.EXCITATION)
    with expect_error(UnknownName, "code"):
        assessment.check("excitaton")


def with_velocity_share(estimate: dynid.Estimate, share: float) -> dynid.Estimate:
    """The estimate of a robot whose first joint was recorded at this share of its velocity limit, the others fully."""
    assert estimate.domain is not None
    limits = estimate.domain.velocity / np.array([share, *np.ones(estimate.robot.n - 1)])
    return replace(estimate, domain=replace(estimate.domain, velocity_limit=limits))


def test_the_verdict_names_the_velocity_up_to_which_it_holds(
    estimate: dynid.Estimate, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """With the share of the limit and what a faster recording would show; slow motion does not lower the grade."""
    slow = dynid.assess(with_velocity_share(estimate, 0.3), recordings[1], recording=recordings[0])
    check = slow.check("domain")
    assert slow.verdict == "trusted" and check.result == "passed" and check.figure == pytest.approx(0.3)
    assert "'joint1', 30 % of its velocity limit" in check.words and "until a recording at up to" in check.words
    assert check.words in slow.reasons
    full = evidence_of(with_velocity_share(estimate, 1.0))
    assert "100 % of its velocity limit" in check_domain(full).words and "until" not in check_domain(full).words
    assert estimate.domain is not None
    free = replace(estimate, domain=replace(estimate.domain, velocity_limit=np.full(2, np.inf)))
    without = check_domain(evidence_of(free))
    assert without.figure is None and "limit" not in without.words and "rad/s" in without.words
    assert check_domain(evidence_of(replace(estimate, domain=None))).result == "not checked"


def test_unseen_motion_outside_of_the_domain_is_named(
    estimate: dynid.Estimate, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """The same motion is inside; beside a domain of half the velocity of a joint it is twice as fast."""
    assert estimate.domain is not None
    inside = check_domain(evidence_of(estimate, recordings[0]))
    halved = replace(estimate.domain, velocity=estimate.domain.velocity * np.array([1.0, 0.5]))
    outside = check_domain(evidence_of(replace(estimate, domain=halved), recordings[0]))
    assert "unseen motion" not in inside.words and inside.result == outside.result == "passed"
    assert "unseen motion is outside" in outside.words and "2 times the velocity in 'joint2'" in outside.words
