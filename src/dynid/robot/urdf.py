"""Reader of URDF files: checked here, so that errors name the element at fault, and then read by Pinocchio."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.chains import Step, floating, planar
from dynid.robot.drives import FileDrives
from dynid.robot.extent import urdf_boxes, with_extents
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.model import Robot
from dynid.robot.notes import chain_notes
from dynid.robot.parts import Frame, Merge, Mimic, fold_mimics
from dynid.robot.pinocchio import robot_from_model
from dynid.robot.shape_inertia import ShapeInertia, with_shapes
from dynid.robot.spatial import placement, rpy_rotation
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["check_tree", "expand_joints", "link_inertia", "read_urdf"]


# URDF joints with several degrees of freedom, expanded in the file into chains of simple joints.


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


Array = NDArray[np.float64]

_MOVING = ("revolute", "continuous", "prismatic", "floating")
_VALUES = {"limit": ("lower", "upper", "effort", "velocity"), "dynamics": ("damping", "friction")}


def _origin(element: ET.Element | None, where: str) -> Array:
    if element is None:
        return np.eye(4)
    xyz = numbers(element.get("xyz", "0 0 0"), 3, f"{where}, origin xyz")
    rpy = numbers(element.get("rpy", "0 0 0"), 3, f"{where}, origin rpy")
    return placement(rpy_rotation(*rpy), xyz)


def link_inertia(link: ET.Element) -> Array:
    """Inertial parameters of a URDF link in its own frame; zero without an inertial element."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    where = f"link '{link.get('name')}'"
    mass = inertial.find("mass")
    if mass is None:
        raise ModelError(f"{where} has an <inertial> without a <mass>")
    m = numbers(attribute(mass, "value", f"{where}, mass"), 1, f"{where}, mass")[0]
    tensor_element = inertial.find("inertia")
    if tensor_element is None:
        raise ModelError(f"{where} has a mass but no inertia")
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (numbers(tensor_element.get(k, "0"), 1, f"{where}, inertia {k}")[0] for k in names)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # The tensor is about the centre of mass, in the axes of the inertial frame.
    return move_inertia(inertia_from_com(m, np.zeros(3), tensor), _origin(inertial.find("origin"), where))


def _check_joint(joint: ET.Element, links: set[str]) -> tuple[str, str, str]:
    """Name, parent and child of a joint, after checking all that Pinocchio requires."""
    name = joint.get("name")
    if not name:
        raise ModelError("a joint has no name")
    where = f"joint '{name}'"
    kind = joint.get("type", "")
    if kind not in (*_MOVING, "fixed"):
        raise ModelError(
            f"{where} is of kind '{kind}', which is unknown: use revolute, continuous, prismatic, planar, floating or "
            "fixed",
            code="unknown_name",
        )
    ends = []
    for end in ("parent", "child"):
        link = attribute(joint.find(end), "link", f"{where}, {end}")
        if link not in links:
            raise ModelError(f"{where} refers to an unknown link '{link}'", code="unknown_name")
        ends.append(link)
    _origin(joint.find("origin"), where)
    axis = joint.find("axis")
    if kind != "fixed" and axis is not None:
        direction = numbers(axis.get("xyz"), 3, f"{where}, axis")
        if np.linalg.norm(direction) < 1e-9:
            raise ModelError(f"{where} has a zero axis")
    if kind in ("revolute", "prismatic") and joint.find("limit") is None:
        raise ModelError(f"{where} is {kind} and has no limit element, which only a continuous joint may omit")
    lower, upper, effort, velocity = (float(x) for x in _values(joint, "limit", where).values())
    if lower > upper:
        raise ModelError(f"{where} has its lower limit {lower:g} above its upper limit {upper:g}")
    if effort < 0 or velocity < 0:
        raise ModelError(f"{where} has a negative limit: effort {effort:g}, velocity {velocity:g}")
    _values(joint, "dynamics", where)
    return name, ends[0], ends[1]


def _values(joint: ET.Element, tag: str, where: str) -> dict[str, str]:
    """The values of the limit or dynamics element of a joint as text, zero where omitted."""
    element = joint.find(tag)
    given = {key: "0" if element is None else element.get(key, "0") for key in _VALUES[tag]}
    for key, text in given.items():
        numbers(text, 1, f"{where}, {tag} {key}")
    return given


def check_tree(joints: list[tuple[str, str, str]], links: list[str]) -> None:
    """Check that the joints form one tree: every link but the root is the child of exactly one joint."""
    carrier: dict[str, tuple[str, str]] = {}
    for name, parent, child in joints:
        if child in carrier:
            raise ModelError(
                f"link '{child}' is child of two joints, '{carrier[child][0]}' and '{name}'; loops are not supported",
                code="unsupported",
            )
        carrier[child] = (name, parent)
    roots = [link for link in links if link not in carrier]
    if not roots:
        raise ModelError(f"the joints form a loop: every link has a parent (see joint '{joints[0][0]}')")
    if len(roots) > 1:
        raise ModelError(f"the links are not connected: '{roots[0]}' and '{roots[1]}' both have no parent")
    rooted = set(roots)
    for link in links:
        path = {link}
        while link not in rooted:
            joint, link = carrier[link]
            if link in path:
                raise ModelError(f"joint '{joint}' closes a loop through link '{link}'")
            path.add(link)
        rooted.update(path)


