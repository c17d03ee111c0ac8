"""What the verdict says of the mass matrix."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import dynid
from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.model_checks import check_mass_matrix
from dynid.robot import Joint, Link

TURN, SLIDE = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])


def slider(inertia: float, mass: float = 1.0) -> dynid.Robot:
    """A mass that slides along a turning arm: mass matrix diag(inertia + mass q2^2, mass)."""
    body, arm = np.zeros(10), np.zeros(10)
    body[0], arm[9] = mass, inertia
    return dynid.Robot(
        name="slider",
        links=(Link("base", np.zeros(10)), Link("arm", arm), Link("body", body)),
        joints=(
            Joint("turn", "revolute", 0, np.eye(4), TURN),
            Joint("slide", "prismatic", 1, np.eye(4), SLIDE),
        ),
    )


def checked(robot: dynid.Robot) -> Check:
    base = SimpleNamespace(channels=robot.channels)
    estimate = SimpleNamespace(robot=robot, base=base, parameters=robot.parameters)
    return check_mass_matrix(SimpleNamespace(estimate=estimate))  # type: ignore[arg-type]


def test_a_positive_definite_mass_matrix_passes() -> None:
    check = checked(slider(0.3))
    assert (check.code, check.result, check.figure) == (CheckCode.MASS_MATRIX, "passed", 0.0)
    assert check.words == "the mass matrix is positive definite at 500 of 500 random poses" and not check.advice


@pytest.mark.parametrize(
    ("inertia", "mass", "share"), [(-0.25, 1.0, 0.5), (-0.01, 1.0, 0.1), (-9.0, 1.0, 1.0), (9.0, -1.0, 1.0)]
)
def test_poses_without_a_positive_definite_mass_matrix_fail(inertia: float, mass: float, share: float) -> None:
    """Without limits the slide ranges from -1 to 1 m: the share where q2^2 is below -inertia / mass."""
    check = checked(slider(inertia, mass))
    # Four standard deviations of a share of 500 poses.
    assert check.figure == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 500) + 1e-12)
    assert check.result == "failed" and "cannot be simulated" in check.words and "feasible" in check.advice
    assert f"at {round(500 * check.figure)} of 500" in check.words


def test_a_moving_base_is_not_checked() -> None:
    check = checked(slider(0.3).with_base("floating"))
    assert check.result == "not checked" and "moving base" in check.words
