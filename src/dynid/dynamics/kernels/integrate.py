"""Integration under constant torques: explicit Runge-Kutta, or Euler steps implicit in friction and elasticity.

With x = (q, v), x' = f(x) and torques tau held over the span:

    explicit:    K_s = f(x + h sum of a_sr K_r),    x1 = x + h sum of b_s K_s,    error = h sum of e_s K_s
    implicit:    (M + h D + h^2 K) (v1 - v) = h (tau - bias - h K v) - sum of d_t p_t,    q1 = q + h v1

with viscous friction D, springs K and the impulses p_t of `friction_steps`. The next step of the adaptive method is 0.9
h error^(-1/5), where the error is relative to the tolerances.

Sources: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I (1993), section II.4, for steps and
error; Moreau, Unilateral Contact and Dry Friction in Finite Freedom Dynamics (1988), for Euler steps with impulses of
friction; Hairer, Lubich and Wanner, Geometric Numerical Integration (2006), for symplectic Euler steps.
"""

from math import sqrt, tanh
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.drives import coulomb_range, is_dry
from dynid.dynamics.kernels.equations import equations, shafts_of
from dynid.dynamics.kernels.forward import accelerate, factor, substitute
from dynid.dynamics.kernels.friction_steps import (
    add_damping,
    along,
    braking_impulse,
    change_impulse,
    driving_impulse,
    dry_bound,
    repeat_impulses,
)

# Results of an integration.
DONE, NOT_POSITIVE, DIVERGED, STEP_VANISHED = 0, 1, 2, 3

_SPEED = 1e6  # rad/s or m/s; no robot is faster
_SMALLEST_STEP = 1e-10  # share of the span
_SWEEPS, _SETTLED = 200, 1e-12  # iterations for Coulomb impulses, and the velocity (rad/s) that counts as zero


class Method(NamedTuple):
    """An integrator. Explicit: stages a (s, s), weights b (s,), error weights e (s,), all zero for fixed steps.

    `symplectic`: positions move with the new velocities. `implicit`: Euler steps implicit in viscous and Coulomb
    friction. `substeps`: steps per span where they are fixed; `relative`, `absolute`: error tolerances otherwise.
    """

    a: np.ndarray
    b: np.ndarray
    e: np.ndarray
    symplectic: int
    implicit: int
    substeps: int
    relative: float
    absolute: float


