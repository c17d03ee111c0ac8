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
from dynid.geometry.tangents import Placed, across, left_jacobian, rotations
from dynid.geometry.unknowns import GeometryModel, Unknown, UnknownKind, axis_letters, joint_axes, joint_unknowns
from dynid.robot.model import Robot

__all__ = ["ALONG", "Geometry", "Postures"]

Array = NDArray[np.float64]

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

    def postures(self, q: Array) -> Postures:
        """Postures (N, n) of the robot, loaded by its bodies."""
        return Postures(self.robot, q, self.bodies)

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
        robot, n = self.robot, len(postures.q)
        rotation, origin = {0: np.tile(np.eye(3), (n, 1, 1))}, {0: np.zeros((n, 3))}
        # Twist of each unknown about the origin of the base: rotation and velocity.
        turn, move = np.zeros((2, n, 3, width))
        for i in self.chain:
            joint = robot.joints[i]
            at = origin[joint.parent] + rotation[joint.parent] @ joint.placement[:3, 3]
            frame = rotation[joint.parent] @ joint.placement[:3, :3]
            moved, at = self._moved(i, frame, at, postures, x, turn, move)
            rotation[i + 1] = moved @ joint.mount[:3, :3]
            origin[i + 1] = at + moved @ joint.mount[:3, 3]
        out = {}
        for name in self.frames:
            link, on_link = frame_on_link(robot, name)
            mine = self._carried(link, width)
            p = origin[link] + rotation[link] @ on_link[:3, 3]
            w = turn * mine
            out[name] = Placed(rotation[link] @ on_link[:3, :3], p, w, move * mine + across(w, p))
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

    def _moved(
        self, i: int, frame: Array, at: Array, postures: Postures, x: Array, turn: Array, move: Array
    ) -> tuple[Array, Array]:
        """Axes and origin behind a joint, before its mount; writes the twists of its unknowns."""
        joint = self.robot.joints[i]
        mine = [(k, c, postures.slope(i, c.symbol)) for k, c in enumerate(self.columns) if c.joint == i]
        at = at + frame @ sum((x[k] * c.direction for k, c, _ in mine if c.form == _TRANSLATION), np.zeros(3))
        bend = sum((np.outer(x[k] * s, c.direction) for k, c, s in mine if c.form == _TURN), np.zeros((1, 3)))
        position = postures.reading(i) + sum((x[k] * s for k, c, s in mine if c.form == ALONG), 0.0)
        jacobian = frame @ left_jacobian(bend)
        rotation = frame @ rotations(bend)
        axis = rotation @ joint.axis
        turned = []
        for k, c, slope in mine:
            if c.form == _TRANSLATION:
                move[..., k] = frame @ c.direction
            elif c.form == ALONG and joint.kind == "prismatic":
                move[..., k] = axis * slope[:, None]
            else:
                turn[..., k] = slope[:, None] * (axis if c.form == ALONG else jacobian @ c.direction)
                turned.append(k)
        move[..., turned] = across(turn[..., turned], -at)
        if joint.kind == "prismatic":
            return rotation, at + axis * position[:, None]
        return rotation @ rotations(position[:, None] * joint.axis), at


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
    """

    def __init__(self, robot: Robot, q: Array, bodies: Robot | None = None) -> None:
        self.robot, self.q, self.bodies = robot, q, robot if bodies is None else bodies
        self._slopes: dict[tuple[int, str], Array] = {}

    def reading(self, joint: int) -> Array:
        """Position (N,) of a joint as its encoder, or that of the joint it follows, reads."""
        return _reading(self.robot, joint, self.q)

    def slope(self, joint: int, symbol: str) -> Array:
        """How much (N,) a joint moves per unit of an unknown."""
        if (joint, symbol) not in self._slopes:
            self._slopes[joint, symbol] = self._slope(joint, symbol)
        return self._slopes[joint, symbol]

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
        """Gravity moments (N, 3) of what each joint carries, about its two axes across and its own (N m), or force (N).

        Of the robot in its file: errors of the geometry change them by a share that is small beside one.
        """
        number = {j.name: i for i, j in enumerate(self.robot.joints)}
        carried = _gravity_loads(self.bodies, _of_joints(self.robot, self.q, self.bodies))
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
    """Joint positions of another robot, zero for joints that this one lacks."""
    known = {name: q[:, k] for k, name in enumerate(robot.coordinates)}
    return np.column_stack([known.get(name, np.zeros(len(q))) for name in other.coordinates])


def _gravity_loads(robot: Robot, q: Array) -> Iterator[tuple[str, Array]]:
    """Joints, and the moments of gravity on what each carries, in its axes; one pass to the tips and one back."""
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
        yield robot.joints[i].name, load
