"""The last check of consistency: estimates end inside their constraints, and all who judge a body judge it alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.model_checks import check_consistency
from dynid.cli.demo import synthetic_recording
from dynid.errors import ModelError
from dynid.export.contents import refuse_infeasible
from dynid.feasibility.cone import ConeProgram, ConeSolution
from dynid.feasibility.constraints import Mass, link_scales
from dynid.feasibility.fit import Fit, fit, outside, restored
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimators.feasible import boundary_notes
from dynid.inertia import inertia_from_pseudo, inertia_to_pseudo, inertia_violations
from dynid.parameters.base import random_states
from dynid.robot.consistency import drive_violations, physical_violations
from tests.support.errors import expect_error

Array = NDArray[np.float64]
SMALL = 1.7e-7
# A robot of the feasible set has this smallest eigenvalue at least, in the unit of each body.
MARGIN = 1e-6


def unit_root(robot: dynid.Robot, name: str) -> Array:
    """Diagonal matrix (4, 4) with which the pseudo-inertia of a link is brought to order one."""
    mass, length = link_scales(robot)[name]
    return np.diag(np.sqrt(mass) * np.array([length, length, length, 1.0]))


def flattened(robot: dynid.Robot, name: str, smallest: float) -> Array:
    """Standard parameters (p,) whose one body has this smallest eigenvalue, in its unit."""
    pi, first = np.array(robot.parameters), robot.parameter_names.index(f"m_{name}")
    root = unit_root(robot, name)
    inverse = np.linalg.inv(root)
    sizes, vectors = np.linalg.eigh(inverse @ inertia_to_pseudo(pi[first : first + 10]) @ inverse)
    sizes[0] = smallest
    pi[first : first + 10] = inertia_from_pseudo(root @ (vectors * sizes) @ vectors.T @ root)
    return pi


@pytest.fixture(scope="module")
def arm() -> dynid.Robot:
    return dynid.load_robot("tx40")


def distance(feasible: FeasibleSet, a: Array, b: Array) -> float:
    """Distance of two robots: that of their matrices, each in its unit, and of their drives in their typical sizes."""
    robot, total = feasible.robot, 0.0
    for i, p in enumerate(robot.layout):
        if p.inertial and p.symbol == "m":
            inverse = np.linalg.inv(unit_root(robot, p.owner))
            change = inverse @ inertia_to_pseudo(a[i : i + 10] - b[i : i + 10]) @ inverse
            total += float(np.sum(change**2))
        elif not p.inertial:
            total += float((a[i] - b[i]) / feasible.scale[i]) ** 2
    return float(np.sqrt(total))


def test_what_is_inside_stays_to_the_last_bit(arm: dynid.Robot) -> None:
    feasible = feasible_set(arm)
    found = restored(feasible, arm.parameters)
    assert found.before == found.after == 0
    np.testing.assert_array_equal(found.x, arm.parameters)


def test_a_body_outside_moves_to_the_nearest_point_inside(arm: dynid.Robot) -> None:
    """The same point as that of a cone program of another modelling layer, found by SCS; no other body moves."""
    cp = pytest.importorskip("cvxpy")
    feasible = feasible_set(arm)
    start = flattened(arm, "link3", -0.05)
    start[arm.parameter_names.index("fv_joint2")] = -0.3
    found = restored(feasible, start)
    assert found.before == pytest.approx(0.3) and found.after == 0 and outside(feasible, found.x) == 0
    first = arm.parameter_names.index("m_link3")
    others = np.delete(np.arange(len(start)), [*range(first, first + 10), arm.parameter_names.index("fv_joint2")])
    np.testing.assert_array_equal(found.x[others], start[others])
    inverse = np.linalg.inv(unit_root(arm, "link3"))
    scaled = inverse @ inertia_to_pseudo(start[first : first + 10]) @ inverse
    matrix = cp.Variable((4, 4), symmetric=True)
    goal = cp.Minimize(cp.sum_squares(matrix - scaled))
    cp.Problem(goal, [matrix - MARGIN * np.eye(4) >> 0]).solve(solver="SCS", eps=1e-10)
    ours = inverse @ inertia_to_pseudo(found.x[first : first + 10]) @ inverse
    np.testing.assert_allclose(ours, matrix.value, atol=1e-7)


def test_an_equality_between_bodies_is_kept(arm: dynid.Robot) -> None:
    """The total mass is weighed: clipping one body would change it, so that the others change too."""
    total = sum(x for x, p in zip(arm.parameters, arm.layout, strict=True) if p.symbol == "m")
    feasible = feasible_set(arm, ["full", Mass(total, total)])
    start = flattened(arm, "link3", -1e-3)
    start[arm.parameter_names.index("m_link4")] += total - float(
        sum(x for x, p in zip(start, arm.layout, strict=True) if p.symbol == "m")
    )
    found = restored(feasible, start)
    assert found.after == 0 and found.before > 1e-3
    mass = sum(x for x, p in zip(found.x, arm.layout, strict=True) if p.symbol == "m")
    assert mass == pytest.approx(total, rel=1e-11)
    assert distance(feasible, found.x, start) < 2 * distance(
        feasible_set(arm), restored(feasible_set(arm), start).x, start
    )


def test_constraints_without_a_common_point_leave_the_unknowns_and_say_so(arm: dynid.Robot) -> None:
    feasible = feasible_set(arm, ["full", Mass(upper=-1.0)])
    found = restored(feasible, arm.parameters)
    assert found.after == found.before > 1
    np.testing.assert_array_equal(found.x, arm.parameters)


def shifted(monkeypatch: pytest.MonkeyPatch, robot: dynid.Robot, name: str, by: float) -> list[Array]:
    """A solver that ends outside of the cone of one body by so much of its unit, and the points where it ended."""
    solve, points = ConeProgram.solve, list[Array]()

    def ended(self: ConeProgram, solver: str = "clarabel", *, tolerance: float = 1e-9) -> ConeSolution:
        found = solve(self, solver, tolerance=tolerance)
        x = np.array(found.x)
        first = robot.parameter_names.index(f"m_{name}")
        root = unit_root(robot, name)
        inverse = np.linalg.inv(root)
        sizes, vectors = np.linalg.eigh(inverse @ inertia_to_pseudo(x[first : first + 10]) @ inverse)
        sizes[0] = MARGIN - by
        x[first : first + 10] = inertia_from_pseudo(root @ (vectors * sizes) @ vectors.T @ root)
        points.append(x[: len(robot.layout)])
        return replace(found, x=x)

    monkeypatch.setattr(ConeProgram, "solve", ended)
    return points


def rows(robot: dynid.Robot) -> tuple[Array, Array]:
    """Regressor rows and noisy torques that ask for a third link that is not physically consistent."""
    W = dynid.regressor(robot, *random_states(robot, 60, 0)).reshape(-1, len(robot.layout))
    return W, W @ flattened(robot, "link3", -0.02)


def test_a_solve_that_ends_outside_is_brought_inside_and_its_cost_is_stated(
    arm: dynid.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken by 1.7e-7 of its unit: inside afterwards, the cost that of the new point, and a note says what it cost."""
    R, z = rows(arm)
    feasible = feasible_set(arm)
    plain = fit(feasible, R, z, arm.parameters, weight=1e-6)
    assert plain.inside and outside(feasible, plain.parameters) == 0 and not boundary_notes(plain)
    points = shifted(monkeypatch, arm, "link3", SMALL)
    found: Fit = fit(feasible, R, z, arm.parameters, weight=1e-6)
    assert found.outside == pytest.approx(SMALL, rel=1e-3)
    assert found.inside and outside(feasible, found.parameters) == 0
    np.testing.assert_array_equal(found.parameters, found.solution.x[: feasible.size])
    cost = 0.5 * float(np.sum((R @ found.parameters - z) ** 2))
    assert found.cost == pytest.approx(cost, rel=1e-12)
    assert distance(feasible, found.parameters, points[-1]) == pytest.approx(SMALL, rel=1e-3)
    assert found.restoring == pytest.approx(cost - 0.5 * float(np.sum((R @ points[-1] - z) ** 2)), rel=1e-6)
    (note,) = boundary_notes(found)
    assert "1.7e-07" in note and f"{2 * found.restoring:.2g}" in note
    assert not physical_violations(arm, found.parameters)


