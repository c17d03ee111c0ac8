"""Placements of a robot's frames for many postures, with exact derivatives in the geometric unknowns.

With the joint frame (R, p) on its parent and its errors t (translation), w (rotation) and d (position of the joint),

    p' = p + R B t,    R' = R exp(B (w + C m)),    placed by the joint at    q' = q + d,    d = zero + g q + ... + c M

where M is the gravity moment of the carried bodies about the joint axis, m across it, and B the axes of the joint.
Every unknown moves all that the joint carries by a twist, and the twist is its derivative: exact at any size of error.

Source: Khalil and Dombre, Modeling, Identification and Control of Robots (2002), chapter 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_on_link
from dynid.errors import NotApplicable
from dynid.geometry.tangents import Placed, left_jacobian, rotations
from dynid.geometry.unknowns import GeometryModel, Unknown, UnknownKind, axis_letters, joint_axes, joint_unknowns
from dynid.robot.model import Robot

__all__ = ["Geometry", "Postures"]

Array = NDArray[np.float64]

_TRANSLATION, _TURN, _ALONG = 0, 1, 2


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

    Raises
    ------
    NotApplicable
        For a robot with closed loops.
    """

    robot: Robot
    frames: tuple[str, ...]
    model: GeometryModel

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
        return tuple(joint_unknowns(self.robot, self.chain, self.model))

    @cached_property
    def columns(self) -> tuple[_Column, ...]:
        """What each unknown does."""
        number = {j.name: i for i, j in enumerate(self.robot.joints)}
        return tuple(_column(self.robot, number[u.owner], u) for u in self.unknowns)

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
        n, robot = len(postures.q), self.robot
        where = {0: Placed(np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)), *np.zeros((2, n, 3, width)))}
        for i in self.chain:
            joint = robot.joints[i]
            at = where[joint.parent].carrying(joint.placement)
            where[i + 1] = self._moved(i, at, postures, x).carrying(joint.mount)
        found = {name: frame_on_link(robot, name) for name in self.frames}
        return {name: where[link].carrying(on_link) for name, (link, on_link) in found.items()}

    def _moved(self, i: int, at: Placed, postures: Postures, x: Array) -> Placed:
        """The frame behind a joint, before its mount."""
        joint = self.robot.joints[i]
        mine = [(k, c) for k, c in enumerate(self.columns) if c.joint == i]
        reading = postures.reading(i)
        # Errors of this joint: translation, rotation (per posture where it bends), position.
        shift = sum((x[k] * c.direction for k, c in mine if c.form == _TRANSLATION), np.zeros(3))
        slopes = {k: postures.slope(i, c.symbol) for k, c in mine if c.form != _TRANSLATION}
        bend = sum((np.outer(x[k] * slopes[k], c.direction) for k, c in mine if c.form == _TURN), np.zeros((1, 3)))
        position = reading + sum((x[k] * slopes[k] for k, c in mine if c.form == _ALONG), np.zeros(len(reading)))

        origin = at.origin + at.rotation @ shift
        jacobian = at.rotation @ left_jacobian(bend)
        rotation = at.rotation @ rotations(bend)
        axis = rotation @ joint.axis
        turn, move = at.turn.copy(), at.shift.copy()
        # What the errors before this joint do to its origin.
        move += np.cross(at.turn, (origin - at.origin)[..., None], axis=-2)
        for k, c in mine:
            if c.form == _TRANSLATION:
                move[..., k] += at.rotation @ c.direction
            elif c.form == _TURN:
                turn[..., k] += slopes[k][:, None] * (jacobian @ c.direction)
        if joint.kind == "prismatic":
            travel = axis * position[:, None]
            move += np.cross(turn, travel[..., None], axis=-2)
            for k, c in mine:
                if c.form == _ALONG:
                    move[..., k] += axis * slopes[k][:, None]
            return Placed(rotation, origin + travel, turn, move)
        for k, c in mine:
            if c.form == _ALONG:
                turn[..., k] += axis * slopes[k][:, None]
        return Placed(rotation @ rotations(position[:, None] * joint.axis), origin, turn, move)


class Postures:
    """Joint positions of a robot, with what errors of each joint grow with.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : ndarray, shape (N, n)
        Positions of its independent joints (rad or m).
    bodies : Robot, optional
        Robot whose bodies load the joints, the same by default.
    """

    def __init__(self, robot: Robot, q: Array, bodies: Robot | None = None) -> None:
        self.robot, self.q, self.bodies = robot, q, robot if bodies is None else bodies

    def reading(self, joint: int) -> Array:
        """Position (N,) of a joint as its encoder, or that of the joint it follows, reads."""
        return _reading(self.robot, joint, self.q)

    def slope(self, joint: int, symbol: str) -> Array:
        """How much (N,) a joint moves per unit of an unknown."""
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
        """Gravity moments (N, 3) of what each joint carries, about its two axes across and its own (N m), or force (N).

        Of the robot in its file: errors of the geometry change them by a share that is small beside one.
        """
        return dict(_gravity_loads(self.bodies, self.q))

    def some(self, rows: Array) -> Postures:
        """Postures of some rows."""
        return Postures(self.robot, self.q[rows], self.bodies)


def _column(robot: Robot, joint: int, unknown: Unknown) -> _Column:
    axes = joint_axes(robot.joints[joint])
    letters = _letters(robot, joint)
    if unknown.kind is UnknownKind.POSITION:
        return _Column(joint, _TRANSLATION, unknown.symbol, axes[:, letters.index(unknown.symbol)])
    if unknown.kind in (UnknownKind.ROTATION, UnknownKind.BENDING):
        return _Column(joint, _TURN, unknown.symbol, axes[:, letters.index(unknown.symbol[1:])])
    return _Column(joint, _ALONG, unknown.symbol, robot.joints[joint].axis)


def _letters(robot: Robot, joint: int) -> list[str]:
    across, along = axis_letters(robot.joints[joint])
    return [*across, along]


def _reading(robot: Robot, joint: int, q: Array) -> Array:
    mimic = robot.joints[joint].mimic
    if mimic is None:
        return np.asarray(q[:, robot.coordinates.index(robot.joints[joint].name)])
    return np.asarray(mimic.ratio * q[:, robot.coordinates.index(mimic.leader)] + mimic.offset)


def _gravity_loads(robot: Robot, q: Array) -> Iterator[tuple[int, Array]]:
    """Moments of gravity on what each joint carries, in its axes, by one pass to the tips and one back."""
    n, count = len(q), len(robot.joints)
    rotation, origin = np.zeros((count + 1, n, 3, 3)), np.zeros((count + 1, n, 3))
    rotation[0] = np.eye(3)
    frame, at = np.zeros((count, n, 3, 3)), np.zeros((count, n, 3))
    for i, joint in enumerate(robot.joints):
        up, position = joint.parent, _reading(robot, i, q)
        frame[i] = rotation[up] @ joint.placement[:3, :3]
        at[i] = origin[up] + rotation[up] @ joint.placement[:3, 3]
        moved, start = frame[i], at[i]
        if joint.kind == "revolute":
            moved = moved @ rotations(position[:, None] * joint.axis)
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
        yield i, load
