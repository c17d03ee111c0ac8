"""Torque models: predicted torques along a motion, of a whole robot or as a correction to another model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import gravity_torque, inverse_dynamics
from dynid.errors import InvalidShape, InvalidType, InvalidValue, SimulationFailed, UnknownName
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.simulation.unmodeled import link_side

__all__ = [
    "Correction",
    "ElasticModel",
    "HeldModel",
    "RigidModel",
    "TorqueModel",
    "bounded",
    "held",
    "predicted",
    "rigid",
    "through",
]

Array = NDArray[np.float64]


@runtime_checkable
class TorqueModel(Protocol):
    """Interface of an object that predicts joint torques along a motion."""

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (K, n) in N m or N for positions, velocities and accelerations, each (K, n)."""


@dataclass(frozen=True, eq=False)
class RigidModel:
    """The inverse dynamics of a robot as a torque model.

    Attributes
    ----------
    robot : Robot
    parts : {"full", "gravity"}
        Inverse dynamics with all drive terms, or gravity torques only.
    """

    robot: Robot
    parts: Literal["full", "gravity"] = "full"

    def __post_init__(self) -> None:
        if not isinstance(self.robot, Robot):
            raise SimulationFailed(f"a rigid torque model is made of a Robot, got {self.robot!r:.60}", "model")
        if self.parts not in ("full", "gravity"):
            raise UnknownName(
                f"a rigid torque model gives 'full' or 'gravity' torques, not {self.parts!r:.60}", "parts"
            )

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.robot.n

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (K, n) in N m or N for positions, velocities and accelerations, each (K, n)."""
        tau = gravity_torque(self.robot, q) if self.parts == "gravity" else inverse_dynamics(self.robot, q, v, a)
        return tau[..., tau.shape[-1] - self.robot.n :]


def rigid(robot: Robot, *, parts: Literal["full", "gravity"] = "full") -> RigidModel:
    """The inverse dynamics of a robot as a torque model.

    Parameters
    ----------
    robot : Robot
    parts : {"full", "gravity"}
        Inverse dynamics with all drive terms, or gravity torques only.

    Returns
    -------
    RigidModel
    """
    return RigidModel(robot, parts)


@dataclass(frozen=True, eq=False)
class HeldModel:
    """A torque model that is evaluated in every `ticks`-th control period, its torques held in between.

    Attributes
    ----------
    model : TorqueModel
    ticks : int
        Control periods per evaluation.
    """

    model: TorqueModel
    ticks: int

    def __post_init__(self) -> None:
        if not isinstance(self.model, TorqueModel) or isinstance(self.model, type):
            raise InvalidType(
                f"a model to hold needs a method torques(q, v, a), which {self.model!r:.60} does not have", "model"
            )
        if isinstance(self.ticks, bool) or not isinstance(self.ticks, int | np.integer) or self.ticks < 1:
            raise InvalidValue(
                f"a model is held for a whole number of control periods, at least 1, not {self.ticks!r:.60}", "ticks"
            )

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (K, n) in N m or N, held, for the motion (K, n) of consecutive control periods."""
        some = slice(None, None, self.ticks)
        return np.repeat(predicted(self.model, q[some], v[some], a[some]), self.ticks, axis=0)[: len(q)]


def held(model: TorqueModel, ticks: int) -> HeldModel:
    """A slow torque model for a fast controller: evaluated in every `ticks`-th control period and held in between.

    For feed-forward and overlays, which follow the reference from one control period to the next.

    Parameters
    ----------
    model : TorqueModel
        The model, such as a residual that takes longer than one control period.
    ticks : int
        Control periods per evaluation.

    Returns
    -------
    HeldModel

    Raises
    ------
    DataError
        If `model` is not a torque model or `ticks` is not a positive whole number.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> model = dynid.controllers.rigid(dynid.load_robot("twolink"))
    >>> slow = dynid.controllers.held(model, 10)
    >>> q, v, a = np.random.default_rng(0).normal(size=(3, 20, 2))
    >>> len(np.unique(slow.torques(q, v, a), axis=0))
    2
    """
    return HeldModel(model, ticks)


