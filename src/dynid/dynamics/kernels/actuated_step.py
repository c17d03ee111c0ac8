"""One step of a robot on a fixed base under the law of its actuators.

A step of h seconds from (q0, v0) to (q1, v1) is the implicit midpoint rule, with dry friction at its end:

    q1 = q0 + h (v0 + v1)/2,   ID((q0 + q1)/2, (v0 + v1)/2, (v1 - v0)/h) + friction(v1) = torque of the motors

A semi-implicit Euler step, as simulators take it, has q1 = q0 + h v1, and q0 and v0 in place of the means; viscous
friction acts with v1. Both have q1 = q0 + h (e v0 + (1 - e) v1) with the share e of the end in the means, 1/2 or 0.

It is solved by Newton's method with the matrix K = M/h + e Dv + e^2 h Dq of everything smooth, computed at the first
guess and again only where the iterations converge slowly; dry friction is solved for in each iteration.

Source: Hairer, Lubich and Wanner, Geometric Numerical Integration (2006), for the implicit midpoint rule and symplectic
Euler steps; dry friction at the end of the step as in Moreau (1988), see `friction_steps`. The common form with the
share e, and Newton's method with dry friction solved for within it, are our own.
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


class Motion(NamedTuple):
    """State at the start of a step, velocities v1 at its end, and the motion in its middle (1, n), with work space."""

    q: np.ndarray
    v: np.ndarray
    v1: np.ndarray
    qm: np.ndarray
    vm: np.ndarray
    acc: np.ndarray
    damped: np.ndarray  # velocities of viscous friction
    last: np.ndarray  # acceleration of the step before (n,)
    tau: np.ndarray  # torque of the smooth part
    R: np.ndarray
    P: np.ndarray
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray
    F: np.ndarray
    C: np.ndarray
    B: np.ndarray
    X: np.ndarray


class Slopes(NamedTuple):
    """Derivatives (n, n) of the smooth part by acceleration, position and velocity in the middle of the step."""

    M: np.ndarray
    Dq: np.ndarray
    Dv: np.ndarray


class Torques(NamedTuple):
    """Torques (n,) of the law, and their derivatives."""

    command: np.ndarray  # (signal, 2, n)
    u: np.ndarray  # torque that acts on the motors
    present: np.ndarray  # of a continuous law: torque in this step,
    now: np.ndarray  # its share in u,
    past: np.ndarray  # and the rest of u, from steps before
    ring: np.ndarray  # torques of the law at the last ticks (tick, n)
    du: np.ndarray  # derivatives of the law and the motors by their fields (SLOPES, n)
    by_u: np.ndarray  # derivative of the torques of the motors, less friction by load, by u


@step
def shares(law, clock, k, g):
    """Share g.now of the present torque, and the rest g.past of the torques before, where a law is continuous."""
    size = g.ring.shape[0]
    for i in range(g.u.shape[0]):
        g.now[i], g.past[i] = 1.0, 0.0
        if law.late_torque:
            older, newer, share = late(law, clock, i, k)
            g.now[i] = 0.0
            if newer == k:
                g.now[i] += 1.0 - share
            else:
                g.past[i] += (1.0 - share) * g.ring[newer % size, i]
            if older == k:
                g.now[i] += share
            else:
                g.past[i] += share * g.ring[older % size, i]


@step
def _actuators(law, aimed, period, q, v, v1, g, tau, load, matrices, Dq, Dv):
    """Subtract the torques of the motors from tau (n,); bounds of friction by load; their slopes with `matrices`."""
    for i in range(tau.shape[0]):
        share = 0.0
        if law.continuous:
            share = g.now[i]
            g.present[i] = control(law, aimed, period, g.command, i, q[i], v[i], g.du)
            g.u[i] = g.past[i] + share * g.present[i]
        torque, by_u, by_v = motor(law, i, g.u[i], v[i], g.du)
        friction = law.values[LOAD_FRICTION, i]
        tau[i] -= torque
        load[i] = friction * abs(torque)
        if not matrices:
            continue
        sign = tanh(law.slope[i] * v1[i])
        part = 1.0 - friction * sign if torque > 0.0 else 1.0 + friction * sign
        g.by_u[i] = part * by_u
        Dv[i, i] -= part * (by_v + by_u * share * g.du[VELOCITY, i])
        Dq[i, i] -= part * by_u * share * g.du[POSITION, i]
        g.du[BACK_EMF, i] *= part
        g.du[STALL_TORQUE, i] *= part
        g.du[NO_LOAD_VELOCITY, i] *= part
        g.du[LOAD_FRICTION, i] = -abs(torque) * sign


@step
def _evaluate(plant, law, aimed, clock, m, g, d, D, matrices):
    """Smooth part m.tau of the equation at m.v1, with `matrices` also D and K; False where M is not positive."""
    n, h, e = m.v.shape[1], clock.h, clock.end
    ahead = (1.0 - 2.0 * e) * h
    for i in range(n):
        m.vm[0, i] = (1.0 - e) * m.v[0, i] + e * m.v1[0, i]
        m.qm[0, i] = m.q[0, i] + e * h * m.vm[0, i]
        m.acc[0, i] = (m.v1[0, i] - m.v[0, i]) / h
        m.damped[0, i] = m.vm[0, i] + ahead * m.acc[0, i]
        m.tau[0, i] = d.known[i]
    place_and_move(plant.tree, m.qm, m.vm, m.acc, 0, m.R, m.P, m.J, m.V, m.A)
    if matrices:
        base_inertias(plant.tree, plant.inertia, m.R, m.P, m.C)
        rigid_derivatives(plant.tree, m.J, m.V, m.A, m.C, m.F, m.B, m.X, m.tau, 0, D.M, D.Dq, D.Dv)
    else:
        rigid_torque(plant.tree, plant.inertia, m.R, m.P, m.J, m.V, m.A, m.F, m.tau, 0)
    motion = (m.qm[0], m.damped[0], m.acc[0])
    smooth_drives(plant.drives, plant.values, motion, ahead, m.tau[0], matrices, D.M, D.Dq, D.Dv)
    if matrices:
        for i in range(n):
            for j in range(i + 1):
                d.L[i, j] = D.M[i, j]
        if not factor(d.L):
            return False
    _actuators(law, aimed, clock.period, m.qm[0], m.vm[0], m.v1[0], g, m.tau[0], d.load, matrices, D.Dq, D.Dv)
    if matrices:
        for i in range(n):
            for j in range(n):
                d.K[i, j] = D.M[i, j] / h + e * D.Dv[i, j] + e * e * h * D.Dq[i, j]
    return True


@step
def solve_step(plant, law, aimed, clock, sensitive, m, g, d, D):
    """Velocities m.v1 at the end of a step, with the matrices there if `sensitive`; returns the result code."""
    n, solved, renew, before = m.v.shape[1], False, True, 0.0
    start_dry(plant.drives, plant.values, law, clock.h, m.v[0], d)
    for i in range(n):
        m.v1[0, i] = m.v[0, i] + clock.h * m.last[i]
    for iteration in range(_ITERATIONS):
        if not _evaluate(plant, law, aimed, clock, m, g, d, D, renew or solved):
            return NOT_POSITIVE
        if solved:
            return DONE
        for i in range(n):
            s = m.tau[0, i]
            for j in range(n):
                s -= d.K[i, j] * m.v1[0, j]
            d.r[i] = s
            d.x[i] = m.v1[0, i]
        # Newton step: the smooth part linearised at v1, dry friction as it is.
        if not solve_dry(plant.drives, law.slope, d, d.x):
            return DIVERGED
        size = scale = 0.0
        damp = 1.0 if iteration < _ITERATIONS // 4 else 0.5
        for i in range(n):
            change = d.x[i] - m.v1[0, i]
            size, scale = max(size, abs(change)), max(scale, abs(d.x[i]))
            m.v1[0, i] += damp * change
            if not abs(clock.h * d.x[i]) < _STRIDE:
                return DIVERGED
        renew = iteration > 0 and size > _SLOW * before
        error = size * size / before if iteration > 0 and not renew else size
        solved = error <= _SOLVED * (1.0 + scale)
        if solved and not sensitive:
            return DONE
        before = size
    return DIVERGED
