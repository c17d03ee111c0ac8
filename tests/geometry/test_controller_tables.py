"""Zero offsets, and kinematics.yaml of Universal Robots composed as its xacro does."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml

import dynid
from dynid.dynamics import frame_placement
from dynid.errors import NotApplicable
from dynid.geometry import corrected_robot, ur_kinematics, write_calibrated, zero_offsets
from dynid.robot.parts import Frame
from dynid.robot.spatial import axis_rotation, placement
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.wrong_geometry import postures, wrong

LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")


def arm() -> dynid.Robot:
    """An arm of six joints about z, one of them from a frame that is turned on the base."""
    half = np.pi / 2
    rows = [(0.0, 0.0, 0.1625, 0.0), (half, 0.0, 0.0, 0.0), (0.0, -0.425, 0.0, 0.0)]
    rows += [(0.0, -0.3922, 0.1333, 0.0), (half, 0.0, 0.0997, 0.0), (-half, 0.0, 0.0996, 0.0)]
    return dynid.Robot.from_dh(rows, "modified", name="ur5e")


@pytest.mark.parametrize("turned", [False, True])
def test_the_chain_of_the_yaml_is_the_calibrated_arm(tmp_path: Path, turned: bool) -> None:
    robot = arm()
    base = placement(axis_rotation((0, 0, 1), np.pi)) if turned else np.eye(4)
    robot = replace(robot, frames=(Frame("left_base_link_inertia", 0, base),) if turned else ())
    unknowns, x = wrong(robot)
    out = tmp_path / "kinematics.yaml"
    write_calibrated(out, robot, unknowns, x, frame="link6", checksum="calib_123")
    given = yaml.safe_load(out.read_text())["kinematics"]
    assert given.pop("hash") == "calib_123" and tuple(given) == LINKS
    q = postures(robot, 10)
    for row, expected in zip(q, frame_placement(corrected_robot(robot, unknowns, x), q, "link6"), strict=True):
        h = pin.SE3(base)
        for angle, pose in zip(row, given.values(), strict=True):
            turn = pin.rpy.rpyToMatrix(pose["roll"], pose["pitch"], pose["yaw"])
            h = h * pin.SE3(turn, np.array([pose[k] for k in "xyz"]))
            h = h * pin.SE3(pin.rpy.rpyToMatrix(0, 0, angle), np.zeros(3))
        np.testing.assert_allclose(h.homogeneous, expected, rtol=0, atol=1e-12)


def test_the_hash_follows_from_the_numbers() -> None:
    robot = arm()
    unknowns, x = wrong(robot)
    lines = [ur_kinematics(robot, unknowns, values, "link6").splitlines()[-1] for values in (x, x, 2 * x)]
    assert lines[0] == lines[1] != lines[2] and lines[0].startswith("  hash: calib_")


def test_arms_of_another_form_are_refused() -> None:
    with expect_error(NotApplicable, "frame"):
        ur_kinematics(dynid.load_robot("iiwa14"), [], [], "link7")
    with expect_error(NotApplicable, "robot"):
        ur_kinematics(random_robot(0, 6, parents=range(6), kinds="rrrrrr"), [], [], "l6")


def test_zero_offsets_in_radians_and_degrees(tmp_path: Path) -> None:
    robot = random_robot(1, 8, kinds="rprprprr", mimics=3)
    unknowns, x = wrong(robot)
    covariance = np.diag(np.arange(len(x)) * 1e-8)
    rows = zero_offsets(robot, unknowns, x, covariance)
    assert [r.joint for r in rows] == [j.name for j in robot.joints]
    out = tmp_path / "zeros.csv"
    assert write_calibrated(out, robot, unknowns, x, form="zeros", covariance=covariance) == []
    with out.open() as file:
        table = list(csv.DictReader(file))
    for row, line, joint in zip(rows, table, robot.joints, strict=True):
        k = next(i for i, u in enumerate(unknowns) if u.owner == joint.name and u.symbol == "zero")
        assert (row.offset, row.std) == (x[k], np.sqrt(k * 1e-8))
        np.testing.assert_allclose([float(line["offset"]), float(line["std"])], [x[k], row.std], rtol=1e-8)
        if joint.kind == "revolute":
            np.testing.assert_allclose(float(line["offset_degrees"]), np.degrees(x[k]), rtol=1e-8)
        else:
            assert (line["unit"], line["offset_degrees"]) == ("m", "")


@pytest.mark.parametrize("form", ["dh", "mdh"])
def test_tables_of_the_chain_are_written(tmp_path: Path, form: str) -> None:
    robot = arm()
    unknowns, x = wrong(robot)
    write_calibrated(tmp_path / "table.txt", robot, unknowns, x, form=form, frame="link6", covariance=np.eye(len(x)))
    lines = (tmp_path / "table.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines[1:9]] == ["base", *robot.coordinates, "tool"]
