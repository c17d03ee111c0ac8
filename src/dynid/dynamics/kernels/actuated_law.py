"""Torque of an actuator from its command, its measured position and its velocity, with its derivatives.

The control law gives u of a joint at each tick; the motor turns u into torque, continuously. A signal that is delayed
by d ticks is read at tick k - d, linearly between two ticks. At whole ticks, its derivative with respect to the delay
is that for a longer delay.

With commands (q_c, v_c, tau_c), the measured state (q, v) and a dead zone of width `backlash`:

    u = clip(gain (kp zone(q_c - q - bias) + kd (v_c - v) + tau_c), -limit, limit)
    tau = clip(u - back_emf v, -stall (1 + v / fastest), stall (1 - v / fastest)).

Source: Spong, Hutchinson and Vidyasagar, Robot Modeling and Control (2006), chapter on independent joint control, for
the motor with its back electromotive force and the PD law; derivatives by hand.
"""

from math import floor
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import step

# Rows of `Law.values` and of the derivatives of u, in the order of the fields of the actuator law.
KP, KD, GAIN, DELAY, TORQUE_LIMIT, BACK_EMF, STALL_TORQUE, NO_LOAD_VELOCITY = 0, 1, 2, 3, 4, 5, 6, 7
BACKLASH, LOAD_FRICTION, BIAS, FRICTION_LEAD, FRICTION_WIDTH = 8, 9, 10, 11, 12
POSITION, VELOCITY = 13, 14  # further rows of the derivatives
SLOPES = 15
SIGNALS = 3  # position, velocity and torque that are commanded
# Fields that act on the motor and on dry friction, all others on the law.
MOTOR_FIELDS = (BACK_EMF, STALL_TORQUE, NO_LOAD_VELOCITY, LOAD_FRICTION)
FRICTION_FIELDS = (FRICTION_LEAD, FRICTION_WIDTH)


class Law(NamedTuple):
    """Fields (field, n), slopes (n,) of the sign in friction by load, and the kind of law as 0 or 1 each."""

    values: np.ndarray
    slope: np.ndarray
    continuous: int
    linear: int  # commands are interpolated between rows
    late_torque: int  # the delay applies to the torque


class Commands(NamedTuple):
    """Commands (signal, row, n): position, velocity and torque; `aimed` is 1 with a position law."""

    signals: np.ndarray
    aimed: int


class Clock(NamedTuple):
    """Ticks per row of the log, steps per tick, seconds per tick and per step, and the share of the end in a step.

    That share is 1/2 for the implicit midpoint rule, and 0 for semi-implicit Euler steps.
    """

    ticks: int
    parts: int
    period: float
    h: float
    end: float


@step
def _at(x, i, tick, ticks, linear, shift):
    """Column i of a command at a tick; `shift` ticks later where commands are interpolated."""
    last = x.shape[0] - 1
    if linear:
        s = (tick + shift) / ticks
        if s <= 0.0:
            return x[0, i]
        row = int(s)
        return x[row, i] + (s - row) * (x[row + 1, i] - x[row, i]) if row < last else x[last, i]
    return x[max(0, min(tick // ticks, last)), i]


@step
def read_commands(law, commands, clock, tick, shift, out):
    """Commands out (signal, 2, n) that act at a tick, `shift` ticks later where they are interpolated.

    Each has its value and its change per tick of delay.
    """
    for i in range(out.shape[2]):
        delay = 0.0 if law.late_torque else law.values[DELAY, i] / clock.period
        whole = floor(delay)
        for signal in range(out.shape[0]):
            x = commands.signals[signal]
            new = _at(x, i, tick - whole, clock.ticks, law.linear, shift)
            change = 0.0
            if not law.late_torque:
                change = _at(x, i, tick - whole - 1, clock.ticks, law.linear, shift) - new
            out[signal, 0, i] = new + (delay - whole) * change
            out[signal, 1, i] = change


@step
def control(law, aimed, period, command, i, q, v, du):
    """Torque u of the control law of joint i at (q, v), and its derivatives in column i of du (SLOPES, n)."""
    x = law.values
    kp, kd, gain, limit = x[KP, i], x[KD, i], x[GAIN, i], x[TORQUE_LIMIT, i]
    error = free = side = 0.0
    if aimed:
        error, half = command[0, 0, i] - q - x[BIAS, i], 0.5 * x[BACKLASH, i]
        side = 1.0 if error > half else (-1.0 if error < -half else 0.0)
        free = abs(side) if half > 0.0 else 1.0
        error = free * error - side * half
    slip = command[1, 0, i] - v
    raw = kp * error + kd * slip + command[2, 0, i]
    u = gain * raw
    du[KP, i], du[KD, i], du[GAIN, i], du[TORQUE_LIMIT, i] = gain * error, gain * slip, raw, 0.0
    du[DELAY, i] = gain * (kp * free * command[0, 1, i] + kd * command[1, 1, i] + command[2, 1, i]) / period
    du[BACKLASH, i] = -0.5 * gain * kp * side
    du[BIAS, i] = du[POSITION, i] = -gain * kp * free
    du[VELOCITY, i] = -gain * kd
    if abs(u) > limit:
        side = 1.0 if u > 0.0 else -1.0
        u = side * limit
        for field in range(SLOPES):
            if field != BACK_EMF and field != STALL_TORQUE and field != NO_LOAD_VELOCITY and field != LOAD_FRICTION:
                du[field, i] = 0.0
        du[TORQUE_LIMIT, i] = side
    return u


@step
def motor(law, i, u, v, du):
    """Torque of the motor of joint i, and its derivatives by u and v; those by its fields in column i of du."""
    back_emf, stall, fastest = law.values[BACK_EMF, i], law.values[STALL_TORQUE, i], law.values[NO_LOAD_VELOCITY, i]
    tau, by_u, by_v = u - back_emf * v, 1.0, -back_emf
    du[BACK_EMF, i], du[STALL_TORQUE, i], du[NO_LOAD_VELOCITY, i] = -v, 0.0, 0.0
    if stall < np.inf:
        share = v / fastest
        side = 1.0 if tau > stall * (1.0 - share) else (-1.0 if tau < -stall * (1.0 + share) else 0.0)
        if side != 0.0:
            tau, by_u, by_v = stall * (side - share), 0.0, -stall / fastest
            du[BACK_EMF, i], du[STALL_TORQUE, i], du[NO_LOAD_VELOCITY, i] = 0.0, side - share, stall * share / fastest
    return tau, by_u, by_v


@step
def late(law, clock, i, tick):
    """Older and newer tick after the start between which the torque of joint i is read, and the share of the older."""
    delay = law.values[DELAY, i] / clock.period
    whole = floor(delay)
    return max(tick - whole - 1, 0), max(tick - whole, 0), delay - whole
