"""Motion of a robot on a fixed base under the law of its actuators, from many starts, with exact derivatives."""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_columns import (
    continuous_columns,
    differentiate,
    kept_columns,
    late_columns,
    law_columns,
    state_columns,
)
from dynid.dynamics.kernels.actuated_law import SLOPES, control, late, motor, read_commands
from dynid.dynamics.kernels.actuated_step import Space, shares, solve_step
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
def _tick(law, aimed, clock, changes, k, one, w):
    """Torque w.u of a law that is computed at tick k after the start, with its derivatives w.Su."""
    n, columns = w.Su.shape
    size = w.ring.shape[0]
    for i in range(n):
        w.u[i] = control(law, aimed, clock.period, w.command, i, w.q[0, i], w.v[0, i], w.du)
    if changes.wanted:
        state_columns(w)
        law_columns(changes, one, w, w.Su)
    if not law.late_torque:
        return
    for i in range(n):
        w.ring[k % size, i] = w.u[i]
        if changes.wanted:
            for c in range(columns):
                w.Sring[k % size, i, c] = w.Su[i, c]
        older, newer, share = late(law, clock, i, k)
        older, newer = older % size, newer % size
        change = w.ring[older, i] - w.ring[newer, i]
        w.u[i] = w.ring[newer, i] + share * change
        if changes.wanted:
            for c in range(columns):
                w.Su[i, c] = (1.0 - share) * w.Sring[newer, i, c] + share * w.Sring[older, i, c]
            late_columns(changes, i, change / clock.period, w)


@step
def _advance(plant, law, aimed, clock, changes, k, one, w):
    """One step; returns the result code."""
    n, columns = w.Sq.shape
    h, slot = clock.h, k % w.ring.shape[0]
    again = law.continuous and law.late_torque  # the torque at the solution is kept
    code = solve_step(plant, law, aimed, clock, changes.wanted or again, w)
    if code != DONE:
        return code
    if changes.wanted:
        if law.continuous:
            continuous_columns(law, clock, changes, k, w)
        if not differentiate(plant, law, changes, h, w):
            return DIVERGED
        if law.continuous and law.late_torque:
            kept_columns(changes, h, one, w, w.Sring[slot])
    for i in range(n):
        if law.continuous:
            w.ring[slot, i] = w.present[i]
        w.q[0, i] += 0.5 * h * (w.v[0, i] + w.v1[0, i])
        w.last[i] = (w.v1[0, i] - w.v[0, i]) / h
        w.v[0, i] = w.v1[0, i]
        if changes.wanted:
            for c in range(columns):
                w.Sq[i, c] += 0.5 * h * (w.Sv[i, c] + w.S1[i, c])
                w.Sv[i, c] = w.S1[i, c]
    return DONE


@step
def _store(law, aimed, clock, changes, s, row, out, w):
    """Keep the state, the torque there and the derivatives as row `row` of start s."""
    n, columns = w.Sq.shape
    for i in range(n):
        j, u = out.joints[i], w.u[i]
        if law.continuous:
            u = w.past[i] + w.now[i] * control(law, aimed, clock.period, w.command, i, w.q[0, i], w.v[0, i], w.du)
        out.q[s, row, j], out.v[s, row, j] = w.q[0, i], w.v[0, i]
        out.torque[s, row, j] = motor(law, i, u, w.v[0, i], w.du)[0]
        if changes.wanted:
            for c in range(columns):
                out.dq[s, row, j, out.columns[c]] = w.Sq[i, c]


@step
def _begin(changes, starts, s, w):
    """The initial state of start s and its derivatives."""
    n, columns = w.Sq.shape
    for i in range(n):
        w.q[0, i], w.v[0, i], w.last[i] = starts.q[s, i], starts.v[s, i], 0.0
        if changes.wanted:
            for c in range(columns):
                w.Sq[i, c] = w.Sv[i, c] = 0.0
            w.Sq[i, changes.columns + i] = w.Sv[i, changes.columns + n + i] = 1.0


@kernel
def actuated(plant, law, commands, clock, starts, changes, ring, start, stop, out):
    """Motion after starts start:stop; out.code (s,) is raised to the result code. `ring`: ticks of torque to keep."""
    tree = plant.tree
    bodies, joints, n = tree.parent.shape[0] + 1, tree.parent.shape[0], starts.q.shape[1]
    columns = changes.columns + 2 * n if changes.wanted else 0
    one = np.ones(n)
    w = Space(
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros((1, n)),
        np.zeros(n),
        np.zeros((1, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros((3, 2, n)),
        np.zeros((SLOPES, n)),
        np.zeros(plant.values.shape[0]),
        np.zeros((bodies, 9)),
        np.zeros((bodies, 3)),
        np.zeros((joints, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 6)),
        np.zeros((bodies, 10)),
        np.zeros((bodies, 12)),
        np.zeros((joints, 12)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((n, columns)),
        np.zeros((ring, n)),
        np.zeros((ring, n, columns)),
    )
    for s in range(start, stop):
        _begin(changes, starts, s, w)
        begin = starts.first[s] * clock.ticks
        last = min(starts.length, commands.signals.shape[1] - 1 - starts.first[s]) * clock.ticks
        code = DONE
        for k in range(last + 1):
            at_row = k % clock.ticks == 0
            if not law.continuous or at_row:
                read_commands(law, commands, clock, begin + k, 0.0, w.command)
            if law.continuous:
                shares(law, clock, k, w)
            else:
                _tick(law, commands.aimed, clock, changes, k, one, w)
            if at_row:
                _store(law, commands.aimed, clock, changes, s, k // clock.ticks, out, w)
            if k == last:
                break
            if law.continuous:
                read_commands(law, commands, clock, begin + k, 0.5, w.command)
            for _ in range(clock.parts):
                code = _advance(plant, law, commands.aimed, clock, changes, k, one, w)
                if code != DONE:
                    break
            if code != DONE:
                break
        if code != DONE:
            out.code[s] = code
