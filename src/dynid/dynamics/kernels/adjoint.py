"""The reverse pass over the regressor: gradient of sum(G * Y) with respect to q, v and a.

sum(G * Y) is the power of every supporting twist S on the wrench of a body whose inertial parameters are the entries of
G in that row. Its gradient has two parts: through the twists expressed in the body (dS_j/dq_i = -S_i x S_j for i at or
beyond j), summed along the chain, and through the motion of the body, propagated back from the tips to the base.

With the pairing <G, Y> = sum of G_jc Y_jc = sum over bodies b and supporting twists S_j of S_j . F_b(pi = G_j), and its
gradients gV_b and gA_b by the motion of body b and of all bodies beyond, the recursion V_b = V_p + J v, A_b = A_p + J a
+ V_p x J v is run backwards:

    da = J . gA_b,    gV_b <- gV_b + (J v) x* gA_b,    dv = J . (gV_b - V_b x* gA_b),
    dq = gq_j - J . (A_p x* gA_b + V_p x* gV_b),    gA_p <- gA_p + gA_b,    gV_p <- gV_p + gV_b.

Source: own derivation, which differentiates the Newton-Euler recursion in reverse (Griewank and Walther, Evaluating
Derivatives, 2008) in base coordinates, where the derivative of a twist by a joint before it is a cross product.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import (
    BASE_TWISTS,
    body_motion,
    body_wrench,
    cross,
    gravity_in_base,
    place_and_move,
    twist_in_body,
    wrench_to_base,
)
from dynid.dynamics.kernels.twists import wrench_cross


@step
def _motion_gradient(ux, uy, uz, tx, ty, tz, m, hx, hy, hz, xx, xy, yy, xz, yz, zz, wx, wy, wz):
    """Gradient of u.f + t.n with respect to w, a, d, for the Newton-Euler wrench (f, n) of one body.

    d: m u + t x h;  a: h x u + I t;  w: u (w.h) + h (u.w) - 2 (u.h) w + I w x t + I (t x w).
    """
    cx, cy, cz = cross(tx, ty, tz, hx, hy, hz)
    ex, ey, ez = cross(hx, hy, hz, ux, uy, uz)
    wh = wx * hx + wy * hy + wz * hz
    uw = ux * wx + uy * wy + uz * wz
    uh = 2.0 * (ux * hx + uy * hy + uz * hz)
    lx = xx * wx + xy * wy + xz * wz
    ly = xy * wx + yy * wy + yz * wz
    lz = xz * wx + yz * wy + zz * wz
    kx, ky, kz = cross(lx, ly, lz, tx, ty, tz)
    px, py, pz = cross(tx, ty, tz, wx, wy, wz)
    return (
        ux * wh + hx * uw - uh * wx + kx + xx * px + xy * py + xz * pz,
        uy * wh + hy * uw - uh * wy + ky + xy * px + yy * py + yz * pz,
        uz * wh + hz * uw - uh * wz + kz + xz * px + yz * py + zz * pz,
        ex + xx * tx + xy * ty + xz * tz,
        ey + xy * tx + yy * ty + yz * tz,
        ez + xz * tx + yz * ty + zz * tz,
        m * ux + cx,
        m * uy + cy,
        m * uz + cz,
    )


@step
def _dot6(J, j, fx, fy, fz, nx, ny, nz):
    return J[j, 0] * fx + J[j, 1] * fy + J[j, 2] * fz + J[j, 3] * nx + J[j, 4] * ny + J[j, 5] * nz


@step
def _one_sample(tree, G, q, v, a, k, R, P, J, V, A, gV, gA, gq, dq, dv, da):
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    rows, first = tree.wrench_rows, 6 * tree.moving
    place_and_move(tree, q, v, a, k, R, P, J, V, A)
    for j in range(joints):
        gq[j] = 0.0
    for b in range(bodies):
        c = tree.column[b]
        if c < 0:
            for i in range(6):
                gV[b, i] = gA[b, i] = 0.0
            continue
        # Bodies one by one: G in the row of a joint is a body whose wrench the twist of that joint works on.
        wx, wy, wz, ax, ay, az, dx, dy, dz = body_motion(R, P, V, A, b)
        swx = swy = swz = sax = say = saz = sdx = sdy = sdz = 0.0  # summed gradients of w, a, d
        px = py = pz = lx = ly = lz = 0.0  # summed S x* f along the chain
        for i in range(-rows, tree.support_start[b + 1] - tree.support_start[b]):
            if i < 0:
                r = rows + i
                g, row, j = 1.0, r, -1
                s = BASE_TWISTS[r]
                ux, uy, uz, tx, ty, tz = twist_in_body(R, P, b, s[0], s[1], s[2], s[3], s[4], s[5])
            else:
                j = tree.support[tree.support_start[b] + i]
                g, row = tree.ratio[j], rows + tree.coordinate[j]
                ux, uy, uz, tx, ty, tz = twist_in_body(R, P, b, J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5])
            m, hx, hy, hz = g * G[k, row, c], g * G[k, row, c + 1], g * G[k, row, c + 2], g * G[k, row, c + 3]
            xx, xy, yy = g * G[k, row, c + 4], g * G[k, row, c + 5], g * G[k, row, c + 6]
            xz, yz, zz = g * G[k, row, c + 7], g * G[k, row, c + 8], g * G[k, row, c + 9]
            fx, fy, fz, nx, ny, nz = body_wrench(
                m, hx, hy, hz, xx, xy, yy, xz, yz, zz, wx, wy, wz, ax, ay, az, dx, dy, dz
            )
            fx, fy, fz, nx, ny, nz = wrench_cross(ux, uy, uz, tx, ty, tz, fx, fy, fz, nx, ny, nz)
            px, py, pz, lx, ly, lz = px + fx, py + fy, pz + fz, lx + nx, ly + ny, lz + nz
            if j >= 0:
                gq[j] -= ux * px + uy * py + uz * pz + tx * lx + ty * ly + tz * lz
            e0, e1, e2, e3, e4, e5, e6, e7, e8 = _motion_gradient(
                ux, uy, uz, tx, ty, tz, m, hx, hy, hz, xx, xy, yy, xz, yz, zz, wx, wy, wz
            )
            swx, swy, swz = swx + e0, swy + e1, swz + e2
            sax, say, saz = sax + e3, say + e4, saz + e5
            sdx, sdy, sdz = sdx + e6, sdy + e7, sdz + e8
        # d = a_linear + w x u with u the velocity of the origin, all in body coordinates.
        ux, uy, uz, tx, ty, tz = twist_in_body(R, P, b, V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5])
        cx, cy, cz = cross(sdx, sdy, sdz, wx, wy, wz)
        ex, ey, ez = cross(ux, uy, uz, sdx, sdy, sdz)
        gV[b, 0], gV[b, 1], gV[b, 2], gV[b, 3], gV[b, 4], gV[b, 5] = wrench_to_base(
            R, P, b, cx, cy, cz, swx + ex, swy + ey, swz + ez
        )
        gA[b, 0], gA[b, 1], gA[b, 2], gA[b, 3], gA[b, 4], gA[b, 5] = wrench_to_base(
            R, P, b, sdx, sdy, sdz, sax, say, saz
        )
    # Reverse of the outward pass: from the tips, each joint takes its part and hands the rest to its parent.
    for j in range(joints - 1, -1, -1):
        b, p = j + 1, tree.parent[j]
        col = first + tree.coordinate[j]
        g = tree.ratio[j]
        velocity = g * v[k, col]
        fx, fy, fz, nx, ny, nz = gA[b, 0], gA[b, 1], gA[b, 2], gA[b, 3], gA[b, 4], gA[b, 5]
        ex, ey, ez, lx, ly, lz = wrench_cross(
            J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5], fx, fy, fz, nx, ny, nz
        )
        gV[b, 0] += velocity * ex
        gV[b, 1] += velocity * ey
        gV[b, 2] += velocity * ez
        gV[b, 3] += velocity * lx
        gV[b, 4] += velocity * ly
        gV[b, 5] += velocity * lz
        da[k, col] += g * _dot6(J, j, fx, fy, fz, nx, ny, nz)
        ex, ey, ez, lx, ly, lz = wrench_cross(
            V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5], fx, fy, fz, nx, ny, nz
        )
        dv[k, col] += g * _dot6(
            J, j, gV[b, 0] - ex, gV[b, 1] - ey, gV[b, 2] - ez, gV[b, 3] - lx, gV[b, 4] - ly, gV[b, 5] - lz
        )
        ex, ey, ez, lx, ly, lz = wrench_cross(
            A[p, 0], A[p, 1], A[p, 2], A[p, 3], A[p, 4], A[p, 5], fx, fy, fz, nx, ny, nz
        )
        ux, uy, uz, tx, ty, tz = wrench_cross(
            V[p, 0], V[p, 1], V[p, 2], V[p, 3], V[p, 4], V[p, 5],
            gV[b, 0], gV[b, 1], gV[b, 2], gV[b, 3], gV[b, 4], gV[b, 5],
        )  # fmt: skip
        dq[k, col] += g * (gq[j] - _dot6(J, j, ex + ux, ey + uy, ez + uz, lx + tx, ly + ty, lz + tz))
        for i in range(6):
            gV[p, i] += gV[b, i]
            gA[p, i] += gA[b, i]
    if tree.moving:
        gx, gy, gz = gravity_in_base(tree, q, k)
        cx, cy, cz = cross(gx, gy, gz, gA[0, 0], gA[0, 1], gA[0, 2])
        dq[k, 3] += cx
        dq[k, 4] += cy
        dq[k, 5] += cz
        for i in range(6):
            dv[k, i] += gV[0, i]
            da[k, i] += gA[0, i]


@kernel
def regressor_adjoint(tree, G, q, v, a, start, stop, dq, dv, da):
    """Add the gradient over the inertial columns to dq, dv, da (sample, nv)."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A = np.empty((bodies, 6)), np.empty((bodies, 6))
    gV, gA, gq = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty(joints)
    for k in range(start, stop):
        _one_sample(tree, G, q, v, a, k, R, P, J, V, A, gV, gA, gq, dq, dv, da)
