"""Which posture to command so that the tool of the real robot is where it should be.

With the placement X(q) of the tool of the real robot, errors e (position) and w (rotation) to the wanted one, and the
Jacobian J = (Jp, Jr) at the real posture, each step of Newton's method solves

    minimise  |Jr dq - w|^2 + mu |dq|^2    subject to    Jp dq = e

so the position is met and the orientation as far as the joints can; redundant arms change least. How the loads change
with the posture is left out of J, which costs a factor of some 1e-3 per step and nothing at the end.

Source: own derivation; Nocedal and Wright, Numerical Optimization (2006), chapter 16, for the constrained step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_on_link, placement_in_base
from dynid.errors import Infeasible, InvalidShape, InvalidType, MissingArgument, NotApplicable, NotFinite
from dynid.geometry.real import WAVES, RealRobot, joint_errors
from dynid.geometry.tangents import rotation_vector
from dynid.geometry.unknowns import Unknown
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement

__all__ = ["CLOSE", "DAMPING", "LONGEST", "SLACK", "STEPS", "Command", "Commands", "command_for"]

Array = NDArray[np.float64]

# Distance (m) and angle (rad) at which the tool is where it should be.
CLOSE = 1e-9
# Near singular postures no joint moves further (rad or m) in one step.
DAMPING, SLACK, STEPS, LONGEST = 1e-4, 1e-12, 30, 0.2
# Step (rad or m) at which the iterations end: they converge faster than this is reached.
_STILL = 1e-14
# Joints that six errors of a pose need.
_POSE = 6
_BATCH = 500


@dataclass(frozen=True, eq=False)
class Commands:
    """Postures to command.

    Attributes
    ----------
    q : ndarray, shape (N, n) or (n,)
        Joint positions to command (rad or m).
    distance : ndarray, shape (N,) or ()
        How far the tool of the real robot is from the wanted position there (m).
    angle : ndarray, shape (N,) or ()
        How far it is turned from the wanted orientation (rad): not zero for arms with fewer than six joints.
    """

    q: Array
    distance: Array
    angle: Array


@dataclass(frozen=True, eq=False)
class Command:
    """The solver for one robot and one tool.

    Attributes
    ----------
    real : RealRobot
        The robot with its errors.
    frame : str
        Link or frame that is the tool.
    """

    real: RealRobot
    frame: str

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """Joints that carry the tool."""
        out: list[int] = []
        link = frame_on_link(self.real.robot, self.frame)[0]
        while link > 0:
            out.insert(0, link - 1)
            link = self.real.robot.joints[link - 1].parent
        return tuple(out)

    @cached_property
    def leaders(self) -> tuple[tuple[int, float, float], ...]:
        """Column of q, ratio and offset of every joint of the chain."""
        robot, out = self.real.robot, []
        for i in self.chain:
            joint = robot.joints[i]
            name, ratio, offset = (joint.name, 1.0, 0.0)
            if joint.mimic is not None:
                name, ratio, offset = joint.mimic.leader, joint.mimic.ratio, joint.mimic.offset
            out.append((robot.coordinates.index(name), ratio, offset))
        return tuple(out)

    @cached_property
    def whole(self) -> bool:
        """Whether the joints that move the tool can change its orientation too."""
        return len({k for k, _, _ in self.leaders}) >= _POSE

    def place(self, q: Array) -> tuple[Array, Array, Array]:
        """Axes (N, 3, 3) and origin (N, 3) of the real tool, and its Jacobian (N, 6, n), linear rows first."""
        robot = self.real.robot
        links = [robot.links[i + 1].name for i in self.chain]
        placed = self.real.place(q, [*links, self.frame])
        tool = placed[self.frame]
        jacobian = np.zeros((len(q), 6, robot.n))
        errors = joint_errors(robot, self.real.unknowns, self.real.values)
        for i, name, (k, ratio, offset) in zip(self.chain, links, self.leaders, strict=True):
            joint, at = robot.joints[i], placed[name]
            back = inverse_placement(np.asarray(joint.mount))
            axis = at.rotation @ (back[:3, :3] @ joint.axis)
            reading = ratio * q[:, k] + offset
            rate = 1 + errors[i].gear
            for size, wave in zip(errors[i].waves, WAVES, strict=True):
                turn = int(wave[-1])
                slope = -np.sin(turn * reading) if wave.startswith("cos") else np.cos(turn * reading)
                rate = rate + size * turn * slope
            speed = (ratio * rate * np.ones(len(q)))[:, None]
            if joint.kind == "prismatic":
                jacobian[:, :3, k] += speed * axis
            else:
                start = at.origin + at.rotation @ back[:3, 3]
                jacobian[:, :3, k] += speed * np.cross(axis, tool.origin - start)
                jacobian[:, 3:, k] += speed * axis
        return tool.rotation, tool.origin, jacobian

    def solve(self, wanted: Array, start: Array) -> Commands:
        """Postures (N, n) for wanted placements (N, 4, 4), from starts (N, n)."""
        q = start.copy()
        for _ in range(STEPS):
            rotation, origin, jacobian = self.place(q)
            step = self._step(_apart(wanted, rotation, origin), jacobian)
            q = q + step / np.maximum(np.abs(step).max(1, keepdims=True) / LONGEST, 1.0)
            if np.abs(step).max() < _STILL:
                break
        rotation, origin, _ = self.place(q)
        left = _apart(wanted, rotation, origin)
        return Commands(q, np.linalg.norm(left[:, :3], axis=1), np.linalg.norm(left[:, 3:], axis=1))

    def _step(self, error: Array, jacobian: Array) -> Array:
        n = jacobian.shape[2]
        linear, angular = jacobian[:, :3], jacobian[:, 3:]
        system, right = np.zeros((len(error), n + 3, n + 3)), np.zeros((len(error), n + 3))
        system[:, :n, :n] = np.swapaxes(angular, 1, 2) @ angular + DAMPING * np.eye(n)
        system[:, :n, n:], system[:, n:, :n] = np.swapaxes(linear, 1, 2), linear
        # Positions that no joint can change leave the system regular.
        system[:, n:, n:] = -SLACK * np.eye(3)
        right[:, :n] = (np.swapaxes(angular, 1, 2) @ error[:, 3:, None])[..., 0]
        right[:, n:] = error[:, :3]
        out: Array = np.linalg.solve(system, right[..., None])[:, :n, 0]
        return out


def command_for(
    robot: Robot,
    unknowns: Sequence[Unknown],
    values: ArrayLike,
    wanted: ArrayLike,
    frame: str,
    *,
    bodies: Robot | None = None,
    start: ArrayLike | None = None,
) -> Commands:
    """Postures to command so that the tool of the real robot is where that of the file's robot would be.

    For controllers that accept only the robot of the file: all errors are undone, compliance under gravity and payload
    included.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    unknowns : sequence of Unknown
        What differs.
    values : array_like, shape (K,)
        By how much.
    wanted : array_like, shape (N, n), (n,), (N, 4, 4) or (4, 4)
        Postures of the file's robot (rad or m), or placements of the tool in the base.
    frame : str
        Link or frame that is the tool.
    bodies : Robot, optional
        Robot whose bodies load the joints, the payload among them (`Robot.with_payload`); the same by default.
    start : array_like, shape (N, n) or (n,), optional
        Postures from which wanted placements are searched; the nearest posture of the file's robot is good enough.

    Returns
    -------
    Commands
        Of redundant arms the posture that differs least. Joints that do not move the tool stay.

    Raises
    ------
    Infeasible
        If the real tool cannot get within 1e-9 m of the wanted position; with six joints and more, also if it cannot
        get within 1e-9 rad of the wanted orientation. The posture is named.
    MissingArgument
        If placements are wanted without a start.
    NotApplicable
        If no joint moves the frame.

    Examples
    --------
    >>> import dynid
    >>> from dynid.geometry import Unknown, command_for
    >>> robot = dynid.load_robot("puma560")
    >>> zero = Unknown("zero", "joint2", "zero", "rad")
    >>> command = command_for(robot, [zero], [0.01], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "link6")
    >>> command.q.round(6)
    array([0.1 , 0.19, 0.3 , 0.4 , 0.5 , 0.6 ])
    """
    command = Command(RealRobot(robot, tuple(unknowns), np.asarray(values, dtype=float), bodies), frame)
    if not command.chain:
        raise NotApplicable(f"no joint of robot '{robot.name}' moves '{frame}'", "frame")
    target, begin, single = _wanted(robot, wanted, frame, start)
    parts = [command.solve(target[i : i + _BATCH], begin[i : i + _BATCH]) for i in range(0, len(begin), _BATCH)]
    found = Commands(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "distance", "angle")))
    missed = ~(found.distance <= CLOSE)
    if command.whole:
        missed |= ~(found.angle <= CLOSE)
    if missed.any():
        k = int(np.argmax(missed))
        where = ", ".join(f"{x:.4g}" for x in begin[k])
        left = f"{1e3 * found.distance[k]:.3g} mm and {found.angle[k]:.3g} rad"
        raise Infeasible(
            f"the tool cannot get where it should be from posture {k + 1} ({where}): {left} are left; it is singular "
            "there, or out of reach",
            "wanted",
        )
    return Commands(found.q[0], found.distance[0], found.angle[0]) if single else found


def _wanted(robot: Robot, wanted: ArrayLike, frame: str, start: ArrayLike | None) -> tuple[Array, Array, bool]:
    """Placements (N, 4, 4), postures (N, n) from which they are searched, and whether there is only one."""
    try:
        given = np.array(wanted, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType(f"wanted must be joint positions or 4x4 placements, got {wanted!r:.60}", "wanted") from None
    if not np.all(np.isfinite(given)):
        raise NotFinite("a wanted position is not finite", "wanted")
    poses = given.shape[-2:] == (4, 4) and (given.ndim == 3 or start is not None or robot.n != 4)
    single = given.ndim == (2 if poses else 1)
    rows = given[None] if single else given
    if not poses:
        if rows.ndim != 2 or rows.shape[1] != robot.n:
            raise InvalidShape(
                f"wanted must have shape (N, {robot.n}) for postures or (N, 4, 4) for placements, got {given.shape}",
                "wanted",
            )
        return placement_in_base(robot, rows, frame), rows, single
    if start is None:
        raise MissingArgument("wanted placements need start, a posture near by", "start")
    begin = np.array(start, dtype=float)
    if begin.ndim == 1:
        begin = np.tile(begin, (len(rows), 1))
    if begin.shape != (len(rows), robot.n):
        raise InvalidShape(
            f"start must have shape ({len(rows)}, {robot.n}) or ({robot.n},), got {begin.shape}", "start"
        )
    return rows, begin, single


def _apart(wanted: Array, rotation: Array, origin: Array) -> Array:
    """Position and rotation (N, 6) from a placement to the wanted one."""
    turn = rotation_vector(wanted[:, :3, :3] @ np.swapaxes(rotation, 1, 2))
    return np.concatenate([wanted[:, :3, 3] - origin, turn], axis=1)
