"""Drive terms within one implicit step: smooth ones with their slopes, and dry friction at the end of the step.

Friction that fades with the velocity (Stribeck) fades with that at the start of the step. A negative coefficient, which
no end of the step determines, acts with the velocity at the start.

Soft friction, as simulators with soft constraints have it, acts with the velocity v + lead a: on a shaft that moves
with s0 at the start and s1 at the end of a step of h seconds, with s1 + lead (s1 - s0) / h. Its limit is reached at the
velocity `width`: it is the mean of tanh(slope s) over s - r to s + r, a ramp where the slope is steep. The reach r^2 =
width (width + 2/slope) lets the mean change in proportion to small widths, too.

Dry friction is solved for in a linear model of everything smooth, see `dry_step`.

With r the reach, the soft sign is the mean

    unit(s) = [log cosh(slope (s + r)) - log cosh(slope (s - r))] / (2 slope r).

Source: own derivation; friction that acts with the velocity v + lead a is that of soft constraints in Todorov, Convex
and Analytically-Invertible Dynamics with Contacts and Constraints (2014).
"""

from math import exp, log1p, sqrt, tanh
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_law import FRICTION_LEAD, FRICTION_WIDTH
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

# Widths below this share of the velocity over which tanh rises have no effect.
_NARROW = 1e-3
# Where tanh differs from one by rounding only.
_COMPLETE = 20.0


class Dry(NamedTuple):
    """Dry friction in one step, and the equations K x + r + friction(x) = 0 for the velocities x (n,) at its end."""

    bound: np.ndarray  # of every term (term,)
    lead: np.ndarray  # of every term, in steps (term,)
    width: np.ndarray  # of every term (term,)
    start: np.ndarray  # velocity of the shaft of every term at the start (term,)
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
def smooth_drives(drives, values, motion, ahead, tau, matrices, M, Dq, Dv):
    """Add the torques of all smooth terms to tau (n,), and their slopes to M, Dq and Dv.

    The motion is q, v, a, whose v is `ahead` seconds ahead of that by which Dv is the slope.
    """
    q, v, a = motion
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
                    M[row, col] += ahead * x


@step
def _bend(x):
    """log(2 cosh(x)) and its derivative tanh(x)."""
    size = abs(x)
    e = exp(-2.0 * size)
    return size + log1p(e), (1.0 - e) / (1.0 + e) if x > 0.0 else (e - 1.0) / (1.0 + e)


@step
def _sides(slope, width, s):
    """Soft sign of s, and its derivatives by s and by the width."""
    if abs(s) > 2.0 * width + _COMPLETE / slope:  # beyond the reach, which this bounds
        return (1.0 if s > 0.0 else -1.0), 0.0, 0.0
    around = width + 1.0 / slope
    if slope * width < _NARROW:
        x = tanh(slope * s)
        rise = slope * (1.0 - x * x)
        return x, rise, -2.0 / 3.0 * around * slope * x * rise
    reach = sqrt(width * (width + 2.0 / slope))
    upper, right = _bend(slope * (s + reach))
    lower, left = _bend(slope * (s - reach))
    x = 0.5 * (upper - lower) / (slope * reach)
    return x, 0.5 * (right - left) / reach, (0.5 * (right + left) - x) * around / (reach * reach)


@step
def dry_unit(drives, d, t, s):
    """Friction of a unit bound of dry term t at shaft velocity s, and its derivatives by s and by the width."""
    low, high = coulomb_range(drives.kind[t])
    x, rise, by_width = _sides(drives.slope[t], d.width[t], s)
    reach = 0.5 * (high - low)
    return 0.5 * (high + low) + reach * x, reach * rise, reach * by_width


@step
def led(drives, d, t, x):
    """Velocity of the shaft of dry term t, ahead by its lead, for velocities x (n,) at the end of the step."""
    return (1.0 + d.lead[t]) * along(drives, 0, t, x) - d.lead[t] * d.start[t]


