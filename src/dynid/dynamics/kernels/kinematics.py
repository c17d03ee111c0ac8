"""Placements, joint twists, velocities and accelerations of all bodies for one sample.

Outward pass of the recursive Newton-Euler algorithm, from parent p over joint j to body b = j + 1:

    R_b = R_p E_j(x),    P_b = P_p + R_p t_j(x),    x = ratio q + offset,    J_j = (R_b s + P_b x R_b w, R_b w)
    V_b = V_p + J_j v_j,    A_b = A_p + J_j a_j + V_p x J_j v_j

with the twist S_j = (s, w) of the joint in axes of its body. E_j is a constant matrix, one times sin x and one times
cos x; t_j has a part in proportion to x as well. Gravity enters as the acceleration A_0 = -g of the base.

Sources: Luh, Walker and Paul, On-Line Computational Scheme for Mechanical Manipulators (1980), for the recursion and
the accelerated base; Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 5, for its form with spatial vectors.
"""

from math import cos, sin

import numpy as np

from dynid.dynamics.kernels.compiler import step

# Twists of the six base coordinates, in base coordinates.
BASE_TWISTS = np.eye(6)


@step
def cross(ax, ay, az, bx, by, bz):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@step
def rotate(R, b, x, y, z):
    """R_b u: body to base coordinates."""
    return (
        R[b, 0] * x + R[b, 1] * y + R[b, 2] * z,
        R[b, 3] * x + R[b, 4] * y + R[b, 5] * z,
        R[b, 6] * x + R[b, 7] * y + R[b, 8] * z,
    )


@step
def unrotate(R, b, x, y, z):
    """R_b' u: base to body coordinates."""
    return (
        R[b, 0] * x + R[b, 3] * y + R[b, 6] * z,
        R[b, 1] * x + R[b, 4] * y + R[b, 7] * z,
        R[b, 2] * x + R[b, 5] * y + R[b, 8] * z,
    )


@step
def place_joint(tree, q, k, j, R, P, J):
    """Rotation and position of the body on joint j, and the twist of the joint, in base coordinates."""
    p, b = tree.parent[j], j + 1
    x = tree.ratio[j] * q[k, 7 * tree.moving + tree.coordinate[j]] + tree.offset[j]
    s, c = sin(x), cos(x)
    f = tree.rotation[j]
    r0 = f[0, 0] + s * f[1, 0] + c * f[2, 0]
    r1 = f[0, 1] + s * f[1, 1] + c * f[2, 1]
    r2 = f[0, 2] + s * f[1, 2] + c * f[2, 2]
    r3 = f[0, 3] + s * f[1, 3] + c * f[2, 3]
    r4 = f[0, 4] + s * f[1, 4] + c * f[2, 4]
    r5 = f[0, 5] + s * f[1, 5] + c * f[2, 5]
    r6 = f[0, 6] + s * f[1, 6] + c * f[2, 6]
    r7 = f[0, 7] + s * f[1, 7] + c * f[2, 7]
    r8 = f[0, 8] + s * f[1, 8] + c * f[2, 8]
    t = tree.position[j]
    tx = t[0, 0] + s * t[1, 0] + c * t[2, 0] + x * t[3, 0]
    ty = t[0, 1] + s * t[1, 1] + c * t[2, 1] + x * t[3, 1]
    tz = t[0, 2] + s * t[1, 2] + c * t[2, 2] + x * t[3, 2]
    # The twist of the joint is constant in axes of its body: a joint does not change its own axis.
    S = tree.subspace[j]
    # Row by row of R_p: the body's rotation, its position and the two halves of the twist.
    e0, e1, e2 = R[p, 0], R[p, 1], R[p, 2]
    b0, b1, b2 = e0 * r0 + e1 * r3 + e2 * r6, e0 * r1 + e1 * r4 + e2 * r7, e0 * r2 + e1 * r5 + e2 * r8
    px = P[p, 0] + e0 * tx + e1 * ty + e2 * tz
    vx, wx = b0 * S[0] + b1 * S[1] + b2 * S[2], b0 * S[3] + b1 * S[4] + b2 * S[5]
    R[b, 0], R[b, 1], R[b, 2], P[b, 0] = b0, b1, b2, px
    e0, e1, e2 = R[p, 3], R[p, 4], R[p, 5]
    b0, b1, b2 = e0 * r0 + e1 * r3 + e2 * r6, e0 * r1 + e1 * r4 + e2 * r7, e0 * r2 + e1 * r5 + e2 * r8
    py = P[p, 1] + e0 * tx + e1 * ty + e2 * tz
    vy, wy = b0 * S[0] + b1 * S[1] + b2 * S[2], b0 * S[3] + b1 * S[4] + b2 * S[5]
    R[b, 3], R[b, 4], R[b, 5], P[b, 1] = b0, b1, b2, py
    e0, e1, e2 = R[p, 6], R[p, 7], R[p, 8]
    b0, b1, b2 = e0 * r0 + e1 * r3 + e2 * r6, e0 * r1 + e1 * r4 + e2 * r7, e0 * r2 + e1 * r5 + e2 * r8
    pz = P[p, 2] + e0 * tx + e1 * ty + e2 * tz
    vz, wz = b0 * S[0] + b1 * S[1] + b2 * S[2], b0 * S[3] + b1 * S[4] + b2 * S[5]
    R[b, 6], R[b, 7], R[b, 8], P[b, 2] = b0, b1, b2, pz
    cx, cy, cz = cross(px, py, pz, wx, wy, wz)
    J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5] = vx + cx, vy + cy, vz + cz, wx, wy, wz


