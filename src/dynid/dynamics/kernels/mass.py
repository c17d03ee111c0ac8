"""Mass matrix, Coriolis matrix and forward dynamics.

Composite inertias are plain sums in base coordinates; a body's ten numbers are moved there once.
"""

from math import sqrt

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.drives import drive_inertia, drive_torque
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import BASE_TWISTS, cross, place, place_and_move, rotate


@step
def composite_inertias(tree, inertia, R, P, C):
    """C (b, 10): inertia of each body with all it carries, about the base origin in base axes."""
    bodies = tree.parent.shape[0] + 1
    for b in range(bodies):
        if not tree.massive[b]:
            for i in range(10):
                C[b, i] = 0.0
            continue
        m = inertia[b, 0]
        hx, hy, hz = rotate(R, b, inertia[b, 1], inertia[b, 2], inertia[b, 3])
        xx, xy, yy = inertia[b, 4], inertia[b, 5], inertia[b, 6]
        xz, yz, zz = inertia[b, 7], inertia[b, 8], inertia[b, 9]
        # R I R', one column of I R' at a time.
        for i in range(3):
            r0, r1, r2 = R[b, 3 * i], R[b, 3 * i + 1], R[b, 3 * i + 2]
            tx, ty, tz = rotate(
                R, b, xx * r0 + xy * r1 + xz * r2, xy * r0 + yy * r1 + yz * r2, xz * r0 + yz * r1 + zz * r2
            )
            if i == 0:
                C[b, 4] = tx
            elif i == 1:
                C[b, 5], C[b, 6] = tx, ty
            else:
                C[b, 7], C[b, 8], C[b, 9] = tx, ty, tz
        px, py, pz = P[b, 0], P[b, 1], P[b, 2]
        # Parallel axes for a shift by p: I + 2 sym-part of (h.p 1 - h p') + m (p.p 1 - p p').
        gx, gy, gz = 2 * hx + m * px, 2 * hy + m * py, 2 * hz + m * pz
        C[b, 0] = m
        C[b, 1], C[b, 2], C[b, 3] = hx + m * px, hy + m * py, hz + m * pz
        C[b, 4] += gy * py + gz * pz
        C[b, 6] += gx * px + gz * pz
        C[b, 9] += gx * px + gy * py
        C[b, 5] -= hx * py + hy * px + m * px * py
        C[b, 7] -= hx * pz + hz * px + m * px * pz
        C[b, 8] -= hy * pz + hz * py + m * py * pz
    for j in range(bodies - 2, -1, -1):
        for i in range(10):
            C[tree.parent[j], i] += C[j + 1, i]


@step
def momentum(C, b, sx, sy, sz, tx, ty, tz):
    """Spatial inertia of row b times a twist (s, t): force m s + t x h, moment h x s + I t."""
    m, hx, hy, hz = C[b, 0], C[b, 1], C[b, 2], C[b, 3]
    fx, fy, fz = cross(tx, ty, tz, hx, hy, hz)
    nx, ny, nz = cross(hx, hy, hz, sx, sy, sz)
    return (
        m * sx + fx,
        m * sy + fy,
        m * sz + fz,
        nx + C[b, 4] * tx + C[b, 5] * ty + C[b, 7] * tz,
        ny + C[b, 5] * tx + C[b, 6] * ty + C[b, 8] * tz,
        nz + C[b, 7] * tx + C[b, 8] * ty + C[b, 9] * tz,
    )


@step
def rigid_mass(tree, J, C, M):
    """Fill M (row, row) from joint twists and composite inertias: M_ij = J_i . C_j J_j, i supporting j."""
    first = tree.wrench_rows
    for i in range(M.shape[0]):
        for j in range(M.shape[0]):
            M[i, j] = 0.0
    for i in range(first):
        s = BASE_TWISTS[i]
        fx, fy, fz, nx, ny, nz = momentum(C, 0, s[0], s[1], s[2], s[3], s[4], s[5])
        M[i, 0], M[i, 1], M[i, 2], M[i, 3], M[i, 4], M[i, 5] = fx, fy, fz, nx, ny, nz
    for j in range(tree.parent.shape[0]):
        g, col = tree.ratio[j], first + tree.coordinate[j]
        fx, fy, fz, nx, ny, nz = momentum(C, j + 1, J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5])
        fx, fy, fz, nx, ny, nz = g * fx, g * fy, g * fz, g * nx, g * ny, g * nz
        if first:
            M[0, col] += fx
            M[1, col] += fy
            M[2, col] += fz
            M[3, col] += nx
            M[4, col] += ny
            M[5, col] += nz
            for i in range(6):
                M[col, i] = M[i, col]
        for s in range(tree.support_start[j + 1], tree.support_start[j + 2]):
            i = tree.support[s]
            row = first + tree.coordinate[i]
            value = tree.ratio[i] * (
                J[i, 0] * fx + J[i, 1] * fy + J[i, 2] * fz + J[i, 3] * nx + J[i, 4] * ny + J[i, 5] * nz
            )
            M[row, col] += value
            if i != j:
                M[col, row] += value


