"""Effects of real robots that a rigid model does not contain: stiction, torque ripple and flexible joints.

    M(q) q'' + bias = k (theta - q) + d (theta' - q')
    B theta'' + friction + k (theta - q) + d (theta' - q') = torque

Source: Spong, Modeling and Control of Elastic Joint Robots (1987), whose model has no kinetic coupling of motor and
link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import Infeasible, InvalidShape, InvalidValue, MissingArgument
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.simulation.plant import damping

__all__ = ["UnmodeledEffects", "hanging", "link_side", "motor_columns", "plant_rates", "rotor_inertia", "with_effects"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_LINK_KINDS = (TermKind.SPRING, TermKind.CUSTOM)
_POSES = 16
_HANG_STEPS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class UnmodeledEffects:
    """Effects that a rigid model does not contain. Each is one number or one per joint, and off by default.

    Attributes
    ----------
    stiction : float or array of shape (n,)
        Stiction torque s (N m or N) beyond Coulomb friction: s exp(-(v / stribeck_velocity)^2) sign(v), with the slope
        of Coulomb friction near zero velocity.
    stribeck_velocity : float or array of shape (n,)
        Stribeck velocity (rad/s or m/s).
    ripple : float or array of shape (n,)
        Amplitude (N m or N) of the torque ripple sin(harmonics q + phase), which the drive must overcome.
    harmonics : float or array of shape (n,)
        Ripple periods per revolution (rad of phase per rad or m).
    phase : float or array of shape (n,)
        Ripple phase (rad).
    stiffness : float or array of shape (n,)
        Joint stiffness (N m/rad or N/m) between motor and link; infinite for a rigid joint.
    damping : float or array of shape (n,)
        Damping (N m s/rad or N s/m) of a flexible joint.
    motor_inertia : float, array of shape (n,) or None
        Motor inertia (kg m2 or kg, on the joint side) of flexible joints. By default the robot's rotor inertia. The
        encoder, drive friction, stiction and ripple of a flexible joint act on its motor.

    Raises
    ------
    DataError
        If a value is out of range.

    Examples
    --------
    >>> import dynid
    >>> dynid.simulation.UnmodeledEffects(stiction=2.0, stiffness=1e4).flexible(2)
    array([ True,  True])
    """

    stiction: ArrayLike = 0.0
    stribeck_velocity: ArrayLike = 0.05
    ripple: ArrayLike = 0.0
    harmonics: ArrayLike = 1.0
    phase: ArrayLike = 0.0
    stiffness: ArrayLike = np.inf
    damping: ArrayLike = 0.0
    motor_inertia: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("stiction", "damping"):
            self._check(name, lambda x: (x >= 0) & np.isfinite(x), "finite and not negative")
        for name in ("ripple", "harmonics", "phase"):
            self._check(name, np.isfinite, "finite")
        self._check("stribeck_velocity", lambda x: (x > 0) & np.isfinite(x), "finite and positive")
        self._check("stiffness", lambda x: x > 0, "positive, infinite for a rigid joint")
        if self.motor_inertia is not None:
            self._check("motor_inertia", lambda x: (x > 0) & np.isfinite(x), "finite and positive")

    def _check(self, name: str, good: Any, words: str) -> None:
        """Refuse values of a field that are not `good`."""
        try:
            value = np.asarray(getattr(self, name), dtype=float)
        except (TypeError, ValueError):
            value = np.array(np.nan)
        if value.ndim > 1 or not np.all(good(value)):
            raise InvalidValue(f"{name} needs one number, or one per joint, {words}")

    def of_joints(self, name: str, n: int) -> Array:
        """A field as an array of shape (n,)."""
        value = np.asarray(getattr(self, name), dtype=float)
        if value.shape not in ((), (n,)):
            raise InvalidShape(f"{name} needs one number, or one per joint ({n}), got shape {value.shape}")
        return np.broadcast_to(value, (n,)).copy()

    def flexible(self, n: int) -> NDArray[np.bool_]:
        """Boolean mask (n,) of the flexible joints."""
        return np.isfinite(self.of_joints("stiffness", n))


class _Term(NamedTuple):
    """A drive term of the simulation: its shaft, and the values of its kind."""

    kind: int
    value: float
    shaft: tuple[tuple[int, float], ...]
    slope: float = 0.0
    rest: float = 0.0


def motor_columns(effects: UnmodeledEffects | None, n: int) -> Index:
    """Column of each motor in the state (n,): that of its link, or after all links for a flexible joint."""
    motor = np.arange(n, dtype=np.int64)
    if effects is not None:
        flexible = effects.flexible(n)
        motor[flexible] = n + np.arange(np.count_nonzero(flexible))
    return motor


def link_side(robot: Robot) -> Robot:
    """The robot without the terms on the motor side: friction, rotor inertia and offsets."""
    return replace(robot, drives=tuple(t for t in robot.drives if t.kind in _LINK_KINDS))


def rotor_inertia(robot: Robot, effects: UnmodeledEffects) -> Array:
    """Motor inertia (n, n) on the joint side: the robot's rotors, or the given ones of flexible joints."""
    n = robot.n
    flexible = effects.flexible(n)
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    out = np.zeros((n, n))
    for term in robot.drives:
        if term.kind == TermKind.INERTIA and not _replaced(effects, flexible, np.flatnonzero(term.direction)):
            part = value[term.name] * np.outer(term.direction, term.direction)
            out += part - np.diag(np.diag(part)) if term.cross_only else part
    if effects.motor_inertia is not None:
        out += np.diag(np.where(flexible, effects.of_joints("motor_inertia", n), 0.0))
    return out


