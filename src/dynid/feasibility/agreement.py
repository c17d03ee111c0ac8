"""One feasible fit by several solvers: whether they agree on its cost, its parameters and its feasibility."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError, UnknownName, did_you_mean
from dynid.feasibility.cone import SOLVERS, ConeProgram
from dynid.feasibility.cvxpy_solvers import cvxpy_solvers, solve_with_cvxpy
from dynid.feasibility.metrics import Metric, add_distance, distance
from dynid.feasibility.sdpa import installed_programs, read_solution, run_program
from dynid.feasibility.semidefinite import semidefinite
from dynid.feasibility.sets import FeasibleSet
from dynid.files import write_text
from dynid.markup import HtmlFrame
from dynid.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Agreement", "FitProblem", "SolverResult"]

Array = NDArray[np.float64]
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
