"""Ball joints, held against MuJoCo: its quaternions, angular velocities and moments become those of three joints."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dynid
from dynid.errors import InvalidShape, InvalidValue, UnknownName
from dynid.recording import BallJoint
from tests.support.errors import expect_error

TEXT = """<mujoco><worldbody><body name="arm"><joint name="lift" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
  <body name="hand" pos="0.4 0 0.1" euler="20 30 40"><joint name="wrist" type="ball" pos="0.02 0 0.01"/>
    <geom type="box" size="0.1 0.02 0.05" pos="0.1 0.03 0.02"/></body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ball") / "arm.xml"
    file.write_text(TEXT)
    return file


def test_inverse_dynamics_along_quaternions_is_mujocos(path: Path) -> None:
    """A motion through several turns about the body's own axis, in which no angle jumps."""
    robot = dynid.load_robot(path)
    wrist = BallJoint(robot, "wrist")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    t = np.arange(0.0, 4.0, 0.002)
    smooth = np.column_stack([0.8 * np.sin(1.3 * t), 4.0 * t, 0.6 * np.cos(0.9 * t), 0.7 * np.sin(2.0 * t)])
    order = [robot.coordinates.index(name) for name in ("lift", *wrist.joints)]
    first, middle, last = (next(j.axis for j in robot.joints if j.name == name) for name in wrist.joints)
    # The first angle turns on and on, the middle one stays below 90 degrees.
    turn = Rotation.from_rotvec(smooth[:, 1:2] * first) * Rotation.from_rotvec(smooth[:, 2:3] * middle)
    quaternion = (turn * Rotation.from_rotvec(smooth[:, 3:] * last)).as_quat()
    quaternion[::7] *= -1.0  # either sign is the same rotation
    angles = wrist.angles(3.0 * quaternion)
    np.testing.assert_allclose(angles, smooth[:, 1:], atol=1e-12)

    v, a = (np.zeros((len(t), 4)) for _ in range(2))
    v[:, 0], a[:, 0] = np.gradient(smooth[:, 0], t), -0.8 * 1.69 * np.sin(1.3 * t)
    rng = np.random.default_rng(0)
    rate, change = rng.normal(size=(2, len(t), 3))
    for k in range(0, len(t), 97):
        data.qpos[0], data.qpos[1:] = smooth[k, 0], np.roll(quaternion[k], 1)
        data.qvel[0], data.qvel[1:] = v[k, 0], rate[k]
        data.qacc[0], data.qacc[1:] = a[k, 0], change[k]
        mujoco.mj_inverse(model, data)
        here = angles[k : k + 1]
        own = wrist.velocities(here, rate[k : k + 1])
        # Angular velocity a moment later: the acceleration of the angles is its difference quotient.
        h = 1e-6
        later = wrist.velocities(here + h * own, rate[k : k + 1] + h * change[k])
        before = wrist.velocities(here - h * own, rate[k : k + 1] - h * change[k])
        q, speed, rise = np.zeros((3, 1, 4))
        q[0, order] = smooth[k, 0], *here[0]
        speed[0, order] = v[k, 0], *own[0]
        rise[0, order] = a[k, 0], *((later - before)[0] / (2 * h))
        torque = dynid.inverse_dynamics(robot, q, speed, rise)[0, order]
        moment = np.array(data.qfrc_inverse)
        np.testing.assert_allclose(torque[0], moment[0], atol=1e-6)
        np.testing.assert_allclose(torque[1:], wrist.torques(here, moment[None, 1:])[0], atol=1e-6)


def test_errors_name_joint_and_row(path: Path) -> None:
    robot = dynid.load_robot(path)
    wrist = BallJoint(robot, "wrist")
    with expect_error(UnknownName, "name"):
        BallJoint(robot, "hip")
    with expect_error(UnknownName, "name"):
        BallJoint(dynid.load_robot("twolink"), "hip")
    with expect_error(InvalidValue, "quaternions"):
        wrist.angles([[0, 0, 0, 1], [0, 0, 0, 0]])
    with expect_error(InvalidShape, "quaternions"):
        wrist.angles([0, 0, 0, 1])
    middle = next(j.axis for j in robot.joints if j.name == wrist.joints[1])
    half = np.sqrt(0.5)
    with pytest.raises(dynid.DataError, match=f"'{wrist.joints[1]}' is at 90 degrees in row 1"):
        wrist.angles([[0, 0, 0, 1], [*(half * middle), half]])
