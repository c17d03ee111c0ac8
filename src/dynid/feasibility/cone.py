"""Cone programs, passed directly to the solver.

A program minimises a sum of squares plus a linear term over unknowns x, while affine maps of x lie in cones. Rows of
least squares stay explicit (never R'R, which squares the condition number). Unknowns and cones are brought to
order one before solving, and duals are returned in the units of the caller.

    minimise |R x - z|^2 / 2 + c . x    subject to constant_b + matrix_b x in cone_b

as min x'P x / 2 + q.x with A x + s = b, s in cones, where residuals of large rows are unknowns of their own.

Sources: Boyd and Vandenberghe, Convex Optimization (2004), section 4.6 (generalized inequalities); Goulart and Chen,
Clarabel: An Interior-Point Solver for Conic Programs with Quadratic Objectives (2024), for the form of the solver.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DynidError, UnknownName

__all__ = ["SOLVERS", "Block", "ConeProgram", "ConeSolution", "order_of", "smat", "svec", "svec_indices"]

Array = NDArray[np.float64]
Cone = Literal["zero", "nonnegative", "second-order", "psd", "exponential"]
Status = Literal["solved", "infeasible", "unbounded", "failed"]

# Status, unknowns, duals, iterations and the status text of the solver.
RawSolution = tuple[Status, Array, Array, int, str]

_ORDER: tuple[Cone, ...] = ("zero", "nonnegative", "second-order", "psd", "exponential")
_ROOT2 = np.sqrt(2.0)
# A solve that stops before the tolerance counts as solved within this multiple of it.
_STUCK = 100.0
# Within this multiple of the tolerance, other solver settings are not tried.
_CLOSE = 20.0
# Relative accuracy of a sum of squares.
_OBJECTIVE = 2e-7
# Unknowns and cones are scaled already, so that the scaling of Clarabel is rarely useful. With a solution on the
# boundary of cones, about one solve in fifty fails in its last iterations; other settings then succeed.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"equilibrate_enable": False, "static_regularization_constant": 1e-10},
    {"equilibrate_enable": False, "static_regularization_constant": 1e-12, "static_regularization_proportional": 1e-32},
    {"equilibrate_enable": True},
    {"equilibrate_enable": False, "static_regularization_constant": 1e-10, "max_step_fraction": 0.6},
    {"equilibrate_enable": False, "static_regularization_constant": 1e-10, "max_step_fraction": 0.3},
)
# Rows of least squares above this size reduce the accuracy of the interior-point method.
_LARGEST_ROWS = 1e3
# Smallest curvature that is well above the regularisation of the solver, 1e-10.
_SEEN = 1e-8


@cache
def svec_indices(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Rows, columns and weights of the upper triangle, column by column; off-diagonal entries weigh sqrt 2."""
    columns, rows = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, _ROOT2)


def svec(matrix: ArrayLike) -> Array:
    """Symmetric matrices (..., n, n) as vectors (..., n(n+1)/2) with the same inner product."""
    matrix = np.asarray(matrix, dtype=float)
    rows, columns, weights = svec_indices(matrix.shape[-1])
    return np.asarray(matrix[..., rows, columns] * weights)


def smat(vector: ArrayLike) -> Array:
    """The symmetric matrix (n, n) of a vector (n(n+1)/2,)."""
    vector = np.asarray(vector, dtype=float)
    size = int((np.sqrt(8 * vector.size + 1) - 1) / 2 + 0.5)
    rows, columns, weights = svec_indices(size)
    out = np.zeros((size, size))
    out[rows, columns] = out[columns, rows] = vector / weights
    return out


