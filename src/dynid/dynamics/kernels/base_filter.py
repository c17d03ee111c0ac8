"""Kalman filter and smoother of a floating base from an inertial unit and feet at rest.

The state is (u, g, c, b): velocity of the unit and gravity, both in base axes, bias of the gyroscope and of the
accelerometer. Yaw and position do not occur, so nothing drifts:

    u' = f - b + g - (w - c) x u,    g' = -(w - c) x g,    0 = u + (w - c) x r + d

with specific force f, angular velocity w, and position r and relative velocity d of a foot at rest.

Prediction by Heun's method with P <- F P F' + Q, F = 1 + h A + (h A)^2 / 2; update by scalar rows H, gain P H' / (H P
H' + variance). Backwards, with G = P_k F' P_k+1^-1 of the prediction P_k+1: x_k <- x_k + G (x_k+1 - prediction of it).

Sources: Rauch, Tung and Striebel, Maximum Likelihood Estimates of Linear Dynamic Systems (1965), for the smoother;
Bloesch and others, State Estimation for Legged Robots: Consistent Fusion of Leg Kinematics and IMU (2012), for feet at
rest as measurements. The state in base axes without position and heading is our own choice.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import cross

_SIZE = 12


@step
def _rate(x, f, w, out):
    """Time derivative of velocity and gravity."""
    wx, wy, wz = w[0] - x[6], w[1] - x[7], w[2] - x[8]
    ax, ay, az = cross(wx, wy, wz, x[0], x[1], x[2])
    bx, by, bz = cross(wx, wy, wz, x[3], x[4], x[5])
    out[0], out[1], out[2] = f[0] - x[9] + x[3] - ax, f[1] - x[10] + x[4] - ay, f[2] - x[11] + x[5] - az
    out[3], out[4], out[5] = -bx, -by, -bz


@step
def _minus_skew(A, row, column, x, y, z, sign):
    """A[row:, column:] -= sign [x y z]x."""
    A[row, column + 1] += sign * z
    A[row, column + 2] -= sign * y
    A[row + 1, column] -= sign * z
    A[row + 1, column + 2] += sign * x
    A[row + 2, column] += sign * y
    A[row + 2, column + 1] -= sign * x


@step
def _update(x, P, H, value, variance, gain):
    """Scalar measurement update: H x is seen to differ by `value`."""
    total = variance
    for i in range(_SIZE):
        gain[i] = 0.0
        for j in range(_SIZE):
            gain[i] += P[i, j] * H[j]
    for i in range(_SIZE):
        total += H[i] * gain[i]
    for i in range(_SIZE):
        x[i] += gain[i] * value / total
        for j in range(_SIZE):
            P[i, j] -= gain[i] * gain[j] / total


@kernel
def smooth_base(
    f, w, feet, relative, standing, step_s, weight, x0, P0, noise, foot_std, gate, states, variances, slips
):
    """Fill states (N, 12), variances (N, 12, 12) with the smoothed state, and slips (N, foot) with rejected feet.

    `noise` (12,) are the variances that one step adds. `feet` and `relative` (N, foot, 3) are position and velocity
    of the feet relative to the unit, in base axes; `standing` (N, foot) says which are at rest.
    """
    samples, count = standing.shape
    before = np.zeros((samples, _SIZE))
    P_before = np.zeros((samples, _SIZE, _SIZE))
    F_all = np.zeros((samples, _SIZE, _SIZE))
    x, P = x0.copy(), P0.copy()
    k1, k2, trial = np.zeros(6), np.zeros(6), np.zeros(_SIZE)
    H, gain, e = np.zeros(_SIZE), np.zeros(_SIZE), np.zeros(3)
    A = np.zeros((_SIZE, _SIZE))
    for k in range(samples):
        if k > 0:
            A[:] = 0.0
            wx, wy, wz = w[k - 1, 0] - x[6], w[k - 1, 1] - x[7], w[k - 1, 2] - x[8]
            _minus_skew(A, 0, 0, wx, wy, wz, 1.0)
            _minus_skew(A, 3, 3, wx, wy, wz, 1.0)
            _minus_skew(A, 0, 6, x[0], x[1], x[2], 1.0)
            _minus_skew(A, 3, 6, x[3], x[4], x[5], 1.0)
            for i in range(3):
                A[i, 3 + i] += 1.0
                A[i, 9 + i] -= 1.0
            # Prediction by Heun's method, which uses the measurements at both ends.
            _rate(x, f[k - 1], w[k - 1], k1)
            for i in range(_SIZE):
                trial[i] = x[i] + (step_s * k1[i] if i < 6 else 0.0)
            _rate(trial, f[k], w[k], k2)
            for i in range(6):
                x[i] += 0.5 * step_s * (k1[i] + k2[i])
            F = np.eye(_SIZE) + step_s * A + 0.5 * step_s * step_s * (A @ A)
            P = F @ P @ F.T
            for i in range(_SIZE):
                P[i, i] += noise[i]
            F_all[k] = F
        before[k], P_before[k] = x, P
        # Gravity has a known size.
        size = np.sqrt(x[3] * x[3] + x[4] * x[4] + x[5] * x[5])
        H[:] = 0.0
        for i in range(3):
            H[3 + i] = x[3 + i] / size
        _update(x, P, H, weight - size, (1e-3 * weight) ** 2, gain)
        for c in range(count):
            if not standing[k, c]:
                continue
            r = feet[k, c]
            ax, ay, az = cross(w[k, 0] - x[6], w[k, 1] - x[7], w[k, 2] - x[8], r[0], r[1], r[2])
            e[0], e[1], e[2] = (
                ax + x[0] + relative[k, c, 0],
                ay + x[1] + relative[k, c, 1],
                az + x[2] + relative[k, c, 2],
            )
            squared = e[0] * e[0] + e[1] * e[1] + e[2] * e[2]
            if squared > gate * gate * (3.0 * foot_std * foot_std + P[0, 0] + P[1, 1] + P[2, 2]):
                slips[k, c] = True
                continue
            for i in range(3):
                H[:] = 0.0
                H[i] = 1.0
                # d/dc of (w - c) x r is [r]x.
                j, m = (i + 1) % 3, (i + 2) % 3
                H[6 + j], H[6 + m] = -r[m], r[j]
                ax, ay, az = cross(w[k, 0] - x[6], w[k, 1] - x[7], w[k, 2] - x[8], r[0], r[1], r[2])
                turning = ax if i == 0 else (ay if i == 1 else az)
                _update(x, P, H, -(x[i] + turning + relative[k, c, i]), foot_std * foot_std, gain)
        states[k], variances[k] = x, P
    for k in range(samples - 2, -1, -1):
        # Backward pass of Rauch, Tung and Striebel with the gain P_k F' P_k+1^-1.
        G = np.linalg.solve(P_before[k + 1], F_all[k + 1] @ variances[k]).T
        states[k] += G @ (states[k + 1] - before[k + 1])
        variances[k] += G @ (variances[k + 1] - P_before[k + 1]) @ np.ascontiguousarray(G.T)
