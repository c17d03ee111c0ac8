"""MJCF files against MuJoCo itself, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid

mujoco = pytest.importorskip("mujoco")

# What MuJoCo's compiler has to resolve: degrees, classes, frames, anchors, references, shapes, a tilted pedestal.
ARM = """
<body name="pedestal" pos="1 2 3" axisangle="1 2 3 40">
  <geom type="box" size="0.1 0.2 0.3"/>
  <body name="turret" pos="0 0 0.3" zaxis="1 2 3">
    <joint name="yaw" pos="0.05 0.02 0.01" range="-90 90" ref="30"/>
    <joint name="rail" class="rail" ref="0.2"/>
    <joint name="roll" axis="0 1 1" pos="-0.1 0 0.03" armature="0.3"/>
    <frame pos="0.1 0.2 0.3" euler="10 20 30">
      <geom type="ellipsoid" size="0.1 0.2 0.3" euler="10 20 30"/>
      <joint name="pitch" axis="1 0 0" pos="0.1 0 0"/>
    </frame>
    <geom type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.03" density="300"/>
    <geom type="cylinder" size="0.05 0.2" mass="3" xyaxes="1 1 0 0 1 1"/>
    <body name="hand" childclass="rail" pos="0.3 0 0" euler="30 20 10">
      <joint name="press"/>
      <inertial mass="0.7" pos="0.1 -0.1 0.05" fullinertia="0.03 0.02 0.04 0.001 0.002 0.003"/>
      <body name="tip" pos="0 0.1 0"><inertial mass="0.5" pos="0 0 0.1" diaginertia="0.01 0.02 0.02"/></body>
    </body>
  </body>
</body>
"""
FREE = f"""
<body name="drone" pos="0 0 1" euler="10 20 30"><freejoint/>
  <inertial mass="4" pos="0.1 0.1 0.2" diaginertia="0.3 0.2 0.4"/>{ARM}
</body>
"""
DEFAULTS = """
<option gravity="1 2 -9"/><compiler eulerseq="zYx"/>
<default><joint armature="0.05"/>
  <default class="rail"><joint type="slide" axis="1 1 0" range="-0.5 0.5" armature="0.2"/></default>
</default>
"""


@pytest.mark.parametrize("world", [ARM, FREE], ids=["arm", "free base"])
def test_inverse_dynamics_and_body_frames_are_mujocos(tmp_path: Path, world: str) -> None:
    """The same file in both programs: torques of mj_inverse, poses of all bodies, ranges of all joints."""
    path = tmp_path / "robot.xml"
    path.write_text(f'<mujoco model="test">{DEFAULTS}<worldbody>{world}</worldbody></mujoco>')
    robot = dynid.load_robot(path, rotor_inertia=True)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, a = rng.uniform(-1, 1, robot.nq), rng.uniform(-1, 1, robot.nv), rng.uniform(-1, 1, robot.nv)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        turn = np.eye(3)
        if robot.base == "floating":  # MuJoCo: quaternion w x y z, linear velocity of the base in the world
            q[3:7] /= np.linalg.norm(q[3:7])
            data.qpos[3:7] = q[[6, 3, 4, 5]]
            turn = dynid.dynamics.frame_placement(robot, q, "drone")[:3, :3]
            data.qvel[:3] = turn @ v[:3]
            data.qacc[:3] = turn @ (a[:3] + np.cross(v[3:6], v[:3]))
        mujoco.mj_inverse(model, data)
        theirs = data.qfrc_inverse.copy()
        theirs[:3] = turn.T @ theirs[:3]
        # Two codes in double precision, torques up to 500 N m; a free base has armature in neither.
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), theirs, atol=1e-10)
        for name in ("pedestal", "turret", "hand", "tip"):
            ours = dynid.dynamics.frame_placement(robot, q, name)
            np.testing.assert_allclose(ours[:3, 3], data.body(name).xpos, atol=1e-13)
            np.testing.assert_allclose(ours[:3, :3].ravel(), data.body(name).xmat, atol=1e-13)
    for name, limits in robot.limits.items():
        if np.isfinite(limits.lower):
            np.testing.assert_allclose([limits.lower, limits.upper], model.joint(name).range, atol=1e-15)