@step
def place(tree, q, k, R, P, J):
    """Rotation R (b, 9), position P (b, 3) of every body, twist J (j, 6) of every joint, sample k."""
    for i in range(9):
        R[0, i] = 0.0
    R[0, 0] = R[0, 4] = R[0, 8] = 1.0
    P[0, 0] = P[0, 1] = P[0, 2] = 0.0
    for j in range(tree.parent.shape[0]):
        place_joint(tree, q, k, j, R, P, J)


@step
def gravity_in_base(tree, q, k):
    """Gravity in base coordinates: constant, or rotated by the quaternion of a floating base."""
    gx, gy, gz = tree.gravity[0], tree.gravity[1], tree.gravity[2]
    if tree.moving:
        # R' g with R of the unit quaternion (x, y, z, w): g + 2 u x (u x g) - 2 w u x g.
        ux, uy, uz, w = q[k, 3], q[k, 4], q[k, 5], q[k, 6]
        cx, cy, cz = cross(ux, uy, uz, gx, gy, gz)
        dx, dy, dz = cross(ux, uy, uz, cx, cy, cz)
        gx, gy, gz = gx + 2 * (dx - w * cx), gy + 2 * (dy - w * cy), gz + 2 * (dz - w * cz)
    return gx, gy, gz


@step
def velocities(tree, v, k, J, V):
    """Twist V (b, 6) of every body, sample k: V_b = V_p + J_j v_j."""
    first = 6 * tree.moving
    for i in range(6):
        V[0, i] = v[k, i] if tree.moving else 0.0
    for j in range(tree.parent.shape[0]):
        rate = tree.ratio[j] * v[k, first + tree.coordinate[j]]
        for i in range(6):
            V[j + 1, i] = V[tree.parent[j], i] + rate * J[j, i]


@step
def place_and_move(tree, q, v, a, k, R, P, J, V, A):
    """`place`, and twist V (b, 6) and spatial acceleration A (b, 6) less gravity of every body, sample k.

    V_b = V_p + J_j v_j,  A_b = A_p + J_j a_j + V_p x J_j v_j.
    """
    place(tree, q, k, R, P, J)
    first = 6 * tree.moving
    gx, gy, gz = gravity_in_base(tree, q, k)
    for i in range(6):
        V[0, i] = v[k, i] if tree.moving else 0.0
        A[0, i] = a[k, i] if tree.moving else 0.0
    A[0, 0] -= gx
    A[0, 1] -= gy
    A[0, 2] -= gz
    # The motion of the last body stays in registers: along a chain, reading it back from the arrays is slow.
    ux, uy, uz, wx, wy, wz = V[0, 0], V[0, 1], V[0, 2], V[0, 3], V[0, 4], V[0, 5]
    ax, ay, az, ex, ey, ez = A[0, 0], A[0, 1], A[0, 2], A[0, 3], A[0, 4], A[0, 5]
    for j in range(tree.parent.shape[0]):
        j0, j1, j2, j3, j4, j5 = J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5]
        p, b = tree.parent[j], j + 1
        if p != j:
            ux, uy, uz, wx, wy, wz = V[p, 0], V[p, 1], V[p, 2], V[p, 3], V[p, 4], V[p, 5]
            ax, ay, az, ex, ey, ez = A[p, 0], A[p, 1], A[p, 2], A[p, 3], A[p, 4], A[p, 5]
        i = first + tree.coordinate[j]
        dq, ddq = tree.ratio[j] * v[k, i], tree.ratio[j] * a[k, i]
        sx, sy, sz, tx, ty, tz = dq * j0, dq * j1, dq * j2, dq * j3, dq * j4, dq * j5
        c1x, c1y, c1z = cross(wx, wy, wz, sx, sy, sz)
        c2x, c2y, c2z = cross(ux, uy, uz, tx, ty, tz)
        c3x, c3y, c3z = cross(wx, wy, wz, tx, ty, tz)
        ux, uy, uz, wx, wy, wz = ux + sx, uy + sy, uz + sz, wx + tx, wy + ty, wz + tz
        ax, ay, az = ax + ddq * j0 + c1x + c2x, ay + ddq * j1 + c1y + c2y, az + ddq * j2 + c1z + c2z
        ex, ey, ez = ex + ddq * j3 + c3x, ey + ddq * j4 + c3y, ez + ddq * j5 + c3z
        V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5] = ux, uy, uz, wx, wy, wz
        A[b, 0], A[b, 1], A[b, 2], A[b, 3], A[b, 4], A[b, 5] = ax, ay, az, ex, ey, ez


