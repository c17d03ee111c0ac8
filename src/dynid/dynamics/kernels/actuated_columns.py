"""Exact derivatives of the steps of a robot under the law of its actuators, along directions of its parameters.

The derivatives of the velocities after a step solve a linear system with the matrix of the step at its solution, for
all columns at once. Columns are directions of the parameters, then the initial positions, then the initial velocities.

With the step g = M (v1 - v0)/h + ... of `actuated_step`, qm = q + e h vm, vm = (1 - e) v0 + e v1 and the torque u:

    L T.v1 = by_u T.u - Dq T.q - Y T.v - dg/dtheta,    L = M/h + e Dv + e^2 h Dq + slopes of dry friction,
    Y = -M/h + (1 - e) (Dv + e h Dq) + slopes of dry friction by the velocity at the start.

Source: own derivation, the implicit function theorem for one step; dg/dtheta of a body is its Newton-Euler torque with
the change of its parameters (see `regressor`).
"""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_drives import add_dry, add_start_slopes, drive_column, soft_column
from dynid.dynamics.kernels.actuated_law import DELAY, FRICTION_WIDTH, POSITION, VELOCITY, late
from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.dry_step import lu
from dynid.dynamics.kernels.kinematics import body_motion, body_wrench, wrench_to_base


class BodyEntries(NamedTuple):
    """Changes (entry, 10) of bodies in columns, ordered by body."""

    column: np.ndarray
    body: np.ndarray
    change: np.ndarray


class DriveEntries(NamedTuple):
    """Changes (entry,) of drive terms in columns."""

    column: np.ndarray
    term: np.ndarray
    change: np.ndarray


class FieldEntries(NamedTuple):
    """Changes (entry,) of fields of the actuator law in columns."""

    column: np.ndarray
    field: np.ndarray
    joint: np.ndarray
    change: np.ndarray


class Changes(NamedTuple):
    """Entries of the directions: bodies, drive terms, fields of the law, of the motors and of soft friction.

    `columns` are the directions; 2 n columns for the initial state follow. There are no derivatives where `wanted` is
    0.
    """

    wanted: int
    columns: int
    bodies: tuple
    drives: tuple
    law: tuple
    motors: tuple
    friction: tuple


class Tangents(NamedTuple):
    """Derivatives (n, column) of the state, of the velocities after the step and of the torques of the law."""

    q: np.ndarray
    v: np.ndarray
    v1: np.ndarray
    u: np.ndarray
    ring: np.ndarray  # (tick, n, column)
    Y: np.ndarray  # derivative (n, n) of the step by the velocity at its start


@step
def _body_columns(tree, entries, R, P, J, V, A, S):
    """Torques of changed bodies, subtracted from the right sides S."""
    last = -1
    wx = wy = wz = ax = ay = az = dx = dy = dz = 0.0
    for k in range(entries.body.shape[0]):
        b, c, x = entries.body[k], entries.column[k], entries.change[k]
        if b != last:
            wx, wy, wz, ax, ay, az, dx, dy, dz = body_motion(R, P, V, A, b)
            last = b
        fx, fy, fz, nx, ny, nz = body_wrench(
            x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], wx, wy, wz, ax, ay, az, dx, dy, dz
        )
        fx, fy, fz, nx, ny, nz = wrench_to_base(R, P, b, fx, fy, fz, nx, ny, nz)
        for s in range(tree.support_start[b], tree.support_start[b + 1]):
            j = tree.support[s]
            power = J[j, 0] * fx + J[j, 1] * fy + J[j, 2] * fz + J[j, 3] * nx + J[j, 4] * ny + J[j, 5] * nz
            S[tree.coordinate[j], c] -= tree.ratio[j] * power


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
def field_columns(entries, share, du, S):
    """Add `share` (n,) times the derivatives du by fields to S (n, column)."""
    for k in range(entries.field.shape[0]):
        i = entries.joint[k]
        S[i, entries.column[k]] += share[i] * entries.change[k] * du[entries.field[k], i]


