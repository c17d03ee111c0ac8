"""Cone programs through CVXPY, for any solver that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import DynidError, UnknownName
from dynid.feasibility.cone import Block, ConeProgram, order_of, svec_indices
from dynid.feasibility.whitened import whitened

__all__ = ["cvxpy_solvers", "solve_with_cvxpy"]

Array = NDArray[np.float64]

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
