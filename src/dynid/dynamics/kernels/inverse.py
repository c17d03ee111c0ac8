"""Inverse dynamics by Newton-Euler, for given inertial parameters.

Recursive Newton-Euler algorithm: with the motion of all bodies from the outward pass (`kinematics`),

    F_b = I_b A_b + V_b x* I_b V_b,    F_p <- F_p + F_b,    tau_j = J_j . F_b

from the tips to the base. Of a moving base, F_0 is the wrench on it.

Sources: Luh, Walker and Paul, On-Line Computational Scheme for Mechanical Manipulators (1980); Featherstone, Rigid Body
Dynamics Algorithms (2008), chapter 5.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import body_motion, body_wrench, place_and_move, wrench_to_base


@step
def rigid_torque(tree, inertia, R, P, J, V, A, F, tau, k):
    """Add the rigid-body torque of the motion (R, P, J, V, A) to tau[k]."""
    bodies = tree.parent.shape[0] + 1
    # Newton and Euler for each body at its own origin, where its inertia is constant.
    for b in range(bodies):
        if not tree.massive[b]:
            F[b, 0] = F[b, 1] = F[b, 2] = F[b, 3] = F[b, 4] = F[b, 5] = 0.0
            continue
        wx, wy, wz, ax, ay, az, dx, dy, dz = body_motion(R, P, V, A, b)
        i = inertia[b]
        fx, fy, fz, nx, ny, nz = body_wrench(
            i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], wx, wy, wz, ax, ay, az, dx, dy, dz
        )
        F[b, 0], F[b, 1], F[b, 2], F[b, 3], F[b, 4], F[b, 5] = wrench_to_base(R, P, b, fx, fy, fz, nx, ny, nz)
    # Inward pass: a joint carries the wrenches of all bodies beyond it.
    for j in range(bodies - 2, -1, -1):
        b, p = j + 1, tree.parent[j]
        power = (
            J[j, 0] * F[b, 0]
            + J[j, 1] * F[b, 1]
            + J[j, 2] * F[b, 2]
            + J[j, 3] * F[b, 3]
            + J[j, 4] * F[b, 4]
            + J[j, 5] * F[b, 5]
        )
        tau[k, tree.wrench_rows + tree.coordinate[j]] += tree.ratio[j] * power
        for i in range(6):
            F[p, i] += F[b, i]
    for i in range(tree.wrench_rows):
        tau[k, i] += F[0, i]


@kernel
def inverse_dynamics(tree, inertia, q, v, a, start, stop, tau):
    """Add the rigid-body torques of samples start:stop to tau (sample, row)."""
    bodies, joints = tree.parent.shape[0] + 1, tree.parent.shape[0]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    for k in range(start, stop):
        place_and_move(tree, q, v, a, k, R, P, J, V, A)
        rigid_torque(tree, inertia, R, P, J, V, A, F, tau, k)
