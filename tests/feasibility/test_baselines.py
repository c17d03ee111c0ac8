"""Rival methods on the same problem: what they find is possible, and never better than the cone program."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

import dynid
import dynid.robot
from dynid.errors import InvalidShape, InvalidValue, Mismatch, MissingArgument, NotApplicable, UnknownName
from dynid.feasibility.baselines import (
    essential_fit,
    nonlinear,
    reduce_until_feasible,
    reparametrization,
    reparametrized_fit,
)
from dynid.feasibility.baselines.nonlinear import nonlinear_fit, physical_fit, rule_list, sanity_rules, tensor_entries
from dynid.feasibility.baselines.point_mass import box_points, point_mass_columns, point_mass_fit
from dynid.feasibility.baselines.virtual_parameters import virtual_parameters_test
from dynid.feasibility.constraints import Inertia, Signs
from dynid.feasibility.fit import fit
from dynid.feasibility.queries import is_feasible
from dynid.feasibility.sets import feasible_set
from dynid.parameters.base import base_parameters, random_states
from dynid.robot.inertia import inertia_from_com, inertia_to_com, inertia_violations
from studies.reproduce import iiwa_feasibility
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot

Array = NDArray[np.float64]

SLENDER = {"z": np.diag([0.3, 0.3, 0.09]), "y": np.diag([0.3, 0.09, 0.3])}


def arm(seed: int = 3, joints: int = 3) -> dynid.Robot:
    """A serial arm with friction and offsets."""
    kinds = "r" * joints
    robot = random_robot(seed, joints, parents=list(range(joints)), kinds=kinds, mounts=False)
    robot = robot.with_drives("viscous+coulomb+offset")
    return robot.with_parameters(
        [0.3 if not p.inertial else x for p, x in zip(robot.layout, robot.parameters, strict=True)]
    )


def problem(robot: dynid.Robot, noise: float, seed: int = 0, samples: int = 60) -> tuple[Array, Array]:
    """Standard regressor rows (k, p) and torques (k,) with noise."""
    W = dynid.regressor(robot, *random_states(robot, samples, seed)).reshape(-1, len(robot.layout))
    return W, W @ robot.parameters + noise * np.random.default_rng(seed).normal(size=len(W))


def boxes(robot: dynid.Robot, half: float = 1.0) -> dict[str, Any]:
    return {link.name: ([-half] * 3, [half] * 3) for link in robot.links[1:]}


# -- point masses ----------------------------------------------------------------------------------


def test_a_box_has_27_points_whose_masses_are_possible_bodies() -> None:
    """Centre, vertices, edges and faces; a mass at each is a point mass, all together a possible body."""
    points = box_points([-1, -2, -3], [1, 2, 3])
    assert points.shape == (27, 3) and len(np.unique(points, axis=0)) == 27
    columns = point_mass_columns(points)
    x, y, z = points[5]
    expected = [1, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
    np.testing.assert_allclose(columns[:, 5], expected, atol=1e-15)
    assert np.linalg.matrix_rank(columns) == 10
    assert not inertia_violations(columns.sum(axis=1))


def test_point_mass_fit_is_possible_stays_in_its_boxes_and_costs_more_than_the_cone_program() -> None:
    """Its cone is a polyhedron within the possible bodies."""
    robot = arm()
    R, z = problem(robot, noise=3.0)
    found = point_mass_fit(robot, R, z, boxes(robot))
    best = fit(feasible_set(robot, "full"), R, z, np.asarray(robot.parameters), weight=0.0)
    # The cone program keeps 1e-6 off the boundary, which point masses need not.
    assert found.cost >= best.cost * (1 - 1e-6)
    # Point masses may lie in a plane: possible up to rounding, with no margin.
    assert not feasible_set(robot).violations(found.parameters, tolerance=2e-6)
    for first in range(0, len(robot.layout), 13):
        mass, moment = found.parameters[first], found.parameters[first + 1 : first + 4]
        assert np.all(np.abs(moment) <= mass + 1e-9)


def grid_bodies(robot: dynid.Robot) -> Array:
    """Standard parameters (p,) of links made of point masses at the grid of their boxes."""
    rng, pi = np.random.default_rng(5), np.array(robot.parameters)
    for first in range(0, len(pi), 13):
        pi[first : first + 10] = point_mass_columns(box_points([-1] * 3, [1] * 3)) @ rng.uniform(0, 0.3, 27)
        pi[first + 12] = -0.7  # an offset, free to be negative
    return pi


def test_point_mass_fit_finds_exact_data_of_point_masses() -> None:
    """Bodies made of point masses at the grid are recovered in their torques, free offsets included."""
    robot = arm()
    pi = grid_bodies(robot)
    R = problem(robot, 0.0)[0]
    found = point_mass_fit(robot, R, R @ pi, boxes(robot))
    np.testing.assert_allclose(R @ found.parameters, R @ pi, atol=1e-6)


def test_point_mass_fit_is_pulled_to_a_prior_and_asks_for_boxes() -> None:
    """With no data the pull gives a prior that point masses can make; every link needs a box."""
    robot = arm()
    pi = grid_bodies(robot)
    R, z = np.zeros((1, len(robot.layout))), np.zeros(1)
    found = point_mass_fit(robot, R, z, boxes(robot), prior=pi, weight=1.0)
    np.testing.assert_allclose(found.parameters, pi, atol=1e-6)
    with expect_error(MissingArgument, "boxes"):
        point_mass_fit(robot, R, z, {"l1": ([-1] * 3, [1] * 3), "l2": ([-1] * 3, [1] * 3)})
    with expect_error(InvalidValue, "box"):
        box_points([0, 0, 0], [1, 1, 0])


# -- nonlinear fits --------------------------------------------------------------------------------


def test_slopes_of_minors_are_exact() -> None:
    """Central differences agree."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 3, 3))
    matrices = root @ np.swapaxes(root, 1, 2)
    change = rng.normal(size=(3, 3))
    change = change + change.T
    ours = np.einsum("lkij,ij->lk", nonlinear._cofactors(matrices), change)
    step = 1e-6
    numeric = (nonlinear._minors(matrices + step * change) - nonlinear._minors(matrices - step * change)) / (2 * step)
    np.testing.assert_allclose(ours, numeric, atol=1e-6)


