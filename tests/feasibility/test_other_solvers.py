"""One fit by several solvers: through the SDPA format and through CVXPY they find our solution."""

from __future__ import annotations

import shutil
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import dynid
from dynid.errors import DamagedFile, MissingFile, NotApplicable, UnknownName
from dynid.feasibility.agreement import FitProblem, solve_with_cvxpy
from dynid.feasibility.cone import Block, ConeProgram
from dynid.feasibility.constraints import Constraints, Ellipsoids, Fixed, Inertia, Mass, Signs
from dynid.feasibility.regression import fit_problem, fit_regressor
from dynid.feasibility.semidefinite import semidefinite
from tests.support.errors import expect_error

Array = np.ndarray
# Relative difference of costs.
WITHIN = 1e-6


def problem(
    robot: str = "twolink", constraints: Constraints = "full", noise: float = 3.0, **options: object
) -> FitProblem:
    """Few noisy rows: several constraints are active."""
    model, rng = dynid.load_robot(robot), np.random.default_rng(0)
    W = dynid.regressor(model, *rng.normal(size=(3, 12, model.n))).reshape(-1, len(model.layout))
    y = W @ model.parameters + noise * rng.normal(size=len(W))
    settings: dict = {"std": noise, "weight": 1e-2, "constraints": constraints, **options}
    return fit_problem(model, W, y, **settings)


def read_back(text: str) -> tuple[Array, list[list[Array]]]:
    """Costs, and F_0, F_1, ... of every block, by the definition of the format."""
    lines = [x for x in text.splitlines() if x[0] not in '"*']
    count, blocks = int(lines[0]), int(lines[1])
    sizes = [int(x) for x in lines[2].split()]
    assert len(sizes) == blocks
    matrices = [[np.zeros((abs(n), abs(n))) for _ in range(count + 1)] for n in sizes]
    for line in lines[4:]:
        k, block, i, j = (int(x) for x in line.split()[:4])
        assert i <= j and (sizes[block - 1] > 0 or i == j)
        matrices[block - 1][k][i - 1, j - 1] = matrices[block - 1][k][j - 1, i - 1] = float(line.split()[4])
    return np.array(lines[3].split(), dtype=float), matrices


BALL = np.diag([-1.0, -1.0, -1.0, 1.5])


def solved(cost: Array, blocks: list[list[Array]]) -> Array:
    """The y of the smallest cost with sum y_i F_i - F_0 positive semidefinite in every block."""
    y = cp.Variable(len(cost))
    stacked = [(np.array([F.ravel() for F in block[1:]]).T, block[0]) for block in blocks]
    laws = [cp.reshape(A @ y, F.shape, order="C") - F >> 0 for A, F in stacked]
    cp.Problem(cp.Minimize(cost @ y), laws).solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    return np.asarray(y.value)


CASES = {
    "euclidean": lambda: problem(),
    "semi": lambda: problem(constraints="semi", unit="SI"),
    "equalities": lambda: problem(constraints=[Inertia("full"), Signs(), Fixed({"m_link1": 1.5})]),
    "union": lambda: problem(constraints=[Inertia("full"), Signs(), Ellipsoids("link1", [BALL, 2 * BALL])]),
}


@pytest.mark.parametrize("case", list(CASES))
def test_the_file_means_the_same_problem(case: str, tmp_path: Path) -> None:
    """Its text, read by the definition of the format and solved by CVXPY, gives our cost inside the constraints."""
    given = CASES[case]()
    ours = given.compare(["clarabel"]).results[0]
    given.write_sdpa(tmp_path / "problem.dat-s")
    cost, blocks = read_back((tmp_path / "problem.dat-s").read_text())
    form = semidefinite(given.program())
    x = form.unknowns(solved(cost, blocks))[: given.feasible.size + given.feasible.extra]
    pi = x[: given.feasible.size]
    assert given.cost(pi) == pytest.approx(ours.cost, rel=WITHIN)
    assert given.feasible.slack(x) > -WITHIN
    if case == "equalities":
        assert pi[given.feasible.robot.parameter_names.index("m_link1")] == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("program", ["csdp", "sdpa"])
