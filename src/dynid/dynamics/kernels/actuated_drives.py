"""Drive terms within one implicit step: smooth ones with their slopes, and dry friction at the end of the step.

Friction that fades with the velocity (Stribeck) fades with that at the start of the step. A negative coefficient, which
no end of the step determines, acts with the velocity at the start.

Dry friction is solved for in a linear model of everything smooth, see `dry_step`.
"""

from math import tanh
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.drives import (
    INERTIA,
    OFFSET,
    SPRING,
    STRIBECK,
    VISCOUS_NEGATIVE,
    VISCOUS_POSITIVE,
    coulomb_range,
    fading,
    is_dry,
)
from dynid.dynamics.kernels.friction_steps import along


class Dry(NamedTuple):
    """Dry friction in one step, and the equations K x + r + friction(x) = 0 for the velocities x (n,) at its end."""

    bound: np.ndarray  # of every term (term,)
    load: np.ndarray  # bound of friction by load (n,)
    known: np.ndarray  # torques of the terms that the start of the step determines (n,)
    K: np.ndarray
    L: np.ndarray  # its factor, with the slopes of dry friction
    r: np.ndarray
    x: np.ndarray
    free: np.ndarray  # work space (n,)
    change: np.ndarray  # work space (n,)


@step
def smooth_motion(drives, t, q, v, a):
    """Motion of the shaft that a smooth term multiplies."""
    kind = drives.kind[t]
    if kind == OFFSET:
        return 1.0
    if kind == INERTIA:
        return along(drives, 0, t, a)
    if kind == SPRING:
        return along(drives, 0, t, q) - drives.rest[t]
    s = along(drives, 0, t, v)
    return max(s, 0.0) if kind == VISCOUS_POSITIVE else (min(s, 0.0) if kind == VISCOUS_NEGATIVE else s)


@step
def own_motion(drives, t, q, v, a, i):
    """The share of joint drives.joint[i] in the motion of a shaft, which a cross term leaves out of its row."""
    if not drives.cross[t]:
        return 0.0
    kind, j = drives.kind[t], drives.joint[i]
    x = a[j] if kind == INERTIA else (q[j] if kind == SPRING else v[j])
    return drives.weight[i] * x


@step
def smooth_drives(drives, values, q, v, a, tau, matrices, M, Dq, Dv):
    """Add the torques of all smooth terms to tau (n,), and their slopes to M, Dq and Dv."""
    for t in range(drives.kind.shape[0]):
        kind = drives.kind[t]
        if is_dry(kind):
            continue
        s, start, stop = smooth_motion(drives, t, q, v, a), drives.start[t], drives.start[t + 1]
        for i in range(start, stop):
            tau[drives.joint[i]] += values[t] * drives.weight[i] * (s - own_motion(drives, t, q, v, a, i))
        if not matrices or kind == OFFSET:
            continue
        slope = values[t]
        if kind == VISCOUS_POSITIVE or kind == VISCOUS_NEGATIVE:
            slope = slope if s != 0.0 else 0.0
        for i in range(start, stop):
            for j in range(start, stop):
                if i == j and drives.cross[t]:
                    continue
                row, col, x = drives.joint[i], drives.joint[j], slope * drives.weight[i] * drives.weight[j]
                if kind == INERTIA:
                    M[row, col] += x
                elif kind == SPRING:
                    Dq[row, col] += x
                else:
                    Dv[row, col] += x


@step
def dry_unit(drives, t, s):
    """Friction of a unit bound of dry term t at shaft velocity s, and its slope."""
    low, high = coulomb_range(drives.kind[t])
    x, reach = tanh(drives.slope[t] * s), 0.5 * (high - low)
    return 0.5 * (high + low) + reach * x, reach * drives.slope[t] * (1.0 - x * x)


@step
def dry_share(drives, t, s):
    """Factor of dry term t at the shaft velocity s at the start of the step, and its slope."""
    if drives.kind[t] != STRIBECK:
        return 1.0, 0.0
    x = fading(drives, t, s)
    return x, -2.0 * s / (drives.rest[t] * drives.rest[t]) * x


@step
def start_dry(drives, values, v, d):
    """Bounds of the dry terms in a step from velocities v (n,), and torques of those that the start determines."""
    for i in range(d.known.shape[0]):
        d.known[i] = 0.0
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]):
            continue
        s = along(drives, 0, t, v)
        d.bound[t] = values[t] * dry_share(drives, t, s)[0]
        if values[t] < 0.0:
            x = d.bound[t] * dry_unit(drives, t, s)[0]
            d.bound[t] = 0.0
            for i in range(drives.start[t], drives.start[t + 1]):
                d.known[drives.joint[i]] += drives.weight[i] * x


@step
def add_dry(drives, slope_by_load, d, x, out, L):
    """Add dry friction at velocities x (n,) to `out` (n,), and its slopes to L (n, n)."""
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]) or d.bound[t] == 0.0:
            continue
        f, slope = dry_unit(drives, t, along(drives, 0, t, x))
        for i in range(drives.start[t], drives.start[t + 1]):
            row = drives.joint[i]
            out[row] += drives.weight[i] * d.bound[t] * f
            for j in range(drives.start[t], drives.start[t + 1]):
                L[row, drives.joint[j]] += d.bound[t] * slope * drives.weight[i] * drives.weight[j]
    for i in range(d.load.shape[0]):
        if d.load[i] > 0.0:
            f = tanh(slope_by_load[i] * x[i])
            out[i] += d.load[i] * f
            L[i, i] += d.load[i] * slope_by_load[i] * (1.0 - f * f)


@step
def drive_column(drives, values, t, v0, v1, q, v, a, change, column, rhs):
    """Subtract `change` times the torque of a unit of term t from a column of rhs.

    v0 and v1 (n,) are the velocities at the start and the end of the step, q, v, a the motion in its middle.
    """
    s = 0.0
    dry = is_dry(drives.kind[t])
    if dry:
        start = along(drives, 0, t, v0)
        end = start if values[t] < 0.0 else along(drives, 0, t, v1)
        s = dry_share(drives, t, start)[0] * dry_unit(drives, t, end)[0]
    else:
        s = smooth_motion(drives, t, q, v, a)
    for i in range(drives.start[t], drives.start[t + 1]):
        y = s if dry else s - own_motion(drives, t, q, v, a, i)
        rhs[drives.joint[i], column] -= change * drives.weight[i] * y


@step
def add_start_slopes(drives, values, v0, v1, Y):
    """Add the slopes of dry friction with respect to the velocity at the start of the step to Y (n, n)."""
    for t in range(drives.kind.shape[0]):
        negative = values[t] < 0.0
        if not is_dry(drives.kind[t]) or (drives.kind[t] != STRIBECK and not negative):
            continue
        s = along(drives, 0, t, v0)
        share, fall = dry_share(drives, t, s)
        f, slope = dry_unit(drives, t, s if negative else along(drives, 0, t, v1))
        y = values[t] * (fall * f + (share * slope if negative else 0.0))
        for i in range(drives.start[t], drives.start[t + 1]):
            for j in range(drives.start[t], drives.start[t + 1]):
                Y[drives.joint[i], drives.joint[j]] += y * drives.weight[i] * drives.weight[j]
