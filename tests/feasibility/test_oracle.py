"""Random problems: fits against two other solvers on the textbook's matrices, and verdicts against the truth.

Robots have one to four joints, branched or not, revolute and prismatic, with and without drives. What is true is known
by construction: a body of positive density is consistent, and no feasible robot has negative energy or friction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import dynid
from dynid.feasibility.constraints import Constraint, Inertia, Signs
from dynid.feasibility.fit import fit
from dynid.feasibility.queries import FeasibilityTest, is_feasible
from dynid.feasibility.sets import feasible_set
from dynid.parameters.base import BaseParameters
from tests.support import textbook
from tests.support.feasible_robots import random_bodies, robot_and_base
from tests.support.random_robots import random_motion
from tests.support.textbook import Array, best, bodies, laws, triangle

SEEDS = st.integers(0, 2**20)
NOTIONS = st.sampled_from(["full", "semi"])


def stable(examples: int) -> Any:
    """The same examples every time, and a failing one as it is: all of it follows from small numbers."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, phases=[Phase.generate], print_blob=False
    )


ROBOTS = st.tuples(st.integers(0, 400), st.integers(1, 4))


def compare_fit(
    robot: dynid.Robot, base: BaseParameters, seed: int, notion: str, solvers: tuple[str, ...], outside: float = 2e-8
) -> None:
    """Our fit of a random problem against the first two of the other solvers that solve it.

    They break down on a few problems in a hundred, ours must not; one of them is enough there.
    """
    rng = np.random.default_rng(seed)
    # Base columns of very different strength, more or fewer rows than base parameters, noise from none to all.
    rows = int(rng.integers(max(1, base.count - 2), base.count + 6))
    R = (rng.normal(size=(rows, base.count)) * 10.0 ** rng.uniform(-1, 1, base.count)) @ base.matrix
    truth = random_bodies(robot, rng, 0.05)
    z = R @ truth + 10.0 ** rng.uniform(-3, 1) * rng.normal(size=rows)
    weight, margin, prior = float(rng.choice([1e-6, 1e-3, 1.0])), float(rng.choice([1e-6, 1e-4])), robot.parameters
    possible = feasible_set(robot, [Inertia(notion, margin=margin), Signs()])  # type: ignore[arg-type]
    found = fit(possible, R, z, prior, weight=weight)
    scale = possible.scale
    assert found.cost == pytest.approx(0.5 * np.sum((R @ found.parameters - z) ** 2), abs=1e-12)
    tie = 0.5 * weight * np.sum(((found.parameters - prior) / scale) ** 2)
    ours, inside = found.cost + tie, textbook.slack(robot, found.parameters, notion, margin)
    compared = 0
    for solver in solvers:
        u = cp.Variable(len(prior))
        cost = 0.5 * cp.sum_squares(R @ cp.multiply(scale, u) - z) + 0.5 * weight * cp.sum_squares(u - prior / scale)
        problem = cp.Problem(cp.Minimize(cost), laws(robot, cp.multiply(scale, u), notion, margin))
        theirs = best(problem, solver)
        if np.isnan(theirs):
            continue
        assert abs(ours - theirs) <= 1e-6 * max(1.0, abs(theirs)), (solver, ours, theirs)
        other = min(0.0, textbook.slack(robot, scale * u.value, notion, margin))
        # A solver's residual is relative to the size of the unknowns: Clarabel stops at 1e-8 of them.
        assert inside >= other - outside * max(1.0, np.abs(u.value).max()), (solver, inside, other)
        compared += 1
        if compared == 2:
            return
    assert compared == 1, "all other solvers failed"


@pytest.mark.slow
@stable(170)
@given(st.tuples(st.integers(0, 400), st.integers(1, 3)), SEEDS, NOTIONS)
def test_fits_agree_with_two_other_solvers(made: tuple[int, int], seed: int, notion: str) -> None:
    compare_fit(*robot_and_base(*made), seed, notion, ("CVXOPT", "SCS", "CLARABEL"))


@pytest.mark.slow
@stable(30)
@given(SEEDS, SEEDS, NOTIONS)
def test_fits_of_four_links_agree(robot: int, seed: int, notion: str) -> None:
    compare_fit(*robot_and_base(robot % 100, 4), seed, notion, ("CVXOPT", "CLARABEL", "SCS"))


