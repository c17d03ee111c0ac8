"""Locked joints: a robot with some of its joints fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.constraints import Constraint, JointEquality
from dynid.robot.drives import CustomColumn, DriveTerm, TermKind, Transmission
from dynid.robot.effects import EffectColumn
from dynid.robot.elements import LineForce
from dynid.robot.extent import joined_boxes, moved_box
from dynid.robot.inertia import move_inertia
from dynid.robot.loops import close_loops
from dynid.robot.mechanism import Mechanism
from dynid.robot.parts import Frame, Joint, Link, Merge, checked
from dynid.robot.spatial import axis_rotation, placement

__all__ = ["lock_joints", "lock_open_tree"]

Array = NDArray[np.float64]
R = TypeVar("R", bound=Mechanism)

# A cross-only term of these kinds is zero without a second joint that moves.
_COUPLING_ONLY = (TermKind.INERTIA, TermKind.VISCOUS)


def lock_joints(robot: R, values: Mapping[str, float]) -> R:
    """The robot with some joints fixed at `values` (joint name to rad or m), and their mimic joints with them.

    The locked links are merged into the links that carry them and remain as frames. Drive terms and motors that move
    with no free joint are removed.
    """
    held = _held(robot, values)
    if robot.loops:
        return _locked_with_loops(robot, values, held)
    return _locked_tree(robot, held)[2]


def _locked_with_loops(robot: R, values: Mapping[str, float], held: Mapping[str, float]) -> R:
    """The tree with locked joints, and the loops closed at the same values."""
    tree, loops = _locked_constraints(robot.tree, held, robot.loops)
    assert robot.assembled is not None
    posture = dict(zip(robot.tree_coordinates, robot.assembled, strict=True)) | dict(values)
    closed = close_loops(robot.tree, robot.loops, robot.passive, posture)
    assert closed.assembled is not None
    posture = dict(zip(robot.tree_coordinates, closed.assembled, strict=True))
    for name, value in values.items():
        if abs(posture[name] - value) > 1e-9:
            raise ModelError(
                f"{robot.loops[0]} cannot close with joint '{name}' locked at {value:g}", code="infeasible"
            )
    return close_loops(tree, loops, robot.passive, {x: posture[x] for x in tree.coordinates})


def lock_open_tree(tree: R, values: Mapping[str, float], loops: Sequence[Constraint]) -> tuple[R, list[Constraint]]:
    """A tree with some joints fixed, and what becomes of constraints that are not closed yet."""
    return _locked_constraints(tree, _held(tree, values), loops)


def _locked_constraints(tree: R, held: Mapping[str, float], loops: Sequence[Constraint]) -> tuple[R, list[Constraint]]:
    bodies, places, locked = _locked_tree(tree, held)

    def moved(frame: Frame) -> Frame:
        return replace(frame, link=bodies[frame.link], placement=places[frame.link] @ frame.placement)

    def one(loop: Constraint) -> Constraint | None:
        if isinstance(loop, JointEquality):
            return loop.substituted(lambda name: ("", 0.0, held[name]) if name in held else (name, 1.0, 0.0))[0]
        return replace(loop, first=moved(loop.first), second=moved(loop.second))

    return locked, [left for left in map(one, loops) if left is not None]


def _locked_tree(robot: R, held: Mapping[str, float]) -> tuple[list[int], list[Array], R]:
    """New body of every link, the link's place in it, and the robot with locked joints."""
    bodies = [0]  # new number of every link's body
    places = [np.eye(4)]  # and the link's place in it
    links, joints = [robot.links[0]], []
    frames: list[Frame] = []
    merged = list(robot.merged)
    for joint, link in zip(robot.joints, robot.links[1:], strict=True):
        body, place = bodies[joint.parent], places[joint.parent] @ joint.placement
        if joint.name in held:
            place = place @ _motion(joint, held[joint.name]) @ joint.mount
            links[body] = _joined(links[body], link, place)
            frames.append(Frame(link.name, body, place))
            into = links[body].name
            merged = [replace(m, into=into) if m.into == link.name else m for m in merged]
            merged.append(Merge(link.name, joint.name, into, float(link.inertia[0])))
        else:
            joints.append(replace(joint, parent=body, placement=place))
            links.append(link)
            body, place = len(links) - 1, np.eye(4)
        bodies.append(body)
        places.append(place)
    frames += [replace(f, link=bodies[f.link], placement=places[f.link] @ f.placement) for f in robot.frames]
    free = np.array([name not in held for name in robot.coordinates])
    posture = np.array([held.get(name, 0.0) for name in robot.coordinates])
    drives = (_restricted(term, free, posture) for term in robot.drives)
    out = replace(
        robot,
        links=tuple(links),
        joints=tuple(joints),
        frames=tuple(frames),
        merged=tuple(merged),
        drives=tuple(term for term in drives if term is not None),
        transmission=_restricted_transmission(robot.transmission, free),
        postures={
            name: {joint: x for joint, x in values.items() if joint not in held}
            for name, values in robot.postures.items()
        },
    )
    return bodies, places, out


