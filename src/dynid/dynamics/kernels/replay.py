"""Replay of recorded torques: the motion of a robot from many starts, with dry friction that holds still exactly.

One step is Moreau's midpoint rule. Mass matrix, gravity and Coriolis torques are evaluated at the middle of the step,
viscous friction as the mean of both ends, and impulses of dry friction at the end. It is of second order between the
instants at which a shaft stops or turns back. Smooth Coulomb friction is taken at the middle as well, unless it is so
steep that it stops the shaft within a step.

The loops of a linkage close in the middle of the step, where its torques and its mass matrix are projected on the
independent joints.

    q_m = q + h v / 2,    (M(q_m) + h D / 2) (v1 - v) = h (tau - bias(q_m, v_m)) - sum d_t p_t,    q1 = q_m + h v1 / 2

with the rigid torques of the bias at the velocity v_m = v + h a / 2 for the acceleration a of the step before, the
torques of its drives at v, viscous friction D and the impulses p_t of `friction_steps`.

Sources: Moreau, Unilateral Contact and Dry Friction in Finite Freedom Dynamics (1988), for the rule with positions at
the middle of a step; Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008).
"""

from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from dynid.dynamics.kernels.assembly import CLOSED, assemble_one, gathered, moved
from dynid.dynamics.kernels.compiler import STEP, kernel, step
from dynid.dynamics.kernels.drives import coulomb_range, drive_inertia, drive_torque, is_dry
from dynid.dynamics.kernels.equations import Linkage, turn_shafts
from dynid.dynamics.kernels.forward import factor, substitute
from dynid.dynamics.kernels.friction_steps import (
    add_damping,
    along,
    braking_impulse,
    change_impulse,
    driving_impulse,
    dry_bound,
    repeat_impulses,
)
from dynid.dynamics.kernels.integrate import DIVERGED, DONE, NOT_POSITIVE
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import place_and_move
from dynid.dynamics.kernels.mass import composite_inertias, rigid_mass

OPEN = 4  # result where the loops cannot close, beside those of an integration

_SWEEPS, _SETTLED = 100, 1e-9  # iterations for impulses of dry friction, and the velocity (rad/s) that counts as zero
_STRIDE = 1.0  # rad or m in one step: beyond it, the step does not resolve the motion
_NEAR = 0.5  # longest step of a passive joint, relative to the margin to a singular posture


class Plant(NamedTuple):
    """A robot on a fixed or floating base; `smooth` are the drive values without dry friction.

    `loops` is None, or the linkage of the joints and its work space.
    """

    tree: tuple
    loops: "Loops | None"
    inertia: np.ndarray
    drives: tuple
    values: np.ndarray
    smooth: np.ndarray


class Loops(NamedTuple):
    """A linkage, and the motion, torques and mass matrix of its tree with the base."""

    linkage: Linkage
    joints_q: np.ndarray  # of the independent joints (1, n)
    joints_v: np.ndarray
    zero: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    bias: np.ndarray
    M: np.ndarray
    half: np.ndarray  # M N


def make_loops(linkage: Linkage, moving: int) -> Loops:
    n, size = linkage.room.N.shape[1], linkage.q.shape[1]
    rows = size + 6 * moving
    joints_q, joints_v, zero = np.zeros((3, 1, n))
    v, a, bias = np.zeros((3, 1, rows))
    M, half = np.zeros((rows, rows)), np.zeros((rows, n + 6 * moving))
    return Loops(linkage, joints_q, joints_v, zero, np.zeros((1, size + 7 * moving)), v, a, bias, M, half)


class Starts(NamedTuple):
    """First and last row of every start (s,), seconds per row (s,), rows after the start at which q is kept (s, h)."""

    first: np.ndarray
    last: np.ndarray
    period: np.ndarray
    marks: np.ndarray


