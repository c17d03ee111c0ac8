"""Free fall of a model: a passive robot must not gain energy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import assemble
from dynid.dynamics.batch import as_batch, as_parameters
from dynid.dynamics.functions import (
    forward_dynamics,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from dynid.errors import DataError, DynidError, InvalidShape, InvalidValue, UnknownName, named
from dynid.results import Result, View, about
from dynid.robot.drives import TermKind, drive_kinds
from dynid.robot.model import Robot

__all__ = ["FreeFall", "Method", "free_fall", "passive_acceleration"]

Array = NDArray[np.float64]
Method = Literal["LSODA", "RK45"]
METHODS = ("LSODA", "RK45")

_DIVERGED = 1e6  # rad/s or m/s; no robot reaches it, and the integration is still accurate
_MAX_STEPS = 100_000  # a fall of some seconds takes hundreds of steps, some ten thousand if it is stiff
_DIFFERENCE = 1e-7  # relative step of the Jacobian: half of the digits
_COULOMB = drive_kinds("coulomb")


@dataclass(frozen=True, eq=False)
class FreeFall(Result):
    """Energy of a passive fall on a uniform clock."""

    views = MappingProxyType({"verdict": View("verdict"), "rise": View("rise")})

    seconds: float = field(metadata=about("Duration (s) that was to be simulated."))
    time: Array = field(metadata=about("Time (s), up to the end or the failure of the integration.", size=("N",)))
    kinetic: Array = field(metadata=about("Kinetic and potential energy (J).", size=("N",)))
    potential: Array = field(metadata=about("Kinetic and potential energy (J).", size=("N",)))
    tolerance: float = field(
        metadata=about("Energy (J) from which the total energy counts as risen, or the kinetic energy as negative.")
    )
    died: float | None = field(
        default=None, metadata=about("Time (s) at which the integration failed; None if it reached the end.")
    )
    cause: str = field(default="", metadata=about("Cause of the failure."))

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy together (J)."""
        return self.kinetic + self.potential

    @property
    def rise(self) -> float:
        """Largest rise of the energy above its lowest value before (J)."""
        return float(np.max(self.energy - np.minimum.accumulate(self.energy)))

    @property
    def verdict(self) -> str:
        """The result in words."""
        if self.died is not None:
            return f"integration failed at {self.died:.4g} s"
        if self.kinetic.min() < -self.tolerance:
            return f"kinetic energy turns negative at {self.time[np.argmax(self.kinetic < -self.tolerance)]:.4g} s"
        if self.rise > self.tolerance:
            return "energy rises"
        return "energy falls" if self.energy[0] - self.energy[-1] > self.tolerance else "energy stays"

    @property
    def ok(self) -> bool:
        """Whether the fall is physical: it was integrated to the end, and the energy never rises."""
        lowest = float(self.kinetic.min())
        return self.died is None and lowest >= -self.tolerance and self.rise <= self.tolerance


