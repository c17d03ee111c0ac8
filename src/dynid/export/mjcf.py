"""Write a robot as MJCF (MuJoCo's format), from scratch or into the text of the file it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import infeasible_drives, numbers_text, refuse_infeasible, with_mean_friction
from dynid.export.label import Label, labelled
from dynid.export.mjcf_loops import add_loops
from dynid.export.mjcf_parts import drive_attributes, drive_warnings, inertial_attributes, pose_attributes
from dynid.export.mjcf_springs import Springs, add_spring
from dynid.export.xmltext import XmlText, document
from dynid.files import writing
from dynid.robot.inertia import inertia_violations
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.spatial import clean, inverse_placement

__all__ = ["missing_meshes", "mjcf_content", "write_mjcf"]

Array = NDArray[np.float64]

_WORLD = "world"  # MuJoCo's own body, a name that no other may have


def write_mjcf(
    robot: Robot,
    path: str | Path,
    *,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
    springs: Springs | None = None,
) -> list[str]:
    """Write a robot as MJCF (MuJoCo).

    Parameters
    ----------
    robot : Robot
        The robot to write.
    path : str or Path
        File to write. It is replaced whole or not at all.
    template : str or Path, optional
        MJCF file of the same robot. Its text is kept and only inertial elements and drive attributes that differ
        change: a moving body takes the inertia of all that is fixed to it. Without a template the file is made from the
        tree, with the link frames as body frames.
    allow_infeasible : bool, default False
        Write bodies and drives that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the file says of the estimate it is made of: the verdict at its top, what decided each body in its <body>.
    springs : Springs, optional
        Springs between motors and links. A flexible joint is written as two joints of one body: the
        motor, which has the name of the joint, and its deflection. Friction of the link is that of a tendon over both.

    Returns
    -------
    list of str
        Warnings for the reader of the file. MuJoCo does not load bodies that are not physically consistent.

    Raises
    ------
    ModelError
        If the parameters are refused, the template is a file of another robot, or springs are given with a template.
    """
    content, warnings = mjcf_content(robot, template=template, allow_infeasible=allow_infeasible, springs=springs)
    warnings += missing_meshes(content, path, template)
    with writing(path) as part:
        part.write_bytes(labelled(content, "body", label, template))
    return warnings


def mjcf_content(
    robot: Robot, *, template: str | Path | None, allow_infeasible: bool, springs: Springs | None = None
) -> tuple[bytes, list[str]]:
    """The file that `write_mjcf` writes, without its label, and its warnings."""
    found = refuse_infeasible(robot, allow_infeasible)
    if springs is not None:
        if template is not None:
            raise ModelError(
                "springs add joints, which a template has not: write a new file", "template", code="not_applicable"
            )
        refuse_infeasible(replace(springs.motors, links=robot.links), allow_infeasible)
    robot, told = with_mean_friction(robot, "MJCF")
    # From the tree, each body that MuJoCo refuses is warned of where it is written.
    warnings = (infeasible_drives(robot) if template is None else found) + told + drive_warnings(robot)
    if springs is not None:
        warnings += drive_warnings(springs.motors)
    if template is None:
        return document(_from_tree(robot, warnings, springs)), warnings
    from dynid.export.mjcf_template import patched_mjcf

    return patched_mjcf(robot, Path(template), warnings).to_bytes(), warnings


def missing_meshes(content: str | bytes, path: str | Path, template: str | Path | None) -> list[str]:
    """A warning where a file is not in the folder of its template, which has its meshes."""
    apart = template is not None and Path(path).resolve().parent != Path(template).resolve().parent
    if apart and any("file" in e.attributes for e in XmlText(content).root.iter()):
        return [f"the file needs the meshes and textures beside '{template}': put it into that folder"]
    return []


# -- from the tree -----------------------------------------------------------------------------------


def _add_inertial(body: ET.Element, link: Link, warnings: list[str]) -> None:
    ET.SubElement(body, "inertial", inertial_attributes(link.inertia, link.name, warnings))


class _Carrier(NamedTuple):
    """Where a link is written: in a body, at `place` of its frame, behind joints that wait for a body of their own."""

    body: ET.Element
    place: Array
    waiting: tuple[tuple[Joint, Array], ...] = ()


def _from_tree(robot: Robot, warnings: list[str], springs: Springs | None) -> ET.Element:
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers_text(robot.gravity))
    world = ET.SubElement(root, "worldbody")
    names = _body_names(robot, warnings)
    carriers = [_Carrier(_base(robot, world, names[0], warnings), np.eye(4))]
    for i, joint in enumerate(robot.joints, start=1):
        carrier = carriers[joint.parent]
        before = carrier.place @ joint.placement
        place, waiting = before @ joint.mount, (*carrier.waiting, (joint, before))
        if _only_between_joints(robot, i):
            carriers.append(_Carrier(carrier.body, place, waiting))
            continue
        body = ET.SubElement(carrier.body, "body", {"name": names[i], **pose_attributes(place)})
        for each, at in waiting:
            _add_joint(body, robot, each, inverse_placement(place) @ at)
            if springs is not None:
                add_spring(root, body, robot, each, springs)
        _add_inertial(body, robot.links[i], warnings)
        carriers.append(_Carrier(body, np.eye(4)))
    _add_sites(robot, names, carriers, warnings)
    _add_equalities(root, robot)
    add_loops(root, robot, [carrier.body for carrier in carriers], warnings)
    if any(np.isfinite(j.limits.velocity) for j in robot.joints):
        warnings.append("MJCF has no place for velocity limits")
    order = [e.get("name", "") for e in world.iter("joint") if e.get("name") in robot.tree_coordinates]
    if tuple(order) != robot.tree_coordinates:
        warnings.append(f"MJCF has joints branch by branch: in the file they are {', '.join(order)}")
    return root


def _body_names(robot: Robot, warnings: list[str]) -> list[str]:
    """Names of the links, but for one that is called as MuJoCo's world."""
    names = [link.name for link in robot.links]
    if _WORLD in names:
        i = names.index(_WORLD)
        same = [f.name for f in robot.frames if f.link == i == 0 and np.array_equal(f.placement, np.eye(4))]
        names[i] = next(n for n in (*same, *(f"{_WORLD}{k}" for k in range(len(names) + 1))) if n not in names)
        if i > 0 or robot.base == "floating":
            warnings.append(f"link '{_WORLD}' is written as '{names[i]}': that name is MuJoCo's own")
    return names