class Space(NamedTuple):
    """State (1, nq) and (1, nv), and work space."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    middle: np.ndarray  # position in the middle of the step
    moving: np.ndarray  # velocity in the middle of the step
    v1: np.ndarray
    acc: np.ndarray
    zero: np.ndarray
    bias: np.ndarray
    R: np.ndarray
    P: np.ndarray
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray
    F: np.ndarray
    C: np.ndarray
    M: np.ndarray
    L: np.ndarray
    G: np.ndarray  # response of the velocities to a unit impulse on the shaft of each drive term (t, nv)
    impulse: np.ndarray


@step
def _dry(drives, values, first, h, w):
    """Impulses of dry friction at the end of the step, by Gauss-Seidel iteration over the shafts; changes w.v1."""
    repeat_impulses(drives, first, w)
    for _ in range(_SWEEPS):
        change = 0.0
        for t in range(drives.kind.shape[0]):
            if not is_dry(drives.kind[t]):
                continue
            velocity, response = along(drives, first, t, w.v1[0]), along(drives, first, t, w.G[t])
            if response == 0.0:  # the shaft does not move with the coordinates
                continue
            old, began = w.impulse[t], along(drives, first, t, w.v[0])
            bound = dry_bound(drives, values, h, t, along(drives, first, t, w.moving[0]))
            if bound >= 0.0:
                low, high = coulomb_range(drives.kind[t])
                free, slope, end = velocity + response * old, drives.slope[t], 1.0
                if 0.0 < slope * bound * response < 1.0:
                    end = 0.5
                    free = 0.5 * (free + began)
                accuracy = 0.1 * _SETTLED / (end * response)
                new = braking_impulse(free, end * response, bound * low, bound * high, slope, old, accuracy)
            else:
                new = driving_impulse(drives, t, bound, began)
            change_impulse(t, new, w)
            change = max(change, abs(response * (new - old)))
        if change <= _SETTLED:
            break


@step
def _shift(tree, q, v, h, out):
    """Positions out after h seconds with velocities v; out may be q."""
    joints = 7 * tree.moving
    if tree.moving:
        x, y, z, s = q[0, 3], q[0, 4], q[0, 5], q[0, 6]
        a, b, c = v[0, 0], v[0, 1], v[0, 2]
        # R u = u + 2 s (r x u) + 2 r x (r x u) for the unit quaternion (r, s).
        dx, dy, dz = y * c - z * b, z * a - x * c, x * b - y * a
        out[0, 0] = q[0, 0] + h * (a + 2 * (s * dx + y * dz - z * dy))
        out[0, 1] = q[0, 1] + h * (b + 2 * (s * dy + z * dx - x * dz))
        out[0, 2] = q[0, 2] + h * (c + 2 * (s * dz + x * dy - y * dx))
        a, b, c = 0.5 * h * v[0, 3], 0.5 * h * v[0, 4], 0.5 * h * v[0, 5]
        angle = sqrt(a * a + b * b + c * c)
        d, k = cos(angle), (sin(angle) / angle if angle > 1e-9 else 1.0)
        a, b, c = k * a, k * b, k * c
        x, y, z, s = (
            x * d + s * a + y * c - z * b,
            y * d + s * b + z * a - x * c,
            z * d + s * c + x * b - y * a,
            s * d - x * a - y * b - z * c,
        )
        k = 1.0 / sqrt(x * x + y * y + z * z + s * s)
        out[0, 3], out[0, 4], out[0, 5], out[0, 6] = k * x, k * y, k * z, k * s
    for i in range(6 * tree.moving, v.shape[1]):
        out[0, joints + i - 6 * tree.moving] = q[0, joints + i - 6 * tree.moving] + h * v[0, i]


def _restart(loops):
    """Back to the posture in which the robot is assembled."""


def _equations(plant, h, w):
    """Mass matrix w.M and bias w.bias in the middle of a step of h seconds, with drive torques at w.v.

    False where the loops are open, or so close to a singular posture that the step may pass it.
    """


def _shafts(plant):
    """Drive terms over the coordinates of the state."""


def _tree_equations(plant, h, w):
    tree, drives = plant.tree, plant.drives
    place_and_move(tree, w.middle, w.moving, w.zero, 0, w.R, w.P, w.J, w.V, w.A)
    for i in range(w.bias.shape[1]):
        w.bias[0, i] = 0.0
    rigid_torque(tree, plant.inertia, w.R, w.P, w.J, w.V, w.A, w.F, w.bias, 0)
    drive_torque(tree, drives, plant.smooth, w.middle, w.v, w.zero, 0, w.bias)
    composite_inertias(tree, plant.inertia, w.R, w.P, w.C)
    rigid_mass(tree, w.J, w.C, w.M)
    drive_inertia(tree, drives, plant.values, w.M)
    return True


@step
def _joints_of(x, y):
    """The last entries of x (1, n) into y."""
    for i in range(y.shape[1]):
        y[0, i] = x[0, x.shape[1] - y.shape[1] + i]


@step
def _with_base(base, joints, x):
    """Entries of the base, which come first, and of the joints of the tree into x (1, n)."""
    first = x.shape[1] - joints.shape[1]
    for i in range(x.shape[1]):
        x[0, i] = base[0, i] if i < first else joints[0, i - first]


@step
def _projected(closure, N, first, x, out):
    """Entries of the base, and N' times those of the joints."""
    for i in range(first):
        out[i] = x[i]
    gathered(closure, N, x[first:], out[first:])


