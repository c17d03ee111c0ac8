"""A small arm with position servos, integrated by MuJoCo, and its log at 50 Hz."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.recording.recording import Recording
from dynid.recording.run import Run

Array = NDArray[np.float64]

JOINTS = ("pan", "lift", "elbow", "wrist")
KP = 15.0
RATE = 50.0
_ARM = """
<mujoco><option timestep="0.001" integrator="implicitfast"/><default><joint armature="0.01" damping="0.5"
  frictionloss="{friction}"/></default><worldbody>
<body><joint name="pan" axis="0 0 1"/><inertial pos="0 0 0.03" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>
  <body pos="0 0 0.06"><joint name="lift" axis="0 1 0"/>
    <inertial pos="0.06 0 0.01" mass="0.12" diaginertia="4e-5 2e-4 2e-4"/>
    <body pos="0.12 0 0"><joint name="elbow" axis="0 1 0"/>
      <inertial pos="0.07 0 -0.01" mass="0.11" diaginertia="4e-5 2e-4 2e-4"/>
      <body pos="0.13 0 0"><joint name="wrist" axis="0 1 0"/>
        <inertial pos="0.06 0 0.015" mass="0.2" diaginertia="5e-5 1e-4 1e-4"/></body></body></body></body>
</worldbody><actuator>
  <position joint="pan" kp="{kp}"/><position joint="lift" kp="{kp}"/><position joint="elbow" kp="{kp}"/>
  <position joint="wrist" kp="{kp}"/></actuator></mujoco>
"""


def servo_arm(folder: Path) -> dynid.Robot:
    """The arm as its file has it."""
    (folder / "arm.xml").write_text(_ARM.format(friction=0.1, kp=KP), encoding="utf-8")
    return dynid.load_robot(folder / "arm.xml", friction="viscous+coulomb", rotor_inertia=True)


def slow_motion(seconds: float = 60.0) -> Array:
    """Commands (K, 4): slow sines about a posture that gravity loads."""
    t = np.arange(int(seconds * RATE)) / RATE
    frequency = np.array([0.05, 0.07, 0.11, 0.13])
    return np.array([0.0, -0.3, 0.6, 0.2]) + 0.4 * np.sin(2 * np.pi * frequency * t[:, None] + frequency)


def servo_log(command: Array, *, signs: Array, zeros: Array, friction: float = 0.1) -> Recording:
    """Its log, in which the position of the model is sign times the logged one plus the zero."""
    model = mujoco.MjModel.from_xml_string(_ARM.format(friction=friction, kp=KP))
    data = mujoco.MjData(model)
    data.qpos[:] = command[0]
    q = np.empty_like(command)
    for k, row in enumerate(command):
        q[k] = data.qpos
        data.ctrl[:] = row
        mujoco.mj_step(model, data, round(1.0 / RATE / model.opt.timestep))
    step = 2 * np.pi / 4096
    logged, commanded = (signs * (x - zeros) for x in (q, command))
    return Recording(JOINTS, (Run(t=np.arange(len(q)) / RATE, q=np.round(logged / step) * step, reference=commanded),))
