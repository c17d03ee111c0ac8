"""Kalman filters of parameters and state in square-root form.

The order is (parameters, positions, velocities) with covariance S S', S lower triangular. Parameters are constant in a
prediction, so that only the 2 n rows of the state need a new triangle.

With x = (beta, q, v), P = S S' and the gain k = P H' / (H P H' + variance) of a scalar measurement y = H x:

    x <- x + k (y - H x),    P <- (1 - k H) P,    prediction    P <- F P F' + Q

where F comes from derivatives (`extended_filter`) or from sigma points (`unscented_filter`).

Sources: Carlson, Fast Triangular Formulation of the Square Root Filter (1973), for the update of S; Julier, The Scaled
Unscented Transformation (2002), for the sigma points. The triangular prediction with constant parameters is our own.
"""

from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.drives import drive_regressor, drive_torques, is_dry
from dynid.dynamics.kernels.integrate import DIVERGED, DONE, hold
from dynid.dynamics.kernels.inverse import inverse_dynamics
from dynid.dynamics.kernels.mass import mass_matrix
from dynid.dynamics.kernels.regressor import regressor

_DIFFERENCE = 1e-6  # step of finite differences over positions and velocities


class Model(NamedTuple):
    """Standard parameters pi = offset + matrix beta, and the columns `kept` that beta has in the regressor.

    The standard deviations are `drift` (b,) of the random walk of a parameter in one second, `torque` (n,) of
    unmeasured torques during a step of the filter, and `position` (n,) of measured positions. `alpha` is the parameter
    of the sigma points.
    """

    offset: np.ndarray
    matrix: np.ndarray
    kept: np.ndarray
    drift: np.ndarray
    torque: np.ndarray
    position: np.ndarray
    alpha: float


@step
def _widen(S, first, x):
    """Rank-one update: S S' becomes S S' + x x'; x (m,) is zero before entry `first` and is overwritten."""
    for k in range(first, S.shape[0]):
        d = S[k, k]
        r = hypot(d, x[k])
        S[k, k] = r
        for i in range(k + 1, S.shape[0]):
            s = S[i, k]
            S[i, k] = (s * d + x[i] * x[k]) / r
            x[i] = (x[i] * d - s * x[k]) / r


@step
def _correct(mean, S, row, value, variance, e):
    """Measurement update of state `row` with `value` (Carlson 1973); returns the normalised squared innovation."""
    total = variance
    for i in range(S.shape[0]):
        e[i] = 0.0
    for j in range(row, -1, -1):
        # One column of S after the other: the variance of the innovation grows from that of the measurement.
        f = S[row, j]
        before = total
        total += f * f
        shrink, turn = sqrt(before / total), f / sqrt(before * total)
        for i in range(j, S.shape[0]):
            s = S[i, j]
            S[i, j] = shrink * s - turn * e[i]
            e[i] += f * s
    surprise = value - mean[row]
    for i in range(S.shape[0]):
        mean[i] += e[i] / total * surprise
    return surprise * surprise / total


@step
def _parameter(model, c, beta):
    """Standard parameter c of base values beta."""
    x = model.offset[c]
    for j in range(beta.shape[0]):
        x += model.matrix[c, j] * beta[j]
    return x


@kernel
def _set_parameters(tree, inertia, drives, values, model, beta, w):
    """Write the parameters of base values beta into inertia and values."""
    for b in range(tree.column.shape[0]):
        if tree.column[b] >= 0:
            for i in range(10):
                inertia[b, i] = _parameter(model, tree.column[b] + i, beta)
    for t in range(values.shape[0]):
        values[t] = _parameter(model, drives.column[t], beta)
        w.smooth[t] = 0.0 if is_dry(drives.kind[t]) else values[t]


@kernel
def _move(tree, inertia, drives, values, method, tick, x, torque, push, w):
    """Integrate the state x (2 n,) under torques (m, n), each held for a tick, plus `push` (n,); returns the result."""
    n = push.shape[0]
    for i in range(n):
        w.q[0, i], w.v[0, i] = x[i], x[n + i]
    end = DONE
    for k in range(torque.shape[0]):
        for i in range(n):
            w.tau[0, i] = torque[k, i] + push[i]
        end = hold(tree, inertia, drives, values, method, tick, w)
        if end != DONE:
            break
    for i in range(n):
        x[i], x[n + i] = w.q[0, i], w.v[0, i]
    return end