def test_nonlinear_fit_agrees_with_the_cone_program_on_a_small_robot() -> None:
    """Same set ("semi"), convex in the standard parameters: on two links the local method reaches the optimum."""
    robot = arm(joints=2)
    R, z = problem(robot, noise=3.0)
    found = nonlinear_fit(robot, R, z, max_iterations=500)
    best = fit(feasible_set(robot, "semi"), R, z, np.asarray(robot.parameters), weight=0.0)
    assert found.cost >= best.cost * (1 - 1e-6)
    assert found.cost == pytest.approx(best.cost, rel=1e-3)
    assert not feasible_set(robot, "semi").violations(found.parameters, tolerance=1e-4)


def test_nonlinear_fit_reports_its_iteration_cap() -> None:
    """A capped run does not pretend to have converged."""
    robot = arm()
    found = nonlinear_fit(robot, *problem(robot, noise=3.0), max_iterations=2)
    assert not found.converged and found.iterations == 2


def test_physical_fit_recovers_exact_data_and_keeps_bounds_and_rules() -> None:
    """Without noise and rules the torques are met; with rules every link obeys them."""
    robot = arm(joints=2)
    R, z = problem(robot, noise=0.0)
    start = robot.parameters * np.where([p.inertial for p in robot.layout], 1.2, 0.5)
    free = physical_fit(robot, R, z, start=start, rules=False, max_iterations=500)
    # Through R'R, half of the digits are lost: torques of order 10 are met to 1e-3 or so.
    assert np.linalg.norm(R @ free.parameters - z) < 1e-3 * np.linalg.norm(z)
    slender = {"l1": "z", "l2": "y"}
    first = np.array(robot.parameters)
    for k, axis in enumerate("zy"):
        first[13 * k : 13 * k + 10] = inertia_from_com(1.0, np.zeros(3), SLENDER[axis])
    lower, upper = np.full(len(first), -np.inf), np.full(len(first), np.inf)
    upper[0] = 1.5
    ruled = physical_fit(robot, R, z, start=first, bounds=(lower, upper), slender=slender, max_iterations=500)
    assert ruled.cost >= free.cost and ruled.parameters[0] <= 1.5 + 1e-9
    for k, axis in enumerate(("z", "y")):
        mass, _, tensor = inertia_to_com(ruled.parameters[13 * k : 13 * k + 10])
        assert not sanity_rules(float(mass), tensor, axis, digits=1e-7)


