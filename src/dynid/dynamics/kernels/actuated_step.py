"""One step of a robot on a fixed base under the law of its actuators.

A step of h seconds from (q0, v0) to (q1, v1) is the implicit midpoint rule, with dry friction at its end:

    q1 = q0 + h (v0 + v1)/2,   ID((q0 + q1)/2, (v0 + v1)/2, (v1 - v0)/h) + friction(v1) = torque of the motors

It is solved by Newton's method with the matrix K = M/h + Dv/2 + h Dq/4 of everything smooth, computed at the first
guess and again only where the iterations converge slowly; dry friction is solved for in each iteration.
"""

from math import tanh
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.actuated_drives import smooth_drives, start_dry
from dynid.dynamics.kernels.actuated_law import (
    BACK_EMF,
    LOAD_FRICTION,
    NO_LOAD_VELOCITY,
    POSITION,
    STALL_TORQUE,
    VELOCITY,
    control,
    late,
    motor,
)
from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.derivatives import rigid_derivatives
from dynid.dynamics.kernels.dry_step import solve_dry
from dynid.dynamics.kernels.forward import factor
from dynid.dynamics.kernels.integrate import DIVERGED, DONE, NOT_POSITIVE
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import place_and_move
from dynid.dynamics.kernels.mass import base_inertias

_ITERATIONS = 40
_SOLVED = 1e-12  # error of the velocities (relative to 1 rad/s and to themselves), from the last changes
_SLOW = 0.05  # contraction above which the matrix is computed anew
_STRIDE = 1.0  # rad or m in one step: beyond it, the step does not resolve the motion


class Plant(NamedTuple):
    """A robot on a fixed base with its drive terms."""

    tree: tuple
    inertia: np.ndarray
    drives: tuple
    values: np.ndarray


class Space(NamedTuple):
    """State and work space. S... (n, column) are derivatives."""

    q: np.ndarray
    v: np.ndarray
    v1: np.ndarray
    qm: np.ndarray
    vm: np.ndarray
    acc: np.ndarray
    last: np.ndarray  # acceleration of the step before
    tau: np.ndarray  # torque of the smooth part (1, n)
    known: np.ndarray
    r: np.ndarray
    load: np.ndarray
    change: np.ndarray
    free: np.ndarray
    x: np.ndarray
    u: np.ndarray  # torque of the law
    present: np.ndarray  # of a continuous law: torque in this step,
    now: np.ndarray  # its share in u,
    past: np.ndarray  # and the rest of u, from steps before
    by_u: np.ndarray  # derivative of the equation by u, with its sign changed
    command: np.ndarray  # (signal, 2, n)
    du: np.ndarray
    bound: np.ndarray
    R: np.ndarray
    P: np.ndarray
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray
    F: np.ndarray
    C: np.ndarray
    B: np.ndarray
    X: np.ndarray
    M: np.ndarray
    Dq: np.ndarray
    Dv: np.ndarray
    K: np.ndarray
    L: np.ndarray
    Y: np.ndarray
    Sq: np.ndarray
    Sv: np.ndarray
    S1: np.ndarray
    Su: np.ndarray
    ring: np.ndarray  # torques of the law at the last ticks (tick, n)
    Sring: np.ndarray  # (tick, n, column)


@step
def shares(law, clock, k, w):
    """Share w.now of the present torque, and the rest w.past of the torques before, where a law is continuous."""
    size = w.ring.shape[0]
    for i in range(w.u.shape[0]):
        w.now[i], w.past[i] = 1.0, 0.0
        if law.late_torque:
            older, newer, share = late(law, clock, i, k)
            w.now[i] = 0.0
            if newer == k:
                w.now[i] += 1.0 - share
            else:
                w.past[i] += (1.0 - share) * w.ring[newer % size, i]
            if older == k:
                w.now[i] += share
            else:
                w.past[i] += share * w.ring[older % size, i]