class Work(NamedTuple):
    """The state (1, n), the constant torque, and work space; made once per simulation."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    first: np.ndarray  # acceleration at the start of the span (n,)
    size: np.ndarray  # [step size of the adaptive method]
    q1: np.ndarray
    v1: np.ndarray
    acc: np.ndarray
    zero: np.ndarray
    bias: np.ndarray
    KQ: np.ndarray
    KV: np.ndarray
    R: np.ndarray
    P: np.ndarray
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray
    F: np.ndarray
    C: np.ndarray
    M: np.ndarray
    G: np.ndarray  # response of the velocities to a unit impulse on the shaft of each drive term (t, n)
    impulse: np.ndarray  # (t,)
    smooth: np.ndarray  # drive values without Coulomb friction (t,)


def make_work(joints: int, n: int, drives: "object", values: np.ndarray, stages: int) -> Work:
    bodies, terms = joints + 1, len(values)
    q, v, tau, q1, v1, acc, zero, bias = np.zeros((8, 1, n))
    V, A, F = np.empty((3, bodies, 6))
    smooth = np.array([0.0 if is_dry.py_func(k) else x for k, x in zip(drives.kind, values, strict=True)])  # type: ignore[attr-defined]
    return Work(
        q,
        v,
        tau,
        np.zeros(n),
        np.zeros(1),
        q1,
        v1,
        acc,
        zero,
        bias,
        np.zeros((stages, n)),
        np.zeros((stages, n)),
        np.empty((bodies, 9)),
        np.empty((bodies, 3)),
        np.empty((joints, 6)),
        V,
        A,
        F,
        np.empty((bodies, 10)),
        np.empty((n, n)),
        np.zeros((terms, n)),
        np.zeros(terms),
        smooth,
    )


@step
def _explicit(tree, inertia, drives, values, method, h, known, w):
    """One step of size h from (w.q, w.v) into (w.q1, w.v1); False where the mass matrix is not positive definite.

    The first `known` stages are known already.
    """
    n, stages = w.q.shape[1], method.b.shape[0]
    for s in range(known, stages):
        for i in range(n):
            x, y = 0.0, 0.0
            for r in range(s):
                x += method.a[s, r] * w.KQ[r, i]
                y += method.a[s, r] * w.KV[r, i]
            w.q1[0, i], w.v1[0, i] = w.q[0, i] + h * x, w.v[0, i] + h * y
        if not accelerate(
            tree, inertia, drives, values, w.q1, w.v1, w.tau, 0,
            w.zero, w.R, w.P, w.J, w.V, w.A, w.F, w.C, w.M, w.bias, w.acc,
        ):  # fmt: skip
            return False
        for i in range(n):
            w.KQ[s, i], w.KV[s, i] = w.v1[0, i], w.acc[0, i]
    for i in range(n):
        x, y = 0.0, 0.0
        for s in range(stages):
            x += method.b[s] * w.KQ[s, i]
            y += method.b[s] * w.KV[s, i]
        w.v1[0, i] = w.v[0, i] + h * y
        w.q1[0, i] = w.q[0, i] + h * (w.v1[0, i] if method.symplectic else x)
    return True


@step
def _error(method, h, w):
    """Error of the last step relative to the tolerances."""
    n, stages, total = w.q.shape[1], method.b.shape[0], 0.0
    for i in range(n):
        x, y = 0.0, 0.0
        for s in range(stages):
            x += method.e[s] * w.KQ[s, i]
            y += method.e[s] * w.KV[s, i]
        x /= method.absolute + method.relative * max(abs(w.q[0, i]), abs(w.q1[0, i]))
        y /= method.absolute + method.relative * max(abs(w.v[0, i]), abs(w.v1[0, i]))
        total += (h * x) ** 2 + (h * y) ** 2
    return sqrt(total / (2 * n))


@step
def _implicit(tree, inertia, drives, values, h, w):
    """One Euler step from (w.q, w.v) into (w.q1, w.v1) with all friction evaluated at its end.

    Viscous friction and elastic springs are added to the mass matrix; impulses of dry friction are found by
    Gauss-Seidel iteration over the shafts. The Stribeck factor is evaluated at the start of the step.
    """
    n, terms = w.q.shape[1], drives.kind.shape[0]
    if not equations(
        tree, inertia, drives, w.smooth, values, w.q, w.v, w.zero, w.R, w.P, w.J, w.V, w.A, w.F, w.C, w.M, w.bias
    ):
        return False
    shafts = shafts_of(tree, drives)
    # M + h D + h^2 K: viscous friction and springs with the velocity and the position at the end.
    add_damping(shafts, values, 0, h, w)
    if not factor(w.M):
        return False
    for i in range(n):
        w.acc[0, i] = w.tau[0, i] - w.bias[0, i]
    substitute(w.M, w.acc[0])
    for i in range(n):
        w.v1[0, i] = w.v[0, i] + h * w.acc[0, i]
    # Impulses of dry friction, one shaft after the other (projected Gauss-Seidel), from those of the step before.
    repeat_impulses(shafts, 0, w)
    for _ in range(_SWEEPS):
        change = 0.0
        for t in range(terms):
            if not is_dry(shafts.kind[t]):
                continue
            velocity, response = along(shafts, 0, t, w.v1[0]), along(shafts, 0, t, w.G[t])
            if response == 0.0:  # the shaft does not move with the coordinates
                continue
            old, began = w.impulse[t], along(shafts, 0, t, w.v[0])
            bound = dry_bound(shafts, values, h, t, began)
            if bound >= 0.0:
                low, high = coulomb_range(shafts.kind[t])
                low, high, slope, free = bound * low, bound * high, shafts.slope[t], velocity + response * old
                guess = 0.5 * (high + low + (high - low) * tanh(slope * free))
                new = braking_impulse(free, response, low, high, slope, guess, 1e-15 * (high - low))
            else:
                new = driving_impulse(shafts, t, bound, began)
            change_impulse(t, new, w)
            change = max(change, abs(response * (new - old)))
        if change <= _SETTLED:
            break
    for t in range(terms):  # sticking shafts have exactly zero velocity
        low, high = coulomb_range(shafts.kind[t])
        bound = dry_bound(shafts, values, h, t, along(shafts, 0, t, w.v[0]))
        if is_dry(shafts.kind[t]) and shafts.slope[t] == 0.0 and bound * low < w.impulse[t] < bound * high:
            for i in range(shafts.start[t], shafts.start[t + 1]):
                if abs(w.v1[0, shafts.joint[i]]) <= _SETTLED:
                    w.v1[0, shafts.joint[i]] = 0.0
    for i in range(n):
        w.acc[0, i] = (w.v1[0, i] - w.v[0, i]) / h
        w.q1[0, i] = w.q[0, i] + h * w.v1[0, i]
    return True


@step
def _sane(w):
    """Whether the new state is finite and its velocity plausible."""
    for i in range(w.q.shape[1]):
        if not (abs(w.q1[0, i]) < _SPEED and abs(w.v1[0, i]) < _SPEED):
            return False
    return True


@step
def hold(tree, inertia, drives, values, method, span, w):
    """Integrate (w.q, w.v) over `span` seconds under w.tau; w.first is the initial acceleration."""
    n = w.q.shape[1]
    adaptive = method.relative > 0.0
    h = span / method.substeps
    if adaptive:
        h = min(span, w.size[0]) if w.size[0] > 0.0 else span
    done, known, begun, broken, left = 0.0, 0, False, False, method.substeps
    while True:
        if method.implicit:
            fine = _implicit(tree, inertia, drives, values, h, w)
        else:
            fine = _explicit(tree, inertia, drives, values, method, h, known, w)
        if not fine and not adaptive:  # a state that is not finite is no failure of the mass matrix
            return NOT_POSITIVE if _sane(w) else DIVERGED
        if fine and not begun:
            begun = True
            for i in range(n):
                w.first[i] = w.acc[0, i] if method.implicit else w.KV[0, i]
        if adaptive:
            # A step of fifth order with an error of one tolerance: h error^(-1/5), a tenth shorter to be accepted.
            error = _error(method, h, w) if fine else np.inf
            if not error <= 1.0:
                known, broken = (1 if fine else known), broken or not fine
                h *= max(0.2, 0.9 * error**-0.2) if error < np.inf else 0.2
                if h < _SMALLEST_STEP * span:
                    return NOT_POSITIVE if broken else STEP_VANISHED
                continue
        if not _sane(w):
            return DIVERGED
        for i in range(n):
            w.q[0, i], w.v[0, i] = w.q1[0, i], w.v1[0, i]
        if adaptive:
            done += h
            larger = h * min(5.0, 0.9 * max(error, 1e-10) ** -0.2)
            if done >= span * (1.0 - 1e-12):
                w.size[0] = max(larger, w.size[0]) if h < w.size[0] else larger
                return DONE
            w.size[0] = larger
            h, known = min(larger, span - done), 1
            for i in range(n):  # the last stage is the first of the next step
                w.KQ[0, i], w.KV[0, i] = w.KQ[method.b.shape[0] - 1, i], w.KV[method.b.shape[0] - 1, i]
        else:
            left -= 1
            if left == 0:
                return DONE
