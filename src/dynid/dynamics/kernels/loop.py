"""Closed loop: measure, compute the command, saturate, hold the torque for one control period.

Per joint and tick, with the measured state (q, v) and the inputs in = (q_ref, v_ref, q, v):

    u = C x + D in,    x <- A x + B in,    command = u + feed                                  without a model
    command = ID(q, v, a_ref + u) + feed                                                       computed torque
    command = ID(q, v, u) + feed                                                               linearisation
    command = ID(q, v, a_ref) + u + feed                                                       augmented
    command = ID(q, 0, 0) + u + feed, with drive torques at v for compensation                 gravity, compensation

Sources: Astrom and Wittenmark, Computer-Controlled Systems (1997), for the sampled law and the held torque; Siciliano,
Sciavicco, Villani and Oriolo, Robotics: Modelling, Planning and Control (2009), chapter 8, for laws with a model.
"""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.equations import model_torque
from dynid.dynamics.kernels.integrate import DONE, hold

# Result codes in addition to those of an integration.
POSITION_LIMIT, VELOCITY_LIMIT = 10, 11
# Use of a robot model in a controller.
NO_MODEL, GRAVITY, COMPUTED_TORQUE, COMPENSATION, LINEARISATION, AUGMENTED = 0, 1, 2, 3, 4, 5


class Law(NamedTuple):
    """One linear law per joint over its inputs (reference, its velocity, measured position, measured velocity).

    x' = A x + B in, out = C x + D in, with A (n, m, m), B (n, m, 4), C (n, m), D (n, 4). `model_use` sets the use of a
    robot model; under computed torque and linearisation, the output of the law is an acceleration.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    model_use: int


class Sensing(NamedTuple):
    """Position noise (K, n) or (0, n), encoder steps (n,), whether velocities are differentiated, their low-pass."""

    noise: np.ndarray
    steps: np.ndarray
    differentiate: int
    smoothing: float  # coefficient of the low-pass filter of the velocity, 1 for no filter
    delay: int  # control periods between a measurement and its torque
    motor: np.ndarray  # index of the motor of each joint in the state (n,): that of its link, or after all links


class Bounds(NamedTuple):
    """Limits of torques (n,), positions (n,) and velocities (n,), infinite where there are none."""

    torque: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray


class LoopState(NamedTuple):
    """State of the loop between control periods."""

    seen: np.ndarray  # measured positions (1, n)
    velocity: np.ndarray  # measured velocities (1, n)
    x: np.ndarray  # states of the law, old above new (2 n, m)
    queue: np.ndarray  # commands not yet applied (delay + 1, n)
    command: np.ndarray  # (1, n)
    wish: np.ndarray  # commanded accelerations of computed torque (1, n)


class Trace(NamedTuple):
    """Recorded samples: state, acceleration, delivered torque, encoder readings, each (samples, n).

    Motors have separate rows where joints are flexible, otherwise none.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    torque: np.ndarray
    seen: np.ndarray
    velocity: np.ndarray
    motor_q: np.ndarray
    motor_v: np.ndarray


@step
def _sense(sensing, period, k, w, state):
    """Measured positions and velocities of tick k."""
    for i in range(state.seen.shape[1]):
        m = sensing.motor[i]
        x = w.q[0, m]
        if sensing.noise.shape[0]:
            x += sensing.noise[k, i]
        if sensing.steps[i] > 0.0:
            x = np.rint(x / sensing.steps[i]) * sensing.steps[i]
        if not sensing.differentiate:
            state.velocity[0, i] = w.v[0, m]
        elif k > 0:
            rate = (x - state.seen[0, i]) / period
            state.velocity[0, i] += sensing.smoothing * (rate - state.velocity[0, i])
        else:
            state.velocity[0, i] = w.v[0, m]
        state.seen[0, i] = x


