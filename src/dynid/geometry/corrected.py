"""The robot with its errors in the placements of its joints, and what placements cannot hold.

    placement' = placement Trans(t) exp(w) motion(zero)

Errors that depend on the posture (gear factor, eccentricity, compliance) are lost.

Source: `dynid.geometry.real`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import NotApplicable
from dynid.geometry.real import HELD, JointErrors, RealRobot, joint_errors, random_postures
from dynid.geometry.tangents import rotations
from dynid.geometry.unknowns import Unknown, UnknownKind
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.spatial import axis_rotation, placement

__all__ = ["corrected_robot", "lost_errors"]

Array = NDArray[np.float64]

_WORDS = {
    UnknownKind.GEAR: "error of the gear factor",
    UnknownKind.ECCENTRICITY: "eccentricity",
    UnknownKind.COMPLIANCE: "compliance",
    UnknownKind.BENDING: "bending",
}


def corrected_robot(robot: Robot, unknowns: Sequence[Unknown], values: ArrayLike) -> Robot:
    """The robot with the errors of its joints in their placements.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    unknowns : sequence of Unknown
        What differs; kinds that depend on the posture are left out, see `lost_errors`.
    values : array_like, shape (K,)
        By how much.

    Returns
    -------
    Robot
        Links, joints, frames, bodies and drives have the same names and values; the zero of a joint is a rotation
        about, or a shift along, its axis.

    Raises
    ------
    NotApplicable
        For a robot with closed loops.
    InvalidShape
        If values has another length than unknowns.
    UnknownName
        If the robot lacks the joint of an unknown.

    Examples
    --------
    >>> import dynid
    >>> from dynid.geometry import Unknown, corrected_robot
    >>> robot = dynid.load_robot("twolink")
    >>> longer = corrected_robot(robot, [Unknown("position", "joint2", "x", "m")], [0.001])
    >>> was, now = (dynid.dynamics.frame_placement(r, [0.0, 0.0], "link2") for r in (robot, longer))
    >>> round(float(now[0, 3] - was[0, 3]), 6)
    0.001
    """
    if robot.loops:
        raise NotApplicable(
            f"robot '{robot.name}' has closed loops: its geometry can be corrected only without them", "robot"
        )
    joints = (_moved(j, e) for j, e in zip(robot.joints, joint_errors(robot, unknowns, values), strict=True))
    return replace(robot, joints=tuple(joints))


def _moved(joint: Joint, errors: JointErrors) -> Joint:
    """The joint with its errors in its placement; the same joint where there are none."""
    if not (np.any(errors.shift) or np.any(errors.turn) or errors.zero):
        return joint
    turns = joint.kind == "revolute"
    zero = axis_rotation(joint.axis, errors.zero) if turns else np.eye(3)
    slide = np.zeros(3) if turns else errors.zero * joint.axis
    moved = placement(rotations(errors.turn), errors.shift) @ placement(zero, slide)
    return replace(joint, placement=joint.placement @ moved)


def lost_errors(
    robot: Robot,
    unknowns: Sequence[Unknown],
    values: ArrayLike,
    frame: str,
    *,
    bodies: Robot | None = None,
    samples: int = 200,
    seed: int = 0,
) -> list[str]:
    """What no robot file can hold, and by how much it moves a frame.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    unknowns : sequence of Unknown
        What differs.
    values : array_like, shape (K,)
        By how much.
    frame : str
        Link or frame that is the tool.
    bodies : Robot, optional
        Robot whose bodies load the joints, payload included; the same by default.
    samples : int
        Number of random postures within the limits of the joints.
    seed : int
        Seed of the postures.

    Returns
    -------
    list of str
        One sentence per kind of error that depends on the posture.

    Examples
    --------
    >>> import dynid
    >>> from dynid.geometry import Unknown, lost_errors
    >>> robot = dynid.load_robot("puma560")
    >>> print(lost_errors(robot, [Unknown("compliance", "joint2", "c", "rad/(N m)")], [1e-5], "link6")[0])
    compliance of joint2 moves link6 by 0.23 mm (RMS over 200 random postures, 0.4 mm at most): no robot file holds it
    """
    real = RealRobot(robot, tuple(unknowns), np.asarray(values, dtype=float), bodies)
    q = random_postures(robot, samples, seed)
    whole = real.place(q, [frame])[frame].origin
    kinds = dict.fromkeys(u.kind for u, x in zip(real.unknowns, real.values, strict=True) if x and u.kind not in HELD)
    out = []
    for kind in kinds:
        mine = np.array([u.kind == kind for u in real.unknowns])
        without = RealRobot(robot, real.unknowns, np.where(mine, 0.0, real.values), bodies)
        away = 1e3 * np.linalg.norm(whole - without.place(q, [frame])[frame].origin, axis=1)
        owners = list(dict.fromkeys(u.owner for u, m, x in zip(unknowns, mine, real.values, strict=True) if m and x))
        who = owners[0] if len(owners) == 1 else f"{len(owners)} joints"
        rms = np.sqrt(np.mean(away**2))
        out.append(
            f"{_WORDS[kind]} of {who} moves {frame} by {rms:.2g} mm (RMS over {samples} random postures, "
            f"{away.max():.2g} mm at most): no robot file holds it"
        )
    return out
