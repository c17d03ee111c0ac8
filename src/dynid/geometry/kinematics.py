"""Placements of a robot's frames for many postures, with exact derivatives in the geometric unknowns.

With the joint frame (R, p) on its parent and its errors t (translation), w (rotation) and d (position of the joint),

    p' = p + R B t,    R' = R exp(B (w + C m)),    placed by the joint at    q' = q + d,    d = zero + g q + ... + c M

where M is the gravity moment of the carried bodies about the joint axis, m across it, and B the axes of the joint.
Every unknown moves all that the joint carries by a twist, and the twist is its derivative: exact at any size of error.

Moments are those of the robot with known errors t, w and d, deflected by its own load; bending, which changes them by
less than a thousandth, is left out. They stay as they are while derivatives are taken.

Source: Khalil and Dombre, Modeling, Identification and Control of Robots (2002), chapter 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_on_link
from dynid.errors import NotApplicable
from dynid.geometry.tangents import Placed, across, rotations, rotations_about
from dynid.geometry.unknowns import GeometryModel, Unknown, UnknownKind, axis_letters, joint_axes, joint_unknowns
from dynid.robot.model import Robot

__all__ = ["ALONG", "Geometry", "Postures"]

Array = NDArray[np.float64]
Errors = tuple[Array, Array, Array]

# Forms of `dynid.dynamics.kernels.misplaced`.
_TRANSLATION, _TURN, ALONG = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Column:
    """What one unknown does: which joint it moves, along which of its axes or as a function of its position."""

    joint: int
    form: int
    symbol: str
    direction: Array


@dataclass(frozen=True, eq=False)
class Geometry:
    """A robot with errors of its geometry.

    Attributes
    ----------
    robot : Robot
        The robot of the file: a tree on a fixed base.
    frames : tuple of str
        Links or frames that are measured; joints that move none of them have no unknowns.
    model : GeometryModel
        What may differ.
    bodies : Robot, optional
        Robot whose bodies load the joints, with joints of the same names; the same by default. Joints have compliances
        only where it has masses.

    Raises
    ------
    NotApplicable
        For a robot with closed loops.
    """

    robot: Robot
    frames: tuple[str, ...]
    model: GeometryModel
    bodies: Robot | None = None

    def __post_init__(self) -> None:
        if self.robot.loops:
            raise NotApplicable(
                f"robot '{self.robot.name}' has closed loops: its geometry can be calibrated only without them", "robot"
            )
        for frame in self.frames:
            frame_on_link(self.robot, frame)

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """Indices of the joints that carry a measured frame, parents before children."""
        found: set[int] = set()
        for frame in self.frames:
            link = frame_on_link(self.robot, frame)[0]
            while link > 0:
                found.add(link - 1)
                link = self.robot.joints[link - 1].parent
        return tuple(sorted(found))

    @cached_property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The unknowns of the joints that carry a measured frame."""
        bodies = self.robot if self.bodies is None else self.bodies
        loaded = any(x.inertia[0] > 0 for x in bodies.links) and bool(np.any(bodies.gravity))
        return tuple(joint_unknowns(self.robot, self.chain, self.model, loaded))

    @cached_property
    def columns(self) -> tuple[_Column, ...]:
        """What each unknown does."""
        number = {j.name: i for i, j in enumerate(self.robot.joints)}
        return tuple(_column(self.robot, number[u.owner], u) for u in self.unknowns)

    def postures(self, q: Array, x: Array | None = None) -> Postures:
        """Postures (N, n), loaded by the bodies as errors x (K,) place them; as the file does by default."""
        found = Postures(self.robot, q, self.bodies)
        compliant = any(u.kind in (UnknownKind.COMPLIANCE, UnknownKind.BENDING) for u in self.unknowns)
        if x is None or not compliant:
            return found
        errors = {self.robot.joints[i].name: self._errors(i, found, x) for i in self.chain}
        still = Postures(self.robot, q, self.bodies, errors)
        deflected = {}
        for i in self.chain:
            c = next((x[k] for k, u in enumerate(self.columns) if u.joint == i and u.symbol == "c"), 0.0)
            shift, turn, position = errors[self.robot.joints[i].name]
            load = still.loads[i][:, 2] if i in still.loads else 0.0
            deflected[self.robot.joints[i].name] = shift, turn, position + c * load
        return Postures(self.robot, q, self.bodies, deflected)

    def _errors(self, i: int, postures: Postures, x: Array) -> Errors:
        """Translation (3,), rotation vector (3,) and position (N,) of a joint, without what its load adds."""
        shift, turn, position = np.zeros(3), np.zeros(3), np.zeros(len(postures.q))
        for k, (c, u) in enumerate(zip(self.columns, self.unknowns, strict=True)):
            if c.joint != i or u.kind in (UnknownKind.COMPLIANCE, UnknownKind.BENDING):
                continue
            if c.form == _TRANSLATION:
                shift = shift + x[k] * c.direction
            elif c.form == _TURN:
                turn = turn + x[k] * c.direction
            else:
                position = position + x[k] * postures.slope(i, c.symbol)
        return shift, turn, position

    def place(self, postures: Postures, x: Array, width: int) -> dict[str, Placed]:
        """Placements of the frames in the base, with derivatives in the first unknowns of `width`.

        Parameters
        ----------
        postures : Postures
            Joint positions.
        x : ndarray, shape (K,)
            Values of the unknowns.
        width : int
            Number of all unknowns of the calibration, those of sensors included.
        """
        from dynid.dynamics.kernels.misplaced import misplaced

        robot, n, own = self.robot, len(postures.q), self._chained
        reading, slope = postures.of_chain(self)
        links = np.empty((n, len(self.chain) + 1, 3, 4))
        # Twist of each unknown about the origin of the base: rotation and velocity.
        turn, move = np.zeros((2, n, 3, width))
        values = np.ascontiguousarray(x[: len(self.columns)])
        misplaced(*own.joints, reading, *own.unknowns, slope, values, links, turn, move)
        out = {}
        for name in self.frames:
            link, on_link = frame_on_link(robot, name)
            at = links[:, own.slots[link]]
            p = at[..., 3] + at[..., :3] @ on_link[:3, 3]
            mine = self._carried(link, width)
            whole = bool(mine[: len(self.columns)].all())
            w, v = (turn, move) if whole else (turn * mine, move * mine)
            out[name] = Placed(at[..., :3] @ on_link[:3, :3], p, w, v + across(w, p))
        return out

    def _carried(self, link: int, width: int) -> Array:
        """One for the unknowns (width,) that move a link, zero for the others."""
        joints = set()
        while link > 0:
            joints.add(link - 1)
            link = self.robot.joints[link - 1].parent
        out = np.zeros(width)
        out[: len(self.columns)] = [c.joint in joints for c in self.columns]
        return out

    @cached_property
    def _chained(self) -> _Chained:
        """The joints of the chain and their unknowns as arrays."""
        joints = [self.robot.joints[i] for i in self.chain]
        slots = {0: 0} | {i + 1: k + 1 for k, i in enumerate(self.chain)}
        of = [[k for k, c in enumerate(self.columns) if c.joint == i] for i in self.chain]
        return _Chained(
            slots,
            (
                np.array([slots[j.parent] for j in joints], dtype=np.int64),
                np.array([j.placement[:3] for j in joints]).reshape(-1, 3, 4),
                np.array([j.mount[:3] for j in joints]).reshape(-1, 3, 4),
                np.array([j.axis for j in joints], dtype=float).reshape(-1, 3),
                np.array([j.kind == "prismatic" for j in joints]),
            ),
            (
                np.cumsum([0, *map(len, of)]),
                np.array([k for mine in of for k in mine], dtype=np.int64),
                np.array([c.form for c in self.columns], dtype=np.int64),
                np.array([c.direction for c in self.columns]).reshape(-1, 3),
            ),
        )


