"""Feasibility as polynomial inequalities: as printed, as the cone programs decide, and eliminated for planar robots."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
import dynid.robot
from dynid.errors import DataError, DynidError, NotApplicable, UnknownName
from dynid.feasibility import base_inequalities, feasibility_polynomials, feasible_set, is_feasible
from dynid.feasibility.constraints import Inertia, Notion, Signs
from dynid.inertia import inertia_from_pseudo
from dynid.parameters.base import BaseParameters, base_parameters
from tests.support.errors import expect_error

sp = pytest.importorskip("sympy")
Array = NDArray[np.float64]

# Sousa (2014), section 3.1.1; the second and third are times m^2, as the first.
PRINTED = (
    "Lxx m2 - ly2 m - lz2 m",
    "Lxx Lyy m2 - Lxx lx2 m - Lxx lz2 m - Lxy2 m2 - 2 Lxy lx ly m - Lyy ly2 m - Lyy lz2 m + lx2 lz2 + ly2 lz2 + lz4",
    "Lxx Lyy Lzz m2 - Lxx Lyy lx2 m - Lxx Lyy ly2 m - Lxx Lyz2 m2 - 2 Lxx Lyz ly lz m - Lxx Lzz lx2 m - Lxx Lzz lz2 m "
    "+ Lxx lx4 + Lxx lx2 ly2 + Lxx lx2 lz2 - Lxy2 Lzz m2 + Lxy2 lx2 m + Lxy2 ly2 m + 2 Lxy Lxz Lyz m2 "
    "+ 2 Lxy Lxz ly lz m + 2 Lxy Lyz lx lz m - 2 Lxy Lzz lx ly m + 2 Lxy lx3 ly + 2 Lxy lx ly3 + 2 Lxy lx ly lz2 "
    "- Lxz2 Lyy m2 + Lxz2 lx2 m + Lxz2 lz2 m - 2 Lxz Lyy lx lz m + 2 Lxz Lyz lx ly m + 2 Lxz lx3 lz "
    "+ 2 Lxz lx ly2 lz + 2 Lxz lx lz3 - Lyy Lzz ly2 m - Lyy Lzz lz2 m + Lyy lx2 ly2 + Lyy ly4 + Lyy ly2 lz2 "
    "+ Lyz2 ly2 m + Lyz2 lz2 m + 2 Lyz lx2 ly lz + 2 Lyz ly3 lz + 2 Lyz ly lz3 + Lzz lx2 lz2 + Lzz ly2 lz2 + Lzz lz4",
)


def printed(text: str) -> object:
    """A printed polynomial, in which products have no sign and powers are digits behind a letter."""
    names = {n: sp.Symbol(n, real=True) for n in ("m", "lx", "ly", "lz", "Lxx", "Lxy", "Lyy", "Lxz", "Lyz", "Lzz")}
    total, sign = sp.Integer(0), 1
    for word in text.replace("- ", "|- ").replace("+ ", "|+ ").split("|"):
        factors = word.split()
        sign = -1 if factors and factors[0] == "-" else 1
        term = sp.Integer(sign)
        for factor in (f for f in factors if f not in "+-"):
            name = factor.rstrip("0123456789")
            power = int(factor[len(name) :] or 1)
            term *= names[name] ** power if name else sp.Integer(factor)
        total += term if factors else 0
    return total


def planar(count: int) -> dynid.Robot:
    """Links of 0.7 m in a vertical plane, each turning about z, without drives."""
    out = np.eye(4)
    out[0, 3] = 0.7
    joints = tuple(
        dynid.robot.Joint(f"joint{i + 1}", "revolute", i, np.eye(4) if i == 0 else out, np.array([0.0, 0.0, 1.0]))
        for i in range(count)
    )
    body = np.array([1.0, 0.3, 0.05, 0.0, 0.1, 0.0, 0.3, 0.0, 0.0, 0.4])
    links = (dynid.robot.Link("link0", np.zeros(10)), *(dynid.robot.Link(f"link{i + 1}", body) for i in range(count)))
    return dynid.Robot("planar", links, joints, gravity=np.array([0.0, -9.81, 0.0]))


def test_polynomials_are_those_of_the_thesis() -> None:
    """With 3, 10 and 41 monomials, under the names of the thesis."""
    found = feasibility_polynomials(planar(1))
    assert list(found) == ["link1: mass", "link1: minor 1", "link1: minor 2", "link1: minor 3"]
    ours = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    theirs = ("m", "lx", "ly", "lz", "Lxx", "Lxy", "Lyy", "Lxz", "Lyz", "Lzz")
    names = {sp.Symbol(f"{a}_link1", real=True): sp.Symbol(b, real=True) for a, b in zip(ours, theirs, strict=True)}
    for k, (text, count) in enumerate(zip(PRINTED, (3, 10, 41), strict=True), start=1):
        polynomial = found[f"link1: minor {k}"].subs(names)
        assert sp.expand(polynomial - printed(text)) == 0
        assert len(sp.Add.make_args(polynomial)) == count


@pytest.mark.parametrize("notion", ["semi", "full"])
def test_polynomials_agree_with_the_matrix_inequalities(notion: Notion) -> None:
    """Random bodies on both sides of the boundary, and the signs of drives."""
    robot = dynid.load_robot("box2")
    found = feasibility_polynomials(robot, notion)
    functions = sp.lambdify(sp.symbols(robot.parameter_names, real=True), list(found.values()))
    feasible = feasible_set(robot, (Inertia(notion, margin=0.0), Signs()))
    rng, verdicts = np.random.default_rng(0), []
    for _ in range(400):
        pi = rng.uniform(-0.05, 1.0, len(robot.layout))
        for first in (i for i, p in enumerate(robot.layout) if p.symbol == "m"):
            root = rng.normal(size=(4, 4))
            pi[first : first + 10] = inertia_from_pseudo(root @ root.T - rng.exponential(0.1) * np.eye(4))
        slack = feasible.slack(pi)
        if abs(slack) > 1e-9:
            verdicts.append(slack > 0)
            assert (min(functions(*pi)) > 0) == verdicts[-1]
    assert 20 < sum(verdicts) < len(verdicts) - 20


def agreement(base: BaseParameters, points: int, share: float) -> tuple[int, int]:
    """Number of random base parameters that the cone program finds feasible and infeasible; the polynomials agree."""
    inequalities = base_inequalities(base)
    rng, count = np.random.default_rng(0), [0, 0]
    for _ in range(points):
        beta = base.values() * rng.uniform(1 - share, 1 + share, base.count) + 0.1 * rng.normal(size=base.count)
        test = is_feasible(base, beta, (Inertia("semi", margin=0.0), Signs()))
        if test.status != "undecided":
            assert (inequalities.slack(beta) > 0) == bool(test), beta
            count[bool(test)] += 1
    return count[1], count[0]


def test_two_links_have_the_inequalities_that_a_hand_finds() -> None:
    """Mass of the second link is between |l2|^2 / I2 and I1R / L^2, that of the first is free."""
    base = base_parameters(planar(2))
    (branch,) = base_inequalities(base).branches
    a, b, x, y = sp.symbols(("Izz_link1R", "Izz_link2", "mx_link2", "my_link2"), real=True)
    assert set(branch) == {a, b, sp.expand(a * b - sp.Rational(49, 100) * (x**2 + y**2))}
    feasible, infeasible = agreement(base, 100, 0.9)
    assert feasible > 20 and infeasible > 10


def test_base_inequalities_agree_with_the_cone_program() -> None:
    """Three links, and two with friction of the wrong sign now and then: every point away from the boundary."""
    for base, share in ((base_parameters(planar(3)), 0.7), (base_parameters(friction_arm()), 0.9)):
        feasible, infeasible = agreement(base, 60, share)
        assert feasible > 10 and infeasible > 10


def friction_arm() -> dynid.Robot:
    robot = dynid.load_robot("box2")
    pairs = zip(robot.layout, robot.parameters, strict=True)
    return robot.with_parameters([x if p.inertial else 0.3 for p, x in pairs])


def test_what_cannot_be_eliminated_is_refused() -> None:
    """A robot in space, frames at the far ends of links, coupled drives, and unknown words."""
    with expect_error(NotApplicable):
        base_inequalities(base_parameters(dynid.load_robot("puma560")))
    with expect_error(DynidError, code="not_converged"):
        base_inequalities(base_parameters(dynid.load_robot("twolink")))
    with expect_error(NotApplicable):
        feasibility_polynomials(dynid.load_robot("tx40"))
    with expect_error(UnknownName, "notion"):
        feasibility_polynomials(planar(1), "half")  # type: ignore[arg-type]
    with expect_error(DataError):
        base_inequalities(base_parameters(planar(1))).slack([1.0])
