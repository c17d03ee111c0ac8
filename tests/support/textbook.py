"""The laws of possible bodies as the textbooks print them, for numbers and for cvxpy alike: nothing of ours in here."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import dynid

Array = NDArray[np.float64]

POSITIVE = ("Ia", "fv", "fvp", "fvn", "fc", "fcp", "fcn")


def pseudo_entries(pi: Any) -> list[list[Any]]:
    """4x4 second moments of mass (Wensing, Kim, Slotine 2018) of m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    m, hx, hy, hz, ixx, ixy, iyy, ixz, iyz, izz = (pi[i] for i in range(10))
    return [
        [(iyy + izz - ixx) / 2, -ixy, -ixz, hx],
        [-ixy, (ixx + izz - iyy) / 2, -iyz, hy],
        [-ixz, -iyz, (ixx + iyy - izz) / 2, hz],
        [hx, hy, hz, m],
    ]


def spatial_entries(pi: Any) -> list[list[Any]]:
    """6x6 matrix [[L, S(l)'], [S(l), m 1]] of Sousa and Cortesao 2014: inertia about the origin first, then mass."""
    m, hx, hy, hz, ixx, ixy, iyy, ixz, iyz, izz = (pi[i] for i in range(10))
    zero = 0 * m
    return [
        [ixx, ixy, ixz, zero, hz, -hy],
        [ixy, iyy, iyz, -hz, zero, hx],
        [ixz, iyz, izz, hy, -hx, zero],
        [zero, -hz, hy, m, zero, zero],
        [hz, zero, -hx, zero, m, zero],
        [-hy, hx, zero, zero, zero, m],
    ]


def pseudo(pi: Any) -> Array:
    return np.array(pseudo_entries(pi), dtype=float)


def spatial(pi: Any) -> Array:
    return np.array(spatial_entries(pi), dtype=float)


ENTRIES = {"full": pseudo_entries, "semi": spatial_entries}


def maps(notion: str) -> Array:
    """The ten matrices (10, n, n) that the inertial numbers multiply."""
    return np.array([np.array(ENTRIES[notion](row), dtype=float) for row in np.eye(10)])


def bodies(robot: dynid.Robot) -> list[int]:
    """First column of every link."""
    return [i for i, name in enumerate(robot.parameter_names) if name.startswith("m_")]


def sizes(robot: dynid.Robot) -> list[tuple[float, float]]:
    """A-priori mass and length of every link: inertia about the origin is mass times 2/3 length squared a side."""
    out = []
    for first in bodies(robot):
        m, ixx, iyy, izz = robot.parameters[first + np.array([0, 4, 6, 9])]
        out.append((m, np.sqrt((ixx + iyy + izz) / (2 * m))))
    return out


def units(robot: dynid.Robot, notion: str) -> list[Array]:
    """What slack of each link is measured in, as a matrix."""
    out = []
    for mass, length in sizes(robot):
        square = mass * length**2
        out.append(np.diag([square] * 3 + ([mass] if notion == "full" else [mass] * 3)))
    return out


def signed(robot: dynid.Robot) -> list[int]:
    """Columns of drive parameters that cannot be negative (no coupled terms in the robots of these tests)."""
    return [i for i, p in enumerate(robot.layout) if not p.inertial and p.symbol in POSITIVE]


def slack(robot: dynid.Robot, pi: Array, notion: str = "full", margin: float = 0.0) -> float:
    """Smallest eigenvalue of all links in units of each, or the smallest signed drive parameter."""
    found = [np.inf]
    for first, unit in zip(bodies(robot), units(robot, notion), strict=True):
        root = np.sqrt(np.diag(unit))
        matrix = np.array(ENTRIES[notion](pi[first : first + 10]), dtype=float) / np.outer(root, root)
        found.append(float(np.linalg.eigvalsh(matrix)[0]) - margin)
    return min(found + [float(pi[i]) for i in signed(robot)])


def laws(robot: dynid.Robot, pi: cp.Variable, notion: str = "full", margin: float = 0.0) -> list[cp.Constraint]:
    """The same laws as cvxpy constraints on a standard vector."""
    out = []
    coefficients = maps(notion)
    size = coefficients.shape[-1]
    stacked = coefficients.reshape(10, -1).T
    for first, unit in zip(bodies(robot), units(robot, notion), strict=True):
        root = np.sqrt(np.diag(unit))
        white = np.outer(1 / root, 1 / root).ravel()
        matrix = cp.reshape((white[:, None] * stacked) @ pi[first : first + 10], (size, size), order="C")
        out.append((matrix + matrix.T) / 2 - margin * np.eye(size) >> 0)
    drives = signed(robot)
    return [*out, pi[drives] >= 0] if drives else out


def triangle(vector: Array) -> Array:
    """Symmetric matrix of the upper triangle stacked by columns, off-diagonal entries times sqrt 2."""
    n = round((np.sqrt(8 * len(vector) + 1) - 1) / 2)
    out, k = np.zeros((n, n)), 0
    for j in range(n):
        for i in range(j + 1):
            out[i, j] = out[j, i] = vector[k] if i == j else vector[k] / np.sqrt(2)
            k += 1
    return out


def best(problem: cp.Problem, solver: str) -> float:
    """Optimal value by one of cvxpy's solvers, with the tightest tolerance that it reaches; nan where it fails."""
    for tolerance in (1e-10, 1e-9, 1e-8, 1e-7):
        tight: dict[str, dict[str, Any]] = {
            "CLARABEL": {
                "tol_gap_abs": tolerance,
                "tol_gap_rel": tolerance,
                "tol_feas": tolerance,
                "max_step_fraction": 0.4,
            },
            "SCS": {"eps_abs": 10 * tolerance, "eps_rel": 10 * tolerance, "max_iters": 100_000},
            "CVXOPT": {"abstol": tolerance, "reltol": tolerance, "feastol": tolerance, "kktsolver": "robust"},
        }
        try:
            problem.solve(solver=solver, **tight[solver])
        except (cp.SolverError, ArithmeticError):  # CVXOPT divides by zero where it gets stuck
            continue
        if problem.status == "optimal":
            return float(problem.value)
    return np.nan
