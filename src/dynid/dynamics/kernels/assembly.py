"""Closed loops: passive joints from the independent ones, and torques of the tree seen by the independent joints.

Per loop, only the joints between its two frames and their common ancestor move one frame relative to the other. The
rows of all loops form J (row, tree coordinate). J_p, the columns of the passive joints, has full column rank, but may
have more rows than columns: two of the three rows of a planar linkage are enough. All systems are solved by least
squares through J_p = Q R (Gram-Schmidt, done twice).

With the gaps phi(q) of all loops, J = dphi/dq = [J_p J_n] over passive and independent joints:

    phi(q) = 0,    N = -J_p^+ J_n,    v_p = N v_n,    a_p = N a_n - J_p^+ (dJ/dt) v.

Sources: Wehage and Haug, Generalized Coordinate Partitioning for Dimension Reduction in Analysis of Constrained Dynamic
Systems (1982); Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 8. The passive joints follow as in Allgower
and Georg, Numerical Continuation Methods (1990): a step along the tangent, corrected by Newton's method.
"""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.kinematics import cross, place_joint, rotate

CONNECT, WELD, ROD, EQUALITY = 0, 1, 2, 3
# Results per sample.
CLOSED, SINGULAR, BROKEN = 0, 1, 2

_STEPS = 12  # Newton steps
_SMALL = 1e-7  # rad or m; the step after one of this size is below rounding
_DEPENDENT = 1e-6  # share of a column of J_p that is left over by the others in a singular posture
_STRETCH = 0.2  # rad or m; longest step of an independent joint along a path
_BEND = 0.25  # largest correction after a step along the tangent, relative to the step
_SHORTEST = 1e-5  # rad or m; shortest step along a path


class Closure(NamedTuple):
    """The loops of a robot. `chain` lists joints from the common ancestor to the frames, `side` is 1 or -1.

    The joints of loop i that carry its first frame are chain[start[2 i]:start[2 i + 1]], then those of the second frame
    follow. `place` holds the frames on their bodies (2 L, 12): rotation, position. `slot` is the number of a tree
    coordinate among the passive joints, or -1; `rank` its number among the independent joints, or -1. `joints` are all
    joints that have to be placed. `apart` is the gap (m or rad) of a closed loop.

    An equality between joints has coordinates in place of the joints of its first and second frame, with a `weight`
    each: the sum of the first ones is the polynomial of the sum of the second ones.
    """

    kind: np.ndarray
    body: np.ndarray
    place: np.ndarray
    length: np.ndarray
    polynomial: np.ndarray
    row: np.ndarray
    start: np.ndarray
    chain: np.ndarray
    weight: np.ndarray
    joints: np.ndarray
    passive: np.ndarray
    independent: np.ndarray
    slot: np.ndarray
    rank: np.ndarray
    assembled: np.ndarray
    apart: float


class Room(NamedTuple):
    """Work space of the assembly of one sample."""

    R: np.ndarray
    P: np.ndarray
    J: np.ndarray
    q: np.ndarray  # posture under test (1, tree)
    old: np.ndarray  # last assembled posture (1, tree)
    tangent: np.ndarray  # change of the passive joints along the step (p,)
    rest: np.ndarray  # residual or drift (m,)
    Q: np.ndarray  # (p, m)
    T: np.ndarray  # triangle R (p, p)
    C: np.ndarray  # columns of the independent joints (n, m)
    N: np.ndarray  # d passive / d independent at `old` (p, n)
    x: np.ndarray  # (p,)
    margin: np.ndarray  # smallest share of a column of J_p that the columns before it leave over (1,)


@step
def _frame_point(closure, f, R, P):
    """Origin of loop frame f in base coordinates."""
    b, t = closure.body[f], closure.place[f]
    x, y, z = rotate(R, b, t[9], t[10], t[11])
    return P[b, 0] + x, P[b, 1] + y, P[b, 2] + z


@step
def _turned(closure, f, R, y):
    """Add the vector of the rotation from loop frame f + 1 to f, for small angles: half the sum of b x a over axes."""
    i, j, s, t = closure.body[f], closure.body[f + 1], closure.place[f], closure.place[f + 1]
    for c in range(3):
        ax, ay, az = rotate(R, i, s[c], s[3 + c], s[6 + c])
        bx, by, bz = rotate(R, j, t[c], t[3 + c], t[6 + c])
        x, y0, z = cross(bx, by, bz, ax, ay, az)
        y[0] += 0.5 * x
        y[1] += 0.5 * y0
        y[2] += 0.5 * z


