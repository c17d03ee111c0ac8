"""A pattern that is itself a name means that name alone."""

from __future__ import annotations

import numpy as np

from dynid.cli.resolve import locked
from dynid.excitation.limits import motion_limits
from dynid.patterns import matching_names
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