def test_physical_fit_refuses_bounds_without_room_and_unknown_links() -> None:
    robot = arm(joints=2)
    R, z = problem(robot, noise=0.0)
    none = np.zeros(len(robot.layout))
    with expect_error(InvalidValue, "bounds"):
        physical_fit(robot, R, z, bounds=(none, none))
    with expect_error(UnknownName, "slender"):
        physical_fit(robot, R, z, slender={"hand": "x"})


# -- virtual parameters ----------------------------------------------------------------------------


def three_links() -> dynid.Robot:
    """The example of Yoshida and Khalil: a vertical axis along y, then two parallel ones a metre apart."""
    place, out = np.eye(4), np.eye(4)
    out[0, 3] = 1.0
    joints = (
        dynid.robot.Joint("joint1", "revolute", 0, place, np.array([0.0, 1.0, 0.0])),
        dynid.robot.Joint("joint2", "revolute", 1, place, np.array([0.0, 0.0, 1.0])),
        dynid.robot.Joint("joint3", "revolute", 2, out, np.array([0.0, 0.0, 1.0])),
    )
    links = tuple(dynid.robot.Link(f"link{i}", np.zeros(10)) for i in range(4))
    return dynid.Robot("three", links, joints, gravity=np.array([0.0, -9.81, 0.0]))


T1 = [6.4, -5.48, 0.072, -0.087, 0.051, 5.6, 6.5, -0.00075, -0.72, -0.0098, -0.0098, -0.00045, 0.72, 0.95, 0.015]


def test_yoshida_and_khalils_example() -> None:
    """Groupings as printed; the first set of values is found possible, the second is not, and is not."""
    base = base_parameters(three_links())
    assert base.expressions[0] == "Iyy_1 + Iyy_2 + Iyy_3 + m_3" and base.expressions[3] == "Ixz_2 - mz_3"
    found = virtual_parameters_test(base, T1)
    assert found and found.parameters is not None
    np.testing.assert_allclose(base.values(found.parameters), T1, atol=1e-9)
    assert is_feasible(base.robot, found.parameters, "semi")
    second = [6.2, *T1[1:]]
    assert not virtual_parameters_test(base, second, branches=4, tries=40)
    assert is_feasible(base, second, "semi").status == "infeasible"


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_the_search_finds_small_possible_arms(seed: int) -> None:
    """Base values of a possible arm well inside its cone, drives included."""
    robot = arm(seed)
    base = base_parameters(robot)
    found = virtual_parameters_test(base, base.values())
    assert found and found.parameters is not None
    np.testing.assert_allclose(base.values(found.parameters), base.values(), atol=1e-8)


def test_the_search_gives_up_on_negative_friction_and_asks_for_the_right_grouping() -> None:
    """A negative friction coefficient stops it at its link; pivoted base parameters are refused."""
    robot = arm()
    base = base_parameters(robot)
    beta = base.values(np.where([p.name == "fv_j3" for p in robot.layout], -0.1, robot.parameters))
    found = virtual_parameters_test(base, beta)
    assert not found and found.stuck == "l3" and found.tried == 0
    # Pivoting need not group towards the base; for this arm it does not.
    pivoted = base_parameters(arm(seed=2), method="pivoted")
    with expect_error(NotApplicable, "base"):
        virtual_parameters_test(pivoted, pivoted.values())


# -- rules of thumb --------------------------------------------------------------------------------


