"""Forward dynamics: the inverse of inverse dynamics, and refusal where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid import DynidError, Robot
from dynid.robot import Joint, Link
from dynid.robot.spatial import placement
from tests.support.compare import difference
from tests.support.random_robots import random_motion, random_robot, robots, with_custom_terms

examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)


def undone(robot: Robot, seed: int) -> tuple[float, float]:
    """How far forward dynamics is from undoing inverse dynamics, and the rounding that its mass matrix explains."""
    q, v, a = random_motion(robot, seed)
    tau = dynid.inverse_dynamics(robot, q, v, a)[:, -robot.nv :]
    # Torques are a hundred times the accelerations; solving loses the condition number of M on top.
    allowed = 1e-13 * np.linalg.cond(dynid.mass_matrix(robot, q)).max()
    return difference(dynid.forward_dynamics(robot, q, v, tau), a), max(1e-11, allowed)


@examples
@given(robots(drives=True, mimics=3), seeds)
def test_forward_dynamics_undoes_inverse_dynamics(robot: Robot, seed: int) -> None:
    """The torques of a motion give back its acceleration, with every kind of drive term and every base."""
    error, allowed = undone(robot, seed)
    assert error < allowed


@pytest.mark.parametrize("base", ["fixed", "floating", "instrumented"])
def test_forward_dynamics_with_custom_terms(base: str) -> None:
    """A user's column that carries acceleration counts as inertia."""
    robot = with_custom_terms(random_robot(41, 4, base=base, drives=True))
    error, allowed = undone(robot, 42)
    assert error < allowed
    q, _, _ = random_motion(robot, 42)
    plain = robot.without("coupled*")
    first = robot.nv - robot.n
    extra = dynid.mass_matrix(robot, q) - dynid.mass_matrix(plain, q)
    expected = np.zeros_like(extra)
    joints = np.arange(first, robot.nv)
    expected[:, joints, joints] = 0.4 * np.cos(q[:, robot.nq - robot.n :]) ** 2
    assert difference(extra, expected) < 1e-12  # a difference of sums of order ten


def test_parameters_given_replace_the_robots_own() -> None:
    """Every function with a parameter vector uses it in place of the robot's."""
    robot = random_robot(43, 5, base="floating", rotors=True)
    other = random_robot(43, 5, base="floating", rotors=True).parameters * 1.5
    changed = robot.with_parameters(other)
    q, v, tau = random_motion(robot, 44)
    for function, state in (
        (dynid.inverse_dynamics, (q, v, tau)),
        (dynid.forward_dynamics, (q, v, tau)),
        (dynid.mass_matrix, (q,)),
        (dynid.dynamics.coriolis_matrix, (q, v)),
        (dynid.dynamics.coriolis_torque, (q, v)),
        (dynid.dynamics.gravity_torque, (q,)),
        (dynid.dynamics.bias_torque, (q, v)),
        (dynid.dynamics.kinetic_energy, (q, v)),
        (dynid.dynamics.potential_energy, (q,)),
    ):
        given_vector = function(robot, *state, parameters=other)
        assert np.array_equal(given_vector, function(changed, *state)), function.__name__
        assert not np.allclose(given_vector, function(robot, *state)), function.__name__


def impossible_elbow() -> Robot:
    """A planar arm whose second link has a first moment too large for its mass: M fails where the arm is straight."""
    first = np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5])
    second = np.array([0.1, 3.0, 0, 0, 0, 0, 0, 0, 0, 1.0])
    along = placement(translation=[1.0, 0, 0])
    return Robot(
        "elbow",
        (Link("base", np.zeros(10)), Link("upper", first), Link("fore", second)),
        (
            Joint("a", "revolute", 0, np.eye(4), np.array([0, 0, 1])),
            Joint("b", "revolute", 1, along, np.array([0, 0, 1])),
        ),
    )


@pytest.mark.parametrize("samples", [60, 3000])
def test_an_impossible_mass_matrix_names_its_sample(samples: int) -> None:
    """The error is one line of ours that names the first sample without a positive definite mass matrix."""
    robot = impossible_elbow()
    q = np.tile([0.0, np.pi / 2], (samples, 1))
    assert np.all(np.isfinite(dynid.forward_dynamics(robot, q, 0 * q, 0 * q)))
    bad = samples - 7
    q[bad:, 1] = 0.0
    for model in (robot, with_custom_terms(robot)):
        with pytest.raises(DynidError, match=rf"'elbow' is not positive definite at sample {bad}:") as caught:
            dynid.forward_dynamics(model, q, 0 * q, 0 * q)
        assert "\n" not in str(caught.value)