@dataclass(frozen=True, eq=False)
class _Chained:
    """Arrays of `misplaced`, and the number of each link in them."""

    slots: dict[int, int]
    joints: tuple[Array, ...]
    unknowns: tuple[Array, ...]


class Postures:
    """Joint positions of a robot, with what errors of each joint grow with.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : ndarray, shape (N, n)
        Positions of its independent joints (rad or m).
    bodies : Robot, optional
        Robot whose bodies load the joints, with joints of the same names; the same by default.
    errors : mapping of str to tuple, optional
        Translation (3,), rotation vector (3,) and change of position (N,) of joints of the loaded robot, by name.
    """

    def __init__(
        self, robot: Robot, q: Array, bodies: Robot | None = None, errors: Mapping[str, Errors] | None = None
    ) -> None:
        self.robot, self.q, self.bodies = robot, q, robot if bodies is None else bodies
        self.errors = errors or {}
        self._slopes: dict[tuple[int, str], Array] = {}
        self._chain: tuple[Geometry, Array, Array] | None = None

    def reading(self, joint: int) -> Array:
        """Position (N,) of a joint as its encoder, or that of the joint it follows, reads."""
        return _reading(self.robot, joint, self.q)

    def slope(self, joint: int, symbol: str) -> Array:
        """How much (N,) a joint moves per unit of an unknown."""
        if (joint, symbol) not in self._slopes:
            self._slopes[joint, symbol] = self._slope(joint, symbol)
        return self._slopes[joint, symbol]

    def of_chain(self, geometry: Geometry) -> tuple[Array, Array]:
        """Readings (N, J) of the joints of a geometry's chain, and slopes (N, K) of its unknowns."""
        if self._chain is None or self._chain[0] is not geometry:
            reading = np.array([self.reading(i) for i in geometry.chain]).reshape(-1, len(self.q)).T
            slope = np.array([self.slope(c.joint, c.symbol) for c in geometry.columns]).reshape(-1, len(self.q)).T
            self._chain = geometry, np.ascontiguousarray(reading), np.ascontiguousarray(slope)
        return self._chain[1:]

    def _slope(self, joint: int, symbol: str) -> Array:
        reading = self.reading(joint)
        waves = {"cos1": np.cos, "sin1": np.sin}
        if symbol == "gear":
            return reading
        if symbol[:-1] in ("cos", "sin"):
            return np.asarray(waves[symbol[:-1] + "1"](int(symbol[-1]) * reading))
        if symbol.startswith("c"):
            letters = _letters(self.robot, joint)
            return self.loads[joint][:, 2 if symbol == "c" else letters.index(symbol[1:])]
        return np.ones(len(reading))

    @cached_property
    def loads(self) -> dict[int, Array]:
        """Gravity moments (N, 3) of what each joint carries about its axes, the own one last (N m; N along it)."""
        number = {j.name: i for i, j in enumerate(self.robot.joints)}
        carried = _gravity_loads(self.bodies, _of_joints(self.robot, self.q, self.bodies), self.errors)
        return {number[name]: load for name, load in carried if name in number}


