"""A robot on a fixed base under the law of its actuators, with exact derivatives of its motion.

One step of h seconds from (q0, v0) to (q1, v1) is the implicit midpoint rule, with dry friction at its end:

    q1 = q0 + h (v0 + v1)/2,   ID((q0 + q1)/2, (v0 + v1)/2, (v1 - v0)/h) + friction(v1) = torque of the motors

The derivatives of the motion with respect to parameters and initial state follow from those of this equation, with the
matrix K = M/h + Dv/2 + h Dq/4 plus the slopes of dry friction at the solution. The same matrix, of an earlier step
where it is near enough, solves the equation.
"""

from math import tanh
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_drives import (
    add_dry,
    add_start_slopes,
    drive_column,
    lu,
    smooth_drives,
    solve_dry,
    start_dry,
)
from dynid.dynamics.kernels.actuated_law import (
    BACK_EMF,
    DELAY,
    LOAD_FRICTION,
    NO_LOAD_VELOCITY,
    POSITION,
    SLOPES,
    STALL_TORQUE,
    VELOCITY,
    control,
    late,
    motor,
)
from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.derivatives import rigid_derivatives
from dynid.dynamics.kernels.forward import factor
from dynid.dynamics.kernels.integrate import DIVERGED, DONE, NOT_POSITIVE
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import body_motion, body_wrench, place_and_move, wrench_to_base
from dynid.dynamics.kernels.mass import base_inertias

_ITERATIONS = 40
_SOLVED = 1e-12  # change of the velocities (relative to 1 rad/s and to themselves) that ends the iterations
_SLOW = 0.05  # contraction above which the matrix is computed anew
_STRIDE = 1.0  # rad or m in one step: beyond it, the step does not resolve the motion


class Plant(NamedTuple):
    """A robot on a fixed base with its drive terms."""

    tree: tuple
    inertia: np.ndarray
    drives: tuple
    values: np.ndarray


class Starts(NamedTuple):
    """Row, positions and velocities of every start, and the rows after it."""

    first: np.ndarray
    q: np.ndarray
    v: np.ndarray
    length: int


class Changes(NamedTuple):
    """Entries of the directions by column: of bodies (ten numbers each), drive terms, the law, and the motors.

    `columns` are the directions; 2 n columns for the initial state follow. There are no derivatives where `wanted` is
    0.
    """

    wanted: int
    columns: int
    body_column: np.ndarray
    body: np.ndarray
    body_change: np.ndarray
    drive_column: np.ndarray
    drive: np.ndarray
    drive_change: np.ndarray
    law_column: np.ndarray
    law_field: np.ndarray
    law_joint: np.ndarray
    law_change: np.ndarray
    motor_column: np.ndarray
    motor_field: np.ndarray
    motor_joint: np.ndarray
    motor_change: np.ndarray


class Out(NamedTuple):
    """Results (start, row, joint) and derivatives (start, row, joint, column) of a larger robot, and where we are."""

    q: np.ndarray
    v: np.ndarray
    torque: np.ndarray
    dq: np.ndarray
    joints: np.ndarray
    columns: np.ndarray
    code: np.ndarray


class Space(NamedTuple):
    """State and work space. S... (n, column) are derivatives."""

    q: np.ndarray
    v: np.ndarray
    v1: np.ndarray
    qm: np.ndarray
    vm: np.ndarray
    acc: np.ndarray
    last: np.ndarray  # acceleration of the step before
    tau: np.ndarray  # torque of the smooth part (1, n)
    known: np.ndarray
    r: np.ndarray
    load: np.ndarray
    change: np.ndarray
    free: np.ndarray
    x: np.ndarray
    u: np.ndarray  # torque of the law
    by_u: np.ndarray  # derivative of the equation by it
    now: np.ndarray  # share of the present torque in u, where the law is continuous
    past: np.ndarray  # and the rest
    du: np.ndarray
    bound: np.ndarray
    R: np.ndarray
    P: np.ndarray
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray
    F: np.ndarray
    C: np.ndarray
    B: np.ndarray
    X: np.ndarray
    M: np.ndarray
    Dq: np.ndarray
    Dv: np.ndarray
    K: np.ndarray
    L: np.ndarray
    Y: np.ndarray
    Sq: np.ndarray
    Sv: np.ndarray
    S1: np.ndarray
    Su: np.ndarray
    ring: np.ndarray  # torques of the law at the last ticks (tick, n)
    Sring: np.ndarray  # (tick, n, column)


