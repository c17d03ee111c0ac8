"""Regressor of the rigid bodies: row (joint), column (inertial parameter).

Newton-Euler wrenches are linear in the inertial parameters pi_b = (m, h, I) of a body, so that

    tau_j = sum over b beyond j of J_j . W_b pi_b,    Y[j, columns of b] = J_j . W_b

where column i of W_b is the wrench of body b whose parameter i is one and all others zero.

Sources: Atkeson, An and Hollerbach, Estimation of Inertial Parameters of Manipulator Loads and Links (1986); Khalil and
Dombre, Modeling, Identification and Control of Robots (2002), chapter on the identification of dynamic parameters.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import body_motion, cross, place_and_move, rotate, wrench_to_base


@step
def _unit_wrenches(R, P, V, A, b, c, W):
    """W[:, c:c + 10]: wrench of body b for each unit parameter, in base coordinates at the base origin.

    mass: f = d;  first moment h: f = ([a]x + [w]x^2) h, n = h x d;  tensor I: n = I a + w x I w.
    """
    wx, wy, wz, ax, ay, az, dx, dy, dz = body_motion(R, P, V, A, b)
    xx, yy, zz, xy, xz, yz = wx * wx, wy * wy, wz * wz, wx * wy, wx * wz, wy * wz
    fx, fy, fz = rotate(R, b, dx, dy, dz)
    W[0, c], W[1, c], W[2, c] = fx, fy, fz
    W[3, c], W[4, c], W[5, c] = cross(P[b, 0], P[b, 1], P[b, 2], fx, fy, fz)
    W[0, c + 1], W[1, c + 1], W[2, c + 1], W[3, c + 1], W[4, c + 1], W[5, c + 1] = wrench_to_base(
        R, P, b, -yy - zz, xy + az, xz - ay, 0.0, -dz, dy
    )
    W[0, c + 2], W[1, c + 2], W[2, c + 2], W[3, c + 2], W[4, c + 2], W[5, c + 2] = wrench_to_base(
        R, P, b, xy - az, -xx - zz, yz + ax, dz, 0.0, -dx
    )
    W[0, c + 3], W[1, c + 3], W[2, c + 3], W[3, c + 3], W[4, c + 3], W[5, c + 3] = wrench_to_base(
        R, P, b, xz + ay, yz - ax, -xx - yy, -dy, dx, 0.0
    )
    W[3, c + 4], W[4, c + 4], W[5, c + 4] = rotate(R, b, ax, xz, -xy)
    W[3, c + 5], W[4, c + 5], W[5, c + 5] = rotate(R, b, ay - xz, ax + yz, xx - yy)
    W[3, c + 6], W[4, c + 6], W[5, c + 6] = rotate(R, b, -yz, ay, xy)
    W[3, c + 7], W[4, c + 7], W[5, c + 7] = rotate(R, b, az + xy, zz - xx, ax - yz)
    W[3, c + 8], W[4, c + 8], W[5, c + 8] = rotate(R, b, yy - zz, az - xy, ay + xz)
    W[3, c + 9], W[4, c + 9], W[5, c + 9] = rotate(R, b, yz, -xz, az)


@step
def regressor_sample(tree, q, v, a, k, R, P, J, V, A, W, out):
    """Fill out[k]: the row of a joint is the power of its twist on the unit wrenches of all bodies it carries.

    That is one long product over stretches of columns, which the compiler turns into vector instructions.
    """
    place_and_move(tree, q, v, a, k, R, P, J, V, A)
    for b in range(tree.parent.shape[0] + 1):
        if tree.column[b] >= 0:
            _unit_wrenches(R, P, V, A, b, tree.column[b], W)
    rows = tree.wrench_rows
    for i in range(rows):
        for c in range(W.shape[1]):
            out[k, i, c] = W[i, c]
    for j in range(tree.parent.shape[0]):
        g, y = tree.ratio[j], out[k, rows + tree.coordinate[j]]
        s0, s1, s2, s3, s4, s5 = g * J[j, 0], g * J[j, 1], g * J[j, 2], g * J[j, 3], g * J[j, 4], g * J[j, 5]
        for r in range(tree.stretch_start[j], tree.stretch_start[j + 1]):
            for c in range(tree.stretch[r, 0], tree.stretch[r, 1]):
                y[c] += s0 * W[0, c] + s1 * W[1, c] + s2 * W[2, c] + s3 * W[3, c] + s4 * W[4, c] + s5 * W[5, c]


@kernel
def regressor(tree, q, v, a, start, stop, out):
    """Fill out[start:stop] (sample, row, parameter), which must be zero."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A = np.empty((bodies, 6)), np.empty((bodies, 6))
    W = np.zeros((6, out.shape[2]))  # remains zero in drive columns, and in the forces of the inertia tensors
    for k in range(start, stop):
        regressor_sample(tree, q, v, a, k, R, P, J, V, A, W, out)