def _held(robot: Mechanism, values: Mapping[str, float]) -> dict[str, float]:
    """Position of every locked joint, mimic joints included."""
    if not isinstance(values, Mapping):
        raise ModelError(f"locked joints must be given with their values, got {values!r:.60}", code="invalid_type")
    held = {}
    for name, value in values.items():
        if name not in robot.coordinates:
            follower = next((j.mimic for j in robot.joints if j.name == name and j.mimic is not None), None)
            hint = f"it mimics '{follower.leader}', lock that" if follower else f"use {', '.join(robot.coordinates)}"
            raise ModelError(f"'{name}' is not an independent joint: {hint}", code="unknown_name")
        held[name] = float(checked(value, (), f"locked joint '{name}': value"))
    if len(held) == robot.n:
        raise ModelError(f"robot '{robot.name}' must keep at least one free joint", code="invalid_value")
    for joint in robot.joints:
        if joint.mimic is not None and joint.mimic.leader in held:
            held[joint.name] = joint.mimic.ratio * held[joint.mimic.leader] + joint.mimic.offset
    return held


def _motion(joint: Joint, value: float) -> Array:
    if joint.kind == "prismatic":
        return placement(translation=value * joint.axis)
    return placement(axis_rotation(joint.axis, value))


def _joined(body: Link, link: Link, place: Array) -> Link:
    inertia = body.inertia + move_inertia(link.inertia, place)
    moved = None if link.extent is None else moved_box(link.extent, place)
    extent = moved if body.virtual else body.extent if link.virtual else joined_boxes((body.extent, moved))
    return replace(body, inertia=inertia, virtual=body.virtual and link.virtual, extent=extent)


@dataclass(frozen=True, eq=False)
class _RestrictedColumn:
    """A custom column over all joints, restricted to the free ones."""

    function: CustomColumn
    free: NDArray[np.bool_]
    posture: Array

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        full = np.broadcast_to(self.posture, (len(q), len(self.posture))).copy()
        full[:, self.free] = q
        moving = []
        for x in (v, a):
            moving.append(np.zeros_like(full))
            moving[-1][:, self.free] = x
        return np.asarray(self.function(full, *moving))[:, self.free]


def _restricted(term: DriveTerm, free: NDArray[np.bool_], posture: Array) -> DriveTerm | None:
    """A drive term restricted to the free joints, None where none of it remains."""
    number = np.cumsum(free) - 1  # new number of every free joint
    direction = term.direction[free]
    if term.function is not None:
        if isinstance(term.function, LineForce):
            return _restricted_line(term, term.function, free, posture)
        if isinstance(term.function, EffectColumn):
            bodies = term.function.bodies
            if bodies is not None:
                bodies = lock_joints(bodies, {bodies.coordinates[i]: float(posture[i]) for i in np.flatnonzero(~free)})
            left = term.function.restricted(free, bodies)
            if left is None:
                return None
            return replace(term, direction=direction, owner=int(number[term.owner]), function=left)
        if not free[term.owner]:
            return None
        column = _RestrictedColumn(term.function, free, posture)
        return replace(term, direction=direction, owner=int(number[term.owner]), function=column)
    turning = np.flatnonzero(direction)
    if not turning.size or (turning.size == 1 and term.cross_only and term.kind in _COUPLING_ONLY):
        return None
    owner = int(number[term.owner]) if free[term.owner] else int(turning[0])
    # The locked joints deflect the spring of a coupled shaft by a constant.
    rest = term.rest - float(term.direction[~free] @ posture[~free]) if term.kind == TermKind.SPRING else term.rest
    return replace(term, direction=direction, owner=owner, rest=rest)


def _restricted_line(term: DriveTerm, line: LineForce, free: NDArray[np.bool_], posture: Array) -> DriveTerm | None:
    """A force element restricted to the free joints, None where none of them moves it."""
    left = line.restricted(free, posture)
    moving = [step.coordinate for steps in left.chains for step in steps]
    return replace(term, direction=np.zeros(free.sum()), owner=max(moving), function=left) if moving else None


def _restricted_transmission(transmission: Transmission | None, free: NDArray[np.bool_]) -> Transmission | None:
    """The transmission restricted to the motors that move a free joint."""
    if transmission is None:
        return None
    coupling = transmission.coupling[free]
    used = np.any(coupling != 0, axis=0)
    motors = tuple(name for name, keep in zip(transmission.motors, used, strict=True) if keep)
    return Transmission(motors, coupling[:, used], transmission.ratios[used]) if motors else None
