"""Constraints that cannot hold together: the error names few of them, and every one of those is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid import DynidError
from dynid.feasibility.conflict import conflict, explain_conflict
from dynid.feasibility.constraints import (
    BaseBounds,
    Bounds,
    CenterOfMass,
    Ellipsoids,
    Fixed,
    Inertia,
    Linear,
    Mass,
    Mirrored,
    Signs,
)
from dynid.feasibility.fit import fit
from dynid.feasibility.queries import is_feasible, nearest_feasible, standard_parameters
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.parameters.base import base_parameters
from tests.support.errors import expect_error
from tests.support.feasible_robots import random_bodies
from tests.support.random_robots import random_robot
from tests.support.synthetic import arm

ARM = arm()
L1, L2, L3 = (ARM.links[i].name for i in ARM.parameter_links)
EYE = np.eye(len(ARM.layout))


def solvable(possible: FeasibleSet, drop: str | None, keep: list[str]) -> bool:
    """Whether the named constraints but one can be satisfied, as the solver of a program says."""
    blocks = [b for b in possible.blocks if b.label in keep and b.label != drop]
    program = FeasibleSet(possible.robot, tuple(blocks), possible.extra).program()
    size = possible.size
    program.minimise_squares(np.diag(1 / possible.scale[:size]), possible.robot.parameters / possible.scale[:size])
    return program.solve().status == "solved"


# Constraints that contradict each other, and all that must be named.
CASES: dict[str, tuple[list[Any], set[str]]] = {
    "weighed parts against the whole": (
        ["full", Fixed({f"m_{L1}": 4.0, f"m_{L2}": 3.0}), Mass(upper=6.5)],
        {f"m_{L1} = 4", f"m_{L2} = 3", "total mass <= 6.5", f"{L3}: pseudo-inertia positive definite"},
    ),
    "a group against the whole": (
        [Mass(5.0, links=[L1, L2]), Mass(upper=4.0, links=[L1]), Mass(upper=0.5, links=[L2]), Mass(1.0, 50.0)],
        {f"mass of {L1} and {L2} >= 5", f"mass of {L1} <= 4", f"mass of {L2} <= 0.5"},
    ),
    "box against a known moment": (
        ["full", CenterOfMass(L2, [-0.1] * 3, [0.1] * 3), Fixed({f"mx_{L2}": 0.5}), Bounds({f"m_{L2}": (None, 2.0)})],
        {f"{L2}: centre of mass in its box", f"mx_{L2} = 0.5", f"m_{L2} <= 2"},
    ),
    "sign against a bound": (
        ["semi", Bounds({"fv_joint2": (None, -0.1), "fc_*": (0.1, 3.0)})],
        {"fv_joint2 not negative", "fv_joint2 <= -0.1"},
    ),
    "no inertia left": (
        ["full", Bounds({f"Izz_{L3}": (None, 1e-4)}), Fixed({f"mx_{L3}": 0.1, f"m_{L3}": 1.0})],
        {f"Izz_{L3} <= 0.0001", f"mx_{L3} = 0.1", f"m_{L3} = 1", f"{L3}: pseudo-inertia positive definite"},
    ),
    "triangle inequality": (
        ["full", Fixed({f"Ixx_{L1}": 0.1, f"Iyy_{L1}": 0.1}), Bounds({f"Izz_{L1}": (0.3, None)})],
        {f"Ixx_{L1} = 0.1", f"Iyy_{L1} = 0.1", f"Izz_{L1} >= 0.3", f"{L1}: pseudo-inertia positive definite"},
    ),
    "mirror image of another weight": (
        ["full", Mirrored(L2, L1), Fixed({f"m_{L1}": 3.0}), Mass(1.0, 2.0, L2)],
        {f"{L2}: mirror image of {L1}", f"m_{L1} = 3", f"mass of {L2} <= 2"},
    ),
    "two sums": (
        [
            Linear({"fv_joint1": 1.0, "fv_joint2": 1.0}, 3.0, label="sum"),
            Linear({"fv_joint1": 1.0, "fv_joint2": 2.0}, upper=2.0, label="other sum"),
            Signs(),
        ],
        {"sum >= 3", "other sum <= 2", "fv_joint2 not negative"},
    ),
    "mass outside its ellipsoid": (
        ["full", Ellipsoids(L3, [np.diag([-1.0, -1.0, -1.0, 0.01])]), Fixed({f"mx_{L3}": 0.5, f"m_{L3}": 1.0})],
        {
            f"{L3}: mass inside its ellipsoid",
            f"mx_{L3} = 0.5",
            f"m_{L3} = 1",
            f"{L3}: pseudo-inertia positive definite",
        },
    ),
    "equalities alone": (
        [
            Fixed({"fv_joint1": 1.0}),
            Fixed({"fv_joint2": 1.0}),
            Linear({"fv_joint1": 1, "fv_joint2": 1}, 3.0, 3.0, "sum"),
        ],
        {"fv_joint1 = 1", "fv_joint2 = 1", "sum = 3"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_conflicts_are_small_and_irreducible(name: str) -> None:
    rules, expected = CASES[name]
    possible = feasible_set(ARM, rules)
    found = conflict(possible)
    assert set(found) == expected
    assert len(found) == len(expected)
    assert not solvable(possible, None, found)
    for label in found:
        assert solvable(possible, label, found), f"still unsolvable without '{label}'"


@pytest.mark.parametrize("name", list(CASES)[:4])
def test_every_question_tells_of_the_conflict(name: str) -> None:
    """Not "the solver failed": which constraints, in the error of whatever was asked."""
    rules, expected = CASES[name]
    base = base_parameters(ARM)
    beta = base.values()
    asked: list[Any] = [
        lambda: explain_conflict(feasible_set(ARM, rules)),
        lambda: fit(feasible_set(ARM, rules), EYE, np.array(ARM.parameters), ARM.parameters),
        lambda: nearest_feasible(base, beta, rules),
        lambda: standard_parameters(base, beta, rules),
    ]
    for query in asked:
        with expect_error(DynidError, "constraints", code="infeasible") as caught:
            query()
        for label in expected:
            assert label in str(caught.value)


def test_a_verdict_on_contradictory_constraints() -> None:
    """Contradictory equalities are told as such; other conflicts make every value infeasible, with the proof."""
    base = base_parameters(ARM)
    with expect_error(DynidError, "constraints", code="infeasible"):
        is_feasible(base, base.values(), CASES["equalities alone"][0])
    found = is_feasible(base, base.values(), CASES["sign against a bound"][0])
    assert found.status == "infeasible"
    assert "fv_joint2 <= -0.1" in found.reasons


CONSISTENT: list[list[Any]] = [
    ["full"],
    ["semi", Mass(6.0, 6.0)],
    ["full", Fixed({f"m_{L1}": 4.0, f"m_{L2}": 3.0}), Mass(upper=7.1)],
    ["full", CenterOfMass(L2, [-0.1] * 3, [0.1] * 3), Fixed({f"mx_{L2}": 0.5})],
    ["full", Bounds({"fv_*": (0.0, 0.0)})],
    ["full", Mirrored(L2, L1), Mirrored(L1, L2)],
    ["full", Ellipsoids(L3, [np.diag([-1.0, -1.0, -1.0, 0.01]), np.diag([-1.0, -1.0, -9.0, 0.04])]), Mass(1, 1, L3)],
    ["full", Mass(1e4, 1e6)],
    ["full", Mass(1e-4, 2e-4)],
    ["semi", Fixed({f"Izz_{L3}": 1e-6})],
]


@pytest.mark.parametrize("rules", CONSISTENT)
def test_consistent_constraints_give_no_conflict(rules: list[Any]) -> None:
    possible = feasible_set(ARM, rules)
    assert conflict(possible) == []
    explain_conflict(possible)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_around_a_possible_robot_never_conflict(seed: int) -> None:
    """Tight bounds on every standard and base parameter of a feasible robot, thin bodies included."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, 3, rotors=True)
    pi = random_bodies(robot, rng, 1e-2)
    base = base_parameters(robot)
    beta = base.values(pi)
    near = {n: (float(x) - 1e-3, float(x) + 1e-3) for n, x in zip(robot.parameter_names, pi, strict=True)}
    rules: list[Any] = [Inertia(margin=0.0), Signs(), Bounds(near), BaseBounds(base.matrix, beta - 1e-3, beta + 1e-3)]
    assert conflict(feasible_set(robot, rules)) == []
    # The same bounds a little off: that base parameter against the standard ones it is made of.
    reach = 1e-3 * np.abs(base.matrix[0]).sum() + 0.01
    rules[-1] = BaseBounds(base.matrix[:1], beta[:1] + reach, np.inf, base.names[:1])
    possible = feasible_set(robot, rules)
    found = conflict(possible)
    assert found[-1].startswith(base.names[0])
    # Bodies may stand in for bounds on their entries.
    assert 1 < len(found) <= np.count_nonzero(base.matrix[0]) + 1
    assert not solvable(possible, None, found)
    for label in found:
        assert solvable(possible, label, found), f"still unsolvable without '{label}'"


