"""The slope of Coulomb friction in a closed loop: given, per joint, from the velocities of each joint, or exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from tests.support.closed_loops import TX40, refused, tx40_reference
from tests.support.gantry import gantry

RATE = 1000.0
T = np.arange(4000) / 1000.0
# A fast and a slow joint: amplitudes of 2 rad/s and 0.01 m/s.
VELOCITY = np.column_stack([0.01 * np.cos(7 * T), 2.0 * np.cos(5 * T)])


def slopes(robot: dynid.Robot) -> dict[str, float]:
    return {t.name: t.slope for t in robot.drives if t.is_coulomb}


def test_auto_is_inverse_to_the_velocity_of_each_joint() -> None:
    """400 over the velocity exceeded during 5 % of the time, to two digits: 99.9 % of friction at 1 % of it."""
    found = slopes(ClosedLoop().regularized(gantry(), VELOCITY))
    assert found == {"fc_joint1": 40000.0, "fc_joint2": 200.0}
    assert ClosedLoop().slopes(VELOCITY).tolist() == list(found.values())
    assert np.tanh(0.01 * 2.0 * found["fc_joint2"]) > 0.999


def test_auto_of_a_step_and_of_rest() -> None:
    """A few samples of a step do not count; a joint that does not move has a slope that explicit steps support."""
    step = VELOCITY.copy()
    step[2000:2002] = 500.0
    assert slopes(ClosedLoop().regularized(gantry(), step)) == slopes(ClosedLoop().regularized(gantry(), VELOCITY))
    assert ClosedLoop().slopes(np.zeros((10, 2))).tolist() == [4000.0, 4000.0]


def test_auto_of_a_motor_follows_its_own_velocity() -> None:
    """The wrist of the TX40: the shaft of motor 6 also turns with joint 5."""
    path = tx40_reference(RATE, 2.0)
    found = ClosedLoop().regularized(TX40, path.v)
    (shaft,) = (t for t in found.drives if t.is_coulomb and t.motor)
    assert np.count_nonzero(shaft.direction) == 2
    fast = np.quantile(np.abs(path.v @ shaft.direction), 0.95)
    assert shaft.slope == float(f"{400 / fast:.2g}")


def test_slopes_may_be_given_per_joint() -> None:
    """One number each, of any sequence; a slope that the robot has already is kept."""
    for given in ([30.0, 50], (30.0, 50.0), np.array([30.0, 50.0])):
        loop = ClosedLoop(coulomb_slope=given)  # type: ignore[arg-type]
        assert loop.coulomb_slope == (30.0, 50.0)
        assert slopes(loop.regularized(gantry(), VELOCITY)) == {"fc_joint1": 30.0, "fc_joint2": 50.0}
    own = gantry().with_smooth_coulomb(7.0)
    for loop in (ClosedLoop(), ClosedLoop(coulomb_slope=20.0)):
        assert loop.regularized(own, VELOCITY) is own
    exact = ClosedLoop(coulomb_slope="exact", integrator="implicit")
    assert set(slopes(exact.regularized(own, VELOCITY)).values()) == {0.0}


def test_simulation_uses_the_slopes_of_its_reference() -> None:
    """The default is the simulation with the slopes that the reference gives, to the bit."""
    path = tx40_reference(RATE, 0.5)
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    smooth = ClosedLoop().regularized(TX40, path.v)
    default, given = (simulate(robot, ClosedLoop(controller=law), path) for robot in (TX40, smooth))
    np.testing.assert_array_equal(default.q, given.q)
    other = simulate(TX40, ClosedLoop(controller=law, coulomb_slope=10.0), path)
    assert np.abs(default.q - other.q).max() > 1e-4


@pytest.mark.parametrize("given", [0.0, -1.0, np.nan, np.inf, "steep", None, True, [1.0, -1.0], [[1.0]], ["a"]])
def test_a_bad_slope_is_refused(given: object) -> None:
    refused(lambda: ClosedLoop(coulomb_slope=given), "coulomb_slope", "auto", "exact")  # type: ignore[arg-type]


def test_a_wrong_number_of_slopes_is_refused() -> None:
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    loop = ClosedLoop(controller=law, coulomb_slope=[10.0, 20.0])
    refused(lambda: simulate(TX40, loop, tx40_reference(RATE, 0.1)), "2 numbers", "6 joints")
    refused(lambda: replace(loop, coulomb_slope="exact"), "implicit")