@pytest.mark.parametrize(("smallest", "fine"), [(MARGIN - SMALL, True), (-SMALL, False)], ids=["margin", "below zero"])
def test_verdict_audit_export_and_inertia_judge_a_body_alike(
    arm: dynid.Robot, smallest: float, fine: bool, tmp_path: Path
) -> None:
    """A body short of the margin is consistent, and none of them says a word; one below zero is named by every one."""
    pi = flattened(arm, "link3", smallest)
    first = arm.parameter_names.index("m_link3")
    laws = inertia_violations(pi[first : first + 10])
    assert (not laws) == fine
    robot = arm.with_parameters(pi)
    audit = dynid.assessment.audit(robot, poses=10, seconds=0.01)
    assert audit.links == ({} if fine else {"link3": laws})
    recording = synthetic_recording(arm, seed=0)
    estimate = dynid.identify(arm, recording, "feasible")
    given = replace(estimate, standard=pi, beta=estimate.base.values(pi))
    check = check_consistency(Evidence(given))
    assert (check.result == "passed") == fine
    if fine:
        assert not any("consistent" in words for words in dynid.export.write(given, tmp_path / "arm.urdf"))
        return
    assert laws[0] in check.words
    for name in ("arm.urdf", "arm.xml"):
        with expect_error(ModelError, "allow_infeasible", code="untrusted") as told:
            dynid.export.write(given, tmp_path / name)
        assert laws[0] in str(told.value)


@pytest.mark.parametrize("symbol", ["Ia", "fv"])
def test_coupled_drives_are_judged_together(arm: dynid.Robot, symbol: str) -> None:
    """The coupling of the wrist has either sign, up to the geometric mean of both joints, as in the cone program."""
    pi = np.array(arm.parameters)
    own = [arm.parameter_names.index(f"{symbol}_joint{i}") for i in (5, 6)]
    cross = arm.parameter_names.index(f"{symbol}_motor6")
    pi[own] = 4.0, 9.0
    for value, fine in ((5.99, True), (-5.99, True), (6.01, False), (-6.01, False)):
        pi[cross] = value
        found = drive_violations(arm, pi)
        assert (not found) == fine, value
        labels = feasible_set(arm).violations(pi, 1e-9)
        assert any("together positive semidefinite" in words for words in labels) != fine
    with expect_error(ModelError, "allow_infeasible", "untrusted"):
        refuse_infeasible(arm.with_parameters(pi), allow=False)