def free_fall(
    robot: Robot,
    parameters: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    seconds: float = 2.0,
    samples: int = 200,
    offsets: bool = False,
    steepness: float = 100.0,
    method: Method = "LSODA",
    rtol: float = 1e-6,
    atol: float = 1e-8,
    tolerance: float = 1e-4,
) -> FreeFall:
    """Simulate a robot that is released at rest and without torque.

    There are no joint limits and no collisions. Custom drive terms act, but the energy that they store is not known. A
    mass matrix that is not positive definite is solved as well; the energy then shows the consequence.

    Parameters
    ----------
    robot : Robot
        Robot to simulate.
    parameters : array_like, shape (p,), optional
        Standard parameters; by default those of the robot.
    start : array_like, shape (nq,), optional
        Initial pose (rad, m); by default zero.
    seconds : float
        Duration (s).
    samples : int
        Number of time steps at which the energy is kept.
    offsets : bool
        Whether constant offsets of the drives act. They do work, so the energy may rise.
    steepness : float
        Slope (s/rad) of the Coulomb friction tanh(steepness * velocity).
    method : {"LSODA", "RK45"}
        Integrator of scipy.
    rtol, atol : float
        Tolerances of the integrator.
    tolerance : float
        Tolerated rise, relative to the largest change of energy. `rtol` of the potential energy is added.

    Returns
    -------
    FreeFall

    Raises
    ------
    DataError
        If a setting is not positive, the method is unknown, or `start` is not one pose.
    """
    if not (np.isfinite(seconds) and seconds > 0 and samples >= 1 and steepness > 0 and rtol > 0 and atol > 0):
        raise InvalidValue("seconds, samples, steepness and the tolerances of a free fall must be positive", "seconds")
    if method not in METHODS:
        raise UnknownName(f"{named('method')} '{method}' is unknown: use {', '.join(METHODS)}")
    pi = as_parameters(robot, parameters)
    state = np.concatenate([_pose(robot, start), np.zeros(robot.nv)])
    clock = np.linspace(0.0, seconds, samples + 1)
    states, died, cause = _integrate(
        _rates(robot, pi, offsets, steepness), robot.nv, state, clock, method, rtol=rtol, atol=atol
    )
    q, v = _configuration(robot, states), states[:, robot.nq :]
    kinetic, potential = kinetic_energy(robot, q, v, pi), potential_energy(robot, q, pi)
    moved = max(np.abs(kinetic).max(), np.ptp(kinetic + potential))
    allowed = float(tolerance * moved + rtol * np.abs(potential).max())
    return FreeFall(seconds, clock[: len(states)], kinetic, potential, allowed, died, cause)


def passive_acceleration(
    robot: Robot, parameters: ArrayLike | None = None, *, offsets: bool = False, steepness: float = 100.0
) -> Callable[[Array, Array], Array]:
    """Return a function of q (N, nq) and v (N, nv) that gives the acceleration (N, nv) without drive torque.

    The result is NaN where the mass matrix is singular or a closed loop cannot be assembled; a mass matrix that is not
    positive definite is solved as well.
    """
    pi = as_parameters(robot, parameters).copy()
    place = {name: i for i, name in enumerate(robot.parameter_names)}
    dry = [t for t in robot.drives if t.kind in _COULOMB]
    value = np.array([pi[place[t.name]] for t in dry])
    direction = np.array([t.direction for t in dry]).reshape(-1, len(robot.tree_coordinates))
    first = robot.nv - robot.n
    lower = np.array([0.0 if t.kind == TermKind.COULOMB_POSITIVE else -1.0 for t in dry])
    upper = np.array([0.0 if t.kind == TermKind.COULOMB_NEGATIVE else 1.0 for t in dry])
    for term in robot.drives:
        if term.kind in _COULOMB or (term.kind == TermKind.OFFSET and not offsets):
            pi[place[term.name]] = 0.0

    def acceleration(q: Array, v: Array) -> Array:
        try:
            return moving(q, v)
        except DataError:  # a posture in which a loop cannot close
            return np.full_like(v, np.nan)

    def moving(q: Array, v: Array) -> Array:
        shafts = direction if not robot.loops else direction @ assemble(robot, q).jacobian[:, first:, first:]
        velocity = np.einsum("...ij,...j->...i", shafts, v[:, first:])
        tau = np.zeros_like(v)
        friction = value * np.clip(np.tanh(steepness * velocity), lower, upper)
        tau[:, first:] = -np.einsum("...i,...ij->...j", friction, shafts)
        try:
            return forward_dynamics(robot, q, v, tau, pi)
        except DynidError:  # a mass matrix is not positive definite
            tau -= inverse_dynamics(robot, q, v, np.zeros_like(v), pi)[:, -robot.nv :]
        try:
            return np.asarray(np.linalg.solve(mass_matrix(robot, q, pi), tau[..., None])[..., 0], dtype=float)
        except np.linalg.LinAlgError:
            return np.full_like(v, np.nan)

    return acceleration


