"""Exact gradients of functions of the regressor, and a check for gradients written by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch, for_kernel, run
from dynid.dynamics.functions import custom_column
from dynid.dynamics.tree import compile_robot
from dynid.errors import DataError
from dynid.robot.model import Robot

__all__ = ["check_gradient", "regressor_adjoint"]

Array = NDArray[np.float64]

_CUSTOM_STEP = 1e-5


def regressor_adjoint(
    robot: Robot, G: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> tuple[Array, Array, Array]:
    """Gradient of sum(G * Y(q, v, a)) with respect to q, v and a, each (N, nv).

    G has the shape of the regressor, (N, channel, parameter). With f any scalar function of Y and
    G = df/dY this is the gradient of f. For a floating base the first six entries of the gradient
    over q belong to a displacement in the body frame. Coulomb columns are steps and add nothing;
    a user's own columns are differentiated by central differences, all others exactly.
    """
    from dynid.dynamics.kernels import adjoint, drives

    (q, v, a), samples, single = as_batch(robot, q=q, v=v, a=a)
    weights = for_kernel(np.asarray(G, dtype=float)[None] if single else G)
    shape = (samples, len(robot.channels), len(robot.layout))
    if weights.shape != shape:
        raise DataError(f"G has shape {np.shape(G)}; the regressor has {shape[1:] if single else shape}")
    if not np.all(np.isfinite(weights)):
        raise DataError("G holds a value that is not finite")
    model = compile_robot(robot)
    dq, dv, da = (np.zeros((samples, robot.nv)) for _ in range(3))
    run(adjoint.regressor_adjoint, samples, (model.tree, weights, q, v, a), (dq, dv, da))
    if model.drives.kind.size:
        run(drives.drive_adjoint, samples, (model.tree, model.drives, weights, q, v, a), (dq, dv, da))
    for index, column in model.custom:
        _add_custom(robot, index, weights[:, model.tree.wrench_rows :, column], (q, v, a), (dq, dv, da))
    return (dq[0], dv[0], da[0]) if single else (dq, dv, da)


def _add_custom(
    robot: Robot, index: int, weight: Array, state: tuple[Array, Array, Array], out: tuple[Array, Array, Array]
) -> None:
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


def check_gradient(function: Callable[[Array], float], gradient: ArrayLike, x: ArrayLike, step: float = 1e-6) -> float:
    """Largest difference between `gradient` and central differences of `function` at x, relative to the gradient.

    >>> import numpy as np
    >>> check_gradient(lambda x: float(np.sum(x**2)), [2.0, 4.0], [1.0, 2.0]) < 1e-8
    True
    """
    x, gradient = np.array(x, dtype=float), np.asarray(gradient, dtype=float)
    if gradient.shape != x.shape:
        raise DataError(f"gradient has shape {gradient.shape}, the point {x.shape}")
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
