"""Parameters that cannot be inconsistent: squares and triangular factors (Ting 2006, Nakanishi 2008).

Each link has ten unknowns: m = a^2, centre of mass r, and a lower triangular C with the tensor C C' about the centre of
mass. A drive parameter with a sign is a square. First the rows are fitted without constraints, then the unknowns are
fitted to that in the metric of the rows. The second problem is not convex: it may end in a local minimum, and at the
boundary, where an unknown is zero, the slope vanishes.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from threadpoolctl import threadpool_limits

from dynid.errors import DataError
from dynid.feasibility.baselines.base_rows import physical_of, tensor_of
from dynid.feasibility.baselines.result import BaselineFit, body_columns, checked_problem, signed_columns
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import TENSOR_INDEX, inertia_from_com
from dynid.robot.inertia_slopes import com_jacobian
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["reparametrized_fit"]

Array = NDArray[np.float64]

# The lower triangle of C, row by row.
_TRIANGLE = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
# The least that a start has of a mass, a sign and a principal inertia, in units of the typical size: off the boundary.
_LEAST = 1e-6
_TOLERANCE = 1e-12


def reparametrized_fit(
    robot: Robot, R: ArrayLike, z: ArrayLike, *, start: ArrayLike | None = None, max_iterations: int = 300
) -> BaselineFit:
    """Least squares over unknowns whose bodies are always "semi"-consistent (Ting 2006, Nakanishi 2008).

    Parameters
    ----------
    robot : Robot
        The robot.
    R : array_like, shape (k, p)
        Rows over the standard parameters, divided by the noise: a regressor, or its triangular factor.
    z : array_like, shape (k,)
        Their targets.
    start : array_like, shape (p,), optional
        Standard parameters to start from, "semi"-consistent or nearly so; `robot.parameters` if not given. The result
        depends on it.
    max_iterations : int
        Largest number of evaluations.

    Returns
    -------
    BaselineFit
        Its bodies and signs are consistent by construction, with no margin.

    Raises
    ------
    DataError
        For wrong shapes.

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility.baselines import reparametrized_fit
    >>> from dynid.parameters.base import random_states
    >>> robot = dynid.load_robot("box2")
    >>> rows = dynid.regressor(robot, *random_states(robot, 50, 0)).reshape(-1, len(robot.layout))
    >>> found = reparametrized_fit(robot, rows, rows @ robot.parameters, start=1.3 * robot.parameters)
    >>> found.converged, found.cost < 1e-9
    (True, True)
    """
    started = time.perf_counter()
    rows, target = checked_problem(robot, R, z)
    pi = robot.parameters if start is None else checked(start, (rows.shape[1],), "start", DataError)
    bodies, signed, scale = body_columns(robot), signed_columns(robot), feasible_set(robot).scale
    # The unconstrained fit, of which only the image under the rows matters.
    wanted = rows @ (scale * np.linalg.lstsq(rows * scale, target, rcond=None)[0])

    def misfit(theta: Array) -> Array:
        return np.asarray(rows @ _standard(theta, bodies, signed) - wanted)

    def slope(theta: Array) -> Array:
        out = np.array(rows)
        for c in bodies:
            out[:, c : c + 10] = rows[:, c : c + 10] @ _body_slope(theta[c : c + 10])
        out[:, signed] *= 2.0 * theta[signed]
        return out

    with threadpool_limits(1, "blas"):  # more threads slow down small matrices
        found = optimize.least_squares(
            misfit,
            _first(pi, bodies, signed, scale),
            slope,
            x_scale="jac",
            ftol=_TOLERANCE,
            xtol=_TOLERANCE,
            gtol=_TOLERANCE,
            max_nfev=max_iterations,
        )
    out = _standard(found.x, bodies, signed)
    cost = 0.5 * float(np.sum((rows @ out - target) ** 2))
    seconds = time.perf_counter() - started
    return BaselineFit(out, cost, bool(found.status > 0), int(found.nfev), seconds, str(found.message))


def _first(pi: Array, bodies: list[int], signed: list[int], scale: Array) -> Array:
    """Unknowns (p,) of standard parameters, moved off the boundary."""
    pi = np.array(pi)
    for c in bodies:
        pi[c] = max(pi[c], _LEAST * scale[c])
    theta = physical_of(pi, bodies)
    for c in bodies:
        theta[c] = np.sqrt(theta[c])
        sizes, vectors = np.linalg.eigh(tensor_of(theta[c + 4 : c + 10]))
        factor = np.linalg.cholesky((vectors * np.maximum(sizes, _LEAST * scale[c + 4])) @ vectors.T)
        theta[c + 4 : c + 10] = [factor[i, j] for i, j in _TRIANGLE]
    theta[signed] = np.sqrt(np.maximum(pi[signed], _LEAST * scale[signed]))
    return theta


def _factor(entries: Array) -> Array:
    """The lower triangular matrix (3, 3) of its six entries."""
    out = np.zeros((3, 3))
    for value, (i, j) in zip(entries, _TRIANGLE, strict=True):
        out[i, j] = value
    return out


def _standard(theta: Array, bodies: list[int], signed: list[int]) -> Array:
    """Standard parameters (p,) of unknowns."""
    out = np.array(theta)
    for c in bodies:
        factor = _factor(theta[c + 4 : c + 10])
        out[c : c + 10] = inertia_from_com(theta[c] ** 2, theta[c + 1 : c + 4], factor @ factor.T)
    out[signed] = theta[signed] ** 2
    return out


def _body_slope(theta: Array) -> Array:
    """Jacobian (10, 10) of a link's standard parameters with respect to its unknowns."""
    factor = _factor(theta[4:])
    inner = np.eye(10)
    inner[0, 0] = 2.0 * theta[0]
    for k, (i, j) in enumerate(_TRIANGLE):
        step = np.zeros((3, 3))
        step[i, j] = 1.0
        change = step @ factor.T + factor @ step.T
        inner[4:, 4 + k] = [change[a, b] for a, b in TENSOR_INDEX]
    return com_jacobian(theta[0] ** 2, theta[1:4]) @ inner