@step
def _command(law, tree, inertia, drives, values, q_ref, v_ref, a_ref, feed, k, w, state):
    """Command torques of the law at tick k."""
    n, m = law.C.shape
    for i in range(n):
        r, s, x, y = q_ref[k, i], v_ref[k, i], state.seen[0, i], state.velocity[0, i]
        u = law.D[i, 0] * r + law.D[i, 1] * s + law.D[i, 2] * x + law.D[i, 3] * y
        for j in range(m):
            u += law.C[i, j] * state.x[i, j]
        state.command[0, i] = u + (feed[k, i] if feed.shape[0] else 0.0)
        state.wish[0, i] = 0.0 if law.model_use == AUGMENTED else u
        if law.model_use == COMPUTED_TORQUE or law.model_use == AUGMENTED:
            state.wish[0, i] += a_ref[k, i]
        for j in range(m):
            z = law.B[i, j, 0] * r + law.B[i, j, 1] * s + law.B[i, j, 2] * x + law.B[i, j, 3] * y
            for l in range(m):
                z += law.A[i, j, l] * state.x[i, l]
            state.x[n + i, j] = z
        for j in range(m):
            state.x[i, j] = state.x[n + i, j]
    if law.model_use != NO_MODEL:
        accelerates = law.model_use == COMPUTED_TORQUE or law.model_use == LINEARISATION
        full = accelerates or law.model_use == AUGMENTED
        velocity, wish = (state.velocity, state.wish) if full else (w.zero, w.zero)
        with_drives = full or law.model_use == COMPENSATION
        model_torque(
            tree, inertia, drives, values, state.seen, velocity, wish, state.velocity, with_drives,
            w.R, w.P, w.J, w.V, w.A, w.F, w.bias,
        )  # fmt: skip
        for i in range(n):
            if accelerates:
                state.command[0, i] = feed[k, i] if feed.shape[0] else 0.0
            state.command[0, i] = w.bias[0, i] + state.command[0, i]


@step
def _deliver(sensing, bounds, push, k, w, state):
    """Queue the command; apply the one that is due, within the torque limits, plus external torques."""
    slots = sensing.delay + 1
    for i in range(w.q.shape[1]):
        w.tau[0, i] = 0.0
    for i in range(state.seen.shape[1]):
        state.queue[k % slots, i] = state.command[0, i]
        # A command acts after the delay; until the first one does, the oldest is held.
        due = state.queue[(k - sensing.delay) % slots, i] if k >= sensing.delay else state.queue[0, i]
        w.acc[0, i] = min(max(due, -bounds.torque[i]), bounds.torque[i])
        w.tau[0, sensing.motor[i]] += w.acc[0, i]
        w.tau[0, i] += push[k, i] if push.shape[0] else 0.0


@step
def _keep(trace, sensing, row, w, state):
    for i in range(state.seen.shape[1]):
        trace.q[row, i], trace.v[row, i] = w.q[0, i], w.v[0, i]
        trace.torque[row, i] = w.acc[0, i]
        trace.seen[row, i], trace.velocity[row, i] = state.seen[0, i], state.velocity[0, i]
    for i in range(state.seen.shape[1] if trace.motor_q.shape[0] else 0):
        m = sensing.motor[i]
        trace.motor_q[row, i], trace.motor_v[row, i] = w.q[0, m], w.v[0, m]


@step
def _within(bounds, w):
    for i in range(bounds.lower.shape[0]):
        if not bounds.lower[i] <= w.q[0, i] <= bounds.upper[i]:
            return POSITION_LIMIT
        if not abs(w.v[0, i]) <= bounds.velocity[i]:
            return VELOCITY_LIMIT
    return DONE


@step
def _apply_command(plant, method, sensing, bounds, push, period, every, k, w, state, trace):
    """Second half of tick k: apply the command and integrate; returns the result code."""
    tree, inertia, drives, values = plant
    _deliver(sensing, bounds, push, k, w, state)
    if k % every == 0:
        _keep(trace, sensing, k // every, w, state)
    end = hold(tree, inertia, drives, values, method, period, w)
    if k % every == 0:
        for i in range(trace.a.shape[1]):
            trace.a[k // every, i] = w.first[i]
    return _within(bounds, w) if end == DONE else end


@kernel
def closed_loop(
    plant, method, law, model, sensing, bounds, reference, feed, push, period, every, start, stop, w, state, trace
):
    """Ticks start:stop of the loop; returns the last tick and the result code.

    `plant` and `model` are (tree, inertia, drives, values), `reference` is (q, v, a), each (K, n). `trace` keeps every
    `every`-th tick.
    """
    model_tree, model_inertia, model_drives, model_values = model
    q_ref, v_ref, a_ref = reference
    for k in range(start, stop):
        _sense(sensing, period, k, w, state)
        _command(law, model_tree, model_inertia, model_drives, model_values, q_ref, v_ref, a_ref, feed, k, w, state)
        end = _apply_command(plant, method, sensing, bounds, push, period, every, k, w, state, trace)
        if end != DONE:
            return k, end
    return stop, DONE


@kernel
def sense(sensing, period, k, w, state):
    """First half of a tick with an external command."""
    _sense(sensing, period, k, w, state)


@kernel
def apply_command(plant, method, sensing, bounds, push, period, every, k, w, state, trace):
    """Second half of a tick with an external command."""
    return _apply_command(plant, method, sensing, bounds, push, period, every, k, w, state, trace)
