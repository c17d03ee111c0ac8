"""Model and recordings of the SO-101 arm: a hobby arm with Feetech STS3215 servos, logged at 50 Hz."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.law import ActuatorLaw
from dynid.errors import ModelError
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.study import data_folder

__all__ = ["FITTED", "HELD_OUT", "JOINTS", "RESOLUTION", "file_law", "so101_recording", "so101_robot"]

Array = NDArray[np.float64]

FITTED = ("multisine", "chirp_sweep", "prbs_excitation")
HELD_OUT = ("step_response", "velocity_ramp")
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
RESOLUTION = 2 * np.pi / 4096  # rad, one step of the encoder
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
    return robot.locked({"gripper": _JAW})


def file_law() -> ActuatorLaw:
    """The law of the model file's class "sts3215"."""
    return ActuatorLaw(JOINTS, kp=998.22, kd=2.731, torque_limit=2.94)


def so101_recording(motions: Sequence[str]) -> Recording:
    """Commands and positions of the five joints; the currents are unsigned and left out."""
    folder = data_folder() / "so101-arm-sage"
    columns = {"q": [f"q{i}" for i in range(1, 6)], "reference": [f"cmd{i}" for i in range(1, 6)]}
    return load_recording([folder / f"{name}.csv.xz" for name in motions], so101_robot(), columns=columns, time="t")
