"""Write a robot as URDF, from scratch or into the text of the file it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import (
    body_values,
    lost_drives,
    lost_loops,
    number,
    numbers_text,
    own_term,
    plain_joint_terms,
    refuse_infeasible,
    rpy_angles,
    with_mean_friction,
)
from dynid.export.label import Label, labelled
from dynid.export.template import Template, match_template, named_elements
from dynid.export.xmltext import Element, XmlText, document, open_tag
from dynid.files import writing
from dynid.robot.drives import file_keys
from dynid.robot.inertia import move_inertia
from dynid.robot.model import Robot

__all__ = ["urdf_content", "write_urdf"]

Array = NDArray[np.float64]

_KEYS = file_keys("urdf")
_TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


def write_urdf(
    robot: Robot,
    path: str | Path,
    *,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
) -> list[str]:
    """Write a robot as URDF.

    Parameters
    ----------
    robot : Robot
        The robot to write.
    path : str or Path
        File to write. It is replaced whole or not at all.
    template : str or Path, optional
        URDF file of the same robot. Its text is kept and only inertial and dynamics elements that differ change: a
        moving link takes the inertia of its whole body, links on fixed joints lose theirs, which is part of it.
        Without a template the file is made from the tree.
    allow_infeasible : bool, default False
        Write bodies and drives that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the file says of the estimate it is made of: the verdict at its top, what decided each body in its <link>.

    Returns
    -------
    list of str
        Warnings for the reader of the file. URDF has no place for rotor inertia, offsets, couplings, springs, gravity
        and closed loops.

    Raises
    ------
    ModelError
        If the parameters are refused, or the template is a file of another robot.
    """
    content, warnings = urdf_content(robot, template=template, allow_infeasible=allow_infeasible)
    with writing(path) as part:
        part.write_bytes(labelled(content, "link", label, template))
    return warnings


def urdf_content(robot: Robot, *, template: str | Path | None, allow_infeasible: bool) -> tuple[bytes, list[str]]:
    """The file that `write_urdf` writes, without its label, and its warnings."""
    warnings = refuse_infeasible(robot, allow_infeasible) + lost_loops(robot, "URDF")
    robot, told = with_mean_friction(robot.tree, "URDF")
    warnings += told + lost_drives(robot, "URDF", lambda t: t.kind in _KEYS and own_term(robot, t))
    if not np.array_equal(robot.gravity, [0, 0, -9.81]):
        warnings.append(f"URDF has no place for gravity: load the file with gravity=({_commas(robot.gravity)})")
    content = document(_from_tree(robot, warnings)) if template is None else _from_template(robot, Path(template))
    return content, warnings


def _commas(values: Array) -> str:
    return ", ".join(number(v) for v in values)


def _inertial_parts(pi: Array, name: str) -> dict[str, dict[str, str]]:
    """The children of an inertial element with their attributes."""
    mass, com, tensor = body_values(pi, name, "URDF")
    return {
        "origin": {"xyz": numbers_text(com), "rpy": "0 0 0"},
        "mass": {"value": number(mass)},
        "inertia": {k: number(tensor[i]) for k, i in _TENSOR.items()},
    }


def _dynamics(robot: Robot, joint: str) -> dict[str, str]:
    """Damping and friction of a joint's own drive, where they are modelled."""
    return {key: number(t.value) for key, t in plain_joint_terms(robot, joint, _KEYS).items()}


# -- into a template ---------------------------------------------------------------------------------


def _from_template(robot: Robot, path: Path) -> bytes:
    template = match_template(robot, path)
    file = XmlText.read(path)
    if file.root.tag != "robot":
        raise ModelError(
            f"the template '{path.name}' is not a URDF file: its root element is <{file.root.tag}>",
            "template",
            code="file_format",
        )
    links, joints = (named_elements(file.root.findall(tag), path.name) for tag in ("link", "joint"))
    for name, pi in template.bodies.items():
        _patch_inertial(file, links[name], pi, name)
        for other in template.fixed[name]:
            for old in links[other].findall("inertial"):
                file.remove(old)
    for joint in robot.joints:
        values = _changed_dynamics(robot, template, joint.name)
        if values:
            _patch_dynamics(file, joints[joint.name], values)
    return file.to_bytes()


def _changed_dynamics(robot: Robot, template: Template, name: str) -> dict[str, str]:
    """What must change in the dynamics of a joint; what a follower has is counted in the joint that it follows."""
    joint = next(j for j in robot.joints if j.name == name)
    leader = joint.mimic.leader if joint.mimic is not None else name
    out = {}
    for key, term in plain_joint_terms(robot, leader, _KEYS).items():
        if template.value(leader, term.symbol) != term.value:
            out[key] = number(term.value) if joint.mimic is None else "0"
    return out


