"""Torque of an actuator from its command, its measured position and its velocity, with its derivatives.

The control law gives u of a joint at each tick; the motor turns u into torque, continuously. A signal that is delayed
by d ticks is read at tick k - d, linearly between two ticks. At whole ticks, its derivative with respect to the delay
is that for a longer delay.
"""

from math import floor
from typing import NamedTuple

import numpy as np

from dynid.dynamics.kernels.compiler import step

# Rows of `Law.values` and of the derivatives of u, in the order of the fields of the actuator law.
KP, KD, GAIN, DELAY, TORQUE_LIMIT, BACK_EMF, STALL_TORQUE, NO_LOAD_VELOCITY = 0, 1, 2, 3, 4, 5, 6, 7
BACKLASH, LOAD_FRICTION, BIAS = 8, 9, 10
POSITION, VELOCITY = 11, 12  # further rows of the derivatives
FIELDS, SLOPES = 11, 13
# Fields that act on the motor, all others on the law.
MOTOR_FIELDS = (BACK_EMF, STALL_TORQUE, NO_LOAD_VELOCITY, LOAD_FRICTION)


class Law(NamedTuple):
    """Fields (FIELDS, n), slopes (n,) of the sign in friction by load, and the kind of law as 0 or 1 each."""

    values: np.ndarray
    slope: np.ndarray
    continuous: int
    linear: int  # commands are interpolated between rows
    late_torque: int  # the delay applies to the torque


class Commands(NamedTuple):
    """Commands (row, n); `aimed` is 1 with a position law."""

    position: np.ndarray
    velocity: np.ndarray
    torque: np.ndarray
    aimed: int


class Clock(NamedTuple):
    """Ticks per row of the log, integration steps per tick, seconds per tick and per step."""

    ticks: int
    parts: int
    period: float
    h: float


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
def _read(law, clock, x, i, tick, shift, delay):
    """Command x of joint i, `delay` ticks late, and its change per tick."""
    whole = int(floor(delay))
    new = _at(x, i, tick - whole, clock.ticks, law.linear, shift)
    if law.late_torque:
        return new, 0.0
    old = _at(x, i, tick - whole - 1, clock.ticks, law.linear, shift)
    return new - (delay - whole) * (new - old), new - old


@step
def control(law, commands, clock, tick, shift, i, q, v, du):
    """Torque u of the control law of joint i at (q, v), and its derivatives in column i of du (SLOPES, n)."""
    x = law.values
    kp, kd, gain, limit = x[KP, i], x[KD, i], x[GAIN, i], x[TORQUE_LIMIT, i]
    delay = 0.0 if law.late_torque else x[DELAY, i] / clock.period
    w, w_rate = _read(law, clock, commands.velocity, i, tick, shift, delay)
    f, f_rate = _read(law, clock, commands.torque, i, tick, shift, delay)
    error = rate = free = side = 0.0
    if commands.aimed:
        c, rate = _read(law, clock, commands.position, i, tick, shift, delay)
        error, half = c - q - x[BIAS, i], 0.5 * x[BACKLASH, i]
        side = 1.0 if error > half else (-1.0 if error < -half else 0.0)
        free = abs(side) if half > 0.0 else 1.0
        error = free * error - side * half
    raw = kp * error + kd * (w - v) + f
    u = gain * raw
    du[KP, i], du[KD, i], du[GAIN, i], du[TORQUE_LIMIT, i] = gain * error, gain * (w - v), raw, 0.0
    du[DELAY, i] = -gain * (kp * free * rate + kd * w_rate + f_rate) / clock.period
    du[BACKLASH, i] = -0.5 * gain * kp * side
    du[BIAS, i] = du[POSITION, i] = -gain * kp * free
    du[VELOCITY, i] = -gain * kd
    if abs(u) > limit:
        side = 1.0 if u > 0.0 else -1.0
        u = side * limit
        for field in range(SLOPES):
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
    whole = int(floor(delay))
    return max(tick - whole - 1, 0), max(tick - whole, 0), delay - whole