@step
def _weighted(closure, f, x, k):
    """Sum of weight times x[k] over the coordinates of one side of an equality."""
    s = 0.0
    for c in range(closure.start[f], closure.start[f + 1]):
        s += closure.weight[c] * x[k, closure.chain[c]]
    return s


@step
def _law(polynomial, x):
    """A polynomial, its slope and its curvature."""
    y = slope = bend = 0.0
    for i in range(polynomial.shape[0] - 1, -1, -1):
        bend = bend * x + 2.0 * slope
        slope = slope * x + y
        y = y * x + polynomial[i]
    return y, slope, bend


@step
def _fill_equality(closure, loop, w):
    """Residual and columns of an equality between joints."""
    f, r = 2 * loop, closure.row[loop]
    y, slope, _ = _law(closure.polynomial[loop], _weighted(closure, f + 1, w.q, 0))
    w.rest[r] = _weighted(closure, f, w.q, 0) - y
    for side in range(2):
        for c in range(closure.start[f + side], closure.start[f + side + 1]):
            k = closure.chain[c]
            y_of = w.Q[closure.slot[k]] if closure.slot[k] >= 0 else w.C[closure.rank[k]]
            y_of[r] += closure.weight[c] if side == 0 else -slope * closure.weight[c]


@step
def _fill(tree, closure, w):
    """Residual w.rest and the columns of passive (w.Q) and independent joints (w.C) at the posture w.q."""
    for i in range(w.Q.shape[0]):
        for r in range(w.Q.shape[1]):
            w.Q[i, r] = 0.0
    for i in range(w.C.shape[0]):
        for r in range(w.C.shape[1]):
            w.C[i, r] = 0.0
    for i in range(closure.joints.shape[0]):
        place_joint(tree, w.q, 0, closure.joints[i], w.R, w.P, w.J)
    for loop in range(closure.kind.shape[0]):
        f, r, kind = 2 * loop, closure.row[loop], closure.kind[loop]
        if kind == EQUALITY:
            _fill_equality(closure, loop, w)
            continue
        # Rows of a loop: the gap between its frames, and the velocity of both points per joint, s + w x p.
        ax, ay, az = _frame_point(closure, f, w.R, w.P)
        bx, by, bz = _frame_point(closure, f + 1, w.R, w.P)
        dx, dy, dz = ax - bx, ay - by, az - bz
        if kind == ROD:
            d = np.sqrt(dx * dx + dy * dy + dz * dz)
            w.rest[r] = d - closure.length[loop]
            dx, dy, dz = dx / d, dy / d, dz / d
        else:
            w.rest[r], w.rest[r + 1], w.rest[r + 2] = dx, dy, dz
        if kind == WELD:
            w.rest[r + 3] = w.rest[r + 4] = w.rest[r + 5] = 0.0
            _turned(closure, f, w.R, w.rest[r + 3 : r + 6])
        for side in range(2):
            px, py, pz = (ax, ay, az) if side == 0 else (bx, by, bz)
            for c in range(closure.start[f + side], closure.start[f + side + 1]):
                j = closure.chain[c]
                g = tree.ratio[j] if side == 0 else -tree.ratio[j]
                tx, ty, tz = w.J[j, 3], w.J[j, 4], w.J[j, 5]
                x, y, z = cross(tx, ty, tz, px, py, pz)
                x, y, z = g * (w.J[j, 0] + x), g * (w.J[j, 1] + y), g * (w.J[j, 2] + z)
                k = tree.coordinate[j]
                y_of = w.Q[closure.slot[k]] if closure.slot[k] >= 0 else w.C[closure.rank[k]]
                if kind == ROD:
                    y_of[r] += dx * x + dy * y + dz * z
                    continue
                y_of[r] += x
                y_of[r + 1] += y
                y_of[r + 2] += z
                if kind == WELD:
                    y_of[r + 3] += g * tx
                    y_of[r + 4] += g * ty
                    y_of[r + 5] += g * tz


