"""Corrected robots place their tools as the kinematics of the calibration; what they cannot hold is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.dynamics import frame_placement
from dynid.errors import InvalidShape, NotApplicable, NotFinite, UnknownName
from dynid.geometry import Unknown, corrected_robot, lost_errors
from dynid.geometry.unknowns import UnknownKind
from dynid.robot.parts import Frame
from dynid.robot.spatial import placement
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.wrong_geometry import EVERYTHING, postures, tool, wrong

ROBOTS = {
    **{name: dynid.load_robot(name) for name in ("puma560", "iiwa14", "twolink", "wam7")},
    "mimics, mounts, slides": random_robot(1, 8, kinds="rprprprr", mimics=3),
    "branches": random_robot(2, 9, mimics=2),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_the_tool_is_where_the_calibration_says(name: str) -> None:
    robot = ROBOTS[name]
    unknowns, x = wrong(robot)
    q = postures(robot)
    corrected = corrected_robot(robot, unknowns, x)
    for link in robot.links[1:]:
        expected = tool(robot, unknowns, x, q, link.name)
        np.testing.assert_allclose(frame_placement(corrected, q, link.name), expected, rtol=0, atol=1e-12)
    assert np.abs(frame_placement(robot, q, robot.links[-1].name) - expected).max() > 1e-4


def test_all_but_placements_stays() -> None:
    robot = ROBOTS["mimics, mounts, slides"]
    unknowns, x = wrong(robot)
    corrected = corrected_robot(robot, unknowns, x)
    assert corrected.parameter_names == robot.parameter_names and corrected.limits == robot.limits
    assert [j.mimic for j in corrected.joints] == [j.mimic for j in robot.joints]
    assert all(a is b for a, b in zip(corrected_robot(robot, unknowns, 0 * x).joints, robot.joints, strict=True))


def test_what_depends_on_the_posture_is_left_out_and_told() -> None:
    """Each kind alone moves the tool as said; kinds that a file holds are not named."""
    robot = ROBOTS["iiwa14"]
    unknowns, x = wrong(robot, model=EVERYTHING)
    told = lost_errors(robot, unknowns, x, robot.links[-1].name, samples=40)
    words = ("error of the gear factor", "eccentricity", "compliance", "bending")
    assert [next(w for w in words if t.startswith(w)) for t in told] == list(words)
    held = np.array([u.kind in ("position", "rotation", "zero") for u in unknowns])
    assert lost_errors(robot, unknowns, np.where(held, x, 0), robot.links[-1].name) == []
    same = corrected_robot(robot, unknowns, np.where(held, x, 0))
    for a, b in zip(corrected_robot(robot, unknowns, x).joints, same.joints, strict=True):
        assert np.array_equal(a.placement, b.placement)


def test_a_compliance_moves_the_tool_by_its_lever() -> None:
    """One joint, horizontal: 1e-3 rad/(N m) under m g r at the end of the arm."""
    inertia = {"mass": 2.0, "com": [0.5, 0, 0], "tensor": [0.1, 0, 0, 0.1, 0, 0.1]}
    row = {"alpha": 0.0, "inertia": inertia, "limits": {"position": [0.0, 1e-9]}}
    robot = dynid.Robot.from_dh([row], "modified", name="bar", gravity=(0.0, -10.0, 0.0))
    robot = replace(robot, frames=(Frame("tip", 1, placement(None, (0.8, 0, 0))),))
    (told,) = lost_errors(
        robot, [Unknown(UnknownKind.COMPLIANCE, "joint1", "c", "rad/(N m)")], [1e-3], "tip", samples=3
    )
    expected = 1e3 * 2 * 0.8 * np.sin(1e-3 * 2.0 * 10 * 0.5 / 2)
    assert f"moves tip by {expected:.2g} mm (RMS over 3 random postures, {expected:.2g} mm at most)" in told


def test_wrong_arguments_are_named() -> None:
    robot = ROBOTS["twolink"]
    zero = Unknown(UnknownKind.ZERO, "joint1", "zero", "rad")
    with expect_error(InvalidShape, "values"):
        corrected_robot(robot, [zero], [1.0, 2.0])
    with expect_error(NotFinite, "values"):
        corrected_robot(robot, [zero], [np.nan])
    with expect_error(UnknownName, "unknowns"):
        corrected_robot(robot, [Unknown(UnknownKind.ZERO, "joint9", "zero", "rad")], [0.1])
    with expect_error(NotApplicable, "robot"):
        corrected_robot(dynid.load_robot("fourbar"), [], [])
