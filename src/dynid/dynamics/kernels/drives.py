"""Drive terms: friction, rotor inertia, offsets and springs on shafts.

The velocity of a shaft is s = d . v; the column of a term is d f(s). With `cross`, terms that are linear in the motion
keep only the coupling between different joints: entry i is d_i (s - d_i v_i). Coulomb friction is sign(s), or
tanh(slope s) where its slope is not zero; Stribeck friction is the same times exp(-(s/rest)^2).

A simulation has additional kinds: ELASTIC, a spring whose stiffness may be large; RIPPLE, sin(slope s + rest) of the
position. Custom columns are tables: TABLE over the position; CURVE over asinh(velocity / CURVE_SCALE), plus `rest`
times the sign of the velocity, or its tanh.

    tau = sum over terms t of value_t d_t f_t(s_t)

with d d' a of rotors, d d' v of viscous friction, d sign(s) of Coulomb friction, d sign(s) exp(-(s/rest)^2) of Stribeck
friction, d (d.q - rest) of springs and d of offsets.

Source: Armstrong-Helouvry, Dupont and Canudas de Wit, A Survey of Models, Analysis Tools and Compensation Methods for
the Control of Machines with Friction (1994), for the friction laws.
"""

from math import asinh, exp, sin, sqrt, tanh

from dynid.dynamics.kernels.compiler import kernel, step

# TermKind codes as plain integers for the compiler.
INERTIA, VISCOUS, VISCOUS_POSITIVE, VISCOUS_NEGATIVE = 0, 1, 2, 3
COULOMB, COULOMB_POSITIVE, COULOMB_NEGATIVE, STRIBECK, OFFSET, SPRING = 4, 5, 6, 7, 8, 9
TABLE, CURVE = 11, 14  # over the shaft position and velocity; replace a custom column inside a simulation
ELASTIC, RIPPLE = 12, 13
CURVE_SCALE = 1e-4  # rad/s or m/s; nodes are evenly spaced below, and by equal ratios above


@step
def _shaft(drives, t, x, k, first):
    s = 0.0
    for i in range(drives.start[t], drives.start[t + 1]):
        s += drives.weight[i] * x[k, first + drives.joint[i]]
    return s


@step
def _looked_up(drives, t, s):
    """Table of term t at s, linear between nodes, constant beyond the ends."""
    last = drives.table.shape[1] - 1
    x = (s - drives.grid[t, 0]) * drives.grid[t, 1]
    if not x > 0.0:
        return drives.table[t, 0]
    if x >= last:
        return drives.table[t, last]
    i = int(x)
    return drives.table[t, i] + (x - i) * (drives.table[t, i + 1] - drives.table[t, i])


@step
def curve(drives, t, s):
    """Continuous part of velocity table t at velocity s."""
    return _looked_up(drives, t, asinh(s / CURVE_SCALE))


@step
def curve_slope(drives, t, s):
    """Its derivative, zero beyond the ends."""
    x = (asinh(s / CURVE_SCALE) - drives.grid[t, 0]) * drives.grid[t, 1]
    if not 0.0 < x < drives.table.shape[1] - 1:
        return 0.0
    i = int(x)
    return (drives.table[t, i + 1] - drives.table[t, i]) * drives.grid[t, 1] / sqrt(s * s + CURVE_SCALE * CURVE_SCALE)


@step
def is_coulomb(kind):
    return kind == COULOMB or kind == COULOMB_POSITIVE or kind == COULOMB_NEGATIVE


@step
def is_dry(kind):
    return is_coulomb(kind) or kind == STRIBECK or kind == CURVE


@step
def coulomb_range(kind):
    """Efforts of a unit parameter at large negative and positive velocity."""
    return (-1.0 if kind != COULOMB_POSITIVE else 0.0), (1.0 if kind != COULOMB_NEGATIVE else 0.0)


