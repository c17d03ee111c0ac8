"""Controllers: linear laws joint by joint, with what they know of the robot, or any function of the user's.

Every linear law is one discrete state-space system a joint over four inputs: reference position, reference speed,
measured position, measured speed. A cascade, a PID and a transfer function are the same thing with other numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import for_kernel
from dynid.dynamics.functions import mass_matrix
from dynid.errors import DataError
from dynid.robot.model import Robot
from dynid.simulation.torque_models import Correction, RigidModel, TorqueModel, bounded, predicted, through

__all__ = [
    "CallableController",
    "Controller",
    "LinearController",
    "TorqueModel",
    "bandwidth_gains",
    "cascade",
    "function",
    "gains_of",
    "overlay",
    "pd",
    "pid",
    "state_space",
    "static",
    "transfer_function",
]

Array = NDArray[np.float64]
Feedforward = Literal["none", "gravity", "full"]
Knowledge = Literal["none", "gravity", "computed torque", "compensation", "linearisation"]
Law = TypeVar("Law", "LinearController", "CallableController")


@dataclass(frozen=True, eq=False)
class LinearController:
    """x' = A x + B in, out = C x + D in a joint, with in = (q_ref, v_ref, q, v), at `rate` Hz.

    A (n, m, m), B (n, m, 4), C (n, m), D (n, 4). `feedforward` adds torques along the reference that `model` predicts,
    or a torque model of its own. `knows` adds the model's gravity at the measured pose ("compensation": and its drives
    at the measured speed), or makes the output an acceleration for the model's inverse dynamics, with that of the
    reference ("computed torque") or without ("linearisation"). `corrections` are fed forward on top of all that.
    """

    rate: float
    A: Array
    B: Array
    C: Array
    D: Array
    feedforward: Feedforward | TorqueModel = "none"
    knows: Knowledge = "none"
    model: Robot | None = None
    name: str = "linear"
    corrections: tuple[Correction, ...] = ()

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise DataError(f"a controller needs a positive rate, got {self.rate:g} Hz")
        D = np.atleast_2d(np.asarray(self.D, dtype=float))
        n = len(D)
        states = np.shape(self.A)[-1] if np.size(self.A) else 0
        for name, shape in (("A", (n, states, states)), ("B", (n, states, 4)), ("C", (n, states)), ("D", (n, 4))):
            value = for_kernel(getattr(self, name))
            if value.shape != shape:
                raise DataError(f"controller '{self.name}': {name} has shape {value.shape}, expected {shape}")
            if not np.all(np.isfinite(value)):
                raise DataError(f"controller '{self.name}': {name} holds a value that is not finite")
            object.__setattr__(self, name, value)
        by_name = isinstance(self.feedforward, str)
        if self.feedforward not in ("none", "gravity", "full") if by_name else not _predicts(self.feedforward):
            raise DataError(f"feedforward is 'none', 'gravity', 'full' or a torque model, not {self.feedforward!r:.60}")
        if self.knows not in get_args(Knowledge):
            raise DataError(f"a controller knows one of {', '.join(get_args(Knowledge))}, not '{self.knows}'")
        fed = not by_name or self.feedforward != "none"
        if ((fed and by_name) or self.knows != "none") and self.model is None:
            raise DataError(f"controller '{self.name}' needs a model of the robot for what it feeds forward")
        if fed and self.knows != "none":
            raise DataError(f"controller '{self.name}' knows the robot's torques already and takes no feed-forward")
        if self.model is not None and self.model.n != n:
            raise DataError(f"controller '{self.name}' has {n} joints, its model {self.model.n}")

    @property
    def n(self) -> int:
        return len(self.D)

    def with_feedforward(self, feedforward: Feedforward | TorqueModel, model: Robot | None = None) -> LinearController:
        """The same law with torques along the reference: "gravity" or "full" of a robot, or those of a torque model."""
        if not isinstance(feedforward, str) and model is not None:
            raise DataError("a torque model is fed forward alone, without a robot beside it")
        return replace(self, feedforward=feedforward, model=model if isinstance(feedforward, str) else self.model)

    def torques_ahead(self, q: Array, v: Array, a: Array) -> Array:
        """Feed-forward torques (K, n) along a reference, corrections included; (0, n) where there are none."""
        parts: list[Array] = []
        if not isinstance(self.feedforward, str):
            parts.append(predicted(self.feedforward, q, v, a))
        elif self.feedforward != "none":
            assert self.model is not None
            parts.append(RigidModel(self.model, self.feedforward).torques(q, v, a))
        parts += [each.torques(q, v, a) for each in self.corrections]
        return sum(parts[1:], parts[0]) if parts else np.zeros((0, self.n))

    def with_robots(self, change: Callable[[Robot], Robot]) -> LinearController:
        """The same law with every robot that it knows changed, but for friction compensation, which has its own."""
        keep = self.model is None or self.knows == "compensation"
        return replace(
            self,
            model=self.model if keep else change(self.model),  # type: ignore[arg-type]
            feedforward=through(self.feedforward, change),
            corrections=tuple(through(each, change) for each in self.corrections),
        )


@dataclass(frozen=True, eq=False)
class CallableController:
    """Any function(t, q_ref, v_ref, a_ref, q, v) -> torques (n,), called once a period; slower than a linear law."""

    rate: float
    n: int
    function: Callable[..., ArrayLike]
    name: str = "function"
    corrections: tuple[Correction, ...] = ()

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise DataError(f"a controller needs a positive rate, got {self.rate:g} Hz")
        if not callable(self.function):
            raise DataError("a controller function must be callable")

    def torques_ahead(self, q: Array, v: Array, a: Array) -> Array:
        """Corrections (K, n) along a reference; (0, n) where there are none."""
        parts = [each.torques(q, v, a) for each in self.corrections]
        return sum(parts[1:], parts[0]) if parts else np.zeros((0, self.n))

    def with_robots(self, change: Callable[[Robot], Robot]) -> CallableController:
        """The same law with every robot that its corrections know changed; what its function knows stays."""
        return replace(self, corrections=tuple(through(each, change) for each in self.corrections))


Controller = LinearController | CallableController


def overlay(law: Law, correction: TorqueModel, bound: ArrayLike | None = None) -> Law:
    """The law with a correction's torques along the reference added to whatever it does already.

    For a robot whose own model stays on: the correction is what that one lacks, not all torques. Each torque is clipped
    to `bound` (N m, one number or one a joint).
    """
    if not isinstance(law, LinearController | CallableController):
        raise DataError(f"a correction is laid over a controller made by dynid.controllers, got {law!r:.60}")
    return replace(law, corrections=(*law.corrections, bounded(correction, bound, law.n)))


def cascade(rate: float, kp: ArrayLike, kv: ArrayLike) -> LinearController:
    """Position loop around a speed loop, both proportional: kv (kp (q_ref - q) - v); kp in 1/s, kv in N m s/rad."""
    kp, kv = gains_of(kp=kp, kv=kv)
    return static(rate, np.column_stack([kp * kv, 0 * kp, -kp * kv, -kv]), "cascade")


def pd(rate: float, kp: ArrayLike, kd: ArrayLike) -> LinearController:
    """kp (q_ref - q) + kd (v_ref - v)."""
    kp, kd = gains_of(kp=kp, kd=kd)
    return static(rate, np.column_stack([kp, kd, -kp, -kd]), "pd")


def pid(rate: float, kp: ArrayLike, ki: ArrayLike, kd: ArrayLike) -> LinearController:
    """kp e + ki sum(e)/rate + kd (v_ref - v), e = q_ref - q."""
    kp, ki, kd = gains_of(kp=kp, ki=ki, kd=kd)
    n = len(kp)
    B = np.zeros((n, 1, 4))
    B[:, 0, 0], B[:, 0, 2] = 1 / rate, -1 / rate
    D = np.column_stack([kp + ki / rate, kd, -kp - ki / rate, -kd])
    return LinearController(rate, np.ones((n, 1, 1)), B, ki[:, None], D, name="pid")


def transfer_function(rate: float, numerators: ArrayLike, denominators: ArrayLike) -> LinearController:
    """torque = N(z)/D(z) (q_ref - q) a joint; coefficients (n, k) in falling powers of z, D no shorter than N."""
    num, den = np.atleast_2d(np.asarray(numerators, float)), np.atleast_2d(np.asarray(denominators, float))
    if len(num) != len(den) or num.shape[1] > den.shape[1] or np.any(den[:, 0] == 0):
        raise DataError("a transfer function needs one denominator a numerator, of no lower order, led by a non-zero")
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
    """Any linear law: A (n, m, m), B (n, m, 4), C (n, m), D (n, 4) over (q_ref, v_ref, q, v)."""
    return LinearController(
        rate, np.asarray(A, float), np.asarray(B, float), np.asarray(C, float), np.asarray(D, float)
    )


def function(rate: float, n: int, law: Callable[..., ArrayLike]) -> CallableController:
    """A controller from any function(t, q_ref, v_ref, a_ref, q, v) -> torques (n,)."""
    return CallableController(rate, n, law)


def bandwidth_gains(
    robot: Robot, bandwidth: ArrayLike, damping: float = 1.0, q: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Gains (kp, kv) of `cascade` for a closed loop with this bandwidth (Hz, -3 dB) joint by joint.

    Each joint is taken as the inertia it sees at q (by default the middle of its range) with the others held. The
    gains of `pd` are kp kv and kv.
    """
    (f,) = gains_of(bandwidth=bandwidth, n=robot.n)
    if np.any(f <= 0) or not damping > 0:
        raise DataError("bandwidth and damping must be positive")
    pose = np.array([_middle(robot, c) for c in robot.coordinates]) if q is None else np.asarray(q, float)
    inertia = np.diagonal(mass_matrix(robot, pose))
    d = 1 - 2 * damping**2
    natural = 2 * np.pi * f / np.sqrt(d + np.sqrt(d**2 + 1))
    return natural / (2 * damping), 2 * damping * natural * inertia


def _predicts(given: Any) -> bool:
    return isinstance(given, TorqueModel) and not isinstance(given, type)


def _middle(robot: Robot, joint: str) -> float:
    limits = robot.limits[joint]
    low, high = limits.lower, limits.upper
    return 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else 0.0


def gains_of(n: int | None = None, **given: ArrayLike) -> list[Array]:
    """Gains as vectors of one length, checked."""
    arrays = {name: np.atleast_1d(np.asarray(value, dtype=float)) for name, value in given.items()}
    length = n or max(len(a) for a in arrays.values())
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) not in (1, length) or not np.all(np.isfinite(array)):
            raise DataError(f"gain {name} needs one finite number a joint ({length}), got shape {array.shape}")
    return [np.broadcast_to(a, (length,)).copy() for a in arrays.values()]


def static(rate: float, D: Array, name: str = "linear") -> LinearController:
    """A law without memory: out = D in."""
    n = len(D)
    return LinearController(rate, np.zeros((n, 0, 0)), np.zeros((n, 0, 4)), np.zeros((n, 0)), D, name=name)
