"""MJCF texts of a quadruped and a biped with real contacts, whose parameters are known."""

from __future__ import annotations

import re

__all__ = ["BIPED_FEET", "IMU", "QUADRUPED_FEET", "SOLE", "biped_xml", "quadruped_xml", "with_springs"]

QUADRUPED_FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
BIPED_FEET = ("left_sole", "right_sole")
IMU = "imu"
# Radius of the feet of the quadruped, and half length, half width and half height of those of the biped, m.
FOOT_RADIUS = 0.022
SOLE = (0.14, 0.07, 0.01)

_HEAD = """
<mujoco model="{name}">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.001" integrator="implicitfast" cone="elliptic" impratio="10"/>
  <default>
    <geom contype="0" conaffinity="0" friction="1.0 0.005 0.0001" solref="0.008 1.0"/>
    <joint armature="{armature}" damping="{damping}" frictionloss="{loss}"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" contype="1" conaffinity="1" condim="3"/>
    <body name="trunk" pos="0 0 {height}">
      <freejoint/>
      <site name="imu" pos="0.03 -0.01 0.05"/>
"""


def quadruped_xml(payload: tuple[float, tuple[float, float, float]] | None = None) -> str:
    """A quadruped of 13 bodies and 17.8 kg, with a point mass (kg, m in the trunk) on its trunk if one is given."""
    text = _HEAD.format(name="quadruped", armature=0.012, damping=0.15, loss=0.08, height=0.32)
    text += """
      <inertial pos="0.021 -0.006 0.014" mass="9.2" fullinertia="0.05 0.12 0.135 0.002 -0.006 0.0008"/>
"""
    text += _payload(payload)
    for name, front, left in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1)):
        text += f"""
      <body name="{name}_hip" pos="{front * 0.19} {left * 0.05} 0">
        <inertial pos="{-0.004 * front} {left * 0.004} 0.001" mass="0.68"
          fullinertia="0.0005 0.0009 0.0006 {-1e-5 * front * left} {2e-6 * front} 1e-6"/>
        <joint name="{name}_hip_joint" type="hinge" axis="1 0 0" range="-1 1"/>
        <body name="{name}_thigh" pos="0 {left * 0.09} 0">
          <inertial pos="-0.004 {-0.022 * left} -0.033" mass="1.15"
            fullinertia="0.0058 0.0056 0.0011 {-5e-6 * left} 0.0003 {8e-5 * left}"/>
          <joint name="{name}_thigh_joint" type="hinge" axis="0 1 0" range="-3.5 3.5"/>
          <body name="{name}_calf" pos="0 0 -0.213">
            <inertial pos="0.006 0.0008 -0.12" mass="0.32" fullinertia="0.0029 0.0029 0.0001 1e-6 0.00014 -3e-6"/>
            <joint name="{name}_calf_joint" type="hinge" axis="0 1 0" range="-2.8 -0.4"/>
            <geom name="{name}_ball" type="sphere" size="{FOOT_RADIUS}" pos="0 0 -0.213" contype="1" conaffinity="1"
              condim="3" mass="0"/>
            <site name="{name}_foot" pos="0 0 -0.213"/>
          </body>
        </body>
      </body>"""
    names = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
    return text + _tail(names)


def biped_xml(payload: tuple[float, tuple[float, float, float]] | None = None) -> str:
    """A biped of 13 bodies and 34 kg with six joints per leg and flat feet."""
    text = _HEAD.format(name="biped", armature=0.03, damping=0.3, loss=0.15, height=0.75)
    text += """
      <inertial pos="0.012 0.004 0.16" mass="18" fullinertia="0.42 0.36 0.19 0.004 -0.012 0.003"/>
"""
    text += _payload(payload)
    length, width, thick = SOLE
    for name, left in (("left", 1), ("right", -1)):
        text += f"""
      <body name="{name}_hip_yaw" pos="0 {0.09 * left} -0.02">
        <inertial pos="0.01 {0.002 * left} -0.02" mass="0.9" diaginertia="0.0016 0.0017 0.0012"/>
        <joint name="{name}_hip_yaw_joint" type="hinge" axis="0 0 1" range="-1 1"/>
        <body name="{name}_hip_roll" pos="0 0 -0.05">
          <inertial pos="-0.012 {0.004 * left} 0.002" mass="1.1" diaginertia="0.0018 0.0025 0.0021"/>
          <joint name="{name}_hip_roll_joint" type="hinge" axis="1 0 0" range="-1 1"/>
          <body name="{name}_thigh" pos="0 0 0">
            <inertial pos="0.008 {0.012 * left} -0.13" mass="2.9"
              fullinertia="0.029 0.03 0.006 1e-4 0.0008 {3e-4 * left}"/>
            <joint name="{name}_hip_pitch_joint" type="hinge" axis="0 1 0" range="-2 2"/>
            <body name="{name}_shin" pos="0 0 -0.3">
              <inertial pos="0.006 {-0.004 * left} -0.11" mass="1.7" fullinertia="0.015 0.015 0.0021 0 0.0003 1e-4"/>
              <joint name="{name}_knee_joint" type="hinge" axis="0 1 0" range="0.05 2.4"/>
              <body name="{name}_ankle" pos="0 0 -0.3">
                <inertial pos="0.002 0 0.004" mass="0.35" diaginertia="0.0003 0.0003 0.0003"/>
                <joint name="{name}_ankle_pitch_joint" type="hinge" axis="0 1 0" range="-1.2 1.2"/>
                <body name="{name}_foot" pos="0 0 0">
                  <inertial pos="0.025 {0.001 * left} -0.035" mass="1.05" fullinertia="0.0012 0.0042 0.0047 0 4e-4 0"/>
                  <joint name="{name}_ankle_roll_joint" type="hinge" axis="1 0 0" range="-0.8 0.8"/>
                  <geom name="{name}_box" type="box" size="{length} {width} {thick}" pos="0.03 0 -0.045" contype="1"
                    conaffinity="1" condim="3" mass="0"/>
                  <site name="{name}_sole" pos="0.03 0 {-0.045 - thick}"/>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>"""
    parts = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")
    return text + _tail([f"{side}_{part}_joint" for side in ("left", "right") for part in parts])


def _payload(payload: tuple[float, tuple[float, float, float]] | None) -> str:
    """A welded point-like mass on the trunk."""
    if payload is None:
        return ""
    mass, (x, y, z) = payload
    size = mass * 0.03**2
    return f"""
      <body name="payload" pos="{x} {y} {z}">
        <inertial pos="0 0 0" mass="{mass}" diaginertia="{size} {size} {size}"/>
      </body>
"""


def _tail(joints: list[str]) -> str:
    """Motors of the joints and the inertial unit."""
    motors = "\n".join(f'    <motor name="{j}" joint="{j}"/>' for j in joints)
    return f"""
    </body>
  </worldbody>
  <actuator>
{motors}
  </actuator>
  <sensor>
    <accelerometer name="specific_force" site="imu"/>
    <gyro name="angular_velocity" site="imu"/>
  </sensor>
</mujoco>
"""


def with_springs(text: str, stiffness: float, damping: float) -> str:
    """The same robot with springs (N m/rad, N m s/rad) between motors and links: a second joint beside each joint."""
    spring = f'armature="0" frictionloss="0" stiffness="{stiffness}" damping="{damping}"'
    joint = re.compile(r'<joint name="(\w+)" type="hinge" (axis="[^"]*") range="[^"]*"/>')
    return joint.sub(rf'<joint name="\1" type="hinge" \2/><joint name="\1_deflection" type="hinge" \2 {spring}/>', text)