def _column(robot: Robot, joint: int, unknown: Unknown) -> _Column:
    axes = joint_axes(robot.joints[joint])
    letters = _letters(robot, joint)
    if unknown.kind is UnknownKind.POSITION:
        return _Column(joint, _TRANSLATION, unknown.symbol, axes[:, letters.index(unknown.symbol)])
    if unknown.kind in (UnknownKind.ROTATION, UnknownKind.BENDING):
        return _Column(joint, _TURN, unknown.symbol, axes[:, letters.index(unknown.symbol[1:])])
    return _Column(joint, ALONG, unknown.symbol, robot.joints[joint].axis)


def _letters(robot: Robot, joint: int) -> list[str]:
    across, along = axis_letters(robot.joints[joint])
    return [*across, along]


def _reading(robot: Robot, joint: int, q: Array) -> Array:
    mimic = robot.joints[joint].mimic
    if mimic is None:
        return np.asarray(q[:, robot.coordinates.index(robot.joints[joint].name)])
    return np.asarray(mimic.ratio * q[:, robot.coordinates.index(mimic.leader)] + mimic.offset)


def _of_joints(robot: Robot, q: Array, other: Robot) -> Array:
    """Joint positions of another robot, zero for joints that this one does not have."""
    known = {name: q[:, k] for k, name in enumerate(robot.coordinates)}
    return np.column_stack([known.get(name, np.zeros(len(q))) for name in other.coordinates])


def _gravity_loads(robot: Robot, q: Array, errors: Mapping[str, Errors]) -> Iterator[tuple[str, Array]]:
    """Joints, and the moments of gravity on what each carries, in its axes; one pass to the tips and one back."""
    n, count = len(q), len(robot.joints)
    rotation, origin = np.zeros((count + 1, n, 3, 3)), np.zeros((count + 1, n, 3))
    rotation[0] = np.eye(3)
    frame, at = np.zeros((count, n, 3, 3)), np.zeros((count, n, 3))
    for i, joint in enumerate(robot.joints):
        up, position = joint.parent, _reading(robot, i, q)
        frame[i] = rotation[up] @ joint.placement[:3, :3]
        at[i] = origin[up] + rotation[up] @ joint.placement[:3, 3]
        if joint.name in errors:
            shift, turn, change = errors[joint.name]
            at[i] += frame[i] @ shift
            frame[i] = frame[i] @ rotations(turn)
            position = position + change
        moved, start = frame[i], at[i]
        if joint.kind == "revolute":
            moved = moved @ rotations_about(joint.axis, position)
        else:
            start = start + (moved @ joint.axis) * position[:, None]
        rotation[i + 1] = moved @ joint.mount[:3, :3]
        origin[i + 1] = start + moved @ joint.mount[:3, 3]
    mass = np.array([link.inertia[0] for link in robot.links])
    own = np.array([link.inertia[1:4] for link in robot.links])
    first = mass[:, None, None] * origin + np.einsum("bnij,bj->bni", rotation, own)
    for i in reversed(range(count)):
        mass[robot.joints[i].parent] += mass[i + 1]
        first[robot.joints[i].parent] += first[i + 1]
        moment = np.cross(first[i + 1] - mass[i + 1] * at[i], robot.gravity)
        axes = joint_axes(robot.joints[i])
        load = np.einsum("nij,ni->nj", frame[i] @ axes, moment)
        if robot.joints[i].kind == "prismatic":
            load[:, 2] = mass[i + 1] * (frame[i] @ robot.joints[i].axis) @ robot.gravity
        else:
            load[:, 2] = (frame[i] @ robot.joints[i].axis * moment).sum(-1)
        yield robot.joints[i].name, load
