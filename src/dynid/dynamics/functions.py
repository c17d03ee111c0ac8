"""Dynamics over batches of samples: the robot first, then q, v, a as (N, nq), (N, nv), (N, nv).

A floating base comes first: position and quaternion (x, y, z, w) in q, the body-frame twist (linear,
angular) in v, its rate in a, as in Pinocchio. One sample may be given without its first axis, and the
result then has none either.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch, as_parameters, run
from dynid.dynamics.tree import Compiled, compile_robot
from dynid.errors import DataError, DynidError
from dynid.robot.model import Robot

__all__ = [
    "bias_torque",
    "coriolis_matrix",
    "coriolis_torque",
    "forward_dynamics",
    "gravity_torque",
    "inverse_dynamics",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "mass_matrix",
    "potential_energy",
    "potential_energy_regressor",
    "regressor",
]

Array = NDArray[np.float64]

_FIXED: WeakKeyDictionary[Robot, Robot] = WeakKeyDictionary()


def regressor(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Y (N, channel, parameter) with torque = Y pi, all drive columns included.

    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.regressor(robot, [0.1, 0.2], [1.0, -1.0], [0.0, 2.0]).shape
    (2, 28)
    """
    from dynid.dynamics.kernels import drives
    from dynid.dynamics.kernels import regressor as rigid

    (q, v, a), samples, single = as_batch(robot, q=q, v=v, a=a)
    model = compile_robot(robot)
    out = np.zeros((samples, len(robot.channels), len(robot.layout)))
    run(rigid.regressor, samples, (model.tree, q, v, a), (out,))
    if model.drives.kind.size:
        run(drives.drive_regressor, samples, (model.tree, model.drives, q, v, a), (out,))
    for index, column in model.custom:
        out[:, model.tree.wrench_rows :, column] = custom_column(robot, index, q, v, a)
    return out[0] if single else out


def inverse_dynamics(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, parameters: ArrayLike | None = None
) -> Array:
    """Torque of every channel (N, channel) for the motion, drives included.

    `parameters` (p,) replaces the robot's own standard vector.
    """
    (q, v, a), _, single = as_batch(robot, q=q, v=v, a=a)
    tau = _rigid(robot, q, v, a, parameters)
    _add_drives(robot, q, v, a, as_parameters(robot, parameters), tau)
    return tau[0] if single else tau


