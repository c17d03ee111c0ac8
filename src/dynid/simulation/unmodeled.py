"""What a real machine has and its rigid model has not: stiction, ripple and joints that give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

__all__ = ["UnmodeledEffects", "hanging", "link_side", "motor_columns", "plant_rates", "rotor_inertia", "with_effects"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_LINK_KINDS = (TermKind.SPRING, TermKind.CUSTOM)
_POSES = 16
_HANG_STEPS = 200


@dataclass(frozen=True, eq=False)
class UnmodeledEffects:
    """Effects of the machine that no rigid model holds, one number for all joints or one a joint; all off by default.

    stiction (N m): friction beyond Coulomb's, stiction exp(-(v/stribeck_speed)^2) against the motion, with the slope of
    Coulomb friction near rest. ripple (N m): torque ripple sin(harmonics q + phase) that the drive must overcome.
    stiffness (N m/rad) and damping (N m s/rad): a spring between each motor and its link, infinite where there is none.
    A flexible joint's encoder, drive friction, stiction and ripple are on its motor, whose inertia (kg m2, seen from
    the joint) is the robot's rotor inertia unless `motor_inertia` is given.
    """

    stiction: ArrayLike = 0.0
    stribeck_speed: ArrayLike = 0.05
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
        self._check("stribeck_speed", lambda x: (x > 0) & np.isfinite(x), "finite and positive")
        self._check("stiffness", lambda x: x > 0, "positive, infinite for a rigid joint")
        if self.motor_inertia is not None:
            self._check("motor_inertia", lambda x: (x > 0) & np.isfinite(x), "finite and positive")

    def _check(self, name: str, good: Any, words: str) -> None:
        try:
            value = np.asarray(getattr(self, name), dtype=float)
        except (TypeError, ValueError):
            value = np.array(np.nan)
        if value.ndim > 1 or not np.all(good(value)):
            raise DataError(f"{name} needs one number or one a joint, {words}")

    def of_joints(self, name: str, n: int) -> Array:
        """One of the effects' numbers as (n,)."""
        value = np.asarray(getattr(self, name), dtype=float)
        if value.shape not in ((), (n,)):
            raise DataError(f"{name} needs one number or one a joint ({n}), got shape {value.shape}")
        return np.broadcast_to(value, (n,)).copy()

    def flexible(self, n: int) -> NDArray[np.bool_]:
        """Which joints give (n,)."""
        return np.isfinite(self.of_joints("stiffness", n))


class _Term(NamedTuple):
    """A drive term of the simulated machine: its shaft, and the numbers that its kind reads."""

    kind: int
    value: float
    shaft: tuple[tuple[int, float], ...]
    slope: float = 0.0
    rest: float = 0.0


def motor_columns(effects: UnmodeledEffects | None, n: int) -> Index:
    """Where the state holds each joint's motor (n,): with its link, or after all links where the joint gives."""
    motor = np.arange(n, dtype=np.int64)
    if effects is not None:
        flexible = effects.flexible(n)
        motor[flexible] = n + np.arange(np.count_nonzero(flexible))
    return motor


def link_side(robot: Robot) -> Robot:
    """The robot without what its drives have: friction, rotors and offsets."""
    return replace(robot, drives=tuple(t for t in robot.drives if t.kind in _LINK_KINDS))


def rotor_inertia(robot: Robot, effects: UnmodeledEffects) -> Array:
    """Inertia of the motors (n, n) as the joints see it: the robot's rotors, or those given where joints give."""
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


def with_effects(plant: tuple[Any, Array, Any, Array], robot: Robot, effects: UnmodeledEffects, slope: float) -> Any:
    """(tree, inertias, drives, values) of the machine: a state of links, then motors, and the effects as drive terms.

    `slope` (s/rad) is that of the stiction of joints whose own Coulomb friction has none; 0 is sharp.
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
            steepness = own.get(i, slope) if slope else 0.0
            terms.append(_Term(kinds.STRIBECK, at["stiction"], ((m, 1.0),), steepness, at["stribeck_speed"]))
        if at["ripple"]:
            terms.append(_Term(kinds.RIPPLE, at["ripple"], ((m, 1.0),), at["harmonics"], at["phase"]))
    return tree, inertias, _appended(drives._replace(joint=joint), terms), np.append(values, [t.value for t in terms])


_NUMBERS = ("stiction", "stribeck_speed", "ripple", "harmonics", "phase", "stiffness", "damping")


def plant_rates(plant: tuple[Any, Array, Any, Array], robot: Robot, motor: Index, path: Array) -> tuple[float, float]:
    """How fast friction at its steepest stops a shaft (1/s) and the fastest vibration (rad/s), over poses of the path.

    Both are 0 where a mass matrix is not positive definite; a flexible joint without motor inertia is refused.
    """
    from dynid.dynamics.kernels import drives as kinds
    from dynid.dynamics.kernels.mass import mass_matrix

    tree, inertias, drives, values = plant
    size = max(robot.n, int(motor.max()) + 1)
    q = np.ascontiguousarray(path[:: max(1, len(path) // _POSES)])
    M = np.empty((len(q), size, size))
    mass_matrix(tree, inertias, drives, values, q, 0, len(q), M)
    _check_motors(robot, motor, M[0])
    F, K = np.zeros((2, size, size))
    for t, kind in enumerate(drives.kind):
        shaft = slice(drives.start[t], drives.start[t + 1])
        d = np.zeros(size)
        d[drives.joint[shaft]] = drives.weight[shaft]
        part = values[t] * np.outer(d, d)
        if kind in (kinds.VISCOUS, kinds.VISCOUS_POSITIVE, kinds.VISCOUS_NEGATIVE):
            F += part - np.diag(np.diag(part)) if drives.cross[t] else part
        elif kinds.is_dry.py_func(kind):
            F += drives.slope[t] * part
        elif kind == kinds.ELASTIC:
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
    """Link positions (n,) that hang still in their springs below motors at q."""
    flexible = effects.flexible(robot.n)
    if not flexible.any():
        return q.copy()
    give = np.where(flexible, 1.0 / effects.of_joints("stiffness", robot.n), 0.0)
    link, zero, x = link_side(robot), np.zeros(robot.n), q.copy()
    for _ in range(_HANG_STEPS):
        old, x = x, q - give * inverse_dynamics(link, x, zero, zero)[-robot.n :]
        if np.abs(x - old).max() <= 1e-13 * (1 + np.abs(x).max()):
            return x
    raise DataError("the springs are too soft to hold the robot against gravity where it begins")


def _replaced(effects: UnmodeledEffects, flexible: NDArray[np.bool_], joints: Any) -> bool:
    """Whether a rotor on these joints gives way to the motor inertia given."""
    return effects.motor_inertia is not None and bool(np.any(flexible[joints]))


def _check_motors(robot: Robot, motor: Index, M: Array) -> None:
    for i in np.flatnonzero(motor >= robot.n):
        if not M[motor[i], motor[i]] > 0:
            raise DataError(
                f"'{robot.coordinates[i]}' gives but its motor has no inertia: add a rotor inertia to the robot or "
                "give motor_inertia"
            )


def _appended(drives: Any, terms: list[_Term]) -> Any:
    """The drive arrays with more terms at their end."""
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
