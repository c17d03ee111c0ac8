"""Humanoids of thirty joints against Pinocchio with a free-flyer: regressor, torques, momentum, centre of mass."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.errors import ModelError, UnknownName
from tests.support.by_pinocchio import each, regressor_in_link_frames
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.humanoids import humanoid
from tests.support.random_robots import random_motion, random_robot

# Two algorithms in double precision along chains of up to eleven joints.
SAME = 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_humanoids_match_pinocchio(seed: int) -> None:
    """Free-flyer first: wrench rows and joint rows, about the centre of mass and about the origin."""
    robot = humanoid(seed)
    assert robot.n == 30
    model = robot.to_pinocchio()
    # Pinocchio numbers joints branch by branch, which is our order here.
    assert tuple(model.names[2:]) == robot.coordinates
    q, v, a = random_motion(robot, seed, samples=6)
    assert difference(dynid.inverse_dynamics(robot, q, v, a), each(pin.rnea, model, q, v, a)) < SAME
    theirs = regressor_in_link_frames(robot, model, q, v, a)
    assert difference(dynid.regressor(robot, q, v, a), theirs) < SAME
    momentum = each(lambda m, d, x, y: pin.computeCentroidalMomentum(m, d, x, y).vector.copy(), model, q, v)
    assert difference(dynid.dynamics.momentum(robot, q, v), momentum) < SAME
    centre = each(lambda m, d, x: pin.centerOfMass(m, d, x).copy(), model, q)
    assert difference(dynid.dynamics.center_of_mass(robot, q), centre) < SAME
    assert dynid.dynamics.total_mass(robot) == pytest.approx(pin.computeTotalMass(model), rel=1e-12)
    about_origin = dynid.dynamics.momentum(robot, q, v, about="origin")
    shifted = momentum.copy()
    shifted[:, 3:] += np.cross(centre, momentum[:, :3])
    assert difference(about_origin, shifted) < SAME


@pytest.mark.parametrize("base", ["fixed", "instrumented"])
def test_momentum_of_robots_that_are_bolted_down(base: str) -> None:
    """The base of a fixed robot does not count; that of an instrumented one has mass and stands still."""
    robot = random_robot(5, 8, base=base, rotors=True)
    q, v, _ = random_motion(robot, 1)
    model = robot.with_base("fixed").to_pinocchio()
    momentum = each(lambda m, d, x, y: pin.computeCentroidalMomentum(m, d, x, y).vector.copy(), model, q, v)
    assert difference(dynid.dynamics.momentum(robot, q, v)[:, :3], momentum[:, :3]) < SAME
    if base == "fixed":
        assert difference(dynid.dynamics.momentum(robot, q, v), momentum) < SAME
    else:
        assert dynid.dynamics.total_mass(robot) > dynid.dynamics.total_mass(robot.with_base("fixed"))


def test_force_is_the_rate_of_momentum() -> None:
    """Newton and Euler for the whole body: base wrench plus weight, about the centre of mass, is dh/dt."""
    from tests.support.humanoids import dance

    robot = humanoid(1, limbs="LA")
    motion = dance(robot, samples=4000)
    rate = 1.0 / motion.t[1]
    h = dynid.dynamics.momentum(robot, motion.q, motion.v)
    load = dynid.inverse_dynamics(robot, motion.q, motion.v, motion.a)[:, :6]
    turn = dynid.dynamics.frame_placement(robot, motion.q, "pelvis")
    force, moment = (np.einsum("nij,nj->ni", turn[:, :3, :3], x) for x in (load[:, :3], load[:, 3:]))
    moment = moment - np.cross(dynid.dynamics.center_of_mass(robot, motion.q) - turn[:, :3, 3], force)
    spectrum = np.fft.rfft(h, axis=0) * (2j * np.pi * np.fft.rfftfreq(len(h), 1 / rate))[:, None]
    slope = np.fft.irfft(spectrum, n=len(h), axis=0)
    weight = dynid.dynamics.total_mass(robot) * robot.gravity
    # The motion repeats, so its Fourier derivative is exact but for rounding times the highest frequency.
    np.testing.assert_allclose(slope, np.hstack([force + weight, moment]), atol=1e-8 * np.abs(force).max())


def test_bad_input_is_refused_in_words() -> None:
    robot = humanoid(0, limbs="L")
    q, v, _ = random_motion(robot, 0)
    with expect_error(UnknownName, "about"):
        dynid.dynamics.momentum(robot, q, v, about="foot")  # type: ignore[arg-type]
    with expect_error(ModelError, code="missing_data"):
        dynid.dynamics.center_of_mass(robot, q, np.zeros(len(robot.layout)))
