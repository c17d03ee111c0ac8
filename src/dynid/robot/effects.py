"""Effects beside bodies and plain friction, as drive terms by name: what the search for causes finds, a model can have.

An effect is written `name`, `name=joints` or `name=joints:value`: `load-friction` for all joints, `ripple=elbow:30`
for a torque of 30 periods per revolution, `coupled-friction=joint6:joint5` for friction from the velocity of another
joint. Several joints are separated by semicolons, and may be patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError, did_you_mean
from dynid.patterns import matching_names
from dynid.robot.drives import DriveTerm
from dynid.robot.mechanism import Mechanism
from dynid.robot.spatial import skew

__all__ = ["EFFECTS", "EffectColumn", "EffectKind", "body_torques", "effect_terms"]

Array = NDArray[np.float64]


# Torques of rigid bodies over many samples in plain NumPy: the load that friction depends on.
#
# Newton and Euler's equations of each body about the origin of its link, in the base frame. The kernels of
# `dynid.dynamics` are far faster, but a robot does not depend on them.


def body_torques(robot: Mechanism, q: Array, v: Array, a: Array) -> Array:
    """Torques (N, n) of the bodies of a tree on a fixed base.

    Parameters
    ----------
    robot : Mechanism
        The tree; its drives do not count.
    q, v, a : ndarray, shape (N, n)
        Positions, velocities and accelerations of its joints.

    Returns
    -------
    ndarray, shape (N, n)
    """
    count = len(q)
    start = np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3))
    frames = [start]
    still = np.zeros((count, 3))
    motions = [(still, still, still - robot.gravity)]
    axes: list[tuple[Array, Array]] = []
    for joint in robot.joints:
        ratio, offset, leader = (
            (1.0, 0.0, joint.name)
            if joint.mimic is None
            else (joint.mimic.ratio, joint.mimic.offset, joint.mimic.leader)
        )
        k = robot.tree_coordinates.index(leader)
        x, rate, change = ratio * q[:, k] + offset, (ratio * v[:, k])[:, None], (ratio * a[:, k])[:, None]
        (R, p), (w, dw, dv) = frames[joint.parent], motions[joint.parent]
        place = R @ joint.placement[:3, :3]
        origin = p + R @ joint.placement[:3, 3]
        z = place @ joint.axis
        dv = _moved(dv, w, dw, origin - p)
        if joint.kind == "prismatic":
            dv = _moved(dv, w, dw, x[:, None] * z) + 2 * np.cross(w, rate * z) + change * z
            end = origin + x[:, None] * z
        else:
            dw = dw + change * z + np.cross(w, rate * z)
            w = w + rate * z
            end, place = origin, place @ _turned(joint.axis, x)
        tip = end + place @ joint.mount[:3, 3]
        frames.append((place @ joint.mount[:3, :3], tip))
        motions.append((w, dw, _moved(dv, w, dw, tip - end)))
        axes.append((z, origin))
    return _projected(robot, frames, motions, axes)


def _projected(
    robot: Mechanism,
    frames: list[tuple[Array, Array]],
    motions: list[tuple[Array, Array, Array]],
    axes: list[tuple[Array, Array]],
) -> Array:
    """Forces and moments of all bodies, summed from the tips to the base, on the axes of the joints."""
    wrenches = [_wrench(robot.links[i].inertia, frames[i][0], motions[i]) for i in range(len(robot.links))]
    torques = np.zeros((len(frames[0][1]), len(robot.tree_coordinates)))
    for i in range(len(robot.joints), 0, -1):
        joint, (z, origin) = robot.joints[i - 1], axes[i - 1]
        force, moment = wrenches[i]
        arm = frames[i][1] - origin
        about = moment + np.cross(arm, force)
        ratio, leader = (1.0, joint.name) if joint.mimic is None else (joint.mimic.ratio, joint.mimic.leader)
        along = about if joint.kind == "revolute" else force
        torques[:, robot.tree_coordinates.index(leader)] += ratio * np.sum(along * z, axis=1)
        before, turning = wrenches[joint.parent]
        wrenches[joint.parent] = (
            before + force,
            turning + moment + np.cross(frames[i][1] - frames[joint.parent][1], force),
        )
    return torques


def _wrench(inertia: Array, R: Array, motion: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Force and moment (N, 3) about the origin of a link that move its body."""
    w, dw, dv = motion
    mass, moment, (xx, xy, yy, xz, yz, zz) = inertia[0], inertia[1:4], inertia[4:]
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    h, inner = R @ moment, R @ tensor @ np.swapaxes(R, 1, 2)
    force = mass * dv + np.cross(dw, h) + np.cross(w, np.cross(w, h))
    spin = (inner @ w[:, :, None])[:, :, 0]
    return force, (inner @ dw[:, :, None])[:, :, 0] + np.cross(w, spin) + np.cross(h, dv)


