"""Motion of a floating base from measurements: rotation matrices, an inertial unit, or a foot at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_placement
from dynid.errors import ConflictingArguments, DataError, InvalidShape, InvalidValue, NotFinite, keyword
from dynid.recording.run import Run, mended_poses
from dynid.robot.model import Robot
from dynid.robot.parts import checked, checked_placement
from dynid.robot.spatial import inverse_placement

__all__ = ["BaseMotion", "base_from_foot", "base_from_imu", "base_from_matrices"]

Array = NDArray[np.float64]

# Largest error of R'R - I: a rotation matrix printed with three digits stays below it.
_LARGEST_SKEW = 0.02


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """Motion of a floating base.

    Attributes
    ----------
    pose : ndarray (N, 7)
        Position (m) and quaternion (x, y, z, w) in the world.
    twist : ndarray (N, 6) or None
        Body twist (linear m/s, angular rad/s), where it is measured.
    acceleration : ndarray (N, 6) or None
        Time derivative of the body twist, where it is measured.
    """

    pose: Array
    twist: Array | None = None
    acceleration: Array | None = None

    def on(self, run: Run) -> Run:
        """A run with this motion of its base.

        Parameters
        ----------
        run : Run
            A run with N samples.

        Returns
        -------
        Run
        """
        return replace(run, base=self.pose, base_v=self.twist, base_a=self.acceleration)


def base_from_matrices(matrices: ArrayLike, positions: ArrayLike | None = None) -> BaseMotion:
    """Motion of a base from rotation matrices or placements in the world.

    Rotation matrices with rounding errors are replaced by the nearest rotations.

    Parameters
    ----------
    matrices : array_like (N, 3, 3) or (N, 4, 4)
        Rotations, or placements that contain the positions.
    positions : array_like (N, 3), optional
        Positions in m that belong to rotations; zero by default.

    Returns
    -------
    BaseMotion

    Raises
    ------
    DataError
        If the shapes do not match, or a matrix is not a rotation.

    Examples
    --------
    >>> import numpy as np
    >>> from dynid.recording import base_from_matrices
    >>> base_from_matrices(np.tile(np.eye(3), (2, 1, 1))).pose.tolist()[0]
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    given = np.asarray(matrices, dtype=float)
    if given.ndim != 3 or given.shape[1:] not in ((3, 3), (4, 4)):
        raise InvalidShape(f"matrices of a base are (N, 3, 3) or (N, 4, 4), got shape {given.shape}", "matrices")
    if given.shape[1] == 4 and positions is not None:
        raise ConflictingArguments(
            f"placements (N, 4, 4) contain the positions already; give rotations (N, 3, 3) with {keyword('positions')}"
        )
    if positions is None:
        where = given[:, :3, 3] if given.shape[1] == 4 else np.zeros((len(given), 3))
    else:
        where = checked(positions, (len(given), 3), "positions of the base", DataError)
    turns = given[:, :3, :3]
    if not np.all(np.isfinite(turns)) or not np.all(np.isfinite(where)):
        raise NotFinite("the matrices of the base contain a number that is not finite", "matrices")
    off = np.abs(np.swapaxes(turns, 1, 2) @ turns - np.eye(3)).max(axis=(1, 2), initial=0.0)
    wrong = np.flatnonzero((off > _LARGEST_SKEW) | (np.linalg.det(turns) < 0))
    if wrong.size:
        raise InvalidValue(f"the matrix of the base at row {wrong[0]} is not a rotation", "matrices")
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
    """Motion of a base from an inertial measurement unit.

    The orientation is the integral of the angular velocity, so it drifts with the bias of the gyroscope. Position and
    linear velocity are zero: an inertial unit does not measure them, and the wrench of a body does not depend on them.
    The acceleration is that of the accelerometer plus gravity, at the origin of the base.

    Parameters
    ----------
    t : array_like (N,)
        Time in s, increasing.
    gyroscope : array_like (N, 3)
        Angular velocity in rad/s, in the axes of the unit.
    accelerometer : array_like (N, 3), optional
        Specific force in m/s2, in the axes of the unit; without it the acceleration is None.
    start : array_like (4,)
        Quaternion (x, y, z, w) of the base at the first sample.
    gravity : array_like (3,)
        Gravity in the world in m/s2.
    placement : array_like (4, 4), optional
        Placement of the unit in the base.

    Returns
    -------
    BaseMotion

    Raises
    ------
    DataError
        If the shapes do not match or the time does not increase.
    """
    clock = np.asarray(t, dtype=float)
    if clock.ndim != 1 or clock.size < 2 or not np.all(np.diff(clock) > 0):
        raise InvalidValue("the time of an inertial unit must have shape (N,) and increase")
    shape = (clock.size, 3)
    rates = checked(gyroscope, shape, "the gyroscope", DataError)
    pull = np.array(checked(gravity, (3,), "gravity", DataError))
    quaternion = mended_poses(np.append(np.zeros(3), checked(start, (4,), "start", DataError))[None], "start")[0, 3:]
    mount = np.eye(4) if placement is None else checked_placement(placement, "placement of the unit", DataError)
    rates = rates @ mount[:3, :3].T
    step = np.diff(clock)[:, None]
    # The angular velocity is linear between samples: its mean and the second term of the Magnus expansion.
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
    robot: Robot, q: ArrayLike, foot: str | Sequence[str], *, placement: ArrayLike | None = None
) -> BaseMotion:
    """Motion of a base from joint positions and a foot at rest in the world.

    Parameters
    ----------
    robot : Robot
        The robot, with a fixed or floating base.
    q : array_like (N, joint)
        Joint positions.
    foot : str or sequence of str
        Link or named frame at rest, or its name at each of the N samples. A foot that takes over rests where it was at
        the last sample of the foot before.
    placement : array_like (4, 4), optional
        Placement of the first foot in the world; the origin by default.

    Returns
    -------
    BaseMotion

    Raises
    ------
    DataError
        If the shapes do not match.
    """
    still = robot.with_base("fixed")
    joints = np.asarray(q, dtype=float)
    if joints.ndim != 2 or joints.shape[1] != robot.n:
        raise InvalidShape(f"q has shape {joints.shape}; robot '{robot.name}' needs (N, {robot.n})")
    feet = [foot] * len(joints) if isinstance(foot, str) else list(foot)
    if len(feet) != len(joints):
        raise InvalidShape(f"foot names {len(feet)} samples, q has {len(joints)}", "foot")
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
    """Products (N, 4) of the first k quaternions, k = 1 ... N, in log2(N) vectorised passes."""
    rotation = scipy.spatial.transform.Rotation
    out, reach = np.array(quaternions), 1
    while reach < len(out):
        out[reach:] = (rotation.from_quat(out[:-reach]) * rotation.from_quat(out[reach:])).as_quat()
        reach *= 2
    return out