def test_a_sensible_link_breaks_no_rule_and_each_rule_can_be_broken() -> None:
    good = np.diag([0.3, 0.3, 0.09])
    assert sanity_rules(1.0, good, "z") == []
    assert "mass -1 kg is not positive" in sanity_rules(-1.0, good)
    cases = {
        "(a)": np.diag([1.0, 0.1, 0.1]),
        "(b)": np.diag([1.0, 1.0, 0.001]),
        "(c)": good + 0.02 * (np.ones((3, 3)) - np.eye(3)),
        "(d)": 1e-4 * np.diag([1.0, 1.0, 0.5]),
        "definite": np.diag([1.0, 1.0, -0.1]),
    }
    for words, tensor in cases.items():
        assert any(words in broken for broken in sanity_rules(1.0, tensor)), words
    assert any("slender along y" in w for w in sanity_rules(1.0, good, "y"))
    with expect_error(InvalidValue, "inertia"):
        sanity_rules(1.0, [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])


def test_rules_count_as_published() -> None:
    """Expanded to rows: 3 + 6 + 18 + 3 a link, two more for a slender one."""
    assert [len(r.rows) for r in rule_list("z")] == [3, 6, 18, 3, 2]
    assert tensor_entries(np.diag([1.0, 2.0, 3.0])).tolist() == [1, 0, 2, 0, 0, 3]


def test_table_of_the_iiwa_is_judged_as_computed_independently() -> None:
    """Every figure of the study agrees."""
    found = list(iiwa_feasibility.figures())
    assert len(found) > 30 and not [f.name for f in found if not f.ok]


# -- squares and triangular factors ----------------------------------------------------------------


def test_slopes_of_squares_and_factors_are_exact() -> None:
    """Central differences agree."""
    theta = np.random.default_rng(2).normal(size=10)
    step = 1e-6
    ahead, behind = (
        np.array([reparametrization._standard(theta + s * e, [0], []) for e in np.eye(10)]) for s in (step, -step)
    )
    np.testing.assert_allclose(reparametrization._body_slope(theta), ((ahead - behind) / (2 * step)).T, atol=1e-7)


def test_squares_and_factors_are_semi_consistent_and_reach_the_cone_program_on_a_small_robot() -> None:
    """The same set without a margin; the published expansion of the tensor in its eleven unknowns holds."""
    robot = arm(joints=2)
    R, z = problem(robot, noise=1.0, samples=40)
    found = reparametrized_fit(robot, R, z)
    best = fit(feasible_set(robot, (Inertia("semi", margin=0.0), Signs())), R, z, robot.parameters, weight=0.0)
    assert found.cost >= best.cost * (1 - 1e-6)
    assert found.cost == pytest.approx(best.cost, rel=1e-3)
    free = 0.5 * float(np.sum((R @ np.linalg.lstsq(R, z, rcond=None)[0] - z) ** 2))
    assert best.cost > free * (1 + 1e-5)
    assert not feasible_set(robot, (Inertia("semi", margin=0.0), Signs())).violations(found.parameters, 1e-9)
    a, x, y, w, c = 1.3, 0.2, -0.4, 0.7, np.array([0.5, -0.2, 0.3, 0.1, 0.6, 0.4])
    t5, t6, t8, t7, t9, t10 = c
    pi = reparametrization._standard(np.array([a, x, y, w, *c]), [0], [])
    expected = [
        a**2 * (y**2 + w**2) + t5**2,
        -(a**2) * x * y + t5 * t6,
        a**2 * (x**2 + w**2) + t6**2 + t8**2,
        -(a**2) * x * w + t5 * t7,
        -(a**2) * y * w + t6 * t7 + t8 * t9,
        a**2 * (x**2 + y**2) + t7**2 + t9**2 + t10**2,
    ]
    np.testing.assert_allclose(pi[4:], expected, rtol=1e-12)
    capped = reparametrized_fit(robot, R, z, start=2.0 * np.asarray(robot.parameters), max_iterations=2)
    assert not capped.converged and capped.iterations == 2


# -- model reduction -------------------------------------------------------------------------------


def poor_problem(noise: float = 1.0) -> tuple[Any, Array, Array]:
    """A three-link arm with so much noise that least squares is not consistent."""
    robot = arm(seed=5)
    R, z = problem(robot, noise=noise, samples=40)
    return base_parameters(robot), R, z


