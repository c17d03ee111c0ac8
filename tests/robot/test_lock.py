"""Locked joints: the robot that is left moves as the whole one does while those joints are held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid import Robot
from dynid.errors import ModelError
from dynid.robot.parts import Mimic
from tests.support.compare import difference
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_motion, random_robot, with_custom_terms


def held_joints(robot: Robot, seed: int) -> dict[str, float]:
    """Some of the joints, never all, at any position."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, robot.n))
    return {str(n): float(rng.uniform(-2, 2)) for n in rng.choice(robot.coordinates, count, replace=False)}


def full_motion(robot: Robot, held: dict[str, float], motion: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Motion of the whole robot, from that of its free joints."""
    free = np.array([n not in held for n in robot.coordinates])
    out = []
    for x, size, value in zip(motion, (robot.nq, robot.nv, robot.nv), (held, {}, {}), strict=True):
        base = size - robot.n
        full = np.zeros((len(x), size))
        full[:, base:] = [value.get(n, 0.0) for n in robot.coordinates]
        full[:, :base], full[:, base:][:, free] = x[:, :base], x[:, base:]
        out.append(full)
    return tuple(out)


def rows(robot: Robot, held: dict[str, float]) -> np.ndarray:
    """Torque rows of the robot that the locked one has too."""
    return np.array([c not in held for c in robot.channels])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16), joints=st.integers(2, 9))
def test_dynamics_equal_those_of_pinocchios_reduced_model(seed: int, joints: int) -> None:
    """Torques and mass matrix of the reduced model, to rounding (torques are of order 1 to 1000)."""
    robot = random_robot(seed, joints)
    held = held_joints(robot, seed)
    ours = robot.locked(held)
    model = robot.to_pinocchio()
    posture = pin.neutral(model)
    for name, value in held.items():
        posture[model.joints[model.getJointId(name)].idx_q] = value
    reduced = pin.buildReducedModel(model, [model.getJointId(name) for name in held], posture)
    assert [n for n in reduced.names if n != "universe"] == list(ours.coordinates)
    data = reduced.createData()
    q, v, a = random_motion(ours, seed)
    torques = [pin.rnea(reduced, data, *x) for x in zip(q, v, a, strict=True)]
    assert difference(dynid.inverse_dynamics(ours, q, v, a), torques) < 1e-10
    masses = []
    for x in q:
        upper = np.triu(pin.crba(reduced, data, x))
        masses.append(upper + np.triu(upper, 1).T)
    assert difference(dynid.mass_matrix(ours, q), masses) < 1e-10


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16), joints=st.integers(3, 7), base=st.sampled_from(["fixed", "floating", "instrumented"])
)
def test_torques_equal_those_of_the_whole_robot(seed: int, joints: int, base: str) -> None:
    """With mimic joints, every kind of drive term on joints and coupled motors, and columns of the user's own."""
    robot = with_custom_terms(random_robot(seed, joints, base=base, mimics=1, drives=True))
    held = held_joints(robot, seed)
    free = robot.locked(held)
    motion = random_motion(free, seed)
    whole = dynid.inverse_dynamics(robot, *full_motion(robot, held, motion))[:, rows(robot, held)]
    # Terms that belong to a held joint alone act on no other; a user's column that does is dropped with its owner.
    dropped = [t for t in robot.drives if t.function is not None and robot.coordinates[t.owner] in held]
    q, v, a = (x[:, x.shape[1] - robot.n :] for x in full_motion(robot, held, motion))
    joint_rows = np.array([n not in held for n in robot.coordinates])
    for term in dropped:
        assert term.function is not None
        whole[:, len(whole[0]) - free.n :] -= term.value * np.asarray(term.function(q, v, a))[:, joint_rows]
    assert difference(dynid.inverse_dynamics(free, *motion), whole) < 1e-10


def test_names_frames_and_masses_are_kept() -> None:
    """No mass is lost, held links become frames at their place, and the report of merged links names the new body."""
    robot = random_robot(3, 5, parents=[0, 1, 2, 3, 4])
    free = robot.locked({"j2": 0.4, "j3": -0.2})
    assert free.coordinates == ("j1", "j4", "j5")
    assert [link.name for link in free.links] == ["l0", "l1", "l4", "l5"]
    assert sum(x.inertia[0] for x in free.links) == pytest.approx(sum(x.inertia[0] for x in robot.links), rel=1e-14)
    assert [(m.link, m.joint, m.into) for m in free.merged] == [("l2", "j2", "l1"), ("l3", "j3", "l1")]
    q = np.array([[0.3, 0.7, -0.5]])
    whole = np.array([[0.3, 0.4, -0.2, 0.7, -0.5]])
    for frame in ("l2", "l3", "l5", "tool0", "tool5"):
        places = dynid.dynamics.frame_placement(free, q, frame), dynid.dynamics.frame_placement(robot, whole, frame)
        assert difference(*places) < 1e-14


def test_locking_twice_is_locking_at_once() -> None:
    """Also for a joint that carries a held one: reports follow to the final body."""
    robot = random_robot(4, 5, parents=[0, 1, 2, 3, 4], drives=True)
    once, twice = robot.locked({"j2": 0.4, "j3": -0.2}), robot.locked({"j3": -0.2}).locked({"j2": 0.4})
    motion = random_motion(once, 0)
    assert difference(dynid.inverse_dynamics(twice, *motion), dynid.inverse_dynamics(once, *motion)) < 1e-12
    assert {m.into for m in twice.merged} == {"l1"}
    assert sorted(once.parameter_names) == sorted(twice.parameter_names)


def with_follower() -> Robot:
    """Four joints, the third of which follows the second."""
    robot = random_robot(5, 4)
    joints = list(robot.joints)
    joints[2] = replace(joints[2], mimic=Mimic("j2", -1.5, 0.2))
    return replace(robot, joints=tuple(joints))


def test_followers_of_a_held_joint_are_held() -> None:
    """A mimic joint stops with its leader, where the whole robot has it."""
    robot = with_follower()
    free = robot.locked({"j2": 0.3})
    assert [j.name for j in free.joints] == ["j1", "j4"]
    q, whole = np.array([[-0.7, 0.9]]), np.array([[-0.7, 0.3, 0.9]])
    for link in ("l2", "l3", "l4"):
        places = dynid.dynamics.frame_placement(free, q, link), dynid.dynamics.frame_placement(robot, whole, link)
        assert difference(*places) < 1e-14


def test_motors_that_drive_no_free_joint_are_gone() -> None:
    """The differential of a WAM keeps both its motors while one of its joints moves."""
    robot = dynid.load_robot("wam7")
    free = robot.locked({f"joint{k}": 0.0 for k in (1, 3, 5, 6, 7)})
    assert free.coordinates == ("joint2", "joint4")
    assert free.transmission is not None and free.transmission.motors == ("motor2", "motor3", "motor4")
    assert all(t.shaft in (*free.coordinates, *free.transmission.motors) for t in free.drives)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"elbow": 0.0}, (ModelError, "", "unknown_name")),
        ({"j3": 0.0}, (ModelError, "", "unknown_name")),
        ({"j1": float("nan")}, (ModelError, "")),
        ({"j1": "up"}, (ModelError, "")),
        ({"j1": 0.0, "j2": 0.0, "j4": 0.0}, (ModelError, "", "invalid_value")),
        (["j1"], (ModelError, "", "invalid_type")),
    ],
)
def test_bad_requests_are_refused(values: object, error: Error) -> None:
    """Each names the joint and what to do."""
    with expect_error(*error):
        with_follower().locked(values)