def test_conflicts_in_wild_units() -> None:
    """A robot of grams and millimetres: the conflict is as clear as on a large one."""
    rows = [
        {"a": 0.004, "inertia": {"mass": 2e-3, "com": [1e-3, 0, 0], "tensor": [1e-9, 0, 0, 2e-9, 0, 2e-9]}},
        {"a": 0.003, "inertia": {"mass": 1e-3, "com": [1e-3, 0, 0], "tensor": [1e-9, 0, 0, 2e-9, 0, 2e-9]}},
    ]
    robot = dynid.Robot.from_dh(rows, "modified", name="tiny")
    one, two = (robot.links[i].name for i in robot.parameter_links)
    assert conflict(feasible_set(robot, ["full", Mass(1e-3, 4e-3)])) == []
    rules = ["full", Fixed({f"m_{one}": 3e-3}), Mass(upper=2.9e-3)]
    expected = {f"m_{one} = 0.003", "total mass <= 0.0029", f"{two}: pseudo-inertia positive definite"}
    assert set(conflict(feasible_set(robot, rules))) == expected
    rules = ["full", Fixed({f"Ixx_{one}": 1e-9, f"Iyy_{one}": 1e-9, f"Izz_{one}": 3e-9})]
    assert len(conflict(feasible_set(robot, rules))) == 4