def _mimics(joints: dict[str, ET.Element], notes: list[str]) -> dict[str, Mimic]:
    """Leader, ratio and offset of every mimic joint, with chains resolved; `notes` gets sentences on wrong ones."""
    direct: dict[str, Mimic] = {}
    for name, element in joints.items():
        mimic = element.find("mimic")
        if mimic is None or element.get("type") == "fixed":
            continue
        where = f"joint '{name}', mimic"
        leader = attribute(mimic, "joint", where)
        if leader not in joints:
            notes.append(f"joint '{name}' mimics '{leader}', which the file does not have: it is read as independent")
            continue
        if joints[leader].get("type") == "fixed":
            raise ModelError(f"{where} follows '{leader}', which is fixed")
        ratio = numbers(mimic.get("multiplier", "1"), 1, f"{where} multiplier")[0]
        offset = numbers(mimic.get("offset", "0"), 1, f"{where} offset")[0]
        direct[name] = Mimic(leader, float(ratio), float(offset))
    return fold_mimics(direct)


def read_urdf(root: ET.Element, path: Path, *, shapes: ShapeInertia | None = None) -> tuple[Robot, FileDrives]:
    """Robot and drive values of a URDF file; `shapes` asks for inertias of links that give none."""
    if root.tag != "robot":
        raise ModelError(
            f"{path.name} is not a URDF file: its root element is <{root.tag}>, not <robot>", code="file_format"
        )
    virtual, notes = expand_joints(root)
    links: dict[str, ET.Element] = {}
    for link in root.findall("link"):
        name = attribute(link, "name", "a link")
        if name in links:
            raise ModelError(f"{path.name} has two links named '{name}'", code="duplicate")
        links[name] = link
    if not links:
        raise ModelError(f"{path.name} has no links", code="missing_data")
    inertia = {name: link_inertia(link) for name, link in links.items()}
    if shapes is not None:
        missing = {n: e.findall(shapes.source) for n, e in links.items() if e.find("inertial") is None}
        notes += with_shapes(inertia, missing, path, shapes)
    edges, joints, names = [], {}, set(links)
    for joint in root.findall("joint"):
        edge = _check_joint(joint, names)
        if edge[0] in joints:
            raise ModelError(f"{path.name} has two joints named '{edge[0]}'", code="duplicate")
        edges.append(edge)
        joints[edge[0]] = joint
    check_tree(edges, list(links))
    mimics = _mimics(joints, notes)
    model = _kinematics(joints, edges, list(links))
    robot = robot_from_model(Robot, model, name=root.get("name") or path.stem)
    robot = with_extents(_with_bodies(robot, inertia, joints, edges, mimics), urdf_boxes(root, path))
    tree = tuple(replace(link, virtual=link.name in virtual) for link in robot.links)
    robot = replace(robot, links=tree, notes=tuple(notes))
    return robot, {n: _drive(j, n) for n, j in joints.items()}


def _drive(joint: ET.Element, name: str) -> dict[str, float]:
    """Damping and friction of a joint; negative values are kept."""
    given = _values(joint, "dynamics", name)
    return {"fv": float(given["damping"]), "fc": float(given["friction"])}


def _kinematics(joints: dict[str, ET.Element], edges: list[tuple[str, str, str]], links: list[str]) -> pin.Model:
    """Pinocchio model of the kinematic tree alone, without shapes, materials and plugins."""
    bare = ET.Element("robot", name="robot")
    for link in links:
        ET.SubElement(bare, "link", name=link)
    for name, parent, child in edges:
        joint = ET.SubElement(bare, "joint", name=name, type=joints[name].get("type", ""))
        ET.SubElement(joint, "parent", link=parent)
        ET.SubElement(joint, "child", link=child)
        joint.extend(e for e in joints[name] if e.tag in ("origin", "axis"))
        ET.SubElement(joint, "limit", _values(joints[name], "limit", name))
    try:
        return pin.buildModelFromXML(ET.tostring(bare, encoding="unicode"))
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"Pinocchio cannot read this URDF: {str(error).strip().splitlines()[-1]}") from None


def _with_bodies(
    robot: Robot,
    inertia: dict[str, Array],
    joints: dict[str, ET.Element],
    edges: list[tuple[str, str, str]],
    mimics: dict[str, Mimic],
) -> Robot:
    """The robot with its inertias; links on fixed joints are merged into the link that carries them."""
    carrier = {child: (joint, parent) for joint, parent, child in edges}
    number = {link.name: i for i, link in enumerate(robot.links)}
    total = [np.zeros(10) for _ in robot.links]
    frames, merged = [], []
    for name, pi in inertia.items():
        body, place = name, np.eye(4)
        while body not in number and body in carrier:
            joint, body = carrier[body]
            place = _origin(joints[joint].find("origin"), joint) @ place
        if body not in number:  # it stands in the world below a floating base
            continue
        total[number[body]] += move_inertia(pi, place)
        if body != name:
            frames.append(Frame(name, number[body], place))
            merged.append(Merge(name, carrier[name][0], body, float(pi[0])))
    return replace(
        robot,
        links=tuple(replace(link, inertia=t) for link, t in zip(robot.links, total, strict=True)),
        joints=tuple(replace(j, mimic=mimics.get(j.name)) for j in robot.joints),
        frames=tuple(frames),
        merged=tuple(merged),
    )
