"""One feasible fit by several solvers: whether they agree on its cost, its parameters and its feasibility."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import DamagedFile, DynidError, MissingFile, MissingPackage, UnknownName, did_you_mean
from dynid.feasibility.cone import SOLVERS, Block, ConeProgram, order_of, svec_indices
from dynid.feasibility.metrics import Metric, add_distance, distance
from dynid.feasibility.semidefinite import Semidefinite, semidefinite
from dynid.feasibility.sets import FeasibleSet
from dynid.feasibility.whitened import whitened
from dynid.files import write_text
from dynid.markup import HtmlFrame
from dynid.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "PROGRAMS",
    "Agreement",
    "FitProblem",
    "SolverResult",
    "cvxpy_solvers",
    "installed_programs",
    "read_solution",
    "run_program",
    "solve_with_cvxpy",
]

Array = NDArray[np.float64]


# Cone programs through CVXPY, for any solver that is installed.


# Accuracy of solvers whose own default is less.
_TIGHT: dict[str, dict[str, Any]] = {
    "SCS": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000},
    "CVXOPT": {"abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9, "kktsolver": "robust"},
    "SDPA": {"epsilonStar": 1e-9, "epsilonDash": 1e-9},
}


def cvxpy_solvers(program: ConeProgram) -> tuple[str, ...]:
    """Installed solvers of CVXPY that have the cones of the program; none without CVXPY."""
    try:
        import cvxpy as cp
        from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC
    except ImportError:
        return ()
    # Solvers with another order of entries have a class of their own for semidefinite cones.
    kinds = {"second-order": {"SOC"}, "psd": {"PSD", "SvecPSD"}, "exponential": {"ExpCone"}}
    wanted = [kinds[cone] for cone in {b.cone for b in program.blocks} | {"second-order"} if cone in kinds]
    found = []
    for name in cp.installed_solvers():
        has = {x.__name__ for x in getattr(SOLVER_MAP_CONIC.get(name), "SUPPORTED_CONSTRAINTS", ())}
        if all(has & names for names in wanted):
            found.append(name)
    return tuple(found)


def solve_with_cvxpy(program: ConeProgram, solver: str) -> Array:
    """Unknowns (n,) of a cone program, by a solver of CVXPY."""
    import cvxpy as cp

    if solver not in cp.installed_solvers():
        raise UnknownName(
            f"CVXPY has no solver '{solver}' here: use one of {', '.join(cvxpy_solvers(program))}", "solver"
        )
    form = whitened(program)
    y = cp.Variable(form.directions.shape[1])
    cost = 0.5 * cp.sum_squares(y[: form.squared]) + form.cost @ y
    problem = cp.Problem(cp.Minimize(cost), [_constraint(b, y) for b in form.blocks])
    try:
        problem.solve(solver=solver, **_TIGHT.get(solver, {}))
    except (cp.SolverError, ArithmeticError) as error:  # CVXOPT divides by zero where it gets stuck
        raise DynidError(f"{solver} failed: {' '.join(str(error).split())[:100]}", code="not_converged") from None
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise DynidError(f"{solver} ended with '{problem.status}'", code="not_converged")
    return np.asarray(form.offset + form.directions @ np.asarray(y.value, dtype=float))


def _constraint(block: Block, y: Any) -> Any:
    """A block as CVXPY writes it."""
    import cvxpy as cp

    value = block.matrix @ y + block.constant
    if block.cone == "nonnegative":
        size = 1.0 / np.maximum(abs(block.matrix).max(axis=1).toarray().ravel(), 1e-300)
        return cp.multiply(size, value) >= 0
    if block.cone == "second-order":
        return cp.SOC(value[0], value[1:])
    if block.cone == "exponential":
        return cp.ExpCone(value[0::3], value[1::3], value[2::3])
    order = order_of(block.rows)
    rows, columns, weights = svec_indices(order)
    entries = np.arange(block.rows)
    half = sparse.csr_array((1.0 / weights, (columns * order + rows, entries)), shape=(order * order, block.rows))
    other = rows != columns
    mirror = sparse.csr_array(
        (1.0 / weights[other], ((rows * order + columns)[other], entries[other])), shape=(order * order, block.rows)
    )
    return cp.reshape((half + mirror) @ value, (order, order), order="F") >> 0


# Semidefinite programs written for programs that read the SDPA sparse format, their solutions read back.


# Program -> its command line.
PROGRAMS = {
    "csdp": ("csdp", "problem.dat-s", "solution"),
    "sdpa": ("sdpa", "-ds", "problem.dat-s", "-o", "solution", "-p", "settings"),
}
# Exit codes of a solution; CSDP ends with 3 where it is less accurate than was asked for, SDPA says so in its file.
_SOLVED = (0, 3)
_PHASES = ("pdOPT", "pdFEAS")
# Settings of SDPA, in its order: its own, but for accuracies of 1e-9 and results with all digits.
_SETTINGS = """200 maxIteration
1.0E-9 epsilonStar
1.0E2 lambdaStar
2.0 omegaStar
-1.0E5 lowerBound
1.0E5 upperBound
0.1 betaStar
0.3 betaBar
0.9 gammaStar
1.0E-9 epsilonDash
%+.17e xPrint
NOPRINT XPrint
NOPRINT YPrint
%+.17e infPrint
"""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def installed_programs() -> tuple[str, ...]:
    """Programs on this computer that read the format."""
    return tuple(name for name in PROGRAMS if shutil.which(name))


def run_program(problem: Semidefinite, name: str) -> Array:
    """The y that a program finds."""
    if shutil.which(name) is None:
        raise MissingPackage(f"the program '{name}' is not installed")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "problem.dat-s").write_text(problem.text(), encoding="ascii")
        Path(folder, "settings").write_text(_SETTINGS, encoding="ascii")
        ended = subprocess.run(PROGRAMS[name], cwd=folder, capture_output=True, check=False)
        solution = Path(folder, "solution")
        if ended.returncode not in _SOLVED or not solution.exists():
            raise DynidError(f"'{name}' found no solution and ended with code {ended.returncode}", code="not_converged")
        return read_solution(solution, len(problem.cost))


def read_solution(path: str | Path, count: int) -> Array:
    """The y (count,) of a file that CSDP (its first line) or SDPA (its xVec) has written."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MissingFile(f"cannot read '{path}': {error.strerror}") from None
    phase = re.search(r"phase\.value\s*=\s*(\w+)", text)
    if phase is not None and phase[1] not in _PHASES:
        raise DynidError(f"{Path(path).name}: SDPA ended with '{phase[1]}'", code="not_converged")
    named = re.search(r"xVec\s*=\s*\{([^{}]*)\}", text)
    found = named[1] if named else text.partition("\n")[0]
    words = found.replace(",", " ").split()
    if len(words) != count or not all(re.fullmatch(_NUMBER, x) for x in words):
        raise DamagedFile(f"{Path(path).name}: not a solution of CSDP or SDPA with {count} unknowns")
    return np.array(words, dtype=float)


