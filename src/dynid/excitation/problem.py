"""The design problem: criterion and limits of a motion, with exact derivatives.

Unknowns are the coefficients of a basis, in units of the limits. Positions and their derivatives are linear in them;
torques, powers and clearances are not. One reverse pass over the regressor kernel gives the gradient of any criterion,
and another those of all nonlinear limits that are close.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.assembly import assembly_where_closed
from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.dynamics.gradient import regressor_adjoint
from dynid.errors import NotApplicable
from dynid.excitation.amplitudes import KINDS, AmplitudeLimits
from dynid.excitation.basis import Basis
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits

__all__ = ["AnyClearance", "Clearance", "Limit", "MovingClearance", "Problem", "begins_at_posture"]

Array = NDArray[np.float64]


class Clearance(Protocol):
    """A further limit on postures: values (N, k), not negative where it is satisfied, 1 well inside."""

    label: str

    def values(self, q: Array) -> Array:
        """Values (N, k) at postures (N, n)."""
        ...

    def gradients(self, q: Array, which: NDArray[np.intp]) -> Array:
        """Derivative over the posture (N, n) of the value number `which` (N,) at each posture."""
        ...


class MovingClearance(Protocol):
    """A limit that depends on velocities and accelerations too; its attribute `moving` is true."""

    label: str
    moving: bool

    def values_in_motion(self, q: Array, v: Array, a: Array) -> Array:
        """Values (N, k) along a motion."""
        ...

    def gradients_in_motion(self, q: Array, v: Array, a: Array, which: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Derivatives (N, n) over q, v and a of the value number `which` (N,) at each sample."""
        ...


AnyClearance = Clearance | MovingClearance


def _moving(clearance: AnyClearance) -> TypeGuard[MovingClearance]:
    return getattr(clearance, "moving", False)


def begins_at_posture(basis: Basis) -> bool:
    """Whether the first coefficient of a family is its posture at the start."""
    at_start = basis.values(0.0)[0]
    return bool(abs(at_start[0] - 1) <= 1e-9 and np.abs(at_start[1:]).max(initial=0.0) <= 1e-9)


