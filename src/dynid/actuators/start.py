"""First values of unknown actuator parameters: torques by the law, least squares, and the delay by search.

With the torque that the law computes from the log, every unknown that is linear in the torque balance follows from
least squares with bounds. A shared delay is found by trying; delays per joint start there. Unknowns that are not linear
(limits, backlash, load friction, the bias) start from the values of the law.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.actuators.logs import Log
from dynid.actuators.unknowns import SYMBOLS, ParameterSpace, Quantity
from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.robot.actuator_law import ActuatorLaw
from dynid.signals.filters import lowpass
from dynid.signals.shift import shifted

__all__ = ["balance_rows", "delayed_commands", "first_values"]

Array = NDArray[np.float64]

# Delays that are tried: up to this many seconds or rows of the log, whichever is longer, in steps of half a row.
_LONGEST, _LONGEST_ROWS = 0.05, 4
# Rows at each end that hold the transient of the filter, in periods of its cut-off.
_EDGE = 3.0
_ROWS = 4000
# Weight of the given values, against columns of length one.
_RIDGE = 1e-8


def first_values(space: ParameterSpace, logs: Sequence[Log]) -> Array:
    """Values of the unknowns with which the torque balance fits best, shape (C,)."""
    values = space.values
    linear = [k for k, x in enumerate(space.unknowns) if x.quantity in _LINEAR]
    delays = [k for k, x in enumerate(space.unknowns) if x.quantity is Quantity.DELAY]
    tables = [_Table(space, log, linear) for log in logs]
    if not delays:
        return _solved(space, tables, space.law.delay, linear, values)[1]
    step = 0.5 / logs[0].rate
    tried = np.arange(0.0, max(_LONGEST, _LONGEST_ROWS / logs[0].rate) + step, step)
    found = []
    for delay in tried:
        trial = np.array(values)
        trial[delays] = delay
        law = space.applied(trial)[1]
        found.append(_solved(space, tables, law.delay, linear, trial))
    return min(found, key=lambda x: x[0])[1]


_LINEAR = (*SYMBOLS, Quantity.BODIES, Quantity.GAIN, Quantity.KP, Quantity.KD)


class _Table:
    """Rows of the torque balance of one log: columns of the unknowns that do not depend on the delay."""

    def __init__(self, space: ParameterSpace, log: Log, linear: Sequence[int]) -> None:
        self.rows = balance_rows(log, _ROWS)
        self.log = log
        robot = space.robot
        motion = (log.q[self.rows] - space.law.bias, log.v[self.rows], log.a[self.rows])
        parameters = np.array(robot.parameters)
        directions = space.directions.parameters[linear]
        parameters[np.any(directions != 0, axis=0)] = 0.0
        self.rest = inverse_dynamics(robot, *motion, parameters)
        if np.any(directions):
            self.columns = np.einsum("kip,cp->kic", regressor(robot, *motion), directions)
        else:
            self.columns = np.zeros((*self.rest.shape, len(linear)))


def balance_rows(log: Log, most: int) -> slice:
    """About so many rows of a log, without the transients of its filter."""
    edge = int(_EDGE * log.rate / log.cutoff)
    edge = edge if len(log) > 4 * edge else 0
    return slice(edge, len(log) - edge, max(1, (len(log) - 2 * edge) // most))


def _solved(
    space: ParameterSpace, tables: Sequence[_Table], delay: Array, linear: Sequence[int], values: Array
) -> tuple[float, Array]:
    """Whitened sum of squares and all values, with the linear ones by least squares at this delay."""
    systems = [_system(space, table, delay, linear) for table in tables]
    A, b = (np.concatenate([s[k] for s in systems]) for k in (0, 1))
    size = np.linalg.norm(b, axis=0) / np.sqrt(len(b))
    weight = 1.0 / np.where(size > 0, size, 1.0)
    flat, target = (A * weight[:, None]).reshape(b.size, len(linear)), (b * weight).reshape(-1)
    out = np.array(values)
    if not linear:
        return float(target @ target), out
    scale = np.linalg.norm(flat, axis=0)
    scale[scale == 0] = 1.0
    # A shared factor of everything, such as an unknown gain on bodies that are unknown, has no start: ridge keeps it.
    rows, ridge = np.column_stack([flat / scale, target]), np.append(np.full(len(linear), _RIDGE), 0.0)
    gram = rows.T @ rows + np.diag(ridge)
    gram[:-1, -1] += _RIDGE * values[linear] * scale
    least = np.where(np.isfinite(space.least[linear]), 0.0, -np.inf)
    triangle = np.linalg.cholesky(gram[:-1, :-1]).T
    near = scipy.linalg.solve_triangular(triangle, gram[:-1, -1], trans="T")
    found = scipy.optimize.lsq_linear(triangle, near, bounds=(least, np.inf))
    out[linear] = found.x / scale
    return float(2 * found.cost + gram[-1, -1] - near @ near), out


def _system(space: ParameterSpace, table: _Table, delay: Array, linear: Sequence[int]) -> tuple[Array, Array]:
    """Columns (row, joint, unknown) and right side (row, joint) of the torque balance with a delayed command."""
    log, law = table.log, space.law
    error, rate, torque = delayed_commands(log, law, delay)
    parts = [x[table.rows] for x in (error, rate, torque)]
    columns, right = np.array(table.columns), -table.rest
    known = {"kp": law.kp, "kd": law.kd, "gain": law.gain}
    unknown = {q: np.zeros(law.n, bool) for q in known}
    for c, k in enumerate(linear):
        x = space.unknowns[k]
        if x.quantity not in known:
            continue
        for joint in x.joints:
            i = law.joints.index(joint)
            unknown[x.quantity][i] = True
            if x.quantity is Quantity.KP:
                columns[:, i, c] -= law.gain[i] * parts[0][:, i]
            elif x.quantity is Quantity.KD:
                columns[:, i, c] -= law.gain[i] * parts[1][:, i]
            else:
                columns[:, i, c] -= law.kp[i] * parts[0][:, i] + law.kd[i] * parts[1][:, i] + parts[2][:, i]
    free = ~unknown["gain"]
    right += free * law.gain * (~unknown["kp"] * law.kp * parts[0] + ~unknown["kd"] * law.kd * parts[1] + parts[2])
    return columns, right


def delayed_commands(log: Log, law: ActuatorLaw, delay: Array) -> tuple[Array, Array, Array]:
    """Position error, velocity error and torque that is fed forward, with a delayed command."""
    commands, t = log.commands, np.arange(len(log)) / log.rate
    hold = 0.5 / log.rate if law.hold == "zero" else 0.0  # a held command is late by half a row on average

    def delayed(x: Array | None) -> Array:
        if x is None:
            return np.zeros_like(log.q)
        return lowpass(shifted(t, x, -(delay + hold)), log.cutoff, log.rate)

    wanted, measured = delayed(commands.position), log.q
    rate = delayed(commands.velocities(law))
    position = np.zeros_like(log.q) if commands.position is None else wanted - measured
    return position, rate - log.v, delayed(commands.torque)
