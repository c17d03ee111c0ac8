"""Choice of frames on the joint axes for as many zeros as possible in the constant rotations and shifts between them.

A frame on a joint axis may be rotated about the axis and shifted along it without changing the motion: a rotation adds
a constant to the joint angle, a shift changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.vectors import snap
from dynid.robot.model import Robot

__all__ = ["TidyFrames", "tidy_frames"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TidyFrames:
    """New frames: each in its parent's, what is added to its angle, and where it stands in the old moving frame."""

    placements: list[Array]
    offsets: Array
    moves: list[Array]


def tidy_frames(robot: Robot, placements: list[Array]) -> TidyFrames:
    """Turn the frames until constant rotations are about x, then slide them until shifts have few entries."""
    parents = [joint.parent - 1 for joint in robot.joints]
    revolute = [joint.kind == "revolute" for joint in robot.joints]
    fixed = robot.base == "fixed"
    placements = [x.copy() for x in placements]
    for x in placements:
        x[:3] = snap(x[:3])
    turns = np.zeros(len(placements))  # of each moving frame
    static = np.zeros(len(placements))  # of the frame it moves in
    taken: set[int] = set()
    for j, x in enumerate(placements):
        parent = parents[j]
        if parent >= 0:
            x[:] = _turn_z(-turns[parent]) @ x
        x[:3] = snap(x[:3])
        if _renames(x[:3, :3]):
            continue
        first, last = _ends(x[:3, :3])
        alone = parent >= 0 and not any(_renames(placements[k][:3, :3]) for k in _of(parents, parent))
        if alone and parent not in taken and revolute[parent] and not _in_quarters(first):
            for k in _of(parents, parent):
                if k < j:
                    placements[k] = _turn_z(-first) @ placements[k]
            taken.add(parent)
            turns[parent] += first
            x[:] = _turn_z(-first) @ x
        if revolute[j] and not _in_quarters(last):
            static[j] = -last
            x[:] = x @ _turn_z(-last)
        x[:3] = snap(x[:3])
    slides = _slides(placements, parents, revolute, fixed)
    moves = []
    for j, x in enumerate(placements):
        if parents[j] >= 0:
            x[2, 3] -= slides[parents[j]]
        x[:3, 3] = snap(x[:3, 3] + slides[j] * x[:3, 2])
        move = _turn_z(turns[j])
        move[2, 3] = slides[j]
        moves.append(move)
    return TidyFrames(placements, turns - static, moves)


def _slides(placements: list[Array], parents: list[int], revolute: list[bool], fixed: bool) -> Array:
    """How far each frame slides along its axis so that few entries of the shifts are left."""
    slides = np.zeros(len(placements))
    for j, x in enumerate(placements):
        if not revolute[j]:
            continue
        axis, p = x[:3, 2], x[:3, 3].copy()
        if parents[j] >= 0:
            p[2] -= slides[parents[j]]
        weight = 0 if fixed and parents[j] < 0 else 1  # a base that never moves feels no shift
        children = [placements[k] for k in _of(parents, j)]
        choices = [0.0, *(-p[i] / axis[i] for i in range(3) if axis[i]), *(c[2, 3] for c in children)]

        def cost(
            t: float, p: Array = p, axis: Array = axis, weight: int = weight, children: list[Array] = children
        ) -> int:
            return weight * _entries(p + t * axis) + sum(_after_own_slide(c, t) for c in children)

        slides[j] = min(choices, key=lambda t: (cost(t), abs(t)))
    return slides


def _after_own_slide(child: Array, t: float) -> int:
    """Entries left in a child's shift when its parent slid by t and it slides itself as is best for it."""
    p, axis = child[:3, 3] - np.array([0, 0, t]), child[:3, 2]
    return min(_entries(p + s * axis) for s in (0.0, *(-p[i] / axis[i] for i in range(3) if axis[i])))


def _entries(p: Array) -> int:
    return int(np.count_nonzero(np.abs(p) > 1e-14))


def _of(parents: list[int], parent: int) -> list[int]:
    return [k for k, p in enumerate(parents) if p == parent]


def _renames(rotation: Array) -> bool:
    return bool(np.all(np.isin(rotation, (-1.0, 0.0, 1.0))))


def _in_quarters(angle: float) -> bool:
    return bool(abs(angle / (np.pi / 2) - round(angle / (np.pi / 2))) < 1e-12)


def _ends(rotation: Array) -> tuple[float, float]:
    """First and last angle of rotation = Rz(a) Rx(b) Rz(c)."""
    if np.hypot(rotation[0, 2], rotation[1, 2]) < 1e-12:
        return 0.0, float(np.arctan2(rotation[1, 0], rotation[0, 0])) * (1.0 if rotation[2, 2] > 0 else -1.0)
    return float(np.arctan2(rotation[0, 2], -rotation[1, 2])), float(np.arctan2(rotation[2, 0], rotation[2, 1]))


def _turn_z(angle: float) -> Array:
    out = np.eye(4)
    s, c = np.sin(angle), np.cos(angle)
    out[:2, :2] = [[c, -s], [s, c]]
    return out