@dataclass(frozen=True, eq=False)
class Block:
    """Cone constraint: constant + matrix @ x lies in a cone; `label` describes it in messages.

    Positive semidefinite blocks are stored as `svec`; exponential cones have three rows each: y exp(x / y) <= z.
    `unit` (rows,), if given, is the element of the cone in which slack is measured.
    """

    cone: Cone
    matrix: sparse.csr_array
    constant: Array
    label: str
    unit: Array | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.constant)

    def value(self, x: Array) -> Array:
        """constant + matrix @ x (rows,)."""
        return np.asarray(self.constant + self.matrix @ x)

    def slack(self, x: Array) -> float:
        """Distance to the boundary of the cone in units of the block, negative outside.

        Equalities give minus their largest residual.
        """
        value = self.value(x)
        if self.cone == "zero":
            return -float(np.abs(value).max(initial=0.0))
        if self.cone == "nonnegative":
            return float((value / (np.ones(self.rows) if self.unit is None else self.unit)).min(initial=np.inf))
        assert self.cone == "psd", "constraint sets have no other cones"
        matrix = smat(value)
        if self.unit is not None:
            root = np.sqrt(np.diag(smat(self.unit)))
            matrix = matrix / np.outer(root, root)
        return float(np.linalg.eigvalsh(matrix)[0])

    def substituted(self, offset: Array, directions: Array | sparse.csr_array) -> Block:
        """The block over y, where x = offset + directions @ y."""
        matrix = sparse.csr_array(self.matrix @ directions)
        return Block(self.cone, matrix, self.value(offset), self.label, self.unit)

    def widened(self, unknowns: int, moved: int = 0, own: int = 0) -> Block:
        """The block over more unknowns; its last `own` columns move to start at column `moved`."""
        if unknowns == self.matrix.shape[1] and (not own or moved == unknowns - own):
            return self
        coo = self.matrix.tocoo()
        columns = coo.col.copy()
        if own:
            first = self.matrix.shape[1] - own
            columns = np.where(columns >= first, columns - first + moved, columns)
        matrix = sparse.csr_array((coo.data, (coo.row, columns)), shape=(self.rows, unknowns))
        return Block(self.cone, matrix, self.constant, self.label, self.unit)


@dataclass(frozen=True, eq=False)
class ConeSolution:
    """Solution of a cone program: unknowns (n,), one dual vector per block, objective and status of the solver."""

    status: Status
    x: Array
    duals: tuple[Array, ...]
    objective: float
    iterations: int
    seconds: float
    solver: str
    message: str

    def require(self, what: str) -> ConeSolution:
        """Return this solution, or raise an error that names `what` if it was not solved."""
        if self.status != "solved":
            raise DynidError(f"{what} was not solved: {self.solver} ended with '{self.message}'", code="not_converged")
        return self


class _Scaled(NamedTuple):
    """Entries of the matrix of a block, its constant, and the row weights that scale it to order one."""

    data: Array
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    constant: Array
    weights: Array


