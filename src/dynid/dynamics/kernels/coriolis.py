"""Coriolis matrix of the Christoffel symbols.

With I and B summed over the bodies that joint j carries, and T' = V x T the time derivative of a twist,

    C_ij = T_i.(I T'_j + B T_j),    C_ji = T'_i.I T_j + T_i.B' T_j    for i supporting j.

B is the sum of ((V x*) I - I (V x) + (I V) bar x*) / 2 over the bodies; then dM/dt = C + C' and C v is the torque of
Coriolis and centrifugal forces.

Source: Echeandia and Wensing, Numerical Methods to Compute the Coriolis Matrix and Christoffel Symbols for Rigid-Body
Systems (2021). The entries of B were multiplied out here, see `coriolis_terms`.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import BASE_TWISTS, cross, place, velocities
from dynid.dynamics.kernels.mass import base_inertias, carry, momentum
from dynid.dynamics.kernels.twists import twist_cross


@step
def coriolis_terms(C, V, b, B):
    """B[b] = (f, D row by row), the part of a body in the Coriolis matrix: B maps a twist (s, t) to (t x f, D t).

    B = ((V x*) I - I (V x) + (I V) bar x*) / 2, multiplied out for V = (u, w):
    f = m u + w x h,  D = (h.u) 1 - u h' - w x Sigma,  Sigma = tr(I)/2 1 - I.
    """
    ux, uy, uz, wx, wy, wz = V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5]
    m, hx, hy, hz = C[b, 0], C[b, 1], C[b, 2], C[b, 3]
    half = 0.5 * (C[b, 4] + C[b, 6] + C[b, 9])
    xx, yy, zz, xy, xz, yz = half - C[b, 4], half - C[b, 6], half - C[b, 9], -C[b, 5], -C[b, 7], -C[b, 8]
    cx, cy, cz = cross(wx, wy, wz, hx, hy, hz)
    B[b, 0], B[b, 1], B[b, 2] = m * ux + cx, m * uy + cy, m * uz + cz
    hu = hx * ux + hy * uy + hz * uz
    cx, cy, cz = cross(wx, wy, wz, xx, xy, xz)
    B[b, 3], B[b, 6], B[b, 9] = hu - ux * hx - cx, -uy * hx - cy, -uz * hx - cz
    cx, cy, cz = cross(wx, wy, wz, xy, yy, yz)
    B[b, 4], B[b, 7], B[b, 10] = -ux * hy - cx, hu - uy * hy - cy, -uz * hy - cz
    cx, cy, cz = cross(wx, wy, wz, xz, yz, zz)
    B[b, 5], B[b, 8], B[b, 11] = -ux * hz - cx, -uy * hz - cy, hu - uz * hz - cz


@step
def _rate(V, b, sx, sy, sz, tx, ty, tz):
    """V_b x (s, t): time derivative of a twist fixed to body b."""
    return twist_cross(V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5], sx, sy, sz, tx, ty, tz)


@step
def _coriolis_wrench(C, V, B, b, sx, sy, sz, tx, ty, tz):
    """I (V_b x T) + B T for a twist T = (s, t) of body b."""
    ax, ay, az, bx, by, bz = _rate(V, b, sx, sy, sz, tx, ty, tz)
    fx, fy, fz, nx, ny, nz = momentum(C, b, ax, ay, az, bx, by, bz)
    cx, cy, cz = cross(tx, ty, tz, B[b, 0], B[b, 1], B[b, 2])
    return (
        fx + cx,
        fy + cy,
        fz + cz,
        nx + B[b, 3] * tx + B[b, 4] * ty + B[b, 5] * tz,
        ny + B[b, 6] * tx + B[b, 7] * ty + B[b, 8] * tz,
        nz + B[b, 9] * tx + B[b, 10] * ty + B[b, 11] * tz,
    )


@step
def _one_sample(tree, inertia, q, v, k, R, P, J, V, C, B, out):
    place(tree, q, k, R, P, J)
    velocities(tree, v, k, J, V)
    base_inertias(tree, inertia, R, P, C)
    for b in range(tree.parent.shape[0] + 1):
        coriolis_terms(C, V, b, B)
    carry(tree, C)
    carry(tree, B)
    _fill(tree, J, V, C, B, out[k])


@step
def _fill(tree, J, V, C, B, Y):
    first = tree.wrench_rows
    for i in range(Y.shape[0]):
        for j in range(Y.shape[0]):
            Y[i, j] = 0.0
    for i in range(first):
        s = BASE_TWISTS[i]
        Y[0, i], Y[1, i], Y[2, i], Y[3, i], Y[4, i], Y[5, i] = _coriolis_wrench(
            C, V, B, 0, s[0], s[1], s[2], s[3], s[4], s[5]
        )
    for j in range(tree.parent.shape[0]):
        b, g, col = j + 1, tree.ratio[j], first + tree.coordinate[j]
        sx, sy, sz, tx, ty, tz = g * J[j, 0], g * J[j, 1], g * J[j, 2], g * J[j, 3], g * J[j, 4], g * J[j, 5]
        fx, fy, fz, nx, ny, nz = _coriolis_wrench(C, V, B, b, sx, sy, sz, tx, ty, tz)
        lx, ly, lz, mx, my, mz = momentum(C, b, sx, sy, sz, tx, ty, tz)
        # B' T has only a moment, f x s + D' t.
        cx, cy, cz = cross(B[b, 0], B[b, 1], B[b, 2], sx, sy, sz)
        cx += B[b, 3] * tx + B[b, 6] * ty + B[b, 9] * tz
        cy += B[b, 4] * tx + B[b, 7] * ty + B[b, 10] * tz
        cz += B[b, 5] * tx + B[b, 8] * ty + B[b, 11] * tz
        if first:
            Y[0, col] += fx
            Y[1, col] += fy
            Y[2, col] += fz
            Y[3, col] += nx
            Y[4, col] += ny
            Y[5, col] += nz
        for i in range(first):
            s = BASE_TWISTS[i]
            ax, ay, az, bx, by, bz = _rate(V, 0, s[0], s[1], s[2], s[3], s[4], s[5])
            Y[col, i] += ax * lx + ay * ly + az * lz + bx * mx + by * my + bz * mz
            Y[col, i] += s[3] * cx + s[4] * cy + s[5] * cz
        for i in range(tree.support_start[j + 1], tree.support_start[j + 2]):
            p = tree.support[i]
            row, g = first + tree.coordinate[p], tree.ratio[p]
            ux, uy, uz, wx, wy, wz = g * J[p, 0], g * J[p, 1], g * J[p, 2], g * J[p, 3], g * J[p, 4], g * J[p, 5]
            Y[row, col] += ux * fx + uy * fy + uz * fz + wx * nx + wy * ny + wz * nz
            if p != j:
                ax, ay, az, bx, by, bz = _rate(V, p + 1, ux, uy, uz, wx, wy, wz)
                Y[col, row] += ax * lx + ay * ly + az * lz + bx * mx + by * my + bz * mz
                Y[col, row] += wx * cx + wy * cy + wz * cz


@kernel
def coriolis_matrix(tree, inertia, q, v, start, stop, out):
    """Coriolis matrices of samples start:stop, out (sample, row, row)."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, C, B = np.empty((bodies, 6)), np.empty((bodies, 10)), np.empty((bodies, 12))
    for k in range(start, stop):
        _one_sample(tree, inertia, q, v, k, R, P, J, V, C, B, out)
