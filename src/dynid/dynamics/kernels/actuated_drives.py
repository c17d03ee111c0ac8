"""Drive terms within one implicit step: smooth ones with their slopes, and dry friction at the end of the step.

The step solves K x + r + f(x) = 0 for the velocities x at its end, with K and r of everything smooth and the dry
friction f = sum of d bound tanh(slope d.x) over the shafts. Every f increases with x, so there is one solution.
Friction that fades with the velocity (Stribeck) fades with that at the start of the step. A negative coefficient, which
no end of the step determines, acts with the velocity at the start.

The work space w has the velocities v (1, n) at the start; K, its factor L (n, n) and r (n,); the bounds of the dry terms
(term,) and of the friction by load (n,) with its slope; and vectors free, change (n,) for the solution.
"""

from math import tanh

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

_ROUNDS, _BISECTIONS = 60, 80
_SETTLED, _ROUNDED = 1e-14, 1e-11  # steps that count as zero, and those that rounding may keep from falling further


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
def start_dry(drives, values, w):
    """Bounds of the dry terms in this step, and the torques w.known of those that the start determines."""
    for i in range(w.known.shape[0]):
        w.known[i] = 0.0
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]):
            continue
        s = along(drives, 0, t, w.v[0])
        w.bound[t] = values[t] * dry_share(drives, t, s)[0]
        if values[t] < 0.0:
            x = w.bound[t] * dry_unit(drives, t, s)[0]
            w.bound[t] = 0.0
            for i in range(drives.start[t], drives.start[t + 1]):
                w.known[drives.joint[i]] += drives.weight[i] * x


@step
def add_dry(drives, law, w, x, out, L):
    """Add dry friction at velocities x (n,) to `out` (n,), and its slopes to L (n, n)."""
    for t in range(drives.kind.shape[0]):
        if not is_dry(drives.kind[t]) or w.bound[t] == 0.0:
            continue
        f, slope = dry_unit(drives, t, along(drives, 0, t, x))
        for i in range(drives.start[t], drives.start[t + 1]):
            row = drives.joint[i]
            out[row] += drives.weight[i] * w.bound[t] * f
            for j in range(drives.start[t], drives.start[t + 1]):
                L[row, drives.joint[j]] += w.bound[t] * slope * drives.weight[i] * drives.weight[j]
    for i in range(w.load.shape[0]):
        if w.load[i] > 0.0:
            f = tanh(law.slope[i] * x[i])
            out[i] += w.load[i] * f
            L[i, i] += w.load[i] * law.slope[i] * (1.0 - f * f)


@step
def lu(L):
    """L = lower times upper triangle in place, without row exchanges; False where a pivot is not positive.

    A matrix whose symmetric part is positive definite has positive pivots.
    """
    n = L.shape[0]
    for k in range(n):
        d = L[k, k]
        if not d > 0.0:
            return False
        d = 1.0 / d
        for i in range(k + 1, n):
            s = L[i, k] * d
            L[i, k] = s
            if s != 0.0:
                for j in range(k + 1, n):
                    L[i, j] -= s * L[k, j]
    return True


@step
def lu_solve(L, x):
    """Solve with the factor L for x (n,) in place."""
    n = L.shape[0]
    for i in range(n):
        s = x[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s
    for i in range(n - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, n):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]


@step
def _along_joint(drives, law, w, x, i):
    """Move x[i] to where row i of the equations holds, within a bracket: friction is bounded and increases."""
    n, old, k = x.shape[0], x[i], w.K[i, i]
    rest, reach = w.r[i], 0.0
    for j in range(n):
        rest += w.K[i, j] * (x[j] if j != i else 0.0)
    for t in range(drives.kind.shape[0]):
        if is_dry(drives.kind[t]):
            for c in range(drives.start[t], drives.start[t + 1]):
                reach += abs(drives.weight[c] * w.bound[t]) if drives.joint[c] == i else 0.0
    reach += w.load[i]
    low, high = (-rest - reach) / k, (-rest + reach) / k
    for _ in range(_BISECTIONS):
        f, slope = k * x[i] + rest, k
        for t in range(drives.kind.shape[0]):
            if not is_dry(drives.kind[t]) or w.bound[t] == 0.0:
                continue
            for c in range(drives.start[t], drives.start[t + 1]):
                if drives.joint[c] == i:
                    d = drives.weight[c]
                    unit, rise = dry_unit(drives, t, along(drives, 0, t, x))
                    f += d * w.bound[t] * unit
                    slope += d * d * w.bound[t] * rise
        if w.load[i] > 0.0:
            unit = tanh(law.slope[i] * x[i])
            f += w.load[i] * unit
            slope += w.load[i] * law.slope[i] * (1.0 - unit * unit)
        if f > 0.0:
            high = min(high, x[i])
        else:
            low = max(low, x[i])
        new = x[i] - f / slope
        if not (low <= new <= high):
            new = 0.5 * (low + high)
        change = abs(new - x[i])
        x[i] = new
        if change <= _SETTLED * (1.0 + abs(new)):
            break
    return abs(x[i] - old)


