"""Dynamics of robots with closed loops: the tree's dynamics on the assembled motion, projected on the coordinates.

With N = d(tree)/d(coordinates): torque = N' torque_tree, M = N' M_tree N, and the tree accelerates by N a + (dN/dt) v.
Every function has the signature and the meaning of the function of the same name in `dynid.dynamics`.

The Coriolis matrix is N' (M_tree dN/dt + C_tree N).

Source: Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 8 (closed-loop systems).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import Assembly, assemble, projected
from dynid.dynamics.batch import as_batch, run
from dynid.errors import DynidError
from dynid.robot.model import Robot

Array = NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])

_CHUNK = 1024  # samples
_STEP = 1e-5  # rad or m, of central differences


def with_loops(function: F) -> F:
    """A function of a robot that calls its namesake in this module for robots with closed loops."""

    @wraps(function)
    def call(robot: Robot, *args: Any, **options: Any) -> Any:
        if not robot.loops:
            return function(robot, *args, **options)
        return globals()[function.__name__](robot, *args, **options)

    return call  # type: ignore[return-value]


def _single(q: ArrayLike, out: Array) -> Array:
    return out[0] if np.ndim(q) == 1 else out


def regressor(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    from dynid.dynamics import functions

    x = assemble(robot, q, v, a)
    out = np.empty((len(x.q), len(robot.channels), len(robot.layout)))
    for start in range(0, len(out), _CHUNK):  # the regressor of the tree stays in the cache of the processor
        part = x.rows(slice(start, start + _CHUNK))
        out[start : start + _CHUNK] = projected(part, functions.regressor(robot.tree, part.q, part.v, part.a))
    return _single(q, out)


def inverse_dynamics(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, parameters: ArrayLike | None = None
) -> Array:
    from dynid.dynamics import functions

    x = assemble(robot, q, v, a)
    return _single(q, projected(x, functions.inverse_dynamics(robot.tree, x.q, x.v, x.a, parameters)))


def mass_matrix(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    return _single(q, _mass(assemble(robot, q), parameters))


def _mass(x: Assembly, parameters: ArrayLike | None) -> Array:
    from dynid.dynamics import functions

    N = x.jacobian
    return np.asarray(np.swapaxes(N, 1, 2) @ functions.mass_matrix(x.robot.tree, x.q, parameters) @ N)


def forward_dynamics(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, parameters: ArrayLike | None = None
) -> Array:
    from dynid.dynamics import functions
    from dynid.dynamics.kernels import forward

    _, samples, _ = as_batch(robot, q=q, v=v, tau=tau)
    x = assemble(robot, q, v)
    bias = projected(x, functions.inverse_dynamics(robot.tree, x.q, x.v, x.a, parameters))
    out = np.atleast_2d(np.asarray(tau, dtype=float)) - bias[:, bias.shape[1] - robot.nv :]
    for failed in run(forward.solve, samples, (_mass(x, parameters),), (out,)):
        if failed >= 0:
            raise DynidError(
                f"the mass matrix of '{robot.name}' is not positive definite at sample {failed}: its parameters are "
                "not physically consistent",
                code="infeasible",
            )
    return _single(q, out)


def gravity_torque(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    from dynid.dynamics import functions

    x = assemble(robot, q)
    return _single(q, projected(x, functions.gravity_torque(robot.tree, x.q, parameters)))


def coriolis_torque(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """With the rotors of passive joints: their velocities are not proportional to those of the coordinates."""
    from dynid.dynamics import functions

    x, tree = assemble(robot, q, v), robot.tree
    zero = np.zeros_like(x.v)
    turning = functions.inverse_dynamics(tree, x.q, zero, x.a, parameters)
    turning -= functions.inverse_dynamics(tree, x.q, zero, zero, parameters)
    return _single(q, projected(x, functions.coriolis_torque(tree, x.q, x.v, parameters) + turning))


def bias_torque(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    return coriolis_torque(robot, q, v, parameters) + gravity_torque(robot, q, parameters)


def coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """N' (M dN/dt + C N)."""
    from dynid.dynamics import functions

    (q_all, v_all), _, _ = as_batch(robot, q=q, v=v)
    x, tree = assemble(robot, q_all, v_all), robot.tree
    N = x.jacobian
    M = functions.mass_matrix(tree, x.q, parameters)
    C = functions.coriolis_matrix(tree, x.q, x.v, parameters)
    return _single(q, np.asarray(np.swapaxes(N, 1, 2) @ (M @ jacobian_rate(robot, q_all, v_all) + C @ N)))


