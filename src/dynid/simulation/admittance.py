"""Admittance control: measured external torques move the reference as a mass, damper and spring would.

    A e'' + D e' + K e = external torque
    torque = ID(q, v, a_ref + e'' + kd (v_ref + e' - v) + kp (q_ref + e - q)) - external

Source: Hogan, Impedance Control: An Approach to Manipulation (1985).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import InvalidShape, InvalidType, InvalidValue, NotApplicable
from dynid.robot.model import Robot
from dynid.simulation.laws import CallableController, gains_of

__all__ = ["admittance"]

Array = NDArray[np.float64]


def admittance(
    rate: float,
    model: Robot,
    inertia: ArrayLike,
    damping: ArrayLike,
    stiffness: ArrayLike,
    external: Callable[[float], ArrayLike],
    *,
    kp: ArrayLike = 900.0,
    kd: ArrayLike = 60.0,
    slope: float = 20.0,
) -> CallableController:
    """Joint admittance: external torques move the robot by A e'' + D e' + K e = torque, e = q - q_ref.

    The measured external torque moves a virtual mass, damper and spring per joint, exactly where it is constant over a
    control period, and computed torque tracks the reference that they displace. Unlike `impedance`, the law shapes the
    inertia too, but it needs a measured external torque.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model with a fixed base, for the inverse dynamics.
    inertia : float or array of shape (n,)
        Inertia A (kg m2 or kg), positive.
    damping : float or array of shape (n,)
        Damping D (N m s/rad or N s/m), not negative.
    stiffness : float or array of shape (n,)
        Stiffness K (N m/rad or N/m), not negative; with zero the robot does not return by itself.
    external : callable
        external(t) -> measured external torques (n,) in N m or N, positive where they accelerate the joints.
    kp : float or array of shape (n,), default 900
        Position gains of the tracking (1/s2).
    kd : float or array of shape (n,), default 60
        Velocity gains of the tracking (1/s).
    slope : float, default 20
        Coulomb friction is compensated as tanh(slope v) (s/rad or s/m).

    Returns
    -------
    CallableController

    Raises
    ------
    DataError
        If gains do not fit the model or have the wrong sign. External torques that are not finite raise it during the
        simulation.
    """
    if model.base != "fixed":
        raise NotApplicable(f"robot '{model.name}' needs a fixed base for admittance control")
    A, D, K = gains_of(inertia=inertia, damping=damping, stiffness=stiffness, n=model.n)
    kp, kd = gains_of(kp=kp, kd=kd, n=model.n)
    if not (np.all(A > 0) and np.all(D >= 0) and np.all(K >= 0)):
        raise InvalidValue(
            "an admittance needs a positive inertia, and damping and stiffness that are not negative", "inertia"
        )
    if not callable(external):
        raise InvalidType("the external torques of an admittance are a function of time", "external")
    if not slope > 0:
        raise InvalidValue(f"friction compensation needs a positive slope, got {slope:g}", "slope")
    smooth = model.with_smooth_coulomb(slope)
    virtual = _Virtual(A, D, K, 1.0 / rate, external)

    def law(t: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        away, velocity, acceleration, torque = virtual.at(t)
        command = a_ref + acceleration + kd * (v_ref + velocity - v) + kp * (q_ref + away - q)
        return inverse_dynamics(smooth, q, v, command) - torque

    return CallableController(rate, model.n, law, "admittance")


class _Virtual:
    """Mass, damper and spring of every joint, moved from tick to tick; at rest where time does not go on."""

    def __init__(self, A: Array, D: Array, K: Array, step: float, external: Callable[[float], ArrayLike]) -> None:
        self.A, self.D, self.K, self.external = A, D, K, external
        self.time = np.inf
        self.state = np.zeros((len(A), 2))
        self.torque = np.zeros(len(A))
        # Exponential of [x, x', torque], whose torque is held over a step.
        rates = np.zeros((len(A), 3, 3))
        rates[:, 0, 1] = 1.0
        rates[:, 1] = np.column_stack([-K / A, -D / A, 1.0 / A])
        self.moved = scipy.linalg.expm(rates * step)[:, :2]

    def at(self, t: float) -> tuple[Array, Array, Array, Array]:
        """Displacement, its two derivatives, and the external torque, at the tick of time t."""
        if t > self.time:
            before = np.column_stack([self.state, self.torque])
            self.state = (self.moved @ before[:, :, None])[:, :, 0]
        else:
            self.state = np.zeros_like(self.state)
        self.time, self.torque = t, self._measured(t)
        x, v = self.state.T
        return x, v, (self.torque - self.D * v - self.K * x) / self.A, self.torque

    def _measured(self, t: float) -> Array:
        try:
            torque = np.asarray(self.external(t), dtype=float)
        except (TypeError, ValueError):
            torque = np.array(np.nan)
        if torque.shape != self.A.shape or not np.all(np.isfinite(torque)):
            raise InvalidShape(
                f"the external torques must be {len(self.A)} finite numbers, but are not at {t:g} s", "external"
            )
        return torque
