"""Joints that close loops, as constraints between the two links that they hold together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.robot.constraints import Loop, LoopKind
from dynid.robot.loops import ROUNDED, loop_rows
from dynid.robot.model import Robot
from dynid.robot.parts import Frame
from dynid.robot.spatial import placement

__all__ = ["CLOSING", "closing_loops", "with_closing_loops"]

Array = NDArray[np.float64]

CLOSING = ("fixed", "ball", "revolute", "continuous")  # joints that constraints stand for
_ARM = 0.1  # m: distance of the two points on the axis of a hinge


def closing_loops(name: str, kind: str, first: Frame, second: Frame, axis: Array) -> list[Loop]:
    """The loops of a joint that closes a chain: one for a ball or fixed joint, two points on the axis of a hinge.

    `first` and `second` are the frame of the joint on its parent and child link; they coincide at the zero position.
    """
    if kind == "ball":
        return [Loop(LoopKind.CONNECT, first, second, name=name)]
    if kind == "fixed":
        return [Loop(LoopKind.WELD, first, second, name=name)]
    out = []
    for side in (1.0, -1.0):
        at = placement(None, side * _ARM * axis / np.linalg.norm(axis))
        ends = [Frame(f.name, f.link, np.asarray(f.placement) @ at) for f in (first, second)]
        out.append(Loop(LoopKind.CONNECT, ends[0], ends[1], name=name))
    return out


def with_closing_loops(robot: Robot, loops: list[Loop]) -> Robot:
    """The robot with the loops of closing joints; of the two points of a hinge, the second is left out in the plane.

    In a planar linkage the second point adds nothing at any posture.
    """
    postures = 0.1 * np.random.default_rng(0).uniform(-1, 1, (4, robot.n))
    kept: list[Loop] = []
    for loop in loops:
        second = bool(kept) and kept[-1].name == loop.name and kept[-1].kind == loop.kind
        if not second or _rank(robot, [*kept, loop], postures) > _rank(robot, kept, postures):
            kept.append(loop)
    return robot.with_loops(kept)


def _rank(robot: Robot, loops: list[Loop], postures: Array) -> int:
    """Largest rank of the constraints over postures; axes that a file turns by rounding are parallel."""
    return max(int(np.linalg.matrix_rank(loop_rows(robot, loops, q)[1], tol=ROUNDED)) for q in postures)
