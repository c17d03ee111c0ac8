"""Placements and Jacobians of links and named frames."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid import ModelError, Robot
from dynid.errors import UnknownName
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.random_robots import displaced, mimic_map, random_motion, random_robot, robots

SAME = 1e-10  # two algorithms in double precision, chains of up to twelve joints

examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)
REFERENCES = {"local": pin.ReferenceFrame.LOCAL, "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED}


def names(robot: Robot) -> list[str]:
    return [link.name for link in robot.links] + [frame.name for frame in robot.frames]


@examples
@given(robots(), seeds)
def test_placements_and_jacobians_match_pinocchio(robot: Robot, seed: int) -> None:
    """Every link and frame stands and moves as in Pinocchio, in its own axes and in the world's."""
    q, _, _ = random_motion(robot, seed, samples=3)
    model = robot.to_pinocchio()
    data = model.createData()
    for name in names(robot):
        frame = model.getFrameId(name)
        where = dynid.dynamics.frame_placement(robot, q, name)
        jacobians = {
            reference: dynid.dynamics.frame_jacobian(robot, q, name, reference=reference) for reference in REFERENCES
        }
        for k in range(len(q)):
            pin.framesForwardKinematics(model, data, q[k])
            assert difference(where[k], data.oMf[frame].homogeneous) < SAME
            for reference, theirs in REFERENCES.items():
                expected = pin.computeFrameJacobian(model, data, q[k], frame, theirs).reshape(6, -1)
                assert difference(jacobians[reference][k], expected) < SAME


@examples
@given(robots(mimics=3), seeds)
def test_jacobian_is_the_slope_of_the_placement(robot: Robot, seed: int) -> None:
    """The frame's twist by central differences of its placement equals J v, mimic joints included."""
    q, v, _ = random_motion(robot, seed, samples=2)
    step = 1e-5  # truncation 1e-10, rounding 1e-11, times third derivatives of order ten
    for name in (robot.links[-1].name, robot.frames[-1].name):
        ahead, behind = (
            dynid.dynamics.frame_placement(robot, displaced(robot, q, s * step * v), name) for s in (1, -1)
        )
        twist = [
            pin.log6(pin.SE3(b).actInv(pin.SE3(a))).vector / (2 * step) for a, b in zip(ahead, behind, strict=True)
        ]
        J = dynid.dynamics.frame_jacobian(robot, q, name, reference="local")
        assert difference(np.einsum("kij,kj->ki", J, v), twist) < 1e-7


def test_followers_stand_where_their_leaders_put_them() -> None:
    """Placements with mimic joints equal those of the model with all joints free, at the followed positions."""
    robot = random_robot(6, 6, mimics=2)
    q, _, _ = random_motion(robot, 7)
    G, offset = mimic_map(robot)
    model = robot.to_pinocchio(independent=True)
    data = model.createData()
    for name in names(robot):
        ours = dynid.dynamics.frame_placement(robot, q, name)
        for k in range(len(q)):
            pin.framesForwardKinematics(model, data, G @ q[k] + offset)
            assert difference(ours[k], data.oMf[model.getFrameId(name)].homogeneous) < SAME


def test_one_sample_of_frames_needs_no_batch_axis() -> None:
    """A single configuration gives one matrix, equal to that of a batch of one."""
    robot = random_robot(6, 4, base="floating")
    q, _, _ = random_motion(robot, 7)
    for reference in ("aligned", "local"):
        single = dynid.dynamics.frame_jacobian(robot, q[1], "tool4", reference=reference)  # type: ignore[arg-type]
        assert np.array_equal(single, dynid.dynamics.frame_jacobian(robot, q, "tool4", reference=reference)[1])  # type: ignore[arg-type]
    assert np.array_equal(
        dynid.dynamics.frame_placement(robot, q[1], "tool4"), dynid.dynamics.frame_placement(robot, q, "tool4")[1]
    )


def test_unknown_frames_and_references_are_refused() -> None:
    """The error names what was asked for, and the frames there are."""
    robot = random_robot(6, 2)
    with expect_error(ModelError, "name", code="unknown_name"):
        dynid.dynamics.frame_placement(robot, np.zeros(2), "gripper")
    with expect_error(UnknownName, "reference"):
        dynid.dynamics.frame_jacobian(robot, np.zeros(2), "l1", reference="world")  # type: ignore[arg-type]
