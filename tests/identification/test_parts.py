"""Cross-validation over parts of the time: paired comparison of models, and fits whose friction is not negative."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from dynid.identification.observation import observe
from dynid.identification.parts import Loss, _bounded_solution, parts_of
from tests.support.synthetic import arm, record


def loss(lost: list[list[float]]) -> Loss:
    return Loss(np.array(lost), np.array([100.0, 400.0]))


def test_the_difference_of_errors_is_the_sum_over_the_parts() -> None:
    one, two = loss([[1.0, 9.0], [2.0, 4.0], [6.0, 12.0]]), loss([[1.0, 8.0], [1.0, 5.0], [2.0, 12.0]])
    excess, standard_error = one.excess(two)
    assert excess == pytest.approx(one.error - two.error, rel=1e-12)
    assert standard_error > 0
    assert two.excess(one) == pytest.approx((-excess, standard_error))


def test_equal_on_every_part_is_sure_and_scatter_is_not() -> None:
    best = loss([[1.0, 4.0]] * 5)
    always = loss([[1.1, 4.4]] * 5)
    assert not always.as_good_as(best) and best.surely_better_than(always)
    scattered = loss([[1.9, 4.0], [0.2, 4.0], [1.8, 4.0], [0.5, 4.0], [0.7, 4.0]])
    assert best.error < scattered.error < 1.01 * best.error
    assert scattered.as_good_as(best) and not best.surely_better_than(scattered)
    far = loss([[2.9, 4.0], [0.2, 4.0], [1.8, 4.0], [0.5, 4.0], [0.7, 4.0]])
    assert far.excess(best)[0] < far.excess(best)[1] and not far.as_good_as(best)
    assert best.as_good_as(best) and not best.surely_better_than(best)


@pytest.mark.parametrize("seed", range(8))
def test_bounded_solution_is_that_of_another_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(60, 25)), rng.normal(size=60)
    A[:, 3] = A[:, 4] + 1e-3 * rng.normal(size=60)
    bounded = rng.random(25) < 0.7
    ours = _bounded_solution(A.T @ A, A.T @ y, bounded)
    other = scipy.optimize.lsq_linear(A, y, (np.where(bounded, 0.0, -np.inf), np.inf), method="bvls", tol=1e-14)
    np.testing.assert_allclose(ours, other.x, atol=1e-7)


def test_friction_of_a_fit_is_not_negative() -> None:
    """Torques with the opposite viscous friction: the fit has none, and others are as they were."""
    robot = arm()
    names = robot.parameter_names
    wrong = robot.parameters.copy()
    wrong[names.index("fv_joint2")] = -1.0
    recording = record(robot.with_parameters(wrong), noise=0.01, samples=2000)
    parts = parts_of(observe(robot, recording), 5)
    beta = parts.fitted(1e-3, np.eye(len(names)))
    values = dict(zip(parts.observation.base.names, beta, strict=True))
    assert values["fv_joint2"] == pytest.approx(0.0, abs=1e-9)
    assert values["fv_joint1"] == pytest.approx(1.0, abs=0.05)