@step
def _keep_triangle(wide, S, first):
    """Write the lower triangular T with T T' = wide wide' into S from row and column `first` on (Householder)."""
    rows, columns = wide.shape
    for k in range(rows):
        size = 0.0
        for j in range(k, columns):
            size += wide[k, j] ** 2
        size = -sqrt(size) if wide[k, k] > 0.0 else sqrt(size)
        if size != 0.0:
            wide[k, k] -= size
            scale = 1.0 / (size * wide[k, k])
            for i in range(k + 1, rows):
                s = 0.0
                for j in range(k, columns):
                    s += wide[i, j] * wide[k, j]
                for j in range(k, columns):
                    wide[i, j] += scale * s * wide[k, j]
        wide[k, k] = size
        for j in range(k + 1):
            S[first + k, first + j] = wide[k, j]


@step
def _solve(A, B):
    """Solve A X = B in place of B, by elimination with pivoting; A is overwritten."""
    n = A.shape[0]
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        for j in range(k, n):
            A[k, j], A[p, j] = A[p, j], A[k, j]
        for j in range(B.shape[1]):
            B[k, j], B[p, j] = B[p, j], B[k, j]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            for j in range(k, n):
                A[i, j] -= f * A[k, j]
            for j in range(B.shape[1]):
                B[i, j] -= f * B[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(B.shape[1]):
            s = B[k, j]
            for i in range(k + 1, n):
                s -= A[k, i] * B[i, j]
            B[k, j] = s / A[k, k]


@kernel
def _extended(tree, inertia, drives, values, method, model, tick, torque, mean, S, w):
    """Predict with the dynamics linearised about the mean of the span, implicit in velocity.

    M dv' = M dv - h (K dq + D dv' + Y db - dtau), dq' = dq + h dv', with K, D the slopes of inverse dynamics.
    """
    n, b, span = torque.shape[1], model.kept.shape[0], tick * torque.shape[0]
    rows = 2 * n + 1
    q, v, a, tau = np.zeros((rows, n)), np.zeros((rows, n)), np.zeros((rows, n)), np.zeros((rows, n))
    _set_parameters(tree, inertia, drives, values, model, mean[:b], w)
    before = mean[b:].copy()
    end = _move(tree, inertia, drives, values, method, tick, mean[b:], torque, np.zeros(n), w)
    if end != DONE:
        return end
    for i in range(n):
        for k in range(rows):
            q[k, i], v[k, i] = 0.5 * (before[i] + mean[b + i]), 0.5 * (before[n + i] + mean[b + n + i])
            a[k, i] = (mean[b + n + i] - before[n + i]) / span
        q[1 + i, i] += _DIFFERENCE
        v[1 + n + i, i] += _DIFFERENCE
    # Slopes K and D of the inverse dynamics, by differences about the middle of the step.
    inverse_dynamics(tree, inertia, q, v, a, 0, rows, tau)
    drive_torques(tree, drives, values, q, v, a, 0, rows, tau)
    Y, M = np.zeros((1, n, model.offset.shape[0])), np.zeros((1, n, n))
    regressor(tree, q, v, a, 0, 1, Y)
    drive_regressor(tree, drives, q, v, a, 0, 1, Y)
    mass_matrix(tree, inertia, drives, values, q, 0, 1, M)
    left, slopes = M[0].copy(), np.zeros((n, b + 3 * n))
    for i in range(n):
        for j in range(b):
            slopes[i, j] = -span * Y[0, i, model.kept[j]]
        for j in range(n):
            slopes[i, b + j] = span * (tau[0, i] - tau[1 + j, i]) / _DIFFERENCE
            slopes[i, b + n + j] = M[0, i, j]
            left[i, j] += span * (tau[1 + n + j, i] - tau[0, i]) / _DIFFERENCE
        slopes[i, b + 2 * n + i] = span * model.torque[i]
    _solve(left, slopes)
    rates, wide = np.zeros((n, b + 2 * n)), np.zeros((2 * n, 3 * n))
    for i in range(n):
        for k in range(b + 2 * n):
            for j in range(k + 1):
                rates[i, j] += slopes[i, k] * S[k, j]
    for i in range(n):
        for j in range(b):
            S[b + i, j] += span * rates[i, j]
            S[b + n + i, j] = rates[i, j]
        for j in range(2 * n):
            wide[i, j] = S[b + i, b + j] + span * rates[i, b + j]
            wide[n + i, j] = rates[i, b + j]
        for j in range(n):
            wide[i, 2 * n + j] = span * slopes[i, b + 2 * n + j]
            wide[n + i, 2 * n + j] = slopes[i, b + 2 * n + j]
    _keep_triangle(wide, S, b)
    return DONE


@kernel
def _unscented(tree, inertia, drives, values, method, model, tick, torque, mean, S, w):
    """Predict with sigma points on both sides of the mean, along the columns of S and of the torque noise.

    Scaled unscented transform (Julier 2002) with weight 2 for the error of the mean. Half differences a and half sums c
    of the pairs give the covariance a a' + c c' + (2 - alpha^2) s s', s the shift of the mean: a sum of squares.
    """
    n, b = torque.shape[1], model.kept.shape[0]
    states, points = b + 2 * n, b + 3 * n
    reach = model.alpha * sqrt(points)
    beta, centre = mean[:b].copy(), mean[b:].copy()
    push, shift, ends = np.zeros(n), np.zeros(2 * n), np.zeros((2, 2 * n))
    wide, cross = np.zeros((2 * n, 3 * n + points + 1)), np.zeros((2 * n, b))
    _set_parameters(tree, inertia, drives, values, model, beta, w)
    end = _move(tree, inertia, drives, values, method, tick, centre, torque, push, w)
    if end != DONE:
        return end
    for j in range(points - 1, -1, -1):  # those of torques and state first: they share the parameters of the mean
        for side in range(2):
            far = reach if side == 0 else -reach
            for i in range(n):
                push[i] = far * model.torque[i] if states + i == j else 0.0
            for i in range(2 * n):
                ends[side, i] = mean[b + i] + (far * S[b + i, j] if j < states else 0.0)
            if j < b:
                for i in range(b):
                    beta[i] = mean[i] + far * S[i, j]
                _set_parameters(tree, inertia, drives, values, model, beta, w)
            end = _move(tree, inertia, drives, values, method, tick, ends[side], torque, push, w)
            if end != DONE:
                return end
        for i in range(2 * n):
            half = 0.5 * (ends[0, i] - ends[1, i]) / reach
            if j < b:
                cross[i, j] = half
            else:
                wide[i, j - b] = half
            bend = 0.5 * (ends[0, i] + ends[1, i]) - centre[i]
            wide[i, 3 * n + j] = bend / reach
            shift[i] += bend / reach**2
    weight = sqrt(2.0 - model.alpha**2)
    for i in range(2 * n):
        wide[i, 3 * n + points] = weight * shift[i]
        # Mean and square root of the transform: columns a, c and the shift s, weighted to sum up to the covariance.
        mean[b + i] = centre[i] + shift[i]
        for j in range(b):
            S[b + i, j] = cross[i, j]
    _keep_triangle(wide, S, b)
    return DONE


@step
def _learn(model, period, measured, mean, S, x):
    """Update by measured positions (n,) and by the random walk of a step; returns normalised squared innovations."""
    b, total = model.kept.shape[0], 0.0
    for i in range(measured.shape[0]):
        total += _correct(mean, S, b + i, measured[i], model.position[i] ** 2, x)
    for j in range(b):
        if model.drift[j] > 0.0:
            for i in range(x.shape[0]):
                x[i] = 0.0
            x[j] = sqrt(period) * model.drift[j]
            _widen(S, j, x)
    return total


@kernel
def extended_filter(tree, inertia, drives, values, method, model, tick, every, torque, position, mean, S, w):
    """Filter a run: torques (N, n) held for a tick each, positions (N, n) of which every `every`-th is used.

    Returns the number of samples, the result code, and the sum of normalised squared innovations.
    """
    x, total = np.zeros(mean.shape[0]), 0.0
    for k in range(0, torque.shape[0] - every + 1, every):
        total += _learn(model, tick * every, position[k], mean, S, x)
        if not np.isfinite(total):
            return k, DIVERGED, total
        held = torque[k : k + every]
        end = _extended(tree, inertia, drives, values, method, model, tick, held, mean, S, w)
        if end != DONE:
            return k, end, total
    return torque.shape[0], DONE, total


@kernel
def unscented_filter(tree, inertia, drives, values, method, model, tick, every, torque, position, mean, S, w):
    """`extended_filter` with sigma points in place of derivatives."""
    x, total = np.zeros(mean.shape[0]), 0.0
    for k in range(0, torque.shape[0] - every + 1, every):
        total += _learn(model, tick * every, position[k], mean, S, x)
        if not np.isfinite(total):
            return k, DIVERGED, total
        held = torque[k : k + every]
        end = _unscented(tree, inertia, drives, values, method, model, tick, held, mean, S, w)
        if end != DONE:
            return k, end, total
    return torque.shape[0], DONE, total