def with_effects(plant: tuple[Any, Array, Any, Array], robot: Robot, effects: UnmodeledEffects, slopes: Array) -> Any:
    """(tree, inertias, drives, values) with a state of links, then motors, and the effects as drive terms.

    `slopes` (n,) in s/rad or s/m regularise the stiction of joints without Coulomb friction; 0 is exact.
    """
    from dynid.dynamics.kernels import drives as kinds

    tree, inertias, drives, values = plant
    n, motor, flexible = robot.n, motor_columns(effects, robot.n), effects.flexible(robot.n)
    values, joint = values.copy(), drives.joint.copy()
    for t, kind in enumerate(drives.kind):
        shaft = slice(drives.start[t], drives.start[t + 1])
        if kind == kinds.INERTIA and _replaced(effects, flexible, joint[shaft]):
            values[t] = 0.0
        if kind not in (kinds.SPRING, kinds.TABLE):
            joint[shaft] = motor[drives.joint[shaft]]
    own = {t.owner: t.slope for t in robot.drives if t.is_coulomb and t.slope and not t.motor}
    number = {name: effects.of_joints(name, n) for name in _NUMBERS}
    terms: list[_Term] = []
    for i in range(n):
        m, at = int(motor[i]), {name: float(x[i]) for name, x in number.items()}
        if flexible[i]:
            spring = ((m, 1.0), (i, -1.0))
            terms.append(_Term(kinds.ELASTIC, at["stiffness"], spring))
            terms.append(_Term(kinds.VISCOUS, at["damping"], spring))
            if effects.motor_inertia is not None:
                terms.append(_Term(kinds.INERTIA, float(effects.of_joints("motor_inertia", n)[i]), ((m, 1.0),)))
        if at["stiction"]:
            steepness = own.get(i, float(slopes[i])) if slopes[i] else 0.0
            terms.append(_Term(kinds.STRIBECK, at["stiction"], ((m, 1.0),), steepness, at["stribeck_velocity"]))
        if at["ripple"]:
            terms.append(_Term(kinds.RIPPLE, at["ripple"], ((m, 1.0),), at["harmonics"], at["phase"]))
    return tree, inertias, _appended(drives._replace(joint=joint), terms), np.append(values, [t.value for t in terms])


_NUMBERS = ("stiction", "stribeck_velocity", "ripple", "harmonics", "phase", "stiffness", "damping")


