"""All dynamic functions from base parameters alone: no standard parameter is known, and none is needed.

The standard vector that has beta on the representatives and zero elsewhere gives the torques of every vector
with these base values, for every motion. Mass matrix, Coriolis and gravity torque are what the torque is made
of (its slope in the acceleration, its part quadratic in the speed, what is left at rest), and the Coriolis
matrix of the Christoffel symbols follows from the mass matrix, so that vector serves for all of them. It is no
robot: masses may be zero or negative there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics import functions
from dynid.dynamics.batch import as_batch
from dynid.errors import DataError, DynidError
from dynid.parameters.base import BaseParameters, random_states
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["BaseModel"]

Array = NDArray[np.float64]
Part = Literal["inverse_dynamics", "gravity_torque", "coriolis_torque", "mass_matrix", "coriolis_matrix"]
_TORQUES: dict[str, Callable[..., Array]] = {
    "inverse_dynamics": functions.inverse_dynamics,
    "gravity_torque": functions.gravity_torque,
    "coriolis_torque": functions.coriolis_torque,
}
_MATRICES: dict[str, Callable[..., Array]] = {
    "mass_matrix": functions.mass_matrix,
    "coriolis_matrix": functions.coriolis_matrix,
}

# A vector without base values leaves rounding, about 1e-13 of the terms that cancel; a visible one leaves far more.
_VISIBLE = 1e-9
_FRICTION = range(TermKind.VISCOUS, TermKind.OFFSET)


@dataclass(frozen=True, eq=False)
class BaseModel:
    """A robot known by its base parameters beta (b,), with their covariance (b, b) where it is known.

    Torques have the rows `channels`: those that the base parameters determine. `notes` says which parts of the
    torque show only together, as the offset of a vertical slide and the weight on it do.
    """

    base: BaseParameters
    beta: Array
    covariance: Array | None = None

    def __post_init__(self) -> None:
        b = self.base.count
        object.__setattr__(self, "beta", checked(self.beta, (b,), "base parameters", DataError))
        if self.covariance is not None:
            covariance = checked(self.covariance, (b, b), "covariance of the base parameters", DataError)
            object.__setattr__(self, "covariance", covariance)

    @property
    def robot(self) -> Robot:
        """The robot whose geometry and drive terms these are; its own parameter values play no part."""
        return self.base.robot

    @cached_property
    def parameters(self) -> Array:
        """The standard vector (p,) that stands for all with these base values; not a physically possible one."""
        return self.base.join(self.beta)

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Torque rows: the channels of the base parameters and all others that these determine too."""
        hidden = self._hidden["torque"]
        return tuple(c for c in self.robot.channels if c in self.base.channels or c not in hidden)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What shows only together with something else, in words."""
        out = []
        for part in ("gravity", "coriolis", "friction"):
            mixed = [c for c in self.channels if c in self._hidden[part] and c not in self._hidden["torque"]]
            if mixed:
                out.append(
                    f"the {part} torque of {', '.join(mixed)} is known only together with other terms of the drive, "
                    "so part of these counts there"
                )
        return tuple(out)

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Torque (N, channel) for the motion, drives included."""
        self._need("torque", self.channels)
        return self._rows(functions.inverse_dynamics(self.robot, q, v, a, self.parameters))

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix (N, nv, nv), rotor inertias included."""
        self._need("torque", self._moving)
        return functions.mass_matrix(self.robot, q, self.parameters)

    def gravity_torque(self, q: ArrayLike) -> Array:
        """Torque (N, channel) that holds the robot still against gravity, without drives."""
        self._need("gravity", [c for c in self.channels if c in self._hidden["torque"]])
        return self._rows(functions.gravity_torque(self.robot, q, self.parameters))

    def coriolis_torque(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Centrifugal and Coriolis torque (N, channel)."""
        self._need("torque", self.channels)
        return self._rows(functions.coriolis_torque(self.robot, q, v, self.parameters))

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """C (N, nv, nv) of the Christoffel symbols: C v is the Coriolis torque and dM/dt - 2 C is skew."""
        self._need("torque", self._moving)
        return functions.coriolis_matrix(self.robot, q, v, self.parameters)

    def friction_torque(self, v: ArrayLike) -> Array:
        """Viscous and Coulomb torque (N, channel), of joints and motors."""
        (v,), _, single = as_batch(self.robot, v=v)
        torque = self._drives(np.zeros((len(v), self.robot.nq)), v, np.where(self._friction, self.parameters, 0.0))
        return torque[0] if single else torque

    def drive_torque(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Friction, offsets, springs and the user's own terms together (N, channel), rotor inertias left out.

        With it, inverse dynamics = M a + Coriolis torque + gravity torque + drive torque.
        """
        (q, v), _, single = as_batch(self.robot, q=q, v=v)
        torque = self._drives(q, v, np.where(self._inertial, 0.0, self.parameters))
        return torque[0] if single else torque

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Acceleration (N, nv) under the torques tau (N, nv), drives included.

        Raises where the mass matrix is not positive definite, as that of base parameters of no possible robot may be.
        """
        self._need("torque", self._moving)
        try:
            return functions.forward_dynamics(self.robot, q, v, tau, self.parameters)
        except DataError:
            raise
        except DynidError as error:
            raise DynidError(
                f"{error}; no robot has these base parameters, so take those of the feasible estimator or of "
                "nearest_feasible"
            ) from None

    def std(self, part: Part, *motion: ArrayLike) -> Array:
        """Standard deviation of a part, shaped as the part itself: sigma("mass_matrix", q).

        Every part is linear in beta, so this is exact for the covariance given.
        """
        known = _TORQUES | _MATRICES
        if part not in known:
            raise DataError(f"no uncertainty is known of '{part}': ask for {', '.join(known)}")
        if self.covariance is None:
            raise DataError("these base parameters came without a covariance, so no uncertainty is known")
        getattr(self, part)(*motion)  # refuses what the base parameters do not determine
        columns = [known[part](self.robot, *motion, parameters=pi) for pi in self.base.join(np.eye(self.base.count))]
        slope = np.stack([self._rows(c) for c in columns] if part in _TORQUES else columns, axis=-1)
        return np.asarray(np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", slope, self.covariance, slope), 0.0)))

    def with_gravity(self, gravity: ArrayLike) -> BaseModel:
        """The same machine under another gravity vector (m/s2, base frame), where the base parameters determine that.

        They do not where the new gravity loads an axis that the old one did not, such as a first joint laid on its
        side: then this raises.
        """
        moved = replace(self, base=replace(self.base, robot=self.robot.with_gravity(gravity)))
        lost = [c for c in self.channels if c in moved._hidden["torque"] and c not in self._hidden["torque"]]
        if lost:
            raise DataError(
                f"under this gravity the torque of {', '.join(lost)} depends on parameters that did not show before: "
                "identify the robot as it is mounted now"
            )
        return moved

    # -- what the base parameters determine ------------------------------------------------------

    @cached_property
    def _moving(self) -> Sequence[str]:
        """Channels whose motion is free: an instrumented base stands still."""
        return self.robot.channels if self.robot.base == "floating" else self.robot.coordinates

    @cached_property
    def _inertial(self) -> NDArray[np.bool_]:
        return np.array([p.inertial for p in self.robot.layout], dtype=bool)

    @cached_property
    def _friction(self) -> NDArray[np.bool_]:
        kinds = {t.name: t.kind for t in self.robot.drives}
        return np.array([kinds.get(n) in _FRICTION for n in self.robot.parameter_names], dtype=bool)

    @cached_property
    def _hidden(self) -> dict[str, frozenset[str]]:
        """For each part the channels where a standard vector without base values still shows."""
        robot, base = self.robot, self.base
        blind = base.join(np.zeros((len(base.dependent), base.count)), np.eye(len(base.dependent))).T
        q, v, a = random_states(robot, 16, seed=1)
        still = functions.regressor(robot, q, 0 * v, 0 * a)
        coasting = functions.regressor(robot, q, v, 0 * a)
        parts = {
            "torque": functions.regressor(robot, q, v, a),
            "gravity": still * self._inertial,
            "coriolis": (coasting - still) * self._inertial,
            "friction": coasting * self._friction,
        }
        return {part: self._visible(rows, blind) for part, rows in parts.items()}

    def _visible(self, rows: Array, vectors: Array) -> frozenset[str]:
        """Channels on which some of the vectors (p, k) show through the regressor rows (N, channel, p)."""
        left = np.abs(rows @ vectors).max(axis=0, initial=0.0)
        terms = (np.abs(rows) @ np.abs(vectors)).max(axis=(0, 1), initial=0.0)
        # Of a column without effect all is rounding: a tenth of the largest column is its scale.
        shows = np.any(left > _VISIBLE * np.maximum(terms, 0.1 * np.abs(rows).max(initial=0.0)), axis=-1)
        return frozenset(c for c, seen in zip(self.robot.channels, shows, strict=True) if seen)

    def _need(self, part: str, channels: Sequence[str]) -> None:
        lost = [c for c in channels if c in self._hidden[part]]
        if lost:
            raise DataError(
                f"the base parameters of {', '.join(self.base.channels)} do not determine the {part} of "
                f"{', '.join(lost)}: parameters show there that they do not hold"
            )

    def _rows(self, torque: Array) -> Array:
        if self.channels == self.robot.channels:
            return torque
        return torque[..., [self.robot.channels.index(c) for c in self.channels]]

    def _drives(self, q: Array, v: Array, parameters: Array) -> Array:
        self._need("torque", self.channels)
        if self.robot.base == "floating":
            q = q.copy()
            q[:, 3:7] = (0.0, 0.0, 0.0, 1.0)  # no drive looks at the pose of the base
        return self._rows(functions.inverse_dynamics(self.robot, q, v, np.zeros_like(v), parameters))

    def __repr__(self) -> str:
        return f"BaseModel('{self.robot.name}', {self.base.count} base parameters)"
