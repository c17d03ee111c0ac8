"""Kinetic and potential energy, linear in the parameters; placements and Jacobians of frames.

With the velocity u of the origin, the angular velocity w, the position p and rotation R of each body, and gravity g:

    T = sum of m u.u / 2 + h.(u x w) + w.I w / 2,    U = -sum of g.(m p + R h).

Source: Gautier and Khalil, Direct Calculation of Minimum Set of Inertial Parameters of Serial Robots (1990), who start
from these functions.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel
from dynid.dynamics.kernels.kinematics import (
    cross,
    gravity_in_base,
    place,
    twist_in_body,
    unrotate,
    velocities,
)


@kernel
def energy_regressor(tree, q, v, start, stop, kinetic, potential):
    """Coefficients of the inertial parameters in both energies, each (sample, parameter).

    Kinetic: m u.u/2 + h.(u x w) + w.I w/2 with u, w in body axes. Potential: -g.(m p + R h).
    """
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V = np.empty((bodies, 6))
    for k in range(start, stop):
        place(tree, q, k, R, P, J)
        velocities(tree, v, k, J, V)
        gx, gy, gz = gravity_in_base(tree, q, k)
        height = 0.0
        if tree.moving:
            height = tree.gravity[0] * q[k, 0] + tree.gravity[1] * q[k, 1] + tree.gravity[2] * q[k, 2]
        for b in range(bodies):
            c = tree.column[b]
            if c < 0:
                continue
            ux, uy, uz, wx, wy, wz = twist_in_body(R, P, b, V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5])
            kinetic[k, c] = 0.5 * (ux * ux + uy * uy + uz * uz)
            kinetic[k, c + 1], kinetic[k, c + 2], kinetic[k, c + 3] = cross(ux, uy, uz, wx, wy, wz)
            kinetic[k, c + 4], kinetic[k, c + 5], kinetic[k, c + 6] = 0.5 * wx * wx, wx * wy, 0.5 * wy * wy
            kinetic[k, c + 7], kinetic[k, c + 8], kinetic[k, c + 9] = wx * wz, wy * wz, 0.5 * wz * wz
            hx, hy, hz = unrotate(R, b, gx, gy, gz)
            potential[k, c] = -(gx * P[b, 0] + gy * P[b, 1] + gz * P[b, 2] + height)
            potential[k, c + 1], potential[k, c + 2], potential[k, c + 3] = -hx, -hy, -hz


@kernel
def placements(tree, q, start, stop, body, rotation, position, twists):
    """Rotation (sample, 3, 3), position (sample, 3) of one body and all joint twists, base coordinates."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    for k in range(start, stop):
        place(tree, q, k, R, P, J)
        for i in range(3):
            position[k, i] = P[body, i]
            for j in range(3):
                rotation[k, i, j] = R[body, 3 * i + j]
        twists[k] = J