@step
def _factor(w):
    """J_p = Q R in place; False in a singular posture."""
    p, m = w.Q.shape
    w.margin[0] = 1.0
    for j in range(p):
        whole = 0.0
        for r in range(m):
            whole += w.Q[j, r] * w.Q[j, r]
        for i in range(j):
            w.T[i, j] = 0.0
        for _ in range(2):
            for i in range(j):
                s = 0.0
                for r in range(m):
                    s += w.Q[i, r] * w.Q[j, r]
                if s != 0.0:
                    w.T[i, j] += s
                    for r in range(m):
                        w.Q[j, r] -= s * w.Q[i, r]
        left = 0.0
        for r in range(m):
            left += w.Q[j, r] * w.Q[j, r]
        if not left > _DEPENDENT * _DEPENDENT * whole:
            w.margin[0] = 0.0
            return False
        w.margin[0] = min(w.margin[0], np.sqrt(left / whole))
        left = np.sqrt(left)
        w.T[j, j] = left
        for r in range(m):
            w.Q[j, r] /= left
    return True


@step
def _solve(w, y, x):
    """Least-squares solution x (p,) of J_p x = -y (m,)."""
    p, m = w.Q.shape
    for i in range(p - 1, -1, -1):
        s = 0.0
        for r in range(m):
            s -= w.Q[i, r] * y[r]
        for j in range(i + 1, p):
            s -= w.T[i, j] * x[j]
        x[i] = s / w.T[i, i]


@step
def _newton(tree, closure, w):
    """Close the loops over the passive joints of w.q, which starts close to an assembled posture."""
    p = closure.passive.shape[0]
    # Newton's method over the passive joints: q_p <- q_p - J_p^+ phi(q).
    for _ in range(_STEPS):
        _fill(tree, closure, w)
        if not _factor(w):
            return SINGULAR
        _solve(w, w.rest, w.x)
        size = 0.0
        for i in range(p):
            w.q[0, closure.passive[i]] += w.x[i]
            size = max(size, abs(w.x[i]))
        if not size < 1e3:
            return BROKEN
        if size <= _SMALL:
            return CLOSED
    return BROKEN


@step
def _tangent(tree, closure, w, keep):
    """N at the posture w.q, into `keep` (p, n); False in a singular posture. Returns the largest gap of a loop too."""
    _fill(tree, closure, w)
    apart = 0.0
    for r in range(w.rest.shape[0]):
        apart = max(apart, abs(w.rest[r]))
    if not _factor(w):
        return SINGULAR
    if not apart <= closure.apart:
        return BROKEN
    for j in range(closure.independent.shape[0]):
        # Column j of N = -J_p^+ J_n; a joint outside of all loops moves no passive one.
        moves = False
        for r in range(w.C.shape[1]):
            moves = moves or w.C[j, r] != 0.0
        if moves:
            _solve(w, w.C[j], w.x)
        for i in range(keep.shape[0]):
            keep[i, j] = w.x[i] if moves else 0.0
    return CLOSED


@step
def _reset(tree, closure, w):
    """Back to the posture in which the robot is assembled."""
    for i in range(w.q.shape[1]):
        w.q[0, i] = w.old[0, i] = closure.assembled[i]
    return _tangent(tree, closure, w, w.N)


@step
def _follow(tree, closure, q, k, w):
    """Move the independent joints from w.old to sample k along a line, with the passive joints on their branch.

    Steps follow the tangent. A step whose correction is large for its length is repeated with half the length: near a
    singular posture the steps become short, and a jump to another branch is never accepted.
    """
    n, p = closure.independent.shape[0], closure.passive.shape[0]
    whole = 0.0
    for j in range(n):
        whole = max(whole, abs(q[k, j] - w.old[0, closure.independent[j]]))
    if whole > 1e9:
        return BROKEN
    left, result = whole, CLOSED
    step_size = min(_STRETCH, whole)
    while True:
        share = 1.0 if left <= step_size else step_size / left
        longest = 0.0
        for j in range(n):
            i = closure.independent[j]
            w.q[0, i] = q[k, j] if share == 1.0 else w.old[0, i] + share * (q[k, j] - w.old[0, i])
            longest = max(longest, abs(w.q[0, i] - w.old[0, i]))
        for i in range(p):
            s = 0.0
            for j in range(n):
                s += w.N[i, j] * (w.q[0, closure.independent[j]] - w.old[0, closure.independent[j]])
            longest = max(longest, abs(s))
            w.tangent[i] = w.old[0, closure.passive[i]] + s
            w.q[0, closure.passive[i]] = w.tangent[i]
        # Corrector, after the predictor along the tangent.
        result = _newton(tree, closure, w)
        bend = 0.0
        for i in range(p):
            bend = max(bend, abs(w.q[0, closure.passive[i]] - w.tangent[i]))
        if result == CLOSED and bend <= _BEND * longest + _SMALL:
            result = _tangent(tree, closure, w, w.N)
            if result != CLOSED:
                return result
            for i in range(w.q.shape[1]):
                w.old[0, i] = w.q[0, i]
            left -= share * left
            if share == 1.0:
                return CLOSED
            step_size = min(_STRETCH, 2.0 * step_size)
        else:
            step_size = 0.5 * min(step_size, left)
            if step_size < _SHORTEST:
                return SINGULAR if result == CLOSED else result


