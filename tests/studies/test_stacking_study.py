"""The study of motions one after another: what holds exactly, and that its comparison is one of equals."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from studies.reproduce import stacking
from studies.reproduce.stacking import Pair


def test_equalities_hold_for_any_robot() -> None:
    """Parts and whole have the same information, and to know nothing changes no design."""
    found = list(stacking.equality_figures(dynid.load_robot("twolink")))
    assert len(found) == 2 and all(f.ok for f in found), found


def test_the_ratio_is_above_one_where_the_stack_is_better() -> None:
    """In the geometric mean, and the error ratio in the same sense."""
    stacked, errors = np.array([1.0, 2.0]), (np.array([1.0, 2.0]), np.array([3.0, 6.0]))
    pair = Pair(stacked, 2 * stacked, 4 * stacked, *errors)
    assert pair.ratio("single") == pytest.approx(2.0)
    assert pair.ratio("repeated") == pytest.approx(4.0)
    assert stacking._rms_ratio(pair.stacked_error[None], pair.single_error[None]) == pytest.approx(3.0)


def test_the_robot_is_that_of_the_source() -> None:
    """The lift joint and seven arm joints, one noise each."""
    robot = stacking.TIAGO.robot
    assert robot.n == 8 == len(stacking._NOISE) and robot.coordinates[0] == "torso_lift_joint"


@pytest.mark.slow
def test_figures_of_two_seeds_are_within_their_bounds() -> None:
    """Two minutes: predicted and simulated errors agree, and the condition number falls as in figure 3.21."""
    found = list(stacking.figures())
    assert not [f for f in found if not f.ok]
    assert sum("condition number after motion" in f.name for f in found) >= 1
