"""Rigid-body dynamics with drives over batches of samples.

The arguments are the robot and q (N, nq), v (N, nv), a (N, nv). The entries of a floating base come first, as in
Pinocchio: position and quaternion (x, y, z, w) in q, the twist in the body frame (linear, angular) in v, its time
derivative in a. A single sample may be given without the first axis; the result then has none either.

Torques are in N m for revolute joints and in N for prismatic joints. The channels are those of `Robot.channels`: with a
floating or instrumented base, six rows of the base wrench come first (N and N m). Of a robot with closed loops, q, v, a
and the torques are those of the independent joints.

    torque = M(q) a + C(q, v) v + g(q) + drives(q, v, a) = Y(q, v, a) pi,    T = v' M v / 2,    g = dU/dq

of a tree. Loops: the dynamics of the tree on the assembled motion, projected. With N = d(tree)/d(coordinates),

    torque = N' torque_tree,    M = N' M_tree N,    C = N' (M_tree dN/dt + C_tree N),

and the tree accelerates by N a + (dN/dt) v.

Sources: Featherstone, Rigid Body Dynamics Algorithms (2008), chapters 5, 6 and 8 (closed-loop systems); Khalil and
Dombre, Modeling, Identification and Control of Robots (2002), for the form that is linear in pi. Each kernel names the
source of its algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import Assembly, assemble, of_given_shape, projected
from dynid.dynamics.batch import as_batch, as_parameters, run
from dynid.dynamics.tree import Compiled, compile_robot
from dynid.errors import DynidError, InvalidShape
from dynid.robot.effects import EffectColumn
from dynid.robot.elements import LineForce
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

_CHUNK = 1024  # samples of the regressor of a tree with closed loops: they stay in the cache of the processor
# Steps of a correction at most, and the share of the torque that may be left.
_CORRECTIONS, _SOLVED = 50, 1e-10
_FIXED: WeakKeyDictionary[Robot, Robot] = WeakKeyDictionary()


def regressor(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Regressor Y of the inverse dynamics: torque = Y pi, with the columns of the drive parameters.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    a : array_like, shape (N, nv) or (nv,)
        Accelerations (rad/s2 or m/s2).

    Returns
    -------
    ndarray, shape (N, channel, p) or (channel, p)
        Torque per unit of each standard parameter, in the order of `robot.layout`.

    Raises
    ------
    DataError
        For arrays of the wrong shape and values that are not finite.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.regressor(robot, [0.1, 0.2], [1.0, -1.0], [0.0, 2.0]).shape
    (2, 28)
    """
    if robot.loops:
        return of_given_shape(q, _closed_regressor(assemble(robot, q, v, a)))
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
    """Inverse dynamics: the torques of a motion, with friction, rotor inertia and all other drive terms.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    a : array_like, shape (N, nv) or (nv,)
        Accelerations (rad/s2 or m/s2).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, channel) or (channel,)
        Torques (N m or N) per channel.

    Raises
    ------
    DataError
        For arrays of the wrong shape and values that are not finite.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.inverse_dynamics(robot, [0.1, 0.2], [0.0, 0.0], [0.0, 0.0]).shape
    (2,)
    """
    if robot.loops:
        x = assemble(robot, q, v, a)
        return of_given_shape(q, projected(x, inverse_dynamics(robot.tree, x.q, x.v, x.a, parameters)))
    (q, v, a), _, single = as_batch(robot, q=q, v=v, a=a)
    tau = _rigid(robot, q, v, a, parameters)
    _add_drives(robot, q, v, a, as_parameters(robot, parameters), tau)
    return tau[0] if single else tau