@step
def body_motion(R, P, V, A, b):
    """Angular velocity, angular acceleration and acceleration of the origin, in body coordinates."""
    wx, wy, wz = V[b, 3], V[b, 4], V[b, 5]
    px, py, pz = P[b, 0], P[b, 1], P[b, 2]
    cx, cy, cz = cross(wx, wy, wz, px, py, pz)
    ux, uy, uz = V[b, 0] + cx, V[b, 1] + cy, V[b, 2] + cz
    ex, ey, ez = cross(A[b, 3], A[b, 4], A[b, 5], px, py, pz)
    fx, fy, fz = cross(wx, wy, wz, ux, uy, uz)
    dx, dy, dz = unrotate(R, b, A[b, 0] + ex + fx, A[b, 1] + ey + fy, A[b, 2] + ez + fz)
    ax, ay, az = unrotate(R, b, A[b, 3], A[b, 4], A[b, 5])
    wx, wy, wz = unrotate(R, b, wx, wy, wz)
    return wx, wy, wz, ax, ay, az, dx, dy, dz


@step
def twist_in_body(R, P, b, sx, sy, sz, tx, ty, tz):
    """A base-frame twist expressed in body b: R'(s + t x p), R't."""
    cx, cy, cz = cross(tx, ty, tz, P[b, 0], P[b, 1], P[b, 2])
    ux, uy, uz = unrotate(R, b, sx + cx, sy + cy, sz + cz)
    tx, ty, tz = unrotate(R, b, tx, ty, tz)
    return ux, uy, uz, tx, ty, tz


@step
def wrench_to_base(R, P, b, fx, fy, fz, nx, ny, nz):
    """A wrench at the origin of body b, moved to the base origin in base coordinates."""
    fx, fy, fz = rotate(R, b, fx, fy, fz)
    nx, ny, nz = rotate(R, b, nx, ny, nz)
    cx, cy, cz = cross(P[b, 0], P[b, 1], P[b, 2], fx, fy, fz)
    return fx, fy, fz, nx + cx, ny + cy, nz + cz


@step
def body_wrench(m, hx, hy, hz, xx, xy, yy, xz, yz, zz, wx, wy, wz, ax, ay, az, dx, dy, dz):
    """Newton-Euler for one body at its origin: f = m d + a x h + w x (w x h), n = I a + w x I w + h x d."""
    cx, cy, cz = cross(wx, wy, wz, hx, hy, hz)
    fx, fy, fz = cross(wx, wy, wz, cx, cy, cz)
    gx, gy, gz = cross(ax, ay, az, hx, hy, hz)
    lx = xx * wx + xy * wy + xz * wz
    ly = xy * wx + yy * wy + yz * wz
    lz = xz * wx + yz * wy + zz * wz
    kx, ky, kz = cross(wx, wy, wz, lx, ly, lz)
    ex, ey, ez = cross(hx, hy, hz, dx, dy, dz)
    return (
        m * dx + gx + fx,
        m * dy + gy + fy,
        m * dz + gz + fz,
        xx * ax + xy * ay + xz * az + kx + ex,
        xy * ax + yy * ay + yz * az + ky + ey,
        xz * ax + yz * ay + zz * az + kz + ez,
    )
