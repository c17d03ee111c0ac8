"""Regressor of the rigid bodies: row (joint), column (inertial parameter)."""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import BASE_TWISTS, body_motion, cross, place_and_move, twist_in_body


@step
def _add_row(Y, row, c, g, ux, uy, uz, tx, ty, tz, wx, wy, wz, ax, ay, az, dx, dy, dz):
    """Power of twist (u, t) on the wrench of each unit parameter, times g, added to Y[row, c:c + 10].

    mass: u.d;  first moment: ([a]x + [w]x^2)' u + d x t;  tensor: coefficients of t.(I a) + (t x w).(I w).
    """
    ux, uy, uz, tx, ty, tz = g * ux, g * uy, g * uz, g * tx, g * ty, g * tz
    uw = ux * wx + uy * wy + uz * wz
    ww = wx * wx + wy * wy + wz * wz
    ex, ey, ez = cross(ux, uy, uz, ax, ay, az)
    fx, fy, fz = cross(dx, dy, dz, tx, ty, tz)
    kx, ky, kz = cross(tx, ty, tz, wx, wy, wz)
    Y[row, c] += ux * dx + uy * dy + uz * dz
    Y[row, c + 1] += ex + uw * wx - ww * ux + fx
    Y[row, c + 2] += ey + uw * wy - ww * uy + fy
    Y[row, c + 3] += ez + uw * wz - ww * uz + fz
    Y[row, c + 4] += tx * ax + kx * wx
    Y[row, c + 5] += tx * ay + ty * ax + kx * wy + ky * wx
    Y[row, c + 6] += ty * ay + ky * wy
    Y[row, c + 7] += tx * az + tz * ax + kx * wz + kz * wx
    Y[row, c + 8] += ty * az + tz * ay + ky * wz + kz * wy
    Y[row, c + 9] += tz * az + kz * wz


@kernel
def regressor(tree, q, v, a, start, stop, out):
    """Fill out[start:stop] (sample, row, parameter), which must be zero."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A = np.empty((bodies, 6)), np.empty((bodies, 6))
    wrench_rows = tree.wrench_rows
    for k in range(start, stop):
        place_and_move(tree, q, v, a, k, R, P, J, V, A)
        Y = out[k]
        for b in range(bodies):
            c = tree.column[b]
            if c < 0:
                continue
            wx, wy, wz, ax, ay, az, dx, dy, dz = body_motion(R, P, V, A, b)
            for i in range(wrench_rows):
                s = BASE_TWISTS[i]
                ux, uy, uz, tx, ty, tz = twist_in_body(R, P, b, s[0], s[1], s[2], s[3], s[4], s[5])
                _add_row(Y, i, c, 1.0, ux, uy, uz, tx, ty, tz, wx, wy, wz, ax, ay, az, dx, dy, dz)
            for i in range(tree.support_start[b], tree.support_start[b + 1]):
                j = tree.support[i]
                ux, uy, uz, tx, ty, tz = twist_in_body(R, P, b, J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5])
                row = wrench_rows + tree.coordinate[j]
                _add_row(Y, row, c, tree.ratio[j], ux, uy, uz, tx, ty, tz, wx, wy, wz, ax, ay, az, dx, dy, dz)
