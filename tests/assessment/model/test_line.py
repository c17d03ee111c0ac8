"""Share of positive definite mass matrices along a line: one wherever the parameters are feasible, and earlier."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.assessment.model.line import LineScan, scan_line
from dynid.errors import DataError, InvalidValue
from dynid.feasibility.queries import is_feasible, nearest_feasible
from dynid.parameters.base import BaseParameters, base_parameters
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot


@pytest.fixture(scope="module")
def base() -> BaseParameters:
    return base_parameters(random_robot(1, 3, parents=[0, 1, 2], kinds="rrr", mounts=False))


@pytest.fixture(scope="module")
def scan(base: BaseParameters) -> LineScan:
    """From values with errors to the nearest consistent ones, and a little further inside."""
    start = base.values() + 0.4 * np.random.default_rng(0).normal(size=base.count)
    end = nearest_feasible(base, start, "semi").beta
    return scan_line(base, start, end + 0.02 * (base.values() - end), points=11, poses=300)


def test_where_the_parameters_are_feasible_every_mass_matrix_is_positive_definite(scan: LineScan) -> None:
    """Also the other direction: an eigenvalue below zero at any pose is a proof of infeasibility."""
    feasible = np.array(scan.status) == "feasible"
    assert feasible.any() and not feasible.all()
    np.testing.assert_array_equal(scan.ratio[feasible], 1.0)
    assert all(status == "infeasible" for status, share in zip(scan.status, scan.ratio, strict=True) if share < 1)
    assert np.all(np.diff(scan.ratio) >= 0) and scan.ratio[0] < 1


def test_the_share_is_one_before_the_parameters_are_feasible(scan: LineScan) -> None:
    """The zone in which sampled mass matrices show nothing."""
    assert scan.hidden.any() and scan.hidden.sum() < len(scan.place)
    assert scan.place[scan.hidden].max() < scan.place[np.array(scan.status) == "feasible"].min()


def test_points_agree_with_the_mass_matrix_and_the_test_of_each(base: BaseParameters, scan: LineScan) -> None:
    """The line of mass matrices is the mass matrix of the line; the last margin is that of the feasibility test."""
    ends = [-base.values(), base.values()]
    found = scan_line(base, *ends, points=5, poses=50, seed=3)
    middle = 0.25 * ends[0] + 0.75 * ends[1]
    robot = base.robot
    ranges = [robot.limits[j] for j in robot.coordinates]
    low = [x.lower if np.isfinite(x.lower) else -np.pi for x in ranges]
    high = [x.upper if np.isfinite(x.upper) else np.pi for x in ranges]
    q = np.random.default_rng(3).uniform(low, high, (50, robot.n))
    smallest = np.linalg.eigvalsh(dynid.mass_matrix(robot, q, base.join(middle)))[:, 0]
    assert found.smallest[3] == pytest.approx(smallest.min(), rel=1e-9)
    assert found.margin[3] == pytest.approx(is_feasible(base, middle, "semi").margin)
    assert found.to_frame().columns == ["place", "ratio", "smallest", "margin", "status"]


def test_it_draws_both_curves_and_the_zone_between(scan: LineScan) -> None:
    pytest.importorskip("matplotlib")
    axes = scan.plot()
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), 100 * scan.ratio)
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), scan.margin)
    assert len(axes[0].patches) == scan.hidden.sum()


def test_wrong_settings_are_refused(base: BaseParameters) -> None:
    beta = base.values()
    with expect_error(InvalidValue, "points"):
        scan_line(base, beta, beta, points=1)
    with expect_error(DataError):
        scan_line(base, beta[:-1], beta)
