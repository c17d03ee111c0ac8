"""What controllers take beside robot files: zero offsets of encoders, and the kinematics of Universal Robots' driver.

    position = reading + offset

Source: the files `default_kinematics.yaml` of the package ur_description (2024).
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_on_link
from dynid.errors import NotApplicable
from dynid.export.contents import number, rpy_angles
from dynid.geometry.corrected import corrected_robot
from dynid.geometry.hartenberg import checked_covariance
from dynid.geometry.real import checked_values
from dynid.geometry.unknowns import Unknown
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement

__all__ = ["ZeroOffset", "ur_kinematics", "zero_offsets", "zeros_text"]

Array = NDArray[np.float64]

_LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
_BASE = "base_link_inertia"
_ALONG_Z = 1 - 1e-9


@dataclass(frozen=True)
class ZeroOffset:
    """Zero offset of one encoder.

    Attributes
    ----------
    joint : str
        The joint.
    unit : str
        rad or m.
    offset : float
        What is added to the reading.
    std : float
        Its standard deviation.
    """

    joint: str
    unit: str
    offset: float
    std: float


def zero_offsets(
    robot: Robot, unknowns: Sequence[Unknown], values: ArrayLike, covariance: ArrayLike | None = None
) -> tuple[ZeroOffset, ...]:
    """Zero offsets of the encoders, with standard deviations.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    unknowns : sequence of Unknown
        What differs.
    values : array_like, shape (K,)
        By how much.
    covariance : array_like, shape (K, K), optional
        Covariance of the values; standard deviations are zero without it.

    Returns
    -------
    tuple of ZeroOffset
        One per joint whose zero is among the unknowns.

    Examples
    --------
    >>> import dynid
    >>> from dynid.geometry import Unknown, zero_offsets
    >>> robot = dynid.load_robot("twolink")
    >>> zero_offsets(robot, [Unknown("zero", "joint1", "zero", "rad")], [0.01], [[1e-6]])[0]
    ZeroOffset(joint='joint1', unit='rad', offset=0.01, std=0.001)
    """
    x = checked_values(robot, unknowns, values)
    std = np.sqrt(np.diag(checked_covariance(covariance, len(x))))
    rows = {
        u.owner: (u.unit, float(v), float(s)) for u, v, s in zip(unknowns, x, std, strict=True) if u.symbol == "zero"
    }
    return tuple(ZeroOffset(j.name, *rows[j.name]) for j in robot.joints if j.name in rows)


def zeros_text(offsets: Sequence[ZeroOffset]) -> str:
    """Zero offsets as CSV: joint, unit, offset and standard deviation, and both in degrees for angles.

    Parameters
    ----------
    offsets : sequence of ZeroOffset
        The offsets.

    Returns
    -------
    str

    Examples
    --------
    >>> from dynid.geometry import ZeroOffset, zeros_text
    >>> print(zeros_text([ZeroOffset("joint1", "rad", 0.01, 0.001)]))
    joint,unit,offset,std,offset_degrees,std_degrees
    joint1,rad,0.01,0.001,0.572957795,0.0572957795
    <BLANKLINE>
    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["joint", "unit", "offset", "std", "offset_degrees", "std_degrees"])
    for row in offsets:
        both = (row.offset, row.std)
        degrees = [f"{np.degrees(v):.9g}" for v in both] if row.unit == "rad" else ["", ""]
        table.writerow([row.joint, row.unit, *(f"{v:.9g}" for v in both), *degrees])
    return out.getvalue()


def ur_kinematics(
    robot: Robot, unknowns: Sequence[Unknown], values: ArrayLike, frame: str, *, checksum: str = ""
) -> str:
    """Kinematics of a calibrated arm of Universal Robots, as the driver and ur_description read them.

    Parameters
    ----------
    robot : Robot
        The robot of a file made by ur_description: six joints in a row, each about z of its frame.
    unknowns : sequence of Unknown
        What differs; kinds that depend on the posture are left out.
    values : array_like, shape (K,)
        By how much.
    frame : str
        Link or frame that the six joints carry.
    checksum : str
        Hash of the robot's own calibration, as ur_calibration reads it; the driver warns of any other. One made from
        the numbers by default.

    Returns
    -------
    str
        Content of a kinematics.yaml: x, y, z (m), roll, pitch, yaw (rad) of each link on the one before. The shoulder
        is placed on base_link_inertia where the robot has that frame, else on the base.

    Raises
    ------
    NotApplicable
        For an arm of another form.

    Examples
    --------
    >>> import dynid
    >>> from dynid.geometry import ur_kinematics
    >>> rows = [(0.0, 0.0, 0.1625, 0.0), ("pi/2", 0, 0, 0), (0, -0.425, 0, 0)]
    >>> rows += [(0, -0.3922, 0.1333, 0), ("pi/2", 0, 0.0997, 0), ("-pi/2", 0, 0.0996, 0)]
    >>> arm = dynid.Robot.from_dh(rows, "modified", name="ur5e")
    >>> print(ur_kinematics(arm, [], [], "link6", checksum="calib_1")[:48])
    kinematics:
      shoulder:
        x: 0
        y: 0
        z:
    """
    arm = corrected_robot(robot, unknowns, values)
    link, chain = frame_on_link(robot, frame)[0], list[int]()
    while link > 0:
        chain.insert(0, link - 1)
        link = robot.joints[link - 1].parent
    joints = [arm.joints[i] for i in chain]
    if len(joints) != len(_LINKS):
        raise NotApplicable(f"'{frame}' is carried by {len(joints)} joints: kinematics.yaml is for six", "frame")
    base = next((f.placement for f in robot.frames if f.link == 0 and f.name.endswith(_BASE)), np.eye(4))
    lines, before = ["kinematics:"], inverse_placement(np.asarray(base))
    for name, joint in zip(_LINKS, joints, strict=True):
        if joint.kind != "revolute" or joint.axis[2] < _ALONG_Z or joint.mimic is not None:
            raise NotApplicable(
                f"joint '{joint.name}' does not turn about z of its frame, as joints of ur_description do", "robot"
            )
        h = before @ joint.placement
        before = np.asarray(joint.mount)
        pose = [*h[:3, 3], *rpy_angles(h[:3, :3])]
        lines.append(f"  {name}:")
        lines += [
            f"    {key}: {number(v)}" for key, v in zip(("x", "y", "z", "roll", "pitch", "yaw"), pose, strict=True)
        ]
    digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).digest()
    lines.append(f"  hash: {checksum or f'calib_{int.from_bytes(digest)}'}")
    return "\n".join(lines) + "\n"
