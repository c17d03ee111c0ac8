"""Exact derivatives of the steps of a robot under the law of its actuators, along directions of its parameters.

The derivatives of the velocities after a step solve a linear system with the matrix of the step at its solution, for
all columns at once. Columns are directions of the parameters, then the initial positions, then the initial velocities.
"""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_drives import add_dry, add_start_slopes, drive_column
from dynid.dynamics.kernels.actuated_law import DELAY, POSITION, VELOCITY, late
from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.dry_step import lu
from dynid.dynamics.kernels.kinematics import body_motion, body_wrench, wrench_to_base


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
def differentiate(plant, law, changes, h, w):
    """Derivatives w.S1 of the velocities after the step; False where its matrix has no positive pivots."""
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
def law_columns(changes, share, w, S):
    """Add `share` (n,) times the derivatives of the law by its fields to S (n, column)."""
    for k in range(changes.law_field.shape[0]):
        i = changes.law_joint[k]
        S[i, changes.law_column[k]] += share[i] * changes.law_change[k] * w.du[changes.law_field[k], i]


@step
def late_columns(changes, i, rate, w):
    """Add the derivative of a delayed torque by its delay, `rate` for joint i."""
    for k in range(changes.law_field.shape[0]):
        if changes.law_field[k] == DELAY and changes.law_joint[k] == i:
            w.Su[i, changes.law_column[k]] += changes.law_change[k] * rate


@step
def state_columns(w):
    """Derivatives w.Su of the torque of a law through the state at a tick."""
    n, columns = w.Su.shape
    for i in range(n):
        a, b = w.du[POSITION, i], w.du[VELOCITY, i]
        for c in range(columns):
            w.Su[i, c] = a * w.Sq[i, c] + b * w.Sv[i, c]


@step
def continuous_columns(law, clock, changes, k, w):
    """Derivatives w.Su of the torque of a continuous law other than those through the present state."""
    n, columns = w.Su.shape
    size = w.ring.shape[0]
    for i in range(n):
        for c in range(columns):
            w.Su[i, c] = 0.0
        if law.late_torque:
            older, newer, share = late(law, clock, i, k)
            old = w.present[i] if older == k else w.ring[older % size, i]
            new = w.present[i] if newer == k else w.ring[newer % size, i]
            if newer != k:
                for c in range(columns):
                    w.Su[i, c] += (1.0 - share) * w.Sring[newer % size, i, c]
            if older != k:
                for c in range(columns):
                    w.Su[i, c] += share * w.Sring[older % size, i, c]
            late_columns(changes, i, (old - new) / clock.period, w)
    law_columns(changes, w.now, w, w.Su)


@step
def kept_columns(changes, h, one, w, S):
    """Derivatives S (n, column) of the torque of a continuous law in the step that ends with w.S1."""
    n, columns = w.Su.shape
    for i in range(n):
        a, b = w.du[POSITION, i], w.du[VELOCITY, i]
        for c in range(columns):
            speed = 0.5 * (w.Sv[i, c] + w.S1[i, c])
            S[i, c] = a * (w.Sq[i, c] + 0.5 * h * speed) + b * speed
    law_columns(changes, one, w, S)
