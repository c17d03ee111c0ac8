"""Cone programs: every cone against a closed form or cvxpy, in any units, with duals that add up."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from dynid.errors import DynidError, UnknownName
from dynid.feasibility import cone
from dynid.feasibility.cone import Block, ConeProgram, ConeSolution, smat, svec, svec_indices
from tests.support.errors import expect_error
from tests.support.textbook import best, triangle

BOTH = pytest.mark.parametrize("solver", ["clarabel", "scs"])


def block(kind: str, matrix: Any, constant: Any, unit: Any = None) -> Block:
    matrix = sparse.csr_array(np.atleast_2d(np.asarray(matrix, dtype=float)))
    return Block(kind, matrix, np.asarray(constant, dtype=float), kind, unit)  # type: ignore[arg-type]


def symmetric(rng: np.random.Generator, n: int) -> Any:
    a = rng.normal(size=(n, n))
    return (a + a.T) / 2


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
def test_svec_keeps_the_inner_product_and_smat_undoes_it(size: int) -> None:
    rng = np.random.default_rng(size)
    a, b = symmetric(rng, size), symmetric(rng, size)
    assert svec(a) @ svec(b) == pytest.approx(np.trace(a @ b), abs=1e-12)
    np.testing.assert_allclose(smat(svec(a)), a, atol=1e-14)
    np.testing.assert_allclose(triangle(svec(a)), a, atol=1e-14)
    stack = np.stack([a, b])
    np.testing.assert_array_equal(svec(stack), [svec(a), svec(b)])
    rows, columns, weights = svec_indices(size)
    assert len(rows) == size * (size + 1) // 2
    assert np.all(rows <= columns)
    np.testing.assert_array_equal(weights, np.where(rows == columns, 1.0, np.sqrt(2)))


def test_slack_is_measured_in_the_unit_of_the_block() -> None:
    x = np.array([2.0, -3.0])
    assert block("zero", np.eye(2), [0, 0]).slack(x) == -3.0
    assert block("nonnegative", np.eye(2), [0, 4.0]).slack(x) == 1.0
    assert block("nonnegative", np.eye(2), [0, 4.0], np.array([4.0, 10.0])).slack(x) == pytest.approx(0.1)
    diagonal = svec(np.stack([np.diag([1.0, 0]), np.diag([0, 1.0])])).T
    assert block("psd", diagonal, np.zeros(3)).slack(x) == pytest.approx(-3.0)
    assert block("psd", diagonal, np.zeros(3), svec(np.diag([1.0, 30.0]))).slack(x) == pytest.approx(-0.1)
    with pytest.raises(AssertionError):
        block("second-order", np.eye(2), [0, 0]).slack(x)


def test_substituted_and_widened_blocks_have_the_same_values() -> None:
    rng = np.random.default_rng(1)
    b = block("nonnegative", rng.normal(size=(3, 5)), rng.normal(size=3), np.ones(3))
    offset, directions, y = rng.normal(size=5), rng.normal(size=(5, 2)), rng.normal(size=2)
    inner = b.substituted(offset, directions)
    np.testing.assert_allclose(inner.value(y), b.value(offset + directions @ y))
    assert (inner.label, inner.cone) == (b.label, b.cone)
    np.testing.assert_array_equal(b.widened(7).value(np.r_[np.arange(5.0), 9, 9]), b.value(np.arange(5.0)))
    # The last two columns are the block's own: they move behind four foreign unknowns.
    x = rng.normal(size=5)
    np.testing.assert_allclose(b.widened(9, 7, 2).value(np.r_[x[:3], [9, 9, 9, 9], x[3:]]), b.value(x))


@BOTH
def test_zero_cone(solver: str) -> None:
    """The point of a plane nearest to a point, and its multiplier, by hand."""
    program = ConeProgram(3)
    target, normal = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])
    program.minimise_squares(np.eye(3), target)
    program.require(block("zero", normal, [-3.0]))
    found = program.solve(solver)
    step = (normal @ target - 3.0) / (normal @ normal)
    np.testing.assert_allclose(found.x, target - step * normal, atol=1e-7)
    assert found.status == "solved"
    assert found.objective == pytest.approx(0.5 * step**2 * normal @ normal, abs=1e-7)
    # stationarity: gradient of the objective = matrix' dual
    np.testing.assert_allclose(found.x - target, normal * found.duals[0][0], atol=1e-7)


@BOTH
def test_nonnegative_cone(solver: str) -> None:
    program = ConeProgram(3)
    program.minimise_squares(np.eye(3), np.array([1.0, -2.0, 3.0]))
    program.require(block("nonnegative", np.eye(3), [0, 0, 0]))
    found = program.solve(solver)
    np.testing.assert_allclose(found.x, [1, 0, 3], atol=1e-7)
    np.testing.assert_allclose(found.duals[0], [0, 2, 0], atol=1e-6)


@BOTH
def test_second_order_cone(solver: str) -> None:
    """The lowest point of a ball in a direction."""
    program = ConeProgram(3)
    cost, centre = np.array([1.0, -2.0, 2.0]), np.array([0.3, 0.5, -0.7])
    program.minimise_linear(cost)
    program.require(block("second-order", np.vstack([np.zeros(3), np.eye(3)]), np.r_[0.5, -centre]))
    found = program.solve(solver)
    np.testing.assert_allclose(found.x, centre - 0.5 * cost / 3.0, atol=1e-6)
    assert found.objective == pytest.approx(cost @ centre - 1.5, abs=1e-7)
    # The dual (|cost|, -cost direction) lies in the cone and reproduces the cost.
    np.testing.assert_allclose(found.duals[0], np.r_[3.0, cost], atol=1e-6)


@BOTH
def test_positive_semidefinite_cone(solver: str) -> None:
    """The nearest positive semidefinite matrix drops the negative eigenvalues; the dual is what was dropped."""
    rng = np.random.default_rng(3)
    given = symmetric(rng, 4)
    values, vectors = np.linalg.eigh(given)
    assert values[0] < -0.1 < 0.1 < values[-1]
    program = ConeProgram(10)
    program.minimise_squares(np.eye(10), svec(given))
    program.require(block("psd", np.eye(10), np.zeros(10)))
    found = program.solve(solver)
    np.testing.assert_allclose(smat(found.x), (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-6)
    np.testing.assert_allclose(smat(found.duals[0]), (vectors * np.maximum(-values, 0)) @ vectors.T, atol=1e-6)


@BOTH
def test_exponential_cone(solver: str) -> None:
    """min z - 2 u with exp(u) <= z has u = log 2; y exp(x / y) <= z with y = 1."""
    program = ConeProgram(2)
    program.minimise_linear(np.array([-2.0, 1.0]))
    program.require(block("exponential", [[1, 0], [0, 0], [0, 1]], [0, 1, 0]))
    found = program.solve(solver)
    # The objective is flat at the optimum: its error is the square of that of the point.
    np.testing.assert_allclose(found.x, [np.log(2), 2.0], atol=1e-3)
    assert found.objective == pytest.approx(2 - 2 * np.log(2), abs=1e-7)
    # Two cones in one block, the second with y = 3: 3 exp(u / 3) <= z.
    program = ConeProgram(4)
    program.minimise_linear(np.array([-2.0, 1.0, -2.0, 1.0]))
    rows = np.zeros((6, 4))
    rows[0, 0] = rows[2, 1] = rows[3, 2] = rows[5, 3] = 1.0
    program.require(block("exponential", rows, [0, 1, 0, 0, 3, 0]))
    found = program.solve(solver)
    np.testing.assert_allclose(found.x, [np.log(2), 2, 3 * np.log(2), 6], atol=1e-3)
    assert found.objective == pytest.approx(8 - 8 * np.log(2), abs=1e-7)


def mixed(seed: int, size: Any = 1.0, factor: Any = 1.0) -> tuple[ConeProgram, dict[str, Any]]:
    """Least squares and a linear cost under all of zero, nonnegative, second-order and psd, in units of `size`.

    Row factors of nonnegative and zero blocks, and a congruence of the psd block, change nothing either.
    """
    rng = np.random.default_rng(seed)
    n = 8
    size = np.broadcast_to(np.asarray(size, dtype=float), (n,))
    d: dict[str, Any] = {
        "R": rng.normal(size=(6, n)),
        "z": rng.normal(size=6),
        "c": 0.1 * rng.normal(size=n),
        "E": rng.normal(size=(2, n)),
        "G": rng.normal(size=(3, n)),
        "F": [symmetric(rng, 3) for _ in range(n)],
    }
    inside = rng.normal(size=n)
    d["e"], d["h"] = -d["E"] @ inside, -d["G"] @ inside + rng.uniform(0.1, 0.5, 3)
    d["F0"] = -sum(x * f for x, f in zip(inside, d["F"], strict=True)) + 0.2 * np.eye(3)
    program = ConeProgram(n, size)
    program.minimise_squares(d["R"] / size, d["z"])
    program.minimise_linear(d["c"] / size)
    row = np.array([1.0, factor, 1.0 / factor])
    program.require(block("second-order", np.vstack([np.zeros(n), np.eye(n) / size]), np.r_[5.0, -inside]))
    program.require(block("psd", _congruent(d["F"], row).T / size, _congruent([d["F0"]], row)[0]))
    program.require(block("zero", row[1:, None] * d["E"] / size, row[1:] * d["e"]))
    program.require(block("nonnegative", row[:, None] * d["G"] / size, row * d["h"]))
    d |= {"inside": inside, "row": row, "size": size}
    return program, d


def _congruent(matrices: Any, row: Any) -> Any:
    return svec(np.array(matrices) * np.outer(row, row))


def oracle(d: dict[str, Any]) -> tuple[float, Any]:
    x = cp.Variable(8)
    matrix = d["F0"] + sum(x[i] * d["F"][i] for i in range(8))
    rules = [cp.norm(x - d["inside"]) <= 5, matrix >> 0, d["E"] @ x + d["e"] == 0, d["G"] @ x + d["h"] >= 0]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(d["R"] @ x - d["z"]) + d["c"] @ x), rules)
    return best(problem, "CVXOPT"), x.value


@pytest.mark.parametrize("seed", range(5))
def test_all_cones_together_against_cvxpy(seed: int) -> None:
    program, d = mixed(seed)
    found = program.solve()
    value, x = oracle(d)
    assert found.status == "solved"
    assert found.objective == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(found.x, x, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_duals_are_stationary_complementary_and_in_their_cones(seed: int) -> None:
    """In the caller's units: R'(R x - z) + c = sum of matrix' dual, dual . slack = 0."""
    rng = np.random.default_rng(seed)
    program, d = mixed(seed, 10.0 ** rng.uniform(-4, 4, 8), 100.0)
    found = program.solve()
    R, c = d["R"] / d["size"], d["c"] / d["size"]
    left = R.T @ (R @ found.x - d["z"]) + c
    for b, dual in zip(program.blocks, found.duals, strict=True):
        left -= b.matrix.T @ dual
        assert abs(dual @ b.value(found.x)) < 1e-6
    assert np.abs(left * d["size"]).max() < 1e-6
    second, psd, _, positive = found.duals
    assert second[0] >= np.linalg.norm(second[1:]) - 1e-7
    assert np.linalg.eigvalsh(triangle(psd))[0] > -1e-7
    assert positive.min() > -1e-7


