"""What may differ between a robot and its file, and by how much one expects it to differ.

Every joint's placement is moved by a small rigid motion in its own frame: a translation t, a rotation about the two
axes across the joint axis (all three for a sliding joint), and the zero of the encoder, which is the missing one of
six. None of these has a singularity where axes are parallel, unlike Denavit-Hartenberg parameters. On top of these

    position = (1 + g) reading + zero + a1 cos + b1 sin + a2 cos 2 + b2 sin 2 + c M

with the gear factor g, the eccentricity of encoder or gear once and twice per turn, and the compliance c loaded by the
gravity torque M of the bodies.

Sources: Everett, Driels and Mooring, Kinematic Modelling for Robot Calibration (1987); Hayati and Mirmirani, Improving
the Absolute Positioning Accuracy of Robot Manipulators (1985); Khalil and Besnard, Geometric Calibration of Robots with
Flexible Joints and Links (2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, UnknownName, did_you_mean
from dynid.robot.model import Robot
from dynid.robot.parts import Joint

__all__ = ["GeometryModel", "Unknown", "UnknownKind", "axis_letters", "joint_axes", "joint_unknowns"]

Array = NDArray[np.float64]


class UnknownKind(StrEnum):
    """What an unknown moves; unknowns of one kind share a standard deviation."""

    POSITION = "position"
    ROTATION = "rotation"
    ZERO = "zero"
    SLIDE_ZERO = "slide_zero"
    GEAR = "gear"
    ECCENTRICITY = "eccentricity"
    COMPLIANCE = "compliance"
    BENDING = "bending"
    SENSOR = "sensor"


@dataclass(frozen=True)
class Unknown:
    """One unknown of a calibration.

    Attributes
    ----------
    kind : UnknownKind
        What it moves.
    owner : str
        Joint, or sensor with its part.
    symbol : str
        Short name: x, y, z (m), rx, ry, rz (rad), zero, gear, cos1, sin1, cos2, sin2, c, cx, cy, cz.
    unit : str
        SI unit.
    std : float
        Standard deviation that is expected before any measurement; infinite where nothing is known.
    """

    kind: UnknownKind
    owner: str
    symbol: str
    unit: str
    std: float = np.inf

    @property
    def name(self) -> str:
        """Symbol and owner: "x of joint4"."""
        return f"{self.symbol} of {self.owner}"


@dataclass(frozen=True)
class GeometryModel:
    """What may differ from the robot's file, each with the standard deviation one expects.

    A value of zero leaves a kind out. With `learned`, the standard deviation of a kind that many joints share is
    estimated together with them, with the given one counting as four joints.

    Attributes
    ----------
    position : float
        Position of a joint on its link (m). Links are machined and assembled to a few tenths of a millimetre, files
        are often rounded to millimetres.
    rotation : float
        Direction of a joint (rad).
    zero : float
        Zero of an encoder on a revolute joint (rad).
    slide_zero : float
        Zero of an encoder on a sliding joint (m).
    gear : float
        Relative error of the gear factor; left out by default, as numbers of teeth are exact.
    eccentricity : float
        Amplitude of an error of a revolute joint once or twice per turn (rad): strain wave gears transmit angles to
        about one minute of arc.
    compliance : float
        Compliance of a joint about its own axis (rad/(N m)), or along it (m/N). Gears of arms have 10 to 50 kN m/rad.
    bending : float
        Compliance about the two axes across (rad/(N m)), of bearings and links.
    learned : bool
        Whether standard deviations shared by joints are estimated.
    """

    position: float = 1e-3
    rotation: float = 5e-3
    zero: float = 1e-2
    slide_zero: float = 2e-3
    gear: float = 0.0
    eccentricity: float = 3e-4
    compliance: float = 5e-5
    bending: float = 1e-5
    learned: bool = True

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name != "learned" and not (np.isfinite(value) and value >= 0):
                raise InvalidValue(f"the standard deviation of '{entry.name}' is {value}: use zero or more", entry.name)

    @classmethod
    def only(cls, *kinds: str) -> GeometryModel:
        """The default with these kinds alone, such as "zero"; kinds that are left out by default get a usual size.

        Parameters
        ----------
        *kinds : str
            Names of attributes.

        Returns
        -------
        GeometryModel
        """
        known = [f.name for f in fields(cls) if f.name != "learned"]
        for kind in kinds:
            if kind not in known:
                raise UnknownName(f"no kind of geometric error is named '{kind}'{did_you_mean(kind, known)}", "kinds")
        usual = {f.name: f.default for f in fields(cls)} | _ASKED
        values = {k: usual[k] if k in kinds else 0.0 for k in known}
        if "zero" in kinds:
            values["slide_zero"] = usual["slide_zero"]
        return cls(**values)  # type: ignore[arg-type]


# Cosine beyond which a joint axis is one of its frame.
_ALIGNED = 1 - 1e-9
# Size of what the default leaves out, where it is asked for.
_ASKED = {"gear": 1e-3}


def joint_axes(joint: Joint) -> Array:
    """Unit vectors (3, 3), as columns in the joint frame, along which its errors are counted; the third is its axis.

    Where the joint axis is x, y or z of its frame, they are axes of the frame; the others follow in cyclic order.
    """
    axis = np.abs(joint.axis)
    main = int(np.argmax(axis))
    if axis[main] > _ALIGNED:
        return np.eye(3)[:, [(main + 1) % 3, (main + 2) % 3, main]]
    first = np.eye(3)[(main + 1) % 3]
    first = first - joint.axis * (joint.axis @ first)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(joint.axis, first), joint.axis])


def joint_unknowns(robot: Robot, joints: Sequence[int], model: GeometryModel, loaded: bool) -> list[Unknown]:
    """Unknowns of joints, by their index; compliances only where bodies have masses (`loaded`)."""
    out: list[Unknown] = []
    for i in joints:
        joint = robot.joints[i]
        across, along = axis_letters(joint)
        turns = joint.kind == "revolute"
        angle = "rad" if turns else "m"
        moved = [*across, along] if turns else across
        turned = across if turns else [*across, along]
        rows = [(UnknownKind.POSITION, s, "m", model.position) for s in moved]
        rows += [(UnknownKind.ROTATION, f"r{s}", "rad", model.rotation) for s in turned]
        zero = (UnknownKind.ZERO, model.zero) if turns else (UnknownKind.SLIDE_ZERO, model.slide_zero)
        rows.append((zero[0], "zero", angle, zero[1]))
        rows.append((UnknownKind.GEAR, "gear", "", model.gear))
        waves = ("cos1", "sin1", "cos2", "sin2") if turns else ()
        rows += [(UnknownKind.ECCENTRICITY, s, angle, model.eccentricity) for s in waves]
        if loaded:
            rows.append((UnknownKind.COMPLIANCE, "c", "rad/(N m)" if turns else "m/N", model.compliance))
            rows += [(UnknownKind.BENDING, f"c{s}", "rad/(N m)", model.bending) for s in across]
        out += [Unknown(kind, joint.name, symbol, unit, std) for kind, symbol, unit, std in rows if std > 0]
    return out


def axis_letters(joint: Joint) -> tuple[list[str], str]:
    """Names of the axes across a joint axis and along it; u, v, w where the axis is none of its frame."""
    axis = np.abs(joint.axis)
    main = int(np.argmax(axis))
    if axis[main] <= _ALIGNED:
        return ["u", "v"], "w"
    return ["xyz"[(main + 1) % 3], "xyz"[(main + 2) % 3]], "xyz"[main]