@step
def _chain_drift(tree, closure, f, v, k, w):
    """Velocity and acceleration at zero joint acceleration of loop frame f, relative to the common ancestor."""
    ux = uy = uz = ox = oy = oz = ax = ay = az = ex = ey = ez = 0.0
    for c in range(closure.start[f], closure.start[f + 1]):
        j = closure.chain[c]
        s = tree.ratio[j] * v[k, tree.coordinate[j]]
        lx, ly, lz = s * w.J[j, 0], s * w.J[j, 1], s * w.J[j, 2]
        tx, ty, tz = s * w.J[j, 3], s * w.J[j, 4], s * w.J[j, 5]
        c1x, c1y, c1z = cross(ox, oy, oz, lx, ly, lz)
        c2x, c2y, c2z = cross(ux, uy, uz, tx, ty, tz)
        c3x, c3y, c3z = cross(ox, oy, oz, tx, ty, tz)
        ax, ay, az = ax + c1x + c2x, ay + c1y + c2y, az + c1z + c2z
        ex, ey, ez = ex + c3x, ey + c3y, ez + c3z
        ux, uy, uz, ox, oy, oz = ux + lx, uy + ly, uz + lz, ox + tx, oy + ty, oz + tz
    px, py, pz = _frame_point(closure, f, w.R, w.P)
    x, y, z = cross(ox, oy, oz, px, py, pz)
    ux, uy, uz = ux + x, uy + y, uz + z
    x, y, z = cross(ex, ey, ez, px, py, pz)
    c1x, c1y, c1z = cross(ox, oy, oz, ux, uy, uz)
    return ux, uy, uz, ax + x + c1x, ay + y + c1y, az + z + c1z, ex, ey, ez


@step
def _drift(tree, closure, v, k, w):
    """(dJ/dt) v of all loops into w.rest, for tree velocities v[k]; placements of the posture must be known."""
    for loop in range(closure.kind.shape[0]):
        f, r, kind = 2 * loop, closure.row[loop], closure.kind[loop]
        if kind == EQUALITY:
            moving = _weighted(closure, f + 1, v, k)
            w.rest[r] = -_law(closure.polynomial[loop], _weighted(closure, f + 1, w.q, 0))[2] * moving * moving
            continue
        ux, uy, uz, ax, ay, az, ex, ey, ez = _chain_drift(tree, closure, f, v, k, w)
        x, y, z, bx, by, bz, gx, gy, gz = _chain_drift(tree, closure, f + 1, v, k, w)
        ux, uy, uz, ax, ay, az = ux - x, uy - y, uz - z, ax - bx, ay - by, az - bz
        if kind == ROD:
            px, py, pz = _frame_point(closure, f, w.R, w.P)
            x, y, z = _frame_point(closure, f + 1, w.R, w.P)
            px, py, pz = px - x, py - y, pz - z
            d = np.sqrt(px * px + py * py + pz * pz)
            along = (px * ux + py * uy + pz * uz) / d
            w.rest[r] = (px * ax + py * ay + pz * az + ux * ux + uy * uy + uz * uz - along * along) / d
            continue
        w.rest[r], w.rest[r + 1], w.rest[r + 2] = ax, ay, az
        if kind == WELD:
            w.rest[r + 3], w.rest[r + 4], w.rest[r + 5] = ex - gx, ey - gy, ez - gz


@step
def moved(closure, N, x, k, full):
    """Velocities or accelerations of the tree for those of the independent joints."""
    for j in range(closure.independent.shape[0]):
        full[k, closure.independent[j]] = x[k, j]
    for i in range(closure.passive.shape[0]):
        s = 0.0
        for j in range(closure.independent.shape[0]):
            s += N[i, j] * x[k, j]
        full[k, closure.passive[i]] = s


