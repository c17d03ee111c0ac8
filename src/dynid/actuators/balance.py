"""Unmodeled effects, compared in the torque balance: which are worth a fit, and where that starts.

With positions and commands of the log, every effect gives another torque of the motor, joint by joint and without a
simulation. Least squares over armature, damping and friction then say how much of the balance it explains. Sizes that
are not linear are scanned, and so is the delay. Noise of the encoders biases this, so it only orders the effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.actuators.logs import Log
from dynid.actuators.start import balance_rows, delayed_commands
from dynid.actuators.unknowns import SYMBOLS, Quantity, Unknown
from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.signals.shift import shifted

__all__ = ["Balance", "Start"]

Array = NDArray[np.float64]

# Rows of the balance in all logs.
_ROWS = 1500
# Delays that are tried where the delay is unknown: up to twice the one that was found, at least this (s).
_DELAYS, _LONGEST = 7, 0.012
# Sizes that are tried: widths over the median position error, limits over the largest torque of the law, and no-load
# velocities over the largest velocity of the joint.
_WIDTHS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)
_LIMITS = (0.95, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2)
_LINES = (1.3, 2.5)
# Frictions of the balance change their sign within this share of the usual velocity.
_SIGN = 0.02
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Start:
    """Where the fit of an effect starts.

    Attributes
    ----------
    score : float
        Sum over the joints of the logarithm of the residual of the torque balance over that without the effect.
    drives : dict of Quantity to ndarray (n,)
        Drive terms that are unknown.
    fields : dict of str to ndarray (n,)
        Fields of the law.
    """

    score: float
    drives: Mapping[Quantity, Array]
    fields: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class _Motor:
    """Torque (K, n) of the motors with an effect, further columns (K, n) of the balance, and the sizes (n,)."""

    torque: Array
    sizes: Mapping[str, Array]
    column: Array | None = None
    column_is: str = ""
    signed: bool = False


class Balance:
    """Torque balance of every joint of identified actuators."""

    def __init__(self, robot: Robot, law: ActuatorLaw, unknowns: Sequence[Unknown], logs: Sequence[Log]) -> None:
        self.law, self.logs = law, logs
        total = sum(len(x) for x in logs)
        self.rows = [balance_rows(x, max(1, _ROWS * len(x) // total)) for x in logs]
        q, v, a = (np.concatenate([getattr(x, f)[r] for x, r in zip(logs, self.rows, strict=True)]) for f in "qva")
        free = {x.quantity: {j for u in unknowns if u.quantity is x.quantity for j in u.joints} for x in unknowns}
        self.free = {q: np.array([j in free.get(q, ()) for j in law.joints]) for q in SYMBOLS}
        zero = [p for x in unknowns if x.quantity in SYMBOLS for p in x.parameters]
        parameters = np.array(
            [0.0 if n in zero else x for n, x in zip(robot.parameter_names, robot.parameters, strict=True)]
        )
        self.rest = inverse_dynamics(robot, q - law.bias, v, a, parameters)
        self.v, self.fast = v, np.maximum(np.quantile(np.abs(v), 0.95, axis=0), 1e-9)
        sign = np.tanh(v / (_SIGN * self.fast))
        self.sign, self.late = sign, Quantity.DELAY in free
        self.columns = {
            Quantity.ARMATURE: a,
            Quantity.DAMPING: v,
            Quantity.FRICTION: sign,
            Quantity.STRIBECK: sign * np.exp(-((v / (0.1 * self.fast)) ** 2)),
            Quantity.OFFSET: np.ones_like(v),
        }

    def start(self, effect: str, law: ActuatorLaw | None = None) -> Start:
        """The best sizes of an effect, by the code of its cause; "" for none. `law` is another kind of law."""
        law = law or self.law
        best: tuple[float, Start] | None = None
        for delay in self._delays(effect):
            found = [self._solved(x) for x in self._motors(effect, law.changed(delay=delay))]
            residuals = np.array([x[0] for x in found])
            pick = np.argmin(residuals, axis=0)
            each = np.arange(law.n)
            score = float(np.sum(np.log(np.maximum(residuals[pick, each], _TINY))))
            if best is None or score < best[0]:
                drives = {q: np.array([found[k][1][q][i] for i, k in enumerate(pick)]) for q in self.columns}
                names = found[0][2].keys()
                fields = {n: np.array([found[k][2][n][i] for i, k in enumerate(pick)]) for n in names}
                kept = {q: x for q, x in drives.items() if self.free[q].any()}
                best = score, Start(score, kept, fields | {"delay": delay})
        assert best is not None
        return best[1]

    def _delays(self, effect: str) -> Iterator[Array]:
        """Delays (n,) to be tried."""
        yield self.law.delay
        if self.late or effect == "delay":
            longest = max(2.0 * float(self.law.delay.max()), _LONGEST)
            for delay in np.linspace(0.0, longest, _DELAYS):
                yield np.full(self.law.n, delay)

    def _motors(self, effect: str, law: ActuatorLaw) -> Iterator[_Motor]:
        """Torques of the law with every size of an effect that is tried."""
        error, slip, fed = self._inputs(law)
        plain = law.gain * (law.kp * error + law.kd * slip + fed)
        if effect == "backlash":
            for share in _WIDTHS:
                width = share * np.median(np.abs(error), axis=0) * 2.0
                dead = np.sign(error) * np.maximum(np.abs(error) - width / 2, 0.0)
                yield _Motor(law.gain * (law.kp * dead + law.kd * slip + fed), {"backlash": width})
        elif effect == "load_friction":
            yield _Motor(plain, {}, np.abs(plain) * self.sign, "load_friction")
        elif effect == "saturation":
            for share in _LIMITS:
                limit = share * np.abs(plain).max(axis=0)
                yield _Motor(np.clip(plain, -limit, limit), {"torque_limit": limit})
        elif effect == "motor_line":
            for share in _LIMITS:
                for line in _LINES:
                    stall, fastest = share * np.abs(plain).max(axis=0), line * np.abs(self.v).max(axis=0)
                    low, high = -stall * (1 + self.v / fastest), stall * (1 - self.v / fastest)
                    yield _Motor(np.clip(plain, low, high), {"stall_torque": stall, "no_load_velocity": fastest})
        elif effect == "stribeck":
            yield _Motor(plain, {}, self.columns[Quantity.STRIBECK], "")
        elif effect == "encoder_offset":
            yield _Motor(plain, {}, -law.gain * law.kp * np.ones_like(plain), "bias", signed=True)
        elif effect == "gain":
            yield _Motor(plain, {}, -law.gain * error, "kp", signed=True)
        else:
            yield _Motor(plain, {})

    def _inputs(self, law: ActuatorLaw) -> tuple[Array, Array, Array]:
        """Position error, velocity error and torque that is fed forward, in the rows of the balance."""
        parts = []
        for log, rows in zip(self.logs, self.rows, strict=True):
            behind = law.delayed == "torque"
            signals: tuple[Array, ...] = delayed_commands(log, law, np.zeros(law.n) if behind else law.delay)
            if behind:
                t = np.arange(len(log)) / log.rate
                signals = tuple(shifted(t, x, -law.delay) for x in signals)
            parts.append([x[rows] for x in signals])
        error, slip, fed = (np.concatenate([p[k] for p in parts]) for k in range(3))
        return error, slip, fed

    def _solved(self, motor: _Motor) -> tuple[Array, dict[Quantity, Array], dict[str, Array]]:
        """Residual (n,) of every joint, the drive terms and the sizes by least squares."""
        n = self.law.n
        residual, drives = np.empty(n), {q: np.zeros(n) for q in self.columns}
        sizes = {name: np.array(x) for name, x in motor.sizes.items()}
        if motor.column_is:
            sizes[motor.column_is] = np.zeros(n)
        for i in range(n):
            target = motor.torque[:, i] - self.rest[:, i]
            quantities = [q for q in self.columns if self.free[q][i]]
            columns = [self.columns[q][:, i] for q in quantities]
            signed = [q is Quantity.OFFSET for q in quantities]
            if motor.column is not None:
                columns.append(motor.column[:, i])
                signed.append(motor.signed)
            found, residual[i] = _least_squares(columns, signed, target)
            for q, x in zip(quantities, found, strict=False):
                drives[q][i] = x
            if motor.column_is:
                sizes[motor.column_is][i] = found[-1]
        if motor.column_is == "kp":
            sizes["kp"] = np.maximum(self.law.kp + sizes["kp"], 0.0)
        return residual, drives, sizes


def _least_squares(columns: Sequence[Array], signed: Sequence[bool], target: Array) -> tuple[Array, float]:
    """Values, of which only the signed ones may be negative, and the root mean square residual."""
    if not columns:
        return np.zeros(0), float(np.sqrt(np.mean(target**2)))
    A = np.column_stack([*columns, *(-x for x, both in zip(columns, signed, strict=True) if both)])
    size = np.linalg.norm(A, axis=0)
    size[size == 0] = 1.0
    triangle = np.asarray(np.linalg.qr(np.column_stack([A / size, target]), mode="r"))
    found, left = scipy.optimize.nnls(triangle[:, :-1], triangle[:, -1])
    values = found / size
    values[: len(columns)][list(signed)] -= values[len(columns) :]
    return values[: len(columns)], float(left / np.sqrt(len(target)))
