"""Forward dynamics: solve M a = tau - bias.

With the mass matrix M and the bias (Coriolis, gravity and drive torques) at (q, v),

    a = M^-1 (tau - bias),    M = L' L.

Source: Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 6 (inertia-matrix methods) and section 6.5 (factors
of a branched tree).
"""

from math import sqrt

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.equations import equations


@step
def factor(M):
    """M = L' L in place; False where M is not positive definite.

    From the last row upwards, which preserves the zeros between branches (Featherstone 2008, section 6.5).
    """
    for k in range(M.shape[0] - 1, -1, -1):
        d = M[k, k]
        if not d > 0.0:
            return False
        d = sqrt(d)
        M[k, k] = d
        for i in range(k):
            M[k, i] /= d
        for i in range(k):
            s = M[k, i]
            if s != 0.0:
                for j in range(i + 1):
                    M[i, j] -= s * M[k, j]
    return True


@step
def substitute(L, x):
    """Solve L' L x = x in place."""
    n = L.shape[0]
    for k in range(n - 1, -1, -1):
        s = x[k] / L[k, k]
        x[k] = s
        for i in range(k):
            x[i] -= L[k, i] * s
    for k in range(n):
        s = x[k]
        for i in range(k):
            s -= L[k, i] * x[i]
        x[k] = s / L[k, k]


@step
def _solve(M, x):
    """Solve M x = x in place; False where M is not positive definite."""
    if not factor(M):
        return False
    substitute(M, x)
    return True


@step
def accelerate(tree, inertia, drives, values, q, v, tau, k, zero, R, P, J, V, A, F, C, M, bias, out):
    """Acceleration of sample k; False where its mass matrix is not positive definite, or a loop cannot close."""
    q, v = q[k : k + 1], v[k : k + 1]
    if not equations(tree, inertia, drives, values, values, q, v, zero, R, P, J, V, A, F, C, M, bias):
        return False
    for i in range(bias.shape[1]):
        out[k, i] = tau[k, i] - bias[0, i]
    return _solve(M, out[k])


@kernel
def forward_dynamics(tree, inertia, drives, values, q, v, tau, start, stop, out):
    """Accelerations out (sample, nv) from torques tau; first sample with a mass matrix not positive definite, or -1."""
    bodies, joints, rows = tree.parent.shape[0] + 1, tree.parent.shape[0], v.shape[1]
    R, P, J = np.empty((bodies, 9)), np.empty((bodies, 3)), np.empty((joints, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    C, M = np.empty((bodies, 10)), np.empty((rows, rows))
    zero, bias = np.zeros((1, rows)), np.empty((1, rows))
    for k in range(start, stop):
        if not accelerate(tree, inertia, drives, values, q, v, tau, k, zero, R, P, J, V, A, F, C, M, bias, out):
            return k
    return -1


@kernel
def solve(matrices, start, stop, out):
    """Solve matrices[k] x = out[k] in place, overwriting the matrices; first sample that cannot be solved, or -1."""
    for k in range(start, stop):
        if not _solve(matrices[k], out[k]):
            return k
    return -1