@step
def _actuators(law, commands, clock, tick, w, matrices):
    """Subtract the torques of the motors from w.tau; friction by load into w.load; their slopes with `matrices`."""
    for i in range(w.u.shape[0]):
        share = 0.0
        if law.continuous:
            w.u[i] = w.past[i]
            if w.now[i] > 0.0:
                share = w.now[i]
                w.u[i] += share * control(law, commands, clock, tick, 0.5, i, w.qm[0, i], w.vm[0, i], w.du)
        tau, by_u, by_v = motor(law, i, w.u[i], w.vm[0, i], w.du)
        friction = law.values[LOAD_FRICTION, i]
        w.tau[0, i] -= tau
        w.load[i] = friction * abs(tau)
        if not matrices:
            continue
        th = tanh(law.slope[i] * w.v1[0, i]) if friction > 0.0 or law.slope[i] > 0.0 else 0.0
        side = 1.0 if tau > 0.0 else -1.0
        part = 1.0 - friction * side * th
        w.by_u[i] = part * by_u
        w.Dv[i, i] -= part * (by_v + by_u * share * w.du[VELOCITY, i])
        w.Dq[i, i] -= part * by_u * share * w.du[POSITION, i]
        w.du[BACK_EMF, i] *= part
        w.du[STALL_TORQUE, i] *= part
        w.du[NO_LOAD_VELOCITY, i] *= part
        w.du[LOAD_FRICTION, i] = -abs(tau) * th


@step
def _evaluate(plant, law, commands, clock, tick, w, matrices):
    """Smooth part w.tau of the equation at w.v1, with `matrices` also M, Dq, Dv; False where M is not positive."""
    n, h = w.v.shape[1], clock.h
    for i in range(n):
        w.vm[0, i] = 0.5 * (w.v[0, i] + w.v1[0, i])
        w.qm[0, i] = w.q[0, i] + 0.5 * h * w.vm[0, i]
        w.acc[0, i] = (w.v1[0, i] - w.v[0, i]) / h
        w.tau[0, i] = w.known[i]
    place_and_move(plant.tree, w.qm, w.vm, w.acc, 0, w.R, w.P, w.J, w.V, w.A)
    if matrices:
        base_inertias(plant.tree, plant.inertia, w.R, w.P, w.C)
        rigid_derivatives(plant.tree, w.J, w.V, w.A, w.C, w.F, w.B, w.X, w.tau, 0, w.M, w.Dq, w.Dv)
    else:
        rigid_torque(plant.tree, plant.inertia, w.R, w.P, w.J, w.V, w.A, w.F, w.tau, 0)
    smooth_drives(plant.drives, plant.values, w.qm[0], w.vm[0], w.acc[0], w.tau[0], matrices, w.M, w.Dq, w.Dv)
    if matrices:
        for i in range(n):
            for j in range(i + 1):
                w.L[i, j] = w.M[i, j]
        if not factor(w.L):
            return False
    _actuators(law, commands, clock, tick, w, matrices)
    if matrices:
        for i in range(n):
            for j in range(n):
                w.K[i, j] = w.M[i, j] / h + 0.5 * w.Dv[i, j] + 0.25 * h * w.Dq[i, j]
    return True


@step
def _solve_step(plant, law, commands, clock, tick, fresh, sensitive, w):
    """Velocities w.v1 at the end of a step, with the matrices there if `sensitive`; returns the result code.

    `fresh` if there is no matrix of an earlier step.
    """
    n, solved, renew, before = w.v.shape[1], False, fresh, 0.0
    start_dry(plant.drives, plant.values, w)
    for i in range(n):
        w.v1[0, i] = w.v[0, i] + clock.h * w.last[i]
    for iteration in range(_ITERATIONS):
        if not _evaluate(plant, law, commands, clock, tick, w, renew or solved):
            return NOT_POSITIVE
        if solved:
            return DONE
        for i in range(n):
            s = w.tau[0, i]
            for j in range(n):
                s -= w.K[i, j] * w.v1[0, j]
            w.r[i] = s
            w.x[i] = w.v1[0, i]
        if not solve_dry(plant.drives, law, w, w.x):
            if renew:
                return DIVERGED
            renew = True
            continue
        size = scale = 0.0
        damp = 1.0 if iteration < _ITERATIONS // 4 else 0.5
        for i in range(n):
            change = w.x[i] - w.v1[0, i]
            size, scale = max(size, abs(change)), max(scale, abs(w.x[i]))
            w.v1[0, i] += damp * change
            if not abs(clock.h * w.x[i]) < _STRIDE:
                return DIVERGED
        solved = size <= _SOLVED * (1.0 + scale)
        if solved and not sensitive:
            return DONE
        renew = iteration > 0 and size > _SLOW * before
        before = size
    return DIVERGED


