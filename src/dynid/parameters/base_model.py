"""All dynamic functions from base parameters alone, without values of the standard parameters.

The standard parameters that are beta for the representatives and zero elsewhere give the same torques as all others
with these base parameters, for every motion. Mass matrix, Coriolis and gravity torque are parts of the torque (its
derivative by the acceleration, its part quadratic in the velocity, its value at rest), and the Coriolis matrix of the
Christoffel symbols follows from the mass matrix. So these standard parameters serve for all of them. They are not
physically consistent: masses may be zero or negative.

    pi = (beta, 0),    Y(q, v, a) pi = Y_b(q, v, a) beta = M a + C v + g + drives

so that M e_i = tau(q, 0, e_i) - tau(q, 0, 0), and C_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2 contains M only.

Sources: Gautier and Khalil (1990), for models from base parameters; Khalil and Dombre, Modeling, Identification and
Control of Robots (2002), for M, C and g as parts of the inverse dynamics. That C follows as well is our own remark.
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
from dynid.errors import DataError, DynidError, MissingData, NotIdentifiable, UnknownName
from dynid.parameters.base import BaseParameters, random_states
from dynid.robot.drives import drive_kinds
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

# Parameters with base values of zero leave rounding, about 1e-13 of the terms that cancel; others leave far more.
_VISIBLE = 1e-9
_FRICTION = drive_kinds("viscous", "coulomb", "stribeck")


@dataclass(frozen=True, eq=False)
class BaseModel:
    """Dynamic functions of a robot whose base parameters are known.

    Parameters
    ----------
    base : BaseParameters
        The base parameters.
    beta : array_like, shape (b,)
        Their values.
    covariance : array_like, shape (b, b), optional
        Their covariance, for `std`.

    Raises
    ------
    DataError
        If shapes are wrong or values are not finite.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> base = dynid.base_parameters(dynid.load_robot("twolink"))
    >>> model = dynid.parameters.BaseModel(base, base.values())
    >>> model.mass_matrix(np.zeros((1, 2))).shape
    (1, 2, 2)
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
        """The robot with its geometry and drive terms; its parameter values are not used."""
        return self.base.robot

    @cached_property
    def parameters(self) -> Array:
        """Standard parameters (p,) with these base parameters, zero where dependent; not physically consistent."""
        return self.base.join(self.beta)

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Channels of the torques: those of the base parameters and all others that these determine."""
        hidden = self._hidden["torque"]
        return tuple(c for c in self.robot.channels if c in self.base.channels or c not in hidden)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Remarks on parts of the torque that are identifiable only together, such as a drive offset and a weight."""
        out = []
        for part in ("gravity", "coriolis", "friction"):
            mixed = [c for c in self.channels if c in self._hidden[part] and c not in self._hidden["torque"]]
            if mixed:
                out.append(
                    f"the {part} torque of {', '.join(mixed)} is identifiable only together with other drive terms "
                    "and contains a part of them"
                )
        return tuple(out)

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Torque (N, channel) in N m or N for q (N, nq), v and a (N, nv), with drives."""
        self._need("torque", self.channels)
        return self._rows(functions.inverse_dynamics(self.robot, q, v, a, self.parameters))

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix (N, nv, nv) at q (N, nq), with rotor inertias."""
        self._need("torque", self._moving)
        return functions.mass_matrix(self.robot, q, self.parameters)

    def gravity_torque(self, q: ArrayLike) -> Array:
        """Torque (N, channel) that balances gravity at q (N, nq), without drives."""
        self._need("gravity", [c for c in self.channels if c in self._hidden["torque"]])
        return self._rows(functions.gravity_torque(self.robot, q, self.parameters))

    def coriolis_torque(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Centrifugal and Coriolis torque (N, channel) at q (N, nq), v (N, nv)."""
        self._need("torque", self.channels)
        return self._rows(functions.coriolis_torque(self.robot, q, v, self.parameters))

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """C (N, nv, nv) of the Christoffel symbols: C v is the Coriolis torque and dM/dt - 2 C is skew."""
        self._need("torque", self._moving)
        return functions.coriolis_matrix(self.robot, q, v, self.parameters)

    def friction_torque(self, v: ArrayLike) -> Array:
        """Viscous, Coulomb and Stribeck friction (N, channel) of joints and motors at v (N, nv)."""
        (v,), _, single = as_batch(self.robot, v=v)
        torque = self._drives(np.zeros((len(v), self.robot.nq)), v, np.where(self._friction, self.parameters, 0.0))
        return torque[0] if single else torque

    def drive_torque(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Friction, offsets, springs and custom terms together (N, channel), without rotor inertias.

        With it, inverse dynamics = M a + Coriolis torque + gravity torque + drive torque.
        """
        (q, v), _, single = as_batch(self.robot, q=q, v=v)
        torque = self._drives(q, v, np.where(self._inertial, 0.0, self.parameters))
        return torque[0] if single else torque

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Acceleration (N, nv) for q (N, nq), v (N, nv) and torques tau (N, nv), with drives.

        Raises
        ------
        DynidError
            If the mass matrix is not positive definite, which happens only if the base parameters are not physically
            consistent.
        """
        self._need("torque", self._moving)
        try:
            return functions.forward_dynamics(self.robot, q, v, tau, self.parameters)
        except DataError:
            raise
        except DynidError as error:
            raise DynidError(
                f"{error}; these base parameters are not physically consistent, use method 'feasible' or "
                "nearest_feasible",
                code="infeasible",
            ) from None

    def std(self, part: Part, *motion: ArrayLike) -> Array:
        """Standard deviation of a dynamic function, exact since all of them are linear in beta.

        Parameters
        ----------
        part : str
            Name of the function: "inverse_dynamics", "gravity_torque", "coriolis_torque", "mass_matrix" or
            "coriolis_matrix".
        *motion : array_like
            Its arguments.

        Returns
        -------
        ndarray
            Of the shape of the function's result.

        Raises
        ------
        DataError
            If the covariance is not known, or if the base parameters do not determine this part.
        """
        known = _TORQUES | _MATRICES
        if part not in known:
            raise UnknownName(f"there is no standard deviation of '{part}': use {', '.join(known)}", "part")
        if self.covariance is None:
            raise MissingData("there is no standard deviation without the covariance of the base parameters")
        getattr(self, part)(*motion)  # refuses what the base parameters do not determine
        columns = [known[part](self.robot, *motion, parameters=pi) for pi in self.base.join(np.eye(self.base.count))]
        slope = np.stack([self._rows(c) for c in columns] if part in _TORQUES else columns, axis=-1)
        return np.asarray(np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", slope, self.covariance, slope), 0.0)))

    def with_gravity(self, gravity: ArrayLike) -> BaseModel:
        """The same robot under another gravity vector.

        Parameters
        ----------
        gravity : array_like, shape (3,)
            Gravity in m/s2, in the base frame.

        Returns
        -------
        BaseModel

        Raises
        ------
        DataError
            If the base parameters do not determine the torques there, because the new gravity loads an axis that the
            old one did not, such as a first joint that is no longer vertical.
        """
        moved = replace(self, base=replace(self.base, robot=self.robot.with_gravity(gravity)))
        lost = [c for c in self.channels if c in moved._hidden["torque"] and c not in self._hidden["torque"]]
        if lost:
            raise NotIdentifiable(
                f"under this gravity the torque of {', '.join(lost)} depends on parameters that were not identifiable: "
                "identify the robot as it is mounted now"
            )
        return moved

    # -- what the base parameters determine ------------------------------------------------------

    @cached_property
    def _moving(self) -> Sequence[str]:
        """Channels with a degree of freedom; an instrumented base has none."""
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
        """Channels on which each part of the torque is not determined by the base parameters."""
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
        """Channels on which some of the vectors (p, k) have an effect, by regressor rows (N, channel, p)."""
        left = np.abs(rows @ vectors).max(axis=0, initial=0.0)
        terms = (np.abs(rows) @ np.abs(vectors)).max(axis=(0, 1), initial=0.0)
        # A column without effect is rounding only; its scale is then a tenth of the largest column.
        shows = np.any(left > _VISIBLE * np.maximum(terms, 0.1 * np.abs(rows).max(initial=0.0)), axis=-1)
        return frozenset(c for c, seen in zip(self.robot.channels, shows, strict=True) if seen)

    def _need(self, part: str, channels: Sequence[str]) -> None:
        lost = [c for c in channels if c in self._hidden[part]]
        if lost:
            raise NotIdentifiable(
                f"the base parameters of {', '.join(self.base.channels)} do not determine the {part} of "
                f"{', '.join(lost)}, which depends on other parameters"
            )

    def _rows(self, torque: Array) -> Array:
        if self.channels == self.robot.channels:
            return torque
        return torque[..., [self.robot.channels.index(c) for c in self.channels]]

    def _drives(self, q: Array, v: Array, parameters: Array) -> Array:
        self._need("torque", self.channels)
        if self.robot.base == "floating":
            q = q.copy()
            q[:, 3:7] = (0.0, 0.0, 0.0, 1.0)  # drive terms do not depend on the pose of the base
        return self._rows(functions.inverse_dynamics(self.robot, q, v, np.zeros_like(v), parameters))

    def __repr__(self) -> str:
        return f"BaseModel('{self.robot.name}', {self.base.count} base parameters)"
