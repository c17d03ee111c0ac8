"""The most central robot with given base parameters, against a modelling layer, and the cases without one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import DataError, DynidError
from dynid.feasibility.center import analytic_center
from dynid.feasibility.cone import smat
from dynid.feasibility.constraints import Constraint, Ellipsoids, Fixed, Mass
from dynid.feasibility.sets import FeasibleSet, feasible_set
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot

Array = NDArray[np.float64]


def _ball(radius: float) -> Array:
    return np.diag([-1.0 / radius**2] * 3 + [1.0])


def _bounded(robot: dynid.Robot) -> list[Constraint | str]:
    """Full bodies within two metres of their frames, together at most three times as heavy as they are."""
    links = [robot.links[i] for i in robot.parameter_links]
    mass = sum(float(link.inertia[0]) for link in links)
    return ["full", Mass(upper=3.0 * mass), *(Ellipsoids(link.name, [_ball(2.0)]) for link in links)]


def _driven(seed: int, joints: int) -> dynid.Robot:
    robot = random_robot(seed, joints).with_drives("viscous+offset", rotor_inertia=True)
    return robot.with_parameters(np.where([p.inertial for p in robot.layout], robot.parameters, 0.3))


def _logarithms(possible: FeasibleSet, x: Array) -> float:
    """What the centre maximises."""
    out = 0.0
    for block in possible.blocks:
        if block.cone == "psd":
            out += float(np.linalg.slogdet(smat(block.value(x)))[1])
        elif block.cone == "nonnegative":
            out += float(np.log(block.value(x)).sum())
    return out


@pytest.mark.parametrize("robot", [random_robot(1, 1), random_robot(2, 2), _driven(5, 2)], ids=["one", "two", "driven"])
def test_it_agrees_with_a_modelling_layer(robot: dynid.Robot) -> None:
    cp = pytest.importorskip("cvxpy")
    base = dynid.base_parameters(robot)
    constraints = _bounded(robot)
    possible = feasible_set(robot, constraints)
    found = analytic_center(base, None, constraints)
    np.testing.assert_allclose(base.values(found), base.values(), atol=1e-10)

    scaled = cp.Variable(possible.size)
    x = cp.multiply(possible.scale, scaled)
    terms = []
    for block in possible.blocks:
        if block.cone == "psd":
            root = 1.0 / np.sqrt(np.diag(smat(block.unit)))
            white = [smat(c) * np.outer(root, root) for c in block.matrix.toarray().T]
            terms.append(
                cp.log_det(sum(x[i] * c for i, c in enumerate(white)) + smat(block.constant) * np.outer(root, root))
            )
        else:
            terms.append(cp.sum(cp.log(block.matrix.toarray() @ x + block.constant)))
    problem = cp.Problem(cp.Maximize(sum(terms)), [base.matrix @ x == base.values()])
    problem.solve(solver="CLARABEL")
    oracle = possible.scale * scaled.value
    # The modelling layer's solver stops at 1e-8; the maximum is flat, so that its parameters are known to about 1e-4.
    best, theirs = _logarithms(possible, found), _logarithms(possible, oracle)
    assert theirs - 1e-9 <= best <= theirs + 1e-6
    here, there = found / possible.scale, oracle / possible.scale
    np.testing.assert_allclose(here, there, atol=1e-4 * np.abs(here).max())


def test_no_way_leads_farther_inside() -> None:
    """First-order optimality: the sum of logarithms falls along every direction that keeps the base parameters."""
    robot = random_robot(3, 4)
    base = dynid.base_parameters(robot)
    constraints = _bounded(robot)
    possible = feasible_set(robot, constraints)
    found = analytic_center(base, None, constraints)
    best = _logarithms(possible, found)
    rng = np.random.default_rng(0)
    for _ in range(50):
        direction = base.join(np.zeros(base.count), rng.normal(size=len(base.dependent)))
        direction *= 1e-3 / np.abs(direction / possible.scale).max()
        assert _logarithms(possible, found + direction) < best
        assert _logarithms(possible, found - direction) < best


def test_it_does_not_depend_on_where_the_robot_started() -> None:
    """Only the base values count: another robot with the same ones and the same constraints has the same centre."""
    robot = random_robot(2, 2)
    base, constraints = dynid.base_parameters(robot), _bounded(robot)
    centre = analytic_center(base, None, constraints)
    moved = robot.with_parameters(centre)
    again = analytic_center(dynid.base_parameters(moved), base.values(), ["full", *constraints[1:]])
    # Margins and the mass bound are those of the first robot but for "full", whose margin of 1e-6 follows the links.
    np.testing.assert_allclose(again, centre, rtol=1e-4, atol=1e-4)


def test_equalities_and_parts_are_kept() -> None:
    """A weighed link, and a link that is the sum of bodies in two ellipsoids: unknowns of their own."""
    robot = random_robot(2, 2)
    base = dynid.base_parameters(robot)
    shifted = _ball(1.5).copy()
    shifted[:3, 3] = shifted[3, :3] = [0.0, 0.0, 0.05]
    constraints: list[Constraint | str] = [
        *_bounded(robot)[:2],
        Ellipsoids("l1", [_ball(2.0)]),
        Ellipsoids("l2", [_ball(2.0), shifted]),
        Fixed({"m_l1": 1.5 * robot.parameters[0]}),
    ]
    found = analytic_center(base, None, constraints)
    assert found[0] == pytest.approx(1.5 * robot.parameters[0], rel=1e-9)
    np.testing.assert_allclose(base.values(found), base.values(), atol=1e-9)
    assert not feasible_set(robot, "full").violations(found, 0.0)


def test_masses_that_nobody_sees_are_named() -> None:
    base = dynid.base_parameters(dynid.load_robot("tx40"))
    with expect_error(DynidError, "constraints", code="not_identifiable") as error:
        analytic_center(base, None)
    assert "m_link5" not in str(error.value)


def test_bodies_that_nobody_measures_are_named() -> None:
    """With its mass bounded, the first link may still be as long as it likes along its axis."""
    base = dynid.base_parameters(dynid.load_robot("tx40"))
    with expect_error(DynidError, "constraints", code="not_identifiable") as error:
        analytic_center(base, None, ["full", Mass(upper=100.0)])
    assert "mass bound" not in str(error.value)


def test_a_real_robot_has_a_centre() -> None:
    robot = dynid.load_robot("tx40")
    base = dynid.base_parameters(robot)
    found = analytic_center(base, None, _bounded(robot))
    np.testing.assert_allclose(base.values(found), base.values(), atol=1e-10)
    assert not feasible_set(robot, "full").violations(found, 0.0)


def test_values_on_the_boundary_leave_no_room() -> None:
    """Friction that is seen and is zero."""
    robot = random_robot(4, 2).with_drives("viscous")
    base = dynid.base_parameters(robot)
    with expect_error(DynidError, code="infeasible"):
        analytic_center(base, None, _bounded(robot))


def test_impossible_values_are_said_to_be() -> None:
    robot = _driven(5, 2)
    base = dynid.base_parameters(robot)
    beta = base.values().copy()
    beta[base.kept.index(robot.parameter_names.index("fv_j2"))] = -0.1
    with expect_error(DynidError, code="infeasible"):
        analytic_center(base, beta, _bounded(robot))


def test_a_wrong_number_of_values_is_refused() -> None:
    base = dynid.base_parameters(random_robot(1, 1))
    with expect_error(DataError):
        analytic_center(base, np.zeros(base.count + 1))
