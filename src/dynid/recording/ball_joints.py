"""Ball joints in recordings: from quaternions, angular velocities and moments to three revolute joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, NotIdentifiable, UnknownName
from dynid.robot.chains import Step, ball_angles
from dynid.robot.model import Robot

__all__ = ["BallJoint"]

Array = NDArray[np.float64]

# Cosine of the middle angle from which on the outer two cannot be told apart: 0.06 degrees from 90.
_SINGULAR = 1e-3


@dataclass(frozen=True, eq=False)
class BallJoint:
    """A ball joint of a robot, which dynid has as three revolute joints.

    Logs of ball joints hold the rotation of the child link in the parent link as a quaternion, the angular velocity and
    the moment in the axes of the child link. This is the bridge to the columns of a `Run`.

    Attributes
    ----------
    robot : Robot
        The robot.
    name : str
        Name of the ball joint in the robot file, without the endings `_rx`, `_ry` and `_rz`.

    Raises
    ------
    DataError
        If the robot has no such joint.

    Examples
    --------
    >>> import dynid
    >>> text = '''<mujoco><worldbody><body><joint name="hip" type="ball"/><geom size="0.1" pos="0 0 -0.3"/></body>
    ... </worldbody></mujoco>'''
    >>> _ = open("hip.xml", "w").write(text)
    >>> hip = dynid.recording.BallJoint(dynid.load_robot("hip.xml"), "hip")
    >>> hip.joints
    ('hip_ry', 'hip_rz', 'hip_rx')
    >>> hip.angles([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.6, 0.8]]).round(3)[1].tolist()
    [0.0, 1.287, 0.0]
    """

    robot: Robot
    name: str

    def __post_init__(self) -> None:
        if len(self.joints) != 3:
            known = sorted({n[:-3] for n in self.robot.coordinates if n.endswith(("_rx", "_ry", "_rz"))})
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UnknownName(f"robot '{self.robot.name}' has no ball joint '{self.name}': {has}", "name")

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the three joints, in the order in which they follow each other from the parent link."""
        names = {f"{self.name}_r{letter}" for letter in "xyz"}
        return tuple(name for name in self.robot.coordinates if name in names)

    def angles(self, quaternion: ArrayLike) -> Array:
        """Positions of the three joints.

        Parameters
        ----------
        quaternion : array_like of shape (N, 4)
            Rotation of the child link in the parent link as x, y, z, w, of any length, in the order of time. MuJoCo
            writes w first.

        Returns
        -------
        ndarray of shape (N, 3)
            Angles in rad without jumps of a turn.

        Raises
        ------
        DataError
            If a quaternion is zero, or the middle angle is at 90 degrees.
        """
        given = np.asarray(quaternion, dtype=float)
        if given.ndim != 2 or given.shape[1] != 4 or not len(given):
            raise InvalidShape(
                f"ball joint '{self.name}': quaternions must have shape (N, 4), got {given.shape}", "quaternions"
            )
        size = np.linalg.norm(given, axis=1)
        if not np.all(np.isfinite(size) & (size > 0)):
            raise InvalidValue(
                f"ball joint '{self.name}': the quaternion of row {np.argmin(size > 0)} is no rotation", "quaternions"
            )
        matrices = scipy.spatial.transform.Rotation.from_quat(given / size[:, None]).as_matrix()
        found = np.array([ball_angles(self._steps, matrix) for matrix in matrices])
        self._refuse_singular(found)
        return np.unwrap(found, axis=0)

    def velocities(self, angles: ArrayLike, angular_velocity: ArrayLike) -> Array:
        """Velocities (N, 3) of the joints at these angles (N, 3) from the angular velocity (N, 3) of the child."""
        at = np.asarray(angles, dtype=float)
        self._refuse_singular(at)
        return np.linalg.solve(self._map(at), np.asarray(angular_velocity, dtype=float)[..., None])[..., 0]

    def torques(self, angles: ArrayLike, moment: ArrayLike) -> Array:
        """Torques (N, 3) of the joints at these angles (N, 3) from the moment (N, 3) on the child link."""
        return np.einsum("nij,ni->nj", self._map(np.asarray(angles, dtype=float)), np.asarray(moment, dtype=float))

    @property
    def _steps(self) -> list[Step]:
        axes = {joint.name: joint.axis for joint in self.robot.joints}
        return [Step(name.removeprefix(self.name), "revolute", axes[name]) for name in self.joints]

    def _map(self, angles: Array) -> Array:
        """Angular velocity of the child, in its axes, per velocity of the three joints (N, 3, 3)."""
        first, middle, last = (np.array(step.axis) for step in self._steps)
        turn = scipy.spatial.transform.Rotation.from_rotvec
        behind_last = turn(angles[:, 2:] * last).inv()
        behind_middle = behind_last * turn(angles[:, 1:2] * middle).inv()
        columns = [behind_middle.apply(first), behind_last.apply(middle), np.broadcast_to(last, (len(angles), 3))]
        return np.stack(columns, axis=-1)

    def _refuse_singular(self, angles: Array) -> None:
        flat = np.abs(np.cos(angles[:, 1])) < _SINGULAR
        if flat.any():
            where = f"joint '{self.joints[1]}' is at 90 degrees in row {np.argmax(flat)}"
            raise NotIdentifiable(f"ball joint '{self.name}': {where}, where the other two angles cannot be told apart")
