"""Recordings of closed loops with measured joints of any sufficient set."""

import numpy as np
import pytest

import dynid
from dynid import Recording, Run
from dynid.errors import NotApplicable, NotIdentifiable, UnknownName
from dynid.recording import reconcile
from tests.support.errors import expect_error


@pytest.fixture(scope="module")
def measured():
    robot = dynid.load_robot("palletizer")
    t = np.arange(0, 3, 0.01)
    w = np.array([1.0, 1.7, 2.3, 0.9])
    q, v, a = 0.4 * np.sin(np.outer(t, w)), 0.4 * w * np.cos(np.outer(t, w)), -0.4 * w**2 * np.sin(np.outer(t, w))
    return robot, t, q, dynid.dynamics.assemble(robot, q, v, a), dynid.inverse_dynamics(robot, q, v, a)


def _columns(robot, motion, joints):
    return motion.q[:, [robot.tree_coordinates.index(name) for name in joints]]


def test_other_joints_determine_the_independent_ones(measured):
    robot, t, q, motion, _ = measured
    joints = ("turn", "lower_level", "elbow", "flange")
    found, rest = reconcile(robot, Recording(joints, (Run(t, _columns(robot, motion, joints)),)))
    assert found.joints == robot.coordinates
    assert found.runs[0].q == pytest.approx(q, abs=1e-9)
    assert max(rest.values()) < 1e-9


def test_redundant_measurements_are_reconciled(measured):
    robot, t, q, motion, torque = measured
    joints = (*robot.coordinates, "elbow", "wrist")
    noise = 1e-4 * np.random.default_rng(0).normal(size=(len(t), len(joints)))
    drives = np.hstack([torque, np.zeros((len(t), 2))])
    run = Run(t, _columns(robot, motion, joints) + noise, torque=drives)
    found, rest = reconcile(robot, Recording(joints, (run,)))
    better = np.std(found.runs[0].q - q, axis=0)
    assert better[1] < 0.9e-4  # the arm is seen by two more encoders
    assert 1e-5 < rest["elbow"] < 1e-4
    assert found.runs[0].torque == pytest.approx(torque)


def test_torque_of_a_drive_in_a_passive_joint(measured):
    robot, t, _q, motion, torque = measured
    # The elbow is driven instead of the crank: elbow = crank - arm.
    joints = ("turn", "arm", "elbow", "flange")
    drives = np.column_stack([torque[:, 0], torque[:, 1] + torque[:, 2], torque[:, 2], torque[:, 3]])
    run = Run(t, _columns(robot, motion, joints), torque=drives)
    found, _ = reconcile(robot, Recording(joints, (run,)))
    assert found.runs[0].torque == pytest.approx(torque, abs=1e-6 * np.abs(torque).max())


def test_refused(measured):
    robot, t, _, motion, _ = measured
    few = ("turn", "arm", "lower_level", "flange")
    with expect_error(NotIdentifiable):
        reconcile(robot, Recording(few, (Run(t, _columns(robot, motion, few)),)))
    with expect_error(UnknownName):
        reconcile(robot, Recording(("nose",), (Run(t, np.zeros((len(t), 1))),)))
    with expect_error(NotApplicable):
        reconcile(dynid.load_robot("twolink"), Recording(("joint1",), (Run(t, np.zeros((len(t), 1))),)))