def mass_matrix(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Mass matrix, with rotor inertias.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, nv, nv) or (nv, nv)
        Mass matrix M(q) in kg m2 (kg m and kg in rows and columns of prismatic joints).

    Raises
    ------
    DataError
        For arrays of the wrong shape and values that are not finite.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.mass_matrix(robot, [0.1, 0.2]).shape
    (2, 2)
    """
    if robot.loops:
        return of_given_shape(q, _closed_mass(assemble(robot, q), parameters))
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
    """Forward dynamics: the accelerations under given torques, with friction and all other drive terms.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    tau : array_like, shape (N, nv) or (nv,)
        Torques (N m or N); with a floating base, the first six entries are the external wrench on the base.
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, nv) or (nv,)
        Accelerations (rad/s2 or m/s2).

    Raises
    ------
    DataError
        For arrays of the wrong shape and values that are not finite.
    DynidError
        If a mass matrix is not positive definite, so that the acceleration is not defined.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.forward_dynamics(robot, [0.1, 0.2], [0.0, 0.0], [1.0, 0.0]).shape
    (2,)
    """
    if robot.loops:
        return of_given_shape(q, _closed_forward(robot, q, v, tau, parameters))
    from dynid.dynamics.kernels import forward

    (q, v, tau), samples, single = as_batch(robot, q=q, v=v, tau=tau)
    robot, pi = _motion_model(robot, parameters)
    model = compile_robot(robot)
    if model.custom:
        # A custom column may depend on the acceleration: assemble M and the bias, then solve.
        out = tau - inverse_dynamics(robot, q, v, np.zeros_like(v), pi)
        failures = run(forward.solve, samples, (mass_matrix(robot, q, pi),), (out,))
        if any(isinstance(robot.drives[index].function, EffectColumn) for index, _ in model.custom):
            _correct(robot, (q, v, tau), pi, out)
    else:
        out = np.empty((samples, robot.nv))
        inertia, values = model.inertias(robot, pi), pi[model.drive_columns]
        before = (model.tree, inertia, model.drives, values, q, v, tau)
        failures = run(forward.forward_dynamics, samples, before, (out,))
    _check_positive(robot, failures)
    return out[0] if single else out


def gravity_torque(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Gravity torque g(q), without drive terms such as springs.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, channel) or (channel,)
        Torques (N m or N) per channel that hold the robot against gravity.
    """
    if robot.loops:
        x = assemble(robot, q)
        return of_given_shape(q, projected(x, gravity_torque(robot.tree, x.q, parameters)))
    (q,), samples, single = as_batch(robot, q=q)
    zero = np.zeros((samples, robot.nv))
    tau = _rigid(robot, q, zero, zero, parameters)
    return tau[0] if single else tau


def coriolis_torque(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Coriolis and centrifugal torque C(q, v) v.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, channel) or (channel,)
        Torques (N m or N) per channel.
    """
    if robot.loops:
        return of_given_shape(q, _closed_coriolis_torque(assemble(robot, q, v), parameters))
    (q, v), _, single = as_batch(robot, q=q, v=v)
    tau = _rigid(robot, q, v, np.zeros_like(v), parameters, gravity=False)
    return tau[0] if single else tau


def bias_torque(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Bias torque C(q, v) v + g(q): inverse dynamics at zero acceleration, without drive terms.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, channel) or (channel,)
        Torques (N m or N) per channel.
    """
    if robot.loops:
        return coriolis_torque(robot, q, v, parameters) + gravity_torque(robot, q, parameters)
    (q, v), _, single = as_batch(robot, q=q, v=v)
    tau = _rigid(robot, q, v, np.zeros_like(v), parameters)
    return tau[0] if single else tau


def coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Coriolis matrix C with dM/dt = C + C', so that dM/dt - 2 C is skew-symmetric.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, nv, nv) or (nv, nv)
        C(q, v); C v is the Coriolis and centrifugal torque.
    """
    if robot.loops:
        return of_given_shape(q, _closed_coriolis_matrix(robot, q, v, parameters))
    from dynid.dynamics.kernels import coriolis

    (q, v), samples, single = as_batch(robot, q=q, v=v)
    robot, pi = _motion_model(robot, parameters)
    model = compile_robot(robot)
    out = np.empty((samples, robot.nv, robot.nv))
    run(coriolis.coriolis_matrix, samples, (model.tree, model.inertias(robot, pi), q, v), (out,))
    return out[0] if single else out


def kinetic_energy_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Regressor of the kinetic energy, with the rotors.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).

    Returns
    -------
    ndarray, shape (N, p) or (p,)
        Kinetic energy (J) per unit of each standard parameter.
    """
    if robot.loops:
        x = assemble(robot, q, v)
        return of_given_shape(q, kinetic_energy_regressor(robot.tree, x.q, x.v))
    return _energies(robot, q, v)[0]


def potential_energy_regressor(robot: Robot, q: ArrayLike) -> Array:
    """Regressor of the potential energy of gravity and springs.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).

    Returns
    -------
    ndarray, shape (N, p) or (p,)
        Potential energy (J) per unit of each standard parameter.
    """
    if robot.loops:
        x = assemble(robot, q)
        return of_given_shape(q, potential_energy_regressor(robot.tree, x.q))
    shape = np.shape(q)[:-1]
    return _energies(robot, q, np.zeros((*shape, robot.nv)))[1]


