"""Joints whose zero or direction is not that of the robot description."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import Recording
from dynid.assessment.data.context import Context
from dynid.assessment.data.zeros import joint_zeros
from tests.support.check_data import recorded, spoiled

ROBOT = dynid.load_robot("tx40")
# A quarter turn of one joint may bring it to a limit; the limits of the description follow the log here.
WIDE = ROBOT.with_limits({c: {"position": (-7.0, 7.0)} for c in ROBOT.coordinates})
SOUND = recorded(ROBOT)


def turned(recording: Recording, quarters: dict[int, int], mirrored: tuple[int, ...] = ()) -> Recording:
    """The log of the same motion by a controller that counts from other zeros, or in the opposite direction."""
    sign = np.array([-1.0 if j in mirrored else 1.0 for j in range(ROBOT.n)])
    shift = np.array([0.5 * np.pi * quarters.get(j, 0) for j in range(ROBOT.n)])
    return spoiled(recording, q=lambda q: sign * (q - shift), v=lambda v: sign * v, torque=lambda t: sign * t)


@pytest.mark.parametrize(
    ("quarters", "mirrored"),
    [({1: 1}, ()), ({2: -1}, ()), ({1: 1, 2: 1}, ()), ({1: 1, 2: -1}, ()), ({}, (2,)), ({2: 1}, (2,))],
)
def test_turned_and_mirrored_joints_are_named_with_what_to_add(
    quarters: dict[int, int], mirrored: tuple[int, ...]
) -> None:
    log = turned(SOUND, quarters, mirrored)
    found = [f for f in dynid.check(WIDE, log) if f.severity == "error"]
    assert {f.code for f in found} == {"position_zero"}
    assert [f.joint for f in found] == [f"joint{j + 1}" for j in sorted({*quarters, *mirrored})]
    for finding in found:
        j = int(finding.joint[-1]) - 1
        if j in quarters and j not in mirrored:
            assert finding.how_much == f"{90 * quarters[j]} degrees"
            assert f"add {90 * quarters[j]:+d} degrees" in finding.what_to_do
        if j in mirrored:
            assert "-1 times" in finding.how_much and "reverse q, v and torque" in finding.what_to_do


def test_what_the_finding_says_repairs_the_log() -> None:
    """The offset is the one to add when loading."""
    log = turned(SOUND, {1: 1, 2: -1})
    options = joint_zeros(log.runs[0], Context(WIDE, log))
    assert all(len(each) == 1 for each in options)
    add = np.array([0.5 * np.pi * each[0][0] for each in options])
    repaired = spoiled(log, q=lambda q: q + add)
    np.testing.assert_allclose(repaired.runs[0].q, SOUND.runs[0].q, atol=1e-12)
    assert not [f for f in dynid.check(WIDE, repaired) if f.code == "position_zero"]


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_right_zeros_are_not_blamed(factor: float) -> None:
    """Also with bodies of half and of twice the mass."""
    inertial = np.array([p.inertial for p in ROBOT.layout])
    prior = WIDE.with_parameters(np.where(inertial, factor * WIDE.parameters, WIDE.parameters))
    assert not [f for f in dynid.check(prior, SOUND) if f.code == "position_zero"]


def test_limits_tell_between_zeros_that_explain_alike() -> None:
    """A weight that hangs to the left or to the right differs in nothing but the limits."""
    body = {"mass": 5.0, "com": [0.3, 0.0, 0.0], "tensor": [0.1, 0, 0, 0.5, 0, 0.5]}
    drive = {"fv": 0.1, "fc": 0.2}
    rows = [{"alpha": np.pi / 2, "inertia": body, "drive": drive}]
    arm = dynid.Robot.from_dh(rows, "modified", name="pendulum")
    log = spoiled(recorded(arm), q=lambda q: q - 0.5 * np.pi)

    def told(lower: float, upper: float) -> set[tuple[int, int]]:
        robot = arm.with_limits({"joint1": {"position": (lower, upper)}})
        return set(joint_zeros(log.runs[0], Context(robot, log))[0])

    assert told(-20.0, 20.0) == {(1, 1), (1, -1)}
    assert told(-1.6, 1.6) == {(1, 1)}


def test_reversed_torques_are_a_matter_of_their_sign() -> None:
    """The sign of all torques is one fault, and turning several joints is no simpler one."""
    found = {f.code for f in dynid.check(WIDE, spoiled(SOUND, torque=lambda t: -t)) if f.severity == "error"}
    assert found and found <= {"torque_sign", "friction_sign"}


def test_a_pendulum_that_counts_from_another_zero() -> None:
    """One joint, whose weight tells up from down; the opposite direction may explain the torques as well."""
    body = {"mass": 5.0, "com": [0.3, 0.0, 0.0], "tensor": [0.1, 0, 0, 0.5, 0, 0.5]}
    arm = dynid.Robot.from_dh(
        [{"alpha": np.pi / 2, "inertia": body, "drive": {"fv": 0.1, "fc": 0.2}}], "modified", name="pendulum"
    )
    log = recorded(arm)
    found = [f for f in dynid.check(arm, spoiled(log, q=lambda q: q - 0.5 * np.pi)) if f.code == "position_zero"]
    assert len(found) == 1 and "degrees" in found[0].how_much


def test_no_zero_is_told_without_masses_or_torques() -> None:
    log = turned(SOUND, {1: 1})
    empty = WIDE.with_parameters(np.zeros(len(WIDE.parameters)))
    assert not [f for f in dynid.check(empty, log) if f.code == "position_zero"]
    silent = Recording(log.joints, (replace(log.runs[0], torque=None),))
    assert not [f for f in dynid.check(WIDE, silent) if f.code == "position_zero"]
