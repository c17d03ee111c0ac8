"""Forward kinematics of all links at one posture, without compiled kernels, and gravity on a tilted base."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.errors import ModelError
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, checked
from dynid.robot.spatial import axis_rotation, placement

__all__ = ["link_placements", "tilted_gravity"]

Array = NDArray[np.float64]


def link_placements(robot: Robot, values: Mapping[str, float] | None = None) -> Array:
    """Link placements (link, 4, 4) in the base frame, with joints at `values` (name to rad or m), zero if not given."""
    given = dict(values or {})
    unknown = sorted(set(given) - set(robot.coordinates))
    if unknown:
        raise ModelError(
            f"robot '{robot.name}' has no independent joint '{unknown[0]}'", "posture", code="unknown_name"
        )
    out = [np.eye(4)]
    for joint in robot.joints:
        name, ratio, offset = (
            (joint.name, 1.0, 0.0)
            if joint.mimic is None
            else (joint.mimic.leader, joint.mimic.ratio, joint.mimic.offset)
        )
        value = ratio * float(checked(given.get(name, 0.0), (), f"value of joint '{name}'")) + offset
        out.append(out[joint.parent] @ joint.placement @ _motion(joint, value) @ joint.mount)
    return np.array(out)


def _motion(joint: Joint, value: float) -> Array:
    if joint.kind == "prismatic":
        return placement(translation=value * joint.axis)
    return placement(axis_rotation(joint.axis, value))


def tilted_gravity(robot: Robot, tilt: Array) -> Array:
    """Gravity (3,) in the base frame, rotated by two angles about the axes perpendicular to its nominal direction.

    For gravity along z these are x and y; in general the base axes least along gravity, made perpendicular to it.
    """
    size = float(np.linalg.norm(robot.gravity))
    down = robot.gravity / size
    axes = np.delete(np.eye(3), int(np.argmax(np.abs(down))), axis=0)
    first = axes[0] - down * (down @ axes[0])
    first /= np.linalg.norm(first)
    second = axes[1] - down * (down @ axes[1]) - first * (first @ axes[1])
    second /= np.linalg.norm(second)
    turn = Rotation.from_rotvec(tilt[0] * first + tilt[1] * second)
    return np.asarray(turn.as_matrix() @ robot.gravity)
