"""Designed motions of robots with closed loops stay within the limits of passive joints."""

import numpy as np
import pytest

import dynid
from dynid.dynamics import assemble
from dynid.errors import NotApplicable
from dynid.excitation.clearances import PassiveJoints
from tests.support.errors import expect_error


@pytest.fixture(scope="module")
def robot():
    return dynid.load_robot("palletizer", limits={"elbow": {"position": (-0.4, 0.3), "velocity": 1.0}})


def test_designed_motion_keeps_the_limits_of_passive_joints(robot):
    motion = dynid.design_excitation(robot, 4.0, budget=40, seed=0)
    _, q, v, a = motion.sample(200.0)
    found = assemble(robot, q, v, a)
    elbow = robot.tree_coordinates.index("elbow")
    assert found.q[:, elbow].min() >= -0.4 and found.q[:, elbow].max() <= 0.3
    assert np.abs(found.v[:, elbow]).max() <= 1.0
    assert found.margin.min() >= 0.2 * assemble(robot, robot.home[None]).margin[0]
    assert motion.slacks["closed loops"] >= 0


def test_gradients_of_the_clearance(robot):
    clearance = PassiveJoints(robot)
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-0.2, 0.2, (3, 4)), rng.uniform(-1, 1, (3, 4))
    elbow, count = robot.passive.index("elbow"), len(robot.passive)
    lower, velocity = np.full(3, 1 + elbow), np.full(3, 1 + 2 * count + elbow)
    # elbow = crank - arm
    gq, _, _ = clearance.gradients_in_motion(q, v, 0 * v, lower)
    assert gq == pytest.approx(np.tile([0, -1 / 0.35, 1 / 0.35, 0], (3, 1)), abs=1e-8)
    _, gv, _ = clearance.gradients_in_motion(q, v, 0 * v, velocity)
    sign = np.sign(v[:, 2] - v[:, 1])[:, None]
    assert gv == pytest.approx(-sign * [0, -1, 1, 0], abs=1e-8)


def test_postures_that_cannot_be_assembled_are_outside():
    linkage = dynid.load_robot("palletizer")
    q = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.8, -0.77, 0.0]])
    values = PassiveJoints(linkage).values(q)
    assert values[0].min() > 0 > values[1].min()
    with expect_error(NotApplicable):
        PassiveJoints(dynid.load_robot("twolink"))
