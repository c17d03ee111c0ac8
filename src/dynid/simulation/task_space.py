"""Operational-space control of a frame: tracking and impedance, with null-space control.

    torque = J' L (x''_command - (dJ/dt) v) + null space + bias,    L = (J M^-1 J')^-1

Source: Khatib, A Unified Approach for Motion and Force Control of Robot Manipulators: The Operational Space Formulation
(1987).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_drift, frame_jacobian, frame_placement
from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.errors import (
    InvalidShape,
    InvalidType,
    InvalidValue,
    MissingArgument,
    NotApplicable,
    SimulationFailed,
    TooFew,
    UnknownName,
)
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.simulation.gains import gains_of
from dynid.simulation.laws import CallableController

__all__ = ["Target", "task_impedance", "task_space"]

Array = NDArray[np.float64]
Target = Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]]

_SINGULAR = 1e-10  # smallest eigenvalue ratio of the inverse task inertia


def task_space(
    rate: float,
    model: Robot,
    frame: str,
    kp: ArrayLike,
    kd: ArrayLike,
    *,
    axes: str = "xyz",
    target: Target | None = None,
    slope: float | None = None,
    posture: ArrayLike | None = None,
    null_stiffness: ArrayLike = 0.0,
    null_damping: ArrayLike = 0.0,
) -> CallableController:
    """Operational-space tracking of a frame: x'' = x_ref'' + kd (x_ref' - x') + kp (x_ref - x).

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model with a fixed base.
    frame : str
        Link or frame of the model.
    kp : float or array, one per axis
        Position gains (1/s2).
    kd : float or array, one per axis
        Velocity gains (1/s).
    axes : str
        World axes of the frame origin, such as "xyz" or "xz", or "pose" for position and orientation.
    target : callable, optional
        target(t) -> position, velocity and acceleration along the axes; for "pose" a placement (4, 4), a twist (6,) and
        its derivative (6,), linear parts first. By default the pose of the frame at the joint reference.
    slope : float, optional
        Compensate the friction of the model, with Coulomb friction as tanh(slope v) (s/rad or s/m). A slope too steep
        for the rate makes light joints chatter. No friction compensation by default.
    posture : array of shape (n,), optional
        Joint positions (rad or m) towards which `null_stiffness` acts.
    null_stiffness, null_damping : float or array of shape (n,)
        Stiffness (1/s2) and damping (1/s) in the null space of the task.

    Returns
    -------
    CallableController

    Raises
    ------
    DataError
        If the frame, axes or gains do not fit the model. A singular position raises it during the simulation.
    """
    task = _Task(model, frame, axes, target, slope)
    kp, kd = gains_of(kp=kp, kd=kd, n=task.size)
    null_space = _NullSpace(task, posture, null_stiffness, null_damping)

    def law(t: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        now, ref = task.state(t, q, v), task.reference(t, q_ref, v_ref, a_ref)
        command = ref.acceleration + kd * (ref.velocity - now.velocity) + kp * task.error(ref, now)
        return now.J.T @ (now.inertia @ (command - now.drift)) + null_space.torque(now, q, v) + now.bias

    return CallableController(rate, model.n, law, "task space")


def task_impedance(
    rate: float,
    model: Robot,
    frame: str,
    stiffness: ArrayLike,
    damping: ArrayLike,
    *,
    axes: str = "xyz",
    target: Target | None = None,
    slope: float | None = None,
    posture: ArrayLike | None = None,
    null_stiffness: ArrayLike = 0.0,
    null_damping: ArrayLike = 0.0,
) -> CallableController:
    """Operational-space impedance of a frame: A e'' + D e' + K e = external force, e = x - x_ref.

    The inertia A is that of the robot at the frame; shaping it would need measured external forces.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model with a fixed base.
    frame : str
        Link or frame of the model.
    stiffness : float or array, one per axis
        Stiffness K (N/m, N m/rad).
    damping : float or array, one per axis
        Damping D (N s/m, N m s/rad).
    axes : str
        World axes of the frame origin, such as "xyz" or "xz", or "pose" for position and orientation.
    target : callable, optional
        target(t) -> position, velocity and acceleration along the axes; for "pose" a placement (4, 4), a twist (6,) and
        its derivative (6,), linear parts first. By default the pose of the frame at the joint reference.
    slope : float, optional
        Compensate the friction of the model, with Coulomb friction as tanh(slope v) (s/rad or s/m). A slope too steep
        for the rate makes light joints chatter. No friction compensation by default.
    posture : array of shape (n,), optional
        Joint positions (rad or m) towards which `null_stiffness` acts.
    null_stiffness, null_damping : float or array of shape (n,)
        Stiffness (1/s2) and damping (1/s) in the null space of the task.

    Returns
    -------
    CallableController

    Raises
    ------
    DataError
        If the frame, axes or gains do not fit the model. A singular position raises it during the simulation.
    """
    task = _Task(model, frame, axes, target, slope)
    K, D = gains_of(stiffness=stiffness, damping=damping, n=task.size)
    null_space = _NullSpace(task, posture, null_stiffness, null_damping)

    def law(t: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        now, ref = task.state(t, q, v), task.reference(t, q_ref, v_ref, a_ref)
        force = now.inertia @ (ref.acceleration - now.drift)
        force += D * (ref.velocity - now.velocity) + K * task.error(ref, now)
        return now.J.T @ force + null_space.torque(now, q, v) + now.bias

    return CallableController(rate, model.n, law, "task impedance")


@dataclass(frozen=True, eq=False)
class _Goal:
    """Target of the frame: position along the axes, rotation (for a pose), velocity and acceleration."""

    position: Array
    rotation: Array
    velocity: Array
    acceleration: Array


@dataclass(frozen=True, eq=False)
class _Now:
    """State of the frame and dynamics of the task: Jacobian, dJ/dt v, inertia A, mass matrix, bias torques."""

    position: Array
    rotation: Array
    velocity: Array
    J: Array
    drift: Array
    inertia: Array
    M: Array
    bias: Array


class _Task:
    """A frame of a model and its controlled axes."""

    def __init__(self, model: Robot, frame: str, axes: str, target: Target | None, slope: float | None) -> None:
        pose = axes == "pose"
        if not pose and (not axes or set(axes) - set("xyz") or len(set(axes)) != len(axes)):
            raise UnknownName(f"axes are some of x, y, z, or 'pose', not '{axes}'", "axes")
        if model.base != "fixed":
            raise NotApplicable(f"robot '{model.name}' needs a fixed base for control of a frame", "model")
        if target is not None and not callable(target):
            raise InvalidType("the target of a task is a function of time", "target")
        if slope is not None and not slope > 0:
            raise InvalidValue(f"friction compensation needs a positive slope, got {slope:g}", "slope")
        self.frame, self.target, self.pose = frame, target, pose
        self.rows = list(range(6)) if pose else ["xyz".index(a) for a in axes]
        self.size = len(self.rows)
        if self.size > model.n:
            raise TooFew(
                f"a task of {self.size} axes needs at least as many joints, '{model.name}' has {model.n}", "axes"
            )
        frame_placement(model, np.zeros(model.n), frame)  # raises if the frame does not exist
        self.inertial = model
        self.forces = _without_friction(model) if slope is None else model.with_smooth_coulomb(slope)

    def state(self, t: float, q: Array, v: Array) -> _Now:
        """The task at joint positions q and velocities v."""
        placement, J = frame_placement(self.inertial, q, self.frame), self._jacobian(q)
        M = mass_matrix(self.inertial, q)
        inverse = J @ np.linalg.solve(M, J.T)
        values = np.linalg.eigvalsh(inverse)
        if not values[0] > _SINGULAR * values[-1]:
            raise SimulationFailed(
                f"at {t:g} s frame '{self.frame}' cannot move along all its axes: the pose is singular"
            )
        return _Now(
            placement[:3, 3][self.rows[:3]],
            placement[:3, :3],
            J @ v,
            J,
            frame_drift(self.inertial, q, v, self.frame)[self.rows],
            np.linalg.inv(inverse),
            M,
            inverse_dynamics(self.forces, q, v, np.zeros_like(v)),
        )

    def reference(self, t: float, q: Array, v: Array, a: Array) -> _Goal:
        """The target at a time, or the pose of the frame at the joint reference."""
        if self.target is None:
            placement, J = frame_placement(self.inertial, q, self.frame), self._jacobian(q)
            acceleration = J @ a + frame_drift(self.inertial, q, v, self.frame)[self.rows]
            return _Goal(placement[:3, 3][self.rows[:3]], placement[:3, :3], J @ v, acceleration)
        try:
            x, velocity, acceleration = (np.asarray(part, dtype=float) for part in self.target(t))
        except (TypeError, ValueError):
            raise InvalidType(
                f"the target must return position, velocity and acceleration, but does not at {t:g} s", "target"
            ) from None
        shape = (4, 4) if self.pose else (self.size,)
        good = x.shape == shape and velocity.shape == acceleration.shape == (self.size,)
        if not (good and all(np.all(np.isfinite(part)) for part in (x, velocity, acceleration))):
            raise InvalidShape(
                f"the target must return finite arrays {shape}, ({self.size},), ({self.size},), "
                f"but does not at {t:g} s",
                "target",
            )
        if self.pose:
            return _Goal(x[:3, 3], x[:3, :3], velocity, acceleration)
        return _Goal(x, np.eye(3), velocity, acceleration)

    def error(self, goal: _Goal, now: _Now) -> Array:
        """Error from the frame to its target; orientation as a rotation vector in world axes."""
        e = goal.position - now.position
        if not self.pose:
            return e
        from scipy.spatial.transform import Rotation

        return np.concatenate([e, Rotation.from_matrix(goal.rotation @ now.rotation.T).as_rotvec()])

    def _jacobian(self, q: Array) -> Array:
        """Rows of the frame Jacobian for the controlled axes."""
        return frame_jacobian(self.inertial, q, self.frame)[self.rows]


class _NullSpace:
    """Null-space torques: by the dynamically consistent inverse they do not accelerate the frame."""

    def __init__(self, task: _Task, posture: ArrayLike | None, stiffness: ArrayLike, damping: ArrayLike) -> None:
        n = task.inertial.n
        self.stiffness, self.damping = gains_of(null_stiffness=stiffness, null_damping=damping, n=n)
        self.off = not (self.stiffness.any() or self.damping.any())
        if posture is None and self.stiffness.any():
            raise MissingArgument("null_stiffness needs a posture: give its joint positions", "posture")
        self.posture = np.zeros(n) if posture is None else np.asarray(posture, dtype=float)
        if self.posture.shape != (n,) or not np.all(np.isfinite(self.posture)):
            raise InvalidShape(f"a posture is {n} finite joint positions, got shape {self.posture.shape}", "posture")

    def torque(self, now: _Now, q: Array, v: Array) -> Array:
        """(I - J' J+') M a with J+ = M^-1 J' A, where a is the acceleration of null stiffness and damping."""
        if self.off:
            return np.zeros(len(q))
        command = self.stiffness * (self.posture - q) - self.damping * v
        return now.M @ command - now.J.T @ (now.inertia @ (now.J @ command))


def _without_friction(model: Robot) -> Robot:
    """The model without friction, rotor inertia and offsets."""
    return replace(model, drives=tuple(t for t in model.drives if t.kind in (TermKind.SPRING, TermKind.CUSTOM)))
