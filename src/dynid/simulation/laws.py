"""Controllers: linear control laws per joint, with or without a model of the robot, and user functions.

Every linear law is one discrete state-space system per joint with four inputs: reference position, reference velocity,
measured position, measured velocity. Cascade, PID and transfer function differ only in their matrices.

    x <- A x + B u,    torque = C x + D u,    u = (q_ref, v_ref, q, v)

Source: Astrom and Wittenmark, Computer-Controlled Systems (1997), for sampled laws and their observer form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import for_kernel
from dynid.errors import (
    ConflictingArguments,
    InvalidShape,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingArgument,
    UnknownName,
)
from dynid.robot.model import Robot
from dynid.simulation.gains import gains_of
from dynid.simulation.torque_models import Correction, RigidModel, TorqueModel, bounded, predicted, through

__all__ = [
    "CallableController",
    "Controller",
    "LinearController",
    "TorqueModel",
    "cascade",
    "function",
    "overlay",
    "pd",
    "pid",
    "state_space",
    "static",
    "transfer_function",
]

Array = NDArray[np.float64]
Feedforward = Literal["none", "gravity", "full"]
ModelUse = Literal["none", "gravity", "computed torque", "compensation", "linearisation", "augmented"]
Law = TypeVar("Law", "LinearController", "CallableController")


@dataclass(frozen=True, eq=False)
class LinearController:
    """A linear control law per joint: x' = A x + B u, torque = C x + D u with u = (q_ref, v_ref, q, v).

    Made by the functions of `dynid.controllers`, rarely by hand.

    Attributes
    ----------
    rate : float
        Sampling rate (Hz).
    A, B, C, D : array of shape (n, m, m), (n, m, 4), (n, m), (n, 4)
        State-space matrices per joint. The output is a torque (N m or N).
    feedforward : {"none", "gravity", "full"} or TorqueModel
        Torques along the reference: none, gravity or inverse dynamics of `model`, or those of a torque model.
    model_use : {"none", "gravity", "compensation", "augmented", "computed torque", "linearisation"}
        Use of `model` at the measured state. "gravity" adds gravity torques, "compensation" also friction, "augmented"
        its inverse dynamics for the reference acceleration. For the last two the output of the law is an acceleration,
        which the inverse dynamics of the model turn into a torque, with the reference acceleration ("computed torque")
        or without ("linearisation").
    model : Robot or None
        The robot model of the controller.
    name : str
        Name for messages.
    corrections : tuple of Correction
        Further torques along the reference, see `overlay`.
    """

    rate: float
    A: Array
    B: Array
    C: Array
    D: Array
    feedforward: Feedforward | TorqueModel = "none"
    model_use: ModelUse = "none"
    model: Robot | None = None
    name: str = "linear"
    corrections: tuple[Correction, ...] = ()

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise InvalidValue(f"a controller needs a positive rate, got {self.rate:g} Hz", "rate")
        D = np.atleast_2d(np.asarray(self.D, dtype=float))
        n = len(D)
        states = np.shape(self.A)[-1] if np.size(self.A) else 0
        for name, shape in (("A", (n, states, states)), ("B", (n, states, 4)), ("C", (n, states)), ("D", (n, 4))):
            value = for_kernel(getattr(self, name))
            if value.shape != shape:
                raise InvalidShape(f"controller '{self.name}': {name} has shape {value.shape}, expected {shape}")
            if not np.all(np.isfinite(value)):
                raise InvalidValue(f"controller '{self.name}': {name} holds a value that is not finite")
            object.__setattr__(self, name, value)
        by_name = isinstance(self.feedforward, str)
        if self.feedforward not in ("none", "gravity", "full") if by_name else not _predicts(self.feedforward):
            raise UnknownName(
                f"feedforward is 'none', 'gravity', 'full' or a torque model, not {self.feedforward!r:.60}",
                "feedforward",
            )
        if self.model_use not in get_args(ModelUse):
            raise UnknownName(
                f"model_use is one of {', '.join(get_args(ModelUse))}, not '{self.model_use}'", "model_use"
            )
        fed = not by_name or self.feedforward != "none"
        if ((fed and by_name) or self.model_use != "none") and self.model is None:
            raise MissingArgument(
                f"controller '{self.name}' needs a robot model for its feed-forward or compensation", "model"
            )
        if fed and self.model_use != "none":
            raise ConflictingArguments(
                f"controller '{self.name}' computes model torques at the measured state and takes no feed-forward",
                "feedforward",
            )
        if self.model is not None and self.model.n != n:
            raise Mismatch(f"controller '{self.name}' has {n} joints, its model {self.model.n}", "model")

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.D)

    def with_feedforward(self, feedforward: Feedforward | TorqueModel, model: Robot | None = None) -> LinearController:
        """The same law with feed-forward torques along the reference.

        Parameters
        ----------
        feedforward : {"none", "gravity", "full"} or TorqueModel
            Gravity torques or inverse dynamics of `model`, or any torque model.
        model : Robot, optional
            Robot model for "gravity" and "full".

        Returns
        -------
        LinearController

        Raises
        ------
        DataError
            If a model is missing, or given beside a torque model.
        """
        if not isinstance(feedforward, str) and model is not None:
            raise ConflictingArguments("a torque model is fed forward without a robot model beside it", "feedforward")
        return replace(self, feedforward=feedforward, model=model if isinstance(feedforward, str) else self.model)

    def torques_ahead(self, q: Array, v: Array, a: Array) -> Array:
        """Feed-forward torques (K, n) along a reference, with corrections; shape (0, n) if there are none."""
        parts: list[Array] = []
        if not isinstance(self.feedforward, str):
            parts.append(predicted(self.feedforward, q, v, a))
        elif self.feedforward != "none":
            assert self.model is not None
            parts.append(RigidModel(self.model, self.feedforward).torques(q, v, a))
        parts += [each.torques(q, v, a) for each in self.corrections]
        return sum(parts[1:], parts[0]) if parts else np.zeros((0, self.n))

    def with_robots(self, change: Callable[[Robot], Robot]) -> LinearController:
        """The same law with `change` applied to its robot models, except that of friction compensation."""
        keep = self.model is None or self.model_use == "compensation"
        return replace(
            self,
            model=self.model if keep else change(self.model),  # type: ignore[arg-type]
            feedforward=through(self.feedforward, change),
            corrections=tuple(through(each, change) for each in self.corrections),
        )


@dataclass(frozen=True, eq=False)
class CallableController:
    """A user function as a controller, called once per control period. Slower than a linear law, which is compiled.

    Attributes
    ----------
    rate : float
        Sampling rate (Hz).
    n : int
        Number of joints.
    function : callable
        function(t, q_ref, v_ref, a_ref, q, v) -> torques (n,) in N m or N.
    name : str
        Name for messages.
    corrections : tuple of Correction
        Further torques along the reference, see `overlay`.
    link_encoders : bool
        Whether the function is also given what encoders of the links measure, behind flexible joints:
        function(t, q_ref, v_ref, a_ref, q, v, link_q, link_v), where q and v are those of the motors.
    """

    rate: float
    n: int
    function: Callable[..., ArrayLike]
    name: str = "function"
    corrections: tuple[Correction, ...] = ()
    link_encoders: bool = False

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise InvalidValue(f"a controller needs a positive rate, got {self.rate:g} Hz", "rate")
        if not callable(self.function):
            raise InvalidType("a controller function must be callable", "function")

    def torques_ahead(self, q: Array, v: Array, a: Array) -> Array:
        """Corrections (K, n) along a reference; shape (0, n) if there are none."""
        parts = [each.torques(q, v, a) for each in self.corrections]
        return sum(parts[1:], parts[0]) if parts else np.zeros((0, self.n))

    def with_robots(self, change: Callable[[Robot], Robot]) -> CallableController:
        """The same law with `change` applied to the robots of its corrections; the function itself stays."""
        return replace(self, corrections=tuple(through(each, change) for each in self.corrections))


Controller = LinearController | CallableController


def overlay(law: Law, correction: TorqueModel, *, bound: ArrayLike | None = None) -> Law:
    """Add the torques of a correction along the reference to those of a controller.

    For a robot whose own model cannot be switched off. The correction predicts the difference to that model, not the
    whole torque.

    Parameters
    ----------
    law : Controller
        The controller, with its own feed-forward.
    correction : TorqueModel
        Model of the additional torques.
    bound : float or array of shape (n,), optional
        Largest magnitude of the additional torques (N m or N).

    Returns
    -------
    Controller
        Of the same type as `law`.

    Raises
    ------
    DataError
        If `law` is not a controller, or the correction or its bound is not valid.
    """
    if not isinstance(law, LinearController | CallableController):
        raise InvalidType(f"overlay needs a controller made by dynid.controllers, got {law!r:.60}")
    return replace(law, corrections=(*law.corrections, bounded(correction, bound, law.n)))


def cascade(rate: float, kp: ArrayLike, kv: ArrayLike) -> LinearController:
    """Cascade of a position loop and a velocity loop, both proportional: kv (kp (q_ref - q) - v).

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    kp : float or array of shape (n,)
        Position gains (1/s).
    kv : float or array of shape (n,)
        Velocity gains (N m s/rad or N s/m).

    Returns
    -------
    LinearController

    Examples
    --------
    >>> import dynid
    >>> dynid.controllers.cascade(1000.0, [20.0, 20.0], [5.0, 2.0]).n
    2
    """
    kp, kv = gains_of(kp=kp, kv=kv)
    return static(rate, np.column_stack([kp * kv, 0 * kp, -kp * kv, -kv]), "cascade")


def pd(rate: float, kp: ArrayLike, kd: ArrayLike) -> LinearController:
    """PD controller: kp (q_ref - q) + kd (v_ref - v).

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    kp : float or array of shape (n,)
        Proportional gains (N m/rad or N/m).
    kd : float or array of shape (n,)
        Derivative gains (N m s/rad or N s/m).

    Returns
    -------
    LinearController
    """
    kp, kd = gains_of(kp=kp, kd=kd)
    return static(rate, np.column_stack([kp, kd, -kp, -kd]), "pd")


def pid(rate: float, kp: ArrayLike, ki: ArrayLike, kd: ArrayLike) -> LinearController:
    """PID controller: kp e + ki sum(e)/rate + kd (v_ref - v) with e = q_ref - q.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    kp : float or array of shape (n,)
        Proportional gains (N m/rad or N/m).
    ki : float or array of shape (n,)
        Integral gains (N m/(rad s) or N/(m s)).
    kd : float or array of shape (n,)
        Derivative gains (N m s/rad or N s/m).

    Returns
    -------
    LinearController
    """
    kp, ki, kd = gains_of(kp=kp, ki=ki, kd=kd)
    n = len(kp)
    B = np.zeros((n, 1, 4))
    B[:, 0, 0], B[:, 0, 2] = 1 / rate, -1 / rate
    D = np.column_stack([kp + ki / rate, kd, -kp - ki / rate, -kd])
    return LinearController(rate, np.ones((n, 1, 1)), B, ki[:, None], D, name="pid")


def transfer_function(rate: float, numerators: ArrayLike, denominators: ArrayLike) -> LinearController:
    """Discrete transfer functions: torque = N(z)/D(z) (q_ref - q) per joint.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    numerators, denominators : array of shape (n, k)
        Coefficients in descending powers of z. The order of D is at least that of N.

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If the transfer function is not causal, or a leading denominator coefficient is zero.
    """
    num, den = np.atleast_2d(np.asarray(numerators, float)), np.atleast_2d(np.asarray(denominators, float))
    if len(num) != len(den) or num.shape[1] > den.shape[1] or np.any(den[:, 0] == 0):
        raise InvalidValue(
            "a transfer function needs one denominator per numerator, of at least its order, with a nonzero leading "
            "coefficient",
            "denominators",
        )
    n, m = len(den), den.shape[1] - 1
    a = den / den[:, :1]
    b = np.pad(num, ((0, 0), (m + 1 - num.shape[1], 0))) / den[:, :1]
    A, B, C = np.zeros((n, m, m)), np.zeros((n, m, 4)), np.zeros((n, m))
    if m:  # observer form
        A[:, :, 0], A[:, : m - 1, 1:], C[:, 0] = -a[:, 1:], np.eye(m - 1), 1.0
        B[:, :, 0] = b[:, 1:] - a[:, 1:] * b[:, :1]
        B[:, :, 2] = -B[:, :, 0]
    D = np.column_stack([b[:, 0], np.zeros(n), -b[:, 0], np.zeros(n)])
    return LinearController(rate, A, B, C, D, name="transfer function")


def state_space(rate: float, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike) -> LinearController:
    """Any linear law per joint in state-space form, with inputs (q_ref, v_ref, q, v).

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    A, B, C, D : array of shape (n, m, m), (n, m, 4), (n, m), (n, 4)
        Matrices per joint; the output is a torque (N m or N).

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If the shapes do not agree.
    """
    return LinearController(
        rate, np.asarray(A, float), np.asarray(B, float), np.asarray(C, float), np.asarray(D, float)
    )


def function(rate: float, n: int, law: Callable[..., ArrayLike]) -> CallableController:
    """A user function as a controller, called once per control period.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    n : int
        Number of joints.
    law : callable
        law(t, q_ref, v_ref, a_ref, q, v) -> torques (n,) in N m or N.

    Returns
    -------
    CallableController
    """
    return CallableController(rate, n, law)


def _predicts(given: Any) -> bool:
    """Whether an object is a torque model, and not a class of one."""
    return isinstance(given, TorqueModel) and not isinstance(given, type)


def static(rate: float, D: Array, name: str = "linear") -> LinearController:
    """A law without states: torque = D u."""
    n = len(D)
    return LinearController(rate, np.zeros((n, 0, 0)), np.zeros((n, 0, 4)), np.zeros((n, 0)), D, name=name)
