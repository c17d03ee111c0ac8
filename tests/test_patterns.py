"""A pattern that is itself a name means that name alone; regular expressions are read in linear time."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynid.cli.resolve import locked
from dynid.excitation.limits import motion_limits
from dynid.patterns import matching_expression, matching_names
from tests.support.log_files import robot


def test_names_with_brackets_are_names() -> None:
    names = ["joint[1]", "joint1", "joint2"]
    assert matching_names("joint[1]", names) == ["joint[1]"]
    assert matching_names("joint[12]", names) == ["joint1", "joint2"]
    assert matching_names("*", names) == names


def test_a_robot_whose_joints_have_brackets() -> None:
    """Locking, limits and drive terms by such names."""
    arm = robot("joint[1]", "joint1", "j[*]").with_drives("viscous")
    assert locked(arm, ["joint[1]"]).coordinates == ("joint1", "j[*]")
    whole = {"lower": -1.0, "upper": 1.0, "velocity": 1.0}
    limits = motion_limits(arm, {"*": whole, "j[*]": {"velocity": 2.0}})
    np.testing.assert_array_equal(limits.velocity, [1, 1, 2])
    left = arm.without("fv_joint[1]")
    assert [t.name for t in left.drives] == ["fv_joint1", "fv_j[*]"]
    assert np.isclose(left.parameters.sum(), arm.parameters.sum())


def test_regular_expressions_match_whole_names() -> None:
    names = ["FL_hip", "FR_hip", "FL_hip_2", "FL_knee", "joint[1]", "joint1", "a\n"]
    assert matching_expression(".*_hip", names) == ["FL_hip", "FR_hip"]
    assert matching_expression("F[LR]_(hip|knee)", names) == ["FL_hip", "FR_hip", "FL_knee"]
    assert matching_expression("joint[1]", names) == ["joint[1]"]
    assert matching_expression("a", names) == []
    assert matching_expression("x", []) == []


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_an_escaped_name_is_that_name(name: str) -> None:
    assert matching_expression(re.escape(name), ["other", name + "_", name]) == [name]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "unclosed group"),
        ("a)|(b", "unopened group"),
        ("(?!FL).*", "look-ahead"),
        (r"(a)\1", "backreferences"),
        ("a{1000}{1000}{1000}", "size limit"),
    ],
)
def test_what_is_no_expression_is_said_in_one_line(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as said:
        matching_expression(expression, ["a", "b"])
    assert "\n" not in str(said.value)


def test_no_expression_takes_long() -> None:
    """Python's engine would take 2^40 steps for each."""
    for hostile in ("(a+)+b", "(a|aa)+b", "(.*a){40}b"):
        assert matching_expression(hostile, ["a" * 40]) == []
