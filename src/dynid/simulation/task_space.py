"""Control of a frame of the robot in space (Khatib 1987): tracking and impedance, with what redundancy leaves over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_drift, frame_jacobian, frame_placement
from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.errors import DataError
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.simulation.laws import CallableController, gains_of

__all__ = ["Target", "task_impedance", "task_space"]

Array = NDArray[np.float64]
Target = Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]]

_SINGULAR = 1e-10  # smallest share of the largest eigenvalue that the task's inverse inertia may have


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
    """A frame follows its target as 1/s2 under a PD: x'' = x_ref'' + kd (x_ref' - x') + kp (x_ref - x).

    `axes` are world axes of the frame's origin, such as "xyz" or "xz", or "pose" for these and the orientation. kp
    (1/s2) and kd (1/s) are one number or one an axis. `target(t)` gives position, velocity and acceleration along the
    axes; for "pose" a placement (4, 4), a twist (6,) and its rate (6,), linear first; without it the target is where
    the joints' reference puts the frame. Friction of the model is compensated where a slope (s/rad) is given, Coulomb's
    as tanh(slope v); too steep a slope for the rate makes light joints chatter. What the task leaves free is damped by
    `null_damping` (1/s) and drawn to `posture` by `null_stiffness` (1/s2).
    """
    task = _Task(model, frame, axes, target, slope)
    kp, kd = gains_of(kp=kp, kd=kd, n=task.size)
    rest = _Rest(task, posture, null_stiffness, null_damping)

    def law(t: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        now, ref = task.state(t, q, v), task.reference(t, q_ref, v_ref, a_ref)
        wish = ref.acceleration + kd * (ref.velocity - now.velocity) + kp * task.error(ref, now)
        return now.J.T @ (now.inertia @ (wish - now.drift)) + rest.torque(now, q, v) + now.bias

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
    """A frame as a spring and a damper about its target: A e'' + D e' + K e = outside force, e = x - x_ref.

    The inertia A is the robot's own at the frame: to shape it, outside forces would have to be measured. Stiffness
    (N/m, N m/rad) and damping are one number or one an axis; the rest is that of `task_space`.
    """
    task = _Task(model, frame, axes, target, slope)
    K, D = gains_of(stiffness=stiffness, damping=damping, n=task.size)
    rest = _Rest(task, posture, null_stiffness, null_damping)

    def law(t: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        now, ref = task.state(t, q, v), task.reference(t, q_ref, v_ref, a_ref)
        force = now.inertia @ (ref.acceleration - now.drift)
        force += D * (ref.velocity - now.velocity) + K * task.error(ref, now)
        return now.J.T @ force + rest.torque(now, q, v) + now.bias

    return CallableController(rate, model.n, law, "task impedance")


@dataclass(frozen=True, eq=False)
class _Goal:
    """Where the frame should be: position along the axes, its rotation (for a pose), velocity and acceleration."""

    position: Array
    rotation: Array
    velocity: Array
    acceleration: Array


@dataclass(frozen=True, eq=False)
class _Now:
    """Where the frame is, and the robot as the task sees it: Jacobian, J' v, inertia A, mass matrix, bias torques."""

    position: Array
    rotation: Array
    velocity: Array
    J: Array
    drift: Array
    inertia: Array
    M: Array
    bias: Array