@pytest.mark.parametrize("seed", range(5))
def test_solutions_do_not_depend_on_units(seed: int) -> None:
    """Unknowns from micro to mega, rows of constraints weighed by a thousand: the same physical result."""
    rng = np.random.default_rng(seed)
    plain = mixed(seed)[0].solve()
    size = 10.0 ** rng.uniform(-6, 6, 8)
    wild = mixed(seed, size, 1e3)[0].solve()
    assert wild.status == "solved"
    assert wild.objective == pytest.approx(plain.objective, abs=1e-7)
    np.testing.assert_allclose(wild.x / size, plain.x, atol=1e-4)


def test_duals_of_a_linear_objective_carry_its_unit() -> None:
    """min c x with x >= 1: the multiplier is c, whatever the size of c and x."""
    for cost in (1e-8, 1.0, 1e8):
        for size in (1e-6, 1.0, 1e6):
            program = ConeProgram(1, np.array([size]))
            program.minimise_linear(np.array([cost]))
            program.require(block("nonnegative", [[2.0]], [-2.0 * size]))
            found = program.solve()
            assert found.x[0] == pytest.approx(size, rel=1e-6)
            assert found.duals[0][0] == pytest.approx(cost / 2, rel=1e-6)
            assert found.objective == pytest.approx(cost * size, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_scs_agrees_with_clarabel(seed: int) -> None:
    first, second = mixed(seed)[0].solve(), mixed(seed)[0].solve("scs")
    assert second.status == "solved"
    assert second.solver == "scs"
    assert second.objective == pytest.approx(first.objective, abs=1e-6)
    np.testing.assert_allclose(second.x, first.x, atol=1e-4)
    program = mixed(seed)[0]
    for b, one, other in zip(program.blocks, first.duals, second.duals, strict=True):
        np.testing.assert_allclose(b.matrix.T @ one, b.matrix.T @ other, atol=1e-4, err_msg=b.label)


@BOTH
def test_infeasible_and_unbounded_are_told_apart(solver: str) -> None:
    program = ConeProgram(1)
    program.minimise_squares(np.eye(1), np.zeros(1))
    program.require(block("nonnegative", [[1.0], [-1.0]], [-2.0, 1.0]))
    found = program.solve(solver)
    assert found.status == "infeasible"
    with expect_error(DynidError, "", code="not_converged"):
        found.require("the fit")
    program = ConeProgram(2)
    program.minimise_linear(np.array([1.0, 0.0]))
    program.require(block("nonnegative", [[-1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]))
    assert program.solve(solver).status == "unbounded"


def test_an_infeasible_program_is_proved_by_its_duals() -> None:
    """Farkas: matrix' dual = 0 and dual . constant < 0."""
    program = ConeProgram(1, np.array([100.0]))
    program.require(block("nonnegative", [[1.0]], [-2.0]), block("nonnegative", [[-3.0]], [3.0]))
    program.minimise_linear(np.zeros(1))
    found = program.solve()
    assert found.status == "infeasible"
    a, b = found.duals[0][0], found.duals[1][0]
    assert a > 0
    assert a - 3 * b == pytest.approx(0, abs=1e-9 * a)
    assert -2 * a + 3 * b < 0


def test_a_solver_that_gives_up_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers from a failed solve come with its status, and `require` refuses them."""
    import clarabel

    patient = clarabel.DefaultSolver

    def impatient(*program: Any) -> Any:
        program[-1].max_iter = 1
        return patient(*program)

    monkeypatch.setattr(clarabel, "DefaultSolver", impatient)
    found = mixed(0)[0].solve()
    assert (found.status, found.message) == ("failed", "MaxIterations")
    with expect_error(DynidError, code="not_converged"):
        found.require("it")


def test_require_gives_back_what_was_solved() -> None:
    found = mixed(0)[0].solve()
    assert found.require("it") is found
    assert isinstance(found, ConeSolution)
    assert found.iterations > 0
    assert found.seconds > 0


def test_unknown_solver() -> None:
    with expect_error(UnknownName, "solver"):
        ConeProgram(1).solve("mosek")
    assert tuple(cone.SOLVERS) == ("clarabel", "scs")


def test_missing_scs_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "scs", None)
    with expect_error(DynidError, "solver", code="missing_package"):
        mixed(0)[0].solve("scs")


@BOTH
def test_further_unknowns_and_narrower_parts(solver: str) -> None:
    """Blocks, squares and costs from before `more` keep to the first columns."""
    program = ConeProgram(2, np.array([10.0, 0.1]))
    program.minimise_squares(np.eye(2), np.array([3.0, -1.0]))
    program.minimise_linear(np.array([1.0]))
    program.require(block("nonnegative", [[0.0, 1.0]], [0.0]))
    assert program.more(2, 5.0) == range(2, 4)
    assert program.more(1) == range(4, 5)
    np.testing.assert_array_equal(program.scale, [10, 0.1, 5, 5, 1])
    program.minimise_squares(np.array([[1.0, 0, -1, 0, 0]]), np.zeros(1))
    program.minimise_linear(np.array([0.0, 0, 0, 1.0, 2.0]))
    program.require(block("nonnegative", [[0, 0, 0, 1.0, 0], [0, 0, 0, -1.0, 1.0]], [-4.0, 0.0]))
    found = program.solve(solver)
    # x0: 1/2 (x0 - 3)^2 + x0 -> 2, x2 follows x0, x3 = 4, x4 >= x3.
    np.testing.assert_allclose(found.x, [2, 0, 2, 4, 4], atol=1e-6)
    assert found.objective == pytest.approx(0.5 + 2 + 0.5 + 4 + 8, abs=1e-6)
    assert len(found.duals) == 2


def test_order_of_blocks_does_not_matter() -> None:
    """Solvers want cones sorted; duals come back in the caller's order."""
    program, _ = mixed(1)
    turned, _ = mixed(1)
    turned.blocks.reverse()
    one, other = program.solve(), turned.solve()
    assert one.objective == pytest.approx(other.objective, abs=1e-8)
    for b, first, second in zip(program.blocks, one.duals, reversed(other.duals), strict=True):
        assert len(first) == len(second) == b.rows
        np.testing.assert_allclose(b.matrix.T @ first, b.matrix.T @ second, atol=1e-5)


def test_rows_without_unknowns_and_empty_blocks() -> None:
    """0 >= -1 holds, 1 = 0 does not, and a block without rows says nothing."""
    program = ConeProgram(1)
    program.minimise_squares(np.eye(1), np.ones(1))
    program.require(block("nonnegative", [[0.0]], [1.0]))
    program.require(Block("nonnegative", sparse.csr_array((0, 1)), np.zeros(0), "nothing"))
    found = program.solve()
    assert found.x[0] == pytest.approx(1.0)
    assert found.duals[1].shape == (0,)
    program.require(block("zero", [[0.0]], [1.0]))
    assert program.solve().status == "infeasible"


def test_least_squares_alone() -> None:
    """No cones at all: plain least squares with a factor of condition 1e7, where R'R would lose everything."""
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.normal(size=(9, 5)))[0], np.linalg.qr(rng.normal(size=(5, 5)))[0]
    R, x = u @ np.diag(10.0 ** -np.linspace(0, 7, 5)) @ v, rng.normal(size=5)
    program = ConeProgram(5)
    program.minimise_squares(R, R @ x)
    found = program.solve()
    assert found.objective < 1e-10
