"""Closed loops in MJCF: equality constraints between sites, and the assembled posture as a keyframe."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from dynid.export.contents import number, numbers_text
from dynid.export.mjcf_parts import pose_attributes
from dynid.robot.constraints import JointEquality, LoopKind
from dynid.robot.model import Robot
from dynid.robot.posture import link_placements

__all__ = ["add_loops"]

_COEFFICIENTS = 5  # of a polynomial in MJCF


def add_loops(root: ET.Element, robot: Robot, bodies: list[ET.Element], warnings: list[str]) -> None:
    """Write the loops of a robot. `bodies` has the element of each link.

    A rod is a tendon of constant length; MuJoCo measures its length from the one at zero positions.
    """
    if not robot.loops:
        return
    section = root.find("equality")
    if section is None:
        section = ET.SubElement(root, "equality")
    taken = {e.get("name") for e in root.iter("site")}
    at_zero = link_placements(robot.tree)
    for number_of, loop in enumerate(robot.loops, start=1):
        name = loop.name or f"loop{number_of}"
        if isinstance(loop, JointEquality):
            if len(loop.polynomial) > _COEFFICIENTS:
                warnings.append(f"{loop} is not written: its polynomial has a degree above 4, the largest in MJCF")
            else:
                _add_equality(root, section, loop, name)
            continue
        sites = []
        for frame in (loop.first, loop.second):
            site = frame.name
            while site in taken:
                site += f"_{number_of}"
            taken.add(site)
            ET.SubElement(bodies[frame.link], "site", {"name": site, **pose_attributes(frame.placement)})
            sites.append(site)
        if loop.kind != LoopKind.ROD:
            ET.SubElement(section, loop.kind.value, name=name, site1=sites[0], site2=sites[1])
            continue
        tendon = ET.SubElement(_tendons(root), "spatial", name=name)
        for site in sites:
            ET.SubElement(tendon, "site", site=site)
        ends = [(at_zero[f.link] @ f.placement)[:3, 3] for f in (loop.first, loop.second)]
        change = loop.length - float(np.linalg.norm(ends[0] - ends[1]))
        ET.SubElement(section, "tendon", name=name, tendon1=name, polycoef=f"{number(change)} 0 0 0 0")
    if robot.base == "floating":
        warnings.append("the assembled posture is not written: a keyframe would need the pose of the base")
        return
    assert robot.assembled is not None
    place = dict(zip(robot.tree_coordinates, robot.assembled, strict=True))
    for joint in robot.joints:
        if joint.mimic is not None:
            place[joint.name] = joint.mimic.ratio * place[joint.mimic.leader] + joint.mimic.offset
    order = [e.get("name") for e in root.iter("joint") if e.get("name") in place and e.get("type") is not None]
    key = ET.SubElement(root, "keyframe")
    ET.SubElement(key, "key", name="assembled", qpos=numbers_text([place[str(x)] for x in order]))


def _tendons(root: ET.Element) -> ET.Element:
    found = root.find("tendon")
    return ET.SubElement(root, "tendon") if found is None else found


def _add_equality(root: ET.Element, section: ET.Element, equality: JointEquality, name: str) -> None:
    """An equality between joints, as one between fixed tendons."""
    ends = {"tendon1": name}
    sums = [(name, equality.weights)]
    if equality.leaders:
        ends["tendon2"] = f"{name}_leaders"
        sums.append((ends["tendon2"], equality.leaders))
    for tendon, weights in sums:
        fixed = ET.SubElement(_tendons(root), "fixed", name=tendon)
        for joint, weight in weights.items():
            ET.SubElement(fixed, "joint", joint=joint, coef=number(weight))
    padded = [*equality.polynomial, *[0.0] * (_COEFFICIENTS - len(equality.polynomial))]
    ET.SubElement(section, "tendon", {"name": name, **ends, "polycoef": numbers_text(padded)})
