"""Essential parameters by branch and bound, against every subset of a small robot."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import dynid
from dynid.errors import InvalidValue, UnknownName
from dynid.identification import essential_parameters, estimate_from, observe
from dynid.identification.known import best_by_f_test, best_within_ratio
from tests.identification.test_estimate import EXACT, arm, record
from tests.support.errors import expect_error

Array = NDArray[np.float64]


def small() -> dynid.Robot:
    """Two joints with friction, and offsets that are zero."""
    return dynid.load_robot("twolink").with_drives("viscous+coulomb+offset", rotor_inertia=False)


def every_subset(factor: Array) -> list[tuple[tuple[int, ...], float, float]]:
    """Columns, sum of squares and ratio of the relative standard deviations of all subsets, by least squares."""
    A, y, out = factor[:, :-1], factor[:, -1], []
    for count in range(1, A.shape[1] + 1):
        for kept in combinations(range(A.shape[1]), count):
            columns = A[:, kept]
            values = np.linalg.lstsq(columns, y, rcond=None)[0]
            relative = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns))) / np.abs(values)
            squares = float(np.sum((y - columns @ values) ** 2))
            out.append((kept, squares, float(relative.max() / relative.min())))
    return out


def problem(seed: int, count: int = 9) -> Array:
    """Triangular factor of correlated columns, some of which explain nothing."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(60, count)) @ (np.eye(count) + 0.4 * rng.normal(size=(count, count)))
    x = rng.normal(size=count) * np.where(rng.uniform(size=count) < 0.5, 0.05, 2.0)
    y = A @ x + rng.normal(size=60)
    return np.asarray(np.linalg.qr(np.column_stack([A, y]), mode="r"))


@pytest.mark.parametrize("seed", range(6))
def test_the_search_finds_the_best_of_all_subsets(seed: int) -> None:
    """Both measures, from a poor first choice: the optimum of 511 subsets, and proven."""
    factor = problem(seed)
    subsets = every_subset(factor)
    freedom, price, ratio = 51, 4.0, 8.0
    noise = subsets[-1][1] / freedom
    by_price = min(subsets, key=lambda s: s[1] / noise + price * len(s[0]))
    within = min((s for s in subsets if s[2] <= ratio), key=lambda s: s[1])
    first = (0,)
    found = best_by_f_test(factor, freedom, price, first, 10_000)
    assert (found.kept, found.proven) == (by_price[0], True)
    found = best_within_ratio(factor, ratio, first, 10_000)
    assert (found.kept, found.proven) == (within[0], True)


@pytest.mark.parametrize("test", ["ratio", "f"])
def test_essential_parameters_of_a_small_robot(test: str) -> None:
    """All subsets of the parameters of two joints: the global choice is the best, and never worse than stepwise."""
    robot = small()
    observation = observe(robot, record(robot, (0, 1), noise=0.1), signals=EXACT)
    estimate = estimate_from(observation, "wls")
    factor = observation.stacked(1.0 / estimate.noise)
    freedom = observation.total_rows - observation.base.count
    price = float(scipy.stats.f.ppf(0.95, 1, freedom))
    subsets = {kept: (squares, ratio) for kept, squares, ratio in every_subset(factor)}
    noise = min(squares for squares, _ in subsets.values()) / freedom

    def cost(kept: tuple[int, ...]) -> float:
        squares, ratio = subsets[kept]
        if test == "f":
            return squares / noise + price * len(kept)
        return squares if ratio <= 30.0 else np.inf

    found = essential_parameters(observation, estimate, test=test, search="global")
    assert found.proven and found.kept == min(subsets, key=cost)
    stepwise = essential_parameters(observation, estimate, test=test)
    assert cost(found.kept) <= cost(tuple(sorted(stepwise.kept))) and not stepwise.proven
    assert sorted((*found.kept, *found.removed)) == list(range(observation.base.count))


def test_a_search_that_does_not_end_says_so() -> None:
    """One subset of 25 parameters is the full set: the stepwise choice is returned with a note; nonsense is refused."""
    robot = arm()
    observation = observe(robot, record(robot, (0, 1), noise=0.1), signals=EXACT)
    estimate = estimate_from(observation, "wls")
    found = essential_parameters(observation, estimate, search="global", subsets=1)
    assert not found.proven and any("ended after 1 subsets" in note for note in found.estimate.notes)
    assert found.kept == essential_parameters(observation, estimate).kept
    with expect_error(UnknownName, "search"):
        essential_parameters(observation, estimate, search="best")
    with expect_error(InvalidValue, "subsets"):
        essential_parameters(observation, estimate, search="global", subsets=0)
