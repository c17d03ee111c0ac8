"""Exact gradients of functions of the regressor, and a numerical check of gradients.

    df/dx = sum of df/dY_ij dY_ij/dx,    check: (f(x + h e) - f(x - h e)) / (2 h)

Source: Griewank and Walther, Evaluating Derivatives (2008); the kernel is `dynid.dynamics.kernels.adjoint`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import assemble
from dynid.dynamics.batch import as_batch, for_kernel, run
from dynid.dynamics.functions import custom_column, regressor
from dynid.dynamics.tree import compile_robot
from dynid.errors import InvalidShape, NotFinite
from dynid.robot.model import Robot

__all__ = ["check_gradient", "regressor_adjoint"]

Array = NDArray[np.float64]

_CUSTOM_STEP = 1e-5
_CLOSED_STEP = 1e-5  # rad or m, of central differences along the coordinates of a linkage


def regressor_adjoint(
    robot: Robot, G: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> tuple[Array, Array, Array]:
    """Gradient of sum(G * Y(q, v, a)) with respect to q, v and a, where Y is the regressor.

    With G = df/dY this is the gradient of any scalar function f of the regressor. Coulomb columns are piecewise
    constant and contribute nothing. Custom columns are differentiated by central differences, all others exactly. With
    closed loops, the motion of the passive joints is differentiated by central differences too.

    Parameters
    ----------
    robot : Robot
        The robot.
    G : array_like, shape (N, channel, p) or (channel, p)
        Weights, of the shape of the regressor.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    a : array_like, shape (N, nv) or (nv,)
        Accelerations (rad/s2 or m/s2).

    Returns
    -------
    dq, dv, da : ndarray, shape (N, nv) or (nv,)
        Gradients. For a floating base, the first six entries of dq refer to a displacement in the body frame.

    Raises
    ------
    DataError
        For arrays of the wrong shape and values that are not finite.
    """
    from dynid.dynamics.kernels import adjoint, drives

    (q, v, a), samples, single = as_batch(robot, q=q, v=v, a=a)
    weights = _checked_weights(robot, G, samples, single)
    if robot.loops:
        dq, dv, da = _closed_adjoint(robot, weights, q, v, a)
        return (dq[0], dv[0], da[0]) if single else (dq, dv, da)
    model = compile_robot(robot)
    dq, dv, da = (np.zeros((samples, robot.nv)) for _ in range(3))
    run(adjoint.regressor_adjoint, samples, (model.tree, weights, q, v, a), (dq, dv, da))
    if model.drives.kind.size:
        run(drives.drive_adjoint, samples, (model.tree, model.drives, weights, q, v, a), (dq, dv, da))
    for index, column in model.custom:
        _add_custom(robot, index, weights[:, model.tree.wrench_rows :, column], (q, v, a), (dq, dv, da))
    return (dq[0], dv[0], da[0]) if single else (dq, dv, da)


def _checked_weights(robot: Robot, G: ArrayLike, samples: int, single: bool) -> Array:
    """Weights (N, channel, p), checked for the shape of the regressor and finite values."""
    weights = for_kernel(np.asarray(G, dtype=float)[None] if single else G)
    shape = (samples, len(robot.channels), len(robot.layout))
    if weights.shape != shape:
        raise InvalidShape(f"G has shape {np.shape(G)}; the regressor has {shape[1:] if single else shape}", "G")
    if not np.all(np.isfinite(weights)):
        raise NotFinite("G has a value that is not finite", "G")
    return weights


def _closed_adjoint(robot: Robot, weights: Array, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """The adjoint of the tree, and the change of the passive motion and of N along each coordinate.

    The motion of the passive joints is linear in a and has the derivative 2 d(N v)/dq with respect to v; only its
    derivatives with respect to q are central differences.
    """
    x, tree = assemble(robot, q, v, a), robot.tree
    N, base, rows = x.jacobian, robot.nv - robot.n, len(robot.channels) - robot.n
    joints = N[:, base:, base:] @ weights[:, rows:]
    full = np.concatenate([weights[:, :rows], joints], axis=1)
    gq, gv, ga = regressor_adjoint(tree, full, x.q, x.v, x.a)
    dq, dv, da = (np.einsum("nij,ni->nj", N, g) for g in (gq, gv, ga))
    passive = [rows + robot.tree_coordinates.index(name) for name in robot.passive]
    power = regressor(tree, x.q, x.v, x.a)[:, passive] @ np.swapaxes(weights[:, rows:], 1, 2)
    for j in range(robot.n):
        step = np.zeros(robot.nq)
        step[robot.nq - robot.n + j] = _CLOSED_STEP
        up, down = assemble(robot, q + step, v, a), assemble(robot, q - step, v, a)
        slope_v, slope_a = (up.v - down.v) / (2 * _CLOSED_STEP), (up.a - down.a) / (2 * _CLOSED_STEP)
        dq[:, base + j] += np.sum(gv * slope_v + ga * slope_a, axis=1)
        dq[:, base + j] += np.sum(power * (up.slopes - down.slopes), axis=(1, 2)) / (2 * _CLOSED_STEP)
        dv[:, base + j] += np.sum(ga * 2.0 * slope_v, axis=1)
    return dq, dv, da


def _add_custom(
    robot: Robot, index: int, weight: Array, state: tuple[Array, Array, Array], out: tuple[Array, Array, Array]
) -> None:
    """Add the gradient of a custom column, by central differences."""
    for which in range(3):
        first = (robot.nq if which == 0 else robot.nv) - robot.n
        for j in range(robot.n):
            side = []
            for sign in (1.0, -1.0):
                moved = [x.copy() for x in state]
                moved[which][:, first + j] += sign * _CUSTOM_STEP
                side.append(custom_column(robot, index, *moved))
            slope = np.sum(weight * (side[0] - side[1]), axis=1) / (2 * _CUSTOM_STEP)
            out[which][:, robot.nv - robot.n + j] += slope


def check_gradient(
    function: Callable[[Array], float], gradient: ArrayLike, x: ArrayLike, *, step: float = 1e-6
) -> float:
    """Largest difference between a gradient and central differences, relative to the largest gradient entry.

    Parameters
    ----------
    function : callable
        Scalar function of an array of the shape of `x`.
    gradient : array_like
        Gradient to check, of the shape of `x`.
    x : array_like
        Point of evaluation.
    step : float
        Step of the central differences, relative to the larger of 1 and the magnitude of each entry of `x`.

    Returns
    -------
    float
        Relative error, about 1e-8 for a correct gradient.

    Raises
    ------
    DataError
        If gradient and point differ in shape.

    Examples
    --------
    >>> import numpy as np
    >>> from dynid.dynamics import check_gradient
    >>> check_gradient(lambda x: float(np.sum(x**2)), [2.0, 4.0], [1.0, 2.0]) < 1e-8
    True
    """
    x, gradient = np.array(x, dtype=float), np.asarray(gradient, dtype=float)
    if gradient.shape != x.shape:
        raise InvalidShape(f"the gradient has shape {gradient.shape}, the point has shape {x.shape}", "gradient")
    numeric = np.empty_like(x)
    for i in np.ndindex(x.shape):
        at = x[i]
        h = step * max(1.0, abs(float(at)))
        x[i] = at + h
        up = function(x)
        x[i] = at - h
        down = function(x)
        x[i] = at
        numeric[i] = (up - down) / (2 * h)
    scale = max(float(np.abs(numeric).max(initial=0.0)), float(np.abs(gradient).max(initial=0.0)), 1e-12)
    return float(np.abs(numeric - gradient).max(initial=0.0)) / scale