@pytest.mark.slow
@stable(150)
@given(SEEDS, SEEDS, st.integers(4, 7), NOTIONS)
def test_fits_of_many_links_agree(robot: int, seed: int, joints: int, notion: str) -> None:
    compare_fit(*robot_and_base(robot % 100, joints), seed, notion, ("CVXOPT", "CLARABEL", "SCS"))


@dataclass(frozen=True)
class Query:
    """Base values with everything that is needed to check a verdict on them."""

    robot: dynid.Robot
    base: BaseParameters
    notion: str
    margin: float

    @property
    def constraints(self) -> list[Constraint]:
        return [Inertia(self.notion, margin=self.margin), Signs()]  # type: ignore[arg-type, list-item]

    def ask(self, beta: Array, boundary: bool = False) -> FeasibilityTest:
        verdict = is_feasible(self.base, beta, self.constraints)
        if not (boundary and verdict.status == "undecided"):
            self.check(verdict, beta)
        return verdict

    def slack(self, pi: Array) -> float:
        return textbook.slack(self.robot, pi, self.notion, self.margin)

    def check(self, verdict: FeasibilityTest, beta: Array) -> None:
        """The witness of "feasible", the proof of "infeasible", and "undecided" only where it may be."""
        if verdict.status == "feasible":
            size = max(1.0, float(np.abs(verdict.parameters).max()))
            np.testing.assert_allclose(self.base.matrix @ verdict.parameters, beta, atol=1e-10 * size, rtol=0)
            assert self.slack(verdict.parameters) > 0
            assert verdict.certificate is None
        elif verdict.status == "infeasible":
            self.prove(verdict, beta)
        else:
            assert abs(verdict.margin) <= 1.01 * verdict.tolerance, verdict.summary()

    def prove(self, verdict: FeasibilityTest, beta: Array) -> None:
        """Add up the multipliers on the textbook's matrices."""
        assert verdict.certificate is not None
        assert verdict.margin < -verdict.tolerance
        multipliers = list(verdict.certificate.multipliers)
        slope, constant = np.zeros(len(self.robot.layout)), 0.0
        matrices = textbook.maps(self.notion)
        if self.notion == "semi":  # ours has mass first, the thesis inertia first
            swap = [3, 4, 5, 0, 1, 2]
            matrices = matrices[:, swap][:, :, swap]
            matrices[:, :3, 3:] *= -1
            matrices[:, 3:, :3] *= -1
        for first, unit in zip(bodies(self.robot), textbook.units(self.robot, self.notion), strict=True):
            Z = triangle(multipliers.pop(0))
            assert np.linalg.eigvalsh(Z)[0] >= -1e-12 * np.linalg.norm(Z)
            slope[first : first + 10] += np.einsum("kij,ij->k", matrices, Z)
            diagonal = np.diag(unit)[[3, 4, 5, 0, 1, 2] if self.notion == "semi" else [0, 1, 2, 3]]
            constant -= self.margin * float(diagonal @ np.diag(Z))
        for i in textbook.signed(self.robot):
            (z,) = multipliers.pop(0)
            assert z >= 0
            slope[i] += z
        assert not multipliers
        # Whatever the dependent parameters, the sum is the same, and negative: no feasible robot has that.
        pi = self.base.join(beta)
        value = constant + slope @ pi
        assert value < 0
        scale = feasible_set(self.robot, self.constraints).scale
        free = np.linalg.svd(self.base.matrix * scale)[2][self.base.count :]
        left = np.abs(free.T @ (free @ (slope * scale))).sum()
        size = max(1.0, np.abs(np.linalg.pinv(self.base.matrix * scale) @ beta).max())
        assert left * 90 * size < -value, (left, value)


@stable(80)
@given(ROBOTS, SEEDS, NOTIONS, st.sampled_from([0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9]), st.sampled_from([0.0, 1e-6]))
def test_possible_bodies_are_never_called_infeasible(
    made: tuple[int, int], seed: int, notion: str, thinnest: float, margin: float
) -> None:
    """Clouds, plates, rods and points: feasible wherever the bodies at hand lie clearly inside."""
    query = Query(*robot_and_base(*made), notion, margin)
    pi = random_bodies(query.robot, np.random.default_rng(seed), thinnest)
    inside = query.slack(pi)
    verdict = query.ask(query.base.values(pi))
    if inside >= 0:
        assert verdict.status != "infeasible"
    if inside > 1.1 * verdict.tolerance:
        assert verdict.status == "feasible"
        # No cap below the bodies at hand, and none above one unit.
        assert verdict.margin >= min(inside, 1.0) - 1e-6


