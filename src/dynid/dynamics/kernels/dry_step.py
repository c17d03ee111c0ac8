"""The velocities at the end of a step with dry friction, for a linear model of everything smooth.

    K x + r + f(x) = 0,    f(x) = sum over shafts of d bound tanh(slope d.x) + load tanh(slope_by_load x)

with the lead of soft friction in d.x. Every part of f increases with x, so there is one solution.

Source: own derivation. The symmetric part of K is positive definite and f is monotone, so that x is unique; Newton's
method is fast close to it, and a sweep over the rows with brackets makes progress where tanh is steep (nonlinear
Gauss-Seidel: Ortega and Rheinboldt, Iterative Solution of Nonlinear Equations in Several Variables, 1970).
"""

from math import tanh

from dynid.dynamics.kernels.actuated_drives import add_dry, dry_unit, led
from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.drives import is_dry

_ROUNDS, _BISECTIONS = 60, 80
_SETTLED, _ROUNDED = 1e-14, 1e-11  # steps that count as zero, and those that rounding may keep from falling further
_ROUNDING = 1e-15  # residual relative to its largest part


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
def _along_joint(drives, slope_by_load, d, x, i):
    """Move x[i] to where row i of the equations holds, within a bracket: friction is bounded and increases."""
    n, old, k = x.shape[0], x[i], d.K[i, i]
    rest, reach = d.r[i], 0.0
    for j in range(n):
        rest += d.K[i, j] * (x[j] if j != i else 0.0)
    for t in range(drives.kind.shape[0]):
        if is_dry(drives.kind[t]):
            for c in range(drives.start[t], drives.start[t + 1]):
                reach += abs(drives.weight[c] * d.bound[t]) if drives.joint[c] == i else 0.0
    reach += d.load[i]
    low, high = (-rest - reach) / k, (-rest + reach) / k
    for _ in range(_BISECTIONS):
        f, slope = k * x[i] + rest, k
        for t in range(drives.kind.shape[0]):
            if not is_dry(drives.kind[t]) or d.bound[t] == 0.0:
                continue
            for c in range(drives.start[t], drives.start[t + 1]):
                if drives.joint[c] == i:
                    g = drives.weight[c]
                    unit, rise, _ = dry_unit(drives, d, t, led(drives, d, t, x))
                    f += g * d.bound[t] * unit
                    slope += g * g * d.bound[t] * rise * (1.0 + d.lead[t])
        if d.load[i] > 0.0:
            unit = tanh(slope_by_load[i] * x[i])
            f += d.load[i] * unit
            slope += d.load[i] * slope_by_load[i] * (1.0 - unit * unit)
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
def _rest(drives, slope_by_load, d, x):
    """Rows of the equations at x into d.change, their matrix into d.L; sum of their squares, zero if rounding alone."""
    n, total, scale = x.shape[0], 0.0, 0.0
    for i in range(n):
        s = d.r[i]
        scale = max(scale, abs(s))
        for j in range(n):
            s += d.K[i, j] * x[j]
            d.L[i, j] = d.K[i, j]
        d.change[i] = s
    add_dry(drives, slope_by_load, d, x, d.change, d.L)
    for i in range(n):
        total += d.change[i] * d.change[i]
    return total if total > (_ROUNDING * scale) ** 2 else 0.0


@step
def solve_dry(drives, slope_by_load, d, x):
    """Solve K x + r + f(x) = 0 for x (n,), which holds a guess; False where a matrix has no positive pivots.

    Newton steps; where one does not halve the residual, a sweep over the joints with bracketed steps comes in between.
    """
    n = x.shape[0]
    before, size, scale = -1.0, 0.0, 0.0
    for _ in range(_ROUNDS):
        total = _rest(drives, slope_by_load, d, x)
        if total == 0.0:
            return True
        if before >= 0.0 and not total <= 0.25 * before:
            if size <= _ROUNDED * (1.0 + scale):
                return True
            for i in range(n):  # back to the last point, and on by joints
                x[i] = d.free[i]
            change = 0.0
            for i in range(n):
                change = max(change, _along_joint(drives, slope_by_load, d, x, i))
            before = -1.0
            if change <= _SETTLED:
                return True
            continue
        if not lu(d.L):
            return False
        lu_solve(d.L, d.change)
        size = scale = 0.0
        for i in range(n):
            d.free[i] = x[i]
            x[i] -= d.change[i]
            size, scale = max(size, abs(d.change[i])), max(scale, abs(x[i]))
        if size <= _SETTLED * (1.0 + scale) or not size < 1e300:
            return True
        before = total
    return True
