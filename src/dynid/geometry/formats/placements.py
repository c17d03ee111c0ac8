"""Placements from quaternions, angles and matrices of files, and whether a sensor is on the robot or beside it.

With the pose E of the robot and the pose O of the target in the sensor, between two postures i and j

    (E_j^-1 E_i) X = X (O_j O_i^-1)  for a sensor on the robot,    (E_j^-1 E_i) X = X (O_j^-1 O_i)  for one beside it

and the rotation X that turns the axes of one side onto those of the other best leaves less in the right case.

Source: Tsai and Lenz, A New Technique for Fully Autonomous and Efficient 3D Robotics Hand/Eye Calibration (1989); own
derivation of the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, InvalidValue
from dynid.geometry.formats.piece import UNITS, Settings
from dynid.geometry.measurements.starts import nearest_rotation
from dynid.geometry.tangents import rotation_vector
from dynid.robot.spatial import rpy_rotation

__all__ = ["of_angles", "of_matrix", "of_quaternions", "of_transform", "sensor_in_hand"]

Array = NDArray[np.float64]

# How far a quaternion or a rotation may be from length one, and above which angles are in degrees (rad).
_UNIT_LENGTH, _ANGLE = 0.05, 2 * np.pi + 0.1
# Pairs of postures that are compared, and by what factor one case has to be better.
_PAIRS, _BETTER = 300, 2.0


def of_quaternions(points: Array, quaternions: Array, where: str) -> Array:
    """Placements (N, 4, 4) of positions (N, 3) and quaternions (N, 4), x, y, z, w; not numbers where one is not."""
    from scipy.spatial.transform import Rotation

    out = np.full((len(points), 4, 4), np.nan)
    seen = np.isfinite(points).all(1) & np.isfinite(quaternions).all(1)
    length = np.linalg.norm(quaternions[seen], axis=1)
    wrong = np.flatnonzero(np.abs(length - 1) > _UNIT_LENGTH)
    if len(wrong):
        row = int(np.flatnonzero(seen)[wrong[0]])
        raise InvalidValue(f"the quaternion of posture {row + 1} has length {length[wrong[0]]:.3g}, not 1", where=where)
    out[seen] = np.eye(4)
    out[seen, :3, :3] = Rotation.from_quat(quaternions[seen]).as_matrix()
    out[seen, :3, 3] = points[seen]
    return out


def of_angles(points: Array, angles: Array, settings: Settings, where: str) -> Array:
    """Placements (N, 4, 4) of positions (N, 3) and roll, pitch and yaw (N, 3) about fixed axes."""
    largest = float(np.nanmax(np.abs(angles), initial=0.0))
    unit = settings.units.get("rotation")
    if unit is None:
        unit = "deg" if largest > _ANGLE else "rad"
        settings.note(f"roll, pitch and yaw are about fixed axes, in {unit}", where)
    out = np.full((len(points), 4, 4), np.nan)
    seen = np.isfinite(points).all(1) & np.isfinite(angles).all(1)
    for k in np.flatnonzero(seen):
        out[k] = np.eye(4)
        out[k, :3, :3], out[k, :3, 3] = rpy_rotation(*(UNITS["rotation"][unit] * angles[k])), points[k]
    return out


def of_matrix(given: Any, where: str) -> Array:
    """A placement (4, 4) of sixteen numbers, row by row, or of four rows."""
    try:
        found = np.array(given, dtype=float).reshape(4, 4)
    except (TypeError, ValueError):
        raise DamagedFile("a placement is not 16 numbers", where=where) from None
    if not np.isfinite(found).all() or np.abs(found[3] - [0, 0, 0, 1]).max() > 1e-6:
        raise DamagedFile("a placement does not end with the row 0, 0, 0, 1", where=where)
    turn = found[:3, :3]
    if np.abs(turn).max() > 2 or np.abs(turn @ turn.T - np.eye(3)).max() > _UNIT_LENGTH or np.linalg.det(turn) < 0:
        raise DamagedFile("a placement has no rotation in its upper left part", where=where)
    return found


def of_transform(given: Any, where: str) -> Array:
    """A placement (4, 4) of translation and rotation, or position and orientation, as geometry_msgs has them."""
    data = given.get("transform", given.get("pose", given)) if isinstance(given, Mapping) else {}
    try:
        p = data["translation"] if "translation" in data else data["position"]
        r = data["rotation"] if "rotation" in data else data["orientation"]
        point = np.array([[float(p[a]) for a in "xyz"]])
        turn = np.array([[float(r[a]) for a in "xyzw"]])
    except (KeyError, TypeError, ValueError):
        raise DamagedFile("a transform has no translation x, y, z and rotation x, y, z, w", where=where) from None
    if not (np.isfinite(point).all() and np.isfinite(turn).all()):
        raise DamagedFile("a transform has an entry that is no number", where=where)
    return np.asarray(of_quaternions(point, turn, where)[0])


def sensor_in_hand(robot: Array, seen: Array, settings: Settings, where: str) -> bool:
    """Whether the sensor is on the robot, from poses (N, 4, 4) of the robot and of the target in the sensor."""
    if settings.in_hand is not None:
        return settings.in_hand
    good = np.isfinite(seen).all((1, 2))
    e, o = robot[good, :3, :3], seen[good, :3, :3]
    rng = np.random.default_rng(0)
    left = [np.inf, np.inf]
    if len(e) > 2:
        i, j = rng.integers(len(e), size=(2, _PAIRS))
        a = rotation_vector(np.swapaxes(e[j], 1, 2) @ e[i])
        beside, on = np.swapaxes(o[j], 1, 2) @ o[i], o[j] @ np.swapaxes(o[i], 1, 2)
        left = [_left(a, rotation_vector(b)) for b in (beside, on)]
    on_robot = left[1] < left[0]
    what = "on the robot and its target beside it" if on_robot else "beside the robot and its target on it"
    sure = min(left) * _BETTER < max(left)
    doubt = "" if sure else "; the rotations hardly tell, so state it"
    settings.note(f"the sensor of the poses counts as {what}{doubt}", where)
    return on_robot


def _left(a: Array, b: Array) -> float:
    """What is left between rotation vectors (N, 3) after the best rotation of one onto the other."""
    turn = nearest_rotation(np.einsum("ni,nj->ij", a, b))
    return float(np.median(np.linalg.norm(a - b @ turn.T, axis=1)))