def jacobian_rate(robot: Robot, q: Array, v: Array) -> Array:
    """dN/dt (N, nv of the tree, nv) for q (N, nq), v (N, nv).

    dN/dt v is quadratic in v and the derivative of N is symmetric, so that column j is (g(v + e_j) - g(v - e_j)) / 4
    with g(v) = (dN/dt) v, exactly.
    """
    out = np.zeros((len(q), robot.tree.nv, robot.nv))
    for j in range(robot.nv - robot.n, robot.nv):
        unit = np.eye(robot.nv)[j]
        out[:, :, j] = 0.25 * (assemble(robot, q, v + unit).a - assemble(robot, q, v - unit).a)
    return out


def kinetic_energy_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    from dynid.dynamics import functions

    x = assemble(robot, q, v)
    return _single(q, functions.kinetic_energy_regressor(robot.tree, x.q, x.v))


def potential_energy_regressor(robot: Robot, q: ArrayLike) -> Array:
    from dynid.dynamics import functions

    x = assemble(robot, q)
    return _single(q, functions.potential_energy_regressor(robot.tree, x.q))


def center_of_mass(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    from dynid.dynamics import centroidal

    return _single(q, centroidal.center_of_mass(robot.tree, assemble(robot, q).q, parameters))


def momentum(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None, **options: Any) -> Array:
    from dynid.dynamics import centroidal

    x = assemble(robot, q, v)
    return _single(q, centroidal.momentum(robot.tree, x.q, x.v, parameters, **options))


def frame_placement(robot: Robot, q: ArrayLike, frame: str) -> Array:
    from dynid.dynamics import frames

    return _single(q, frames.frame_placement(robot.tree, assemble(robot, q).q, frame))


def placement_in_base(robot: Robot, q: Array, frame: str) -> Array:
    from dynid.dynamics import frames

    return frames.placement_in_base(robot.tree, assemble(robot, q).q, frame)


def frame_jacobian(robot: Robot, q: ArrayLike, frame: str, **options: Any) -> Array:
    from dynid.dynamics import frames

    x = assemble(robot, q)
    return _single(q, np.asarray(frames.frame_jacobian(robot.tree, x.q, frame, **options) @ x.jacobian))


def frame_drift(robot: Robot, q: ArrayLike, v: ArrayLike, frame: str) -> Array:
    from dynid.dynamics import frames

    x = assemble(robot, q, v)
    drift = frames.frame_drift(robot.tree, x.q, x.v, frame)
    turned = frames.frame_jacobian(robot.tree, x.q, frame) @ x.a[:, :, None]
    return _single(q, np.asarray(drift + turned[:, :, 0]))


def regressor_adjoint(
    robot: Robot, G: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> tuple[Array, Array, Array]:
    """The adjoint of the tree, and the change of the passive motion and of N along each coordinate.

    The motion of the passive joints is linear in a and has the derivative 2 d(N v)/dq with respect to v; only its
    derivatives with respect to q are central differences.
    """
    from dynid.dynamics import functions, gradient

    (q, v, a), samples, single = as_batch(robot, q=q, v=v, a=a)
    weights = gradient.checked_weights(robot, G, samples, single)
    x, tree = assemble(robot, q, v, a), robot.tree
    N, base, rows = x.jacobian, robot.nv - robot.n, len(robot.channels) - robot.n
    joints = N[:, base:, base:] @ weights[:, rows:]
    full = np.concatenate([weights[:, :rows], joints], axis=1)
    gq, gv, ga = gradient.regressor_adjoint(tree, full, x.q, x.v, x.a)
    dq, dv, da = (np.einsum("nij,ni->nj", N, g) for g in (gq, gv, ga))
    passive = [rows + robot.tree_coordinates.index(name) for name in robot.passive]
    power = functions.regressor(tree, x.q, x.v, x.a)[:, passive] @ np.swapaxes(weights[:, rows:], 1, 2)
    for j in range(robot.n):
        step = np.zeros(robot.nq)
        step[robot.nq - robot.n + j] = _STEP
        up, down = assemble(robot, q + step, v, a), assemble(robot, q - step, v, a)
        slope_v, slope_a = (up.v - down.v) / (2 * _STEP), (up.a - down.a) / (2 * _STEP)
        dq[:, base + j] += np.sum(gv * slope_v + ga * slope_a, axis=1)
        dq[:, base + j] += np.sum(power * (up.slopes - down.slopes), axis=(1, 2)) / (2 * _STEP)
        dv[:, base + j] += np.sum(ga * 2.0 * slope_v, axis=1)
    return (dq[0], dv[0], da[0]) if single else (dq, dv, da)
