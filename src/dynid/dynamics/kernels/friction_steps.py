"""Friction within one step of an integration that is implicit in it: damping of the mass matrix, dry impulses.

The shafts move with s = d . v, where the velocities of the joints begin at `first`. The work space w has the velocities
v and v1 (1, n) at the start and the end of the step, bias (1, n), the factor of the mass matrix M (n, n), the responses
G (term, n) of the velocities to unit impulses, and the impulses (term,).

With damping D and the responses G_t = (M + h D)^-1 d_t, the velocities at the end of the step are

    v1 = v + h (M + h D)^-1 (tau - bias) - sum of G_t p_t,    p_t in [low, high] bound_t,

where an impulse p_t = clip(s / (d_t . G_t), low, high) stops a shaft, which would have the velocity s without it, if it
can; with smooth friction p = bound tanh(slope (s - d_t . G_t p)).

Sources: Moreau, Unilateral Contact and Dry Friction in Finite Freedom Dynamics (1988), for impulses at the end of a
step; Jean, The Non-Smooth Contact Dynamics Method (1999), for finding them one contact after the other.
"""

from math import tanh

import numpy as np

from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.drives import (
    CURVE,
    ELASTIC,
    STRIBECK,
    VISCOUS,
    VISCOUS_NEGATIVE,
    VISCOUS_POSITIVE,
    coulomb_range,
    curve,
    curve_slope,
    fading,
    is_dry,
)
from dynid.dynamics.kernels.forward import substitute


@step
def along(drives, first, t, x):
    """Component of x (n,) along the shaft of term t."""
    s = 0.0
    for i in range(drives.start[t], drives.start[t + 1]):
        s += drives.weight[i] * x[first + drives.joint[i]]
    return s


@step
def add_damping(drives, values, first, h, w):
    """Add h times the slope of viscous friction to w.M, and elastic springs as their torque h seconds later.

    Of a velocity table, the continuous part is friction like that, with the slope at the start of the step where it
    damps.
    """
    for t in range(drives.kind.shape[0]):
        kind, slope = drives.kind[t], values[t]
        if (
            kind != VISCOUS
            and kind != VISCOUS_POSITIVE
            and kind != VISCOUS_NEGATIVE
            and kind != CURVE
            and kind != ELASTIC
        ):
            continue
        s, torque = along(drives, first, t, w.v[0]), 0.0
        if (kind == VISCOUS_POSITIVE and s < 0.0) or (kind == VISCOUS_NEGATIVE and s > 0.0):
            continue
        if kind == CURVE:
            torque, slope = values[t] * curve(drives, t, s), max(0.0, values[t] * curve_slope(drives, t, s))
        elif kind == ELASTIC:
            torque, slope = h * values[t] * s, h * values[t]
        for i in range(drives.start[t], drives.start[t + 1]):
            row = first + drives.joint[i]
            w.bias[0, row] += drives.weight[i] * torque
            for j in range(drives.start[t], drives.start[t + 1]):
                if i != j or not drives.cross[t]:
                    w.M[row, first + drives.joint[j]] += h * slope * drives.weight[i] * drives.weight[j]


@step
def dry_bound(drives, values, h, t, s):
    """Largest impulse of dry friction in a step with the shaft velocity s."""
    if drives.kind[t] == STRIBECK:
        return h * values[t] * fading(drives, t, s)
    return h * values[t] * drives.rest[t] if drives.kind[t] == CURVE else h * values[t]


@step
def repeat_impulses(drives, first, w):
    """Responses w.G to unit impulses, and the impulses of the step before, taken from w.v1."""
    n = w.v.shape[1]
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]):
            continue
        for i in range(n):
            w.G[t, i] = 0.0
        for i in range(drives.start[t], drives.start[t + 1]):
            w.G[t, first + drives.joint[i]] = drives.weight[i]
        substitute(w.M, w.G[t])
        for i in range(n):
            w.v1[0, i] -= w.G[t, i] * w.impulse[t]


@step
def change_impulse(t, new, w):
    """Replace the impulse of term t, with its effect on w.v1."""
    for i in range(w.v.shape[1]):
        w.v1[0, i] -= w.G[t, i] * (new - w.impulse[t])
    w.impulse[t] = new


@step
def braking_impulse(velocity, response, low, high, slope, guess, accuracy):
    """Impulse p of one shaft whose velocity s without friction becomes s - response p, to this accuracy.

    Sharp friction stops the shaft where a bounded impulse can. Smooth friction solves p = p(s - response p), which has
    one solution because the left side increases and the right side decreases with p.
    """
    if slope == 0.0:
        return min(max(velocity / response, low), high)
    middle, reach = 0.5 * (high + low), 0.5 * (high - low)
    left, right, p = low, high, min(max(guess, low), high)
    for _ in range(60):
        x = tanh(slope * (velocity - response * p))
        f = p - middle - reach * x
        if f > 0.0:
            right = p
        else:
            left = p
        new = p - f / (1.0 + reach * slope * response * (1.0 - x * x))
        if not (left < new < right):
            new = 0.5 * (left + right)
        if abs(new - p) <= accuracy:
            return new
        p = new
    return p


@step
def driving_impulse(drives, t, bound, s):
    """Impulse of negative friction, which no end of the step determines: that of the shaft velocity s at its start."""
    low, high = coulomb_range(drives.kind[t])
    x = tanh(drives.slope[t] * s) if drives.slope[t] > 0.0 else np.sign(s)
    return 0.5 * bound * (high + low + (high - low) * x)