class ConeProgram:
    """Minimise 1/2 |R x - z|^2 + c.x subject to blocks; `scale` (n,) is the typical size of each unknown."""

    def __init__(self, unknowns: int, scale: Array | None = None) -> None:
        self.unknowns = unknowns
        self.scale = np.ones(unknowns) if scale is None else np.asarray(scale, dtype=float)
        self.blocks: list[Block] = []
        self._squares: list[tuple[sparse.csr_array, Array]] = []
        self._linear = np.zeros(unknowns)

    def more(self, count: int, scale: ArrayLike = 1.0) -> range:
        """Add unknowns and return their columns."""
        first = self.unknowns
        self.unknowns += count
        self.scale = np.concatenate([self.scale, np.broadcast_to(np.asarray(scale, dtype=float), (count,))])
        self._linear = np.concatenate([self._linear, np.zeros(count)])
        return range(first, self.unknowns)

    def require(self, *blocks: Block) -> None:
        """Add cone constraints; a block with fewer columns refers to the first unknowns."""
        self.blocks += blocks

    def minimise_squares(self, matrix: Array | sparse.csr_array, target: Array) -> None:
        """Add 1/2 |matrix @ x - target|^2 to the objective."""
        self._squares.append((sparse.csr_array(matrix), np.asarray(target, dtype=float)))

    def minimise_linear(self, cost: Array) -> None:
        """Add cost . x to the objective; cost may be shorter than x."""
        self._linear[: len(cost)] += cost

    def objective(self) -> tuple[Array, tuple[tuple[sparse.csr_array, Array], ...]]:
        """The linear costs (n,), and matrix and target of each sum of squares."""
        return self._linear.copy(), tuple(self._squares)

    def solve(self, solver: str = "clarabel", *, tolerance: float = 1e-9) -> ConeSolution:
        """Solve by Clarabel, or by SCS for programs too large for an interior-point method."""
        if solver not in SOLVERS:
            raise UnknownName(f"solver '{solver}' is unknown: use {' or '.join(SOLVERS)}", "solver")
        started = time.perf_counter()
        order = sorted(range(len(self.blocks)), key=lambda i: _ORDER.index(self.blocks[i].cone))
        scaled = [self._scaled(self.blocks[i]) for i in order]
        size = self._objective_size()
        found = self._solved(solver, tolerance, order, scaled, size)
        # A scaled objective may be so small that the tolerance of the solver is a large part of it: scale less.
        enough = max(1.0, abs(found.objective)) * _OBJECTIVE / (_CLOSE * tolerance)
        if found.status == "solved" and self._squares and size > enough:
            closer = self._solved(solver, tolerance, order, scaled, enough)
            if closer.status == "solved" and closer.objective <= found.objective:
                found = closer
        return replace(found, seconds=time.perf_counter() - started)

    def _solved(
        self, solver: str, tolerance: float, order: list[int], scaled: list[_Scaled], size: float
    ) -> ConeSolution:
        """Solve with the objective divided by `size`; if that fails, again with all residuals explicit."""
        plain = [self._plain(R, size) for R, _ in self._squares]
        raw = self._raw(solver, tolerance, order, scaled, size, plain)
        if raw[0] == "failed" and any(plain):
            raw = self._raw(solver, tolerance, order, scaled, size, [False] * len(plain))
        status, u, z, iterations, message = raw
        x = self.scale * u[: self.unknowns]
        duals: list[Array] = [np.zeros(0)] * len(self.blocks)
        start = len(z) - sum(block.rows for block in self.blocks)
        for i, block in zip(order, scaled, strict=True):
            rows = self.blocks[i].rows
            duals[i] = size * block.weights * z[start : start + rows]
            start += rows
        objective = float(self._linear @ x) + sum(
            0.5 * float(np.sum((R @ x[: R.shape[1]] - t) ** 2)) for R, t in self._squares
        )
        return ConeSolution(status, x, tuple(duals), objective, iterations, 0.0, solver, message)

    def _raw(
        self, solver: str, tolerance: float, order: list[int], scaled: list[_Scaled], size: float, plain: list[bool]
    ) -> RawSolution:
        """Call the solver, with residuals as additional unknowns for all squares except the plain ones."""
        squares = []
        curvature, cost = np.zeros(self.unknowns), self._linear.copy()
        for (R, target), bare in zip(self._squares, plain, strict=True):
            if bare:
                np.add.at(curvature, R.indices, R.data**2)
                np.add.at(cost, R.indices, -R.data * target)
            else:
                squares.append((R, target))
        residuals = sum(len(target) for _, target in squares)
        A, b, cones = self._rows(scaled, [self.blocks[i] for i in order], squares, 1.0 / np.sqrt(size))
        P = sparse.diags_array(np.concatenate([curvature * self.scale**2 / size, np.ones(residuals)])).tocsc()
        q = np.concatenate([cost * self.scale / size, np.zeros(residuals)])
        return SOLVERS[solver](P, q, A, b, cones, tolerance)

    def _objective_size(self) -> float:
        """Scale of the objective: its largest cost, or a value that keeps rows of squares and costs below a limit."""
        linear = float(np.abs(self._linear * self.scale).max(initial=0.0))
        if not self._squares:
            return linear or 1.0
        largest = max(float(np.linalg.norm(R.data * self.scale[R.indices])) for R, _ in self._squares)
        return max(1.0, (largest / _LARGEST_ROWS) ** 2, linear / _LARGEST_ROWS**2)

    def _plain(self, R: sparse.csr_array, size: float) -> bool:
        """Whether each row has one unknown and enough weight to do without explicit residuals."""
        if not 0 < R.nnz == R.shape[0] == np.count_nonzero(np.diff(R.indptr)):
            return False
        return bool(np.min(R.data * self.scale[R.indices]) ** 2 > _SEEN * size)

    def _scaled(self, block: Block) -> _Scaled:
        """A block over scaled unknowns, with rows (or the coordinates of a matrix) of order one."""
        row = np.repeat(np.arange(block.rows), np.diff(block.matrix.indptr))
        column = block.matrix.indices
        data = block.matrix.data * self.scale[column]
        size = np.zeros(block.rows)
        np.maximum.at(size, row, np.abs(data))
        if block.cone in ("zero", "nonnegative"):
            weights = 1.0 / np.where(size > 1e-300, size, np.maximum(np.abs(block.constant), 1.0))
        elif block.cone == "psd":
            rows, columns, _ = svec_indices(order_of(block.rows))
            diagonal = size[rows == columns]
            root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
            weights = root[rows] * root[columns]
        elif block.cone == "second-order":
            # A compromise between rows and constant of order one: a tight ball has rows much larger than its radius.
            weights = np.full(block.rows, max(1.0, size.max(initial=0.0)) ** -0.5)
        else:
            weights = np.ones(block.rows)
        return _Scaled(data * weights[row], row, column, weights * block.constant, weights)

    def _rows(
        self,
        scaled: list[_Scaled],
        blocks: list[Block],
        squares: list[tuple[sparse.csr_array, Array]],
        shrink: float,
    ) -> tuple[sparse.csc_matrix, Array, list[tuple[Cone, int]]]:
        """A u + s = b of the solver, with the residuals of squares as additional unknowns, and its cones in order."""
        data, row, column, b = [], [], [], []
        start, first = 0, self.unknowns
        residuals = sum(len(target) for _, target in squares)
        for R, target in squares:
            coo = R.tocoo()
            count = len(target)
            data += [shrink * coo.data * self.scale[coo.col], -np.ones(count)]
            row += [coo.row + start, np.arange(start, start + count)]
            column += [coo.col, np.arange(first, first + count)]
            b.append(shrink * target)
            start, first = start + count, first + count
        for block in scaled:
            data.append(-block.data)
            row.append(block.row + start)
            column.append(block.column)
            b.append(block.constant)
            start += len(block.constant)
        width = self.unknowns + residuals
        A = sparse.csc_matrix((np.concatenate(data), (np.concatenate(row), np.concatenate(column))), (start, width))
        cones: list[tuple[Cone, int]] = [("zero", residuals)] if residuals else []
        for kind in (k for k in blocks if k.rows):
            if cones and kind.cone == cones[-1][0] and kind.cone in ("zero", "nonnegative"):
                cones[-1] = (kind.cone, cones[-1][1] + kind.rows)
            else:
                cones.append((kind.cone, kind.rows))
        return A, np.concatenate(b), cones


