"""Deflections of springs that follow from the motion of the motors alone.

With theta measured, q = theta - x and the deflection x, the equation of the links is

    M(q) x'' + d x' + k x = Y(q, q', theta'') beta,

a damped oscillator at the frequency of the link behind the held motor, driven by the load of the motion. It depends on
x weakly through q and is solved again with the deflections found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.dynamics.kernels.deflection import spring_responses
from dynid.errors import DataError
from dynid.identification.flexible.motion import TwoSided
from dynid.identification.flexible.sides import FlexibleModel
from dynid.robot.model import Robot
from dynid.signals.settings import Motion

__all__ = ["SpringMotion", "spring_motion"]

Array = NDArray[np.float64]

# Passes over the weak dependence on the deflection, until they change by less than this share.
_PASSES, _CHANGE = 6, 1e-4


@dataclass(frozen=True, eq=False)
class SpringMotion:
    """Deflections (N, spring) with velocities and accelerations, of the flexible joints in `at`.

    `inverse` (N, spring, spring) and `mass` (N, joint, spring) serve to compute responses to other loads.
    """

    at: NDArray[np.intp]
    x: Array
    v: Array
    a: Array
    inverse: Array
    mass: Array
    stiffness: Array
    damping: Array
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
        return _responses(self.inverse, load, self.stiffness, self.damping, self.step)


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
    links = model.links.with_parameters(model.base.standard(beta)) if bodies is None else bodies
    zero = np.zeros((len(motors.t), len(at)))
    x, v, a = zero, zero, zero
    h, last = 1.0 / motors.rate, np.inf
    for _ in range(_PASSES):
        q, w = motors.q.copy(), motors.v.copy()
        q[:, at] -= x
        w[:, at] -= v
        mass = mass_matrix(links, q)[:, :, at]
        inner: Array = mass[:, at] + np.diag(0.5 * h * d + 0.25 * h * h * k)
        if not len(at):
            inverse = inner
            break
        if np.linalg.eigvalsh(mass[:, at][:: max(1, len(q) // 200)]).min() <= 0:
            raise DataError("the mass matrix of the links is not positive definite")
        inverse = np.asarray(np.linalg.inv(inner), dtype=float)
        load = np.einsum("nib,b->ni", model.link_rows(q, w, motors.a)[:, at], beta)
        found = [y[:, :, 0] for y in _responses(inverse, load[:, :, None], k, d, h)]
        change = float(np.linalg.norm(found[1] - v))
        if not change < last:  # springs so soft that the loads depend on them strongly
            break
        x, v, a = found
        last = change
        if change < _CHANGE * np.linalg.norm(v):
            break
    return SpringMotion(at, x, v, a, inverse, mass, k, d, h)


def _responses(inverse: Array, load: Array, k: Array, d: Array, h: float) -> tuple[Array, Array, Array]:
    x, v, a = (np.empty_like(load) for _ in range(3))
    spring_responses(np.ascontiguousarray(inverse), np.ascontiguousarray(load), k, d, h, x, v, a)
    return x, v, a