@step
def _actuators(law, aimed, period, w, matrices):
    """Subtract the torques of the motors from w.tau; friction by load into w.load; their slopes with `matrices`."""
    for i in range(w.u.shape[0]):
        share = 0.0
        if law.continuous:
            share = w.now[i]
            w.present[i] = control(law, aimed, period, w.command, i, w.qm[0, i], w.vm[0, i], w.du)
            w.u[i] = w.past[i] + share * w.present[i]
        tau, by_u, by_v = motor(law, i, w.u[i], w.vm[0, i], w.du)
        friction = law.values[LOAD_FRICTION, i]
        w.tau[0, i] -= tau
        w.load[i] = friction * abs(tau)
        if not matrices:
            continue
        sign = tanh(law.slope[i] * w.v1[0, i])
        part = 1.0 - friction * sign if tau > 0.0 else 1.0 + friction * sign
        w.by_u[i] = part * by_u
        w.Dv[i, i] -= part * (by_v + by_u * share * w.du[VELOCITY, i])
        w.Dq[i, i] -= part * by_u * share * w.du[POSITION, i]
        w.du[BACK_EMF, i] *= part
        w.du[STALL_TORQUE, i] *= part
        w.du[NO_LOAD_VELOCITY, i] *= part
        w.du[LOAD_FRICTION, i] = -abs(tau) * sign


@step
def _evaluate(plant, law, aimed, clock, w, matrices):
    """Smooth part w.tau of the equation at w.v1, with `matrices` also M, Dq, Dv; False where M is not positive."""
    n, h = w.v.shape[1], clock.h
    for i in range(n):
        w.vm[0, i] = 0.5 * (w.v[0, i] + w.v1[0, i])
        w.qm[0, i] = w.q[0, i] + 0.5 * h * w.vm[0, i]
        w.acc[0, i] = (w.v1[0, i] - w.v[0, i]) / h
        w.tau[0, i] = w.known[i]
    place_and_move(plant.tree, w.qm, w.vm, w.acc, 0, w.R, w.P, w.J, w.V, w.A)
    if matrices:
        base_inertias(plant.tree, plant.inertia, w.R, w.P, w.C)
        rigid_derivatives(plant.tree, w.J, w.V, w.A, w.C, w.F, w.B, w.X, w.tau, 0, w.M, w.Dq, w.Dv)
    else:
        rigid_torque(plant.tree, plant.inertia, w.R, w.P, w.J, w.V, w.A, w.F, w.tau, 0)
    smooth_drives(plant.drives, plant.values, w.qm[0], w.vm[0], w.acc[0], w.tau[0], matrices, w.M, w.Dq, w.Dv)
    if matrices:
        for i in range(n):
            for j in range(i + 1):
                w.L[i, j] = w.M[i, j]
        if not factor(w.L):
            return False
    _actuators(law, aimed, clock.period, w, matrices)
    if matrices:
        for i in range(n):
            for j in range(n):
                w.K[i, j] = w.M[i, j] / h + 0.5 * w.Dv[i, j] + 0.25 * h * w.Dq[i, j]
    return True


@step
def solve_step(plant, law, aimed, clock, sensitive, w):
    """Velocities w.v1 at the end of a step, with the matrices there if `sensitive`; returns the result code."""
    n, solved, renew, before = w.v.shape[1], False, True, 0.0
    start_dry(plant.drives, plant.values, w)
    for i in range(n):
        w.v1[0, i] = w.v[0, i] + clock.h * w.last[i]
    for iteration in range(_ITERATIONS):
        if not _evaluate(plant, law, aimed, clock, w, renew or solved):
            return NOT_POSITIVE
        if solved:
            return DONE
        for i in range(n):
            s = w.tau[0, i]
            for j in range(n):
                s -= w.K[i, j] * w.v1[0, j]
            w.r[i] = s
            w.x[i] = w.v1[0, i]
        if not solve_dry(plant.drives, law, w, w.x):
            return DIVERGED
        size = scale = 0.0
        damp = 1.0 if iteration < _ITERATIONS // 4 else 0.5
        for i in range(n):
            change = w.x[i] - w.v1[0, i]
            size, scale = max(size, abs(change)), max(scale, abs(w.x[i]))
            w.v1[0, i] += damp * change
            if not abs(clock.h * w.x[i]) < _STRIDE:
                return DIVERGED
        renew = iteration > 0 and size > _SLOW * before
        error = size * size / before if iteration > 0 and not renew else size
        solved = error <= _SOLVED * (1.0 + scale)
        if solved and not sensitive:
            return DONE
        before = size
    return DIVERGED