@dataclass(frozen=True, eq=False)
class ElasticModel:
    """Torques of the motors that move the links of flexible joints along a motion, as a torque model.

    The motors are ahead of the links by the deflection x = (s - d/k s') / k under the torque s of the links, to first
    order in d/k. Its derivatives, and with them derivatives of the motion up to the fourth, are numerical: the motion
    must be smooth, and its rows one period of the controller apart.

    Attributes
    ----------
    robot : Robot
        The robot; rotor inertia, friction and offsets are those of the motors.
    rate : float
        Rate (Hz) of the rows of the motion.
    stiffness, damping : array of shape (n,)
        Stiffness, infinite for a rigid joint, and damping of the joints.
    kp, kd : array of shape (n,)
        Gains of a controller that compares the motors with the motion of the links: its torques for the deflection are
        part of the torques of this model.
    parts : {"full", "gravity"}
        All torques, or only those that hold the robot at rest.
    """

    robot: Robot
    rate: float
    stiffness: Array
    damping: Array
    kp: Array
    kd: Array
    parts: Literal["full", "gravity"] = "full"

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.robot.n

    def motors(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations (K, n) of the motors that move the links as given."""
        x = self._deflection(q, v, a)[0]
        if self.parts == "gravity":
            return q + x, v, a
        x_v = derivative(x, self.rate)
        return q + x, v + x_v, a + derivative(x_v, self.rate)

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (K, n) in N m or N for positions, velocities and accelerations of the links, each (K, n)."""
        s = self._deflection(q, v, a)[1]
        theta, w, b = self.motors(q, v, a)
        ahead = self.kp * (theta - q) + self.kd * (w - v)
        if self.parts == "gravity":
            return s + ahead
        links = link_side(self.robot)
        return s + inverse_dynamics(self.robot, theta, w, b) - inverse_dynamics(links, theta, w, b) + ahead

    def _deflection(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Deflections and torques of the links (K, n)."""
        links = link_side(self.robot)
        if self.parts == "gravity":
            s = gravity_torque(links, q)
            return s / self.stiffness, s
        s = inverse_dynamics(links, q, v, a)
        return (s - self.damping / self.stiffness * derivative(s, self.rate)) / self.stiffness, s


@dataclass(frozen=True, eq=False)
class Correction:
    """Torques that are added to those of a controller, limited to `bound` (n,) in N m or N."""

    model: TorqueModel
    bound: Array | None = None

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (K, n) along the motion, clipped to the bound."""
        tau = predicted(self.model, q, v, a)
        return tau if self.bound is None else np.clip(tau, -self.bound, self.bound)


def bounded(model: TorqueModel, bound: ArrayLike | None, n: int) -> Correction:
    """A correction for n joints, checked."""
    if not isinstance(model, TorqueModel):
        raise InvalidType(f"a correction needs a method torques(q, v, a), which {model!r:.60} does not have", "model")
    if bound is None:
        return Correction(model)
    try:
        limit = np.asarray(bound, dtype=float)
    except (TypeError, ValueError):
        limit = np.array(np.nan)
    if limit.shape not in ((), (n,)) or not np.all(limit >= 0):
        raise InvalidValue(f"the bound of a correction is one torque, or one per joint ({n}), not negative", "bound")
    return Correction(model, np.broadcast_to(limit, (n,)).copy())


def predicted(model: TorqueModel, q: Array, v: Array, a: Array) -> Array:
    """Torques of a model along a motion, refused unless they are finite and of shape (K, n)."""
    try:
        tau = np.asarray(model.torques(q, v, a), dtype=float)
    except (TypeError, ValueError) as error:
        raise SimulationFailed(f"the torque model {type(model).__name__} fails: {error}", "model") from None
    if tau.shape != np.shape(q) or not np.all(np.isfinite(tau)):
        raise InvalidShape(
            f"the torque model {type(model).__name__} must return finite torques of shape {np.shape(q)}, got "
            f"{tau.shape}",
            "model",
        )
    return tau


def through(model: Any, change: Callable[[Robot], Robot]) -> Any:
    """The model with `change` applied to the robot of a rigid or elastic model, also where it is held or corrects."""
    if isinstance(model, RigidModel | ElasticModel):
        return replace(model, robot=change(model.robot))
    if isinstance(model, Correction | HeldModel):
        return replace(model, model=through(model.model, change))
    return model