def _base(robot: Robot, world: ET.Element, name: str, warnings: list[str]) -> ET.Element:
    """The body of the base link: a free one, one that stands still, or the world itself."""
    link, floating = robot.links[0], robot.base == "floating"
    if robot.base == "instrumented":
        warnings.append('MJCF has no measured base: load the file with base="instrumented"')
    if not floating and link.name == _WORLD and not np.any(link.inertia):
        return world
    body = ET.SubElement(world, "body", name=name)
    if floating:
        ET.SubElement(body, "freejoint")
    if robot.base == "fixed" and inertia_violations(link.inertia):
        if np.any(link.inertia):
            warnings.append(
                f"the base '{link.name}' is not physically consistent; its inertia, which has no effect, is left out"
            )
    elif floating or np.any(link.inertia):
        _add_inertial(body, link, warnings)
    return body


def _only_between_joints(robot: Robot, i: int) -> bool:
    """Whether a link is nothing but the place between two joints of one body."""
    link = robot.links[i]
    carries = sum(j.parent == i for j in robot.joints)
    frames = [*robot.frames, *(f for loop in robot.loops for f in loop.frames)]
    return link.virtual and not np.any(link.inertia) and carries == 1 and all(f.link != i for f in frames)


def _add_joint(body: ET.Element, robot: Robot, joint: Joint, at: Array) -> None:
    """A joint whose frame has placement `at` in the frame of its body."""
    limits = joint.limits
    attributes = {"name": joint.name, "type": "hinge" if joint.kind == "revolute" else "slide"}
    if joint.kind == "revolute" and np.any(clean(at)[:3, 3]):
        attributes["pos"] = numbers_text(clean(at)[:3, 3])
    attributes["axis"] = numbers_text(clean(at[:3, :3] @ joint.axis))
    if np.isfinite([limits.lower, limits.upper]).any():
        attributes["range"] = numbers_text(np.clip([limits.lower, limits.upper], -1e9, 1e9))
    if np.isfinite(limits.effort):
        attributes["actuatorfrcrange"] = numbers_text([-limits.effort, limits.effort])
    ET.SubElement(body, "joint", attributes | drive_attributes(robot, joint))


def _add_sites(robot: Robot, names: list[str], carriers: list[_Carrier], warnings: list[str]) -> None:
    """Frames that are not a body's own; MJCF has one site of a name."""
    written: set[str] = set()
    for frame in robot.frames:
        if frame.name == names[frame.link] and np.array_equal(frame.placement, np.eye(4)):
            continue
        if frame.name in written:
            warnings.append(f"a second frame named '{frame.name}' is left out")
            continue
        written.add(frame.name)
        ET.SubElement(carriers[frame.link].body, "site", {"name": frame.name, **pose_attributes(frame.placement)})


def _add_equalities(root: ET.Element, robot: Robot) -> None:
    followers = [(j.name, j.mimic) for j in robot.joints if j.mimic is not None]
    if followers:
        section = ET.SubElement(root, "equality")
        for name, mimic in followers:
            line = numbers_text([mimic.offset, mimic.ratio, 0, 0, 0])
            ET.SubElement(section, "joint", joint1=name, joint2=mimic.leader, polycoef=line)
