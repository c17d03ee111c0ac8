"""A robot modelled from another of its links has the same dynamics."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
import dynid.recording
import dynid.robot
from dynid.errors import ModelError
from tests.support.errors import expect_error
from tests.support.humanoids import humanoid
from tests.support.random_robots import random_motion, random_robot, with_custom_terms, with_random_drives


@pytest.mark.parametrize("seed", range(6))
def test_energies_are_those_of_the_robot_whose_foot_stands_still(seed: int) -> None:
    """Trees of any joints and mounts: kinetic and potential energy, so all of the dynamics, and drive columns."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, 7, base="floating") if seed else humanoid(0)
    robot = with_random_drives(robot, rng)
    foot = robot.links[-1].name if seed else "footL"
    rooted = dynid.robot.rooted_at(robot, foot)
    order = [robot.coordinates.index(c) for c in rooted.coordinates]
    joints, velocities = rng.uniform(-1, 1, (2, 5, robot.n))
    pose = dynid.recording.base_from_foot(robot, joints, foot).pose
    q = np.hstack([pose, joints])
    J = dynid.dynamics.frame_jacobian(robot, q, foot)
    base = -np.linalg.solve(J[:, :, :6], np.einsum("nij,nj->ni", J[:, :, 6:], velocities)[..., None])[..., 0]
    v = np.hstack([base, velocities])
    mine, there = joints[:, order], velocities[:, order]
    expected = dynid.dynamics.kinetic_energy(robot, q, v)
    np.testing.assert_allclose(dynid.dynamics.kinetic_energy(rooted, mine, there), expected, rtol=1e-10)
    expected = dynid.dynamics.potential_energy(robot, q)
    np.testing.assert_allclose(dynid.dynamics.potential_energy(rooted, mine), expected, rtol=1e-9, atol=1e-9)
    bare = np.zeros_like(there)
    friction = dynid.inverse_dynamics(rooted, mine, there, bare) - dynid.dynamics.bias_torque(rooted, mine, there)
    same = dynid.inverse_dynamics(robot, q, v, 0 * v) - dynid.dynamics.bias_torque(robot, q, v)
    np.testing.assert_allclose(friction[:, 6:], same[:, 6:][:, order], atol=1e-9)
    assert rooted.limits == robot.limits
    np.testing.assert_allclose(
        dynid.dynamics.frame_placement(rooted, mine, foot), np.tile(np.eye(4), (5, 1, 1)), atol=1e-12
    )


def test_there_and_back_again() -> None:
    """Rooted at the foot and at the pelvis again, torques are those of the first robot."""
    robot = humanoid(1, base="instrumented")
    back = dynid.robot.rooted_at(dynid.robot.rooted_at(robot, "footR"), "pelvis")
    assert sorted(back.coordinates) == sorted(robot.coordinates)
    q, v, a = random_motion(robot, 0)
    order = [robot.coordinates.index(c) for c in back.coordinates]
    torque = dynid.inverse_dynamics(back, q[:, order], v[:, order], a[:, order])
    expected = dynid.inverse_dynamics(robot, q, v, a)
    # Gravity is that of the axes of the base, which are the pelvis' again.
    np.testing.assert_allclose(torque[:, 6:], expected[:, 6:][:, order], rtol=1e-9, atol=1e-9)


def test_what_cannot_be_rooted_is_said() -> None:
    """An unknown foot, and custom columns, which depend on the order of the joints."""
    with expect_error(ModelError, "name", code="unknown_name"):
        dynid.robot.rooted_at(humanoid(0), "hoof")
    with expect_error(ModelError, code="not_applicable"):
        dynid.robot.rooted_at(with_custom_terms(random_robot(0, 3, base="floating")), "l1")