def _patch_inertial(file: XmlText, link: Element, pi: Array, name: str) -> None:
    """Give a link another inertia, in the elements that it has where they are; nothing at all has no element."""
    old = link.findall("inertial")
    for more in old[1:] if np.any(pi) else old:
        file.remove(more)
    if not np.any(pi):
        return
    parts = _inertial_parts(pi, name)
    if not old:
        lines = [f"  {open_tag(tag, attributes)}" for tag, attributes in parts.items()]
        file.insert(link, ["\n".join(["<inertial>", *lines, "</inertial>"])], first=True)
        return
    missing = []
    for tag, attributes in parts.items():
        found = old[0].findall(tag)
        for element in found[:1]:
            file.set(element, attributes)
        for element in found[1:]:
            file.remove(element)
        if not found:
            missing.append(open_tag(tag, attributes))
    file.insert(old[0], missing, first=True)


def _patch_dynamics(file: XmlText, joint: Element, values: dict[str, str]) -> None:
    element = joint.find("dynamics")
    if element is not None:
        file.set(element, {k: v for k, v in values.items() if v != "0" or k in element.attributes})
    elif any(v != "0" for v in values.values()):
        file.insert(joint, [open_tag("dynamics", values)])


# -- from the tree -----------------------------------------------------------------------------------


def _origin(parent: ET.Element, h: Array) -> None:
    ET.SubElement(parent, "origin", xyz=numbers_text(h[:3, 3]), rpy=numbers_text(rpy_angles(h[:3, :3])))


def _add_link(root: ET.Element, name: str, pi: Array) -> None:
    link = ET.SubElement(root, "link", name=name)
    if np.any(pi):
        block = ET.SubElement(link, "inertial")
        for tag, attributes in _inertial_parts(pi, name).items():
            ET.SubElement(block, tag, attributes)


def _from_tree(robot: Robot, warnings: list[str]) -> ET.Element:
    root = ET.Element("robot", name=robot.name)
    mounts = [np.eye(4), *(j.mount for j in robot.joints)]
    for link, mount in zip(robot.links, mounts, strict=True):
        # URDF links sit on their joint: bodies are moved from our link frame to the joint's.
        _add_link(root, link.name, move_inertia(link.inertia, mount))
    for joint, link in zip(robot.joints, robot.links[1:], strict=True):
        limits = joint.limits
        free = joint.kind == "revolute" and not np.isfinite([limits.lower, limits.upper]).any()
        element = ET.SubElement(root, "joint", name=joint.name, type="continuous" if free else joint.kind)
        ET.SubElement(element, "parent", link=robot.links[joint.parent].name)
        ET.SubElement(element, "child", link=link.name)
        _origin(element, mounts[joint.parent] @ joint.placement)
        ET.SubElement(element, "axis", xyz=numbers_text(joint.axis))
        bounds = {} if free else {"lower": limits.lower, "upper": limits.upper}
        bounds |= {"velocity": limits.velocity, "effort": limits.effort}
        if not free or np.isfinite([limits.velocity, limits.effort]).any():
            ET.SubElement(element, "limit", {k: number(np.clip(v, -1e9, 1e9)) for k, v in bounds.items()})
        if joint.mimic is not None:
            m = joint.mimic
            ET.SubElement(element, "mimic", joint=m.leader, multiplier=number(m.ratio), offset=number(m.offset))
        values = _dynamics(robot, joint.name)
        if values:
            ET.SubElement(element, "dynamics", values)
    _add_frames(root, robot, mounts, warnings)
    return root


def _add_frames(root: ET.Element, robot: Robot, mounts: list[Array], warnings: list[str]) -> None:
    """Frames as empty links on fixed joints; URDF has one link of a name."""
    links = {link.name for link in robot.links}
    joints = {joint.name for joint in robot.joints}
    for frame in robot.frames:
        if frame.name in links:
            warnings.append(f"a second frame named '{frame.name}' is left out")
            continue
        name = f"{frame.name}_fixed"
        while name in joints:
            name += "_"
        links.add(frame.name)
        joints.add(name)
        ET.SubElement(root, "link", name=frame.name)
        element = ET.SubElement(root, "joint", name=name, type="fixed")
        ET.SubElement(element, "parent", link=robot.links[frame.link].name)
        ET.SubElement(element, "child", link=frame.name)
        _origin(element, mounts[frame.link] @ frame.placement)