def _moved(dv: Array, w: Array, dw: Array, r: Array) -> Array:
    """Acceleration (N, 3) of a point of a body at r from one with acceleration dv."""
    return np.asarray(dv + np.cross(dw, r) + np.cross(w, np.cross(w, r)))


def _turned(axis: Array, angle: Array) -> Array:
    """Rotations (N, 3, 3) about an axis."""
    K, angle = skew(axis), angle[:, None, None]
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K))


_ROTATES, _SLIDES = 0, 1


@dataclass(frozen=True)
class Law:
    """A column of an effect: its symbol, the units on a joint that rotates and on one that slides, its function.

    The function gets positions, velocities and accelerations (N,) of the joint, the order of a ripple, the same
    signals of the other joint, and the load (N,).
    """

    symbol: str
    units: tuple[str, str]
    function: Callable[..., Array]
    dissipates: bool = False


@dataclass(frozen=True)
class EffectKind:
    """An effect that a robot can be given by name.

    Attributes
    ----------
    name, words : str
        Its name in options and files, and what it is.
    takes : {"", "number", "joint"}
        What follows the colon.
    laws : tuple of Law
        Its columns, one parameter each.
    """

    name: str
    words: str
    takes: str
    laws: tuple[Law, ...]


_TORQUE, _NONE = ("N m", "N"), ("N m/(N m)", "N/N")
_DAMPING, _INERTIA = ("N m s/rad", "N s/m"), ("kg m2", "kg")

EFFECTS = {
    kind.name: kind
    for kind in (
        EffectKind(
            "load-friction",
            "Coulomb friction that grows with the torque of the a-priori bodies",
            "",
            (Law("fl", _NONE, lambda q, v, a, n, other, load: np.abs(load) * np.sign(v), dissipates=True),),
        ),
        EffectKind(
            "quadratic-friction",
            "friction that grows with the square of the velocity",
            "",
            (Law("fq", ("N m s2/rad2", "N s2/m2"), lambda q, v, a, n, other, load: v * np.abs(v), dissipates=True),),
        ),
        EffectKind(
            "ripple",
            "a torque of so many periods per revolution (cogging, gear teeth)",
            "number",
            (
                Law("rs", _TORQUE, lambda q, v, a, n, other, load: np.sin(n * q)),
                Law("rc", _TORQUE, lambda q, v, a, n, other, load: np.cos(n * q)),
            ),
        ),
        EffectKind(
            "counterbalance",
            "a torque that follows sin q and cos q",
            "",
            (
                Law("bs", _TORQUE, lambda q, v, a, n, other, load: np.sin(q)),
                Law("bc", _TORQUE, lambda q, v, a, n, other, load: np.cos(q)),
            ),
        ),
        EffectKind(
            "spring",
            "a torque proportional to the position, with an offset for its rest",
            "",
            (
                Law("ks", ("N m/rad", "N/m"), lambda q, v, a, n, other, load: q),
                Law("kr", _TORQUE, lambda q, v, a, n, other, load: np.ones_like(q)),
            ),
        ),
        EffectKind(
            "coupled-friction",
            "viscous and Coulomb friction from the velocity of another joint",
            "joint",
            (
                Law("fvo", _DAMPING, lambda q, v, a, n, other, load: other[1]),
                Law("fco", _TORQUE, lambda q, v, a, n, other, load: np.sign(other[1])),
            ),
        ),
        EffectKind(
            "coupled-inertia",
            "inertia of a rotor that turns with another joint as well",
            "joint",
            (Law("Io", _INERTIA, lambda q, v, a, n, other, load: other[2]),),
        ),
    )
}


