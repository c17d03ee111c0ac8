"""Springs between motors and links in MJCF: two joints with one axis, and tendons for what acts on their sum."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass

from dynid.errors import ModelError
from dynid.export.contents import number
from dynid.export.mjcf_parts import drive_attributes
from dynid.robot.model import Robot
from dynid.robot.parts import Joint

__all__ = ["Springs", "add_spring"]

# Attributes of a joint that a fixed tendon has as well, by their names there.
_ON_LINK = {"damping": "damping", "frictionloss": "frictionloss", "stiffness": "stiffness", "springref": "springlength"}


@dataclass(frozen=True, eq=False)
class Springs:
    """Motors and springs of flexible joints, on the joint side.

    Attributes
    ----------
    motors : Robot
        A robot whose drive terms are those of the motors; its bodies are not used.
    stiffness : mapping of str to float
        Stiffness per flexible joint, N m/rad or N/m.
    damping : mapping of str to float
        Damping per flexible joint, N m s/rad or N s/m.
    """

    motors: Robot
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]


def add_spring(root: ET.Element, body: ET.Element, robot: Robot, joint: Joint, springs: Springs) -> None:
    """Make the joint that was added to a body last the motor of a flexible joint, and add its deflection.

    The position of the link is the sum of both: what acts on the link is a fixed tendon over them.
    """
    element = body.findall("joint")[-1]
    motor = drive_attributes(springs.motors, joint)
    if joint.name not in springs.stiffness:  # a rigid joint has motor and link in one
        for key, value in motor.items():
            element.set(key, number(float(value) + float(element.get(key, "0"))))
        return
    if joint.mimic is not None or any(j.mimic is not None and j.mimic.leader == joint.name for j in robot.joints):
        raise ModelError(
            f"'{joint.name}' is flexible and coupled to another joint, which MJCF cannot hold", code="unsupported"
        )
    on_link = {_ON_LINK[key]: element.attrib.pop(key) for key in _ON_LINK if key in element.attrib}
    element.attrib.update(motor)
    deflection = {key: value for key, value in element.attrib.items() if key in ("type", "pos", "axis")}
    spring = {
        "stiffness": number(springs.stiffness[joint.name]),
        "damping": number(springs.damping[joint.name]),
    }
    name = f"{joint.name}_deflection"
    ET.SubElement(body, "joint", {"name": name} | deflection | spring)
    if on_link:
        section = root.find("tendon")
        section = ET.SubElement(root, "tendon") if section is None else section
        tendon = ET.SubElement(section, "fixed", {"name": f"{joint.name}_link"} | on_link)
        for each in (joint.name, name):
            ET.SubElement(tendon, "joint", joint=each, coef="1")