@step
def _coulomb(kind, s, slope):
    low, high = coulomb_range(kind)
    if slope > 0.0:
        return 0.5 * (high + low) + 0.5 * (high - low) * tanh(slope * s)
    return high if s > 0.0 else (low if s < 0.0 else 0.0)


@step
def fading(drives, t, s):
    """Factor exp(-(s/rest)^2) of Stribeck term t at velocity s."""
    x = s / drives.rest[t]
    return exp(-x * x)


@step
def coulomb_slope(drives, t, s):
    """Derivative of the effort of a smooth Coulomb term."""
    low, high = coulomb_range(drives.kind[t])
    x = tanh(drives.slope[t] * s)
    return 0.5 * (high - low) * drives.slope[t] * (1.0 - x * x)


@step
def fading_slope(drives, t, s):
    """Derivative of the effort of Stribeck term t away from its jump."""
    rise = coulomb_slope(drives, t, s) if drives.slope[t] > 0.0 else 0.0
    fall = -2.0 * s / (drives.rest[t] * drives.rest[t])
    return (rise + fall * _coulomb(STRIBECK, s, drives.slope[t])) * fading(drives, t, s)


@step
def _effort(drives, t, s):
    """Effort of a unit parameter of term t for shaft motion s."""
    kind = drives.kind[t]
    if kind <= VISCOUS:
        return s
    if is_coulomb(kind):
        return _coulomb(kind, s, drives.slope[t])
    if kind == TABLE:
        return _looked_up(drives, t, s)
    if kind == VISCOUS_POSITIVE:
        return max(s, 0.0)
    if kind == VISCOUS_NEGATIVE:
        return min(s, 0.0)
    if kind == STRIBECK:
        return _coulomb(kind, s, drives.slope[t]) * fading(drives, t, s)
    if kind == CURVE:
        return curve(drives, t, s) + drives.rest[t] * _coulomb(kind, s, drives.slope[t])
    return sin(drives.slope[t] * s + drives.rest[t]) if kind == RIPPLE else s


@step
def _motion(drives, t, q, v, a, k, q_first, v_first):
    """Position, velocity or acceleration of the shaft of term t, whichever the term depends on."""
    kind = drives.kind[t]
    if kind == OFFSET:
        return 1.0
    if kind == SPRING or kind == TABLE:
        return _shaft(drives, t, q, k, q_first) - drives.rest[t]
    if kind == INERTIA:
        return _shaft(drives, t, a, k, v_first)
    if kind < ELASTIC or kind == CURVE:
        return _shaft(drives, t, v, k, v_first)
    return _shaft(drives, t, q, k, q_first)


@step
def _entry(drives, t, i, s, q, v, a, k, q_first, v_first):
    """Torque on joint drives.joint[i] of term t with unit parameter, for shaft motion s."""
    d, kind = drives.weight[i], drives.kind[t]
    if drives.cross[t]:
        j = drives.joint[i]
        if kind == INERTIA:
            return d * (s - d * a[k, v_first + j])
        if kind == VISCOUS:
            return d * (s - d * v[k, v_first + j])
        if kind == SPRING:
            return d * (s - d * q[k, q_first + j])
    return d * _effort(drives, t, s)


@kernel
def drive_regressor(tree, drives, q, v, a, start, stop, out):
    """Write the drive columns of out (sample, row, parameter)."""
    q_first, v_first = 7 * tree.moving, 6 * tree.moving
    for k in range(start, stop):
        for t in range(drives.kind.shape[0]):
            s = _motion(drives, t, q, v, a, k, q_first, v_first)
            for i in range(drives.start[t], drives.start[t + 1]):
                row = tree.wrench_rows + drives.joint[i]
                out[k, row, drives.column[t]] = _entry(drives, t, i, s, q, v, a, k, q_first, v_first)


