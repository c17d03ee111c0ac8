"""A robot let go: does the model fall as a machine falls, losing energy, or does it fly apart?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch, as_parameters
from dynid.dynamics.functions import (
    forward_dynamics,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from dynid.errors import DataError, DynidError
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

__all__ = ["FreeFall", "Method", "free_fall", "passive_acceleration"]

Array = NDArray[np.float64]
Method = Literal["LSODA", "RK45"]
METHODS = ("LSODA", "RK45")

_TOO_FAST = 1e6  # rad/s or m/s: no machine moves so, and an integrator still counts there
_MOST_STEPS = 100_000  # a fall of some seconds takes hundreds of steps, a few ten thousand where it is stiff
_DIFFERENCE = 1e-7  # step of the Jacobian, relative: half the digits of a number
_COULOMB = (TermKind.COULOMB, TermKind.COULOMB_POSITIVE, TermKind.COULOMB_NEGATIVE)


@dataclass(frozen=True, eq=False)
class FreeFall:
    """Energy of a passive fall on an even clock: `time` (s), `kinetic` and `potential` (J), up to where it died.

    `died` is the time at which the integration could not go on, None where it reached `seconds`; `cause` says why.
    Energies count as risen, or kinetic energy as negative, from `tolerance` (J) on.
    """

    seconds: float
    time: Array
    kinetic: Array
    potential: Array
    tolerance: float
    died: float | None = None
    cause: str = ""

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy together (J)."""
        return self.kinetic + self.potential

    @property
    def rise(self) -> float:
        """How far the energy ever climbs above its lowest value so far (J)."""
        return float(np.max(self.energy - np.minimum.accumulate(self.energy)))

    @property
    def verdict(self) -> str:
        """What happens, in words."""
        if self.died is not None:
            return f"integration died at {self.died:.4g} s"
        if self.kinetic.min() < -self.tolerance:
            return f"kinetic energy turns negative at {self.time[np.argmax(self.kinetic < -self.tolerance)]:.4g} s"
        if self.rise > self.tolerance:
            return "energy rises"
        return "energy falls" if self.energy[0] - self.energy[-1] > self.tolerance else "energy stays"

    @property
    def ok(self) -> bool:
        """Whether a machine may do this: the energy falls, or stays where nothing brakes."""
        return self.verdict in ("energy falls", "energy stays")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "verdict": self.verdict,
            "seconds": self.seconds,
            "died": self.died,
            "cause": self.cause,
            "time": self.time.tolist(),
            "kinetic": self.kinetic.tolist(),
            "potential": self.potential.tolist(),
            "rise": self.rise,
            "tolerance": self.tolerance,
        }


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
    """Let the robot go from the pose `start` (nq,), by default zero, at rest and without torque.

    No joint limits and no collisions. The energy is kept at `samples` + 1 even times. Constant `offsets` of the
    drives act only if asked to, for they do work. Dry friction is tanh(`steepness` * speed). `tolerance` is relative
    to the largest energy that moves; what the integration leaves open, `rtol` of the potential energy, is added.
    Drive terms of the user's own act, but what energy they store is not known.
    A mass matrix that is not positive definite is solved all the same: what comes of it is what the fall shows.
    """
    if not (np.isfinite(seconds) and seconds > 0 and samples >= 1 and steepness > 0 and rtol > 0 and atol > 0):
        raise DataError("a free fall needs positive seconds, samples, steepness and integration tolerances")
    if method not in METHODS:
        raise DataError(f"method '{method}' is unknown: use {', '.join(METHODS)}")
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
    """Function of q (N, nq), v (N, nv) that gives the acceleration (N, nv) without drive torque.

    Not a number where the mass matrix is singular; one that is not positive definite is solved all the same.
    """
    pi = as_parameters(robot, parameters).copy()
    place = {name: i for i, name in enumerate(robot.parameter_names)}
    dry = [t for t in robot.drives if t.kind in _COULOMB]
    value = np.array([pi[place[t.name]] for t in dry])
    direction = np.array([t.direction for t in dry]).reshape(-1, robot.n)
    first = robot.nv - robot.n
    lower = np.array([0.0 if t.kind == TermKind.COULOMB_POSITIVE else -1.0 for t in dry])
    upper = np.array([0.0 if t.kind == TermKind.COULOMB_NEGATIVE else 1.0 for t in dry])
    for term in robot.drives:
        if term.kind in _COULOMB or (term.kind == TermKind.OFFSET and not offsets):
            pi[place[term.name]] = 0.0

    def acceleration(q: Array, v: Array) -> Array:
        speed = v[:, first:] @ direction.T
        tau = np.zeros_like(v)
        tau[:, first:] = -(value * np.clip(np.tanh(steepness * speed), lower, upper)) @ direction
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
    """Rate of states (N, nq + nv); not a number where they have run away."""
    acceleration = passive_acceleration(robot, pi, offsets=offsets, steepness=steepness)

    def rates(states: Array) -> Array:
        if not np.all(np.abs(states) < _TOO_FAST**2):
            return np.full_like(states, np.nan)
        q, v = _configuration(robot, states), states[:, robot.nq :]
        return np.hstack([_pose_rate(robot, q, v), acceleration(q, v)])

    return rates


