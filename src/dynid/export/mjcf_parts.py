"""What bodies and joints of MJCF are given, whether their file is new or an old one that changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import lost_drives, number, numbers_text, own_term, plain_joint_terms
from dynid.robot.drives import TermKind, file_keys
from dynid.robot.inertia import consistency_room, inertia_to_com, inertia_to_spatial, inertia_violations
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.spatial import clean

__all__ = ["DRIVE_KEYS", "drive_attributes", "drive_warnings", "inertial_attributes", "pose_attributes"]

Array = NDArray[np.float64]

DRIVE_KEYS = file_keys("mjcf")
_LEAST = 1e-13  # kg and kg m2; MuJoCo refuses moving bodies with less than 1e-14 of either


def inertial_attributes(pi: Array, name: str, warnings: list[str]) -> dict[str, str]:
    """The inertia of a link about its centre of mass, lifted by rounding where MuJoCo would stumble over it."""
    where = f"link '{name}'"
    if pi[0] == 0 and np.any(pi[1:4]):
        raise ModelError(f"{where} has a first moment but no mass, which MJCF cannot hold", code="unsupported")
    if pi[0] == 0:
        mass, com, tensor = np.asarray(_LEAST), np.zeros(3), inertia_to_spatial(pi)[3:, 3:]
    else:
        mass, com, tensor = inertia_to_com(pi)
    # MuJoCo wants positive principal values, the largest no more than the sum of the others, to the last bit.
    principal, room, rounding = consistency_room(pi)
    short = _LEAST * max(1.0, principal[2]) - room
    if mass < 0 or room < -rounding:
        laws = "; ".join(inertia_violations(pi))
        warnings.append(f"{where} is not physically consistent, MuJoCo will not load it: {laws}")
    elif pi[0] == 0 or short > 0:
        tensor = tensor + max(short, 0.0) * np.eye(3)
        added = f"{max(short, 0.0):.1g} kg m2" + (f" and {_LEAST:.1g} kg" if pi[0] == 0 else "")
        warnings.append(f"{where} has no mass or no extent; MuJoCo needs some, so it is written with {added} more")
    xx, xy, xz, yy, yz, zz = tensor[np.triu_indices(3)]
    full = numbers_text((xx, yy, zz, xy, xz, yz))
    return {"pos": numbers_text(com), "mass": number(float(mass)), "fullinertia": full}


def pose_attributes(h: Array) -> dict[str, str]:
    """pos and quat of a placement, left out where they are nothing."""
    h, out = clean(h), {}
    if np.any(h[:3, 3]):
        out["pos"] = numbers_text(h[:3, 3])
    if not np.array_equal(h[:3, :3], np.eye(3)):
        import pinocchio as pin

        turn = pin.Quaternion(h[:3, :3])
        out["quat"] = numbers_text((turn.w, turn.x, turn.y, turn.z))
    return out


def drive_attributes(robot: Robot, joint: Joint, degrees: bool = False) -> dict[str, str]:
    """Drive attributes of a joint, for those terms that the robot models."""
    out = {}
    for key, term in plain_joint_terms(robot, joint.name, DRIVE_KEYS).items():
        out[key] = number(term.value)
        if term.kind == TermKind.SPRING:
            turn = degrees and joint.kind == "revolute"
            out["springref"] = number(np.degrees(term.rest) if turn else term.rest)
    return out


def drive_warnings(robot: Robot) -> list[str]:
    """Drive terms that MJCF cannot hold, and those that MuJoCo reads otherwise."""
    out = lost_drives(robot, "MJCF", lambda t: t.kind in DRIVE_KEYS and own_term(robot, t))
    for term in robot.drives:
        if term.kind == TermKind.COULOMB and own_term(robot, term) and term.value < 0:
            out.append(f"{term.name} is negative ({term.value:.4g}): MuJoCo takes it for zero")
    return out