@dataclass(frozen=True, eq=False)
class Limit:
    """Slack (N, k) of one kind of limit: 1 in the middle, 0 on it, negative beyond; columns are joints or pairs."""

    kind: str
    slack: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """The design of coefficients (n, k) of a basis: criterion and limits on a grid of `samples` times.

    `clearance_room` is an additional margin of all clearances, in their own unit.
    """

    basis: Basis
    criterion: Criterion
    limits: MotionLimits
    samples: int
    clearances: tuple[AnyClearance, ...] = field(default=())
    start: Array | None = None
    clearance_room: float = 0.0
    amplitudes: AmplitudeLimits | None = None

    @cached_property
    def resting(self) -> Array:
        """Coefficients (n, k) of standing still at the start posture, or in the middle of the ranges."""
        there = np.linalg.lstsq(self.bases[0], np.ones(self.samples), rcond=None)[0]
        return np.outer(self.limits.center if self.start is None else self.start, there)

    @cached_property
    def times(self) -> Array:
        """The grid (N,), s."""
        steps = self.samples if self.basis.periodic else self.samples - 1
        return np.asarray(np.arange(self.samples) * (self.basis.duration / steps), dtype=float)

    @cached_property
    def bases(self) -> tuple[Array, Array, Array, Array]:
        """The functions and their first three derivatives on the grid, each (N, k)."""
        b = tuple(self.basis.values(self.times, order) for order in range(4))
        return b[0], b[1], b[2], b[3]

    @cached_property
    def unit(self) -> Array:
        """Coefficients (n, k) that would use a joint's whole range or velocity limit, whichever is less.

        With a start posture the first coefficient, which is the posture, is fixed: its unit is zero.
        """
        lim = self.limits
        reach = 0.5 * (lim.upper - lim.lower)[:, None] / np.abs(self.bases[0]).max(axis=0).clip(1e-300)
        velocity = lim.velocity[:, None] / np.abs(self.bases[1]).max(axis=0).clip(1e-300)
        out = np.minimum(reach, velocity)
        if self.start is not None:
            if not begins_at_posture(self.basis):
                raise NotApplicable(
                    "no coefficient of this family is its start posture; use fourier, a spline or waypoints", "family"
                )
            out[:, 0] = 0.0
        return np.asarray(out, dtype=float)

    def motion(self, X: Array) -> list[Array]:
        """q, v, a and jerk on the grid, each (N, n)."""
        return [b @ X.T for b in self.bases]

    def value(self, X: Array) -> float:
        """The criterion alone."""
        q, v, a, _ = self.motion(X)
        return self.criterion(self.criterion.base.regressor(q, v, a))[0]

    def gradient(self, X: Array) -> tuple[float, Array]:
        """The criterion and its gradient (n, k)."""
        base, robot = self.criterion.base, self.criterion.base.robot
        q, v, a, _ = self.motion(X)
        Y = regressor(robot, q, v, a)
        rows = [robot.channels.index(c) for c in base.channels]
        kept = list(base.kept)
        whole = rows == list(range(len(robot.channels)))
        value, slope = self.criterion(Y[:, :, kept] if whole else Y[:, rows][:, :, kept])
        if not np.isfinite(value):
            return value, np.zeros_like(X)
        G = np.zeros_like(Y)
        if whole:
            G[:, :, kept] = slope
        else:
            G[np.ix_(range(len(q)), rows, kept)] = slope
        gq, gv, ga = regressor_adjoint(robot, G, q, v, a)
        bq, bv, ba, _ = self.bases
        return value, gq.T @ bq + gv.T @ bv + ga.T @ ba

    def slacks(self, X: Array) -> list[Limit]:
        """Distance to every limit on the grid, as a share of it."""
        q, v, a, j = self.motion(X)
        lim = self.limits
        robot = self.criterion.base.robot
        if robot.loops and not np.all(assembly_where_closed(robot.with_base("fixed"), q, v, a)[1]):
            return [Limit("closed loops", np.full((len(q), 1), -1.0))]  # there are no torques
        out = [
            Limit("position", 1.0 - np.abs(q - lim.center) / (0.5 * (lim.upper - lim.lower))),
            Limit("velocity", 1.0 - np.abs(v) / lim.velocity),
        ]
        if np.any(np.isfinite(lim.acceleration)):
            out.append(Limit("acceleration", 1.0 - np.abs(a) / lim.acceleration))
        if np.any(np.isfinite(lim.jerk)):
            out.append(Limit("jerk", 1.0 - np.abs(j) / lim.jerk))
        if np.any(np.isfinite(lim.torque)) or np.any(np.isfinite(lim.power)):
            torque = inverse_dynamics(robot, q, v, a)[:, -robot.n :]
            out.append(Limit("torque", 1.0 - np.abs(torque) / lim.torque))
            out.append(Limit("power", 1.0 - np.abs(torque * v) / lim.power))
        for c in self.clearances:
            found = c.values_in_motion(q, v, a) if _moving(c) else cast("Clearance", c).values(q)
            out.append(Limit(c.label, found - self.clearance_room))
        if self.amplitudes is not None:
            out += [Limit(kind, slack.reshape(1, -1)) for kind, slack in self.amplitudes.slacks(X).items()]
        return out

    def worst(self, X: Array) -> float:
        """Smallest slack of all."""
        return min(float(limit.slack.min(initial=1.0)) for limit in self.slacks(X))

    def slack_gradients(self, X: Array, kind: str, sample: NDArray[np.intp], column: NDArray[np.intp]) -> Array:
        """Derivatives (m, n, k) of m slacks of one kind over the coefficients."""
        q, v, a, j = (b[sample] @ X.T for b in self.bases)
        bq, bv, ba, bj = (b[sample] for b in self.bases)
        lim, n, rows = self.limits, len(X), np.arange(len(sample))
        linear = {
            "position": (q - lim.center, bq, 0.5 * (lim.upper - lim.lower)),
            "velocity": (v, bv, lim.velocity),
            "acceleration": (a, ba, lim.acceleration),
            "jerk": (j, bj, lim.jerk),
        }
        if kind in linear:
            value, basis, size = linear[kind]
            out = np.zeros((len(sample), n, bq.shape[1]))
            out[rows, column] = -(np.sign(value[rows, column]) / size[column])[:, None] * basis
            return out
        if kind in ("torque", "power"):
            robot = self.criterion.base.robot
            G = np.zeros((len(sample), len(robot.channels), len(robot.layout)))
            G[rows, len(robot.channels) - n + column] = robot.parameters
            gq, gv, ga = regressor_adjoint(robot, G, q, v, a)
            torque = inverse_dynamics(robot, q, v, a)[rows, len(robot.channels) - n + column]
            if kind == "torque":
                factor = -np.sign(torque) / lim.torque[column]
            else:
                velocity = v[rows, column]
                factor = -np.sign(torque * velocity) / lim.power[column]
                gq, gv, ga = (velocity[:, None] * g for g in (gq, gv, ga))
                gv[rows, column] += torque
            gq, gv, ga = (factor[:, None] * g for g in (gq, gv, ga))
            return gq[:, :, None] * bq[:, None] + gv[:, :, None] * bv[:, None] + ga[:, :, None] * ba[:, None]
        if self.amplitudes is not None and kind in KINDS:
            return self.amplitudes.gradients(X, kind, column)
        clearance = next(c for c in self.clearances if c.label == kind)
        if _moving(clearance):
            gq, gv, ga = clearance.gradients_in_motion(q, v, a, column)
            return gq[:, :, None] * bq[:, None] + gv[:, :, None] * bv[:, None] + ga[:, :, None] * ba[:, None]
        return cast("Clearance", clearance).gradients(q, column)[:, :, None] * bq[:, None]