def _rates(robot: Robot, pi: Array, offsets: bool, steepness: float) -> Callable[[Array], Array]:
    """Return a function for the time derivative of states (N, nq + nv); NaN where they diverged."""
    acceleration = passive_acceleration(robot, pi, offsets=offsets, steepness=steepness)

    def rates(states: Array) -> Array:
        if not np.all(np.abs(states) < _DIVERGED**2):
            return np.full_like(states, np.nan)
        q, v = _configuration(robot, states), states[:, robot.nq :]
        return np.hstack([_pose_rate(robot, q, v), acceleration(q, v)])

    return rates


def _integrate(
    rates: Callable[[Array], Array], nv: int, state: Array, clock: Array, method: Method, **tolerances: float
) -> tuple[Array, float | None, str]:
    """States on the clock, then time and cause of a failure of the integration."""
    import scipy.integrate

    def rate(t: float, y: Array) -> Array:
        return rates(y[None])[0]

    def jacobian(t: float, y: Array) -> Array:
        steps = _DIFFERENCE * np.maximum(1.0, np.abs(y))
        out = rates(np.vstack([y, y + np.diag(steps)]))  # all of them in one batch
        return ((out[1:] - out[0]) / steps[:, None]).T

    states = [state]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a failure of the integrator is a result here
        if not np.all(np.isfinite(rate(0.0, state))):
            return np.array(states), 0.0, "the mass matrix is singular"
        options: dict[str, Any] = {"jac": jacobian} if method == "LSODA" else {}
        solver = getattr(scipy.integrate, method)(rate, 0.0, state, clock[-1], **options, **tolerances)
        for _ in range(_MAX_STEPS):
            before = float(solver.t)
            solver.step()
            if solver.status == "failed" or solver.t <= before:
                return np.array(states), before, "the integration step fell to zero"
            if not np.all(np.isfinite(solver.y)):
                return np.array(states), before, "the motion is no longer finite"
            if np.abs(solver.y[-nv:]).max() > _DIVERGED:
                return np.array(states), float(solver.t), f"a velocity exceeded {_DIVERGED:g} rad/s or m/s"
            passed = clock[len(states) :]
            passed = passed[passed <= solver.t]
            if passed.size:
                states += list(solver.dense_output()(passed).T)
            if solver.status == "finished":
                return np.array(states), None, ""
    return np.array(states), float(solver.t), f"the end was not reached in {_MAX_STEPS} integration steps"


def _pose(robot: Robot, start: ArrayLike | None) -> Array:
    """Initial pose (nq,)."""
    if start is not None:
        (q,), _, single = as_batch(robot, q=start)
        if not single:
            raise InvalidShape(f"a free fall starts from one pose, got {len(q)}")
        return q[0]
    pose = np.zeros(robot.nq)
    pose[robot.nq - robot.n :] = robot.home
    if robot.base == "floating":
        pose[6] = 1.0
    return pose


def _configuration(robot: Robot, states: Array) -> Array:
    """q of states, with the quaternion of a floating base normalised against drift."""
    q = states[:, : robot.nq].copy()
    if robot.base == "floating":
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q


def _pose_rate(robot: Robot, q: Array, v: Array) -> Array:
    """dq/dt: the velocities, except for a floating base, whose twist is given in its own frame."""
    if robot.base != "floating":
        return v
    u, w = q[:, 3:6], q[:, 6:7]
    linear, turn = v[:, :3], v[:, 3:6]
    return np.hstack(
        [
            linear + 2 * np.cross(u, np.cross(u, linear) + w * linear),  # rotated to world axes
            0.5 * (w * turn + np.cross(u, turn)),
            -0.5 * np.sum(u * turn, axis=1, keepdims=True),
            v[:, 6:],
        ]
    )
