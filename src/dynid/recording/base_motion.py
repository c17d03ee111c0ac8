"""Motion of a floating base from what was measured of it: matrices, an inertial unit, or a foot that stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_placement
from dynid.errors import DataError
from dynid.recording.recording import Run, mended_poses
from dynid.robot.model import Robot
from dynid.robot.parts import checked, checked_placement
from dynid.robot.spatial import inverse_placement

__all__ = ["BaseMotion", "base_from_foot", "base_from_imu", "base_from_matrices"]

Array = NDArray[np.float64]

# Printed with three digits a rotation matrix is off by less; beyond, it scales, mirrors or holds something else.
_LARGEST_SKEW = 0.02


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """Pose of a base (N, 7: position, quaternion x, y, z, w) and, where measured, body twist and its rate (N, 6)."""

    pose: Array
    twist: Array | None = None
    acceleration: Array | None = None

    def on(self, run: Run) -> Run:
        """The run with this motion of its base."""
        return replace(run, base=self.pose, base_v=self.twist, base_a=self.acceleration)


def base_from_matrices(matrices: ArrayLike, positions: ArrayLike | None = None) -> BaseMotion:
    """Motion of a base from rotations (N, 3, 3) with `positions` (N, 3), or from placements (N, 4, 4), in the world.

    Rotations that are a little off for their digits are replaced by the nearest ones.
    """
    given = np.asarray(matrices, dtype=float)
    if given.ndim != 3 or given.shape[1:] not in ((3, 3), (4, 4)):
        raise DataError(f"matrices of a base are (N, 3, 3) or (N, 4, 4), got shape {given.shape}")
    if given.shape[1] == 4 and positions is not None:
        raise DataError("placements (N, 4, 4) hold the positions already; give rotations (N, 3, 3) with positions=")
    if positions is None:
        where = given[:, :3, 3] if given.shape[1] == 4 else np.zeros((len(given), 3))
    else:
        where = checked(positions, (len(given), 3), "positions of the base", DataError)
    turns = given[:, :3, :3]
    if not np.all(np.isfinite(turns)) or not np.all(np.isfinite(where)):
        raise DataError("the matrices of the base hold a number that is not finite")
    off = np.abs(np.swapaxes(turns, 1, 2) @ turns - np.eye(3)).max(axis=(1, 2), initial=0.0)
    wrong = np.flatnonzero((off > _LARGEST_SKEW) | (np.linalg.det(turns) < 0))
    if wrong.size:
        raise DataError(f"the matrix of the base at row {wrong[0]} is no rotation")
    u, _, vt = np.linalg.svd(turns)
    quaternion = scipy.spatial.transform.Rotation.from_matrix(u @ vt).as_quat()
    return BaseMotion(mended_poses(np.hstack([where, quaternion]), "the base"))


def base_from_imu(
    t: ArrayLike,
    gyroscope: ArrayLike,
    accelerometer: ArrayLike | None = None,
    *,
    start: ArrayLike = (0.0, 0.0, 0.0, 1.0),
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    placement: ArrayLike | None = None,
) -> BaseMotion:
    """Motion of a base from an inertial unit: rates (N, 3) in rad/s and specific forces (N, 3) in m/s2, its own axes.

    `start` is the base's orientation (x, y, z, w) at the first sample, `placement` (4x4) the unit's place in the base.
    Orientation is the rates integrated, so it drifts as they do. The position stays at zero and the linear velocity
    too: a unit cannot tell them, and the wrench of a body does not depend on them. The acceleration holds the rest:
    what `accelerometer` shows with gravity put back, moved to the base's origin.
    """
    clock = np.asarray(t, dtype=float)
    if clock.ndim != 1 or clock.size < 2 or not np.all(np.diff(clock) > 0):
        raise DataError("the clock of an inertial unit must be (N,) and go forward")
    shape = (clock.size, 3)
    rates = checked(gyroscope, shape, "the gyroscope", DataError)
    pull = np.array(checked(gravity, (3,), "gravity", DataError))
    quaternion = mended_poses(np.append(np.zeros(3), checked(start, (4,), "start", DataError))[None], "start")[0, 3:]
    mount = np.eye(4) if placement is None else checked_placement(placement, "placement of the unit", DataError)
    rates = rates @ mount[:3, :3].T
    step = np.diff(clock)[:, None]
    # Between samples the rate is taken as a straight line; its mean turns the base, its slope adds a little (Magnus).
    turn = 0.5 * (rates[1:] + rates[:-1]) * step + np.cross(rates[:-1], rates[1:]) * step**2 / 12.0
    rotation = scipy.spatial.transform.Rotation
    turns = np.concatenate([quaternion[None], rotation.from_rotvec(turn).as_quat()])
    pose = mended_poses(np.hstack([np.zeros(shape), running_product(turns)]), "the base")
    twist = np.hstack([np.zeros(shape), rates])
    if accelerometer is None:
        return BaseMotion(pose, twist)
    force = checked(accelerometer, shape, "the accelerometer", DataError) @ mount[:3, :3].T
    angular = np.gradient(rates, clock, axis=0)
    lever = mount[:3, 3]
    at_origin = force - np.cross(angular, lever) - np.cross(rates, np.cross(rates, lever))
    linear = at_origin + rotation.from_quat(pose[:, 3:]).inv().apply(pull)
    return BaseMotion(pose, twist, np.hstack([linear, angular]))


def base_from_foot(
    robot: Robot, q: ArrayLike, foot: str | Sequence[str], placement: ArrayLike | None = None
) -> BaseMotion:
    """Motion of a base from joint positions q (N, n) and a link or named frame that stands still in the world.

    `placement` (4x4) is where the first foot stands, the world's origin if left out. A list of N names says which foot
    stands at each sample; a foot that takes over stands where it was at the last sample of the foot before.
    """
    still = robot.with_base("fixed")
    joints = np.asarray(q, dtype=float)
    if joints.ndim != 2 or joints.shape[1] != robot.n:
        raise DataError(f"q has shape {joints.shape}; robot '{robot.name}' needs (N, {robot.n})")
    feet = [foot] * len(joints) if isinstance(foot, str) else list(foot)
    if len(feet) != len(joints):
        raise DataError(f"foot names {len(feet)} samples, q has {len(joints)}")
    stands = np.eye(4) if placement is None else checked_placement(placement, "placement of the foot", DataError)
    seen = {name: frame_placement(still, joints, name) for name in dict.fromkeys(feet)}
    out = np.empty((len(joints), 4, 4))
    first = 0
    for k in range(1, len(feet) + 1):
        if k < len(feet) and feet[k] == feet[first]:
            continue
        if first:
            stands = out[first - 1] @ seen[feet[first]][first - 1]
        out[first:k] = np.array([stands @ inverse_placement(h) for h in seen[feet[first]][first:k]])
        first = k
    return base_from_matrices(out)


def running_product(quaternions: Array) -> Array:
    """Products (N, 4) of the first k rotations, k = 1 ... N, in log2(N) passes over all of them."""
    rotation = scipy.spatial.transform.Rotation
    out, reach = np.array(quaternions), 1
    while reach < len(out):
        out[reach:] = (rotation.from_quat(out[:-reach]) * rotation.from_quat(out[reach:])).as_quat()
        reach *= 2
    return out