@kernel
def linkage_equations(plant, h, w):
    """`_equations` of a linkage. It is a kernel of its own: within another one it would take long to compile."""
    tree, drives, x, linkage = plant.tree, plant.drives, plant.loops, plant.loops.linkage
    closure, N, first = linkage.closure, linkage.room.N, tree.wrench_rows
    _joints_of(w.middle, x.joints_q)
    _joints_of(w.moving, x.joints_v)
    linkage.status[0] = assemble_one(
        linkage.tree, closure, x.joints_q, x.joints_v, x.zero, linkage.room, linkage.status[0],
        linkage.q, linkage.v, linkage.a,
    )  # fmt: skip
    if linkage.status[0] != CLOSED:
        return False
    for k in range(closure.passive.shape[0]):
        if not h * abs(linkage.v[0, closure.passive[k]]) < _NEAR * linkage.room.margin[0]:
            return False
    _with_base(w.middle, linkage.q, x.q)
    _with_base(w.moving, linkage.v, x.v)
    _with_base(w.zero, linkage.a, x.a)
    place_and_move(tree, x.q, x.v, x.a, 0, w.R, w.P, w.J, w.V, w.A)
    for i in range(x.bias.shape[1]):
        x.bias[0, i] = 0.0
    rigid_torque(tree, plant.inertia, w.R, w.P, w.J, w.V, w.A, w.F, x.bias, 0)
    _joints_of(w.v, x.joints_v)
    moved(closure, N, x.joints_v, 0, linkage.v)
    _with_base(w.v, linkage.v, x.v)
    drive_torque(tree, drives, plant.smooth, x.q, x.v, x.a, 0, x.bias)
    composite_inertias(tree, plant.inertia, w.R, w.P, w.C)
    rigid_mass(tree, w.J, w.C, x.M)
    drive_inertia(tree, drives, plant.values, x.M)
    _projected(closure, N, first, x.bias[0], w.bias[0])
    for i in range(x.M.shape[0]):
        _projected(closure, N, first, x.M[i], x.half[i])
    for j in range(w.M.shape[0]):
        _projected(closure, N, first, x.half[:, j], w.M[:, j])
    turn_shafts(linkage, drives)
    return True


@overload(_restart, jit_options=STEP)
def _restart_of(loops):
    if isinstance(loops, types.NoneType):
        return lambda loops: None

    def linkage(loops):
        loops.linkage.status[0] = -1

    return linkage


@overload(_equations, jit_options=STEP)
def _equations_of(plant, h, w):
    if isinstance(plant[Plant._fields.index("loops")], types.NoneType):
        return _tree_equations
    return lambda plant, h, w: linkage_equations(plant, h, w)


@overload(_shafts, jit_options=STEP)
def _shafts_of(plant):
    if isinstance(plant[Plant._fields.index("loops")], types.NoneType):
        return lambda plant: plant.drives
    return lambda plant: plant.loops.linkage.shafts