@pytest.mark.parametrize("case", list(CASES))
def test_programs_of_the_format_agree(case: str, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on this machine")
    found = CASES[case]().compare([program])
    assert found.results[1].failure == "" and found.agrees(WITHIN), found.summary()


@pytest.mark.parametrize("solver", ["CVXOPT", "CLARABEL"])
@pytest.mark.parametrize("case", list(CASES))
def test_solvers_of_cvxpy_agree(case: str, solver: str) -> None:
    found = CASES[case]().compare([solver])
    assert found.results[1].failure == "" and found.agrees(WITHIN), found.summary()


def test_exponential_cones_go_through_cvxpy_alone(tmp_path: Path) -> None:
    prior = np.array(dynid.load_robot("twolink").parameters)
    for first in (0, 14):
        prior[first : first + 10] = [1, -0.5, 0, 0, 0.1, 0, 0.35, 0, 0, 0.35]
    given = problem(metric="entropic", prior=prior)
    assert set(given.solvers()) >= {"clarabel", "CLARABEL"} and not set(given.solvers()) & {"csdp", "sdpa", "CVXOPT"}
    found = given.compare(["CLARABEL"])
    assert found.agrees(WITHIN) and not found.results[1].failure, found.summary()
    with expect_error(NotApplicable, "metric"):
        given.write_sdpa(tmp_path / "problem.dat-s")


def test_second_order_cones_are_arrow_matrices() -> None:
    """The largest x + y on a disc about (1, 0) of radius 2: both larger than the centre by the root of 2."""
    program = ConeProgram(2)
    disc = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    program.require(Block("second-order", disc, np.array([2.0, -1.0, 0.0]), "disc"))
    program.minimise_linear(np.array([-1.0, -1.0]))
    form = semidefinite(program)
    cost, blocks = read_back(form.text())
    np.testing.assert_allclose(form.unknowns(solved(cost, blocks)), [1 + np.sqrt(2), np.sqrt(2)], atol=1e-6)
    np.testing.assert_allclose(solve_with_cvxpy(program, "CLARABEL"), [1 + np.sqrt(2), np.sqrt(2)], atol=1e-6)


def test_it_is_the_problem_of_the_fit() -> None:
    """The same parameters as `fit_regressor`, whose weight is that of the problem."""
    model, rng = dynid.load_robot("twolink"), np.random.default_rng(3)
    W = dynid.regressor(model, *rng.normal(size=(3, 12, 2))).reshape(-1, 28)
    y = W @ model.parameters + rng.normal(size=24)
    fitted = fit_regressor(model, W, y, weight=0.3)
    result = fit_problem(model, W, y, weight=0.3).compare(["clarabel"]).results[0]
    np.testing.assert_allclose(result.parameters, fitted.parameters, atol=1e-12)
    assert result.cost == pytest.approx(fitted.solution.objective, rel=1e-9)


def test_solutions_are_read(tmp_path: Path) -> None:
    """The first line of CSDP, the xVec of SDPA; a solution of another problem is refused."""
    given = problem()
    form = semidefinite(given.program())
    y = np.linspace(-1, 1, len(form.cost))
    words = [f"{x:.17e}" for x in y]
    (tmp_path / "a.sol").write_text(" ".join(words) + "\n1 1 1 1 2.0\n")
    (tmp_path / "b.out").write_text(
        "phase.value = pdOPT\nxVec = \n{" + ",".join(f"{x:+.17e}" for x in y) + "}\nxMat =\n"
    )
    for name in ("a.sol", "b.out"):
        result = given.read_sdpa(tmp_path / name)
        np.testing.assert_allclose(result.parameters, form.unknowns(y)[:28], rtol=1e-14)
        assert result.solver == name
    with expect_error(MissingFile):
        given.read_sdpa(tmp_path / "none.sol")
    for text in ("1 2 3\n", "", "xVec = {" + ",".join(["nan"] * len(y)) + "}"):
        (tmp_path / "c.sol").write_text(text)
        with expect_error(DamagedFile):
            given.read_sdpa(tmp_path / "c.sol")


def test_disagreement_is_seen() -> None:
    """Another problem's result among the results."""
    from dataclasses import replace

    found = problem().compare(["clarabel"])
    other = problem(noise=2.0).compare(["clarabel"]).results[0]
    given = problem()
    worse = given._result("other", other.parameters, 0.0)
    assert worse.cost > found.results[0].cost
    assert not replace(found, results=(*found.results, worse)).agrees()
    outside = replace(found.results[0], margin=-1e-3)
    assert not replace(found, results=(*found.results, outside)).agrees()


def test_failures_are_answers_and_names_are_checked() -> None:
    given = problem()
    with expect_error(UnknownName, "solver"):
        given.compare(["CVXOP"])
    never = [Inertia("full"), Mass(upper=1.0, links="link1"), Mass(lower=2.0, links="link1")]
    found = problem(constraints=never).compare(["CVXOPT"])
    assert found.results[0].failure and not found.agrees()
    assert "CVXOPT" in found.summary()


@pytest.mark.parametrize("program", ["csdp", "sdpa"])
def test_programs_that_find_nothing_say_so(program: str) -> None:
    """Both leave a file behind that looks like a solution."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on this machine")
    never = [Inertia("full"), Mass(upper=1.0, links="link1"), Mass(lower=2.0, links="link1")]
    found = problem(constraints=never).compare([program]).results[1]
    assert found.failure and np.isnan(found.cost)