@dataclass(frozen=True, eq=False)
class EffectColumn:
    """The torques of an effect per unit of one parameter: the column of a drive term.

    Attributes
    ----------
    effect : str
        Name of the effect.
    law : int
        Number of the column among those of the effect.
    joint : int
        Joint of the tree on which it acts.
    order : float
        Periods per revolution of a ripple.
    other : int
        The other joint of a coupled effect; -1 for none.
    bodies : Mechanism or None
        The a-priori bodies whose torque is the load.
    """

    effect: str
    law: int
    joint: int
    order: float = 0.0
    other: int = -1
    bodies: Mechanism | None = None

    @cached_property
    def _law(self) -> Law:
        return EFFECTS[self.effect].laws[self.law]

    @property
    def dissipates(self) -> bool:
        """Whether a coefficient that is not negative only takes energy away."""
        return self._law.dissipates

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (N, n) per unit of the parameter."""
        j, k = self.joint, self.other
        other = None if k < 0 else (q[:, k], v[:, k], a[:, k])
        out = np.zeros(np.shape(v))
        out[:, j] = self._law.function(q[:, j], v[:, j], a[:, j], self.order, other, self._load(q, v, a))
        if self.effect == "coupled-inertia":
            out[:, k] = a[:, j]  # the mass matrix is symmetric
        return out

    def slope(self, q: Array, v: Array, a: Array) -> Array:
        """Derivative (N, n, n) of the torques with respect to the accelerations, as far as they are not affine."""
        out = np.zeros((*np.shape(v), v.shape[1]))
        if self.bodies is None:
            return out
        j, bodies = self.joint, self.bodies
        side = np.sign(body_torques(bodies, q, v, a)[:, j]) * np.sign(v[:, j])
        still = body_torques(bodies, q, v, 0.0 * a)[:, j]
        for k, unit in enumerate(np.eye(v.shape[1])):
            out[:, j, k] = side * (body_torques(bodies, q, v, unit + 0.0 * a)[:, j] - still)
        return out

    def _load(self, q: Array, v: Array, a: Array) -> Array | None:
        """Torque (N,) of the a-priori bodies in the joint."""
        return None if self.bodies is None else body_torques(self.bodies, q, v, a)[:, self.joint]

    def restricted(self, free: NDArray[np.bool_], bodies: Mechanism | None) -> EffectColumn | None:
        """The same where only some joints are free, with its bodies locked alike; None where it is gone."""
        if not free[self.joint] or (self.other >= 0 and not free[self.other]):
            return None
        number = np.cumsum(free) - 1
        other = int(number[self.other]) if self.other >= 0 else -1
        return replace(self, joint=int(number[self.joint]), other=other, bodies=bodies)

    def to_dict(self) -> dict[str, Any]:
        """The column as plain data; the a-priori bodies as their parameters."""
        out = {name: getattr(self, name) for name in ("effect", "law", "joint", "order", "other")}
        return out | {"bodies": None if self.bodies is None else self.bodies.parameters.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], robot: Mechanism) -> EffectColumn:
        """A column from what `to_dict` returned; `robot` has no drives."""
        kind = EFFECTS.get(data["effect"])
        if kind is None or not 0 <= data["law"] < len(kind.laws):
            raise ModelError(f"the effect '{data['effect']}' is unknown", "effect", code="unknown_name")
        bodies = None if data["bodies"] is None else robot.with_parameters(data["bodies"])
        joint, other = int(data["joint"]), int(data["other"])
        if not 0 <= joint < robot.n or not -1 <= other < robot.n:
            raise ModelError(
                f"the effect '{data['effect']}' acts on a joint that the robot does not have", "effect", code="mismatch"
            )
        return cls(data["effect"], int(data["law"]), joint, float(data["order"]), other, bodies)


def effect_terms(robot: Mechanism, text: str) -> tuple[DriveTerm, ...]:
    """Drive terms of an effect as it is written in options and files."""
    name, equals, rest = text.partition("=")
    kind = EFFECTS.get(name)
    if kind is None:
        hint = did_you_mean(name, EFFECTS) or f": use {', '.join(EFFECTS)}"
        raise ModelError(f"effect '{name}' is unknown{hint}", "effect", code="unknown_name")
    where, colon, value = rest.rpartition(":") if kind.takes else (rest, "", "")
    if kind.takes and not colon:
        what = {"number": "the periods per revolution", "joint": "the other joint"}[kind.takes]
        raise ModelError(
            f"effect '{text}' needs {what}: {name}=JOINT:{kind.takes.upper()}", "effect", code="missing_argument"
        )
    if name == "load-friction":
        _check_load(robot)
    joints = _joints(robot, where.split(";"), text) if equals else list(robot.coordinates)
    order = _order(value, text) if kind.takes == "number" else 0.0
    other = _joints(robot, [value], text)[0] if kind.takes == "joint" else ""
    bodies = replace(robot.tree, drives=()) if name == "load-friction" else None
    return tuple(
        term for joint in joints if joint != other for term in _terms(robot, kind, joint, order, other, bodies)
    )


def _terms(
    robot: Mechanism, kind: EffectKind, joint: str, order: float, other: str, bodies: Mechanism | None
) -> list[DriveTerm]:
    """The terms of an effect on one joint."""
    names = robot.tree_coordinates
    j, k = names.index(joint), names.index(other) if other else -1
    slides = next(x for x in robot.joints if x.name == joint).kind == "prismatic"
    tail = f"{order:g}" if order else f"_{other}" if other else ""
    return [
        DriveTerm(
            f"{law.symbol}{tail}",
            joint,
            np.zeros(len(names)),
            j,
            function=EffectColumn(kind.name, number, j, order, k, bodies),
            unit=law.units[_SLIDES if slides else _ROTATES],
        )
        for number, law in enumerate(kind.laws)
    ]


def _joints(robot: Mechanism, patterns: Sequence[str], text: str) -> list[str]:
    """Joints that patterns name."""
    found: list[str] = []
    for pattern in patterns:
        fitting = matching_names(pattern, robot.coordinates)
        if not fitting:
            raise ModelError(
                f"effect '{text}': no joint fits '{pattern}', they are {', '.join(robot.coordinates)}",
                "effect",
                code="unknown_name",
            )
        found += fitting
    return list(dict.fromkeys(found))


def _order(value: str, text: str) -> float:
    """Periods per revolution."""
    try:
        order = float(value)
    except ValueError:
        order = math.nan
    if not math.isfinite(order) or order <= 0:
        raise ModelError(
            f"effect '{text}': the periods per revolution must be a positive number, got '{value:.20}'",
            "effect",
            code="invalid_value",
        )
    return order


def _check_load(robot: Mechanism) -> None:
    """Raise an error where the torque of the a-priori bodies is not the load of a joint."""
    if robot.loops or robot.base == "floating":
        what = "closed loops" if robot.loops else "a floating base"
        raise ModelError(
            f"robot '{robot.name}' has {what}: friction of the load needs a tree on a fixed base",
            "effect",
            code="not_applicable",
        )
    if not any(p.symbol == "m" and x > 0 for p, x in zip(robot.layout, robot.parameters, strict=True)):
        raise ModelError(
            f"robot '{robot.name}' has no masses: friction of the load needs a-priori bodies", code="missing_data"
        )
