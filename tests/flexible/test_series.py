"""Series-elastic joints one by one: springs of an arm, and of a walking robot in MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import MissingData
from dynid.flexible import SeriesSprings, identify_springs
from dynid.legs import identify_legs
from studies.reproduce.legs_plant import LegsPlant, legs_plant
from tests.support.errors import expect_error
from tests.support.flexible_plant import TRUTH, recording, robot

# N m/rad and N m s/rad of the springs; armature, damping and frictionloss of the plant.
STIFFNESS, DAMPING, INERTIA, COULOMB = 400.0, 2.0, 0.012, 0.08


def test_pendulum() -> None:
    """Spring, damper and motor without a model of the pendulum; gravity is what loads the spring."""
    found = identify_springs(robot(), recording())
    assert abs(found.stiffness[0] - TRUTH.stiffness) < 4 * found.stiffness_std[0]
    np.testing.assert_allclose(found.stiffness, TRUTH.stiffness, rtol=0.01)
    np.testing.assert_allclose(found.damping, TRUTH.damping, rtol=0.1)
    assert found.motors["Ia_joint1"] == pytest.approx(TRUTH.motor_inertia, rel=0.05)
    assert found.motors["fv_joint1"] == pytest.approx(TRUTH.viscous, rel=0.05)


def test_springs_need_link_encoders() -> None:
    with expect_error(MissingData):
        identify_springs(robot(), recording(link=False))
    found = identify_springs(robot(), recording())
    with expect_error(MissingData):
        found.link_recording(recording(link=False))


@pytest.fixture(scope="module")
def plant() -> LegsPlant:
    pytest.importorskip("mujoco")
    return legs_plant("quadruped", seconds=15.0, springs=(STIFFNESS, DAMPING))


@pytest.fixture(scope="module")
def springs(plant: LegsPlant) -> SeriesSprings:
    return identify_springs(plant.robot, plant.recording)


@pytest.mark.slow
def test_springs_of_a_walking_robot(springs: SeriesSprings) -> None:
    """Twelve springs and motors while contact forces are unknown."""
    np.testing.assert_allclose(springs.stiffness, STIFFNESS, rtol=0.01)
    z = (springs.stiffness - STIFFNESS) / springs.stiffness_std
    assert np.sqrt(np.mean(z**2)) < 2
    np.testing.assert_allclose(springs.damping, DAMPING, rtol=0.2)
    inertia = [x for name, x in springs.motors.items() if name.startswith("Ia_")]
    friction = [x for name, x in springs.motors.items() if name.startswith("fc_")]
    np.testing.assert_allclose(inertia, INERTIA, rtol=0.25)
    np.testing.assert_allclose(friction, COULOMB, rtol=0.1)


@pytest.mark.slow
def test_trunk_of_a_walking_robot_with_springs(plant: LegsPlant, springs: SeriesSprings) -> None:
    """The link side is a rigid robot on its legs. The trunk is 9.2 kg with its centre at (21, -6, 14) mm."""
    links = springs.link_recording(plant.recording)
    assert not springs.links.drives and links.runs[0].link_q is None
    trunk = identify_legs(springs.links, links, plant.feet, "wls", imu="imu").trunk
    assert trunk.mass == pytest.approx(9.2, rel=0.02)
    assert np.linalg.norm(trunk.center - [0.021, -0.006, 0.014]) < 0.005
