"""Random problems: fits against two other solvers on the textbook's matrices, and verdicts against the truth.

Robots have one to four joints, branched or not, revolute and prismatic, with and without drives. What is true is known
by construction: a body of positive density is possible, and no possible robot has negative energy or friction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import textbook
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_robots import random_motion, random_robot, random_rotation
from textbook import Array, best, bodies, laws, triangle

import dynid
from dynid.feasibility.constraints import Constraint, Inertia, Signs
from dynid.feasibility.fit import fit
from dynid.feasibility.possible import possible_robots
from dynid.feasibility.questions import Verdict, is_feasible, nearest_feasible
from dynid.identify.base import BaseParameters, base_parameters

SEEDS = st.integers(0, 2**20)
NOTIONS = st.sampled_from(["full", "semi"])
DRIVES = ("Ia", "fv", "fc", "off")


def stable(examples: int) -> Any:
    """The same examples every time, and a failing one as it is: all of it follows from small numbers."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, phases=[Phase.generate], print_blob=False
    )


@cache
def machine(seed: int, joints: int) -> tuple[dynid.Robot, BaseParameters]:
    """A random robot with some of the drive terms on every joint, and its base parameters."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, joints)
    chosen = [s for s in DRIVES if rng.random() < 0.6]
    robot = robot.with_terms(
        *(robot.joint_term(i, s, float(rng.uniform(0.05, 0.5))) for i in range(robot.n) for s in chosen)
    )
    return robot, base_parameters(robot)


ROBOTS = st.tuples(st.integers(0, 400), st.integers(1, 4))


def compare_fit(robot: dynid.Robot, base: BaseParameters, seed: int, notion: str, solvers: tuple[str, ...]) -> None:
    """Our fit of a random problem against the first two of the other solvers that solve it."""
    rng = np.random.default_rng(seed)
    # Base columns of very different strength, more or fewer rows than base parameters, noise from none to all.
    rows = int(rng.integers(max(1, base.count - 2), base.count + 6))
    R = (rng.normal(size=(rows, base.count)) * 10.0 ** rng.uniform(-1, 1, base.count)) @ base.matrix
    truth = random_bodies(robot, rng, 0.05)
    z = R @ truth + 10.0 ** rng.uniform(-3, 1) * rng.normal(size=rows)
    weight, margin, prior = float(rng.choice([1e-6, 1e-3, 1.0])), float(rng.choice([1e-6, 1e-4])), robot.parameters
    possible = possible_robots(robot, [Inertia(notion, margin=margin), Signs()])  # type: ignore[arg-type]
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
        outside = min(0.0, textbook.slack(robot, scale * u.value, notion, margin))
        assert inside >= outside - 1e-9, (solver, inside, outside)
        compared += 1
        if compared == 2:
            return
    raise AssertionError("the other solvers failed")


@stable(170)
@given(st.tuples(st.integers(0, 400), st.integers(1, 3)), SEEDS, NOTIONS)
def test_fits_agree_with_two_other_solvers(made: tuple[int, int], seed: int, notion: str) -> None:
    compare_fit(*machine(*made), seed, notion, ("CVXOPT", "SCS", "CLARABEL"))


@stable(30)
@given(SEEDS, SEEDS, NOTIONS)
def test_fits_of_four_links_agree(robot: int, seed: int, notion: str) -> None:
    compare_fit(*machine(robot % 100, 4), seed, notion, ("CVXOPT", "CLARABEL", "SCS"))


@pytest.mark.slow
@stable(150)
@given(SEEDS, SEEDS, st.integers(4, 7), NOTIONS)
def test_fits_of_many_links_agree(robot: int, seed: int, joints: int, notion: str) -> None:
    compare_fit(*machine(robot % 100, joints), seed, notion, ("CVXOPT", "CLARABEL", "SCS"))


def random_bodies(robot: dynid.Robot, rng: np.random.Generator, thinnest: float) -> Array:
    """A possible standard vector: every body a cloud of mass, down to `thinnest` (m) in one, two or three directions.

    That makes plates, rods and points. Drive parameters that cannot be negative are positive, some of them tiny.
    """
    pi = np.array(robot.parameters)
    for first in bodies(robot):
        mass, com = 10.0 ** rng.uniform(-1, 1), rng.uniform(-0.3, 0.3, 3)
        spread = rng.uniform(0.05, 0.3, 3)
        spread[: rng.integers(0, 4)] = thinnest
        root = random_rotation(rng) * spread
        second = root @ root.T
        pi[first : first + 10] = dynid.inertia_from_com(mass, com, mass * (np.trace(second) * np.eye(3) - second))
    for i in textbook.signed(robot):
        pi[i] = rng.uniform(0.05, 2.0) if rng.random() < 0.8 else thinnest
    return pi


@dataclass(frozen=True)
class Question:
    """Base values with everything that is needed to check a verdict on them."""

    robot: dynid.Robot
    base: BaseParameters
    notion: str
    margin: float

    @property
    def constraints(self) -> list[Constraint]:
        return [Inertia(self.notion, margin=self.margin), Signs()]  # type: ignore[arg-type, list-item]

    def ask(self, beta: Array, **options: Any) -> Verdict:
        verdict = is_feasible(self.base, beta, self.constraints, **options)
        self.check(verdict, beta)
        return verdict

    def slack(self, pi: Array) -> float:
        return textbook.slack(self.robot, pi, self.notion, self.margin)

    def check(self, verdict: Verdict, beta: Array) -> None:
        """The witness of "feasible", the proof of "infeasible", and "undecided" only where it may be."""
        if verdict.answer == "feasible":
            size = max(1.0, float(np.abs(verdict.parameters).max()))
            np.testing.assert_allclose(self.base.matrix @ verdict.parameters, beta, atol=1e-10 * size, rtol=0)
            assert self.slack(verdict.parameters) > 0
            assert verdict.certificate is None
        elif verdict.answer == "infeasible":
            self.prove(verdict, beta)
        else:
            assert abs(verdict.margin) <= 1.01 * verdict.tolerance, verdict.summary()

    def prove(self, verdict: Verdict, beta: Array) -> None:
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
        # Whatever the dependent parameters, the sum is the same, and negative: no possible robot has that.
        pi = self.base.join(beta)
        value = constant + slope @ pi
        assert value < 0
        scale = possible_robots(self.robot, self.constraints).scale
        free = np.linalg.svd(self.base.matrix * scale)[2][self.base.count :]
        left = np.abs(free @ (slope * scale)).sum() if len(free) else 0.0
        assert left * 1e4 < -value, (left, value)


@stable(80)
@given(ROBOTS, SEEDS, NOTIONS, st.sampled_from([0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9]), st.sampled_from([0.0, 1e-6]))
def test_possible_bodies_are_never_called_infeasible(
    made: tuple[int, int], seed: int, notion: str, thinnest: float, margin: float
) -> None:
    """Clouds, plates, rods and points: feasible wherever the bodies at hand lie clearly inside."""
    question = Question(*machine(*made), notion, margin)
    pi = random_bodies(question.robot, np.random.default_rng(seed), thinnest)
    inside = question.slack(pi)
    verdict = question.ask(question.base.values(pi))
    if inside >= 0:
        assert verdict.answer != "infeasible"
    if inside > 1.1 * verdict.tolerance:
        assert verdict.answer == "feasible"
        # No cap below the bodies at hand, and none above one unit.
        assert verdict.margin >= min(inside, 1.0) - 1e-6


def negative_friction(question: Question, rng: np.random.Generator, amount: float) -> Array | None:
    """Base values of a possible robot, but for an identifiable drive parameter below zero."""
    base, robot = question.base, question.robot
    alone = [i for i in textbook.signed(robot) if base.classes[robot.parameter_names[i]] == "identifiable"]
    if not alone:
        return None
    pi = random_bodies(robot, rng, 0.05)
    pi[rng.choice(alone)] = -amount
    return base.values(pi)


def negative_energy(question: Question, rng: np.random.Generator, amount: float) -> Array:
    """Base values with which one posture and one motion have kinetic energy below zero.

    2 T = v'M(q)v is linear in the parameters and, being visible, a combination w of base parameters alone.
    """
    base, robot = question.base, question.robot
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
def test_negative_friction_is_infeasible(
    made: tuple[int, int], seed: int, notion: str, amount: float
) -> None:
    question = Question(*machine(*made), notion, 1e-6)
    beta = negative_friction(question, np.random.default_rng(seed), amount)
    if beta is not None:
        verdict = question.ask(beta)
        assert verdict.answer == "infeasible"
        assert verdict.margin <= -amount + 1e-8
        assert "not negative" in verdict.reasons[0]


@stable(80)
@given(ROBOTS, SEEDS, NOTIONS, st.sampled_from([10.0, 1.0, 1e-1, 1e-3]))
def test_negative_energy_is_infeasible(
    made: tuple[int, int], seed: int, notion: str, amount: float
) -> None:
    question = Question(*machine(*made), notion, 0.0)
    beta = negative_energy(question, np.random.default_rng(seed), amount)
    assert question.ask(beta).answer == "infeasible"


@stable(40)
@given(ROBOTS, SEEDS, NOTIONS, st.sampled_from([1e-1, 1e-2, 1e-3]))
def test_both_sides_of_the_boundary(
    made: tuple[int, int], seed: int, notion: str, step: float
) -> None:
    """Beyond the nearest possible point there is nothing possible; towards a possible robot there is."""
    question = Question(*machine(*made), notion, 0.0)
    rng = np.random.default_rng(seed)
    inside = question.base.values(random_bodies(question.robot, rng, 0.05))
    far = negative_energy(question, rng, 1.0)
    edge = nearest_feasible(question.base, far, question.constraints).beta
    away = (far - edge) / np.linalg.norm(far - edge)
    assert question.ask(edge + step * away).answer != "feasible"
    assert question.ask((1 - step) * edge + step * inside).answer != "infeasible"
    # Twice the step is twice as infeasible, as the set is convex.
    assert question.ask(edge + 2 * step * away).margin <= question.ask(edge + step * away).margin + 1e-8
    assert question.ask(edge).answer != "infeasible" or step < 0