def negative_friction(query: Query, rng: np.random.Generator, amount: float) -> Array | None:
    """Base values of a feasible robot, but for an identifiable drive parameter below zero."""
    base, robot = query.base, query.robot
    alone = [i for i in textbook.signed(robot) if base.classes[robot.parameter_names[i]] == "identifiable"]
    if not alone:
        return None
    pi = random_bodies(robot, rng, 0.05)
    pi[rng.choice(alone)] = -amount
    return base.values(pi)


def negative_energy(query: Query, rng: np.random.Generator, amount: float) -> Array:
    """Base values with which one posture and one motion have kinetic energy below zero.

    2 T = v'M(q)v is linear in the parameters and, being visible, a combination w of base parameters alone.
    """
    base, robot = query.base, query.robot
    q, v, _ = random_motion(robot, int(rng.integers(2**31)), 1)
    still = np.zeros_like(v)
    inertial = dynid.regressor(robot, q, still, v) - dynid.regressor(robot, q, still, still)
    row = v[0] @ inertial[0]
    w = np.linalg.lstsq(base.matrix.T, row, rcond=None)[0]
    np.testing.assert_allclose(base.matrix.T @ w, row, atol=1e-8 * np.abs(row).max())
    pi = random_bodies(robot, rng, 0.05)
    beta, energy = base.values(pi), row @ pi
    return beta - (1 + amount) * energy * w / (w @ w)


@stable(60)
@given(ROBOTS, SEEDS, NOTIONS, st.sampled_from([1.0, 1e-1, 1e-2, 1e-4, 1e-6]))
def test_negative_friction_is_infeasible(made: tuple[int, int], seed: int, notion: str, amount: float) -> None:
    query = Query(*robot_and_base(*made), notion, 1e-6)
    beta = negative_friction(query, np.random.default_rng(seed), amount)
    if beta is not None:
        verdict = query.ask(beta)
        assert verdict.status == "infeasible"
        assert verdict.margin <= -amount + 1e-7
        assert "not negative" in verdict.reasons[0]


@stable(80)
@given(ROBOTS, SEEDS, NOTIONS, st.sampled_from([10.0, 1.0, 1e-1, 1e-3]))
def test_negative_energy_is_infeasible(made: tuple[int, int], seed: int, notion: str, amount: float) -> None:
    query = Query(*robot_and_base(*made), notion, 0.0)
    beta = negative_energy(query, np.random.default_rng(seed), amount)
    assert query.ask(beta).status == "infeasible"


@pytest.mark.slow
@stable(15)
@given(ROBOTS, SEEDS, NOTIONS)
def test_verdicts_change_once_along_a_line(made: tuple[int, int], seed: int, notion: str) -> None:
    """From a feasible robot to an infeasible one: feasible, a narrow band of undecided, infeasible (a convex set).

    The plane that proves the far end infeasible is an outer bound of where the line leaves the set.
    """
    query = Query(*robot_and_base(*made), notion, 0.0)
    rng = np.random.default_rng(seed)
    inside = query.base.values(random_bodies(query.robot, rng, 0.05))
    far = negative_energy(query, rng, 1.0)
    low, high = 0.0, 1.0
    assert query.ask(inside).status == "feasible"
    proof = query.ask(far).certificate
    assert proof is not None
    while high - low > 1e-3:
        middle = (low + high) / 2
        status = query.ask(inside + middle * (far - inside), boundary=True).status
        low, high = (middle, high) if status == "feasible" else (low, middle)
    for share in (0.2, 0.9):
        assert query.ask(inside + share * low * (far - inside)).status == "feasible"
    for share in (1e-2, 0.5):
        at = high + share * (1 - high)
        assert query.ask(inside + at * (far - inside), boundary=share < 0.1).status != "feasible"
    # The set ends no later than the plane of the proof says, but for bodies a hundred times too heavy.
    values = [plane(query, proof.multipliers, beta) for beta in (inside, far)]
    assert values[0] > 0 > values[1]
    assert low <= values[0] / (values[0] - values[1]) + 1e-3


def plane(query: Query, multipliers: tuple[Array, ...], beta: Array) -> float:
    """The sum of products of a certificate at base values; not negative for feasible ones."""
    blocks = feasible_set(query.robot, query.constraints).blocks
    pi = query.base.join(beta)
    return sum(float(z @ b.value(pi)) for b, z in zip(blocks, multipliers, strict=True))