@step
def _body_columns(tree, changes, w):
    """Torques of changed bodies, subtracted from the right sides w.S1."""
    last = -1
    wx = wy = wz = ax = ay = az = dx = dy = dz = 0.0
    for k in range(changes.body.shape[0]):
        b, c, x = changes.body[k], changes.body_column[k], changes.body_change[k]
        if b != last:
            wx, wy, wz, ax, ay, az, dx, dy, dz = body_motion(w.R, w.P, w.V, w.A, b)
            last = b
        fx, fy, fz, nx, ny, nz = body_wrench(
            x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], wx, wy, wz, ax, ay, az, dx, dy, dz
        )
        fx, fy, fz, nx, ny, nz = wrench_to_base(w.R, w.P, b, fx, fy, fz, nx, ny, nz)
        for s in range(tree.support_start[b], tree.support_start[b + 1]):
            j = tree.support[s]
            power = w.J[j, 0] * fx + w.J[j, 1] * fy + w.J[j, 2] * fz + w.J[j, 3] * nx + w.J[j, 4] * ny + w.J[j, 5] * nz
            w.S1[tree.coordinate[j], c] -= tree.ratio[j] * power


@step
def _solve_columns(L, S):
    """Solve with the factor L for all columns of S (n, column) in place."""
    n, columns = S.shape
    for i in range(n):
        for j in range(i):
            s = L[i, j]
            if s != 0.0:
                for c in range(columns):
                    S[i, c] -= s * S[j, c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            s = L[i, j]
            if s != 0.0:
                for c in range(columns):
                    S[i, c] -= s * S[j, c]
        s = 1.0 / L[i, i]
        for c in range(columns):
            S[i, c] *= s


@step
def _differentiate(plant, law, changes, h, w):
    """Derivatives of the state after the step, in w.Sq and w.Sv; w.S1 are the new velocities' until then."""
    n, columns = w.Sq.shape
    x = w.v1[0]
    for i in range(n):
        for j in range(n):
            w.L[i, j] = w.K[i, j]
            w.Y[i, j] = w.K[i, j] - 2.0 * w.M[i, j] / h
    add_dry(plant.drives, law, w, x, w.change, w.L)
    add_start_slopes(plant.drives, plant.values, x, w, w.Y)
    if not lu(w.L):
        return False
    for i in range(n):
        s = w.by_u[i]
        for c in range(columns):
            w.S1[i, c] = s * w.Su[i, c]
        for j in range(n):
            a, b = w.Dq[i, j], w.Y[i, j]
            for c in range(columns):
                w.S1[i, c] -= a * w.Sq[j, c] + b * w.Sv[j, c]
    _body_columns(plant.tree, changes, w)
    for k in range(changes.drive.shape[0]):
        t, c = changes.drive[k], changes.drive_column[k]
        drive_column(plant.drives, plant.values, t, x, w.qm[0], w.vm[0], w.acc[0], w, w.S1, changes.drive_change[k], c)
    for k in range(changes.motor_field.shape[0]):
        i = changes.motor_joint[k]
        w.S1[i, changes.motor_column[k]] += changes.motor_change[k] * w.du[changes.motor_field[k], i]
    _solve_columns(w.L, w.S1)
    return True


@step
def _law_columns(changes, share, w, S):
    """Add `share` (n,) times the derivatives of the law by its fields to S (n, column)."""
    for k in range(changes.law_field.shape[0]):
        i = changes.law_joint[k]
        S[i, changes.law_column[k]] += share[i] * changes.law_change[k] * w.du[changes.law_field[k], i]


@step
def _late_columns(changes, i, rate, w):
    """Add the derivative of a delayed torque by its delay, `rate` for joint i."""
    for k in range(changes.law_field.shape[0]):
        if changes.law_field[k] == DELAY and changes.law_joint[k] == i:
            w.Su[i, changes.law_column[k]] += changes.law_change[k] * rate


@step
def _tick(law, commands, clock, changes, tick, k, one, w):
    """Torque w.u of a law that is computed at tick k after the start (`tick` of the log), with its derivatives w.Su."""
    n, columns = w.Su.shape
    size = w.ring.shape[0]
    for i in range(n):
        w.u[i] = control(law, commands, clock, tick, 0.0, i, w.q[0, i], w.v[0, i], w.du)
        if changes.wanted:
            a, b = w.du[POSITION, i], w.du[VELOCITY, i]
            for c in range(columns):
                w.Su[i, c] = a * w.Sq[i, c] + b * w.Sv[i, c]
    if changes.wanted:
        _law_columns(changes, one, w, w.Su)
    if not law.late_torque:
        return
    for i in range(n):
        w.ring[k % size, i] = w.u[i]
        if changes.wanted:
            for c in range(columns):
                w.Sring[k % size, i, c] = w.Su[i, c]
        older, newer, share = late(law, clock, i, k)
        older, newer = older % size, newer % size
        rate = w.ring[newer, i] - w.ring[older, i]
        w.u[i] = w.ring[newer, i] - share * rate
        if changes.wanted:
            for c in range(columns):
                w.Su[i, c] = (1.0 - share) * w.Sring[newer, i, c] + share * w.Sring[older, i, c]
            _late_columns(changes, i, -rate / clock.period, w)


@step
def _shares(law, clock, k, w):
    """Share w.now of the present torque, and the rest w.past of the torques before, where a law is continuous."""
    size = w.ring.shape[0]
    for i in range(w.u.shape[0]):
        w.now[i], w.past[i] = 1.0, 0.0
        if law.late_torque:
            older, newer, share = late(law, clock, i, k)
            w.now[i] = 0.0
            if newer == k:
                w.now[i] += 1.0 - share
            else:
                w.past[i] += (1.0 - share) * w.ring[newer % size, i]
            if older == k:
                w.now[i] += share
            else:
                w.past[i] += share * w.ring[older % size, i]


@step
def _continuous_columns(law, clock, commands, changes, tick, k, w):
    """Derivatives w.Su of the torque of a continuous law other than those through the present state."""
    n, columns = w.Su.shape
    size = w.ring.shape[0]
    for i in range(n):
        for c in range(columns):
            w.Su[i, c] = 0.0
        if law.late_torque:
            present = control(law, commands, clock, tick, 0.5, i, w.qm[0, i], w.vm[0, i], w.du)
            older, newer, share = late(law, clock, i, k)
            old = present if older == k else w.ring[older % size, i]
            new = present if newer == k else w.ring[newer % size, i]
            if newer != k:
                for c in range(columns):
                    w.Su[i, c] += (1.0 - share) * w.Sring[newer % size, i, c]
            if older != k:
                for c in range(columns):
                    w.Su[i, c] += share * w.Sring[older % size, i, c]
            _late_columns(changes, i, -(new - old) / clock.period, w)
    _law_columns(changes, w.now, w, w.Su)


@step
def _keep_torque(law, commands, clock, changes, tick, k, one, w):
    """Put the torque of a continuous law in this step into the ring."""
    n, columns = w.Su.shape
    size, h = w.ring.shape[0], clock.h
    for i in range(n):
        w.ring[k % size, i] = control(law, commands, clock, tick, 0.5, i, w.qm[0, i], w.vm[0, i], w.du)
        if changes.wanted:
            a, b = w.du[POSITION, i], w.du[VELOCITY, i]
            for c in range(columns):
                speed = 0.5 * (w.Sv[i, c] + w.S1[i, c])
                w.Sring[k % size, i, c] = a * (w.Sq[i, c] + 0.5 * h * speed) + b * speed
    if changes.wanted:
        _law_columns(changes, one, w, w.Sring[k % size])


@step
def _advance(plant, law, commands, clock, changes, tick, k, fresh, one, w):
    """One step; returns the result code."""
    n, columns = w.Sq.shape
    h = clock.h
    if law.continuous:
        _shares(law, clock, k, w)
    code = _solve_step(plant, law, commands, clock, tick, fresh, changes.wanted, w)
    if code != DONE:
        return code
    if changes.wanted:
        if law.continuous:
            _continuous_columns(law, clock, commands, changes, tick, k, w)
        if not _differentiate(plant, law, changes, h, w):
            return DIVERGED
    if law.continuous and law.late_torque:
        _keep_torque(law, commands, clock, changes, tick, k, one, w)
    for i in range(n):
        w.q[0, i] += 0.5 * h * (w.v[0, i] + w.v1[0, i])
        w.last[i] = (w.v1[0, i] - w.v[0, i]) / h
        w.v[0, i] = w.v1[0, i]
        if changes.wanted:
            for c in range(columns):
                w.Sq[i, c] += 0.5 * h * (w.Sv[i, c] + w.S1[i, c])
                w.Sv[i, c] = w.S1[i, c]
    return DONE


@step
def _store(law, commands, clock, changes, tick, k, s, row, out, w):
    """Keep the state, the torque there and the derivatives as row `row` of start s."""
    n, columns = w.Sq.shape
    if law.continuous:
        _shares(law, clock, k, w)
    for i in range(n):
        j, u = out.joints[i], w.u[i]
        if law.continuous:
            u = w.past[i] + w.now[i] * control(law, commands, clock, tick, 0.0, i, w.q[0, i], w.v[0, i], w.du)
        out.q[s, row, j], out.v[s, row, j] = w.q[0, i], w.v[0, i]
        out.torque[s, row, j] = motor(law, i, u, w.v[0, i], w.du)[0]
        if changes.wanted:
            for c in range(columns):
                out.dq[s, row, j, out.columns[c]] = w.Sq[i, c]


@step
def _begin(changes, starts, s, w):
    """The initial state of start s and its derivatives."""
    n, columns = w.Sq.shape
    for i in range(n):
        w.q[0, i], w.v[0, i], w.last[i] = starts.q[s, i], starts.v[s, i], 0.0
        if changes.wanted:
            for c in range(columns):
                w.Sq[i, c] = w.Sv[i, c] = 0.0
            w.Sq[i, changes.columns + i] = w.Sv[i, changes.columns + n + i] = 1.0


@kernel
def actuated(plant, law, commands, clock, starts, changes, ring, start, stop, out):
    """Motion after starts start:stop; out.code (s,) is raised to the result code. `ring`: ticks of torque to keep."""
    tree = plant.tree
    bodies, joints, n = tree.parent.shape[0] + 1, tree.parent.shape[0], starts.q.shape[1]
    columns = changes.columns + 2 * n if changes.wanted else 0
    one = np.ones(n)
    w = Space(
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros(n),
        np.zeros((1, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros((SLOPES, n)),
        np.zeros(plant.values.shape[0]),
        np.empty((bodies, 9)),
        np.empty((bodies, 3)),
        np.empty((joints, 6)),
        np.empty((bodies, 6)),
        np.empty((bodies, 6)),
        np.empty((bodies, 6)),
        np.empty((bodies, 10)),
        np.empty((bodies, 12)),
        np.empty((joints, 12)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((ring, n)),
        np.zeros((ring, n, columns)),
    )
    for s in range(start, stop):
        _begin(changes, starts, s, w)
        begin = starts.first[s] * clock.ticks
        last = min(starts.length, commands.position.shape[0] - 1 - starts.first[s]) * clock.ticks
        code, fresh = DONE, True
        for k in range(last + 1):
            if not law.continuous:
                _tick(law, commands, clock, changes, begin + k, k, one, w)
            if k % clock.ticks == 0:
                _store(law, commands, clock, changes, begin + k, k, s, k // clock.ticks, out, w)
            if k == last:
                break
            for _ in range(clock.parts):
                code = _advance(plant, law, commands, clock, changes, begin + k, k, fresh, one, w)
                if code != DONE:
                    break
                fresh = False
            if code != DONE:
                break
        if code != DONE:
            out.code[s] = code
