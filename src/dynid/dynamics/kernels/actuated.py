"""Motion of a robot on a fixed base under the law of its actuators, from many starts, with exact derivatives.

A step solves g(x, v1, theta) = 0 for the velocities v1 after it, where x = (q, v) is the state before it and theta the
parameters. Differentiated,

    (dg/dv1) T.v1 = -(dg/dx) dx - dg/dtheta,

with the matrix of the step itself, so the derivatives are those of the computed motion and not of its limit for small
steps.

Source: Hairer, Lubich and Wanner, Geometric Numerical Integration (2006), for the implicit midpoint rule; derivatives
by the implicit function theorem, see `actuated_columns`.
"""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_columns import (
    Tangents,
    continuous_columns,
    differentiate,
    field_columns,
    kept_columns,
    late_columns,
    state_columns,
)
from dynid.dynamics.kernels.actuated_drives import Dry
from dynid.dynamics.kernels.actuated_law import SIGNALS, SLOPES, control, late, motor, read_commands
from dynid.dynamics.kernels.actuated_step import Motion, Slopes, Torques, shares, solve_step
from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.integrate import DIVERGED, DONE


class Starts(NamedTuple):
    """Row, positions and velocities of every start, and the rows after it."""

    first: np.ndarray
    q: np.ndarray
    v: np.ndarray
    length: int


class Out(NamedTuple):
    """Results (start, row, joint) and derivatives (start, row, joint, column) of a larger robot, and where we are."""

    q: np.ndarray
    v: np.ndarray
    torque: np.ndarray
    dq: np.ndarray
    joints: np.ndarray
    columns: np.ndarray
    code: np.ndarray


@step
def _tick(law, aimed, clock, wanted, entries, k, one, q, v, g, T):
    """Torque g.u of a law that is computed at tick k after the start, with its derivatives T.u."""
    n, columns = T.u.shape
    size = g.ring.shape[0]
    for i in range(n):
        g.u[i] = control(law, aimed, clock.period, g.command, i, q[i], v[i], g.du)
    if wanted:
        state_columns(T.q, T.v, g.du, T.u)
        field_columns(entries, one, g.du, T.u)
    if not law.late_torque:
        return
    for i in range(n):
        g.ring[k % size, i] = g.u[i]
        if wanted:
            for c in range(columns):
                T.ring[k % size, i, c] = T.u[i, c]
        older, newer, share = late(law, clock, i, k)
        older, newer = older % size, newer % size
        change = g.ring[older, i] - g.ring[newer, i]
        g.u[i] = g.ring[newer, i] + share * change
        if wanted:
            for c in range(columns):
                T.u[i, c] = (1.0 - share) * T.ring[newer, i, c] + share * T.ring[older, i, c]
            late_columns(entries, i, change / clock.period, T.u)


@step
def _move(law, h, end, slot, wanted, m, g, T):
    """From the start of a step to its end, for the state and its derivatives."""
    n, columns = T.q.shape
    for i in range(n):
        if law.continuous:
            g.ring[slot, i] = g.present[i]
        m.q[0, i] += h * (end * m.v[0, i] + (1.0 - end) * m.v1[0, i])
        m.last[i] = (m.v1[0, i] - m.v[0, i]) / h
        m.v[0, i] = m.v1[0, i]
        if wanted:
            for c in range(columns):
                T.q[i, c] += h * (end * T.v[i, c] + (1.0 - end) * T.v1[i, c])
                T.v[i, c] = T.v1[i, c]


@step
def _store(law, aimed, period, wanted, s, row, q, v, g, Tq, out):
    """Keep the state, the torque there and the derivatives Tq as row `row` of start s."""
    for i in range(q.shape[0]):
        j, u = out.joints[i], g.u[i]
        if law.continuous:
            u = g.past[i] + g.now[i] * control(law, aimed, period, g.command, i, q[i], v[i], g.du)
        out.q[s, row, j], out.v[s, row, j] = q[i], v[i]
        out.torque[s, row, j] = motor(law, i, u, v[i], g.du)[0]
        if wanted:
            for c in range(Tq.shape[1]):
                out.dq[s, row, j, out.columns[c]] = Tq[i, c]


