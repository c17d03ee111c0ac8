"""The loop itself, compiled: sense, command, saturate, hold the torque for one control period."""

from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.drives import drive_torque
from dynid.dynamics.kernels.integrate import DONE, hold
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import place_and_move

# Ends beside those of an integration.
POSITION_LIMIT, SPEED_LIMIT = 10, 11
# What a controller knows of the robot.
NO_MODEL, GRAVITY, COMPUTED_TORQUE, COMPENSATION, LINEARISATION = 0, 1, 2, 3, 4


class Law(NamedTuple):
    """A linear law a joint over its inputs (reference, its speed, measured position, measured speed).

    x' = A x + B in, out = C x + D in, with A (n, m, m), B (n, m, 4), C (n, m), D (n, 4). `knows` says what a model of
    the robot adds; under computed torque and linearisation the law's output is an acceleration.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    knows: int


class Sensing(NamedTuple):
    """Noise of positions (K, n) or (0, n), encoder steps (n,), whether speeds come from positions, their low-pass."""

    noise: np.ndarray
    steps: np.ndarray
    differentiate: int
    smoothing: float  # share of a new speed that is let through, 1 for no filter
    delay: int  # control periods between measuring and the torque that answers
    motor: np.ndarray  # where the state holds each joint's motor (n,): with its link, or beyond them all


class Bounds(NamedTuple):
    """Largest torques (n,), ranges of positions (n,) and speeds (n,), infinite where there are none."""

    torque: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    speed: np.ndarray


class Memory(NamedTuple):
    """What the loop remembers from one period to the next."""

    seen: np.ndarray  # measured positions (1, n)
    speed: np.ndarray  # measured speeds (1, n)
    x: np.ndarray  # states of the law, old above new (2 n, m)
    queue: np.ndarray  # commands not yet applied (delay + 1, n)
    command: np.ndarray  # (1, n)
    wish: np.ndarray  # accelerations asked of computed torque (1, n)


class Trace(NamedTuple):
    """What is kept: state, acceleration, delivered torque, what the encoders said, each (samples, n).

    Motors have rows of their own where joints are flexible, otherwise none.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    torque: np.ndarray
    seen: np.ndarray
    speed: np.ndarray
    motor_q: np.ndarray
    motor_v: np.ndarray


@step
def _sense(sensing, period, k, w, memory):
    """Measured positions and speeds of tick k."""
    for i in range(memory.seen.shape[1]):
        m = sensing.motor[i]
        x = w.q[0, m]
        if sensing.noise.shape[0]:
            x += sensing.noise[k, i]
        if sensing.steps[i] > 0.0:
            x = np.rint(x / sensing.steps[i]) * sensing.steps[i]
        if not sensing.differentiate:
            memory.speed[0, i] = w.v[0, m]
        elif k > 0:
            rate = (x - memory.seen[0, i]) / period
            memory.speed[0, i] += sensing.smoothing * (rate - memory.speed[0, i])
        else:
            memory.speed[0, i] = w.v[0, m]
        memory.seen[0, i] = x


@step
def _command(law, tree, inertia, drives, values, q_ref, v_ref, a_ref, feed, k, w, memory):
    """Torques that the law asks for at tick k."""
    n, m = law.C.shape
    for i in range(n):
        r, s, x, y = q_ref[k, i], v_ref[k, i], memory.seen[0, i], memory.speed[0, i]
        u = law.D[i, 0] * r + law.D[i, 1] * s + law.D[i, 2] * x + law.D[i, 3] * y
        for j in range(m):
            u += law.C[i, j] * memory.x[i, j]
        memory.command[0, i] = u + (feed[k, i] if feed.shape[0] else 0.0)
        memory.wish[0, i] = u + (a_ref[k, i] if law.knows == COMPUTED_TORQUE else 0.0)
        for j in range(m):
            z = law.B[i, j, 0] * r + law.B[i, j, 1] * s + law.B[i, j, 2] * x + law.B[i, j, 3] * y
            for l in range(m):
                z += law.A[i, j, l] * memory.x[i, l]
            memory.x[n + i, j] = z
        for j in range(m):
            memory.x[i, j] = memory.x[n + i, j]
    if law.knows != NO_MODEL:
        full = law.knows == COMPUTED_TORQUE or law.knows == LINEARISATION
        speed, wish = (memory.speed, memory.wish) if full else (w.zero, w.zero)
        place_and_move(tree, memory.seen, speed, wish, 0, w.R, w.P, w.J, w.V, w.A)
        for i in range(n):
            w.bias[0, i] = 0.0
        rigid_torque(tree, inertia, w.R, w.P, w.J, w.V, w.A, w.F, w.bias, 0)
        if full or law.knows == COMPENSATION:
            drive_torque(tree, drives, values, memory.seen, memory.speed, wish, 0, w.bias)
        for i in range(n):
            if full:
                memory.command[0, i] = feed[k, i] if feed.shape[0] else 0.0
            memory.command[0, i] = w.bias[0, i] + memory.command[0, i]