def kinetic_energy(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Kinetic energy, with the rotors.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N,) or ()
        Kinetic energy (J).
    """
    return kinetic_energy_regressor(robot, q, v) @ as_parameters(robot, parameters)


def potential_energy(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Potential energy of gravity and springs.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N,) or ()
        Potential energy (J), zero for a mass at the base origin (floating base: at the world origin).
    """
    return potential_energy_regressor(robot, q) @ as_parameters(robot, parameters)


def custom_column(robot: Robot, index: int, q: Array, v: Array, a: Array) -> Array:
    """Column (N, n) of the custom term robot.drives[index], checked for shape and finite values."""
    term = robot.drives[index]
    first_q, first_v = robot.nq - robot.n, robot.nv - robot.n
    column = term.column(q[:, first_q:], v[:, first_v:], a[:, first_v:])
    if column.shape != (len(q), robot.n) or not np.all(np.isfinite(column)):
        raise InvalidShape(f"term '{term.name}' must return finite numbers of shape {(len(q), robot.n)}")
    return column


def _rigid(robot: Robot, q: Array, v: Array, a: Array, parameters: ArrayLike | None, gravity: bool = True) -> Array:
    """Rigid-body torques (N, channel), without drives."""
    from dynid.dynamics.kernels import inverse

    model = compile_robot(robot)
    tree = model.tree if gravity else model.tree._replace(gravity=np.zeros(3))
    inertia = model.inertias(robot, as_parameters(robot, parameters))
    tau = np.zeros((len(q), len(robot.channels)))
    run(inverse.inverse_dynamics, len(q), (tree, inertia, q, v, a), (tau,))
    return tau


def _add_drives(robot: Robot, q: Array, v: Array, a: Array, pi: Array, tau: Array) -> None:
    """Add the torques of all drive terms to `tau`."""
    from dynid.dynamics.kernels import drives

    model = compile_robot(robot)
    if model.drives.kind.size:
        values = pi[model.drive_columns]
        run(drives.drive_torques, len(q), (model.tree, model.drives, values, q, v, a), (tau,))
    for index, column in model.custom:
        tau[:, model.tree.wrench_rows :] += pi[column] * custom_column(robot, index, q, v, a)


def _correct(robot: Robot, given: tuple[Array, Array, Array], pi: Array, a: Array) -> None:
    """Correct accelerations (N, n) for friction of the load, which is not affine in them, in place.

    Newton's method: the columns are linear as long as no load changes its sign.
    """
    q, v, tau = given
    inertia = mass_matrix(robot, q, pi)
    effects = [(robot.drives[index].function, pi[column]) for index, column in compile_robot(robot).custom]
    for _ in range(_CORRECTIONS):
        missing = tau - inverse_dynamics(robot, q, v, a, pi)
        if float(np.abs(missing).max(initial=0.0)) <= _SOLVED * max(float(np.abs(tau).max(initial=0.0)), 1.0):
            return
        slope = inertia + sum(x * f.slope(q, v, a) for f, x in effects if isinstance(f, EffectColumn))
        a += np.linalg.solve(slope, missing[:, :, None])[:, :, 0]
    raise DynidError(
        "the acceleration has no solution: friction grows faster with the load than the load itself", code="infeasible"
    )


def _custom_inertia(robot: Robot, index: int, q: Array) -> Array:
    """Derivative (N, n, n) of a custom column with respect to a, exact because the column is affine in a."""
    zero = np.zeros((len(q), robot.nv))
    start = custom_column(robot, index, q, zero, zero)
    out = np.empty((len(q), robot.n, robot.n))
    for j in range(robot.n):
        a = zero.copy()
        a[:, robot.nv - robot.n + j] = 1.0
        out[:, :, j] = custom_column(robot, index, q, zero, a) - start
    return out


def _motion_model(robot: Robot, parameters: ArrayLike | None) -> tuple[Robot, Array]:
    """Robot and parameters of the equations of motion; an instrumented base counts as fixed."""
    pi = as_parameters(robot, parameters)
    if robot.base != "instrumented":
        return robot, pi
    if robot not in _FIXED:
        _FIXED[robot] = robot.with_base("fixed")
    fixed = _FIXED[robot]
    return fixed, np.ascontiguousarray(pi[len(pi) - len(fixed.layout) :])


