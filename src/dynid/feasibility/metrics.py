"""Distances from a prior that a cone program can minimise.

- euclidean: every parameter in its own unit, by default its typical size.
- pullback: the constant-pullback metric, which measures the pseudo-inertia of each link relative to that of the prior
  and does not depend on coordinates.
- entropic: the divergence of the pseudo-inertias, which agrees with the former for small changes and keeps links inside
  their cone.

With the pseudo-inertias P of a link and P0 = L0 L0' of its prior:

    pullback: |L0^-1 (P - P0) L0^-T|^2 / 2,    entropic: tr(P0^-1 P) - log det(P0^-1 P) - 4,
    euclidean: |(pi - prior) / scale|^2 / 2.

Sources: Lee and Park, A Geometric Algorithm for Robust Multibody Inertial Parameter Identification (2018), and Lee,
Wensing and Park, Geometric Robot Dynamic Identification: A Convex Programming Approach (2020). The cone of the
logarithm of a determinant is that of the MOSEK Modeling Cookbook.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import Infeasible, UnknownName, named
from dynid.feasibility.cone import Block, ConeProgram, svec
from dynid.feasibility.constraints import Signs
from dynid.feasibility.sets import FeasibleSet
from dynid.robot.inertia import inertia_to_pseudo
from dynid.robot.model import Robot

__all__ = [
    "METRICS",
    "Metric",
    "add_distance",
    "distance",
    "hessian_rows",
    "local_rows",
    "quadratic_rows",
    "signed_columns",
]

Array = NDArray[np.float64]
Metric = Literal["euclidean", "pullback", "entropic"]
METRICS = ("euclidean", "pullback", "entropic")


def distance(robot: Robot, parameters: Array, prior: Array, metric: Metric, scale: Array) -> float:
    """Distance of standard parameters from a prior.

    Parameters
    ----------
    robot : Robot
        The robot.
    parameters, prior : ndarray, shape (p,)
        Standard parameters, SI units.
    metric : {"euclidean", "pullback", "entropic"}
        Distance.
    scale : ndarray, shape (p,)
        Units of the parameters that are measured by their difference: all of them for "euclidean", drive parameters
        otherwise.

    Returns
    -------
    float
        Half a sum of squares, or the divergence, which is infinite for parameters that are not feasible.

    Raises
    ------
    DataError
        For an unknown metric, or a prior that is not physically consistent.
    """
    rows, target = quadratic_rows(robot, prior, metric, scale)
    value = 0.5 * float(np.sum((rows @ parameters - target) ** 2))
    if metric == "entropic":
        ratios = []
        for first in _bodies(robot):
            root = _root(robot, prior, first)
            white = np.linalg.solve(root, np.linalg.solve(root, inertia_to_pseudo(parameters[first : first + 10])).T)
            ratios.append(np.linalg.eigvalsh(white))
        for ratio in ratios:
            value += float(np.sum(ratio - np.log(ratio) - 1.0)) if np.all(ratio > 0) else np.inf
    return value


def local_rows(robot: Robot, parameters: Array, prior: Array, metric: Metric, scale: Array) -> tuple[Array, Array]:
    """Rows S (k, p) and residual e (k,) at feasible parameters: S'e is the gradient, S'S the Hessian of the distance.

    For the divergence of a body P = L L' from P0, e is L' P0^-1 L - 1 and a row of S the change of L^-1 P L^-T.
    """
    rows, target = quadratic_rows(robot, prior, metric, scale)
    residual = rows @ parameters - target
    if metric != "entropic":
        return rows, residual
    bodies = _bodies(robot)
    parts, rest = [rows], [residual]
    pseudo = inertia_to_pseudo(np.eye(10))
    for first in bodies:
        root = np.linalg.cholesky(inertia_to_pseudo(parameters[first : first + 10]))
        inverse = np.linalg.inv(root)
        part = np.zeros((10, len(prior)))
        part[:, first : first + 10] = svec(inverse @ pseudo @ inverse.T).T
        parts.append(part)
        half = np.linalg.solve(_root(robot, prior, first), root)
        rest.append(svec(half.T @ half - np.eye(4)))
    return np.vstack(parts), np.concatenate(rest)


def hessian_rows(
    feasible: FeasibleSet, parameters: Array, prior: Array, metric: Metric, scale: Array | None = None
) -> Array:
    """Rows (k, p) whose Gram matrix is the Hessian of the distance at a standard vector."""
    units = feasible.scale[: feasible.size] if scale is None else scale
    return local_rows(feasible.robot, parameters, prior, metric, units)[0]


def add_distance(
    program: ConeProgram,
    feasible: FeasibleSet,
    prior: Array,
    metric: Metric,
    weight: float = 1.0,
    scale: Array | None = None,
) -> None:
    """Add weight times the distance from the prior to the objective; `scale` is the typical size if not given."""
    robot = feasible.robot
    rows, target = quadratic_rows(robot, prior, metric, feasible.scale[: feasible.size] if scale is None else scale)
    program.minimise_squares(np.sqrt(weight) * rows, np.sqrt(weight) * target)
    if metric != "entropic":
        return
    pseudo = inertia_to_pseudo(np.eye(10))
    for first in _bodies(robot):
        inverse = np.linalg.inv(_root(robot, prior, first))
        white = inverse @ pseudo @ inverse.T
        add_divergence(program, white, range(first, first + 10), weight)


def add_divergence(program: ConeProgram, coefficients: Array, columns: range | list[int], weight: float) -> None:
    """Add weight * (tr(P) - log det P), P = sum of coefficients (k, n, n) times the unknowns of k columns.

    log det P is bounded below by sum log z_i, with Z lower triangular, diagonal z, and [[P, Z], [Z', diag(z)]]
    positive semidefinite.
    """
    size = coefficients.shape[-1]
    lower = np.tril_indices(size)
    triangle = program.more(len(lower[0]))
    logs = program.more(size)
    both = np.zeros((len(columns) + len(triangle), 2 * size, 2 * size))
    both[: len(columns), :size, :size] = coefficients
    for k, (i, j) in enumerate(zip(*lower, strict=True), start=len(columns)):
        both[k, i, size + j] = both[k, size + j, i] = 1.0
        if i == j:
            both[k, size + i, size + i] = 1.0
    matrix = _widened(svec(both).T, [*columns, *triangle], program.unknowns)
    program.require(Block("psd", matrix, np.zeros(matrix.shape[0]), "log-determinant"))
    diagonal = [triangle[k] for k, (i, j) in enumerate(zip(*lower, strict=True)) if i == j]
    rows = np.zeros((3 * size, 2 * size))
    constant = np.zeros(3 * size)
    for k in range(size):
        rows[3 * k, k], constant[3 * k + 1], rows[3 * k + 2, size + k] = 1.0, 1.0, 1.0
    program.require(Block("exponential", _widened(rows, [*logs, *diagonal], program.unknowns), constant, "logarithm"))
    cost = np.zeros(program.unknowns)
    cost[list(columns)] = weight * np.trace(coefficients, axis1=1, axis2=2)
    cost[list(logs)] = -weight
    program.minimise_linear(cost)


def _widened(rows: Array, columns: list[int], width: int) -> sparse.csr_array:
    """Rows as a sparse matrix with `width` columns."""
    row, local = np.nonzero(rows)
    return sparse.csr_array((rows[row, local], (row, np.array(columns)[local])), shape=(len(rows), width))


def quadratic_rows(robot: Robot, prior: Array, metric: Metric, scale: Array) -> tuple[Array, Array]:
    """Rows and targets of the quadratic part of a distance."""
    if metric not in METRICS:
        raise UnknownName(f"{named('metric')} '{metric}' is unknown: use {', '.join(METRICS)}")
    p = len(prior)
    if metric == "euclidean":
        return np.diag(1.0 / scale), prior / scale
    free = np.ones(p, dtype=bool)
    rows: list[Array] = []
    if metric == "pullback":
        pseudo = inertia_to_pseudo(np.eye(10))
        for first in _bodies(robot):
            inverse = np.linalg.inv(_root(robot, prior, first))
            part = np.zeros((10, p))
            part[:, first : first + 10] = svec(inverse @ pseudo @ inverse.T).T
            rows.append(part)
    for first in _bodies(robot):
        free[first : first + 10] = False
    # Drive parameters are measured by their difference: their a-priori values are often guesses, or zero.
    rows.append(np.diag(1.0 / scale)[free])
    stacked = np.vstack(rows)
    return stacked, stacked @ prior


def _bodies(robot: Robot) -> list[int]:
    """First column of every link."""
    return [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]


def signed_columns(robot: Robot) -> list[int]:
    """Columns of drive parameters that must not be negative."""
    return sorted(int(b.matrix.indices[0]) for b in Signs().blocks(robot) if b.cone == "nonnegative")


def _root(robot: Robot, prior: Array, first: int) -> Array:
    """Cholesky factor of the prior pseudo-inertia of the link whose block begins at `first`."""
    try:
        return np.asarray(np.linalg.cholesky(inertia_to_pseudo(prior[first : first + 10])))
    except np.linalg.LinAlgError:
        owner = robot.layout[first].owner
        raise Infeasible(
            f"the prior of '{owner}' is not physically consistent; give one that is, or use metric 'euclidean'", "prior"
        ) from None