@step
def dry_share(drives, t, s):
    """Factor of dry term t at the shaft velocity s at the start of the step, and its slope."""
    if drives.kind[t] != STRIBECK:
        return 1.0, 0.0
    x = fading(drives, t, s)
    return x, -2.0 * s / (drives.rest[t] * drives.rest[t]) * x


@step
def start_dry(drives, values, law, h, v, d):
    """Bounds of the dry terms in a step of h s from velocities v (n,), and torques of those that the start determines.

    The softness of a term is that of the first joint of its shaft.
    """
    for i in range(d.known.shape[0]):
        d.known[i] = 0.0
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]):
            continue
        s = along(drives, 0, t, v)
        first = drives.start[t]
        joint = drives.joint[first]
        d.start[t], d.lead[t] = s, law.values[FRICTION_LEAD, joint] / h
        d.width[t] = law.values[FRICTION_WIDTH, joint] * abs(drives.weight[first])
        d.bound[t] = values[t] * dry_share(drives, t, s)[0]
        if values[t] < 0.0:
            x = d.bound[t] * dry_unit(drives, d, t, s)[0]
            d.bound[t] = 0.0
            for i in range(drives.start[t], drives.start[t + 1]):
                d.known[drives.joint[i]] += drives.weight[i] * x


@step
def add_dry(drives, slope_by_load, d, x, out, L):
    """Add dry friction at velocities x (n,) to `out` (n,), and its slopes to L (n, n)."""
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]) or d.bound[t] == 0.0:
            continue
        f, slope, _ = dry_unit(drives, d, t, led(drives, d, t, x))
        slope *= 1.0 + d.lead[t]
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
def drive_column(drives, values, d, t, v0, v1, q, v, a, change, column, rhs):
    """Subtract `change` times the torque of a unit of term t from a column of rhs.

    v0 and v1 (n,) are the velocities at the start and the end of the step, q, v, a the motion of the smooth terms.
    """
    s = 0.0
    dry = is_dry(drives.kind[t])
    if dry:
        start = along(drives, 0, t, v0)
        end = start if values[t] < 0.0 else led(drives, d, t, v1)
        s = dry_share(drives, t, start)[0] * dry_unit(drives, d, t, end)[0]
    else:
        s = smooth_motion(drives, t, q, v, a)
    for i in range(drives.start[t], drives.start[t + 1]):
        y = s if dry else s - own_motion(drives, t, q, v, a, i)
        rhs[drives.joint[i], column] -= change * drives.weight[i] * y


@step
def soft_column(drives, d, joint, by_width, v1, change, column, rhs):
    """Subtract `change` times the derivative of dry friction from a column of rhs.

    It is that by the width, or by the lead, of the terms whose first joint this is.
    """
    for t in range(drives.kind.shape[0]):
        first = drives.start[t]
        if not is_dry(drives.kind[t]) or d.bound[t] == 0.0 or drives.joint[first] != joint:
            continue
        _, rise, wider = dry_unit(drives, d, t, led(drives, d, t, v1))
        if by_width:
            rise = d.bound[t] * wider * abs(drives.weight[first])
        else:
            rise *= d.bound[t] * (along(drives, 0, t, v1) - d.start[t])
        for i in range(first, drives.start[t + 1]):
            rhs[drives.joint[i], column] -= change * drives.weight[i] * rise


@step
def add_start_slopes(drives, values, d, v0, v1, Y):
    """Add the slopes of dry friction with respect to the velocity at the start of the step to Y (n, n)."""
    for t in range(drives.kind.shape[0]):
        negative = values[t] < 0.0
        if not is_dry(drives.kind[t]) or (drives.kind[t] != STRIBECK and not negative and d.lead[t] == 0.0):
            continue
        s = along(drives, 0, t, v0)
        share, fall = dry_share(drives, t, s)
        f, slope, _ = dry_unit(drives, d, t, s if negative else led(drives, d, t, v1))
        y = values[t] * (fall * f + share * slope * (1.0 if negative else -d.lead[t]))
        for i in range(drives.start[t], drives.start[t + 1]):
            for j in range(drives.start[t], drives.start[t + 1]):
                Y[drives.joint[i], drives.joint[j]] += y * drives.weight[i] * drives.weight[j]