def test_model_reduction_drops_the_least_certain_until_the_rest_is_feasible() -> None:
    """Each step is least squares on what is left; the distance to the feasible set ends at zero, the error grows."""
    base, R, z = poor_problem()
    found = reduce_until_feasible(base, R, z, distances=True)
    W = R @ np.linalg.pinv(base.matrix)
    names = list(base.names)
    for step, after in pairwise(found.steps):
        kept = [base.names.index(n) for n in names]
        values = np.linalg.lstsq(W[:, kept], z, rcond=None)[0]
        np.testing.assert_allclose(step.beta[kept], values, rtol=1e-8, atol=1e-10)
        std = np.sqrt(np.diag(np.linalg.inv(W[:, kept].T @ W[:, kept])))
        assert after.removed == names.pop(int(np.argmax(std / np.abs(values))))
        assert not step.feasible and step.distance > 0 and is_feasible(base, step.beta, "semi").status == "infeasible"
    assert found and found.kept == tuple(names) and 0 < len(found.removed) < base.count
    errors = [step.error for step in found.steps]
    assert errors == sorted(errors)
    assert found.steps[-1].feasible and found.steps[-1].distance < 1e-4
    assert found.parameters is not None
    np.testing.assert_allclose(base.values(found.parameters), found.steps[-1].beta, atol=1e-8)
    assert not feasible_set(base.robot, "semi").violations(found.parameters, 1e-8)


def test_model_reduction_says_when_no_model_is_feasible_and_refuses_other_rows() -> None:
    """Torques of the wrong sign ask for negative masses at every size."""
    base, R, z = poor_problem(noise=0.0)
    found = reduce_until_feasible(base, R, -z, smallest=20)
    assert not found and found.parameters is None and len(found.kept) == 20
    with expect_error(Mismatch, "R"):
        reduce_until_feasible(base, np.random.default_rng(0).normal(size=R.shape), z)
    with expect_error(InvalidValue, "smallest"):
        reduce_until_feasible(base, R, z, smallest=0)
    with expect_error(InvalidShape, "R"):
        reduce_until_feasible(base, R[:, :-1], z)


# -- essential parameters --------------------------------------------------------------------------


def test_essential_fit_keeps_the_prior_where_the_data_are_silent() -> None:
    """With exact data: the base values are met, and no standard vector that meets them is nearer to the prior."""
    base, R, _ = poor_problem()
    z = R @ base.robot.parameters
    prior = 1.2 * base.robot.parameters
    found = essential_fit(base, R, z, prior=prior, ratio=1e15)
    assert found.removed == () and found.essential == tuple(base.names)
    np.testing.assert_allclose(base.values(found.fit.parameters), base.values(), rtol=1e-7, atol=1e-9)
    scale = feasible_set(base.robot).scale
    null = linalg.null_space(base.matrix * scale)
    np.testing.assert_allclose(null.T @ ((found.fit.parameters - prior) / scale), 0.0, atol=1e-8)


def test_essential_fit_removes_what_the_data_do_not_show_and_states_how_far_it_is_off() -> None:
    """The shift of the Cholesky factorisations is minus the smallest slack; essential parameters are Pham's."""
    base, R, z = poor_problem(noise=3.0)
    found = essential_fit(base, R, z, ratio=10.0)
    assert found.removed and set(found.removed) | set(found.essential) == set(base.names)
    kept = [base.names.index(n) for n in found.essential]
    W = (R @ np.linalg.pinv(base.matrix))[:, kept]
    values = np.linalg.lstsq(W, z, rcond=None)[0]
    relative = np.sqrt(np.diag(np.linalg.inv(W.T @ W))) / np.abs(values)
    assert relative.max() <= 10.0 * relative.min()
    np.testing.assert_allclose(base.values(found.fit.parameters)[kept], values, rtol=1e-6)
    off = essential_fit(base, R, z - 3.0 * R @ base.robot.parameters)
    slack = feasible_set(base.robot, (Inertia("semi", margin=0.0), Signs())).slack(off.fit.parameters)
    assert not off and off.shift == pytest.approx(-slack, rel=1e-9)
    with expect_error(InvalidValue, "ratio"):
        essential_fit(base, R, z, ratio=1.0)