@step
def drive_torque(tree, drives, values, q, v, a, k, tau):
    """Add the torques of all drive terms with these values to tau[k]."""
    q_first, v_first = 7 * tree.moving, 6 * tree.moving
    for t in range(drives.kind.shape[0]):
        s = _motion(drives, t, q, v, a, k, q_first, v_first)
        for i in range(drives.start[t], drives.start[t + 1]):
            row = tree.wrench_rows + drives.joint[i]
            tau[k, row] += values[t] * _entry(drives, t, i, s, q, v, a, k, q_first, v_first)


@kernel
def drive_torques(tree, drives, values, q, v, a, start, stop, tau):
    for k in range(start, stop):
        drive_torque(tree, drives, values, q, v, a, k, tau)


@step
def drive_inertia(tree, drives, values, M):
    """Add the rotor inertias to one mass matrix: d d' (without its diagonal for cross terms)."""
    for t in range(drives.kind.shape[0]):
        if drives.kind[t] != INERTIA:
            continue
        for i in range(drives.start[t], drives.start[t + 1]):
            for j in range(drives.start[t], drives.start[t + 1]):
                if i == j and drives.cross[t]:
                    continue
                row, col = tree.wrench_rows + drives.joint[i], tree.wrench_rows + drives.joint[j]
                M[row, col] += values[t] * drives.weight[i] * drives.weight[j]


@kernel
def drive_adjoint(tree, drives, G, q, v, a, start, stop, dq, dv, da):
    """Add the gradient of sum(G * Y) over the drive columns; sign functions have gradient zero."""
    q_first, v_first = 7 * tree.moving, 6 * tree.moving
    for k in range(start, stop):
        for t in range(drives.kind.shape[0]):
            kind = drives.kind[t]
            sharp = is_coulomb(kind) and drives.slope[t] == 0.0
            if sharp or kind == OFFSET:
                continue
            s = _motion(drives, t, q, v, a, k, q_first, v_first)
            slope = 1.0
            if is_coulomb(kind):
                slope = coulomb_slope(drives, t, s)
            if kind == STRIBECK:
                slope = fading_slope(drives, t, s)
            if (kind == VISCOUS_POSITIVE and s < 0.0) or (kind == VISCOUS_NEGATIVE and s > 0.0):
                slope = 0.0
            for i in range(drives.start[t], drives.start[t + 1]):
                g = slope * G[k, tree.wrench_rows + drives.joint[i], drives.column[t]] * drives.weight[i]
                for j in range(drives.start[t], drives.start[t + 1]):
                    if i == j and drives.cross[t]:
                        continue
                    value = g * drives.weight[j]
                    target = v_first + drives.joint[j]
                    if kind == INERTIA:
                        da[k, target] += value
                    elif kind == SPRING:
                        dq[k, target] += value
                    else:
                        dv[k, target] += value


@kernel
def drive_energy(tree, drives, q, v, start, stop, kinetic, potential):
    """Energy of unit parameters: rotors s^2/2 (cross part only with `cross`), springs (x - rest)^2/2."""
    q_first, v_first = 7 * tree.moving, 6 * tree.moving
    for k in range(start, stop):
        for t in range(drives.kind.shape[0]):
            c = drives.column[t]
            if drives.kind[t] == INERTIA:
                s = _shaft(drives, t, v, k, v_first)
                own = 0.0
                if drives.cross[t]:
                    for i in range(drives.start[t], drives.start[t + 1]):
                        own += (drives.weight[i] * v[k, v_first + drives.joint[i]]) ** 2
                kinetic[k, c] = 0.5 * (s * s - own)
            elif drives.kind[t] == SPRING:
                s = _shaft(drives, t, q, k, q_first) - drives.rest[t]
                own = 0.0
                if drives.cross[t]:
                    for i in range(drives.start[t], drives.start[t + 1]):
                        own += (drives.weight[i] * q[k, q_first + drives.joint[i]]) ** 2
                potential[k, c] = 0.5 * (s * s - own)