@step
def _deliver(sensing, bounds, push, k, w, memory):
    """Queue the command; deliver the one that is due within the torque limits, plus what pushes from outside."""
    slots = sensing.delay + 1
    for i in range(w.q.shape[1]):
        w.tau[0, i] = 0.0
    for i in range(memory.seen.shape[1]):
        memory.queue[k % slots, i] = memory.command[0, i]
        due = memory.queue[(k - sensing.delay) % slots, i] if k >= sensing.delay else memory.queue[0, i]
        w.acc[0, i] = min(max(due, -bounds.torque[i]), bounds.torque[i])
        w.tau[0, sensing.motor[i]] += w.acc[0, i]
        w.tau[0, i] += push[k, i] if push.shape[0] else 0.0


@step
def _keep(trace, sensing, row, w, memory):
    for i in range(memory.seen.shape[1]):
        trace.q[row, i], trace.v[row, i] = w.q[0, i], w.v[0, i]
        trace.torque[row, i] = w.acc[0, i]
        trace.seen[row, i], trace.speed[row, i] = memory.seen[0, i], memory.speed[0, i]
    for i in range(memory.seen.shape[1] if trace.motor_q.shape[0] else 0):
        m = sensing.motor[i]
        trace.motor_q[row, i], trace.motor_v[row, i] = w.q[0, m], w.v[0, m]


@step
def _within(bounds, w):
    for i in range(bounds.lower.shape[0]):
        if not bounds.lower[i] <= w.q[0, i] <= bounds.upper[i]:
            return POSITION_LIMIT
        if not abs(w.v[0, i]) <= bounds.speed[i]:
            return SPEED_LIMIT
    return DONE


@step
def _answer(plant, method, sensing, bounds, push, period, every, k, w, memory, trace):
    """Second half of tick k: deliver memory.command and move; how it ended."""
    tree, inertia, drives, values = plant
    _deliver(sensing, bounds, push, k, w, memory)
    if k % every == 0:
        _keep(trace, sensing, k // every, w, memory)
    end = hold(tree, inertia, drives, values, method, period, w)
    if k % every == 0:
        for i in range(trace.a.shape[1]):
            trace.a[k // every, i] = w.first[i]
    return _within(bounds, w) if end == DONE else end


@kernel
def closed_loop(
    plant, method, law, model, sensing, bounds, reference, feed, push, period, every, start, stop, w, memory, trace
):
    """Ticks start:stop of the loop; the tick it ended at and how.

    `plant` and `model` are (tree, inertia, drives, values), `reference` is (q, v, a), each (K, n). `trace` keeps every
    `every`-th tick.
    """
    model_tree, model_inertia, model_drives, model_values = model
    q_ref, v_ref, a_ref = reference
    for k in range(start, stop):
        _sense(sensing, period, k, w, memory)
        _command(law, model_tree, model_inertia, model_drives, model_values, q_ref, v_ref, a_ref, feed, k, w, memory)
        end = _answer(plant, method, sensing, bounds, push, period, every, k, w, memory, trace)
        if end != DONE:
            return k, end
    return stop, DONE


@kernel
def sense(sensing, period, k, w, memory):
    """First half of a tick whose command comes from outside."""
    _sense(sensing, period, k, w, memory)


@kernel
def answer(plant, method, sensing, bounds, push, period, every, k, w, memory, trace):
    """Second half of a tick whose command came from outside."""
    return _answer(plant, method, sensing, bounds, push, period, every, k, w, memory, trace)