def plant_rates(plant: tuple[Any, Array, Any, Array], robot: Robot, motor: Index, path: Array) -> tuple[float, float]:
    """Largest decay rate by friction (1/s) and highest vibration frequency (rad/s), over positions along the path.

    Both are 0 if a mass matrix is not positive definite. A flexible joint without motor inertia is refused.
    """
    from dynid.dynamics.kernels import drives as kinds
    from dynid.dynamics.kernels.mass import mass_matrix

    tree, inertias, drives, values = plant
    size = max(robot.n, int(motor.max()) + 1)
    q = np.ascontiguousarray(path[:: max(1, len(path) // _POSES)])
    M = np.empty((len(q), size, size))
    mass_matrix(tree, inertias, drives, values, q, 0, len(q), M)
    _check_motors(robot, motor, M[0])
    F, K = damping(drives, values, size), np.zeros((size, size))
    for t, kind in enumerate(drives.kind):
        shaft = slice(drives.start[t], drives.start[t + 1])
        d = np.zeros(size)
        d[drives.joint[shaft]] = drives.weight[shaft]
        part = values[t] * np.outer(d, d)
        if kind == kinds.ELASTIC:
            K += part
        elif kind == kinds.RIPPLE:
            K += np.abs(drives.slope[t] * part)
    try:
        half = np.linalg.inv(np.linalg.cholesky(M))
    except np.linalg.LinAlgError:
        return 0.0, 0.0
    turned = half.transpose(0, 2, 1)
    decay = np.linalg.eigvalsh(half @ F @ turned).max(initial=0.0)
    return float(decay), float(np.sqrt(np.linalg.eigvalsh(half @ K @ turned).max(initial=0.0)))


def hanging(robot: Robot, effects: UnmodeledEffects, q: Array) -> Array:
    """Link positions (n,) in static equilibrium with motors at q."""
    flexible = effects.flexible(robot.n)
    if not flexible.any():
        return q.copy()
    give = np.where(flexible, 1.0 / effects.of_joints("stiffness", robot.n), 0.0)
    link, zero, x = link_side(robot), np.zeros(robot.n), q.copy()
    for _ in range(_HANG_STEPS):
        old, x = x, q - give * inverse_dynamics(link, x, zero, zero)[-robot.n :]
        if np.abs(x - old).max() <= 1e-13 * (1 + np.abs(x).max()):
            return x
    raise Infeasible("the joints are too soft to hold the robot against gravity at its initial position", "stiffness")


def _replaced(effects: UnmodeledEffects, flexible: NDArray[np.bool_], joints: Any) -> bool:
    """Whether the given motor inertia replaces a rotor of these joints."""
    return effects.motor_inertia is not None and bool(np.any(flexible[joints]))


def _check_motors(robot: Robot, motor: Index, M: Array) -> None:
    """Refuse flexible joints whose motor has no inertia."""
    for i in np.flatnonzero(motor >= robot.n):
        if not M[motor[i], motor[i]] > 0:
            raise MissingArgument(
                f"'{robot.coordinates[i]}' is flexible, but its motor has no inertia: give the robot a rotor inertia, "
                "or give motor_inertia",
                "motor_inertia",
            )


def _appended(drives: Any, terms: list[_Term]) -> Any:
    """The drive arrays with the terms appended."""
    if not terms:
        return drives
    lengths = [len(t.shaft) for t in terms]
    return drives._replace(
        kind=np.append(drives.kind, [t.kind for t in terms]),
        column=np.append(drives.column, np.full(len(terms), -1)),
        start=np.append(drives.start, drives.start[-1] + np.cumsum(lengths)),
        joint=np.append(drives.joint, [j for t in terms for j, _ in t.shaft]),
        weight=np.append(drives.weight, [w for t in terms for _, w in t.shaft]),
        rest=np.append(drives.rest, [t.rest for t in terms]),
        cross=np.append(drives.cross, np.zeros(len(terms), np.int64)),
        slope=np.append(drives.slope, [t.slope for t in terms]),
    )
