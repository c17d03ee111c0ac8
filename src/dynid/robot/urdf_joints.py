"""URDF joints with several degrees of freedom, expanded in the file into chains of simple joints."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from dynid.robot.chains import Step, floating, planar
from dynid.robot.notes import chain_notes
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["expand_joints"]


def expand_joints(root: ET.Element) -> tuple[set[str], list[str]]:
    """Replace planar and floating joints by chains; returns the names of the virtual links, and sentences on each.

    The floating joint of a floating base stays.
    """
    virtual: set[str] = set()
    notes: list[str] = []
    base = _base_joint(root)
    for joint in [j for j in root.findall("joint") if j.get("type") in ("planar", "floating") and j is not base]:
        name = attribute(joint, "name", "a joint")
        steps = floating()
        if joint.get("type") == "planar":
            axis = joint.find("axis")
            given = "1 0 0" if axis is None else axis.get("xyz", "")
            normal = numbers(given, 3, f"joint '{name}', axis")
            steps = planar(normal if np.any(normal) else (0, 0, 1))
        root.remove(joint)
        chain = _chain(joint, name, steps)
        for element in chain[:-1]:
            link = f"{element.get('name')}.virtual"
            virtual.add(link)
            ET.SubElement(root, "link", name=link)
        root.extend(chain)
        if joint.get("type") == "floating":
            notes += chain_notes(f"floating joint '{name}'", [name + step.suffix for step in steps], [])
    return virtual, notes


def _base_joint(root: ET.Element) -> ET.Element | None:
    """The floating joint that makes the whole robot float: all other moving joints are below it."""
    joints = [j for j in root.findall("joint") if j.find("parent") is not None and j.find("child") is not None]
    above = {_end(j, "child"): j for j in joints}
    floats = [j for j in joints if j.get("type") == "floating"]
    for joint in floats:

        def carried(other: ET.Element, joint: ET.Element = joint) -> bool:
            seen: list[ET.Element] = []
            at: ET.Element | None = other
            while at is not None and at not in seen:
                if at is joint:
                    return True
                seen.append(at)
                at = above.get(_end(at, "parent"))
            return False

        if all(carried(j) for j in joints if j.get("type") != "fixed"):
            return joint
    return None


def _end(joint: ET.Element, which: str) -> str:
    element = joint.find(which)
    return "" if element is None else element.get("link", "")


def _chain(joint: ET.Element, name: str, steps: list[Step]) -> list[ET.Element]:
    """The joint elements of a chain, from the parent of a joint to its child."""
    out = []
    for k, step in enumerate(steps):
        kind = "prismatic" if step.kind == "prismatic" else "continuous"
        element = ET.Element("joint", name=name + step.suffix, type=kind)
        first, last = k == 0, k == len(steps) - 1
        before = _end(joint, "parent") if first else f"{name}{steps[k - 1].suffix}.virtual"
        after = _end(joint, "child") if last else f"{name}{step.suffix}.virtual"
        ET.SubElement(element, "parent", link=before)
        ET.SubElement(element, "child", link=after)
        if first:
            element.extend(joint.findall("origin"))
        ET.SubElement(element, "axis", xyz=" ".join(repr(float(x)) for x in step.axis))
        ET.SubElement(element, "limit")
        out.append(element)
    return out