@step
def late_columns(entries, i, rate, S):
    """Add the derivative of a delayed torque by its delay, `rate` for joint i, to S (n, column)."""
    for k in range(entries.field.shape[0]):
        if entries.field[k] == DELAY and entries.joint[k] == i:
            S[i, entries.column[k]] += entries.change[k] * rate


@step
def differentiate(plant, law, changes, clock, one, m, g, d, D, T):
    """Derivatives T.v1 of the velocities after a step; False where its matrix has no positive pivots."""
    n, columns = T.q.shape
    h, e = clock.h, clock.end
    for i in range(n):
        for j in range(n):
            d.L[i, j] = d.K[i, j]
            T.Y[i, j] = -D.M[i, j] / h + (1.0 - e) * (D.Dv[i, j] + e * h * D.Dq[i, j])
    # The matrix of the step at its solution: K and the slopes of dry friction.
    add_dry(plant.drives, law.slope, d, m.v1[0], d.change, d.L)
    add_start_slopes(plant.drives, plant.values, d, m.v[0], m.v1[0], T.Y)
    if not lu(d.L):
        return False
    for i in range(n):
        s = g.by_u[i]
        for c in range(columns):
            T.v1[i, c] = s * T.u[i, c]
        for j in range(n):
            a, b = D.Dq[i, j], T.Y[i, j]
            for c in range(columns):
                T.v1[i, c] -= a * T.q[j, c] + b * T.v[j, c]
    _body_columns(plant.tree, changes.bodies, m.R, m.P, m.J, m.V, m.A, T.v1)
    entries = changes.drives
    for k in range(entries.term.shape[0]):
        t, c, x = entries.term[k], entries.column[k], entries.change[k]
        drive_column(plant.drives, plant.values, d, t, m.v[0], m.v1[0], m.qm[0], m.damped[0], m.acc[0], x, c, T.v1)
    field_columns(changes.motors, one, g.du, T.v1)
    soft = changes.friction
    for k in range(soft.field.shape[0]):
        by_width = soft.field[k] == FRICTION_WIDTH
        x = soft.change[k] if by_width else soft.change[k] / h
        soft_column(plant.drives, d, soft.joint[k], by_width, m.v1[0], x, soft.column[k], T.v1)
    _solve_columns(d.L, T.v1)
    return True


@step
def state_columns(q, v, du, S):
    """Derivatives S of the torque of a law through the state, whose derivatives are q and v (n, column)."""
    n, columns = S.shape
    for i in range(n):
        a, b = du[POSITION, i], du[VELOCITY, i]
        for c in range(columns):
            S[i, c] = a * q[i, c] + b * v[i, c]


@step
def continuous_columns(law, clock, entries, k, g, T):
    """Derivatives T.u of the torque of a continuous law other than those through the present state."""
    n, columns = T.u.shape
    size = g.ring.shape[0]
    for i in range(n):
        for c in range(columns):
            T.u[i, c] = 0.0
        if law.late_torque:
            older, newer, share = late(law, clock, i, k)
            old = g.present[i] if older == k else g.ring[older % size, i]
            new = g.present[i] if newer == k else g.ring[newer % size, i]
            if newer != k:
                for c in range(columns):
                    T.u[i, c] += (1.0 - share) * T.ring[newer % size, i, c]
            if older != k:
                for c in range(columns):
                    T.u[i, c] += share * T.ring[older % size, i, c]
            late_columns(entries, i, (old - new) / clock.period, T.u)
    field_columns(entries, g.now, g.du, T.u)


@step
def kept_columns(entries, h, one, du, T, S):
    """Derivatives S (n, column) of the torque of a continuous law in the step that ends with T.v1."""
    n, columns = S.shape
    for i in range(n):
        a, b = du[POSITION, i], du[VELOCITY, i]
        for c in range(columns):
            middle = 0.5 * (T.v[i, c] + T.v1[i, c])
            S[i, c] = a * (T.q[i, c] + 0.5 * h * middle) + b * middle
    field_columns(entries, one, du, S)