@step
def gathered(closure, N, x, out):
    """N' x: out (n,) from x over the tree's coordinates."""
    for j in range(closure.independent.shape[0]):
        s = x[closure.independent[j]]
        for i in range(closure.passive.shape[0]):
            s += N[i, j] * x[closure.passive[i]]
        out[j] = s


@kernel
def assemble_one(tree, closure, q, v, a, w, last, full_q, full_v, full_a):
    """Assemble the state (q, v, a), each (1, n), from the last posture if its result `last` was CLOSED; the result."""
    result = last
    if result != CLOSED:
        result = _reset(tree, closure, w)
    if result == CLOSED:
        result = _follow(tree, closure, q, 0, w)
    if result != CLOSED:
        return result
    for i in range(full_q.shape[1]):
        full_q[0, i] = w.q[0, i]
    moved(closure, w.N, v, 0, full_v)
    moved(closure, w.N, a, 0, full_a)
    # The part of a_p = N a_n - J_p^+ (dJ/dt) v that velocities alone make.
    _drift(tree, closure, full_v, 0, w)
    _solve(w, w.rest, w.x)
    for i in range(closure.passive.shape[0]):
        full_a[0, closure.passive[i]] += w.x[i]
    return CLOSED


@kernel
def assemble(tree, closure, q, v, a, fresh, start, stop, full_q, full_v, full_a, N, margin, status):
    """Positions, velocities and accelerations of the tree (sample, tree coordinate), N (sample, passive, independent).

    The passive joints of a sample continue from the sample before, or from the assembled posture where `fresh` is set
    or where the sample before could not be reached. Samples run in order, so that the branch does not depend on the
    number of threads. `status` has a result per sample, `margin` the distance from a singular posture (`Room.margin`).
    """
    bodies, joints, size = tree.parent.shape[0] + 1, tree.parent.shape[0], closure.assembled.shape[0]
    n, p, m = closure.independent.shape[0], closure.passive.shape[0], closure.row[closure.row.shape[0] - 1]
    R, P, J = np.zeros((bodies, 9)), np.zeros((bodies, 3)), np.zeros((joints, 6))
    w = Room(
        R, P, J, np.zeros((1, size)), np.zeros((1, size)), np.zeros(p), np.zeros(m), np.zeros((p, m)), np.zeros((p, p)),
        np.zeros((n, m)), np.zeros((p, n)), np.zeros(p), np.zeros(1),
    )  # fmt: skip
    R[0, 0] = R[0, 4] = R[0, 8] = 1.0
    at_home, result = False, BROKEN
    for k in range(start, stop):
        if fresh:
            at_home, result = False, BROKEN
        # From the sample before, then from the assembled posture.
        for attempt in range(2):
            if result != CLOSED:
                if at_home:
                    break
                result = _reset(tree, closure, w)
                at_home = True
                if result != CLOSED:
                    break
            result = _follow(tree, closure, q, k, w)
            if result == CLOSED:
                break
        status[k] = result
        at_home = False
        if result != CLOSED:
            continue
        margin[k] = w.margin[0]
        for i in range(size):
            full_q[k, i] = w.q[0, i]
        for i in range(p):
            for j in range(n):
                N[k, i, j] = w.N[i, j]
        moved(closure, w.N, v, k, full_v)
        moved(closure, w.N, a, k, full_a)
        _drift(tree, closure, full_v, k, w)
        _solve(w, w.rest, w.x)
        for i in range(p):
            full_a[k, closure.passive[i]] += w.x[i]


@kernel
def project(closure, rows, N, tree_rows, start, stop, out):
    """Rows of the independent joints, out (sample, rows + n, column), from rows of the tree's joints.

    The first `rows` rows, those of the base, stay as they are.
    """
    columns = out.shape[2]
    for k in range(start, stop):
        for i in range(rows):
            for c in range(columns):
                out[k, i, c] = tree_rows[k, i, c]
        for j in range(closure.independent.shape[0]):
            y, x = out[k, rows + j], tree_rows[k, rows + closure.independent[j]]
            for c in range(columns):
                y[c] = x[c]
            for i in range(closure.passive.shape[0]):
                g = N[k, i, j]
                if g != 0.0:
                    x = tree_rows[k, rows + closure.passive[i]]
                    for c in range(columns):
                        y[c] += g * x[c]
