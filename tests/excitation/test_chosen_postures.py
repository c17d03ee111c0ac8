"""Postures at rest: chosen sets against random ones, within ranges and above the feet."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import Infeasible, MissingData, NotApplicable, TooFew, UnknownName
from tests.support.errors import expect_error
from tests.support.humanoids import dance, humanoid

SOLE = [[-0.05, -0.05], [0.2, -0.05], [0.2, 0.05], [-0.05, 0.05]]


def person() -> dynid.excitation.Standing:
    """A person on both feet, legs held, spine, shoulders and elbows free."""
    human = dynid.human.human_model("female", 1.7, 62.0)
    free = ("lumbar", "shoulder", "elbow")
    held = {c: 0.0 for c in human.coordinates if not c.removeprefix("left_").removeprefix("right_").startswith(free)}
    return dynid.excitation.stand_on(human, ["left_sole", "right_sole"], SOLE, held=held, margin=0.01)


@pytest.mark.parametrize("criterion", ["d", "cond"])
def test_chosen_postures_beat_all_random_sets_and_keep_balance(criterion: str) -> None:
    """Figures are those of the rows themselves; every centre of mass lies over the feet, every joint in its range."""
    standing = person()
    robot = standing.robot
    found = dynid.excitation.select_postures(robot, 12, criterion=criterion, support=standing.support, candidates=400)
    assert found.q.shape == (12, robot.n) and len(set(found.which)) == 12
    assert standing.support.values(found.q).min() >= 0
    for name, values in zip(robot.coordinates, found.q.T, strict=True):
        assert robot.limits[name].lower <= values.min() and values.max() <= robot.limits[name].upper
    if criterion == "d":
        assert found.log_determinant > found.random_log_determinants.max() and found.gain > 1.2
    else:
        assert found.condition_number < 0.7 * found.random_condition_numbers.min()
    zero = np.zeros_like(found.q)
    rows = found.base.regressor(found.q, zero, zero).reshape(-1, found.base.count)
    covariance = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(found.std, np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert "times as many random postures" in found.summary()


def test_no_exchange_of_one_posture_is_better() -> None:
    """The chosen set is a local optimum of the determinant, looked at by force."""
    robot = humanoid(3, base="fixed", limbs="A")
    pool = dance(robot, samples=60).q
    found = dynid.excitation.select_postures(robot, 6, candidates=pool, channels="torque")
    zero = np.zeros_like(pool)
    W = found.base.regressor(pool, zero, zero)

    def volume(which: list[int]) -> float:
        rows = W[which].reshape(-1, found.base.count)
        return float(np.linalg.slogdet(rows.T @ rows)[1])

    best = volume(list(found.which))
    for k in range(6):
        for other in set(range(60)) - set(found.which):
            tried = list(found.which)
            tried[k] = other
            assert volume(tried) <= best + 1e-6


def test_what_cannot_be_chosen_is_said() -> None:
    """Too few postures, a floating base, no room, an unknown criterion."""
    standing = person()
    with expect_error(TooFew, "count"):
        dynid.excitation.select_postures(standing.robot, 3)
    with expect_error(NotApplicable, "candidates"):
        dynid.excitation.select_postures(humanoid(0), 40)
    with expect_error(UnknownName, "criterion"):
        dynid.excitation.select_postures(standing.robot, 12, criterion="e")
    on_one = dynid.excitation.stand_on(dynid.human.human_model("female", 1.7, 62.0), "left_sole", SOLE)
    with expect_error(Infeasible, "start"):
        dynid.excitation.select_postures(on_one.robot, 30, support=on_one.support)
    with expect_error(Infeasible):
        dynid.excitation.select_postures(
            on_one.robot, 30, support=on_one.support, candidates=np.zeros((2, on_one.robot.n))
        )
    with expect_error(MissingData, "limits"):
        dynid.excitation.select_postures(humanoid(0, base="instrumented"), 40)


def test_chosen_postures_identify_better_than_random_ones() -> None:
    """Simulated plate, the same noise and number of postures: a smaller error of all combinations together."""
    standing = person()
    robot = standing.robot
    found = dynid.excitation.select_postures(robot, 12, criterion="d", support=standing.support, candidates=400)
    zero = np.zeros_like(found.q)
    chosen = found.base.regressor(found.q, zero, zero).reshape(-1, found.base.count)
    rng = np.random.default_rng(0)
    pool = rng.uniform(-0.3, 0.3, (300, robot.n))
    pool = pool[standing.support.values(pool).min(axis=1) >= 0]
    errors = []
    for rows in (chosen, found.base.regressor(pool[:12], zero, zero).reshape(-1, found.base.count)):
        y = rows @ found.base.values() + rng.normal(size=(200, len(rows)))
        beta = np.linalg.lstsq(rows, y.T, rcond=None)[0].T
        errors.append(float(np.sqrt(np.mean((beta - found.base.values()) ** 2))))
    assert errors[0] < 0.5 * errors[1]
