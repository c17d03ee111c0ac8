"""Mass matrix by composite inertias.

Composite inertias are plain sums in base coordinates; a body's ten numbers are moved there once.

Composite-rigid-body algorithm: with the inertia C_j of all bodies beyond joint j,

    C_p <- C_p + C_b,    M_ij = M_ji = J_i . C_j J_j for i supporting j,    M_ij = 0 for joints on different branches.

Sources: Walker and Orin, Efficient Dynamic Computer Simulation of Robotic Mechanisms (1982); Featherstone, Rigid Body
Dynamics Algorithms (2008), chapter 6.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.drives import drive_inertia
from dynid.dynamics.kernels.kinematics import BASE_TWISTS, cross, place, rotate


@step
def base_inertias(tree, inertia, R, P, C):
    """C (b, 10): inertia of each body about the base origin in base axes."""
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


@step
def carry(tree, X):
    """Add the rows of X (b, ...) to those of their parents, tips first: each body with all bodies it carries."""
    for j in range(tree.parent.shape[0] - 1, -1, -1):
        for i in range(X.shape[1]):
            X[tree.parent[j], i] += X[j + 1, i]


@step
def composite_inertias(tree, inertia, R, P, C):
    """C (b, 10): composite inertia of each body with all it carries, about the base origin in base axes."""
    base_inertias(tree, inertia, R, P, C)
    carry(tree, C)


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
        # Force that moves all bodies beyond joint j with its unit acceleration; it loads every joint before.
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


@step
def _one_sample(tree, inertia, drives, values, q, k, R, P, J, C, out):
    place(tree, q, k, R, P, J)
    composite_inertias(tree, inertia, R, P, C)
    rigid_mass(tree, J, C, out[k])
    drive_inertia(tree, drives, values, out[k])


@kernel
def mass_matrix(tree, inertia, drives, values, q, start, stop, out):
    """Mass matrices with drive inertias, out (sample, row, row)."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    C = np.empty((bodies, 10))
    for k in range(start, stop):
        _one_sample(tree, inertia, drives, values, q, k, R, P, J, C, out)
