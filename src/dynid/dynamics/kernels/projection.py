"""Rows of the equations of motion without contact forces, whitened, sample by sample.

With contact Jacobian J_c and contact forces f, the rows Y pi = tau + J_c' f lose the forces on the null space N of J_c:

    N' Y pi = N' tau,    A = N' (S S + M D D M') N = L L',    out = L^-1 N' Y

with diagonal matrices S and D of the standard deviations of torques and accelerations. N are the last columns of Q in
J_c' = Q R, by Householder reflections.

Sources: Mistry, Buchli and Schaal, Inverse Dynamics Control of Floating Base Systems Using Orthogonal Decomposition
(2010), for the projection; Golub and Van Loan, Matrix Computations (4th edition 2013), chapter 5, for the reflections.
"""

from math import sqrt

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step

# A column of the transposed contact Jacobian that depends on those before it, relative to its own size.
_DEPENDENT = 1e-9
# Least variance of a row relative to the largest: rows whose noise is rounding would decide everything.
_LEAST = 1e-12


@step
def _reflect(rows, first, direction, size, sums):
    """Apply the Householder reflection of direction[first:] with its squared norm to rows[first:]."""
    height, width = rows.shape
    for c in range(width):
        sums[c] = 0.0
    for i in range(first, height):
        x = direction[i]
        if x != 0.0:
            for c in range(width):
                sums[c] += x * rows[i, c]
    for i in range(first, height):
        x = 2.0 * direction[i] / size
        if x != 0.0:
            for c in range(width):
                rows[i, c] -= x * sums[c]


@kernel
def project(jacobian, columns, mass, torque_std, acceleration_std, start, stop, out):
    """Fill out[start:stop] (sample, nv - r, p) with L^-1 N' Y, for columns Y (sample, nv, p).

    N spans the null space of the contact Jacobian (sample, r, nv). L L' is the covariance of N' times the noise of the
    torques, std (sample, nv), and of the accelerations, std (nv,), carried by the mass matrix.
    """
    r, nv, p = jacobian.shape[1], columns.shape[1], columns.shape[2]
    m = nv - r
    # Columns: transposed Jacobian, noise of the torques, noise of the accelerations, Y.
    rows = np.empty((nv, r + 2 * nv + p))
    sums, direction = np.empty(rows.shape[1]), np.empty(nv)
    L = np.empty((m, m))
    first = r + 2 * nv
    for k in range(start, stop):
        for i in range(nv):
            for c in range(r):
                rows[i, c] = jacobian[k, c, i]
            for c in range(nv):
                rows[i, r + c] = torque_std[k, i] if c == i else 0.0
                rows[i, r + nv + c] = mass[k, i, c] * acceleration_std[c]
            for c in range(p):
                rows[i, first + c] = columns[k, i, c]
        for c in range(r):
            # Householder QR of J_c': below the first r rows, Q' is N', and all columns are turned along.
            whole, rest = 0.0, 0.0
            for i in range(nv):
                x = rows[i, c] * rows[i, c]
                whole += x
                if i >= c:
                    rest += x
                    direction[i] = rows[i, c]
            if rest <= _DEPENDENT * _DEPENDENT * whole:
                continue
            direction[c] += sqrt(rest) if direction[c] >= 0.0 else -sqrt(rest)
            size = 0.0
            for i in range(c, nv):
                size += direction[i] * direction[i]
            _reflect(rows, c, direction, size, sums)
        # Covariance of the projected noise, N' (S S + M D D M') N, and its Cholesky factor L.
        largest = 0.0
        for i in range(m):
            for j in range(i + 1):
                total = 0.0
                for c in range(r, first):
                    total += rows[r + i, c] * rows[r + j, c]
                L[i, j] = total
            largest = max(largest, L[i, i])
        for i in range(m):
            for j in range(i + 1):
                total = L[i, j]
                for c in range(j):
                    total -= L[i, c] * L[j, c]
                if i == j:
                    L[i, i] = sqrt(max(total, _LEAST * largest))
                else:
                    L[i, j] = total / L[j, j]
        for i in range(m):
            # Whitened rows L^-1 N' Y by forward substitution.
            row = out[k, i]
            for c in range(p):
                row[c] = rows[r + i, first + c]
            for j in range(i):
                x = L[i, j]
                for c in range(p):
                    row[c] -= x * out[k, j, c]
            x = 1.0 / L[i, i]
            for c in range(p):
                row[c] *= x