def order_of(rows: int) -> int:
    """Order of the symmetric matrix that has so many entries in `svec`."""
    return int((np.sqrt(8 * rows + 1) - 1) / 2 + 0.5)


def _clarabel(
    P: sparse.csc_matrix, q: Array, A: sparse.csc_matrix, b: Array, cones: list[tuple[Cone, int]], tolerance: float
) -> RawSolution:
    """Solve by Clarabel."""
    import clarabel

    make: dict[Cone, Callable[[int], list[Any]]] = {
        "zero": lambda n: [clarabel.ZeroConeT(n)],
        "nonnegative": lambda n: [clarabel.NonnegativeConeT(n)],
        "second-order": lambda n: [clarabel.SecondOrderConeT(n)],
        "psd": lambda n: [clarabel.PSDTriangleConeT(order_of(n))],
        "exponential": lambda n: [clarabel.ExponentialConeT()] * (n // 3),
    }
    found: Any = None
    best: tuple[int, float] = (3, 0.0)
    for attempt in _ATTEMPTS:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_iter = 300
        settings.tol_gap_abs = settings.tol_gap_rel = tolerance
        settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = _STUCK * tolerance
        # The residual of the equations bounds the violation of the constraints.
        settings.tol_feas, settings.reduced_tol_feas = 0.1 * tolerance, 0.1 * _STUCK * tolerance
        settings.presolve_enable = settings.chordal_decomposition_enable = False
        for name, value in attempt.items():
            setattr(settings, name, value)
        work = clarabel.DefaultSolver(P, q, A, b, [c for kind, n in cones for c in make[kind](n)], settings)
        try:
            raw = work.solve()
        except BaseException as panic:  # raised by the compiled code where its eigenvalues do not converge
            if type(panic).__name__ != "PanicException":
                raise
            continue
        gap = abs(raw.obj_val - raw.obj_val_dual) / max(1.0, abs(raw.obj_val))
        status = str(raw.status)
        if status in ("Solved", "PrimalInfeasible", "DualInfeasible"):
            found = raw
            break
        # Among attempts that ended early, the most accurate one is kept.
        rank = (0, gap) if status == "AlmostSolved" else (1 if status.startswith("Almost") else 2, 0.0)
        if found is None or rank < best:
            found, best = raw, rank
        if status == "AlmostSolved" and gap <= _CLOSE * tolerance:
            break
    if found is None:
        return "failed", np.zeros(len(q)), np.zeros(len(b)), 0, "NumericalError"
    message = str(found.status)
    known: dict[str, Status] = {
        "Solved": "solved",
        "AlmostSolved": "solved",
        "PrimalInfeasible": "infeasible",
        "AlmostPrimalInfeasible": "infeasible",
        "DualInfeasible": "unbounded",
        "AlmostDualInfeasible": "unbounded",
    }
    return known.get(message, "failed"), np.array(found.x), np.array(found.z), int(found.iterations), message


def _scs(
    P: sparse.csc_matrix, q: Array, A: sparse.csc_matrix, b: Array, cones: list[tuple[Cone, int]], tolerance: float
) -> RawSolution:
    """Solve by SCS."""
    try:
        import scs
    except ImportError:
        raise DynidError(
            "solver 'scs' is not installed: pip install dynid[cvx]", "solver", code="missing_package"
        ) from None
    order, start = np.arange(A.shape[0]), 0
    sizes: dict[Cone, list[int]] = {cone: [] for cone in _ORDER}
    for kind, count in cones:
        if kind == "psd":
            # SCS expects the lower triangle by columns, which is the upper triangle by rows.
            rows, columns, _ = svec_indices(order_of(count))
            order[start : start + count] = start + np.lexsort((columns, rows))
        sizes[kind].append(count)
        start += count
    cone = {
        "z": sum(sizes["zero"]),
        "l": sum(sizes["nonnegative"]),
        "q": sizes["second-order"],
        "s": [order_of(n) for n in sizes["psd"]],
        "ep": sum(sizes["exponential"]) // 3,
    }
    data = {"P": P, "A": sparse.csc_matrix(A[order]), "b": b[order], "c": q}
    found = scs.SCS(
        data, cone, eps_abs=tolerance, eps_rel=tolerance, eps_infeas=tolerance, max_iters=200_000, verbose=False
    ).solve()
    message = str(found["info"]["status"])
    known: dict[str, Status] = {"solved": "solved", "infeasible": "infeasible", "unbounded": "unbounded"}
    dual = np.empty(A.shape[0])
    dual[order] = found["y"]
    return known.get(message, "failed"), np.asarray(found["x"]), dual, int(found["info"]["iter"]), message


SOLVERS: dict[str, Callable[..., RawSolution]] = {"clarabel": _clarabel, "scs": _scs}
