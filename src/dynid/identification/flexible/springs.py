"""Deflections of springs that follow from the motion of the motors alone.

With theta measured, q = theta - x and the deflection x, the equation of the links is

    M(q) x'' + d x' + k x = Y(q, q', theta'') beta,

a damped oscillator at the frequency of the link behind the held motor, driven by the load of the motion. The load
depends on x through friction of the link, and weakly through q: it is solved again with the deflections found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.dynamics.kernels.deflection import spring_responses
from dynid.errors import DataError
from dynid.identification.flexible.motion import TwoSided
from dynid.identification.flexible.sides import FlexibleModel
from dynid.robot.model import Robot
from dynid.signals.settings import Motion

__all__ = ["SpringMotion", "spring_motion"]

Array = NDArray[np.float64]

# Passes over the dependence on the deflection, until velocities change by less than this share.
_PASSES, _CHANGE = 8, 1e-3
# Newmark's method is of fourth order with 1/12, and stable up to (frequency * step)^2 = 6; 1/4 is always stable.
_ACCURATE, _STABLE, _LARGEST_STEP = 1.0 / 12.0, 0.25, 3.0


@dataclass(frozen=True, eq=False)
class SpringMotion:
    """Deflections (N, spring) with velocities and accelerations, of the flexible joints in `at`.

    `inverse` (N, spring, spring), `mass` (N, joint, spring) and `resistance` (N, spring), the damping of springs and
    link friction together, serve to compute responses to other loads.
    """

    at: NDArray[np.intp]
    x: Array
    v: Array
    a: Array
    inverse: Array
    mass: Array
    stiffness: Array
    damping: Array
    resistance: Array
    newmark: float
    step: float

    def bent(self, motors: Motion) -> TwoSided:
        """The run with the links where the springs put them."""
        moved = {}
        for signal, change in (("q", self.x), ("v", self.v), ("a", self.a)):
            values = getattr(motors, signal).copy()
            values[:, self.at] -= change
            moved[signal] = values
        return TwoSided(motors, replace(motors, **moved))

    def responses(self, load: Array) -> tuple[Array, Array, Array]:
        """Deflections (N, spring, c) under loads (N, spring, c), with velocities and accelerations."""
        x, v, a = (np.empty_like(load) for _ in range(3))
        S, given = np.ascontiguousarray(self.inverse), np.ascontiguousarray(load)
        spring_responses(S, given, self.stiffness, self.resistance, self.newmark, self.step, x, v, a)
        return x, v, a

    def torques(self, load: Array, direct: Array) -> Array:
        """Torques (N, joint, c) under loads (N, spring, c) on the springs, whose causes give `direct` to all joints."""
        x, v, a = self.responses(load)
        out = direct.copy()
        rigid = np.setdiff1d(np.arange(direct.shape[1]), self.at)
        out[:, rigid] -= np.einsum("nis,nsc->nic", self.mass[:, rigid], a)
        out[:, self.at] = self.stiffness[:, None] * x + self.damping[:, None] * v
        return out


def spring_motion(
    model: FlexibleModel, beta: Array, stiffness: Array, damping: Array, motors: Motion, bodies: Robot | None = None
) -> SpringMotion:
    """Deflections of all flexible joints of finite stiffness (flexible joint,) under the motion of the motors.

    The mass matrix is that of `bodies`, by default that of the base parameters, which need not be physically
    consistent.

    Raises
    ------
    DataError
        If the mass matrix of the links is not positive definite.
    """
    seen = np.isfinite(stiffness)
    at, k, d = model.flexible[seen], stiffness[seen], np.maximum(damping[seen], 0.0)
    fitted = model.links.with_parameters(model.base.standard(beta))
    links = fitted if bodies is None else bodies
    h, last = 1.0 / motors.rate, np.inf
    zero = np.zeros((len(motors.t), len(at)))
    found = SpringMotion(at, zero, zero, zero, zero[:, :, None], zero, k, d, zero, _STABLE, h)
    for _ in range(_PASSES if len(at) else 0):
        q, w = motors.q.copy(), motors.v.copy()
        q[:, at] -= found.x
        w[:, at] -= found.v
        mass = mass_matrix(links, q)[:, :, at]
        newmark = _newmark(mass[:, at][:: max(1, len(q) // 200)], k, h)
        # Friction of the links is linearised at the motion of the last pass: it may be much larger than the damping.
        friction = model.link_friction_slopes(beta, w)[:, seen]
        resistance = friction + d
        inner = mass[:, at] + np.eye(len(at)) * (0.5 * h * resistance + newmark * h * h * k)[:, :, None]
        inverse = np.asarray(np.linalg.inv(inner), dtype=float)
        moving = replace(found, inverse=inverse, mass=mass, resistance=resistance, newmark=newmark)
        load = inverse_dynamics(fitted, q, w, motors.a)[:, at] + friction * found.v
        x, v, a = (y[:, :, 0] for y in moving.responses(load[:, :, None]))
        change = float(np.linalg.norm(v - found.v))
        if not change < last:  # springs so soft that the loads depend on them strongly
            break
        found, last = replace(moving, x=x, v=v, a=a), change
        if change < _CHANGE * np.linalg.norm(v):
            break
    return found


def _newmark(mass: Array, k: Array, h: float) -> float:
    """The accurate parameter of Newmark's method if it is stable for mass matrices (N, spring, spring)."""
    values, turns = np.linalg.eigh(mass)
    if values.min() <= 0:
        raise DataError("the mass matrix of the links is not positive definite")
    scaled = np.sqrt(k)[:, None] * turns / np.sqrt(values)[:, None, :]
    fastest = float(np.linalg.norm(scaled, ord=2, axis=(1, 2)).max())
    return _ACCURATE if (fastest * h) ** 2 < _LARGEST_STEP else _STABLE