def _energies(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Regressors of the kinetic and the potential energy."""
    from dynid.dynamics.kernels import drives, energy

    (q, v), samples, single = as_batch(robot, q=q, v=v)
    model: Compiled = compile_robot(robot)
    kinetic, potential = np.zeros((2, samples, len(robot.layout)))
    run(energy.energy_regressor, samples, (model.tree, q, v), (kinetic, potential))
    if model.drives.kind.size:
        run(drives.drive_energy, samples, (model.tree, model.drives, q, v), (kinetic, potential))
    for index, column in model.custom:
        line = robot.drives[index].function
        if isinstance(line, LineForce):
            potential[:, column] = line.energy(q[:, robot.nq - robot.n :])
    return (kinetic[0], potential[0]) if single else (kinetic, potential)


def _closed_regressor(x: Assembly) -> Array:
    """Regressor of a robot with closed loops on an assembled motion."""
    out = np.empty((len(x.q), len(x.robot.channels), len(x.robot.layout)))
    for start in range(0, len(out), _CHUNK):
        part = x.rows(slice(start, start + _CHUNK))
        out[start : start + _CHUNK] = projected(part, regressor(x.robot.tree, part.q, part.v, part.a))
    return out


def _closed_mass(x: Assembly, parameters: ArrayLike | None) -> Array:
    """N' M N of an assembled motion."""
    N = x.jacobian
    return np.asarray(np.swapaxes(N, 1, 2) @ mass_matrix(x.robot.tree, x.q, parameters) @ N)


def _closed_forward(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, parameters: ArrayLike | None) -> Array:
    """Accelerations (N, nv) of a robot with closed loops."""
    from dynid.dynamics.kernels import forward

    _, samples, _ = as_batch(robot, q=q, v=v, tau=tau)
    x = assemble(robot, q, v)
    bias = projected(x, inverse_dynamics(robot.tree, x.q, x.v, x.a, parameters))
    out = np.atleast_2d(np.asarray(tau, dtype=float)) - bias[:, bias.shape[1] - robot.nv :]
    _check_positive(robot, run(forward.solve, samples, (_closed_mass(x, parameters),), (out,)))
    return out


def _closed_coriolis_torque(x: Assembly, parameters: ArrayLike | None) -> Array:
    """With the rotors of passive joints: their velocities are not proportional to those of the coordinates."""
    tree, zero = x.robot.tree, np.zeros_like(x.v)
    turning = inverse_dynamics(tree, x.q, zero, x.a, parameters)
    turning -= inverse_dynamics(tree, x.q, zero, zero, parameters)
    return projected(x, coriolis_torque(tree, x.q, x.v, parameters) + turning)


def _closed_coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike, parameters: ArrayLike | None) -> Array:
    """N' (M dN/dt + C N)."""
    (q, v), _, _ = as_batch(robot, q=q, v=v)
    x, tree = assemble(robot, q, v), robot.tree
    N = x.jacobian
    M = mass_matrix(tree, x.q, parameters)
    C = coriolis_matrix(tree, x.q, x.v, parameters)
    return np.asarray(np.swapaxes(N, 1, 2) @ (M @ _jacobian_rate(robot, q, v) + C @ N))


def _jacobian_rate(robot: Robot, q: Array, v: Array) -> Array:
    """dN/dt (N, nv of the tree, nv) for q (N, nq), v (N, nv).

    dN/dt v is quadratic in v and the derivative of N is symmetric, so that column j is (g(v + e_j) - g(v - e_j)) / 4
    with g(v) = (dN/dt) v, exactly.
    """
    out = np.zeros((len(q), robot.tree.nv, robot.nv))
    for j in range(robot.nv - robot.n, robot.nv):
        unit = np.eye(robot.nv)[j]
        out[:, :, j] = 0.25 * (assemble(robot, q, v + unit).a - assemble(robot, q, v - unit).a)
    return out


def _check_positive(robot: Robot, failures: Iterable[int]) -> None:
    """Raise an error for the first sample at which a kernel found no positive definite mass matrix; -1 is none."""
    for failed in failures:
        if failed >= 0:
            raise DynidError(
                f"the mass matrix of '{robot.name}' is not positive definite at sample {failed}: its parameters are "
                "not physically consistent",
                code="infeasible",
            )