@step
def _rest(drives, law, w, x):
    """Rows of the equations at x into w.change, their matrix into w.L; returns the sum of squares of the rows."""
    n, total = x.shape[0], 0.0
    for i in range(n):
        s = w.r[i]
        for j in range(n):
            s += w.K[i, j] * x[j]
            w.L[i, j] = w.K[i, j]
        w.change[i] = s
    add_dry(drives, law, w, x, w.change, w.L)
    for i in range(n):
        total += w.change[i] * w.change[i]
    return total


@step
def solve_dry(drives, law, w, x):
    """Solve K x + r + f(x) = 0 for x (n,), which holds a guess; False where a matrix has no positive pivots.

    Newton steps; where one does not halve the residual, a sweep over the joints with bracketed steps comes in between.
    """
    n = x.shape[0]
    before, size, scale = -1.0, 0.0, 0.0
    for _ in range(_ROUNDS):
        total = _rest(drives, law, w, x)
        if before >= 0.0 and not total <= 0.25 * before:
            if size <= _ROUNDED * (1.0 + scale):
                return True
            for i in range(n):  # back to the last point, and on by joints
                x[i] = w.free[i]
            change = 0.0
            for i in range(n):
                change = max(change, _along_joint(drives, law, w, x, i))
            before = -1.0
            if change <= _SETTLED:
                return True
            continue
        if not lu(w.L):
            return False
        lu_solve(w.L, w.change)
        size = scale = 0.0
        for i in range(n):
            w.free[i] = x[i]
            x[i] -= w.change[i]
            size, scale = max(size, abs(w.change[i])), max(scale, abs(x[i]))
        if size <= _SETTLED * (1.0 + scale) or not size < 1e300:
            return True
        before = total
    return True


@step
def drive_column(drives, values, t, x, q, v, a, w, rhs, change, column):
    """Subtract `change` times the torque of a unit of term t from column `column` of rhs; x are the end velocities."""
    s = 0.0
    dry = is_dry(drives.kind[t])
    if dry:
        start = along(drives, 0, t, w.v[0])
        at = start if values[t] < 0.0 else along(drives, 0, t, x)
        s = dry_share(drives, t, start)[0] * dry_unit(drives, t, at)[0]
    else:
        s = smooth_motion(drives, t, q, v, a)
    for i in range(drives.start[t], drives.start[t + 1]):
        y = s if dry else s - own_motion(drives, t, q, v, a, i)
        rhs[drives.joint[i], column] -= change * drives.weight[i] * y


@step
def add_start_slopes(drives, values, x, w, Y):
    """Add the slopes of dry friction with respect to the velocity at the start of the step to Y (n, n)."""
    for t in range(drives.kind.shape[0]):
        negative = values[t] < 0.0
        if not is_dry(drives.kind[t]) or (drives.kind[t] != STRIBECK and not negative):
            continue
        s = along(drives, 0, t, w.v[0])
        share, fall = dry_share(drives, t, s)
        f, slope = dry_unit(drives, t, s if negative else along(drives, 0, t, x))
        y = values[t] * (fall * f + (share * slope if negative else 0.0))
        for i in range(drives.start[t], drives.start[t + 1]):
            for j in range(drives.start[t], drives.start[t + 1]):
                Y[drives.joint[i], drives.joint[j]] += y * drives.weight[i] * drives.weight[j]