class _Task:
    """A frame of a model, and the axes along which it is controlled."""

    def __init__(self, model: Robot, frame: str, axes: str, target: Target | None, slope: float | None) -> None:
        pose = axes == "pose"
        if not pose and (not axes or set(axes) - set("xyz") or len(set(axes)) != len(axes)):
            raise DataError(f"axes are some of x, y, z, or 'pose', not '{axes}'")
        if model.base != "fixed":
            raise DataError(f"robot '{model.name}' needs a fixed base for control of a frame")
        if target is not None and not callable(target):
            raise DataError("the target of a task is a function of time")
        if slope is not None and not slope > 0:
            raise DataError(f"friction compensation needs a positive slope, got {slope:g}")
        self.frame, self.target, self.pose = frame, target, pose
        self.rows = list(range(6)) if pose else ["xyz".index(a) for a in axes]
        self.size = len(self.rows)
        if self.size > model.n:
            raise DataError(f"a task of {self.size} axes is too much for the {model.n} joints of '{model.name}'")
        frame_placement(model, np.zeros(model.n), frame)  # refuses frames that are not there
        self.inertial = model
        self.forces = _without_friction(model) if slope is None else model.with_smooth_coulomb(slope)

    def state(self, t: float, q: Array, v: Array) -> _Now:
        """The task at joint positions q and speeds v."""
        placement, J = frame_placement(self.inertial, q, self.frame), self._jacobian(q)
        M = mass_matrix(self.inertial, q)
        inverse = J @ np.linalg.solve(M, J.T)
        values = np.linalg.eigvalsh(inverse)
        if not values[0] > _SINGULAR * values[-1]:
            raise DataError(f"at {t:g} s frame '{self.frame}' cannot move along all its axes: the pose is singular")
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
        """The target at a time, or that of the joints' reference."""
        if self.target is None:
            placement, J = frame_placement(self.inertial, q, self.frame), self._jacobian(q)
            acceleration = J @ a + frame_drift(self.inertial, q, v, self.frame)[self.rows]
            return _Goal(placement[:3, 3][self.rows[:3]], placement[:3, :3], J @ v, acceleration)
        try:
            x, velocity, acceleration = (np.asarray(part, dtype=float) for part in self.target(t))
        except (TypeError, ValueError):
            raise DataError(
                f"the target must give position, velocity and acceleration, at {t:g} s it does not"
            ) from None
        shape = (4, 4) if self.pose else (self.size,)
        good = x.shape == shape and velocity.shape == acceleration.shape == (self.size,)
        if not (good and all(np.all(np.isfinite(part)) for part in (x, velocity, acceleration))):
            raise DataError(
                f"the target must give finite numbers {shape}, ({self.size},), ({self.size},), at {t:g} s it does not"
            )
        if self.pose:
            return _Goal(x[:3, 3], x[:3, :3], velocity, acceleration)
        return _Goal(x, np.eye(3), velocity, acceleration)

    def error(self, goal: _Goal, now: _Now) -> Array:
        """From where the frame is to where it should be; orientations as a rotation vector in world axes."""
        e = goal.position - now.position
        if not self.pose:
            return e
        from scipy.spatial.transform import Rotation

        return np.concatenate([e, Rotation.from_matrix(goal.rotation @ now.rotation.T).as_rotvec()])

    def _jacobian(self, q: Array) -> Array:
        return frame_jacobian(self.inertial, q, self.frame)[self.rows]


class _Rest:
    """Torques in the null space of the task, which by the dynamically consistent inverse do not accelerate it."""

    def __init__(self, task: _Task, posture: ArrayLike | None, stiffness: ArrayLike, damping: ArrayLike) -> None:
        n = task.inertial.n
        self.stiffness, self.damping = gains_of(null_stiffness=stiffness, null_damping=damping, n=n)
        self.off = not (self.stiffness.any() or self.damping.any())
        if posture is None and self.stiffness.any():
            raise DataError("null_stiffness draws to a posture: give its joint positions")
        self.posture = np.zeros(n) if posture is None else np.asarray(posture, dtype=float)
        if self.posture.shape != (n,) or not np.all(np.isfinite(self.posture)):
            raise DataError(f"a posture is {n} finite joint positions, got shape {self.posture.shape}")

    def torque(self, now: _Now, q: Array, v: Array) -> Array:
        """(I - J' J+') M a with J+ = M^-1 J' A, for the acceleration a that draws to the posture and damps."""
        if self.off:
            return np.zeros(len(q))
        wish = self.stiffness * (self.posture - q) - self.damping * v
        return now.M @ wish - now.J.T @ (now.inertia @ (now.J @ wish))


def _without_friction(model: Robot) -> Robot:
    return replace(model, drives=tuple(t for t in model.drives if t.kind in (TermKind.SPRING, TermKind.CUSTOM)))