def _integrate(
    rates: Callable[[Array], Array], nv: int, state: Array, clock: Array, method: Method, **tolerances: float
) -> tuple[Array, float | None, str]:
    """States on the clock as far as they go; when and why they went no further."""
    import scipy.integrate

    def rate(t: float, y: Array) -> Array:
        return rates(y[None])[0]

    def jacobian(t: float, y: Array) -> Array:
        steps = _DIFFERENCE * np.maximum(1.0, np.abs(y))
        out = rates(np.vstack([y, y + np.diag(steps)]))  # all of them in one batch
        return ((out[1:] - out[0]) / steps[:, None]).T

    states = [state]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the integrator's own words on a failure, which is our result
        if not np.all(np.isfinite(rate(0.0, state))):
            return np.array(states), 0.0, "the mass matrix is singular"
        options: dict[str, Any] = {"jac": jacobian} if method == "LSODA" else {}
        solver = getattr(scipy.integrate, method)(rate, 0.0, state, clock[-1], **options, **tolerances)
        for _ in range(_MOST_STEPS):
            before = float(solver.t)
            solver.step()
            if solver.status == "failed" or solver.t <= before:
                return np.array(states), before, "the integration step fell to zero"
            if not np.all(np.isfinite(solver.y)):
                return np.array(states), before, "the motion is no longer a finite number"
            if np.abs(solver.y[-nv:]).max() > _TOO_FAST:
                return np.array(states), float(solver.t), f"a speed passed {_TOO_FAST:g} rad/s or m/s"
            passed = clock[len(states) :]
            passed = passed[passed <= solver.t]
            if passed.size:
                states += list(solver.dense_output()(passed).T)
            if solver.status == "finished":
                return np.array(states), None, ""
    return np.array(states), float(solver.t), f"{_MOST_STEPS} integration steps did not bring it further"


def _pose(robot: Robot, start: ArrayLike | None) -> Array:
    if start is not None:
        (q,), _, single = as_batch(robot, q=start)
        if not single:
            raise DataError(f"a free fall starts from one pose, got {len(q)}")
        return q[0]
    zero = np.zeros(robot.nq)
    if robot.base == "floating":
        zero[6] = 1.0
    return zero


def _configuration(robot: Robot, states: Array) -> Array:
    """q of states: the quaternion of a floating base drifts from unit length while it is integrated."""
    q = states[:, : robot.nq].copy()
    if robot.base == "floating":
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q


def _pose_rate(robot: Robot, q: Array, v: Array) -> Array:
    """dq/dt: the speeds, but for a floating base, whose twist is given in its own frame."""
    if robot.base != "floating":
        return v
    u, w = q[:, 3:6], q[:, 6:7]
    linear, turn = v[:, :3], v[:, 3:6]
    return np.hstack(
        [
            linear + 2 * np.cross(u, np.cross(u, linear) + w * linear),  # turned to world axes
            0.5 * (w * turn + np.cross(u, turn)),
            -0.5 * np.sum(u * turn, axis=1, keepdims=True),
            v[:, 6:],
        ]
    )