@step
def _begin(starts, s, directions, wanted, m, Tq, Tv):
    """The initial state of start s and its derivatives."""
    n, columns = Tq.shape
    for i in range(n):
        m.q[0, i], m.v[0, i], m.last[i] = starts.q[s, i], starts.v[s, i], 0.0
        if wanted:
            for c in range(columns):
                Tq[i, c] = Tv[i, c] = 0.0
            Tq[i, directions + i] = Tv[i, directions + n + i] = 1.0


@kernel
def actuated(plant, law, commands, clock, starts, changes, ring, start, stop, out):
    """Motion after starts start:stop; out.code (s,) is set where it ends early. `ring`: ticks of torque to keep."""
    tree, aimed, wanted, entries = plant.tree, commands.aimed, changes.wanted, changes.law
    bodies, joints, n, h = tree.parent.shape[0] + 1, tree.parent.shape[0], starts.q.shape[1], clock.h
    columns = changes.columns + 2 * n if wanted else 0
    one, row, square = np.ones(n), (1, n), (n, n)
    m = Motion(
        np.zeros(row),
        np.zeros(row),
        np.zeros(row),
        np.zeros(row),
        np.zeros(row),
        np.zeros(row),
        np.zeros(row),
        np.zeros(n),
        np.zeros(row),
        np.zeros((bodies, 9)),
        np.zeros((bodies, 3)),
        np.zeros((joints, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 10)),
        np.zeros((bodies, 12)),
        np.zeros((joints, 12)),
    )
    D = Slopes(np.zeros(square), np.zeros(square), np.zeros(square))
    g = Torques(
        np.zeros((SIGNALS, 2, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros((ring, n)),
        np.zeros((SLOPES, n)),
        np.zeros(n),
    )
    terms = plant.values.shape[0]
    d = Dry(
        np.zeros(terms),
        np.zeros(terms),
        np.zeros(terms),
        np.zeros(terms),
        np.zeros(n),
        np.zeros(n),
        np.zeros(square),
        np.zeros(square),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )
    T = Tangents(
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((ring, n, columns)),
        np.zeros(square),
    )
    keeps = law.continuous and law.late_torque  # the torque at the solution of a step
    for s in range(start, stop):
        _begin(starts, s, changes.columns, wanted, m, T.q, T.v)
        begin = starts.first[s] * clock.ticks
        last = min(starts.length, commands.signals.shape[1] - 1 - starts.first[s]) * clock.ticks
        code = DONE
        for k in range(last + 1):
            at_row = k % clock.ticks == 0
            if not law.continuous or at_row:
                read_commands(law, commands, clock, begin + k, 0.0, g.command)
            if law.continuous:
                shares(law, clock, k, g)
            else:
                _tick(law, aimed, clock, wanted, entries, k, one, m.q[0], m.v[0], g, T)
            if at_row:
                _store(law, aimed, clock.period, wanted, s, k // clock.ticks, m.q[0], m.v[0], g, T.q, out)
            if k == last:
                break
            if law.continuous:
                read_commands(law, commands, clock, begin + k, 0.5, g.command)
            for _ in range(clock.parts):
                # Velocities at the end of the step, then their derivatives by its own matrix, then the positions.
                code = solve_step(plant, law, aimed, clock, wanted or keeps, m, g, d, D)
                if code != DONE:
                    break
                if wanted:
                    if law.continuous:
                        continuous_columns(law, clock, entries, k, g, T)
                    if not differentiate(plant, law, changes, clock, one, m, g, d, D, T):
                        code = DIVERGED
                        break
                    if keeps:
                        kept_columns(entries, h, one, g.du, T, T.ring[k % ring])
                _move(law, h, clock.end, k % ring, wanted, m, g, T)
            if code != DONE:
                out.code[s] = code
                break
