"""The checks of bodies: implausible estimates are named, good ones and open ones are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.model_checks import check_bodies, check_unidentified_mass
from dynid.cli.demo import synthetic_recording
from dynid.robot.inertia import inertia_from_com


@pytest.fixture(scope="module")
def estimate() -> dynid.Estimate:
    robot = dynid.load_robot("rv2sq")
    return dynid.identify(robot, synthetic_recording(robot, 0), "feasible")


def with_body(estimate: dynid.Estimate, link: str, body: np.ndarray, known: float) -> dynid.Estimate:
    """The estimate with another body on a link, whose standard deviations are multiplied."""
    assert estimate.standard is not None and estimate.standard_covariance is not None
    at = estimate.robot.parameter_names.index(f"m_{link}")
    standard, scale = estimate.standard.copy(), np.ones(len(estimate.standard))
    standard[at : at + 10] = body
    scale[at : at + 10] = known
    covariance = estimate.standard_covariance * np.outer(scale, scale)
    return replace(estimate, standard=standard, standard_covariance=covariance)


def test_a_good_estimate_passes(estimate: dynid.Estimate) -> None:
    assert check_bodies(Evidence(estimate)).result == "passed"
    assert check_unidentified_mass(Evidence(estimate)).result == "passed"


@pytest.mark.parametrize(
    ("body", "word", "result", "left_open"),
    [
        (inertia_from_com(8513.0, [0, 0, 0], 500 * np.eye(3)), "solid steel", "failed", "warned"),
        (inertia_from_com(1.0, [3, 0, 0], 0.01 * np.eye(3)), "centre of mass", "failed", "passed"),
        (inertia_from_com(1.0, [0, 0, 0], 25 * np.eye(3)), "radius of gyration", "failed", "passed"),
        (inertia_from_com(1.0, [0, 0, 0], 0.4 * 0.0107**2 * np.eye(3)), "compact", "warned", "passed"),
        (inertia_from_com(1e-3, [0, 0, 0], 1e-5 * np.eye(3)), "mass", "warned", "warned"),
    ],
)
def test_absurd_bodies_are_named(
    estimate: dynid.Estimate, body: np.ndarray, word: str, result: str, left_open: str
) -> None:
    """Where they are known; where they are not, a plausible prior is not blamed, but a mass far from it is told."""
    check = check_bodies(Evidence(with_body(estimate, "link4", body, 1e-6)))
    assert check.result == result and word in check.words and "link4" in check.words and check.advice
    check = check_bodies(Evidence(with_body(estimate, "link4", body, 1e9)))
    assert check.result == left_open and ("does not determine" in check.words) == (left_open == "warned")


def test_an_absurd_prior_is_named_as_such(estimate: dynid.Estimate) -> None:
    """The recording does not show link 1 of a fixed arm: what is written there is what the file had."""
    body = inertia_from_com(3.0, [5.0, 0, 0], 0.1 * np.eye(3))
    at = estimate.robot.parameter_names.index("m_link1")
    prior = estimate.robot.parameters.copy()
    prior[at : at + 10] = body
    robot = estimate.robot.with_parameters(prior)
    open_body = with_body(estimate, "link1", body, 1e3)
    check = check_bodies(Evidence(replace(open_body, base=replace(estimate.base, robot=robot))))
    assert check.result == "warned" and "a-priori body" in check.words and "correct the a-priori model" in check.advice


def test_without_bodies_nothing_is_checked(estimate: dynid.Estimate) -> None:
    only_base = replace(estimate, standard=None, standard_covariance=None)
    assert check_bodies(Evidence(only_base)).result == "not checked"
    assert check_bodies(Evidence(replace(estimate, standard_covariance=None))).result == "not checked"