# Relative difference of costs, and violation of a constraint in its unit, up to which solvers agree.
_WITHIN = 1e-6


@dataclass(frozen=True, eq=False)
class SolverResult:
    """What one solver finds.

    Attributes
    ----------
    solver : str
        Name of the solver.
    failure : str
        Why there is no solution; empty where there is one.
    parameters : ndarray, shape (p,)
        Standard parameters, SI units; NaN without a solution.
    cost : float
        Half the sum of squares of W pi - y plus the weighted distance from the prior, computed from the parameters.
    margin : float
        Smallest slack of all constraints, in the unit of each; negative outside.
    seconds : float
        Time of the solve.
    """

    solver: str
    failure: str
    parameters: Array
    cost: float
    margin: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Agreement(HtmlFrame):
    """Results of several solvers to one problem, ours first.

    Attributes
    ----------
    results : tuple of SolverResult
        One for each solver.
    scale : ndarray, shape (p,)
        Typical size of each parameter.
    """

    results: tuple[SolverResult, ...]
    scale: Array

    def excess(self, result: SolverResult) -> float:
        """Cost above that of our result, relative to it where it is above one.

        Parameters
        ----------
        result : SolverResult
            One of the results.

        Returns
        -------
        float
        """
        ours = self.results[0].cost
        return (result.cost - ours) / max(1.0, abs(ours))

    def difference(self, result: SolverResult) -> float:
        """Largest difference of a parameter from ours, in its typical size.

        Parameters
        ----------
        result : SolverResult
            One of the results.

        Returns
        -------
        float
        """
        return float(np.abs((result.parameters - self.results[0].parameters) / self.scale).max())

    def agrees(self, within: float = _WITHIN) -> bool:
        """Whether all solvers that found a solution agree on the cost, inside the constraints.

        Parameters
        ----------
        within : float, default 1e-6
            Largest relative difference of the cost and largest violation of a constraint.

        Returns
        -------
        bool
            False where a solver failed on its own, as long as ours did not.
        """
        if self.results[0].failure:
            return False
        solved = [x for x in self.results if not x.failure]
        return all(abs(self.excess(x)) <= within and x.margin >= -within for x in solved)

    def to_frame(self) -> pl.DataFrame:
        """One row per solver: solver, cost, excess, difference, margin, seconds and failure.

        Returns
        -------
        polars.DataFrame
        """
        import polars as pl

        columns = ("solver", "cost", "excess", "difference", "margin", "seconds", "failure")
        rows = [
            (x.solver, x.cost, self.excess(x), self.difference(x), x.margin, x.seconds, "")
            if not x.failure
            else (x.solver, None, None, None, None, None, x.failure)
            for x in self.results
        ]
        schema = {name: pl.String if name in ("solver", "failure") else pl.Float64 for name in columns}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def summary(self) -> str:
        """A table with a line for each solver.

        Returns
        -------
        str
        """
        lines = [f"{'solver':<10} {'cost':>16} {'excess':>9} {'difference':>10} {'margin':>10} {'seconds':>8}"]
        for x in self.results:
            if x.failure:
                lines.append(f"{x.solver:<10} {x.failure}")
                continue
            numbers = f"{x.cost:16.9g} {self.excess(x):9.1e} {self.difference(x):10.1e} {x.margin:10.2e}"
            lines.append(f"{x.solver:<10} {numbers} {x.seconds:8.2f}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class FitProblem:
    """A least-squares fit over the feasible set, near a prior, which any solver can be given.

    Attributes
    ----------
    feasible : FeasibleSet
        The constraints.
    R : ndarray, shape (k, p + extra)
        Rows of least squares, in units of the noise.
    z : ndarray, shape (k,)
        Their measurements.
    prior : ndarray, shape (p,)
        Prior of the standard parameters.
    metric : {"euclidean", "pullback", "entropic"}
        Distance from the prior.
    weight : float
        Weight of the distance.
    scale : ndarray, shape (p,)
        Units of the parameters in the Euclidean distance.
    """

    feasible: FeasibleSet
    R: Array
    z: Array
    prior: Array
    metric: Metric
    weight: float
    scale: Array

    def program(self) -> ConeProgram:
        """The cone program.

        Returns
        -------
        ConeProgram
        """
        program = self.feasible.program()
        program.minimise_squares(self.R, self.z)
        add_distance(program, self.feasible, self.prior, self.metric, self.weight, self.scale)
        return program

    def cost(self, parameters: Array) -> float:
        """Half the sum of squares of R pi - z plus the weighted distance from the prior.

        Parameters
        ----------
        parameters : ndarray, shape (p,)
            Standard parameters.

        Returns
        -------
        float
        """
        rest = self.R[:, : len(parameters)] @ parameters - self.z
        away = distance(self.feasible.robot, parameters, self.prior, self.metric, self.scale)
        return 0.5 * float(rest @ rest) + self.weight * away

    def write_sdpa(self, path: str | Path) -> None:
        """Write the problem in the SDPA sparse format: min c.y subject to sum y_i F_i - F_0 positive semidefinite.

        Unknowns and cost are scaled to order one; `read_sdpa` knows how. Equalities are solved beforehand.

        Parameters
        ----------
        path : str or Path
            File to write, usually with the ending ".dat-s".

        Raises
        ------
        DataError
            With the entropic metric, which is no semidefinite program.
        """
        robot = self.feasible.robot
        head = [f"Feasible least squares of {robot.name}, written by dynid.", "Unknowns and cost are scaled."]
        plain = [line.encode("ascii", "replace").decode().replace('"', "?") for line in head]
        write_text(Path(path), semidefinite(self.program()).text(plain))

    def read_sdpa(self, path: str | Path) -> SolverResult:
        """Read the solution that CSDP or SDPA found for the file that `write_sdpa` wrote.

        Parameters
        ----------
        path : str or Path
            Solution file of CSDP, or result file of SDPA.

        Returns
        -------
        SolverResult

        Raises
        ------
        DataError
            If the file is no such solution, or one of another problem.
        """
        problem = semidefinite(self.program())
        return self._result(Path(path).name, problem.unknowns(read_solution(path, len(problem.cost))), 0.0)

    def solvers(self) -> tuple[str, ...]:
        """All solvers of this computer that can solve the problem, ours first.

        Returns
        -------
        tuple of str
            "clarabel" and "scs" are called directly; "csdp" and "sdpa" are programs that read the SDPA format; the
            solvers of CVXPY are written in capitals.
        """
        program = self.program()
        programs = () if self.metric == "entropic" else installed_programs()
        return ("clarabel", *programs, *cvxpy_solvers(program))

    def compare(self, solvers: Sequence[str] | None = None, progress: ProgressCallback | None = None) -> Agreement:
        """Solve the problem with several solvers, ours ("clarabel") first.

        Parameters
        ----------
        solvers : sequence of str, optional
            Names as in `solvers()`; by default all of them.
        progress : callable, optional
            Receives a `Progress` before each solver starts.

        Returns
        -------
        Agreement

        Raises
        ------
        DataError
            If a solver is unknown or not installed.
        """
        every = self.solvers()
        wanted = every if solvers is None else tuple(dict.fromkeys(("clarabel", *solvers)))
        for name in wanted:
            if name not in (*every, *SOLVERS):
                raise UnknownName(
                    f"solver '{name}' is not known here: use {', '.join(every)}{did_you_mean(name, every)}", "solver"
                )
        results = []
        for k, name in enumerate(wanted):
            if progress is not None:
                progress(Progress(name, k / len(wanted)))
            results.append(self._solved(name))
        return Agreement(tuple(results), self.feasible.scale[: self.feasible.size])

    def _solved(self, name: str) -> SolverResult:
        """The result of one solver, also where it fails."""
        program, started = self.program(), time.perf_counter()
        try:
            if name in SOLVERS:
                x = program.solve(name).require("the feasible fit").x
            elif name in installed_programs():
                problem = semidefinite(program)
                x = problem.unknowns(run_program(problem, name))
            else:
                x = solve_with_cvxpy(program, name)
        except DynidError as error:
            nothing = np.full(self.feasible.size, np.nan)
            return SolverResult(name, str(error), nothing, np.nan, np.nan, time.perf_counter() - started)
        return self._result(name, x, time.perf_counter() - started)

    def _result(self, name: str, x: Array, seconds: float) -> SolverResult:
        unknowns = x[: self.feasible.size + self.feasible.extra]
        pi = unknowns[: self.feasible.size]
        return SolverResult(name, "", pi, self.cost(pi), self.feasible.slack(unknowns), seconds)