@kernel
def mass_matrix(tree, inertia, drives, values, q, start, stop, out):
    """Mass matrices with drive inertias, out (sample, row, row)."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    C = np.empty((bodies, 10))
    for k in range(start, stop):
        place(tree, q, k, R, P, J)
        composite_inertias(tree, inertia, R, P, C)
        rigid_mass(tree, J, C, out[k])
        drive_inertia(tree, drives, values, out[k])


@kernel
def coriolis_matrix(tree, inertia, q, v, start, stop, out):
    """Christoffel-consistent Coriolis matrices (Echeandia and Wensing 2021), out (sample, row, row).

    With B = ((V x*) I - I (V x) + (I V) bar x*) / 2 summed over what a joint carries:
    C_ij = J_i.(I J'_j + B J_j) and C_ji = J'_i.I J_j + J_i.B' J_j for i supporting j.
    """
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    first = tree.wrench_rows
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A, C = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 10))
    B, own = np.empty((bodies, 6, 6)), np.empty((bodies, 10))
    zero = np.zeros_like(v)
    I6, X = np.zeros((6, 6)), np.zeros((6, 6))
    T, D = np.empty((6 + joints, 6)), np.empty((6 + joints, 6))
    for k in range(start, stop):
        place_and_move(tree, q, v, zero, k, R, P, J, V, A)
        composite_inertias(tree, inertia, R, P, C)
        own[:] = C
        for j in range(joints):  # undo the sums: each body's own inertia in base coordinates
            for i in range(10):
                own[tree.parent[j], i] -= C[j + 1, i]
        for b in range(bodies):
            _spatial(own, b, I6)
            _motion_cross(V[b], X)
            fx, fy, fz, nx, ny, nz = momentum(own, b, V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5])
            # V x* = -(V x)'; (f bar x*) u = u x* f.
            B[b] = -0.5 * (X.T @ I6 + I6 @ X)
            _add_bar(B[b], 0.5, fx, fy, fz, nx, ny, nz)
        for j in range(joints - 1, -1, -1):
            B[tree.parent[j]] += B[j + 1]
        # Twists T of all generalised speeds and their rates D = V x T.
        for i in range(first):
            T[i] = BASE_TWISTS[i]
            _motion_cross(V[0], X)
            D[i] = X @ T[i]
        for j in range(joints):
            T[first + j] = tree.ratio[j] * J[j]
            _motion_cross(V[j + 1], X)
            D[first + j] = X @ T[first + j]
        Y = out[k]
        Y[:, :] = 0.0
        _spatial(C, 0, I6)
        for t in range(first):
            f1 = I6 @ D[t] + B[0] @ T[t]
            for i in range(first):
                Y[i, t] = np.dot(T[i], f1)
        for j in range(joints):
            _spatial(C, j + 1, I6)
            t, col = first + j, first + tree.coordinate[j]
            f1 = I6 @ D[t] + B[j + 1] @ T[t]
            f2, f3 = I6 @ T[t], B[j + 1].T @ T[t]
            for i in range(first):
                Y[i, col] += np.dot(T[i], f1)
                Y[col, i] += np.dot(D[i], f2) + np.dot(T[i], f3)
            for s in range(tree.support_start[j + 1], tree.support_start[j + 2]):
                i, row = first + tree.support[s], first + tree.coordinate[tree.support[s]]
                Y[row, col] += np.dot(T[i], f1)
                if i != t:
                    Y[col, row] += np.dot(D[i], f2) + np.dot(T[i], f3)


@step
def _motion_cross(V, X):
    """V x as a 6x6 matrix on (linear, angular) twists."""
    for i in range(6):
        for j in range(6):
            X[i, j] = 0.0
    for o in range(0, 6, 3):
        X[o, o + 1], X[o, o + 2] = -V[5], V[4]
        X[o + 1, o], X[o + 1, o + 2] = V[5], -V[3]
        X[o + 2, o], X[o + 2, o + 1] = -V[4], V[3]
    X[0, 4], X[0, 5] = -V[2], V[1]
    X[1, 3], X[1, 5] = V[2], -V[0]
    X[2, 3], X[2, 4] = -V[1], V[0]


@step
def _spatial(C, b, I6):
    """6x6 spatial inertia of the ten numbers C[b]."""
    for i in range(3):
        for j in range(3):
            I6[i, j] = C[b, 0] if i == j else 0.0
    hx, hy, hz = C[b, 1], C[b, 2], C[b, 3]
    I6[3, 0], I6[3, 1], I6[3, 2] = 0.0, -hz, hy
    I6[4, 0], I6[4, 1], I6[4, 2] = hz, 0.0, -hx
    I6[5, 0], I6[5, 1], I6[5, 2] = -hy, hx, 0.0
    for i in range(3):
        for j in range(3):
            I6[j, 3 + i] = I6[3 + i, j]
    I6[3, 3], I6[3, 4], I6[3, 5] = C[b, 4], C[b, 5], C[b, 7]
    I6[4, 3], I6[4, 4], I6[4, 5] = C[b, 5], C[b, 6], C[b, 8]
    I6[5, 3], I6[5, 4], I6[5, 5] = C[b, 7], C[b, 8], C[b, 9]


@step
def _add_bar(B, g, fx, fy, fz, nx, ny, nz):
    """Add g times the matrix u -> u x* (f, n): force t x f, moment s x f + t x n, for u = (s, t)."""
    B[0, 4] += g * fz
    B[0, 5] -= g * fy
    B[1, 3] -= g * fz
    B[1, 5] += g * fx
    B[2, 3] += g * fy
    B[2, 4] -= g * fx
    B[3, 1] += g * fz
    B[3, 2] -= g * fy
    B[4, 0] -= g * fz
    B[4, 2] += g * fx
    B[5, 0] += g * fy
    B[5, 1] -= g * fx
    B[3, 4] += g * nz
    B[3, 5] -= g * ny
    B[4, 3] -= g * nz
    B[4, 5] += g * nx
    B[5, 3] += g * ny
    B[5, 4] -= g * nx


@step
def solve_spd(M, x):
    """Solve M x = x in place by Cholesky; False where M is not positive definite."""
    n = M.shape[0]
    for j in range(n):
        d = M[j, j]
        for i in range(j):
            d -= M[j, i] * M[j, i]
        if not d > 0.0:
            return False
        d = sqrt(d)
        M[j, j] = d
        for r in range(j + 1, n):
            s = M[r, j]
            for i in range(j):
                s -= M[r, i] * M[j, i]
            M[r, j] = s / d
    for j in range(n):
        s = x[j]
        for i in range(j):
            s -= M[j, i] * x[i]
        x[j] = s / M[j, j]
    for j in range(n - 1, -1, -1):
        s = x[j]
        for i in range(j + 1, n):
            s -= M[i, j] * x[i]
        x[j] = s / M[j, j]
    return True


@kernel
def forward_dynamics(tree, inertia, drives, values, q, v, tau, start, stop, out):
    """Accelerations out (sample, nv) from torques tau (sample, nv); first sample whose mass matrix fails, or -1."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    rows = v.shape[1]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    C, M = np.empty((bodies, 10)), np.empty((rows, rows))
    zero = np.zeros((1, rows))
    one_q, one_v, bias = np.empty((1, q.shape[1])), np.empty((1, rows)), np.empty((1, rows))
    for k in range(start, stop):
        one_q[0], one_v[0] = q[k], v[k]
        place_and_move(tree, one_q, one_v, zero, 0, R, P, J, V, A)
        bias[0, :] = 0.0
        rigid_torque(tree, inertia, R, P, J, V, A, F, bias, 0)
        drive_torque(tree, drives, values, one_q, one_v, zero, 0, bias)
        composite_inertias(tree, inertia, R, P, C)
        rigid_mass(tree, J, C, M)
        drive_inertia(tree, drives, values, M)
        for i in range(rows):
            out[k, i] = tau[k, i] - bias[0, i]
        if not solve_spd(M, out[k]):
            return k
    return -1
