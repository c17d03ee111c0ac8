"""Write a robot as URDF, from scratch or into the file it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError, writing
from dynid.robot.drives import TermKind
from dynid.robot.inertia import inertia_to_com, inertia_violations, move_inertia
from dynid.robot.model import Robot

__all__ = ["write_urdf"]

Array = NDArray[np.float64]


def write_urdf(robot: Robot, path: str | Path, template: str | Path | None = None) -> list[str]:
    """Write a robot into `path`; returns what a reader of the file should be warned of.

    With `template`, that URDF is copied and only inertial blocks and joint dynamics change: a moving link takes the
    inertia of its whole body, links on fixed joints lose theirs, which is part of it. Without it the file is made from
    the tree alone. URDF has no place for offsets, couplings and springs; rotor inertia is left out as well.
    """
    warnings = _warnings(robot)
    root = _from_template(robot, Path(template)) if template is not None else _from_tree(robot)
    ET.indent(root, "  ")
    with writing(path):
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return warnings


def _warnings(robot: Robot) -> list[str]:
    out = []
    for i in robot.parameter_links:
        broken = inertia_violations(robot.links[i].inertia)
        if broken:
            out.append(f"link '{robot.links[i].name}' is physically impossible: {'; '.join(broken)}")
    lost = sorted({t.symbol for t in robot.drives if _dynamics_key(t.kind) is None or t.motor})
    if lost:
        out.append(f"URDF has no place for the drive terms {', '.join(lost)}")
    return out


def _dynamics_key(kind: TermKind) -> str | None:
    return {TermKind.VISCOUS: "damping", TermKind.COULOMB: "friction"}.get(kind)


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{v:.12g}" for v in values)


def _rpy(r: Array) -> Array:
    """Fixed-axis angles of a rotation; at the pitch of a right angle, roll is set to zero."""
    pitch = np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0]))
    if np.hypot(r[0, 0], r[1, 0]) < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-r[0, 1], r[1, 1])])
    return np.array([np.arctan2(r[2, 1], r[2, 2]), pitch, np.arctan2(r[1, 0], r[0, 0])])


def _origin(parent: ET.Element, h: Array) -> None:
    ET.SubElement(parent, "origin", xyz=_text(h[:3, 3]), rpy=_text(_rpy(h[:3, :3])))


def _inertial(link: ET.Element, pi: Array, name: str) -> None:
    """Replace the inertial block; a massless link without inertia has none."""
    for old in link.findall("inertial"):
        link.remove(old)
    if not np.any(pi):
        return
    if pi[0] == 0 and np.any(pi[1:4]):
        raise ModelError(f"link '{name}' has a first moment but no mass, which URDF cannot hold")
    if pi[0] == 0:
        com, tensor = np.zeros(3), np.array([[pi[4], pi[5], pi[7]], [pi[5], pi[6], pi[8]], [pi[7], pi[8], pi[9]]])
    else:
        _, com, tensor = inertia_to_com(pi)
    block = ET.SubElement(link, "inertial")
    ET.SubElement(block, "origin", xyz=_text(com), rpy="0 0 0")
    ET.SubElement(block, "mass", value=f"{pi[0]:.12g}")
    names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ET.SubElement(block, "inertia", {k: f"{tensor[i]:.12g}" for k, i in names.items()})


def _dynamics(joint: ET.Element, robot: Robot, name: str) -> None:
    """Damping and friction of a joint's own drive."""
    values = {}
    for term in robot.drives:
        key = _dynamics_key(term.kind)
        if term.shaft == name and not term.motor and key is not None:
            values[key] = f"{term.value:.12g}"
    if values:
        element = joint.find("dynamics")
        if element is None:
            element = ET.SubElement(joint, "dynamics")
        element.attrib.update(values)


def _from_template(robot: Robot, template: Path) -> ET.Element:
    try:
        root = ET.parse(template).getroot()
    except (OSError, ET.ParseError) as error:
        raise ModelError(f"the template '{template}' cannot be read: {error}") from None
    links = {x.get("name"): x for x in root.findall("link")}
    for link in robot.links:
        if link.name not in links:
            raise ModelError(f"the template '{template.name}' has no link '{link.name}'")
        _inertial(links[link.name], link.inertia, link.name)
    for merge in robot.merged:
        if merge.link in links:
            _inertial(links[merge.link], np.zeros(10), merge.link)
    for joint in root.findall("joint"):
        _dynamics(joint, robot, joint.get("name", ""))
    return root


def _from_tree(robot: Robot) -> ET.Element:
    root = ET.Element("robot", name=robot.name)
    mounts = [np.eye(4), *(j.mount for j in robot.joints)]
    for link, mount in zip(robot.links, mounts, strict=True):
        # URDF links sit on their joint: bodies are moved from our link frame to the joint's.
        _inertial(ET.SubElement(root, "link", name=link.name), move_inertia(link.inertia, mount), link.name)
    for joint, link in zip(robot.joints, robot.links[1:], strict=True):
        limits = joint.limits
        free = joint.kind == "revolute" and not np.isfinite([limits.lower, limits.upper]).any()
        element = ET.SubElement(root, "joint", name=joint.name, type="continuous" if free else joint.kind)
        ET.SubElement(element, "parent", link=robot.links[joint.parent].name)
        ET.SubElement(element, "child", link=link.name)
        _origin(element, mounts[joint.parent] @ joint.placement)
        ET.SubElement(element, "axis", xyz=_text(joint.axis))
        if not free:
            bounds = {
                "lower": limits.lower,
                "upper": limits.upper,
                "velocity": limits.velocity,
                "effort": limits.effort,
            }
            big = {k: f"{np.clip(v, -1e9, 1e9):.12g}" for k, v in bounds.items()}
            ET.SubElement(element, "limit", big)
        if joint.mimic is not None:
            m = joint.mimic
            ET.SubElement(element, "mimic", joint=m.leader, multiplier=f"{m.ratio:.12g}", offset=f"{m.offset:.12g}")
        _dynamics(element, robot, joint.name)
    for frame in robot.frames:
        ET.SubElement(root, "link", name=f"{frame.name}")
        element = ET.SubElement(root, "joint", name=f"{frame.name}_fixed", type="fixed")
        ET.SubElement(element, "parent", link=robot.links[frame.link].name)
        ET.SubElement(element, "child", link=frame.name)
        _origin(element, mounts[frame.link] @ frame.placement)
    return root