def mass_matrix(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Mass matrix (N, nv, nv), rotor inertias included."""
    from dynid.dynamics.kernels import mass

    (q,), samples, single = as_batch(robot, q=q)
    robot, pi = _motion_model(robot, parameters)
    model = compile_robot(robot)
    out = np.empty((samples, robot.nv, robot.nv))
    values = pi[model.drive_columns]
    run(mass.mass_matrix, samples, (model.tree, model.inertias(robot, pi), model.drives, values, q), (out,))
    first = robot.nv - robot.n
    for index, column in model.custom:
        out[:, first:, first:] += pi[column] * _custom_inertia(robot, index, q)
    return out[0] if single else out


def forward_dynamics(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, parameters: ArrayLike | None = None
) -> Array:
    """Acceleration (N, nv) under the torques tau (N, nv), friction and all drives included.

    Raises where a mass matrix is not positive definite: such a model cannot move.
    """
    from dynid.dynamics.kernels import forward

    (q, v, tau), samples, single = as_batch(robot, q=q, v=v, tau=tau)
    robot, pi = _motion_model(robot, parameters)
    model = compile_robot(robot)
    if model.custom:
        # A user's column may depend on the acceleration: assemble M and the rest, then solve.
        out = tau - inverse_dynamics(robot, q, v, np.zeros_like(v), pi)
        failures = run(forward.solve, samples, (mass_matrix(robot, q, pi),), (out,))
    else:
        out = np.empty((samples, robot.nv))
        inertia, values = model.inertias(robot, pi), pi[model.drive_columns]
        before = (model.tree, inertia, model.drives, values, q, v, tau)
        failures = run(forward.forward_dynamics, samples, before, (out,))
    for failed in failures:
        if failed >= 0:
            raise _not_positive(robot, failed)
    return out[0] if single else out


def gravity_torque(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Torque of every channel (N, channel) that holds the robot still against gravity, without drives."""
    (q,), samples, single = as_batch(robot, q=q)
    zero = np.zeros((samples, robot.nv))
    tau = _rigid(robot, q, zero, zero, parameters)
    return tau[0] if single else tau


def coriolis_torque(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Centrifugal and Coriolis torque C(q, v) v of every channel (N, channel)."""
    (q, v), _, single = as_batch(robot, q=q, v=v)
    tau = _rigid(robot, q, v, np.zeros_like(v), parameters, gravity=False)
    return tau[0] if single else tau


def bias_torque(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Coriolis and gravity torque together (N, channel): inverse dynamics without acceleration and drives."""
    (q, v), _, single = as_batch(robot, q=q, v=v)
    tau = _rigid(robot, q, v, np.zeros_like(v), parameters)
    return tau[0] if single else tau


def coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """C (N, nv, nv) with C v the Coriolis torque and dM/dt = C + C' (so dM/dt - 2 C is skew)."""
    from dynid.dynamics.kernels import coriolis

    (q, v), samples, single = as_batch(robot, q=q, v=v)
    robot, pi = _motion_model(robot, parameters)
    model = compile_robot(robot)
    out = np.empty((samples, robot.nv, robot.nv))
    run(coriolis.coriolis_matrix, samples, (model.tree, model.inertias(robot, pi), q, v), (out,))
    return out[0] if single else out


def kinetic_energy_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Coefficients (N, p) of the standard parameters in the kinetic energy, rotors included."""
    return _energies(robot, q, v)[0]


def potential_energy_regressor(robot: Robot, q: ArrayLike) -> Array:
    """Coefficients (N, p) of the standard parameters in the potential energy (gravity and springs)."""
    shape = np.shape(q)[:-1]
    return _energies(robot, q, np.zeros((*shape, robot.nv)))[1]


def kinetic_energy(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Kinetic energy (N,) in J, rotors included."""
    return kinetic_energy_regressor(robot, q, v) @ as_parameters(robot, parameters)


def potential_energy(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Potential energy (N,) in J, zero for a mass at the base origin (floating base: at the world origin)."""
    return potential_energy_regressor(robot, q) @ as_parameters(robot, parameters)


def custom_column(robot: Robot, index: int, q: Array, v: Array, a: Array) -> Array:
    """The checked column (N, n) of the user's term robot.drives[index]."""
    term = robot.drives[index]
    assert term.function is not None
    first_q, first_v = robot.nq - robot.n, robot.nv - robot.n
    column = np.asarray(term.function(q[:, first_q:], v[:, first_v:], a[:, first_v:]), dtype=float)
    if column.shape != (len(q), robot.n) or not np.all(np.isfinite(column)):
        raise DataError(f"term '{term.name}' must give finite numbers of shape {(len(q), robot.n)}")
    return column


def _rigid(robot: Robot, q: Array, v: Array, a: Array, parameters: ArrayLike | None, gravity: bool = True) -> Array:
    """Torques of the bodies alone (N, channel)."""
    from dynid.dynamics.kernels import inverse

    model = compile_robot(robot)
    tree = model.tree if gravity else model.tree._replace(gravity=np.zeros(3))
    inertia = model.inertias(robot, as_parameters(robot, parameters))
    tau = np.zeros((len(q), len(robot.channels)))
    run(inverse.inverse_dynamics, len(q), (tree, inertia, q, v, a), (tau,))
    return tau


def _add_drives(robot: Robot, q: Array, v: Array, a: Array, pi: Array, tau: Array) -> None:
    from dynid.dynamics.kernels import drives

    model = compile_robot(robot)
    if model.drives.kind.size:
        values = pi[model.drive_columns]
        run(drives.drive_torques, len(q), (model.tree, model.drives, values, q, v, a), (tau,))
    for index, column in model.custom:
        tau[:, model.tree.wrench_rows :] += pi[column] * custom_column(robot, index, q, v, a)


def _custom_inertia(robot: Robot, index: int, q: Array) -> Array:
    """d(column)/da of a user's term, exact because it is affine in a (N, n, n)."""
    zero = np.zeros((len(q), robot.nv))
    start = custom_column(robot, index, q, zero, zero)
    out = np.empty((len(q), robot.n, robot.n))
    for j in range(robot.n):
        a = zero.copy()
        a[:, robot.nv - robot.n + j] = 1.0
        out[:, :, j] = custom_column(robot, index, q, zero, a) - start
    return out


def _motion_model(robot: Robot, parameters: ArrayLike | None) -> tuple[Robot, Array]:
    """The robot that moves and its vector: an instrumented base stands still, so it is a fixed one."""
    pi = as_parameters(robot, parameters)
    if robot.base != "instrumented":
        return robot, pi
    if robot not in _FIXED:
        _FIXED[robot] = robot.with_base("fixed")
    fixed = _FIXED[robot]
    return fixed, np.ascontiguousarray(pi[len(pi) - len(fixed.layout) :])


def _energies(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    from dynid.dynamics.kernels import drives, energy

    (q, v), samples, single = as_batch(robot, q=q, v=v)
    model: Compiled = compile_robot(robot)
    kinetic, potential = np.zeros((2, samples, len(robot.layout)))
    run(energy.energy_regressor, samples, (model.tree, q, v), (kinetic, potential))
    if model.drives.kind.size:
        run(drives.drive_energy, samples, (model.tree, model.drives, q, v), (kinetic, potential))
    return (kinetic[0], potential[0]) if single else (kinetic, potential)


def _not_positive(robot: Robot, sample: int) -> DynidError:
    return DynidError(
        f"the mass matrix of '{robot.name}' is not positive definite at sample {sample}: its parameters are not "
        "physically possible there"
    )