@step
def _advance(plant, h, w):
    """Velocities w.v1 after one step of h seconds, and the acceleration w.acc; returns the result code."""
    n, first = w.v.shape[1], plant.tree.wrench_rows
    if not _equations(plant, h, w):
        return OPEN
    drives = _shafts(plant)
    for i in range(n):
        for j in range(i + 1):
            w.L[i, j] = w.M[i, j]
    if not factor(w.L):  # friction below would hide it
        return NOT_POSITIVE
    # Viscous friction with the mean of both velocities: M + h D / 2.
    add_damping(drives, plant.values, first, 0.5 * h, w)
    if not factor(w.M):  # negative viscous friction grows beyond the inertia within a step
        return DIVERGED
    for i in range(n):
        w.acc[0, i] = w.tau[0, i] - w.bias[0, i]
    substitute(w.M, w.acc[0])
    for i in range(n):
        w.v1[0, i] = w.v[0, i] + h * w.acc[0, i]
    _dry(drives, plant.values, first, h, w)
    for i in range(n):
        w.acc[0, i] = (w.v1[0, i] - w.v[0, i]) / h
        if not abs(h * w.v1[0, i]) < _STRIDE:
            return DIVERGED
    return DONE


@step
def _row(plant, h, parts, torque, row, fresh, w):
    """Integrate from one row to the next; `fresh` where no acceleration is known yet. Returns the result code."""
    n = w.v.shape[1]
    for part in range(parts):
        share = (part + 0.5) / parts
        for i in range(n):
            w.tau[0, i] = (1.0 - share) * torque[row, i] + share * torque[row + 1, i]
        for again in range(2 if fresh and part == 0 else 1):
            known = again == 1 or part > 0 or not fresh
            # First half of the positions with the velocity at the start; the second half follows with that at the end.
            _shift(plant.tree, w.q, w.v, 0.5 * h, w.middle)
            for i in range(n):
                w.moving[0, i] = w.v[0, i] + (0.5 * h * w.acc[0, i] if known else 0.0)
            code = _advance(plant, h, w)
            if code != DONE:
                return code
        _shift(plant.tree, w.middle, w.v1, 0.5 * h, w.q)
        for i in range(n):
            w.v[0, i] = w.v1[0, i]
    return DONE


@kernel
def replay(plant, torque, starts, q, v, parts, start, stop, out, code, reached):
    """Positions out (s, h, nq) at the marks of starts start:stop, from q (s, nq) and v (s, nv).

    `torque` (row, nv) is interpolated between rows; every row has `parts` steps. `code` (s,) is the result, `reached`
    (s,) the last row. Marks that are not reached are left as they are.
    """
    tree = plant.tree
    bodies, joints, n, terms = tree.parent.shape[0] + 1, tree.parent.shape[0], v.shape[1], plant.values.shape[0]
    w = Space(
        np.zeros((1, q.shape[1])),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, q.shape[1])),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.empty((bodies, 9)),
        np.empty((bodies, 3)),
        np.empty((joints, 6)),
        np.empty((bodies, 6)),
        np.empty((bodies, 6)),
        np.empty((bodies, 6)),
        np.empty((bodies, 10)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((terms, n)),
        np.zeros(terms),
    )
    for s in range(start, stop):
        w.q[0, :] = q[s]
        w.v[0, :] = v[s]
        w.impulse[:] = 0.0
        _restart(plant.loops)
        h, row, mark, end = starts.period[s] / parts, starts.first[s], 0, DONE
        while mark < starts.marks.shape[1] and row + 1 <= starts.last[s]:
            end = _row(plant, h, parts, torque, row, row == starts.first[s], w)
            if end != DONE:
                break
            row += 1
            while mark < starts.marks.shape[1] and starts.first[s] + starts.marks[s, mark] <= row:
                for i in range(q.shape[1]):
                    out[s, mark, i] = w.q[0, i]
                mark += 1
        code[s], reached[s] = end, row
