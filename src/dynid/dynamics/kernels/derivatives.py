"""Derivatives of the inverse dynamics of a robot on a fixed base with respect to position and velocity.

In base coordinates, with the inertia I, twist V, acceleration A and wrench f = I A + V x* I V of each body, and for a
joint i with twist J that is carried by body p:

    df_b/dq_i = J x* f_b + I_b Y + 2 B_b X      X = V_p x J
    df_b/dv_i = 2 I_b X + 2 B_b J               Y = A_p x J + V_p x X

for every body b that joint i carries, with the matrix B of the Coriolis matrix. Inertias, wrenches and B of a body with
all bodies that it carries are plain sums.

Sources: Carpentier and Mansard, Analytical Derivatives of Rigid Body Dynamics Algorithms (2018); Singh, Russell and
Wensing, Efficient Analytical Derivatives of Rigid-Body Dynamics Using Spatial Vector Algebra (2022).
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.coriolis import coriolis_terms
from dynid.dynamics.kernels.kinematics import cross, place_and_move
from dynid.dynamics.kernels.mass import base_inertias, momentum
from dynid.dynamics.kernels.twists import twist_cross, wrench_cross


@step
def _body_wrench(C, V, A, b, F):
    """Wrench F[b] = I A + V x* I V of one body."""
    ux, uy, uz, wx, wy, wz = V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5]
    px, py, pz, lx, ly, lz = momentum(C, b, ux, uy, uz, wx, wy, wz)
    fx, fy, fz, nx, ny, nz = momentum(C, b, A[b, 0], A[b, 1], A[b, 2], A[b, 3], A[b, 4], A[b, 5])
    gx, gy, gz, kx, ky, kz = wrench_cross(ux, uy, uz, wx, wy, wz, px, py, pz, lx, ly, lz)
    F[b, 0], F[b, 1], F[b, 2] = fx + gx, fy + gy, fz + gz
    F[b, 3], F[b, 4], F[b, 5] = nx + kx, ny + ky, nz + kz


@step
def _carried(B, b, tx, ty, tz):
    """2 B x of row b for the angular part t of x: force 2 t x P, moment 2 D t."""
    fx, fy, fz = cross(tx, ty, tz, B[b, 0], B[b, 1], B[b, 2])
    return (
        2.0 * fx,
        2.0 * fy,
        2.0 * fz,
        2.0 * (B[b, 3] * tx + B[b, 4] * ty + B[b, 5] * tz),
        2.0 * (B[b, 6] * tx + B[b, 7] * ty + B[b, 8] * tz),
        2.0 * (B[b, 9] * tx + B[b, 10] * ty + B[b, 11] * tz),
    )


@step
def _dot(X, i, c, fx, fy, fz, nx, ny, nz):
    return X[i, c] * fx + X[i, c + 1] * fy + X[i, c + 2] * fz + X[i, c + 3] * nx + X[i, c + 4] * ny + X[i, c + 5] * nz


@step
def _joint_terms(tree, J, V, A, j, X):
    """X = V_p x J and Y = A_p x J + V_p x X of joint j, as the twelve numbers X[j]."""
    p = tree.parent[j]
    sx, sy, sz, tx, ty, tz = J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5]
    ux, uy, uz, wx, wy, wz = V[p, 0], V[p, 1], V[p, 2], V[p, 3], V[p, 4], V[p, 5]
    x0, x1, x2, x3, x4, x5 = twist_cross(ux, uy, uz, wx, wy, wz, sx, sy, sz, tx, ty, tz)
    y0, y1, y2, y3, y4, y5 = twist_cross(ux, uy, uz, wx, wy, wz, x0, x1, x2, x3, x4, x5)
    z0, z1, z2, z3, z4, z5 = twist_cross(A[p, 0], A[p, 1], A[p, 2], A[p, 3], A[p, 4], A[p, 5], sx, sy, sz, tx, ty, tz)
    X[j, 0], X[j, 1], X[j, 2], X[j, 3], X[j, 4], X[j, 5] = x0, x1, x2, x3, x4, x5
    X[j, 6], X[j, 7], X[j, 8], X[j, 9], X[j, 10], X[j, 11] = y0 + z0, y1 + z1, y2 + z2, y3 + z3, y4 + z4, y5 + z5


@step
def rigid_derivatives(tree, J, V, A, C, F, B, X, tau, k, M, Dq, Dv):
    """Add the rigid-body torque to tau[k]; fill the mass matrix M and the derivatives Dq, Dv (n, n) of the torque.

    C (b, 10) are the inertias of the bodies by `base_inertias`; they become composite inertias. F (b, 6), B (b, 12) and
    X (j, 12) are work space.
    """
    bodies = tree.parent.shape[0] + 1
    for i in range(M.shape[0]):
        for j in range(M.shape[0]):
            M[i, j] = Dq[i, j] = Dv[i, j] = 0.0
    # Outward pass: what a joint adds to the motion of the bodies beyond it, and the wrench of each body.
    for b in range(1, bodies):
        _joint_terms(tree, J, V, A, b - 1, X)
        _body_wrench(C, V, A, b, F)
        coriolis_terms(C, V, b, B)
    # Inward pass: F, C and B of row b are those of body b with all bodies beyond it.
    for j in range(bodies - 2, -1, -1):
        b, p, g, col = j + 1, tree.parent[j], tree.ratio[j], tree.coordinate[j]
        sx, sy, sz, tx, ty, tz = J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5]
        tau[k, col] += g * _dot(J, j, 0, F[b, 0], F[b, 1], F[b, 2], F[b, 3], F[b, 4], F[b, 5])
        m0, m1, m2, m3, m4, m5 = momentum(C, b, sx, sy, sz, tx, ty, tz)
        w0, w1, w2, w3, w4, w5 = momentum(C, b, X[j, 0], X[j, 1], X[j, 2], X[j, 3], X[j, 4], X[j, 5])
        c0, c1, c2, c3, c4, c5 = _carried(B, b, tx, ty, tz)
        w0, w1, w2, w3, w4, w5 = 2 * w0 + c0, 2 * w1 + c1, 2 * w2 + c2, 2 * w3 + c3, 2 * w4 + c4, 2 * w5 + c5
        u0, u1, u2, u3, u4, u5 = momentum(C, b, X[j, 6], X[j, 7], X[j, 8], X[j, 9], X[j, 10], X[j, 11])
        c0, c1, c2, c3, c4, c5 = _carried(B, b, X[j, 3], X[j, 4], X[j, 5])
        u0, u1, u2, u3, u4, u5 = u0 + c0, u1 + c1, u2 + c2, u3 + c3, u4 + c4, u5 + c5
        c0, c1, c2, c3, c4, c5 = wrench_cross(
            sx, sy, sz, tx, ty, tz, F[b, 0], F[b, 1], F[b, 2], F[b, 3], F[b, 4], F[b, 5]
        )
        u0, u1, u2, u3, u4, u5 = u0 + c0, u1 + c1, u2 + c2, u3 + c3, u4 + c4, u5 + c5
        # 2 B' J, whose linear part is zero.
        c0, c1, c2 = cross(B[b, 0], B[b, 1], B[b, 2], sx, sy, sz)
        t0 = 2 * (c0 + B[b, 3] * tx + B[b, 6] * ty + B[b, 9] * tz)
        t1 = 2 * (c1 + B[b, 4] * tx + B[b, 7] * ty + B[b, 10] * tz)
        t2 = 2 * (c2 + B[b, 5] * tx + B[b, 8] * ty + B[b, 11] * tz)
        for s in range(tree.support_start[b], tree.support_start[b + 1]):
            i = tree.support[s]
            row, r = tree.coordinate[i], g * tree.ratio[i]
            value = r * _dot(J, i, 0, m0, m1, m2, m3, m4, m5)
            M[row, col] += value
            Dq[row, col] += r * _dot(J, i, 0, u0, u1, u2, u3, u4, u5)
            Dv[row, col] += r * _dot(J, i, 0, w0, w1, w2, w3, w4, w5)
            # J_j . (J_i x* f) and the derivative of J_j along joint i cancel, so that Y and X of joint i remain.
            if i != j:
                M[col, row] += value
                Dq[col, row] += r * (_dot(X, i, 6, m0, m1, m2, m3, m4, m5) + t0 * X[i, 3] + t1 * X[i, 4] + t2 * X[i, 5])
                Dv[col, row] += r * (
                    2.0 * _dot(X, i, 0, m0, m1, m2, m3, m4, m5) + t0 * J[i, 3] + t1 * J[i, 4] + t2 * J[i, 5]
                )
        if p > 0:
            for i in range(6):
                F[p, i] += F[b, i]
            for i in range(10):
                C[p, i] += C[b, i]
            for i in range(12):
                B[p, i] += B[b, i]


@kernel
def inverse_derivatives(tree, inertia, q, v, a, start, stop, tau, M, Dq, Dv):
    """Add rigid-body torques tau (sample, n); fill mass matrices M and derivatives Dq, Dv (sample, n, n)."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    C, B, X = np.empty((bodies, 10)), np.empty((bodies, 12)), np.empty((joints, 12))
    for k in range(start, stop):
        place_and_move(tree, q, v, a, k, R, P, J, V, A)
        base_inertias(tree, inertia, R, P, C)
        rigid_derivatives(tree, J, V, A, C, F, B, X, tau, k, M[k], Dq[k], Dv[k])
