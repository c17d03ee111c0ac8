"""Model and recordings of the SO-101 arm: a hobby arm with Feetech STS3215 servos, logged at 50 Hz."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.drives import TermKind
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.study import data_folder

__all__ = ["FITTED", "HELD_OUT", "JOINTS", "STEP", "file_law", "fitted_recording", "so101_recording", "so101_robot"]

Array = NDArray[np.float64]

FITTED = ("multisine", "chirp_sweep", "prbs_excitation")
HELD_OUT = ("step_response", "velocity_ramp")
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
STEP = 5e-3  # s, a quarter of a row; 1 ms changes the errors by about a percent
# LeRobot writes 254 into the register "Acceleration", in units of 100 encoder steps per second squared.
_ACCELERATION = 254 * 100 * 2 * np.pi / 4096  # rad/s^2
# In hold_under_gravity a joint does not move by a step of its encoder in ten seconds: friction must not creep faster.
_SLOPE = 10.0 / (2 * np.pi / 4096)  # s/rad
# The jaw is logged from 0 to 1, not as an angle. Its command stays near the middle: it is held at the middle of its
# range, where it moves the center of mass of the 12 g jaw by a few millimeters at most.
_JAW = 0.785
# The mesh of the camera mount is not with the file. Its mass is put between the two boxes that the file gives it.
_CAMERA_MOUNT = "0 0.045 -0.035"


def so101_robot() -> Robot:
    """The arm with armature, damping and friction of the model file, its jaw locked."""
    file = data_folder() / "so101-arm-sage" / "so101.xml"
    tree = ElementTree.parse(file)
    mounts = [g for g in tree.iter("geom") if g.get("mesh", "").endswith("camera_mount")]
    if len(mounts) != 1:
        raise ModelError(f"{file.name} has {len(mounts)} camera mounts; one was expected")
    for name in ("mesh", "quat", "class"):
        mounts[0].attrib.pop(name)
    mounts[0].attrib |= {"type": "sphere", "size": "0.001", "pos": _CAMERA_MOUNT}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file.name
        tree.write(path)
        robot = load_robot(path, friction="viscous+coulomb", rotor_inertia=True)
    robot = robot.locked({"gripper": _JAW})
    dry = [replace(t, slope=_SLOPE) if t.kind is TermKind.COULOMB else t for t in robot.drives]
    return replace(robot, drives=tuple(dry))


def file_law() -> ActuatorLaw:
    """The law of the model file's class "sts3215"."""
    return ActuatorLaw(JOINTS, kp=998.22, kd=2.731, torque_limit=2.94)


def so101_recording(motions: Sequence[str]) -> Recording:
    """Commands and positions of the five joints; the currents are unsigned and left out."""
    folder = data_folder() / "so101-arm-sage"
    columns = {"q": [f"q{i}" for i in range(1, 6)], "reference": [f"cmd{i}" for i in range(1, 6)]}
    return load_recording([folder / f"{name}.csv.xz" for name in motions], so101_robot(), columns=columns, time="t")


def fitted_recording() -> Recording:
    """The fitted runs; the chirp ends where its command accelerates beyond what the servo allows.

    From there on every joint falls back by half a period and more at once, which no law with inertia, damping and a
    short delay does: the servo may limit the acceleration of a set point of its own.
    """
    runs = so101_recording(FITTED).runs
    return Recording(JOINTS, tuple(_allowed(run) if run.name == "chirp_sweep" else run for run in runs))


def _allowed(run: Run) -> Run:
    """The rows before the command accelerates too much."""
    assert run.reference is not None
    step = float(np.mean(np.diff(run.t)))
    too_fast = np.abs(np.diff(run.reference, 2, axis=0)).max(axis=1) > _ACCELERATION * step**2
    return run.rows(0, int(np.argmax(too_fast)) if too_fast.any() else len(run))
